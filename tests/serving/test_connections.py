"""What clients do that mean no good, or no HTTP: on real sockets."""

import asyncio
import itertools
import json
import logging
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from aiohttp.compression_utils import HAS_ZSTD

from keras_transformer.serving import server
from keras_transformer.serving.application import Service
from keras_transformer.serving.requests import Limits
from keras_transformer.serving.server import answering, listening_socket

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
POST = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"


def serving(translator, scenario, timeout=60.0, patience=120):
    """Runs `scenario(port, service)` against a server."""

    async def run():
        service = Service(translator, Limits(timeout=timeout), None)
        listening = listening_socket("127.0.0.1", 0)
        port = listening.getsockname()[1]
        async with answering(service, listening):
            return await asyncio.wait_for(scenario(port, service), timeout=patience)

    return asyncio.run(run())


async def exchange(port, data):
    """Sends bytes, and gives what is answered until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize("begun", [b"", b"GET /", b"GET / HTTP/1.1\r\nHost: localhost\r\nA: "])
@pytest.mark.parametrize("first", [b"", REQUEST])
def test_headers_must_end_in_time(translator, first, begun):
    async def scenario(port, service):
        clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        for reader, writer in clients:
            writer.write(first + begun)
            if first:
                await reader.readuntil(b'"ok"}')
        ends = [asyncio.create_task(reader.read()) for reader, _ in clients]
        ahead = itertools.chain(range(600), itertools.repeat(600))  # the clock runs fast
        asyncio.get_running_loop().time = lambda: time.monotonic() + next(ahead)
        for _ in range(10_000):
            for _, writer in clients:
                writer.write(b"x" if begun else b"")  # a byte now and then does not help
            await asyncio.sleep(0)
            if all(end.done() for end in ends):
                break
        assert all(end.done() for end in ends)
        assert service.requests == (20 if first else 0)
        await asyncio.gather(*ends, return_exceptions=True)

    serving(translator, scenario, patience=None)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this is an option of Linux")
@pytest.mark.parametrize("size", [10_000, 50_000_000])
def test_answer_must_be_read_in_time(translator, monkeypatch, size):
    monkeypatch.setattr(server, "CONNECTIONS", 1)

    async def scenario(port, service):
        service._gets["/large"] = ("text/plain", bytes(size))
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b'{"status": "ok"}' in await exchange(port, LAST)

    serving(translator, scenario, timeout=0.3)


def test_too_many_connections_wait(translator, monkeypatch, caplog):
    monkeypatch.setattr(server, "CONNECTIONS", 3)

    async def scenario(port, service):
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for _, writer in idle[1:]:  # for them to be accepted
            writer.write(REQUEST)
        for reader, _ in idle[1:]:
            assert await reader.readuntil(b'"ok"}')
        late = [asyncio.create_task(exchange(port, LAST)) for _ in range(5)]
        while not caplog.records:
            await asyncio.sleep(0)
        assert not any(task.done() for task in late)
        idle[0][1].close()
        assert all(b'{"status": "ok"}' in answer for answer in await asyncio.gather(*late))
        for _, writer in idle:
            writer.close()

    serving(translator, scenario)
    (record,) = caplog.records
    assert record.getMessage() == "connections have to wait: 3 are open"


# Serves with so few file descriptors that only six connections get one.
PROGRAM = """
import asyncio, logging, os, resource, sys
from keras_transformer.serving.application import Service
from keras_transformer.serving.requests import Limits
from keras_transformer.serving.server import answering, listening_socket

class Translator:
    card, graphs, translate = {}, {}, None

async def serve():
    async with answering(Service(Translator, Limits(), None), listening):
        used = max(map(int, os.listdir("/dev/fd"))) + 1
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + 5, hard))
        print(listening.getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.readline)

logging.basicConfig(level=logging.INFO)
listening = listening_socket("127.0.0.1", 0)
asyncio.run(serve())
"""


def test_without_file_descriptors(tmp_path):
    command = [sys.executable, "-c", PROGRAM]
    folder = Path(__file__).resolve().parents[2]
    with (
        open(tmp_path / "log", "w+b") as log,
        subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        ) as process,
    ):
        port = int(process.stdout.readline())
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        while b"connections have to wait" not in (tmp_path / "log").read_bytes():
            assert process.poll() is None
        for client in clients:
            client.close()
        assert b'{"status": "ok"}' in asyncio.run(exchange(port, LAST))
        process.communicate(b"\n", timeout=60)
    lines = (tmp_path / "log").read_text().splitlines()
    assert len([line for line in lines if "have to wait: [Errno 24] Too many open" in line]) == 1
    assert len(lines) < 4


@pytest.mark.parametrize(
    ("data", "status", "message"),
    [
        (POST + b"Expect: foo\r\n\r\n", 417, "Expect must be 100-continue. Received: 'foo'"),
        (b"GET /absent HTTP/1.0\r\nHost: h\r\nExpect: foo\r\n\r\n", 404, "there is no '/absent'"),
        (
            POST + b"Content-Encoding: br\r\nContent-Length: 3\r\n\r\nabc",
            400,
            "the request must be HTTP that can be read. Received: Can not decode content-encoding",
        ),
        (
            POST + b"Content-Encoding: zstd\r\nContent-Length: 3\r\n\r\nabc",
            400,
            "must be encoded as its headers say" if HAS_ZSTD else "Can not decode content-encoding",
        ),
        (b"\x16\x03\x01\x02\x00", 400, "the request must be HTTP that can be read. Received: "),
        (b"no http\r\n\r\n", 400, "the request must be HTTP that can be read. Received: "),
        (POST + b"Content-Length: -1\r\n\r\n", 400, "the request must be HTTP that can be read"),
        (POST + b"A: " + b"x" * 10_000 + b"\r\n\r\n", 400, "Got more than 8190 bytes"),
    ],
)
def test_refusals_are_json(translator, caplog, data, status, message):
    caplog.set_level(logging.INFO)

    async def scenario(port, service):
        answer = await exchange(port, data)
        return answer, service.requests, service.errors

    answer, requests, errors = serving(translator, scenario)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status) or head.startswith(b"HTTP/1.0 %d " % status)
    assert b"Content-Type: application/json; charset=utf-8" in head
    assert b"X-Content-Type-Options: nosniff" in head
    assert message in json.loads(body)["error"]
    assert (requests, errors) == (1, 1)
    (record,) = (record for record in caplog.records if record.name != "asyncio")
    assert record.exc_info is None and "\n" not in record.getMessage()


def test_body_that_waits_to_be_asked_for(translator):
    async def scenario(port, service):
        body = b'{"text": "the cat sleeps."}'
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(POST + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200 OK") and "schläft".encode() in answer

    serving(translator, scenario)
