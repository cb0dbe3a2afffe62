import os
import subprocess
import sys

import pytest

from keras_transformer.errors import InputError
from keras_transformer.training.directory_lock import locked

# Takes the lock, says so, and waits for its input to end.
HOLDER = """
import sys
from keras_transformer.training.directory_lock import locked
with locked(sys.argv[1]):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_second_process_is_refused_until_the_first_is_gone(tmp_path):
    model_dir = tmp_path / "model"
    command = [sys.executable, "-c", HOLDER, str(model_dir)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "locked\n"
        message = rf"in use by another process. Received: .*process {holder.pid} on .*model/lock\)$"
        with pytest.raises(InputError, match=message), locked(model_dir):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with locked(model_dir):  # the file is still there, the lock is not
        assert f"process {os.getpid()} on " in (model_dir / "lock").read_text()
    with locked(model_dir):
        pass


def test_file_in_the_way(tmp_path):
    (tmp_path / "model").write_text("")
    message = "--model_dir must be a directory that can be written to"
    with pytest.raises(InputError, match=message), locked(tmp_path / "model"):
        pass
