"""Where a run stands, what is decided about it between steps, and what its last steps add up to."""

import dataclasses
import math
import time

from keras_transformer.training.checkpoint_record import CheckpointRecord, Progress
from keras_transformer.training.metrics import perplexity_of
from keras_transformer.training.step_sums import StepSums


@dataclasses.dataclass(frozen=True)
class Decision:
    """What depends on a clock, a signal or a disk. The chief of several workers decides for all."""

    seconds: float  # see RunState.clock
    steps_per_call: int  # how many steps the next call of TrainingStep.run may take
    saved_step: int  # the step of the newest checkpoint; 0 without one
    checkpoint_due: bool  # whether to validate and to write a checkpoint now
    stopped: str | None  # what ends the run now: a limit of LoopConfig or the name of a signal


@dataclasses.dataclass
class RunState:
    """The state of a run, apart from its variables and its position in the data."""

    # Saved with every checkpoint:
    step: int = 0
    seconds: float = 0.0  # see `clock`
    sums: StepSums = dataclasses.field(default_factory=StepSums)  # since the last point of curves
    summed_steps: int = 0  # the steps that were summed
    summed_seconds: float = 0.0  # the time that these steps took
    validations_since_best: int = 0  # validations without a better best_metric
    # Of this start of the run alone:
    started: float | None = None  # when `seconds` were 0; None before the first step
    steps_per_call: int = 1
    saved_step: int = 0  # the step of the newest checkpoint; 0 without one
    saved_seconds: float = 0.0  # `seconds` when it was written
    checkpoint_due: bool = False
    stopped: str | None = None  # what ended the run
    metrics: dict[str, float] = dataclasses.field(default_factory=dict)  # see `summarize`
    validation: dict[str, float | None] = dataclasses.field(default_factory=dict)  # the last one

    @classmethod
    def restored(cls, record: CheckpointRecord) -> "RunState":
        """Makes the state that a run had when it wrote a checkpoint."""
        seconds = record.seconds or 0.0
        progress = record.progress or Progress()
        return cls(
            step=record.step,
            seconds=seconds,
            sums=progress.sums,
            summed_steps=progress.summed_steps,
            summed_seconds=progress.summed_seconds,
            validations_since_best=progress.validations_since_best,
            saved_step=record.step,
            saved_seconds=seconds,
        )

    def clock(self) -> float:
        """Seconds of training so far, of each start of the run from the end of its first step."""
        return self.seconds if self.started is None else time.monotonic() - self.started

    def progress(self) -> Progress:
        """What a checkpoint keeps of this state, beside step and seconds."""
        return Progress(
            sums=self.sums,
            summed_steps=self.summed_steps,
            summed_seconds=self.summed_seconds,
            validations_since_best=self.validations_since_best,
        )

    def follow(self, decision: Decision) -> None:
        """Takes over what was decided."""
        self.seconds = decision.seconds
        self.steps_per_call = decision.steps_per_call
        self.saved_step = decision.saved_step
        self.checkpoint_due = decision.checkpoint_due
        self.stopped = decision.stopped

    def add_steps(self, steps: int, seconds: float, sums: StepSums) -> None:
        """Counts steps that were taken in some seconds; `sums` include those of earlier steps."""
        self.step += steps
        self.sums = sums
        self.summed_steps += steps
        self.summed_seconds += seconds
        if self.started is None:
            # The first call compiles: its time says nothing about the next ones. It is not counted.
            self.started = time.monotonic() - self.seconds
        else:
            self.steps_per_call = max(1, int(steps / seconds))
        self.metrics = self.summarize()

    def reset_sums(self) -> None:
        """Begins new sums, after a point of the curves."""
        self.sums = StepSums(skipped_in_row=self.sums.skipped_in_row)
        self.summed_steps = 0
        self.summed_seconds = 0.0

    @property
    def skipped_in_row(self) -> int:
        """How many of the latest steps were skipped, up to the last."""
        return int(self.sums.skipped_in_row)

    def summarize(self) -> dict[str, float]:
        """Computes what the curves show of the summed steps.

        Returns:
            {"loss" (label-smoothed, nats per token), "cross_entropy" and "perplexity" (without
            smoothing), "tokens_per_second" (target tokens without padding), "padding" (its share of
            all positions), "gradient_norm" (the mean over steps), "skipped" (steps)}. Where all
            steps were skipped, loss, cross-entropy and perplexity are NaN.
        """
        sums = self.sums
        steps = self.summed_steps - sums.skipped
        all_skipped = self.summed_steps > 0 and steps == 0
        target_tokens = math.nan if all_skipped else max(sums.target_tokens, 1.0)
        tokens = sums.target_tokens + sums.source_tokens
        positions = max(sums.target_positions + sums.source_positions, 1.0)
        return {
            "loss": sums.smoothed_loss / target_tokens,
            "cross_entropy": sums.loss / target_tokens,
            "perplexity": perplexity_of(sums.loss / target_tokens),
            "tokens_per_second": sums.target_tokens / max(self.summed_seconds, 1e-9),
            "padding": 1 - tokens / positions,
            "gradient_norm": sums.gradient_norm / max(steps, 1),
            "skipped": sums.skipped,
        }
