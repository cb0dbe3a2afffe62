import threading

import pytest
import tensorflow as tf

from keras_transformer.search import streams


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
    ("cores", "gpus", "environment", "threads"),
    [(2, 0, None, 1), (7, 0, None, 2), (1, 0, None, 0), (2, 0, "5", 0), (7, 1, None, 0)],
)
def test_cores_are_shared_unless_the_environment_says_otherwise(
    monkeypatch, cores, gpus, environment, threads
):
    monkeypatch.setattr(streams, "cores", lambda: cores)
    found = {"GPU": ["a GPU"] * gpus}
    monkeypatch.setattr(tf.config, "list_physical_devices", found.__getitem__)
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    if environment is not None:
        monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", environment)
    given = []
    setting = "set_intra_op_parallelism_threads"
    monkeypatch.setattr(tf.config.threading, setting, given.append)
    streams.share_cores()
    assert given == ([threads] if threads else [])
