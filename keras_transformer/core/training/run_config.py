"""How a training run is run: when it stops, saves and reports, and on which devices."""

import dataclasses
from collections.abc import Collection
from typing import Annotated

from keras_transformer.support.errors import require
from keras_transformer.support.fields import (
    Positive,
    Rule,
    Size,
    check_fields,
    one_of,
    option,
    whole_number,
)

METRICS = ("loss", "bleu", "f1")  # that may select the best checkpoint; a lower loss is better


@dataclasses.dataclass(frozen=True)
class LoopConfig:
    """When a run stops, saves and reports; steps and minutes are counted over all its starts.

    Minutes are counted from the end of each start's first step: the time before it is spent on
    reading and compiling, which takes seconds on one machine and minutes on another.
    """

    train_steps: Size = option(100_000, "Optimizer steps, over all starts of the run.")
    train_minutes: Positive | None = option(
        None,
        "Stop after this many minutes of training over all starts of the run, unless train_steps "
        "ends it first. The first step of each start, which compiles, is not counted.",
    )
    checkpoint_minutes: Positive = option(
        10.0, "Minutes between validations, each followed by a checkpoint."
    )
    checkpoint_steps: Size | None = option(
        None,
        "Steps between validations, if reached before checkpoint_minutes.",
        is_advanced=True,
    )
    keep_checkpoints: Size = option(
        20,
        "Number of latest checkpoints to keep, besides the best one.",
        is_advanced=True,
    )
    log_steps: Size = option(50, "Steps between points on the curves.", is_advanced=True)
    max_skipped_steps: Size = option(
        100,
        "Abort after this many consecutive steps with non-finite gradients.",
        is_advanced=True,
    )
    best_metric: Annotated[str, one_of(*METRICS)] = option(
        "loss",
        "Validation metric that selects the best checkpoint.",
        is_advanced=True,
    )
    patience: Size | None = option(
        None, "Stop after this many consecutive validations without a better best_metric."
    )
    histograms: bool = option(
        False, "Write histograms of all parameters at each validation.", is_advanced=True
    )
    profile_steps: tuple[int, int] | None = option(
        None,
        "FIRST,LAST: profile these steps for TensorBoard.",
        is_advanced=True,
    )
    xla: Annotated[str, one_of("auto", "on", "off")] = option(
        "auto",
        "Whether XLA compiles the training step: on, off, or auto, which is on with a GPU.",
        is_advanced=True,
    )

    def __post_init__(self):
        if self.profile_steps is not None:
            steps = self.profile_steps
            # A caller may pass strings, as a command line does.
            listed = steps if isinstance(steps, list | tuple) else [steps]
            numbers = [whole_number(str(step)) for step in listed]
            all_numbers = len(numbers) == 2 and None not in numbers
            rule = "must be FIRST,LAST with 1 <= FIRST <= LAST"
            received = ",".join(map(str, listed))
            require(all_numbers and 1 <= numbers[0] <= numbers[1], "profile_steps", rule, received)
            object.__setattr__(self, "profile_steps", tuple(numbers))
        check_fields(self)

    def check_measured(self, measured: Collection[str]) -> None:
        """Raises InputError if validation does not measure best_metric.

        Args:
            measured: the names of the metrics that a validation measures.
        """
        chosen = self.patience is not None or self.best_metric != "loss"
        named = ", ".join(measured) or "nothing, without a validation split"
        rule = f"must be measured in validation (measured here: {named})"
        require(not chosen or self.best_metric in measured, "best_metric", rule, self.best_metric)

    def expected_steps(self, step: int, seconds: float) -> int:
        """Returns the expected number of steps in the run, at its mean speed so far.

        Args:
            step: number of steps taken.
            seconds: the time that they took.
        """
        if self.train_minutes is None or seconds == 0:
            return self.train_steps
        in_all_minutes = step * self.train_minutes * 60 / seconds  # may be infinite
        return round(min(self.train_steps, max(step, in_all_minutes)))

    def is_estimate(self, seconds: float) -> bool:
        """Whether expected_steps is close to the run's length.

        With train_minutes, the speed must be known, from a fiftieth of the time.

        Args:
            seconds: the time that all steps so far took.
        """
        return self.train_minutes is None or seconds >= self.train_minutes * 60 / 50

    def steps_to_next_event(self, step: int) -> int:
        """Returns how many steps after `step` the loop can take before its next event."""
        next_events = [self.train_steps, step + self.log_steps - step % self.log_steps]
        if self.checkpoint_steps is not None:
            next_events.append(step + self.checkpoint_steps - step % self.checkpoint_steps)
        if self.profile_steps is not None:
            first, last = self.profile_steps
            next_events.append(first - 1)  # the profile begins after this step
            next_events.append(last)
        return min(event - step for event in next_events if event > step)

    def is_profiled(self, step: int) -> bool:
        """Whether a step, counted from 1, belongs to the profile."""
        if self.profile_steps is None:
            return False
        first, last = self.profile_steps
        return first <= step <= last


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
