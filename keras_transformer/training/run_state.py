"""Where a run stands: saved with every checkpoint, restored from it, passed from step to step."""

import dataclasses
import time
from typing import Any

import numpy as np

from keras_transformer.training.step import SUMS


@dataclasses.dataclass(frozen=True)
class RunState:
    """The state of a run, apart from its variables and its position in the data.

    The first seven fields are saved; the others belong to one start of the run.
    """

    step: int = 0
    seconds: float = 0.0  # over all starts
    # What TrainingStep summed since the last point of the curves, over how many steps and seconds.
    sums: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(len(SUMS)))
    summed: int = 0
    sum_seconds: float = 0.0
    best_value: float | None = None  # of the metric that chooses the best checkpoint
    since_best: int = 0  # validations since then

    began: float = dataclasses.field(default_factory=time.monotonic)  # `seconds` count from here
    steps_a_call: int = 1  # of TrainingStep.run
    saved_step: int = 0  # of the newest checkpoint; 0 without one
    saved_seconds: float = 0.0  # `seconds` at that time
    checkpoint_due: bool = False
    stopped: str | None = None  # what ended the run
    metrics: dict[str, float] = dataclasses.field(default_factory=dict)  # made from `sums`
    validation: dict[str, float] = dataclasses.field(default_factory=dict)  # the last one's

    @classmethod
    def restored(cls, entry: dict[str, Any]) -> "RunState":
        """Reads the state from a checkpoint's entry in the index."""
        step, seconds, saved = entry["step"], entry["seconds"], dict(entry.get("progress", {}))
        if "sums" in saved:
            saved["sums"] = np.array(saved["sums"])
        saved |= {"saved_step": step, "saved_seconds": seconds}
        return cls(step, seconds, began=time.monotonic() - seconds, **saved)

    def to_entry(self) -> dict[str, Any]:
        """Returns what the index holds of a checkpoint of this state."""
        names = ("summed", "sum_seconds", "best_value", "since_best")
        saved = {"sums": self.sums.tolist(), **{name: getattr(self, name) for name in names}}
        return {"step": self.step, "seconds": self.seconds, "progress": saved}

    @property
    def skipped_in_row(self) -> int:
        """How many of the last steps were skipped, as their gradients were not finite."""
        return int(self.sums[SUMS.index("skipped_in_row")])
