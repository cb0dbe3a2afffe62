import os
import threading

import pytest

from keras_transformer.core.search.engines import streams


def test_results_come_in_order_and_batches_run_together():
    together = threading.Barrier(2, timeout=60)  # breaks unless two batches are under way at once

    def function(batch):
        together.wait()
        return -batch

    assert list(streams.in_streams(function, [1, 2, 3, 4], 2)) == [-1, -2, -3, -4]
    assert list(streams.in_streams(function, [], 2)) == []


def test_an_error_comes_to_who_reads_the_results():
    def function(batch):
        return 1 // batch

    with pytest.raises(ZeroDivisionError):
        list(streams.in_streams(function, [1, 0, 1], 2))


@pytest.mark.parametrize(
    ("cores", "has_gpu", "device", "environment", "threads"),
    [
        (2, False, "auto", None, "1"),
        (7, False, "auto", None, "2"),
        (1, False, "auto", None, "1"),
        (2, False, "auto", "5", "5"),
        (7, True, "auto", None, None),
        (7, True, "cpu", None, "2"),
    ],
)
def test_cores_are_shared_unless_the_environment_says_otherwise(
    monkeypatch, tmp_path, cores, has_gpu, device, environment, threads
):
    monkeypatch.setattr(streams, "cores", lambda: cores)
    monkeypatch.setattr(streams, "NVIDIA_DRIVER", tmp_path if has_gpu else tmp_path / "none")
    variables = {} if environment is None else {"TF_NUM_INTRAOP_THREADS": environment}
    monkeypatch.setattr(os, "environ", variables)
    streams.share_cores(device)
    assert variables.get("TF_NUM_INTRAOP_THREADS") == threads
