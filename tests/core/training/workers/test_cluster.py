"""Workers as processes without a model: how they meet, agree, and end together."""

import contextlib
import inspect
import json
import signal
import socket
import time

import pytest

from keras_transformer.support.errors import InputError
from tests.free_ports import free_addresses
from tests.processes import ROOT, PythonProcess
from tests.refusals import refused

PATIENCE = 300  # seconds, on a machine under load

PROGRAM = """
import json, os, signal, sys, time
from keras_transformer.support.errors import InputError
from keras_transformer.core.training.workers import cluster as module
from keras_transformer.core.training.workers.addresses import Addresses
from keras_transformer.core.training.workers.cluster import Cluster, multi_worker_strategy
from keras_transformer.core.training.interruption import listening
import tensorflow as tf

module._SILENCE = 5_000

def validate():
    while True:
        time.sleep(0.01)

def agree():
    decisions = [cluster.agreed([index, float("inf"), 0.1])]
    for number in range(30):  # as between steps
        strategy.reduce("SUM", strategy.run(lambda: tf.ones([])), None)
        decisions.append(cluster.agreed([index, number]))
    return decisions

def wait_for_the_end():
    while True:
        cluster.agreed(None)
        time.sleep(0.01)

def compare():
    cluster.require_same({"seed": index % 2, "config": ["d_model=8"], "clip": None})
    wait_for_the_end()

def compare_addresses():
    if index == 1:
        cluster.addresses = Addresses(("elsewhere:1", workers[1]), 1, "TF_CONFIG")
    cluster.require_same({})
    wait_for_the_end()

def fail(failing):
    cluster.agreed(None)
    if index == failing:
        raise InputError("model_dir", "must be one of mine", "none")
    total = tf.function(lambda: strategy.reduce("SUM", strategy.run(lambda: tf.ones([])), None))
    while True:
        total()  # does not come back by itself

def die(dying, number):
    cluster.newest_checkpoint = lambda: "step-7"
    cluster.agreed(None)
    if index == dying:
        os.kill(os.getpid(), number)
    if index == 0:
        with listening(cluster.pass_on) as interruption:
            assert interruption.unless_interrupted(validate) is None
    wait_for_the_end()

def stop():
    with listening(cluster.pass_on) as interruption:
        cluster.agreed(None)
        if index == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        assert interruption.unless_interrupted(validate) is None  # or a compilation
        return [cluster.agreed(index), interruption.signal]

task, arguments, seconds, index, *workers = json.loads(sys.argv[1])
try:
    addresses = Addresses(tuple(workers), index, "TF_CONFIG")
    strategy = multi_worker_strategy(addresses, None, seconds)
    with Cluster(addresses, "model") as cluster:
        print(json.dumps(globals()[task](*arguments)))
except InputError as error:
    print(json.dumps([error.argument, error.received, error.place]))
"""


@pytest.fixture
def outcomes(tmp_path):
    """Returns the output of the workers and their exit codes; None for those that never end.

    Of an error, they print [argument, received, place].
    """

    def outcomes(task, *arguments, addresses=None, absent=(), seconds=PATIENCE, endless=None):
        addresses = addresses or free_addresses(3)
        present = [n for n in range(len(addresses)) if n not in absent]
        words = (task, arguments, seconds)
        commands = (["-c", PROGRAM, json.dumps([*words, n, *addresses])] for n in present)
        processes = [PythonProcess(command, tmp_path, cwd=ROOT) for command in commands]
        try:
            for number, process in enumerate(processes):
                if number != endless:
                    process.wait(PATIENCE)
            codes = [process.poll() for process in processes]
        finally:
            for process in processes:
                process.kill()
        said = []
        for process in processes:
            output, errors = process.communicate(PATIENCE)
            assert output or task == "die", errors
            said.append(json.loads(output.splitlines()[-1]) if output else None)
        return addresses, said, codes

    return outcomes


def test_one_alone_agrees_with_itself():
    from keras_transformer.core.training.strategy import make_cluster
    from keras_transformer.core.training.workers.addresses import Addresses

    for alone in (None, Addresses(("one:1",), 0, "TF_CONFIG")):
        with make_cluster(alone, "model") as cluster:
            assert cluster.is_chief
            assert cluster.agreed({"spell": 3}) == {"spell": 3}
            cluster.require_same({"seed": 1})
            cluster.pass_on(signal.SIGTERM)
        with refused("its own"), make_cluster(alone, "model"):
            raise InputError("its own", "must be raised")


def test_the_failure_of_another_worker_is_told_in_one_line():
    from keras_transformer.core.training.workers.cluster import WorkerError

    error = WorkerError("worker 1 (here:2)", "has failed", "seed must be 1. Received: 2")
    message = "strategy=multi_worker: worker 1 (here:2) has failed: seed must be 1. Received: 2"
    assert str(error) == message


@pytest.mark.slow
def test_all_do_what_the_chief_has_decided(outcomes):
    _, said, codes = outcomes("agree")
    assert said == [[[0, float("inf"), 0.1], *([0, number] for number in range(30))]] * 3
    assert codes == [0, 0, 0]


def test_other_settings_are_named(outcomes):
    addresses, said, _ = outcomes("compare", addresses=free_addresses(2))
    assert said[1] == ["seed", "1 on worker 1, 0 on worker 0", None]
    worker, received, place = said[0]
    assert (worker, place) == (f"worker 1 ({addresses[1]})", "strategy=multi_worker")
    assert received.startswith("seed ") and received.endswith(said[1][1])


@pytest.mark.slow
def test_another_cluster_is_named(outcomes):
    addresses, said, _ = outcomes("compare_addresses", addresses=free_addresses(2))
    received = f"{['elsewhere:1', addresses[1]]} on worker 1, {[*addresses]} on worker 0"
    assert said[1] == ["cluster", received, "TF_CONFIG"]
    assert said[0][0] == f"worker 1 ({addresses[1]})" and said[0][1].endswith(received)


@pytest.mark.slow
@pytest.mark.parametrize("absent", [(0,), (1, 2)])
def test_workers_that_do_not_come_are_named(outcomes, absent):
    addresses, said, _ = outcomes("agree", absent=absent, seconds=2.5)
    missing = ", ".join(f"worker {n} ({addresses[n]})" for n in absent)
    for argument, received, _ in said:
        assert argument == "connect_seconds"
        assert received.startswith("2.5, ") and received.endswith(f" {missing}")


@pytest.mark.slow
def test_an_address_in_use(outcomes):
    addresses = free_addresses(2)
    with socket.create_server(("", int(addresses[1].partition(":")[2]))):
        _, said, _ = outcomes("agree", addresses=addresses, absent=[0])
    ((argument, received, place),) = said
    assert (argument, place) == ("cluster", "TF_CONFIG")
    assert received == f"{addresses[1]} (Could not start gRPC server)"


@pytest.mark.slow
@pytest.mark.parametrize("address", ["one", "127.0.0.1:x"])
def test_what_is_no_address_is_named(outcomes, address):
    _, said, _ = outcomes("agree", addresses=[*free_addresses(1), address], absent=[1])
    ((argument, received, place),) = said
    assert (argument, place) == ("cluster", "TF_CONFIG")
    assert address in received and "\n" not in received


@pytest.mark.slow
@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_of_one_worker_is_told_to_the_others(outcomes, failing):
    addresses, said, _ = outcomes("fail", failing)
    assert said.pop(failing) == ["model_dir", "none", None]
    for worker, received, place in said:
        assert (worker, place) == (
            f"worker {failing} ({addresses[failing]})",
            "strategy=multi_worker",
        )
        assert received.startswith("model_dir ") and received.endswith("none")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dying", "number"),
    [(0, signal.SIGKILL), (2, signal.SIGKILL), (0, signal.SIGSTOP), (1, signal.SIGSTOP)],
)
def test_a_worker_that_dies_or_is_suspended_ends_the_others(outcomes, dying, number):
    suspended = number == signal.SIGSTOP
    addresses, said, codes = outcomes("die", dying, number, endless=dying if suspended else None)
    assert said.pop(dying) is None
    for worker, received, place in said:
        assert (worker, place) == (f"worker {dying} ({addresses[dying]})", "strategy=multi_worker")
        assert received.endswith("step-7")
    assert codes[dying] == (None if suspended else -signal.SIGKILL)


@pytest.mark.slow
def test_a_signal_to_any_worker_interrupts_all(outcomes):
    _, said, codes = outcomes("stop")
    assert said == [[0, signal.SIGTERM]] * 3
    assert codes == [0, 0, 0]


@pytest.mark.slow
def test_a_signal_before_all_have_come_is_not_lost(tmp_path):
    addresses = free_addresses(2)
    commands = [
        ["-c", PROGRAM, json.dumps(["wait_for_the_end", [], PATIENCE, index, *addresses])]
        for index in range(2)
    ]
    chief = PythonProcess(commands[0], tmp_path, cwd=ROOT)
    other = None
    try:
        host, port = addresses[0].split(":")
        while chief.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection((host, port)):
                break  # TensorFlow listens
            time.sleep(0.01)
        chief.send_signal(signal.SIGTERM)
        other = PythonProcess(commands[1], tmp_path, cwd=ROOT)
        assert chief.wait(PATIENCE) == -signal.SIGTERM
        assert f"worker 0 ({addresses[0]})" in other.communicate(PATIENCE)[0]
    finally:
        for process in (chief, other):
            if process is not None:
                process.kill()


def test_the_private_names_of_tensorflow_are_what_they_were():
    from tensorflow.compiler.xla.tsl.protobuf import coordination_config_pb2
    from tensorflow.python.distribute import collective_all_reduce_strategy as collective
    from tensorflow.python.eager.context import Context

    def arguments(function):
        return list(inspect.signature(function).parameters)[1:]

    settings = {"cluster_register_timeout_in_ms", "heartbeat_timeout_in_ms", "coordinated_jobs"}
    assert settings < set(arguments(Context.configure_coordination_service))
    assert arguments(Context.set_config_key_value) == ["key", "value"]
    assert arguments(Context.get_config_key_value) == ["key", "timeout_in_ms"]
    assert arguments(Context.delete_config_key_value) == ["key"]
    assert arguments(Context.check_collective_ops_peer_health) == ["task", "timeout_in_ms"]
    assert arguments(Context.abort_collective_ops) == ["code", "message"]
    fields = coordination_config_pb2.CoordinationServiceConfig.DESCRIPTOR.fields_by_name
    assert "cluster_register_with_barrier" in fields
    local = collective.CollectiveAllReduceExtended._initialize_local_devices
    assert arguments(local) == ["cluster_resolver", "worker_device"]
