"""Programs of bin/ inside the test's own process, where TensorFlow is imported once for all."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from absl import flags

BIN = Path(__file__).resolve().parents[2] / "bin"


@pytest.fixture(scope="module")
def start_process():
    """Starts processes that are killed, if need be, when the module's tests are over."""
    processes = []

    def start(command, errors, environment=None):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def load_program(monkeypatch):
    """Gives the module of bin/NAME.py with its flags parsed, ready for main()."""
    monkeypatch.syspath_prepend(BIN)
    others = set(flags.FLAGS)

    def forget():
        for flag in set(flags.FLAGS) - others:
            delattr(flags.FLAGS, flag)

    def load(name, *arguments):
        forget()  # programs share names of flags
        spec = importlib.util.spec_from_file_location(f"loaded_{name}", BIN / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        flags.FLAGS([name, *arguments])
        return module

    yield load
    forget()
    sys.modules.pop("command", None)
