"""Who the workers are: TF_CONFIG and Slurm's variables, as they come and as they should not."""

import json

import pytest

from keras_transformer.errors import InputError
from keras_transformer.training.addresses import addresses_from

TWO = ["one:2000", "two:2000"]


def tf_config(cluster=None, kind="worker", index=0):
    cluster = {"worker": TWO} if cluster is None else cluster
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


def slurm(nodes, tasks, rank, **more):
    names = {"STEP_NODELIST": nodes, "STEP_TASKS_PER_NODE": tasks, "PROCID": rank, **more}
    return {f"SLURM_{name}": value for name, value in names.items()}


@pytest.mark.parametrize(
    ("environment", "workers", "index"),
    [
        (tf_config(index=1), TWO, 1),
        (tf_config(index="1"), TWO, 1),
        (tf_config({"chief": ["zero:1"], "worker": TWO}, index=1), ["zero:1", *TWO], 2),
        (tf_config({"chief": ["zero:1"], "worker": TWO}, "chief"), ["zero:1", *TWO], 0),
        (tf_config({"worker": ["[::1]:80"]}), ["[::1]:80"], 0),
        (slurm("node9", "1", "0"), ["node9:10000"], 0),
        (
            # Slurm sorts by number: node9 has rank 0, wherever the alphabet puts it.
            slurm("node[9-10],big", "2(x2),1", "3", JOB_ID="1203", STEP_ID="1"),
            ["node9:10400", "node9:10401", "node10:10400", "node10:10401", "big:10400"],
            3,
        ),
        (
            slurm("r[1,3]n[08-10]", "1(x6)", "5"),
            [f"r{r}n{n}:10000" for r in "13" for n in ("08", "09", "10")],
            5,
        ),
    ],
)
def test_workers_are_read(environment, workers, index):
    addresses = addresses_from(environment)
    assert list(addresses.workers) == workers
    assert addresses.index == index


def test_tf_config_goes_before_slurm():
    assert addresses_from({**tf_config(), **slurm("node", "1", "0")}).source == "TF_CONFIG"


def test_own_port():
    assert addresses_from(tf_config(index=1)).port == 2000
    assert addresses_from(tf_config({"worker": ["[::1]:80"]})).port == 80


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "--strategy=multi_worker must be told who the workers are, by TF_CONFIG or by Slurm"),
        ({"TF_CONFIG": "{worker"}, r"TF_CONFIG must be JSON. Received: '{worker' \(Expecting"),
        ({"TF_CONFIG": "[1]"}, r"TF_CONFIG must have cluster, an object. Received: \[1\]"),
        ({"TF_CONFIG": '{"cluster": {}}'}, "TF_CONFIG must have task, an object"),
        (tf_config({}), r"TF_CONFIG: task.type must be in cluster, which has no worker"),
        (tf_config({"worker": "one:1"}), "cluster.worker must be a list of addresses"),
        (tf_config({"chief": TWO}), "cluster.chief must be a list of one address"),
        (tf_config({"worker": TWO, "ps": TWO}), "worker and chief alone. Received: ps"),
        (tf_config(kind="evaluator"), "task.type must be worker or chief. Received: 'evaluator'"),
        (tf_config(kind="chief"), "task.type must be in cluster, which has no chief"),
        (tf_config(index=2), "task.index must be 0 to 1 for the 2 of cluster.worker. Received: 2"),
        (tf_config(index=-1), "task.index must be 0 to 1 .* Received: -1"),
        (tf_config(index=None), "task.index must be 0 to 1 .* Received: None"),
        (tf_config({"worker": ["one:1", "one:1"]}), "an address of its own. Received: one:1 twice"),
        (tf_config({"worker": ["one"]}), "an address must be \"host:port\".* Received: 'one'"),
        (tf_config({"worker": ["one:70000"]}), "a port of 1 to 65535. Received: 'one:70000'"),
        (tf_config({"worker": [7]}), 'an address must be "host:port".* Received: 7'),
        ({"SLURM_PROCID": "0"}, "Slurm: SLURM_STEP_NODELIST must be set"),
        (slurm("a,b", "1", "0"), "a number for every node. Received: 1 for 2 nodes"),
        (slurm("a[1-x]", "1", "0"), r"SLURM_STEP_NODELIST must be .* Received: 'a\[1-x\]'"),
        (slurm("a", "1(2)", "0"), r"SLURM_STEP_TASKS_PER_NODE must be .* Received: '1\(2\)'"),
        (slurm("a", "2", "2"), "SLURM_PROCID must be below the number of tasks, 2. Received: 2"),
    ],
)
def test_what_cannot_be_used_is_named(environment, message):
    with pytest.raises(InputError, match=message) as caught:
        addresses_from(environment)
    assert "\n" not in str(caught.value)
