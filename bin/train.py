"""Trains a Transformer on prepared data, or resumes the run of the same command."""

from command import flag_values, run, show_curves  # isort: skip  (first: it makes the checkout importable)

import contextlib
import dataclasses
import hashlib
import json

from absl import flags

from keras_transformer.fields import LARGEST_SEED
from keras_transformer.presets import PRESETS, preset

FLAGS = flags.FLAGS
flags.DEFINE_string("data_dir", None, "Prepared data (bin/prepare_data.py).", required=True)
flags.DEFINE_string("model_dir", None, "Checkpoints, curves and settings go here.", required=True)
flags.DEFINE_string("preset", "base", f"The model: {', '.join(PRESETS)}; else --init_from's.")
flags.DEFINE_multi_string(
    "config", [], "KEY=VALUE of TransformerConfig or TrainingConfig, over the preset's. Repeatable."
)
TRAINED = "Begin with the weights of a model directory, a checkpoint, an export or a .keras file."
flags.DEFINE_string("init_from", None, TRAINED)
# Of TrainingConfig.
flags.DEFINE_string("freeze", "", "Parts of the model that keep their weights: encoder,embedding")
flags.DEFINE_integer("tokens_per_batch", 25000, "Padded tokens a side of one optimizer step.")
flags.DEFINE_integer("accumulate_steps", 1, "Parts that a step's gradients are computed in.")
flags.DEFINE_float("clip_norm", 0.0, "The largest norm of all gradients together; 0 for any.")
PRECISIONS = ["float32", "bfloat16", "float16"]
flags.DEFINE_enum("precision", "float32", PRECISIONS, "Type of the activations.")
flags.DEFINE_integer(
    "seed",
    1,
    "Of weights, dropout and the order of the data.",
    lower_bound=0,
    upper_bound=LARGEST_SEED,
)
# Of LoopConfig.
flags.DEFINE_integer("train_steps", 100_000, "Optimizer steps, over all starts of the run.")
flags.DEFINE_float("train_minutes", None, "Minutes, over all starts of the run, if they end first.")
flags.DEFINE_float("checkpoint_minutes", 10, "Minutes between validations and checkpoints.")
flags.DEFINE_integer("checkpoint_steps", None, "Steps between them, where these end first.")
flags.DEFINE_integer("keep_checkpoints", 20, "How many of the last checkpoints to keep.")
flags.DEFINE_integer("log_steps", 50, "Steps between points of the curves.")
flags.DEFINE_integer("max_skipped_steps", 100, "Steps in a row without finite gradients to end at.")
flags.DEFINE_string("best_metric", "loss", "Metric that chooses `best`: loss, bleu or f1.")
flags.DEFINE_integer("patience", None, "Validations without a better best_metric to stop after.")
flags.DEFINE_bool("histograms", False, "Write histograms of all parameters at each validation.")
flags.DEFINE_list("profile_steps", None, "FIRST,LAST: write a profile of these steps.")
flags.DEFINE_enum("xla", "auto", ["auto", "on", "off"], "Compile steps; auto: if there is a GPU.")
# Where it runs.
STRATEGIES = ["one_device", "mirrored", "multi_worker"]
WORKERS = "Where to train; multi_worker: the workers that TF_CONFIG or Slurm names."
flags.DEFINE_enum("strategy", "one_device", STRATEGIES, WORKERS)
flags.DEFINE_integer("replicas", None, "Logical CPU devices per worker, instead of all GPUs.")
flags.DEFINE_float("connect_seconds", 300, "multi_worker: seconds to wait for all workers.")
flags.DEFINE_bool("deterministic", False, "Make a run repeatable bit for bit (slower on a GPU).")
flags.DEFINE_integer("sample_sentences", 100, "Validation sentences for BLEU or F1 in training.")

EVALUATION_TOKENS = 4096  # padded tokens a side of a validation batch


def main():
    from keras_transformer.config import TrainingConfig, with_settings
    from keras_transformer.training.loop_config import LoopConfig
    from keras_transformer.training.model_directory import ModelDescription
    from pipelines.records import read_metadata

    metadata = read_metadata(FLAGS.data_dir)
    config = LoopConfig(**flag_values(LoopConfig))
    config.check_measured(measured(metadata))
    name, (model, training) = FLAGS.preset, preset(FLAGS.preset, metadata.vocab_size)
    if FLAGS.init_from is not None and not FLAGS["preset"].present:
        name, model = described(FLAGS.init_from)
    sizes = (metadata.vocab_size, metadata.source_vocab_size)
    model = dataclasses.replace(model, vocab_size=sizes[0], source_vocab_size=sizes[1])
    training = dataclasses.replace(training, **flag_values(TrainingConfig))
    model, training = with_settings(model, training, FLAGS.config)
    description = ModelDescription(
        name,
        model,
        training,
        vocabulary=metadata.vocabulary,
        vocabulary_fingerprint=metadata.fingerprint,
        max_length=metadata.max_length,
        source_vocabulary=metadata.source_vocabulary,
        source_vocabulary_fingerprint=metadata.source_fingerprint,
        task=metadata.task,
        task_options=metadata.task_options,
    )
    return train_in(metadata, description, config)


def described(init_from):
    """The preset and the TransformerConfig of what --init_from names."""
    from keras_transformer.export.model_card import CARD, read_card

    from keras_transformer.config import TransformerConfig
    from keras_transformer.files import to_path
    from keras_transformer.training.model_directory import described_in, read_description

    if (to_path(init_from) / CARD).exists():
        card = read_card(init_from, "--init_from")
        return card.get("preset", "imported"), TransformerConfig(**card["config"])
    description = read_description(described_in(init_from), "--init_from")
    return description.preset, description.model


def measured(metadata):
    """Names what a validation measures; --sample_sentences are for the scores."""
    if "validation" not in metadata.splits:
        return []
    score = "f1" if metadata.task == "parsing" else "bleu"
    return ["loss", *([score] if FLAGS.sample_sentences > 0 else [])]


def train_in(metadata, description, config):
    """Trains as one of the workers, or alone."""
    from keras_transformer.files import locked, to_path
    from keras_transformer.training.addresses import own_addresses
    from keras_transformer.training.cluster import Cluster
    from keras_transformer.training.loop import train
    from keras_transformer.training.model_directory import create_or_check
    from keras_transformer.training.strategy import make_repeatable, make_strategy
    from pipelines.datasets import damage_named

    addresses = own_addresses() if FLAGS.strategy == "multi_worker" else None
    strategy = make_strategy(FLAGS.strategy, FLAGS.replicas, addresses, FLAGS.connect_seconds)
    data_dir = FLAGS.data_dir
    described = json.dumps(dataclasses.asdict(metadata), sort_keys=True, default=str)
    same = {
        **description.flat(),
        **dataclasses.asdict(config),
        "deterministic": FLAGS.deterministic,
        "init_from": FLAGS.init_from,
        "data_dir": hashlib.sha256(described.encode()).hexdigest()[:16],
        "replicas": strategy.num_replicas_in_sync,
    }
    with Cluster(addresses) as cluster:
        cluster.require_same(same)
        make_repeatable(description.training.seed, FLAGS.deterministic)
        data = training_data(data_dir, metadata, description.training)
        configs = (description.model, description.training)
        lock = contextlib.nullcontext()
        if cluster.is_chief:
            lock = locked(to_path(FLAGS.model_dir) / "lock", "model_dir")
        with damage_named(data_dir), lock:
            if cluster.is_chief:
                create_or_check(FLAGS.model_dir, description, data_dir)
            made = initializer(data_dir)
            result = train(*configs, data, FLAGS.model_dir, config, strategy, cluster, made)
    if cluster.is_chief:
        show_curves(FLAGS.model_dir)
    return result


def initializer(data_dir):
    """What gives a new model the weights of --init_from; None without it."""
    if FLAGS.init_from is None:
        return None
    from keras_transformer.importing.initial_weights import carry_over
    from keras_transformer.loading import restore
    from keras_transformer.vocabulary.pair import VocabularyPair

    def initialize(model):
        trained = restore(FLAGS.init_from)
        carry_over(trained.model, trained.vocabularies, model, VocabularyPair.load(data_dir))

    return initialize


def training_data(data_dir, metadata, training):
    """Batches to train on, and what the validation split offers to try the model on."""
    from keras_transformer.attention.pictures import attention_images
    from keras_transformer.errors import require
    from keras_transformer.evaluation.sample import SampleAnswers
    from keras_transformer.training.loop import TrainingData
    from keras_transformer.vocabulary.pair import VocabularyPair
    from pipelines.batching import length_lattice
    from pipelines.datasets import evaluation_batches, gold_trees, split_text, training_batches

    vocabularies = VocabularyPair.load(data_dir)
    sizes = (metadata.source_vocab_size or metadata.vocab_size, metadata.vocab_size)
    for vocabulary, size in zip(vocabularies, sizes, strict=True):
        rule = f"{vocabulary.file} must have the {size} ids that metadata.json says"
        require(vocabulary.vocab_size == size, rule, vocabulary.vocab_size)
    batches = training_batches(data_dir, training.tokens_per_batch, training.seed)
    data = TrainingData(batches, length_lattice(metadata.splits["train"].longest))
    if "validation" not in metadata.splits:
        return data
    validation = evaluation_batches(data_dir, "validation", EVALUATION_TOKENS)
    data = dataclasses.replace(data, validation=validation)
    if FLAGS.sample_sentences <= 0:
        return data
    sides = split_text(data_dir, "validation")
    references, options = sides[1], None
    if metadata.task == "parsing":
        references, options = gold_trees(data_dir, "validation"), metadata.task_options
    size = (FLAGS.sample_sentences, metadata.max_length)
    sample = SampleAnswers(vocabularies, sides[0], references, *size, options)
    pictures = attention_images(sample)
    return dataclasses.replace(data, translate_sample=sample, draw_sample=pictures)


if __name__ == "__main__":
    run(main)
