"""The addresses of the workers in a training run, from TF_CONFIG or Slurm.

SlurmClusterResolver sorts node10 before node9, while Slurm ranks tasks by number. So a worker looks
up its own node and local number in TensorFlow's list, and ignores SLURM_PROCID.
"""

import dataclasses
import os

import tensorflow as tf

from keras_transformer.support.errors import InputError, reason, require

# Under Slurm, a step's first task on a node uses the step's first port, and the next tasks on the
# node use the following ports. All are below the range of ephemeral ports.
_FIRST_PORT = 10_000
_PORTS_PER_STEP = 100
_STEPS = 200  # steps that do not share ports


@dataclasses.dataclass(frozen=True)
class Addresses:
    """The workers of a run."""

    workers: tuple[str, ...]  # "host:port" of each; the first is the chief's
    index: int  # this worker's place among them
    source: str  # their source, for messages: "TF_CONFIG" or "Slurm"

    def name(self, worker: int) -> str:
        """Returns a worker's name in messages, by its number."""
        return f"worker {worker} ({self.workers[worker]})"


def own_addresses() -> Addresses:
    """Reads the workers from the environment: TF_CONFIG, or else the variables of a Slurm step.

    Raises:
        InputError: if there is neither, or it does not list the workers.
    """
    if os.environ.get("TF_CONFIG"):
        read, source, argument = _read_tf_config, "TF_CONFIG", "TF_CONFIG"
        rule = "must be JSON: {cluster: {worker: [address, ...]}, task: {type, index}}"
    else:
        read, source, argument = _read_slurm, "Slurm", "strategy"
        rule = "must not be multi_worker unless TF_CONFIG or srun lists the workers"
    try:
        jobs, own = read()
        workers = [*jobs.get("chief", []), *jobs.get("worker", [])]
        index = workers.index(own)
    except (LookupError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(argument, rule, reason(error)) from None
    rule = "must give every worker a unique address"
    require(len({*workers}) == len(workers), "cluster", rule, ", ".join(workers), source)
    return Addresses(tuple(workers), index, source)


def _read_tf_config() -> tuple[dict, str]:
    """Returns the addresses of all processes by job, as in TensorFlow, and this one's."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster = resolver.cluster_spec()
    return cluster.as_dict(), cluster.task_address(resolver.task_type, resolver.task_id)


def _read_slurm() -> tuple[dict, str]:
    """Returns the same for a Slurm step, sorted by node rather than by task rank.

    Devices stay as Slurm sets them for each task: TensorFlow would query nvidia-smi for GPUs.
    """
    step = int(os.environ.get("SLURM_JOB_ID", 0)) + int(os.environ.get("SLURM_STEP_ID", 0))
    first = _FIRST_PORT + _PORTS_PER_STEP * (step % _STEPS)
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        port_base=first, gpus_per_node=_PORTS_PER_STEP, gpus_per_task=1, auto_set_gpu=False
    )
    own = f"{os.environ['SLURMD_NODENAME']}:{first + int(os.environ['SLURM_LOCALID'])}"
    return resolver.cluster_spec().as_dict(), own
