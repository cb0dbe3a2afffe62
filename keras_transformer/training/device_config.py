"""Which devices a run trains on."""

import dataclasses
from typing import Annotated

from keras_transformer.fields import Rule, check_fields, one_of

STRATEGIES = ("one_device", "mirrored", "multi_worker")
_UpToADay = Annotated[float, Rule("be positive, and 86400 at most", lambda x: 0 < x <= 86_400)]


@dataclasses.dataclass(frozen=True)
class DeviceConfig:
    """Where training runs, and whether it is repeatable bit for bit."""

    # one_device: the first GPU, or the CPU. mirrored: all GPUs of this machine. multi_worker: the
    # devices of all workers that TF_CONFIG or Slurm names.
    strategy: Annotated[str, one_of(*STRATEGIES)] = "one_device"
    replicas: int | None = None  # logical CPU devices per worker, to use instead of all GPUs
    connect_seconds: _UpToADay = 300.0  # how long workers wait for one another at the start
    deterministic: bool = False  # operations that repeat bit for bit; slower on a GPU

    def __post_init__(self):
        check_fields(self)
