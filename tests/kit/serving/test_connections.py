"""Malicious clients, and clients that do not speak HTTP, on real sockets."""

import asyncio
import gzip
import itertools
import logging
import re
import time

import pytest

from keras_transformer.kit.serving.application import Service
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.kit.serving.server import OneLine, answering, listening_socket

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
POST = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
TLS_HELLO = b"\x16\x03\x01\x02\x00"


def serving(translator, scenario, patience=120):
    """Runs `scenario(port, service)` against a server."""

    async def run():
        service = Service(translator, Limits(), None)
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
        assert service.http.counts.requests == (20 if first else 0)
        await asyncio.gather(*ends, return_exceptions=True)

    serving(translator, scenario, patience=None)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (TLS_HELLO, 400),
        (POST + b"A: " + b"x" * 10_000 + b"\r\n\r\n", 400),
        (POST + b"Content-Encoding: br\r\nContent-Length: 3\r\n\r\nabc", 400),
        (POST + b"Expect: foo\r\n\r\n", 417),
    ],
)
def test_what_is_no_http_is_refused_without_a_traceback(translator, caplog, data, status):
    caplog.set_level(logging.INFO)
    logger, one_line = logging.getLogger("aiohttp.server"), OneLine()
    logger.addFilter(one_line)

    async def scenario(port, service):
        answer = await exchange(port, data)
        assert b'{"status": "ok"}' in await exchange(port, LAST), "others are answered"
        return answer

    try:
        answer = serving(translator, scenario)
    finally:
        logger.removeFilter(one_line)
    assert answer.startswith(b"HTTP/1.1 %d " % status) or answer.startswith(b"HTTP/1.0 %d" % status)
    assert b"Traceback" not in answer and translator.calls == []
    for record in caplog.records:
        assert record.exc_info is None and "\n" not in record.getMessage()


def test_errors_that_are_repeated_have_one_line(caplog):
    logger = logging.getLogger("test_errors_that_are_repeated")
    logger.addFilter(OneLine())
    for message in ["out of\nresource", "out of\nresource", "other %s", "out of\nresource"]:
        try:
            raise OSError(24, "Too many open files")
        except OSError:
            logger.error(message, exc_info=True)
    logger.info("no error")
    why = "[Errno 24] Too many open files"
    first = rf"out of\nresource: {why}"
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [first, f"other %s: {why}", first]
    assert all(record.exc_info is None for record in caplog.records)


async def read_answer(reader):
    """Reads one answer; returns its status line and its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    (length,) = re.findall(rb"Content-Length: (\d+)", head)
    return head.partition(b"\r\n")[0].decode(), await reader.readexactly(int(length))


JSON = b'{"text": "the cat sleeps."}'
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"
PARTS = b"Content-Type: multipart/form-data; boundary=x\r\n"


@pytest.mark.parametrize(
    ("headers", "body", "status", "named"),
    [
        (b"Content-Encoding: gzip\r\n", gzip.compress(JSON, mtime=0), 400, b"not be compressed"),
        (b"Content-Encoding: gzip\r\n", b"x" * 700_000, 400, b"gzip"),
        (b"Content-Encoding: gzip\r\n" + FORM, gzip.compress(b"q=a", mtime=0), 400, b"gzip"),
        (b"Content-Encoding: gzip\r\n" + PARTS, b"no gzip", 400, b"gzip"),
        (b"Content-Encoding: Br\r\n", b"no br", 400, b'"br'),
        (b"", b"x" * 700_000, 413, b"bytes"),
        (PARTS, b"no parts", 400, b"form"),
        (b"Content-Encoding: identity\r\n", JSON, 200, "schläft".encode()),
    ],
)
def test_the_next_request_of_a_connection_is_answered(translator, headers, body, status, named):
    """Whatever the body was, and whether the next request comes with it or after its answer."""
    length = b"Content-Length: %d\r\n\r\n" % len(body)
    post = b"POST /translate HTTP/1.1\r\nHost: localhost\r\n" + headers + length + body

    async def scenario(port, service):
        for together in (True, False):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(post + REQUEST if together else post)
            line, answer = await read_answer(reader)
            assert f" {status} " in line and named in answer, answer
            if not together:
                writer.write(REQUEST)
            assert await read_answer(reader) == ("HTTP/1.1 200 OK", b'{"status": "ok"}')
            writer.close()

    serving(translator, scenario)
