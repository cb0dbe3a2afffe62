"""Runs Python commands in processes that have imported TensorFlow already: 0.2 s instead of 3.5.

A server imports TensorFlow and Keras once and uses neither. For each command, it forks: the new
process is what an interpreter is after these imports. It has the caller's arguments, environment,
folder and standard streams, and ends when the caller ends.
"""

import array
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.processes import execute, take_over

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "COMMANDS_FORK_SERVER"  # the socket's path, in the environment of callers


@contextmanager
def running(folder: Path) -> Iterator[Path]:
    """Starts a server; gives the path of its socket, and stops the server in the end."""
    path = folder / "fork_server.socket"
    command = [sys.executable, "-m", "tests.pages.fork_server", str(path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    try:
        assert server.stdout.readline() == b"ready\n", "the fork server did not start"
        yield path
    finally:
        server.kill()
        server.wait()


def run(command: Sequence[str], path: str) -> int:
    """Runs `python COMMAND...` by the server at a socket; returns its exit code."""
    request = {"command": list(command), "environment": dict(os.environ), "folder": os.getcwd()}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        streams = array.array("i", [0, 1, 2])
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)]
        connection.sendmsg([b"streams"], ancillary)
        connection.sendall(json.dumps(request).encode() + b"\n")
        return int(connection.makefile().readline())


def serve(path: str) -> None:
    import keras  # noqa: F401
    import tensorflow  # noqa: F401
    import tensorflow_text  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        print("ready", flush=True)
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                keep(connection)
            connection.close()


def keep(connection: socket.socket) -> None:
    """Starts the command of a connection, reports how it ends, and ends this process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, streams, _, _ = socket.recv_fds(connection, len(b"streams"), 3)
    request = json.loads(connection.makefile().readline())
    pid = os.fork()
    if pid == 0:
        connection.close()
        take_over(streams, request["environment"], request["folder"])
        execute(request["command"])
    for stream in streams:
        os.close(stream)
    threading.Thread(target=end_with_caller, args=(connection, pid), daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        connection.sendall(b"%d\n" % (code if code >= 0 else 128 - code))
    finally:
        os._exit(0)


def end_with_caller(connection: socket.socket, pid: int) -> None:
    """Waits until the caller has gone, and asks its command to end."""
    connection.recv(1)
    with suppress(ProcessLookupError):  # it has ended by itself
        os.kill(pid, signal.SIGTERM)


if __name__ == "__main__":
    serve(sys.argv[1])
