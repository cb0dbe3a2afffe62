"""Processes that a test starts, and that do not outlive its module."""

import pytest

from tests.processes import PythonProcess


@pytest.fixture(scope="module")
def start_process(tmp_path_factory):
    """Starts processes that are killed, if need be, when the module's tests are over."""
    folder, processes = tmp_path_factory.mktemp("processes"), []

    def start(command, errors, environment=None):
        process = PythonProcess(command, folder, errors=errors, environment=environment)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
