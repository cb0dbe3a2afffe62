"""When a training run stops, saves and reports, and whether XLA compiles its steps."""

import dataclasses
from collections.abc import Collection

from keras_transformer.errors import require

METRICS = ("loss", "bleu", "f1")  # that may choose the best checkpoint; a smaller loss is better


@dataclasses.dataclass(frozen=True)
class LoopConfig:
    """Steps and minutes are counted from the first start of the run, over all its starts."""

    train_steps: int = 100_000
    train_minutes: float | None = None  # stop after this time, if it is over before train_steps
    checkpoint_minutes: float = 10.0  # between validations, each followed by a checkpoint
    checkpoint_steps: int | None = None  # steps between them, if these are over first
    keep_checkpoints: int = 20
    log_steps: int = 50  # steps between points of the curves
    max_skipped_steps: int = 100  # stop after this many steps in a row without finite gradients
    best_metric: str = "loss"  # the validation metric that chooses the best checkpoint
    patience: int | None = None  # stop after this many validations without a better best_metric
    histograms: bool = False  # write histograms of all parameters at each validation
    profile_steps: tuple[int, int] | None = None  # the first and the last step to profile
    xla: str = "auto"  # compile steps: "on", "off", or "auto", which is on where a GPU is

    def __post_init__(self):
        counts = ("train_steps", "keep_checkpoints", "log_steps", "max_skipped_steps")
        for name in (*counts, "checkpoint_steps", "patience"):
            value = getattr(self, name)
            self._require(name, value is None or value >= 1, "be at least 1")
        for name in ("train_minutes", "checkpoint_minutes"):
            value = getattr(self, name)
            self._require(name, value is None or value > 0, "be positive")
        for name, choices in (("best_metric", METRICS), ("xla", ("auto", "on", "off"))):
            self._require(name, getattr(self, name) in choices, f"be one of {', '.join(choices)}")
        if self.profile_steps is not None:
            numbers = [int(step) for step in self.profile_steps if str(step).isdecimal()]
            first, last = numbers if len(self.profile_steps) == len(numbers) == 2 else (0, 0)
            rule = "--profile_steps must be FIRST,LAST with 1 <= FIRST <= LAST"
            require(1 <= first <= last, rule, ",".join(map(str, self.profile_steps)))
            object.__setattr__(self, "profile_steps", (first, last))

    def _require(self, name: str, holds: bool, rule: str) -> None:
        require(holds, f"--{name} must {rule}", getattr(self, name))

    def check_measured(self, measured: Collection[str]) -> None:
        """Raises InputError if best_metric was chosen but validation does not measure it."""
        chosen = self.patience is not None or self.best_metric != "loss"
        rule = f"be measured in validation (measured here: {', '.join(measured) or 'nothing'})"
        self._require("best_metric", not chosen or self.best_metric in measured, rule)

    def steps_to_next(self, step: int) -> int:
        """How many steps can be taken in one call after `step` without passing an event."""
        every = [self.log_steps, self.checkpoint_steps]
        first, last = self.profile_steps or (1, 0)
        ends = [self.train_steps, first - 1, last]
        to_next = [number - step % number for number in every if number]
        return min(to_next + [end - step for end in ends if end > step])
