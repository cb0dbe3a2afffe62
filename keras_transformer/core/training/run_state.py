"""The state of a run, the decisions between its steps, and the sums over its last steps.

A checkpoint holds these sums, too, so that the next point of the curves covers all its steps after
an interruption. Minutes count from the end of the first step, as compilation is not training, by a
monotonic clock.
"""

import dataclasses
import math
import time

from keras_transformer.core.training.checkpoint_files import CheckpointRecord, Progress, StepSums
from keras_transformer.core.training.metrics import perplexity_of


@dataclasses.dataclass(frozen=True)
class Decision:
    """Decisions that depend on a clock, a signal or a disk; with several workers, the chief's."""

    seconds: float = 0.0  # see RunState.clock
    steps_per_call: int = 1  # number of steps for the next call of TrainingStep.run
    saved_step: int = 0  # step of the newest checkpoint; 0 without one
    checkpoint_due: bool = False  # whether to validate and write a checkpoint now
    stopped: str | None = None  # what ends the run: a limit of LoopConfig or the name of a signal


@dataclasses.dataclass
class RunState:
    """The state of a run, except for its variables and its position in the data."""

    step: int = 0
    progress: Progress = dataclasses.field(default_factory=Progress)  # saved with checkpoints
    decision: Decision = dataclasses.field(default_factory=Decision)  # the last one
    started: float | None = None  # when `decision.seconds` was 0; None before the first step
    saved_seconds: float = 0.0  # training seconds at the newest checkpoint
    metrics: dict[str, float] = dataclasses.field(default_factory=dict)  # see `summarize`
    validation: dict[str, float | None] = dataclasses.field(default_factory=dict)  # the last one

    @classmethod
    def restored(cls, record: CheckpointRecord) -> "RunState":
        """Restores the state that a run had when it wrote a checkpoint."""
        seconds = record.seconds or 0.0
        return cls(
            step=record.step,
            progress=record.progress or Progress(),
            decision=Decision(seconds=seconds, saved_step=record.step),
            saved_seconds=seconds,
        )

    def clock(self) -> float:
        """Returns the training seconds so far, counted from the end of each start's first step."""
        if self.started is None:
            return self.decision.seconds
        return time.monotonic() - self.started

    def add_steps(self, steps: int, seconds: float, sums: StepSums) -> None:
        """Records steps and their seconds; `sums` include those of earlier steps."""
        self.step += steps
        new_tokens = sums.target_tokens - self.progress.sums.target_tokens
        self.progress = dataclasses.replace(
            self.progress,
            tokens=self.progress.tokens + new_tokens,
            sums=sums,
            summed_steps=self.progress.summed_steps + steps,
            summed_seconds=self.progress.summed_seconds + seconds,
        )
        if self.started is None:
            # The first call compiles, so its time does not predict that of the next ones.
            self.started = time.monotonic() - self.decision.seconds
        else:
            steps_per_call = max(1, int(steps / seconds))
            self.decision = dataclasses.replace(self.decision, steps_per_call=steps_per_call)
        self.metrics = self.summarize()

    def add_validation(self, is_best: bool) -> None:
        """Records a validation result for best_metric."""
        count = 0 if is_best else self.progress.validations_since_best + 1
        self.progress = dataclasses.replace(self.progress, validations_since_best=count)

    def add_checkpoint(self) -> None:
        """Records that a checkpoint of the latest step was written."""
        self.decision = dataclasses.replace(self.decision, saved_step=self.step)
        self.saved_seconds = self.clock()

    def reset_sums(self) -> None:
        """Resets the sums after a point on the curves."""
        sums = StepSums(skipped_in_row=self.progress.sums.skipped_in_row)
        self.progress = dataclasses.replace(
            self.progress, sums=sums, summed_steps=0, summed_seconds=0.0
        )

    @property
    def skipped_in_row(self) -> int:
        """The number of consecutive skipped steps, up to the last one."""
        return int(self.progress.sums.skipped_in_row)

    def summarize(self) -> dict[str, float]:
        """Computes the values of the curves from the summed steps.

        Returns:
            {"loss" (label-smoothed, nats per token), "cross_entropy" and "perplexity" (without
            smoothing), "tokens_per_second" (target tokens without padding), "padding" (its share of
            all positions), "gradient_norm" (the mean over steps), "skipped" (steps)}. If all steps
            were skipped, loss, cross-entropy and perplexity are NaN.
        """
        sums, summed_steps = self.progress.sums, self.progress.summed_steps
        steps = summed_steps - sums.skipped
        all_skipped = summed_steps > 0 and steps == 0
        target_tokens = math.nan if all_skipped else max(sums.target_tokens, 1.0)
        tokens = sums.target_tokens + sums.source_tokens
        positions = max(sums.target_positions + sums.source_positions, 1.0)
        return {
            "loss": sums.smoothed_loss / target_tokens,
            "cross_entropy": sums.loss / target_tokens,
            "perplexity": perplexity_of(sums.loss / target_tokens),
            "tokens_per_second": sums.target_tokens / max(self.progress.summed_seconds, 1e-9),
            "padding": 1 - tokens / positions,
            "gradient_norm": sums.gradient_norm / max(steps, 1),
            "skipped": sums.skipped,
        }
