"""Trains a Transformer on prepared data, or resumes the run of the same command."""

from command import run  # isort: skip  (first: it makes the checkout importable)

import contextlib
import dataclasses
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from absl import flags, logging

FLAGS = flags.FLAGS
flags.DEFINE_string("data_dir", None, "Prepared data (bin/prepare_data.py).", required=True)
flags.DEFINE_string("model_dir", None, "Checkpoints, curves and settings go here.", required=True)
flags.DEFINE_string("preset", "base", "The model: a name of keras_transformer/presets.py.")
flags.DEFINE_multi_string(
    "config", [], "KEY=VALUE of TransformerConfig or TrainingConfig, over the preset's. Repeatable."
)
flags.DEFINE_integer("tokens_per_batch", 25000, "Padded tokens a side of one optimizer step.")
flags.DEFINE_integer("accumulate_steps", 1, "Parts that a step's gradients are computed in.")
flags.DEFINE_float("clip_norm", 0.0, "The largest norm of all gradients together; 0 for any.")
flags.DEFINE_integer("train_steps", 100_000, "Optimizer steps, over all starts of the run.")
flags.DEFINE_float("train_minutes", None, "Minutes, over all starts of the run, if they end first.")
flags.DEFINE_enum(
    "strategy",
    "one_device",
    ["one_device", "mirrored", "multi_worker"],
    "Where to train; multi_worker: the workers that TF_CONFIG or Slurm names.",
)
flags.DEFINE_integer("replicas", None, "So many CPU devices (of a worker) instead of all GPUs.")
flags.DEFINE_float("connect_seconds", 300, "For multi_worker: for all workers to be there.")
flags.DEFINE_enum("precision", "float32", ["float32", "bfloat16", "float16"], "Of activations.")
flags.DEFINE_enum("xla", "auto", ["auto", "on", "off"], "Compile steps; auto: where a GPU is.")
flags.DEFINE_float("checkpoint_minutes", 10, "Minutes between validations and checkpoints.")
flags.DEFINE_integer("checkpoint_steps", None, "Steps between them, where these end first.")
flags.DEFINE_integer("keep_checkpoints", 20, "How many of the last checkpoints to keep.")
flags.DEFINE_integer("log_steps", 50, "Steps between points of the curves.")
flags.DEFINE_integer(
    "max_skipped_steps", 100, "Steps in a row without finite gradients to stop at."
)
flags.DEFINE_string("best_metric", "loss", "What `best` goes by in validation: loss, bleu or f1.")
flags.DEFINE_integer("patience", None, "Validations without a better best_metric to stop after.")
flags.DEFINE_bool("histograms", False, "Write histograms of all parameters at each validation.")
flags.DEFINE_list("profile_steps", None, "FIRST,LAST: write a profile of these steps.")
flags.DEFINE_integer("sample_sentences", 100, "Validation sentences to try BLEU, or F1, on.")
flags.DEFINE_integer("seed", 1, "Of weights, dropout and the order of the data.")
flags.DEFINE_bool("deterministic", False, "Make a run repeatable bit for bit (slower on a GPU).")

EVALUATION_TOKENS = 4096  # padded tokens a side of a validation batch


def main():
    from keras_transformer.config import with_settings
    from keras_transformer.presets import preset
    from keras_transformer.training.addresses import addresses_from
    from keras_transformer.training.cluster import Cluster
    from keras_transformer.training.limits import Limits
    from pipelines.records import read_metadata

    metadata = read_metadata(FLAGS.data_dir)
    check_best_metric(metadata)
    model, training = preset(FLAGS.preset, metadata.vocab_size)
    training = dataclasses.replace(
        training,
        tokens_per_batch=FLAGS.tokens_per_batch,
        accumulate_steps=FLAGS.accumulate_steps,
        clip_norm=FLAGS.clip_norm,
        precision=FLAGS.precision,
        seed=FLAGS.seed,
    )
    model, training = with_settings(model, training, FLAGS.config)
    limits = Limits(
        train_steps=FLAGS.train_steps,
        train_minutes=FLAGS.train_minutes,
        checkpoint_minutes=FLAGS.checkpoint_minutes,
        checkpoint_steps=FLAGS.checkpoint_steps,
        keep_checkpoints=FLAGS.keep_checkpoints,
        log_steps=FLAGS.log_steps,
        max_skipped_steps=FLAGS.max_skipped_steps,
        best_metric=FLAGS.best_metric,
        patience=FLAGS.patience,
        histograms=FLAGS.histograms,
        profile_steps=profile_steps(),
    )
    cluster = Cluster()
    if FLAGS.strategy == "multi_worker":
        addresses = addresses_from(os.environ)
        cluster = Cluster.connected(addresses, shared_settings(metadata), FLAGS.connect_seconds)
    with cluster:
        return train_in(cluster, metadata, model, training, limits)


def train_in(cluster, metadata, model, training, limits):
    """What every worker of a cluster does once they are all there; most often one alone."""
    from keras_transformer.files import locked
    from keras_transformer.training.buckets import Buckets
    from keras_transformer.training.data import TrainingData
    from keras_transformer.training.loop import train
    from keras_transformer.training.model_directory import ModelDescription, create_or_check
    from keras_transformer.training.strategy import compiles, make_repeatable, make_strategy
    from pipelines.batching import length_lattice
    from pipelines.datasets import damage_named, training_batches

    strategy = make_strategy(FLAGS.strategy, FLAGS.replicas, cluster.addresses)
    cluster.require_same("replicas of all workers", strategy.num_replicas_in_sync)
    make_repeatable(training.seed, FLAGS.deterministic)
    rows = training.tokens_per_batch // max(1, metadata.splits["train"].longest)
    parts = strategy.num_replicas_in_sync * training.accumulate_steps
    if rows < parts:
        rule = "fewer rows (%d) than replicas x accumulate_steps (%d): some have nothing to do"
        logging.warning("batches of the longest sentences have " + rule, rows, parts)
    data_dir = FLAGS.data_dir
    batches = training_batches(data_dir, training.tokens_per_batch, training.seed)
    buckets = None
    if compiles(FLAGS.xla):
        lengths = length_lattice(metadata.splits["train"].longest)
        buckets = Buckets(lengths, training.tokens_per_batch)
    description = ModelDescription(
        preset=FLAGS.preset,
        model=model,
        training=training,
        vocabulary=metadata.vocabulary,
        vocabulary_fingerprint=metadata.fingerprint,
        max_length=metadata.max_length,
        task=metadata.task,
        task_options=metadata.task_options,
    )
    vocabulary = Path(data_dir) / metadata.vocabulary
    data = TrainingData(batches, **validation_data(data_dir, metadata), buckets=buckets)
    with contextlib.ExitStack() as stack:
        stack.enter_context(damage_named(data_dir))
        if cluster.is_chief:
            stack.enter_context(locked(Path(FLAGS.model_dir) / "lock", "--model_dir"))
            create_or_check(FLAGS.model_dir, description, vocabulary)
        return train(model, training, data, FLAGS.model_dir, limits, strategy, cluster)


def validation_data(data_dir, metadata) -> dict[str, Any]:
    """What TrainingData has of the validation split, if there is one."""
    from pipelines.datasets import evaluation_batches

    if "validation" not in metadata.splits:
        return {}
    validation = evaluation_batches(data_dir, "validation", EVALUATION_TOKENS)
    if FLAGS.sample_sentences <= 0:
        return {"validation": validation}

    from keras_transformer.analysis.attention_images import AttentionImages
    from keras_transformer.evaluation.parsing import SampleParses
    from keras_transformer.evaluation.sample import SampleTranslation
    from keras_transformer.parsing.linearisation import Linearisation
    from keras_transformer.vocabulary.subwords import Subwords
    from pipelines.datasets import gold_trees, split_text

    tokenizer = Subwords.load(data_dir)
    sides = split_text(data_dir, "validation")
    size = (FLAGS.sample_sentences, metadata.max_length)
    if metadata.task == "parsing":
        trees = gold_trees(data_dir, "validation")
        sample = SampleParses(tokenizer, trees, *size, Linearisation(**metadata.task_options))
    else:
        sample = SampleTranslation(tokenizer, *sides, *size)
    pictures = AttentionImages(tokenizer, *sides, metadata.max_length)
    return {"validation": validation, "translate_sample": sample, "draw_sample": pictures}


def shared_settings(metadata) -> dict[str, Any]:
    """What all workers of a cluster must have been given alike: the flags but paths, and data."""
    of_this_program = FLAGS.get_flags_for_module(sys.modules[__name__])
    settings = {flag.name: flag.value for flag in of_this_program}
    own = ("data_dir", "model_dir", "connect_seconds")
    settings = {name: value for name, value in settings.items() if name not in own}
    described = json.dumps(dataclasses.asdict(metadata), sort_keys=True, default=str)
    return {**settings, "data_dir": hashlib.sha256(described.encode()).hexdigest()[:16]}


def check_best_metric(metadata) -> None:
    """Makes sure that --best_metric is measured in validation, where it is asked for."""
    from keras_transformer.errors import InputError

    measured = ["loss"] if "validation" in metadata.splits else []
    if measured and FLAGS.sample_sentences > 0:
        measured.append("f1" if metadata.task == "parsing" else "bleu")
    asked_for = FLAGS.patience is not None or FLAGS.best_metric != "loss"
    if asked_for and FLAGS.best_metric not in measured:
        raise InputError(
            "--best_metric must be measured on the validation split, scores on its "
            f"--sample_sentences: {', '.join(measured) or 'none'}. Received: {FLAGS.best_metric}"
        )


def profile_steps() -> tuple[int, ...] | None:
    """--profile_steps as numbers."""
    from keras_transformer.errors import InputError

    try:
        return FLAGS.profile_steps and tuple(int(step) for step in FLAGS.profile_steps)
    except ValueError:
        received = ",".join(FLAGS.profile_steps)
        raise InputError(f"--profile_steps must be FIRST,LAST. Received: {received}") from None


if __name__ == "__main__":
    run(main)
