"""Processes that a test starts, and that do not outlive its module."""

import subprocess

import pytest


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
