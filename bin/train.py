"""Trains a Transformer on prepared data, or goes on where the same command stopped."""

from command import run  # isort: skip  (first: it makes the checkout importable)

import dataclasses
from pathlib import Path

from absl import flags

FLAGS = flags.FLAGS
flags.DEFINE_string("data_dir", None, "Prepared data (bin/prepare_data.py).", required=True)
flags.DEFINE_string("model_dir", None, "Checkpoints, curves and settings go here.", required=True)
flags.DEFINE_string("preset", "base", "The model: a name of keras_transformer/presets.py.")
flags.DEFINE_multi_string(
    "config", [], "KEY=VALUE of TransformerConfig or TrainingConfig, over the preset's. Repeatable."
)
flags.DEFINE_integer("tokens_per_batch", 25000, "Padded tokens a side of one optimizer step.")
flags.DEFINE_integer("accumulate_steps", 1, "Parts that a step's gradients are computed in.")
flags.DEFINE_integer("train_steps", 100_000, "Optimizer steps, over all starts of the run.")
flags.DEFINE_float("train_minutes", None, "Minutes, over all starts of the run, if they end first.")
flags.DEFINE_enum("strategy", "one_device", ["one_device", "mirrored"], "Where to train.")
flags.DEFINE_integer("replicas", None, "For mirrored: so many CPU devices instead of all GPUs.")
flags.DEFINE_enum("precision", "float32", ["float32", "bfloat16", "float16"], "Of activations.")
flags.DEFINE_float("checkpoint_minutes", 10, "Minutes between validations and checkpoints.")
flags.DEFINE_integer("keep_checkpoints", 20, "How many of the last checkpoints to keep.")
flags.DEFINE_integer("sample_sentences", 100, "Validation sentences to translate for BLEU.")
flags.DEFINE_integer("seed", 1, "Of weights, dropout and the order of the data.")
flags.DEFINE_bool("deterministic", False, "Make a run repeatable bit for bit (slower on a GPU).")

EVALUATION_TOKENS = 4096  # padded tokens a side of a validation batch


def main():
    from keras_transformer.config import with_settings
    from keras_transformer.presets import preset
    from pipelines.records import read_metadata

    metadata = read_metadata(FLAGS.data_dir)
    model, training = preset(FLAGS.preset, metadata.vocab_size)
    training = dataclasses.replace(
        training,
        tokens_per_batch=FLAGS.tokens_per_batch,
        accumulate_steps=FLAGS.accumulate_steps,
        precision=FLAGS.precision,
        seed=FLAGS.seed,
    )
    model, training = with_settings(model, training, FLAGS.config)

    from keras_transformer.evaluation.sample import SampleTranslation
    from keras_transformer.training.loop import Limits, TrainingData, train
    from keras_transformer.training.model_directory import ModelDescription, create_or_check
    from keras_transformer.training.strategy import make_repeatable, make_strategy
    from pipelines.subwords import Subwords
    from pipelines.translation import evaluation_batches, split_text, training_batches

    limits = Limits(
        train_steps=FLAGS.train_steps,
        train_minutes=FLAGS.train_minutes,
        checkpoint_minutes=FLAGS.checkpoint_minutes,
        keep_checkpoints=FLAGS.keep_checkpoints,
    )
    strategy = make_strategy(FLAGS.strategy, FLAGS.replicas)
    make_repeatable(training.seed, FLAGS.deterministic)
    batches = training_batches(FLAGS.data_dir, training.tokens_per_batch, training.seed)
    validation = sample = None
    if "validation" in metadata.splits:
        validation = evaluation_batches(FLAGS.data_dir, "validation", EVALUATION_TOKENS)
        if FLAGS.sample_sentences > 0:
            sample = SampleTranslation(
                Subwords.load(FLAGS.data_dir),
                *split_text(FLAGS.data_dir, "validation"),
                FLAGS.sample_sentences,
                metadata.max_length,
            )
    description = ModelDescription(
        preset=FLAGS.preset,
        model=model,
        training=training,
        vocabulary=metadata.vocabulary,
        vocabulary_fingerprint=metadata.fingerprint,
        max_length=metadata.max_length,
    )
    vocabulary = Path(FLAGS.data_dir) / metadata.vocabulary
    create_or_check(FLAGS.model_dir, description, vocabulary)
    data = TrainingData(batches, validation, sample)
    return train(model, training, data, FLAGS.model_dir, limits, strategy)


if __name__ == "__main__":
    run(main)
