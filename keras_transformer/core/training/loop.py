"""The training loop: optimizer steps, curves, validations and checkpoints until the run is over."""

import dataclasses
import math
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf
from absl import logging

from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.training.adapters import saved_variables
from keras_transformer.core.training.checkpoint_files import (
    CheckpointRecord,
    StepSums,
    checkpoint_name,
)
from keras_transformer.core.training.checkpoints import CheckpointStore
from keras_transformer.core.training.curves import Curves, SilentCurves, finite_or_none
from keras_transformer.core.training.data import TrainingData, validate
from keras_transformer.core.training.hardly_trained import hardly_trained
from keras_transformer.core.training.interruption import Interruption, in_thread, listening
from keras_transformer.core.training.run_config import LoopConfig
from keras_transformer.core.training.run_state import Decision, RunState
from keras_transformer.core.training.schedule import LONGEST_WARMUP
from keras_transformer.core.training.step import TrainingStep, XlaTrainingStep, as_tensors
from keras_transformer.core.training.workers.lone_worker import LoneWorker
from keras_transformer.support.errors import InputError
from keras_transformer.support.xla_cache import compiled

if TYPE_CHECKING:  # needed only with several workers
    from keras_transformer.core.training.workers.cluster import Cluster

# A run with fewer steps and fewer passes over its data does not train a new model.
FEW_STEPS = 500
FEW_PASSES = 3
LIMITS = ("patience", "train_minutes", "train_steps")  # what ends a run, apart from signals


def _do_nothing(*_: Any) -> None:
    """For models that keep their initial weights, or directories that need no description."""


def train(
    model_config: TransformerConfig,
    training_config: TrainingConfig,
    data: TrainingData,
    model_dir: str | Path,
    config: LoopConfig,
    strategy: tf.distribute.Strategy,
    cluster: "Cluster | LoneWorker | None" = None,
    initialize: Callable[[keras.Model], None] = _do_nothing,
    describe: Callable[[], None] = _do_nothing,
) -> dict[str, Any]:
    """Trains until `config` ends the run, from the last checkpoint in `model_dir`, if any.

    On SIGTERM or Ctrl-C the running steps are finished and saved first, except for the first step
    if XLA compiles it. If the gradients in the last steps of a run were not finite, these steps are
    not saved, so that the newest checkpoint is a good one. A warning is logged, and the same run
    resumes from that checkpoint.

    Args:
        model_config: the model.
        training_config: how its parameters are updated.
        data: batches to train on, and data for validation.
        model_dir: the model directory, for checkpoints and curves.
        config: when the run stops, saves and reports.
        strategy: the devices to train on.
        cluster: the workers that train together and all call this; a LoneWorker if not given. Only
            the chief validates and writes, and a signal to any worker stops them all.
        initialize: called with the model when the run begins, to set other weights. With an
            adapter, it is called at each start, and sets the base's weights.
        describe: called before the first checkpoint is written, to describe the model in the
            directory. A run that fails earlier leaves no description behind.

    Returns:
        {"step", "minutes", "stopped" (by "train_steps", "train_minutes", "patience" or "SIGTERM"),
        "loss", "perplexity", "tokens_per_second", "parameters", "checkpoint", "best", ...}: the
        state of the run. Workers other than the chief: {"worker", "step", "minutes", "stopped"}.

    Raises:
        InputError: if a checkpoint cannot be read, too many consecutive steps had non-finite
            gradients, a validation loss was not finite, or another worker died.
        OSError: if a checkpoint cannot be written. KeyboardInterrupt: on Ctrl-C.
    """
    if cluster is None:
        cluster = LoneWorker()
    with listening(cluster.pass_on) as interruption:
        step = _make_step(model_config, training_config, data, strategy)
        batches = iter(data.batches)
        # tf.train.Checkpoint does not find a functional Keras model's variables by itself.
        saved_of_model = saved_variables(step.model, training_config)
        saved = {
            "model": [variable.value for variable in saved_of_model],
            "optimizer": [variable.value for variable in step.optimizer.variables],
            data.iterator_name: batches,
        }
        store = CheckpointStore(
            model_dir, model_config, config.keep_checkpoints, config.best_metric
        )
        state = _resume(store, saved, data.iterator_name, cluster)
        has_base = training_config.lora_rank is not None  # its checkpoints do not contain them
        if state.step == 0 or has_base:
            initialize(step.model)
        make_curves = Curves if cluster.is_chief else SilentCurves
        with make_curves(model_dir, state, config) as curves:
            curves.settings(model_config, training_config)
            run = _Run(
                config=config,
                data=data,
                batches=batches,
                step=step,
                saved=saved,
                store=store,
                state=state,
                curves=curves,
                interruption=interruption,
                cluster=cluster,
                describe=describe,
            )
            run.decide()
            while state.decision.stopped is None:
                run.take_steps()
                run.decide()
                run.report()
                if state.decision.checkpoint_due and state.decision.stopped is None:
                    run.validate_and_save()
                    run.decide()
            run.save_last_steps()
    latest = store.latest if cluster.is_chief else None
    _log_end(state, latest, model_config, training_config)
    if interruption.signal == signal.SIGINT:
        raise KeyboardInterrupt
    return run.result()


def _log_end(
    state: RunState,
    latest: CheckpointRecord | None,
    model_config: TransformerConfig,
    training_config: TrainingConfig,
) -> None:
    """Logs how to continue, and warns if the model is hardly trained."""
    stopped = state.decision.stopped
    if stopped not in LIMITS:
        logging.info("%s at step %d: run the command again to resume", stopped, state.step)
        return
    if state.started is None:
        message = "this run has already ended at step %d: to continue it, raise %s"
        logging.info(message, state.step, stopped)
    line = None
    if latest is not None:
        line = hardly_trained(latest.info(), model_config.vocab_size, training_config)
    if line is not None:
        logging.warning("%s", line)


def _log_warmup(training_config: TrainingConfig, total_steps: int, limit: str) -> None:
    """Logs how a run that is too short for its warm-up deals with it.

    Args:
        training_config: the warm-up, and the decay after it.
        total_steps: the number of steps in the run, as far as known.
        limit: what ends the run, "train_minutes" or "train_steps".
    """
    warmup_steps = training_config.warmup_steps
    shorter = max(1, round(total_steps * LONGEST_WARMUP))
    if not training_config.decays_to_zero:
        if total_steps < warmup_steps:
            message = "this run has %d steps, fewer than its warm-up of %d: set warmup_steps=%d, "
            message += "or raise %s"
            logging.warning(message, total_steps, warmup_steps, shorter, limit)
    elif shorter < warmup_steps:
        message = "the warm-up takes %d steps, a fifth of this run, instead of warmup_steps=%d"
        logging.info(message, shorter, warmup_steps)


def _log_few_steps(minutes: float, steps: int, epochs: float) -> None:
    """Warns if train_minutes give this machine too few steps and passes over the data."""
    if steps < FEW_STEPS and epochs < FEW_PASSES:
        message = "on this machine, train_minutes=%g are about %d steps, %.1f passes over the "
        message += "data: too few to train a new model; raise train_minutes"
        logging.warning(message, minutes, steps, epochs)


def _make_step(
    model_config: TransformerConfig,
    training_config: TrainingConfig,
    data: TrainingData,
    strategy: tf.distribute.Strategy,
) -> TrainingStep:
    """Builds the model and its optimizer; warns if batches have too few rows."""
    if data.longest is not None and not data.packed:
        rows = training_config.tokens_per_batch // max(1, data.longest)
        parts = strategy.num_replicas_in_sync * training_config.accumulate_steps
        if rows < parts:
            message = "batches of the longest sentences have fewer rows (%d) than parts (%d, "
            message += "replicas x accumulate_steps): some are empty; raise tokens_per_batch"
            logging.warning(message, rows, parts)
    make_step = XlaTrainingStep if data.packed else TrainingStep
    step = make_step(model_config, training_config, strategy)
    parameters, trained = step.model.count_params(), step.trained_parameters
    of_all = "" if trained == parameters else f" of {parameters / 1e6:.1f}"
    logging.info("training %.1f%s million parameters", trained / 1e6, of_all)
    return step


def _resume(
    store: CheckpointStore,
    saved: dict[str, Any],
    iterator: str,
    cluster: "Cluster | LoneWorker",
) -> RunState:
    """Restores the newest complete checkpoint, if any; workers restore the chief's."""
    record = None
    if cluster.is_chief:
        store.recover()
        record = store.restore(saved, iterator)
    name = cluster.agreed(None if record is None else record.name)
    if name is None:
        return RunState()
    if not cluster.is_chief:
        record = store.restore_named(saved, name, iterator)
    logging.info("resuming from step %d", record.step)
    return RunState.restored(record)


@dataclasses.dataclass
class _Run:
    """The parts of the loop, which update `state`, and their context."""

    config: LoopConfig
    data: TrainingData
    batches: Iterator
    step: TrainingStep
    saved: dict[str, Any]  # the content of a checkpoint, by name
    store: CheckpointStore
    state: RunState
    curves: Curves | SilentCurves
    interruption: Interruption
    cluster: "Cluster | LoneWorker"
    describe: Callable[[], None]
    is_length_known: bool = False  # whether the run's length was estimated, for its warm-up

    def take_steps(self) -> None:
        """Takes steps for about a second, and none beyond the next event.

        A signal during a compilation ends the run without a step.
        """
        state = self.state
        self.curves.profile(state.step + 1)
        steps = min(state.decision.steps_per_call, self.config.steps_to_next_event(state.step))
        started = time.monotonic()
        compiles = state.started is None and self.data.packed
        sums = self._compile_and_run(steps) if compiles else self._run_step(steps)
        if sums is None:
            return
        state.add_steps(steps, time.monotonic() - started, sums)
        if state.skipped_in_row >= self.config.max_skipped_steps:
            limit = f"max_skipped_steps={self.config.max_skipped_steps}"
            raise self._diverged("gradients", f"{self._skipped_steps()} ({limit})")

    def _run_step(self, steps: int) -> StepSums:
        """Takes steps; returns the new sums, as floats."""
        sums = as_tensors(self.state.progress.sums)
        sums = self.step.run(self.batches, tf.constant(steps), sums)
        return tf.nest.map_structure(float, sums)  # waits until the steps are taken

    def _compile_and_run(self, steps: int) -> StepSums | None:
        """Takes the first steps, which XLA compiles; returns None if a signal came meanwhile.

        The compilation goes on in its thread, until the process ends. The cluster interrupts all
        workers, none of which can take a step without the others.
        """
        logging.info("XLA compiles the step, which takes up to minutes")
        started = time.monotonic()

        def run() -> StepSums:
            self.step.forget()
            return self._run_step(steps)

        sums = self.interruption.unless_interrupted(lambda: in_thread(lambda: compiled(run)))
        if sums is not None:
            logging.info("XLA compiled the step in %.0f s", time.monotonic() - started)
        return sums

    def decide(self) -> None:
        """Decides how the run continues; with several workers, the chief decides for all."""
        state = self.state
        seconds = state.clock()
        decision = dataclasses.replace(
            state.decision,
            seconds=seconds,
            checkpoint_due=self._is_checkpoint_due(seconds),
            stopped=self._reason_to_stop(seconds),
        )
        state.decision = Decision(**self.cluster.agreed(dataclasses.asdict(decision)))
        expected_steps = self.config.expected_steps(state.step, state.decision.seconds)
        self.step.total_steps.assign(expected_steps)
        if not self.is_length_known and self.config.is_estimate(state.decision.seconds):
            self.is_length_known = True
            limit = "train_steps" if self.config.train_minutes is None else "train_minutes"
            _log_warmup(self.step.config, expected_steps, limit)
            minutes, epochs = self.config.train_minutes, self._epochs()
            is_going_on = state.step > 0 and state.decision.stopped is None
            if is_going_on and minutes is not None and epochs is not None:
                _log_few_steps(minutes, expected_steps, epochs * expected_steps / state.step)

    def _is_checkpoint_due(self, seconds: float) -> bool:
        state, config = self.state, self.config
        if state.skipped_in_row:
            return False  # the last good checkpoint remains the last
        if config.checkpoint_steps is not None and state.step % config.checkpoint_steps == 0:
            return True
        return seconds - state.saved_seconds >= config.checkpoint_minutes * 60

    def _reason_to_stop(self, seconds: float) -> str | None:
        state, config = self.state, self.config
        if self.interruption.signal is not None:
            return self.interruption.signal.name
        without_better = state.progress.validations_since_best
        if config.patience is not None and without_better >= config.patience:
            return "patience"
        if config.train_minutes is not None and seconds >= config.train_minutes * 60:
            return "train_minutes"
        if state.step >= config.train_steps:
            return "train_steps"
        return None

    def _diverged(self, what: str, received: str) -> InputError:
        """Returns the error for a run whose loss or gradients are no longer finite."""
        advice = "try a lower learning_rate_scale, more warmup_steps, or precision=float32"
        received = f"{received}; {self._last_good_checkpoint()}"
        return InputError(what, f"must be finite; {advice}", received)

    def _skipped_steps(self) -> str:
        return f"{self.state.skipped_in_row} steps in a row skipped up to step {self.state.step}"

    def _last_good_checkpoint(self) -> str:
        last = "none"
        if self.state.decision.saved_step:
            last = str(self.store.directory / checkpoint_name(self.state.decision.saved_step))
        return f"last good checkpoint: {last}"

    def report(self) -> None:
        """Updates the progress bar, and writes a point on the curves every `log_steps` steps."""
        state = self.state
        if state.started is None:  # a signal came before the end of the first step
            return
        self.curves.progress(state)
        is_log_step = state.step % self.config.log_steps == 0
        if is_log_step or state.decision.stopped in LIMITS:  # the last point may cover fewer steps
            replicas = self.step.strategy.num_replicas_in_sync
            values = dict(state.metrics)
            values["tokens_per_second_per_replica"] = values["tokens_per_second"] / replicas
            values.update(self.step.rates())
            self.curves.training(state.step, values)
        if is_log_step:
            state.reset_sums()

    def save_last_steps(self) -> None:
        """Validates and saves the run's last steps, unless they were skipped."""
        state = self.state
        if state.step == state.decision.saved_step:
            return
        if state.skipped_in_row:
            message = "gradients were not finite at the end: %s, not saved; %s"
            logging.warning(message, self._skipped_steps(), self._last_good_checkpoint())
            return
        self.validate_and_save()
        self.decide()

    def validate_and_save(self) -> None:
        """Validates and writes a checkpoint, on the chief. A signal only ends the validation."""
        if not self.cluster.is_chief:
            return
        state, store = self.state, self.store
        scalars = self.interruption.unless_interrupted(self._validate) or {}
        if not math.isfinite(scalars.get("loss", 0.0)):
            raise self._diverged(
                "loss", f"{scalars['loss']} in the validation at step {state.step}"
            )
        measured = finite_or_none(scalars)
        if self.interruption.signal is None:
            self.config.check_measured(scalars)
        if self.config.best_metric in scalars:
            state.add_validation(store.would_be_best(measured))
        if scalars:
            state.validation = measured
            self.curves.validation(state.step, scalars)
        tf.summary.flush()
        if store.latest is None:
            self.describe()
        epochs = self._epochs()
        record = store.save(self.saved, state.step, state.clock(), measured, state.progress, epochs)
        state.add_checkpoint()
        self.curves.event("checkpoint", state.step, checkpoint=record.name)
        shown = " ".join(f"{name} {value:.3f}" for name, value in scalars.items())
        logging.info("step %d: validation %s", state.step, shown or "none; checkpoint written")

    def _validate(self) -> dict[str, float]:
        return validate(self.step, self.data, self.state.step, self.config.histograms)

    def _epochs(self) -> float | None:
        """Returns the number of passes over the training data so far; None if unknown."""
        if self.data.target_tokens is None:
            return None
        return round(self.state.progress.tokens / self.data.target_tokens, 4)

    def result(self) -> dict[str, Any]:
        """Returns the state of the run; see `train`."""
        state, store = self.state, self.store
        result = {
            "step": state.step,
            "minutes": round(state.decision.seconds / 60, 2),
            "epochs": self._epochs(),
            "stopped": state.decision.stopped,
        }
        if not self.cluster.is_chief:
            return {"worker": self.cluster.index, **result}
        validation = {f"validation_{name}": value for name, value in state.validation.items()}
        for name, value in finite_or_none({**state.metrics, **validation}).items():
            result[name] = None if value is None else round(value, 4)
        result["parameters"] = self.step.model.count_params()
        result["trained_parameters"] = self.step.trained_parameters
        result["checkpoints"] = len(store.records)
        result["checkpoint"] = None if store.latest is None else store.path(store.latest)
        result["best"] = None if store.best is None else store.path(store.best)
        return result
