"""Which devices a run trains on."""

import dataclasses
from typing import Annotated

from keras_transformer.fields import Rule, check_fields, one_of, option

_UpToADay = Annotated[float, Rule("be positive, and 86400 at most", lambda x: 0 < x <= 86_400)]


@dataclasses.dataclass(frozen=True)
class DeviceConfig:
    """Where training runs, and whether it is repeatable bit for bit."""

    strategy: Annotated[str, one_of("one_device", "mirrored", "multi_worker")] = option(
        "one_device",
        "one_device: the first GPU, or the CPU. mirrored: all GPUs of this machine. multi_worker: "
        "the devices of all workers that TF_CONFIG or Slurm names.",
    )
    replicas: int | None = option(
        None, "Number of logical CPU devices per worker, to use instead of all GPUs."
    )
    connect_seconds: _UpToADay = option(
        300.0, "multi_worker: how long to wait for all workers at the start."
    )
    deterministic: bool = option(
        False, "Use operations that repeat bit for bit, which are slower on a GPU."
    )

    def __post_init__(self):
        check_fields(self)
