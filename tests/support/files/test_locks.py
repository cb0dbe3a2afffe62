"""Folders that one process at a time may write to."""

import os
import subprocess
import sys
import threading

import pytest

from keras_transformer.support.files.locks import locked
from keras_transformer.support.files.paths import to_path
from tests.refusals import refused

# Takes the lock, prints a line, and waits for its input to end.
HOLDER = """
import sys
from keras_transformer.support.files.locks import locked
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
        for _ in range(2):  # the note about the holder stays
            with refused("dir", path.parent) as caught, locked(path, "dir"):
                pass
            assert f"process {holder.pid} on " in caught.value.received
        with refused("dir"), locked(path, "dir", wait_seconds=0.01):
            pass
        threading.Timer(0.1, holder.kill).start()
        with locked(path, "dir", wait_seconds=60):
            assert holder.wait(timeout=60) != 0
    finally:
        holder.kill()
        holder.communicate()
    with locked(path, "dir"):  # the file is still there, the lock is not
        assert f"process {os.getpid()} on " in path.read_text()


def test_a_folder_that_cannot_be_locked(tmp_path):
    (tmp_path / "file").write_text("")
    place = str(tmp_path / "file")
    with pytest.raises(FileExistsError, match=place), locked(tmp_path / "file" / "lock", "dir"):
        pass


def test_a_file_system_without_locks_is_used_with_a_warning(tmp_path, monkeypatch, caplog):
    import fcntl

    def no_locks(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    for _ in range(2):  # nothing is left locked by the first
        with locked(tmp_path / "lock", "dir"):
            (record,) = caplog.records
        assert record.args[:2] == (tmp_path, "[Errno 37] No locks available")
        caplog.clear()


@pytest.mark.tensorflow
def test_a_remote_folder_is_used_with_a_warning(tmp_path, caplog):
    folder = to_path(f"ram://{tmp_path.name}-lock")
    with locked(folder / "lock", "dir"), locked(folder / "lock", "dir"):
        warnings = [record.args[:2] for record in caplog.records]
    assert warnings == 2 * [(folder, "it is remote")]
