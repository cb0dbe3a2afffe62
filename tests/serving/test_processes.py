"""Servers of several processes that are told to stop, or killed, at bad moments."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from keras_transformer.serving.processes import usable_cores
from tests.processes import ROOT
from tests.serving.test_server import post, read_until, refuses_connections

PATIENCE = 120  # seconds, on any machine
PROGRAM = """
import logging, os, signal, sys, types
from keras_transformer.serving.processes import serve_in_processes, usable_cores
from keras_transformer.serving.requests import Limits
from keras_transformer.serving.server import listening_socket, serve

gate = os.fdopen(os.dup(0))  # a process of multiprocessing has another stdin
fields = dict(score=0.0, log_prob=0.0, truncated=False, unfinished=False)

class Slow:
    card, graphs = types.SimpleNamespace(to_json=dict), {}
    config = types.SimpleNamespace(beam_size=1)
    def translate(self, sentences):
        if sentences == ["slow"]:
            print("called", file=sys.stderr, flush=True)
            gate.readline()
        return [[types.SimpleNamespace(**fields, text=s.upper())] for s in sentences]

def stop_at_fork():
    os.kill(os.getpid(), signal.SIGTERM)

logging.basicConfig(level=logging.INFO)
listening = listening_socket("localhost", 0)

def serve_one(is_first):
    if sys.argv[1] == "stop at fork":
        signal.pause()  # the signal comes before anything is served
    result = serve(Slow(), listening, "localhost", Limits())
    print("ended", file=sys.stderr, flush=True)
    return result

if sys.argv[1] == "stop at fork":
    os.register_at_fork(after_in_parent=stop_at_fork)
try:
    result = serve_in_processes(min(2, len(usable_cores())), serve_one)
    print(result["sentences"], flush=True)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.fixture
def start():
    """Starts the program; whatever is left of it is killed in the end."""
    started = []

    def run(what):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, what],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.slow
def test_a_killed_parent_takes_its_processes_along(start):
    process = start("serve")
    port = read_until(process.stderr, r"serving at http://localhost:(\d+) until").group(1)
    process.kill()
    assert refuses_connections(int(port))
    # It ends when nobody can write to the pipes.
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGKILL and output == ""
    assert "Traceback" not in errors


@pytest.mark.skipif(len(usable_cores()) < 2, reason="one core is for one process")
@pytest.mark.parametrize(
    ("number", "send"),
    [
        (signal.SIGTERM, os.kill),
        pytest.param(signal.SIGINT, os.killpg, marks=pytest.mark.slow),  # as at Ctrl-C
    ],
)
def test_a_request_that_has_begun_is_answered_after_a_signal(start, number, send):
    process = start("serve")
    for _ in range(2):  # both serve
        found = read_until(process.stderr, r"serving at http://localhost:(\d+) until")
    port = int(found.group(1))
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(post, f"http://localhost:{port}", {"text": "slow"})
        read_until(process.stderr, "called")
        send(process.pid, number)
        read_until(process.stderr, "ended")  # the process that has nothing to do
        process.stdin.write("\n")
        process.stdin.flush()
        assert answer.result(PATIENCE) == "SLOW"
    output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output) == (0, "1\n"), errors


@pytest.mark.slow
def test_a_signal_while_processes_are_forked_stops_them_all(start):
    process = start("stop at fork")
    output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output) == (0, "stopped\n"), errors
    assert not re.search("serving at|Traceback", errors)
