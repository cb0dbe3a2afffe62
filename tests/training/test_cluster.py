"""Workers as threads of one process: how they meet, agree, and end together."""

import concurrent.futures
import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from keras_transformer.errors import InputError
from keras_transformer.training import cluster, rendezvous
from keras_transformer.training.addresses import Addresses
from keras_transformer.training.cluster import Cluster
from keras_transformer.training.interruption import listening
from tests.free_ports import free_addresses as free

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300  # seconds, on a machine under load


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Nobody who is slow is taken for one that is gone; nor does anything end this process."""
    monkeypatch.setattr(rendezvous, "_HELLO_SECONDS", PATIENCE)
    monkeypatch.setattr(cluster, "_SETTLING_SECONDS", PATIENCE)
    monkeypatch.setattr(cluster, "_ENDING_SECONDS", 2 * PATIENCE)


class Clock:
    """Stands still until a test sets it on."""

    now = 0.0
    sleep = staticmethod(time.sleep)

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """What workers that wait for each other take for the time."""
    made = Clock()
    monkeypatch.setattr(rendezvous, "time", made)
    return made


def connect(workers, index, seconds=PATIENCE, **settings):
    return Cluster.connected(Addresses(workers, index, "TF_CONFIG"), settings, seconds)


@contextlib.contextmanager
def threads(*calls):
    """Calls functions at the same time; gives their futures."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        yield [pool.submit(call) for call in calls]


def error_of(future):
    """The one line of an InputError."""
    error = future.exception(timeout=PATIENCE)
    assert isinstance(error, InputError), error
    assert "\n" not in str(error)
    return str(error)


def call(workers, hello):
    """Calls at the chief's address as a worker does; gives the connection."""
    host, port = workers[0].split(":")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            connection = socket.create_connection((host, int(port)), timeout=PATIENCE)
            connection.sendall(hello)
            return connection
        time.sleep(0.01)
    raise AssertionError(f"nobody listens at {workers[0]}")


def hello(workers, index, **settings):
    word = {"worker": index, "workers": workers, "settings": settings}
    return json.dumps(word).encode() + b"\n"


def join(workers, index):
    """A worker that is there, and hears everything, until `close` is called."""
    connection = call(workers, hello(workers, index))
    with connection.makefile("rb", buffering=0) as heard:
        assert "begin" in json.loads(heard.readline())
    return connection


def test_one_alone_agrees_with_itself():
    with Cluster() as cluster:
        assert cluster.is_chief
        assert cluster.agreed({"spell": 3}) == {"spell": 3}
        cluster.pass_on(signal.SIGTERM)
    with pytest.raises(InputError, match=r"^its own$"), Cluster():
        raise InputError("its own")


def test_all_do_what_the_chief_has_decided():
    workers = free(3)

    def work(index):
        with connect(workers, index, seed=1) as cluster:
            return [cluster.agreed([index, number]) for number in range(5)]

    with threads(*(lambda index=index: work(index) for index in range(3))) as futures:
        for future in futures:
            assert future.result(PATIENCE) == [[0, number] for number in range(5)]


def test_what_must_be_the_same_is_compared_with_the_chiefs():
    workers = free(2)

    def work(index, replicas):
        with connect(workers, index) as cluster:
            cluster.require_same("replicas", replicas)
            cluster.agreed(None)

    with threads(lambda: work(0, 8), lambda: work(1, 4)) as (chief, other):
        message = "--strategy=multi_worker: replicas must be those of worker 0, 8. Received: 4"
        assert error_of(other) == message
        assert chief.exception(PATIENCE) is None or message in error_of(chief)


def test_workers_that_do_not_come_are_named(clock, caplog):
    workers = free(3)
    with (
        caplog.at_level("INFO", logger="absl"),
        threads(lambda: connect(workers, 0), lambda: connect(workers, 1)) as futures,
    ):
        deadline = time.monotonic() + PATIENCE
        while "waiting for worker 2" not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.01)
        clock.now = PATIENCE + 1
        for future in futures:
            assert error_of(future) == (
                f"every worker must be there within --connect_seconds={PATIENCE}. Received: no "
                f"word from worker 2 ({workers[2]})"
            )


def test_a_chief_that_does_not_come_is_named(clock):
    workers = free(2)
    clock.sleep = lambda _: setattr(clock, "now", 1.0)
    with threads(lambda: connect(workers, 1, 0.5)) as (future,):
        message = error_of(future)
    assert message.startswith("every worker must be there within --connect_seconds=0.5. Received: ")
    assert f"no word from worker 0 ({workers[0]}): " in message
    assert "refused" in message


@pytest.mark.parametrize("index", [0, 1])
def test_an_address_in_use(index):
    with socket.create_server(("", 0)) as listener:
        taken = f"127.0.0.1:{listener.getsockname()[1]}"
        workers = [*free(1), taken] if index else [taken, *free(1)]
        with pytest.raises(InputError, match=rf"TF_CONFIG: the address .* {taken} \(Address"):
            connect(tuple(workers), index)


def test_other_settings_are_refused_and_the_right_ones_taken():
    workers = free(2)
    settings = {"seed": 1, "config": ["d_model=8"], "clip": None}

    def work(index, **changed):
        with connect(workers, index, **{**settings, **changed}) as cluster:
            return cluster.agreed(index)

    with threads(lambda: work(0), lambda: work(1, seed=2)) as (chief, wrong):
        assert error_of(wrong) == (
            "--seed must be the same on every worker. Received: 2 on worker 1, 1 on worker 0"
        )
        assert work(1) == chief.result(PATIENCE) == 0


def test_a_worker_that_is_there_already_is_refused():
    workers = free(3)
    with threads(lambda: connect(workers, 0)) as (chief,):
        with call(workers, hello(workers, 1)), call(workers, hello(workers, 1)) as second:
            answer = json.loads(second.makefile().readline())
            assert answer["failed"] == (
                "TF_CONFIG: task.index must be another one for every worker. Received: 1, which "
                "another process is"
            )
        # It has gone, and may come again.
        with call(workers, hello(workers, 1)) as third, join(workers, 2):
            assert "begin" in json.loads(third.makefile().readline())
        assert chief.result(PATIENCE).is_chief


def test_another_cluster_is_refused():
    workers = free(2)
    others = (workers[0], "elsewhere:1")
    with threads(lambda: connect(workers, 0)) as (chief,):
        with call(workers, hello(others, 1)) as connection:
            answer = json.loads(connection.makefile().readline())
        assert answer["failed"].startswith("TF_CONFIG: cluster must be the same on every worker.")
        assert "elsewhere:1" in answer["failed"]
        join(workers, 1).close()
        assert chief.result(PATIENCE).is_chief


@pytest.mark.parametrize("words", [b"GET / HTTP/1.1\r\n\r\n", b"[]\n", b'{"worker": 9}\n'])
def test_strangers_are_turned_away(words):
    workers = free(2)
    with threads(lambda: connect(workers, 0)) as (chief,):
        with call(workers, words) as connection:
            assert connection.recv(1) == b""
        join(workers, 1).close()
        assert chief.result(PATIENCE).is_chief


def test_strangers_do_not_put_off_the_end(clock, monkeypatch):
    """As the checks of whoever watches over a port might."""
    workers, admit, callers = free(2), rendezvous._admit, []

    def admit_and_call_again(*arguments):
        admit(*arguments)
        assert len(callers) < 5
        callers.append(call(workers, b"[]\n"))
        clock.now += PATIENCE

    monkeypatch.setattr(rendezvous, "_admit", admit_and_call_again)
    with threads(lambda: connect(workers, 0)) as (chief,):
        callers.append(call(workers, b"[]\n"))
        assert workers[1] in error_of(chief)
    for caller in callers:
        caller.close()


def test_a_worker_that_dies_ends_the_others():
    workers, ready = free(3), threading.Barrier(3)

    def work(index):
        with connect(workers, index) as cluster:
            cluster.newest_checkpoint = lambda: "step-00000007"
            ready.wait(PATIENCE)
            while True:
                cluster.agreed(None)

    with threads(lambda: work(0), lambda: work(1)) as futures:
        dying = join(workers, 2)
        ready.wait(PATIENCE)
        dying.close()
        for future in futures:
            assert error_of(future) == (
                f"--strategy=multi_worker: worker 2 ({workers[2]}) stopped answering. Start all "
                "workers again: they go on from checkpoint step-00000007"
            )


def test_a_checkpoint_that_is_completed_after_a_death_is_named():
    workers = free(2)
    with threads(lambda: connect(workers, 0)) as (chief,):
        dying = join(workers, 1)
        with chief.result(PATIENCE) as cluster:
            dying.close()
            assert cluster._failed.wait(PATIENCE)
            cluster.newest_checkpoint = lambda: "step-14"
            with pytest.raises(InputError, match=r"they go on from checkpoint step-14$"):
                cluster.agreed(None)


@pytest.mark.parametrize("failing", [0, 1])
def test_what_ends_one_worker_is_told_to_the_others(failing):
    workers = free(2)

    def work(index):
        with connect(workers, index) as cluster:
            if index == failing:
                raise InputError("--model_dir must have room. Received: none")
            while True:
                cluster.agreed(None)

    with threads(lambda: work(0), lambda: work(1)) as futures:
        assert error_of(futures[failing]) == "--model_dir must have room. Received: none"
        assert error_of(futures[1 - failing]) == (
            f"--strategy=multi_worker: worker {failing} ({workers[failing]}) failed: "
            "--model_dir must have room. Received: none"
        )


def test_what_a_death_leads_to_is_not_taken_for_its_cause():
    workers = free(2)

    def work():
        with connect(workers, 0):
            raise RuntimeError("Socket closed\nas TensorFlow puts it")

    with threads(work) as (chief,):
        join(workers, 1).close()
        assert f"worker 1 ({workers[1]}) stopped answering" in error_of(chief)


def test_a_signal_to_any_worker_is_heard_by_the_chief():
    workers = free(2)

    def work():
        with connect(workers, 1) as cluster:
            assert cluster.agreed(None) == "go on"
            cluster.pass_on(signal.SIGINT)
            return cluster.agreed(None)

    def evaluate():
        while True:
            pass

    with threads(work) as (other,), connect(workers, 0) as cluster:
        with listening(cluster.pass_on) as interruption:
            cluster.agreed("go on")
            assert not interruption.unless_heard(evaluate)
        assert interruption.signal == signal.SIGTERM
        assert cluster.agreed("stop") == other.result(PATIENCE) == "stop"


def test_a_process_that_cannot_end_by_itself_is_ended():
    # Its main thread is where Python hears nothing, as one in TensorFlow's sums may be.
    program = """
import sys, threading
from keras_transformer.training import cluster
from keras_transformer.training.addresses import Addresses
cluster._ENDING_SECONDS = 0.5
addresses = Addresses(tuple(sys.argv[1:]), 0, "TF_CONFIG")
with cluster.Cluster.connected(addresses, {}, 300):
    threading.Event().wait()
"""
    workers = free(2)
    process = subprocess.Popen(
        [sys.executable, "-c", program, *workers], stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        join(workers, 1).close()
        _, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 1
    assert errors.splitlines()[-1] == (
        f"error: --strategy=multi_worker: worker 1 ({workers[1]}) stopped answering. Start all "
        "workers again: they go on from the last checkpoint, if there is one"
    )
