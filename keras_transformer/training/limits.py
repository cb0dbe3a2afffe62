"""When a training run stops, saves and reports."""

import dataclasses

from keras_transformer.errors import InputError

METRICS = ("loss", "bleu", "f1")  # what the best checkpoint may be chosen by; the loss falls


@dataclasses.dataclass(frozen=True)
class Limits:
    """When to stop, save and report. Steps and minutes count from the first start of the run."""

    train_steps: int = 100_000
    train_minutes: float | None = None
    checkpoint_minutes: float = 10.0
    checkpoint_steps: int | None = None  # so many steps after a checkpoint comes another, if sooner
    keep_checkpoints: int = 20
    log_steps: int = 50  # steps between points of the curves
    max_skipped_steps: int = 100  # in a row, for gradients that are not finite
    best_metric: str = "loss"  # of the validation: what `best` means
    patience: int | None = None  # validations without a better best_metric that end the run
    histograms: bool = False  # of all parameters, at each validation
    profile_steps: tuple[int, int] | None = None  # the first and the last that are profiled

    def __post_init__(self):
        for name in ("train_steps", "keep_checkpoints", "log_steps", "max_skipped_steps"):
            self._require(name, getattr(self, name) >= 1, "be at least 1")
        for name in ("checkpoint_steps", "patience"):
            value = getattr(self, name)
            self._require(name, value is None or value >= 1, "be at least 1")
        for name in ("train_minutes", "checkpoint_minutes"):
            value = getattr(self, name)
            self._require(name, value is None or value > 0, "be positive")
        self._require("best_metric", self.best_metric in METRICS, f"be one of {', '.join(METRICS)}")
        if self.profile_steps is not None:
            ordered = len(self.profile_steps) == 2 and self.profile_steps[0] >= 1
            ordered = ordered and self.profile_steps[0] <= self.profile_steps[1]
            self._require("profile_steps", ordered, "be FIRST,LAST with 1 <= FIRST <= LAST")

    def _require(self, name: str, holds: bool, rule: str) -> None:
        if not holds:
            raise InputError(f"--{name} must {rule}. Received: {getattr(self, name)}")

    def steps_to_next(self, step: int) -> int:
        """How many steps may be taken at once after `step` and miss nothing that is due."""
        every = [self.log_steps, self.checkpoint_steps]
        first, last = self.profile_steps or (1, 0)
        ends = [self.train_steps, first - 1, last]
        to_next = [number - step % number for number in every if number]
        return min(to_next + [end - step for end in ends if end > step])
