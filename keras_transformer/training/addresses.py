"""Which processes train together, and which of them this one is: as TF_CONFIG or Slurm says."""

import dataclasses
import os

import tensorflow as tf

from keras_transformer.errors import InputError, reason, require

# Under Slurm: of a step's first task on a node; the node's next ones have the ports after it.
# Below the range that operating systems take ports from by themselves.
_FIRST_PORT, _PORTS_A_STEP, _STEPS = 10_000, 100, 200


@dataclasses.dataclass(frozen=True)
class Addresses:
    """The workers of a run."""

    workers: tuple[str, ...]  # "host:port" of each; the first is the chief's
    index: int  # this worker's place among them
    source: str  # what says so, for messages

    def name(self, worker: int) -> str:
        """What messages call a worker."""
        return f"worker {worker} ({self.workers[worker]})"


def own_addresses() -> Addresses:
    """Reads the environment: TF_CONFIG as TensorFlow has it, else the variables of a Slurm step.

    Raises:
        InputError: where there is neither, or it does not say who the workers are.
    """
    if os.environ.get("TF_CONFIG"):
        read, source = _of_tf_config, "TF_CONFIG"
        rule = "TF_CONFIG must be JSON: {cluster: {worker: [address, ...]}, task: {type, index}}"
    else:
        read, source = _of_slurm, "Slurm"
        rule = "--strategy=multi_worker must be told who the workers are, by TF_CONFIG or srun"
    try:
        jobs, own = read()
        workers = [*jobs.get("chief", []), *jobs.get("worker", [])]
        index = workers.index(own)
    except (LookupError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"{rule}. Received: {reason(error)}") from None
    rule = f"{source}: every worker must have an address of its own"
    require(len({*workers}) == len(workers), rule, ", ".join(workers))
    return Addresses(tuple(workers), index, source)


def _of_tf_config() -> tuple[dict, str]:
    """The addresses of a cluster, by jobs as TensorFlow has them, and that of this process."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster = resolver.cluster_spec()
    return cluster.as_dict(), cluster.task_address(resolver.task_type, resolver.task_id)


def _of_slurm() -> tuple[dict, str]:
    """The same for a Slurm step. TensorFlow sorts nodes by name, whatever the ranks of tasks are.

    The devices of a task are as Slurm has set them: TensorFlow would ask nvidia-smi for GPUs.
    """
    step = int(os.environ.get("SLURM_JOB_ID", 0)) + int(os.environ.get("SLURM_STEP_ID", 0))
    first = _FIRST_PORT + _PORTS_A_STEP * (step % _STEPS)
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        port_base=first, gpus_per_node=_PORTS_A_STEP, gpus_per_task=1, auto_set_gpu=False
    )
    own = f"{os.environ['SLURMD_NODENAME']}:{first + int(os.environ['SLURM_LOCALID'])}"
    return resolver.cluster_spec().as_dict(), own
