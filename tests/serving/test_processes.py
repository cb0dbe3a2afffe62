"""Servers of several processes that are told to stop, or killed, at bad moments."""

import contextlib
import os
import re
import signal
import subprocess
import sys

import pytest

from tests.processes import ROOT
from tests.serving.test_server import read_until, refuses_connections

PATIENCE = 120  # seconds, on any machine
PROGRAM = """
import logging, os, signal, sys, types
from keras_transformer.serving.processes import serve_in_processes, usable_cores
from keras_transformer.serving.requests import Limits
from keras_transformer.serving.server import listening_socket, serve

class Silent:
    card, graphs = types.SimpleNamespace(to_json=dict), {}
    config = types.SimpleNamespace(beam_size=1)
    def translate(self, sentences):
        return [[] for _ in sentences]

def stop_at_fork():
    os.kill(os.getpid(), signal.SIGTERM)

logging.basicConfig(level=logging.INFO)
listening = listening_socket("localhost", 0)

def serve_one(is_first):
    return serve(Silent(), listening, "localhost", Limits())

if sys.argv[1] == "stop at fork":
    os.register_at_fork(after_in_parent=stop_at_fork)
try:
    serve_in_processes(min(2, len(usable_cores())), serve_one)
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


def test_a_killed_parent_takes_its_processes_along(start):
    process = start("serve")
    port = read_until(process.stderr, r"serving at http://localhost:(\d+) until").group(1)
    process.kill()
    assert refuses_connections(int(port))
    output, errors = process.communicate(
        timeout=PATIENCE
    )  # ends when nobody can write to the pipes
    assert process.returncode == -signal.SIGKILL and output == ""
    assert "Traceback" not in errors


def test_a_signal_while_processes_are_forked_stops_them_all(start):
    process = start("stop at fork")
    output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output) == (0, "stopped\n"), errors
    assert not re.search("serving at|Traceback", errors)
