"""The addresses of the processes that train together, from TF_CONFIG or Slurm."""

import dataclasses
import os

import tensorflow as tf

from keras_transformer.errors import InputError, reason, require

# Under Slurm, the first task of a job step on a node has the first port of that step, and the next
# tasks on the node have the ports after it. All are below the range that operating systems take
# ports from by themselves.
_FIRST_PORT = 10_000
_PORTS_PER_STEP = 100
_STEPS = 200  # that do not share ports


@dataclasses.dataclass(frozen=True)
class Addresses:
    """The workers of a run."""

    workers: tuple[str, ...]  # "host:port" of each; the first is the chief's
    index: int  # this worker's place among them
    source: str  # where they were read, for messages: "TF_CONFIG" or "Slurm"

    def name(self, worker: int) -> str:
        """The name of a worker in messages, by its number."""
        return f"worker {worker} ({self.workers[worker]})"


def own_addresses() -> Addresses:
    """Reads the workers from the environment: TF_CONFIG, or else the variables of a Slurm step.

    Raises:
        InputError: where there is neither, or it does not say who the workers are.
    """
    if os.environ.get("TF_CONFIG"):
        read, source, argument = _read_tf_config, "TF_CONFIG", "TF_CONFIG"
        rule = "must be JSON: {cluster: {worker: [address, ...]}, task: {type, index}}"
    else:
        read, source, argument = _read_slurm, "Slurm", "strategy"
        rule = "must not be multi_worker unless TF_CONFIG or srun says who the workers are"
    try:
        jobs, own = read()
        workers = [*jobs.get("chief", []), *jobs.get("worker", [])]
        index = workers.index(own)
    except (LookupError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(argument, rule, reason(error)) from None
    rule = "must give every worker an address that no other has"
    require(len({*workers}) == len(workers), "cluster", rule, ", ".join(workers), source)
    return Addresses(tuple(workers), index, source)


def _read_tf_config() -> tuple[dict, str]:
    """Returns the addresses of all processes by job, as TensorFlow has them, and this one's."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster = resolver.cluster_spec()
    return cluster.as_dict(), cluster.task_address(resolver.task_type, resolver.task_id)


def _read_slurm() -> tuple[dict, str]:
    """Returns the same for a Slurm step, sorted by nodes and not by the ranks of tasks.

    Devices stay as Slurm has set them for each task: TensorFlow would ask nvidia-smi for GPUs.
    """
    step = int(os.environ.get("SLURM_JOB_ID", 0)) + int(os.environ.get("SLURM_STEP_ID", 0))
    first = _FIRST_PORT + _PORTS_PER_STEP * (step % _STEPS)
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        port_base=first, gpus_per_node=_PORTS_PER_STEP, gpus_per_task=1, auto_set_gpu=False
    )
    own = f"{os.environ['SLURMD_NODENAME']}:{first + int(os.environ['SLURM_LOCALID'])}"
    return resolver.cluster_spec().as_dict(), own
