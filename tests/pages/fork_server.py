"""Runs Python commands in processes that have already imported TensorFlow: 0.2 s instead of 3.5.

A server imports TensorFlow and Keras once and uses neither. It forks for each command, so the new
process is in the state of an interpreter after these imports. It gets the caller's arguments,
environment, working directory and standard streams, and ends when the caller ends.
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
VARIABLE = "COMMANDS_FORK_SERVER"  # the socket's path, in callers' environment


@contextmanager
def running(folder: Path) -> Iterator[Path]:
    """Starts a server, yields the path of its socket, and stops the server at the end."""
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
    """Runs `python COMMAND...` on the server at a socket; returns its exit code."""
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

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for processes that run `keep`
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
    """Starts a connection's command, reports its exit code, and ends this process."""
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
    """Waits until the caller has gone, and terminates its command."""
    connection.recv(1)
    with suppress(ProcessLookupError):  # it has already ended
        os.kill(pid, signal.SIGTERM)


if __name__ == "__main__":
    serve(sys.argv[1])
