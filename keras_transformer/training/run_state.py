"""Where a run stands, and what its last steps add up to."""

import dataclasses
import math
import time
from typing import Any

import numpy as np

from keras_transformer.errors import require
from keras_transformer.training.metrics import perplexity_of

# What TrainingStep sums over steps, in this order. Of a step that is skipped, as its gradients are
# not finite, only that is counted.
SUMS = (
    "smoothed_loss",  # over non-padding target tokens
    "loss",  # the same without smoothing
    "target_tokens",  # without padding
    "source_tokens",
    "target_positions",  # with padding
    "source_positions",
    "gradient_norm",  # of the mean loss over the global batch; summed over steps
    "skipped",  # steps
    "skipped_in_row",  # no sum: the last steps, back to one that was not skipped
)
# What a checkpoint's entry holds under "progress".
_SAVED = ("sums", "summed", "sum_seconds", "since_best")


@dataclasses.dataclass
class RunState:
    """The state of a run, apart from its variables and its position in the data."""

    # Saved with every checkpoint:
    step: int = 0
    seconds: float = 0.0  # over all starts
    # What was summed since the last point of the curves, over how many steps and seconds.
    sums: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(len(SUMS)))
    summed: int = 0
    sum_seconds: float = 0.0
    since_best: int = 0  # validations since the best one
    # Of one start of the run:
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
        """Makes the state from a checkpoint's entry in the index."""
        seconds, saved = entry.get("seconds") or 0.0, entry.get("progress") or {}
        sums = saved.get("sums", SUMS)
        require(len(sums) == len(SUMS), f"progress.sums must be {len(SUMS)} numbers", len(sums))
        state = cls(entry["step"], seconds, began=time.monotonic() - seconds)
        state.saved_step, state.saved_seconds = state.step, state.seconds
        for name in saved.keys() & _SAVED:
            setattr(state, name, np.array(saved[name]) if name == "sums" else saved[name])
        return state

    def to_entry(self) -> dict[str, Any]:
        """Returns what the index holds of a checkpoint of this state."""
        progress = {name: getattr(self, name) for name in _SAVED} | {"sums": self.sums.tolist()}
        return {"step": self.step, "seconds": self.seconds, "progress": progress}

    @property
    def skipped_in_row(self) -> int:
        return int(self.sums[-1])

    def summarize(self) -> dict[str, float]:
        """Turns the sums into scalars; where all steps were skipped, loss and perplexity are NaN.

        The loss is smoothed, cross-entropy and perplexity are not. Tokens per second are target
        tokens without padding; `padding` is a share of all positions, `gradient_norm` a mean.
        """
        total = dict(zip(SUMS, self.sums.tolist(), strict=True))
        made = self.summed - total["skipped"]
        tokens = max(total["target_tokens"], 1.0) if made or not self.summed else math.nan
        positions = max(total["target_positions"] + total["source_positions"], 1.0)
        return {
            "loss": total["smoothed_loss"] / tokens,
            "cross_entropy": total["loss"] / tokens,
            "perplexity": perplexity_of(total["loss"] / tokens),
            "tokens_per_second": total["target_tokens"] / max(self.sum_seconds, 1e-9),
            "padding": 1 - (total["target_tokens"] + total["source_tokens"]) / positions,
            "gradient_norm": total["gradient_norm"] / max(made, 1),
            "skipped": total["skipped"],
        }
