"""Processes that tests start and that do not outlive the test module."""

import pytest

from tests.processes import PythonProcess


@pytest.fixture(scope="module")
def start_process(tmp_path_factory):
    """Starts processes; those still running when the module's tests end are killed."""
    folder, processes = tmp_path_factory.mktemp("processes"), []

    def start(command, errors, environment=None):
        process = PythonProcess(command, folder, errors=errors, environment=environment)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
