"""Which processes train together, and which of them this one is: as TF_CONFIG or Slurm says.

TensorFlow's resolvers are not used: they can only be imported with all of TensorFlow, check
nothing, and the one for Slurm needs nvidia-smi and sorts node10 before node9.
"""

import dataclasses
import itertools
import json
import re
from collections.abc import Mapping

from keras_transformer.errors import InputError, require

# Under Slurm: of a step's first task on a node; the node's next ones have the ports after it.
# Below the range that operating systems take ports from by themselves.
_FIRST_PORT, _PORTS_A_STEP, _STEPS = 10_000, 100, 200


@dataclasses.dataclass(frozen=True)
class Addresses:
    """The workers of a run."""

    workers: tuple[str, ...]  # "host:port" of each; the first is the chief's
    index: int  # this worker's place among them
    source: str  # what says so, for messages

    def __post_init__(self):
        for address in self.workers:
            match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\s:/]+):(\d{1,5})", str(address))
            rule = f'{self.source}: an address must be "host:port" with a port of 1 to 65535'
            require(match is not None and 1 <= int(match[2]) <= 65535, rule, repr(address))
            rule = f"{self.source}: every worker must have an address of its own"
            require(self.workers.count(address) == 1, rule, f"{address} twice")

    def name(self, worker: int) -> str:
        """What messages call a worker."""
        return f"worker {worker} ({self.workers[worker]})"

    @property
    def port(self) -> int:
        """The port of this worker."""
        return int(self.workers[self.index].rpartition(":")[2])


def addresses_from(environment: Mapping[str, str]) -> Addresses:
    """Reads environment variables: TF_CONFIG as TensorFlow has it, else those of a Slurm step.

    Raises:
        InputError: where there is neither, or it does not say who the workers are.
    """
    if environment.get("TF_CONFIG"):
        return _of_tf_config(environment["TF_CONFIG"])
    if "SLURM_PROCID" in environment:
        return _of_slurm(environment)
    raise InputError(
        "--strategy=multi_worker must be told who the workers are, by TF_CONFIG or by Slurm's srun."
        " Received: neither TF_CONFIG nor SLURM_PROCID in the environment"
    )


def _of_tf_config(text: str) -> Addresses:
    """{"cluster": {"chief": [address], "worker": [...]}, "task": {"type": kind, "index": n}}."""
    try:
        content = json.loads(text)
    except ValueError as error:
        raise InputError(f"TF_CONFIG must be JSON. Received: {text!r} ({error})") from None
    for name in ("cluster", "task"):
        usable = isinstance(content, dict) and isinstance(content.get(name), dict)
        require(usable, f"TF_CONFIG must have {name}, an object", repr(content))
    cluster, task = content["cluster"], content["task"]
    kind, index = task.get("type"), task.get("index")
    for other in cluster.keys() - {"chief", "worker"}:
        raise InputError(f"TF_CONFIG: cluster may have worker and chief alone. Received: {other}")
    chiefs, workers = cluster.get("chief", []), cluster.get("worker", [])
    rule = "TF_CONFIG: cluster.chief must be a list of one address"
    require(isinstance(chiefs, list) and len(chiefs) <= 1, rule, repr(chiefs))
    rule = "TF_CONFIG: cluster.worker must be a list of addresses"
    require(isinstance(workers, list), rule, repr(workers))
    rule = "TF_CONFIG: task.type must be worker or chief"
    require(kind in ("chief", "worker"), rule, repr(kind))
    of_kind = chiefs if kind == "chief" else workers
    require(bool(of_kind), f"TF_CONFIG: task.type must be in cluster, which has no {kind}", kind)
    rule = f"task.index must be 0 to {len(of_kind) - 1} for the {len(of_kind)} of cluster.{kind}"
    usable = str(index).isdecimal() and int(index) < len(of_kind)
    require(usable, f"TF_CONFIG: {rule}", index)
    own = int(index) + (len(chiefs) if kind == "worker" else 0)
    return Addresses((*chiefs, *workers), own, "TF_CONFIG")


def _of_slurm(environment: Mapping[str, str]) -> Addresses:
    """The tasks of a step, in Slurm's order: by node, and on a node by rank."""

    def read(name: str) -> str:
        value = environment.get(f"SLURM_STEP_{name}") or environment.get(f"SLURM_{name}")
        rule = f"Slurm: SLURM_STEP_{name} must be set, as srun does"
        require(value is not None, rule, "SLURM_PROCID alone")
        return value

    nodes, counts = _nodes(read("NODELIST")), _counts(read("TASKS_PER_NODE"))
    rule = "Slurm: SLURM_STEP_TASKS_PER_NODE must have a number for every node"
    require(len(nodes) == len(counts), rule, f"{len(counts)} for {len(nodes)} nodes")
    step = int(environment.get("SLURM_JOB_ID", "0")) + int(environment.get("SLURM_STEP_ID", "0"))
    first = _FIRST_PORT + _PORTS_A_STEP * (step % _STEPS)
    on_nodes = zip(nodes, counts, strict=True)
    workers = [f"{node}:{first + task}" for node, tasks in on_nodes for task in range(tasks)]
    rank = environment["SLURM_PROCID"]
    rule = f"Slurm: SLURM_PROCID must be below the number of tasks, {len(workers)}"
    require(rank.isdecimal() and int(rank) < len(workers), rule, rank)
    return Addresses(tuple(workers), int(rank), "Slurm")


def _nodes(text: str) -> list[str]:
    """Slurm's short form: "gpu[01-03,7],login" -> gpu01 gpu02 gpu03 gpu7 login."""
    rule = "Slurm: SLURM_STEP_NODELIST must be names with [ranges] of numbers"
    nodes = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text):
        choices = []  # for each piece of the name: itself, or the numbers of its ranges
        for name, ranges in re.findall(r"([^\[]+)|\[([^\]]*)\]", part):
            numbers = [name] if name else []
            for piece in ranges.split(",") if ranges else []:
                match = re.fullmatch(r"(\d+)(?:-(\d+))?", piece)
                require(match is not None, rule, repr(text))
                first, last = match[1], match[2] or match[1]
                numbers += [f"{n:0{len(first)}d}" for n in range(int(first), int(last) + 1)]
            choices.append(numbers)
        nodes += map("".join, itertools.product(*choices))
    return nodes


def _counts(text: str) -> list[int]:
    """Slurm's short form: "4(x2),1" -> 4 4 1."""
    matches = [re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part) for part in text.split(",")]
    rule = "Slurm: SLURM_STEP_TASKS_PER_NODE must be numbers, as 2(x3),1"
    require(all(matches), rule, repr(text))
    return [int(match[1]) for match in matches for _ in range(int(match[2] or 1))]
