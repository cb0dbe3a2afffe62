"""What a set of weights is called."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class CheckpointInfo:
    """Which weights a model has."""

    checkpoint: str  # a name in the model directory, a path, or what was averaged: "average:5"
    step: int | None = None  # of the checkpoint, or of the last one of an average; None if unknown
    averaged: int | None = None  # the number of checkpoints that the weights are the mean of
    validation_loss: float | None = None  # nats per token; None of an average, or if not measured
    adapter_scale: float | None = None  # of what an adapter adds to the weights, if not 1

    def to_json(self) -> dict[str, Any]:
        """The fields that are not None, as JSON values."""
        values = dataclasses.asdict(self)
        return {name: value for name, value in values.items() if value is not None}
