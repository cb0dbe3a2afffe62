"""Which processes train together, and which of them this one is: as TF_CONFIG or Slurm says."""

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

from keras_transformer.errors import InputError

# Under Slurm: of a step's first task on a node; the node's next ones have the ports after it.
# Below the range that operating systems take ports from by themselves.
_FIRST_PORT, _PORTS_A_STEP, _STEPS = 10_000, 100, 200


@dataclasses.dataclass(frozen=True)
class Addresses:
    """Fields:
    workers: "host:port" of every worker; the first is the chief's.
    index: this worker's place among them.
    source: what says so, for messages.
    """

    workers: tuple[str, ...]
    index: int
    source: str

    def __post_init__(self):
        for address in self.workers:
            _require_address(self.source, address)
            if self.workers.count(address) > 1:
                rule = "every worker must have an address of its own"
                raise InputError(f"{self.source}: {rule}. Received: {address} twice")

    def name(self, worker: int) -> str:
        """What messages call a worker."""
        return f"worker {worker} ({self.workers[worker]})"

    @property
    def own(self) -> tuple[str, int]:
        """Host and port of this worker."""
        return host_and_port(self.workers[self.index])


def host_and_port(address: str) -> tuple[str, int]:
    """ "host:port", "[host]:port" of IPv6 -> host, port."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def addresses_from(environment: Mapping[str, str]) -> Addresses:
    """Reads the environment variables: TF_CONFIG where it is set, else those of a Slurm step.

    TF_CONFIG is {"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index":
    0}}; a "chief", if cluster has one, comes before the workers.

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
    try:
        content = json.loads(text)
    except ValueError as error:
        raise InputError(f"TF_CONFIG must be JSON. Received: {text!r} ({error})") from None
    cluster, task = _member(content, "cluster"), _member(content, "task")
    workers = []
    for kind in ("chief", "worker"):
        of_kind = cluster.get(kind, [])
        if not isinstance(of_kind, list) or (kind == "chief" and len(of_kind) > 1):
            rule = "a list of one address" if kind == "chief" else "a list of addresses"
            raise InputError(f"TF_CONFIG: cluster.{kind} must be {rule}. Received: {of_kind!r}")
        if task.get("type") == kind:
            index = _index(task.get("index"), len(of_kind), kind) + len(workers)
        workers += of_kind
    if not workers:
        rule = 'cluster.worker must be a list of addresses, as ["host:port", ...]'
        raise InputError(f"TF_CONFIG: {rule}. Received: {cluster!r}")
    for kind in cluster.keys() - {"chief", "worker"}:
        rule = "cluster may have worker and chief alone"
        raise InputError(f"TF_CONFIG: {rule}. Received: {kind}")
    if task.get("type") not in ("chief", "worker"):
        rule = "task.type must be worker or chief"
        raise InputError(f"TF_CONFIG: {rule}. Received: {task.get('type')!r}")
    return Addresses(tuple(workers), index, "TF_CONFIG")


def _member(content: Any, name: str) -> dict[str, Any]:
    member = content.get(name) if isinstance(content, dict) else None
    if not isinstance(member, dict):
        raise InputError(f"TF_CONFIG must have {name}, an object. Received: {content!r}")
    return member


def _index(index: Any, count: int, kind: str) -> int:
    if isinstance(index, str) and index.isdecimal():
        index = int(index)
    if not isinstance(index, int) or not 0 <= index < count:
        rule = f"task.index must be 0 to {count - 1} for the {count} of cluster.{kind}"
        rule = rule if count else f"task.type must be in cluster, which has no {kind}"
        raise InputError(f"TF_CONFIG: {rule}. Received: {index if count else kind!r}")
    return index


def _require_address(source: str, address: Any) -> None:
    match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\s:/]+):(\d{1,5})", str(address))
    if not isinstance(address, str) or not match or not 1 <= int(match[2]) <= 65535:
        rule = 'an address must be "host:port" with a port of 1 to 65535'
        raise InputError(f"{source}: {rule}. Received: {address!r}")


def _of_slurm(environment: Mapping[str, str]) -> Addresses:
    """The tasks of a step, in Slurm's order: by node, and on a node by rank."""

    def read(name: str) -> str:
        value = environment.get(f"SLURM_STEP_{name}") or environment.get(f"SLURM_{name}")
        if value is None:
            rule = f"SLURM_STEP_{name} must be set, as srun does"
            raise InputError(f"Slurm: {rule}. Received: SLURM_PROCID alone")
        return value

    nodes, counts = _nodes(read("NODELIST")), _counts(read("TASKS_PER_NODE"))
    if len(nodes) != len(counts):
        rule = "SLURM_STEP_TASKS_PER_NODE must have a number for every node"
        raise InputError(f"Slurm: {rule}. Received: {len(counts)} for {len(nodes)} nodes")
    step = int(environment.get("SLURM_JOB_ID", "0")) + int(environment.get("SLURM_STEP_ID", "0"))
    first = _FIRST_PORT + _PORTS_A_STEP * (step % _STEPS)
    workers = [
        f"{node}:{first + task}"
        for node, tasks in zip(nodes, counts, strict=True)
        for task in range(tasks)
    ]
    rank = environment["SLURM_PROCID"]
    if not rank.isdecimal() or int(rank) >= len(workers):
        rule = f"SLURM_PROCID must be below the number of tasks, {len(workers)}"
        raise InputError(f"Slurm: {rule}. Received: {rank}")
    return Addresses(tuple(workers), int(rank), "Slurm")


def _nodes(text: str) -> list[str]:
    """Slurm's short form: "gpu[01-03,7],login" -> gpu01 gpu02 gpu03 gpu7 login."""
    nodes = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text):
        ranges = re.search(r"\[([^\]]*)\]", part)
        if ranges is None:
            nodes.append(part)
            continue
        for piece in ranges[1].split(","):
            first, _, last = piece.partition("-")
            if not first.isdecimal() or not (last or first).isdecimal():
                rule = "SLURM_STEP_NODELIST must be names with [ranges] of numbers"
                raise InputError(f"Slurm: {rule}. Received: {text!r}")
            for number in range(int(first), int(last or first) + 1):
                named = part.replace(ranges[0], f"{number:0{len(first)}d}", 1)
                nodes += _nodes(named)
    return nodes


def _counts(text: str) -> list[int]:
    """Slurm's short form: "4(x2),1" -> 4 4 1."""
    counts = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if match is None:
            rule = "SLURM_STEP_TASKS_PER_NODE must be numbers, as 2(x3),1"
            raise InputError(f"Slurm: {rule}. Received: {text!r}")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts
