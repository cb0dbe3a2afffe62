"""Who the workers are: TF_CONFIG and Slurm's variables, as they come and as they should not.

Most of it is TensorFlow's work; what these tests say is what we need of it.
"""

import json
import os

import pytest

from keras_transformer.core.training.workers.addresses import own_addresses
from tests.refusals import refused

TWO = ["one:2000", "two:2000"]


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    for name in ("TF_CONFIG", "SLURM_PROCID", "SLURM_JOB_ID", "SLURM_STEP_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def say(monkeypatch):
    def say(environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)

    return say


def tf_config(cluster=None, kind="worker", index=0):
    cluster = {"worker": TWO} if cluster is None else cluster
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


def slurm(nodes, tasks, number, node, local="0", **more):
    """Returns what srun sets for task `local` on a node; Slurm chooses the ranks."""
    step = {"NODELIST": nodes, "TASKS_PER_NODE": tasks, "NUM_TASKS": number}
    more |= {f"STEP_{name}": value for name, value in step.items()}
    names = {f"SLURM_{name}": value for name, value in more.items()}
    return {**names, "SLURM_PROCID": "0", "SLURM_LOCALID": local, "SLURMD_NODENAME": node}


@pytest.mark.parametrize(
    ("environment", "workers", "own"),
    [
        (tf_config(index=1), TWO, "two:2000"),
        (tf_config(index="1"), TWO, "two:2000"),
        (tf_config({"chief": ["zero:1"], "worker": TWO}), ["zero:1", *TWO], "one:2000"),
        (tf_config({"chief": ["zero:1"], "worker": TWO}, "chief"), ["zero:1", *TWO], "zero:1"),
        (tf_config({"worker": ["[::1]:80"]}), ["[::1]:80"], "[::1]:80"),
        (slurm("node9", "1", "1", "node9"), ["node9:10000"], "node9:10000"),
        (
            slurm("n[1-4,7]", "1(x5)", "5", "n3"),
            [f"n{n}:10000" for n in (1, 2, 3, 4, 7)],
            "n3:10000",
        ),
        (
            # Several tasks a node, names as Slurm shortens them, a port for each step of a job.
            slurm("node[9-10],big", "2(x2),1", "5", "node9", "1", JOB_ID="1203", STEP_ID="1"),
            ["big:10400", "node10:10400", "node10:10401", "node9:10400", "node9:10401"],
            "node9:10401",
        ),
        (slurm("r1n[08-09]", "1(x2)", "2", "r1n08"), ["r1n08:10000", "r1n09:10000"], "r1n08:10000"),
    ],
)
def test_workers_are_read(say, environment, workers, own):
    say(environment)
    addresses = own_addresses()
    assert list(addresses.workers) == workers
    assert addresses.workers[addresses.index] == own


def test_slurm_keeps_the_devices_that_it_has_given(say, monkeypatch):
    say(slurm("a", "2", "2", "a", "1", JOB_ID="7"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    monkeypatch.setenv("PATH", "")  # no nvidia-smi
    assert own_addresses().index == 1
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert own_addresses().index == 1
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


def test_tf_config_goes_before_slurm(say):
    say({**slurm("node", "1", "1", "node"), **tf_config()})
    assert own_addresses().source == "TF_CONFIG"


# The argument, and what TensorFlow says of it.
@pytest.mark.parametrize(
    ("environment", "argument", "received"),
    [
        ({}, "strategy", "SLURM_PROCID"),
        ({"TF_CONFIG": "{worker"}, "TF_CONFIG", "Expecting property name"),
        ({"TF_CONFIG": "[1]"}, "TF_CONFIG", "None"),
        (tf_config({}), "TF_CONFIG", "'worker'"),
        (tf_config({"worker": "one:1"}), "TF_CONFIG", "'worker' must be a list"),
        (tf_config({"worker": TWO, "ps": ["ps:1"]}, "ps"), "TF_CONFIG", ""),
        (tf_config(kind="evaluator"), "TF_CONFIG", "'evaluator'"),
        (tf_config(index=2), "TF_CONFIG", "index 2"),
        (tf_config(index=None), "TF_CONFIG", "int"),
        (tf_config({"worker": [7]}), "TF_CONFIG", "address 7"),
        ({"SLURM_PROCID": "0"}, "strategy", "SLURM_STEP_NUM_TASKS"),
        (slurm("a", "1", "2", "a"), "strategy", "2 tasks but only 1"),
        (slurm("a[1-x]", "1", "1", "a"), "strategy", '"a[1-x]"'),
        (slurm("a", "1", "1", "b"), "strategy", "'b:10000'"),
    ],
)
def test_what_cannot_be_used_is_named(say, environment, argument, received):
    say(environment)
    with refused(argument, received) as caught:
        own_addresses()
    assert "\n" not in str(caught.value)


def test_two_workers_with_one_address_are_refused(say):
    say(tf_config({"worker": ["one:1", "one:1"]}))
    with refused("cluster", "one:1, one:1", "TF_CONFIG"):
        own_addresses()
