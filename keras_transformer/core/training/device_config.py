"""The devices for a training run."""

import dataclasses
from typing import Annotated

from keras_transformer.support.fields import Rule, check_fields, one_of, option

_UpToADay = Annotated[float, Rule("be positive and at most 86400", lambda x: 0 < x <= 86_400)]


@dataclasses.dataclass(frozen=True)
class DeviceConfig:
    """Where training runs, and whether it is bit-for-bit reproducible."""

    strategy: Annotated[str, one_of("one_device", "mirrored", "multi_worker")] = option(
        "one_device",
        "one_device: the first GPU, or the CPU. mirrored: all GPUs on this machine. multi_worker: "
        "the devices of all workers in TF_CONFIG or Slurm.",
    )
    replicas: int | None = option(
        None,
        "Number of logical CPU devices per worker, instead of all GPUs.",
        is_advanced=True,
    )
    connect_seconds: _UpToADay = option(
        300.0,
        "multi_worker: seconds to wait for all workers at the start.",
        is_advanced=True,
    )
    deterministic: bool = option(
        False, "Use deterministic operations, which are slower on a GPU.", is_advanced=True
    )

    def __post_init__(self):
        check_fields(self)
