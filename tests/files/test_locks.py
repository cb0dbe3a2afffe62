"""Folders that one process at a time may write to."""

import os
import subprocess
import sys

import pytest

from keras_transformer.errors import InputError
from keras_transformer.files.locks import locked
from keras_transformer.files.paths import to_path

# Takes the lock, prints a line, and waits for its input to end.
HOLDER = """
import sys
from keras_transformer.files.locks import locked
with locked(sys.argv[1], "dir"):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_second_process_is_refused_until_the_first_has_ended(tmp_path):
    path = tmp_path / "new" / "lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "locked\n"
        message = (
            r"^dir must not be in use by another process. Received: .*new, locked by "
            rf"process {holder.pid} on .*new/lock\)$"
        )
        for _ in range(2):  # the note about the holder stays
            with pytest.raises(InputError, match=message), locked(path, "dir"):
                pass
    finally:
        holder.kill()
        holder.communicate()
    with locked(path, "dir"):  # the file is still there, the lock is not
        assert f"process {os.getpid()} on " in path.read_text()
    with locked(path, "dir"):
        pass


def test_a_folder_that_cannot_be_locked(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    message = r"dir must be a directory that can be written to. Received: .*file \(.*exists"
    with pytest.raises(InputError, match=message), locked(tmp_path / "file" / "lock", "dir"):
        pass


NO_LOCK = "cannot be locked ({}): use it by one process at a time"


def test_a_file_system_without_locks_is_used_with_a_warning(tmp_path, monkeypatch, caplog):
    import fcntl

    def no_locks(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    for _ in range(2):  # nothing is left locked by the first
        with locked(tmp_path / "lock", "dir"):
            (record,) = caplog.records
        no_lock = NO_LOCK.format("[Errno 37] No locks available")
        assert record.getMessage() == f"{tmp_path} {no_lock}"
        caplog.clear()


def test_a_remote_folder_is_used_with_a_warning(tmp_path, caplog):
    folder = to_path(f"ram://{tmp_path.name}-lock")
    with locked(folder / "lock", "dir"), locked(folder / "lock", "dir"):
        messages = [record.getMessage() for record in caplog.records]
    assert messages == 2 * [f"{folder} {NO_LOCK.format('it is remote')}"]
