"""Workers as processes without a model: how they meet, agree, and end together."""

import contextlib
import inspect
import json
import signal
import socket
import time

import pytest

from keras_transformer.errors import InputError
from tests.free_ports import free_addresses
from tests.processes import ROOT, PythonProcess

PATIENCE = 300  # seconds, on a machine under load

PROGRAM = """
import json, os, signal, sys, time
from keras_transformer.errors import InputError
from keras_transformer.training.addresses import Addresses
from keras_transformer.training.cluster import Cluster, multi_worker_strategy
from keras_transformer.training.interruption import listening
import tensorflow as tf

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
        raise InputError("--model_dir must have room. Received: none")
    total = tf.function(lambda: strategy.reduce("SUM", strategy.run(lambda: tf.ones([])), None))
    while True:
        total()  # does not come back by itself

def die(dying):
    cluster.newest_checkpoint = lambda: "step-7"
    cluster.agreed(None)
    if index == dying:
        os.kill(os.getpid(), signal.SIGKILL)
    if index == 0:
        with listening(cluster.pass_on) as interruption:
            assert interruption.unless_heard(validate) is None
    wait_for_the_end()

def stop():
    with listening(cluster.pass_on) as interruption:
        cluster.agreed(None)
        if index == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        if index == 0:
            assert interruption.unless_heard(validate) is None
        return [cluster.agreed(index), interruption.signal]

task, arguments, seconds, index, *workers = json.loads(sys.argv[1])
try:
    addresses = Addresses(tuple(workers), index, "TF_CONFIG")
    strategy = multi_worker_strategy(addresses, None, seconds)
    with Cluster(addresses) as cluster:
        print(json.dumps(globals()[task](*arguments)))
except InputError as error:
    print(json.dumps(str(error)))
"""


@pytest.fixture
def outcomes(tmp_path):
    """What the workers of a task print, and their exit codes."""

    def outcomes(task, *arguments, workers=3, absent=(), seconds=PATIENCE):
        addresses = free_addresses(workers)
        present = [n for n in range(workers) if n not in absent]
        words = (task, arguments, seconds)
        commands = (["-c", PROGRAM, json.dumps([*words, n, *addresses])] for n in present)
        processes = [PythonProcess(command, tmp_path, cwd=ROOT) for command in commands]
        try:
            ended = [(*process.communicate(PATIENCE), process.returncode) for process in processes]
        finally:
            for process in processes:
                process.kill()
        for output, errors, _ in ended:
            assert output or task == "die", errors
        said = [json.loads(output.splitlines()[-1]) if output else None for output, *_ in ended]
        return addresses, said, [code for *_, code in ended]

    return outcomes


def test_one_alone_agrees_with_itself():
    from keras_transformer.training.cluster import Cluster

    with Cluster() as cluster:
        assert cluster.is_chief
        assert cluster.agreed({"spell": 3}) == {"spell": 3}
        cluster.require_same({"seed": 1})
        cluster.pass_on(signal.SIGTERM)
    with pytest.raises(InputError, match=r"^its own$"), Cluster():
        raise InputError("its own")


def test_all_do_what_the_chief_has_decided(outcomes):
    _, said, codes = outcomes("agree")
    assert said == [[[0, float("inf"), 0.1], *([0, number] for number in range(30))]] * 3
    assert codes == [0, 0, 0]


def test_other_settings_are_named(outcomes):
    addresses, said, _ = outcomes("compare")
    message = "--seed must be the same on every worker. Received: 1 on worker 1, 0 on worker 0"
    told = f"--strategy=multi_worker: worker 1 ({addresses[1]}) failed: {message}"
    assert said == [told, message, told]


def test_another_cluster_is_named(outcomes):
    addresses, said, _ = outcomes("compare_addresses", workers=2)
    assert said[1] == (
        "TF_CONFIG: cluster must be the same on every worker. Received: "
        f"{['elsewhere:1', addresses[1]]} on worker 1, {[*addresses]} on worker 0"
    )
    assert said[0].endswith(f"failed: {said[1]}")


@pytest.mark.parametrize("absent", [(0,), (1, 2)])
def test_workers_that_do_not_come_are_named(outcomes, absent):
    addresses, said, _ = outcomes("agree", absent=absent, seconds=2.5)
    missing = ", ".join(f"worker {n} ({addresses[n]})" for n in absent)
    rule = "every worker must be there within --connect_seconds=2.5"
    assert set(said) == {f"{rule}. Received: no word from {missing}"}


def test_an_address_in_use():
    from keras_transformer.training.addresses import Addresses
    from keras_transformer.training.cluster import _require_free_port

    with socket.create_server(("", 0)) as listener:
        taken = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(InputError, match=rf"TF_CONFIG: the address .* {taken} \(Address"):
            _require_free_port(Addresses((taken,), 0, "TF_CONFIG"))


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_of_one_worker_is_told_to_the_others(outcomes, failing):
    addresses, said, _ = outcomes("fail", failing)
    error = "--model_dir must have room. Received: none"
    told = f"--strategy=multi_worker: worker {failing} ({addresses[failing]}) failed: {error}"
    assert said == [error if worker == failing else told for worker in range(3)]


def test_the_chief_does_not_take_its_own_error_for_that_of_another(monkeypatch):
    from keras_transformer.training import cluster
    from keras_transformer.training.addresses import Addresses

    chief, store = cluster.Cluster(Addresses(("one:1", "two:1"), 0, "TF_CONFIG")), {"left/1": True}
    monkeypatch.setattr(chief, "_tell", store.__setitem__)
    monkeypatch.setattr(chief, "_read", lambda key, seconds=0: store.get(key))
    monkeypatch.setattr(chief, "_is_alive", lambda worker: True)
    # As the thread that watches does at any time.
    monkeypatch.setattr(cluster, "_end_collectives", chief._look)
    with pytest.raises(InputError, match=r"^its own$"), chief:
        raise InputError("its own")
    assert store["failed"] == (0, "its own")


@pytest.mark.parametrize("dying", [0, 2])
def test_a_worker_that_dies_ends_the_others(outcomes, dying):
    addresses, said, codes = outcomes("die", dying)
    told = (
        f"--strategy=multi_worker: worker {dying} ({addresses[dying]}) stopped answering. Start "
        "all workers again: they go on from checkpoint step-7"
    )
    assert said == [None if worker == dying else told for worker in range(3)]
    assert codes[dying] == -signal.SIGKILL


def test_a_signal_to_any_worker_ends_the_validation_of_the_chief(outcomes):
    _, said, codes = outcomes("stop")
    assert said == [[0, signal.SIGTERM], [0, signal.SIGTERM], [0, None]]
    assert codes == [0, 0, 0]


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
        assert f"worker 0 ({addresses[0]}) stopped answering" in other.communicate(PATIENCE)[0]
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
