"""Turns text into a data directory: vocabulary, shards of records and metadata.

    python bin/prepare_data.py --dataset=files --train_source=train.en --train_target=train.de \\
        --data_dir=data/en-de
    python bin/prepare_data.py --dataset=tfds:wmt14_translate/de-en --source_language=en \\
        --target_language=de --data_dir=data/wmt14
    python bin/prepare_data.py --dataset=grammar --vocab_size=2000 --data_dir=data/grammar
    python bin/prepare_data.py --dataset=treebank --train_trees=02-21.mrg --vocab_size=16000 \\
        --data_dir=data/wsj
    python bin/prepare_data.py --dataset=files --train_source=... --train_target=... \\
        --data_dir=/shared/en-de --runner=beam --pipeline_options="--runner=FlinkRunner ..."

The same command resumes an interrupted preparation. On a complete data set it reads every shard,
and writes damaged or missing files again.
"""

from command import flag_values, run  # isort: skip  (first: it makes the checkout importable)

import dataclasses
from typing import Any

from absl import flags

from keras_transformer.config import SUFFIXES
from keras_transformer.errors import InputError, require
from keras_transformer.fields import LARGEST_SEED
from keras_transformer.parsing.linearisation import WORDS, Linearisation
from keras_transformer.parsing.trees import UNARIES
from pipelines.data_set import TrainingWriter
from pipelines.preparation import PreparationConfig, prepare
from pipelines.selection import SelectionConfig
from pipelines.sources import FileSource, GrammarSource, Source
from pipelines.text_files import matching_files
from pipelines.tfds_source import TfdsSource
from pipelines.treebank import TreebankSource

SPLITS = ("train", "validation", "test")
FILE_FLAGS = [f"{split}_{side}" for split in SPLITS for side in ("source", "target")]
TFDS_FLAGS = ["source_language", "target_language", "tfds_data_dir"]
GRAMMAR_FLAGS = ["grammar_pairs"]
TREE_FILE_FLAGS = [f"{split}_trees" for split in SPLITS]
TREE_FLAGS = [*TREE_FILE_FLAGS, "tree_words", "tree_unaries"]
SELECTION_FLAGS = [field.name for field in dataclasses.fields(SelectionConfig)]

flags.DEFINE_string("dataset", None, "files, grammar, treebank or tfds:NAME.", required=True)
flags.DEFINE_string("data_dir", None, "Folder that the data set is written to.", required=True)
for _flag in FILE_FLAGS:
    flags.DEFINE_list(_flag, None, "dataset=files: plain, .gz or .zst, by commas, or patterns.")
flags.DEFINE_string("source_language", None, "dataset=tfds:NAME: the source language, e.g. en.")
flags.DEFINE_string("target_language", None, "dataset=tfds:NAME: the target language, e.g. de.")
flags.DEFINE_string("tfds_data_dir", None, "dataset=tfds:NAME: the folder of TFDS.")
flags.DEFINE_integer("grammar_pairs", 100_000, "dataset=grammar: number of training pairs.")
for _flag in TREE_FILE_FLAGS:
    flags.DEFINE_list(_flag, None, "dataset=treebank: Penn Treebank brackets, comma-separated.")
flags.DEFINE_enum("tree_words", "xx", WORDS, "dataset=treebank: words in targets.")
flags.DEFINE_enum(
    "tree_unaries", "keep", UNARIES, "dataset=treebank: (S (VP stays or becomes (S+VP."
)
# Of training pairs alone: which are used, and how often.
flags.DEFINE_bool("dedupe", False, "Leaves out pairs that have occurred before.")
LIMITS = "FEWEST,MOST words of a side: leaves out pairs with a shorter or a longer one."
flags.DEFINE_list("length_limits", None, LIMITS)
RATIO = "Leaves out pairs with a side of more than this many times the words of the other."
flags.DEFINE_float("length_ratio", None, RATIO)
UNIT = "What these lengths count; characters are for languages without spaces."
flags.DEFINE_enum("length_unit", "words", ["words", "characters"], UNIT)
flags.DEFINE_bool("drop_identical", False, "Leaves out pairs of equal sides, in any case.")
SCRIPTS = "SOURCE,TARGET, e.g. Latin,Han+Hiragana+Katakana: leaves out pairs with a side in others."
flags.DEFINE_list("scripts", None, SCRIPTS)
flags.DEFINE_float("script_share", 0.5, "Smallest share of a side's letters in its --scripts.")
NUMBERS = "Leaves out pairs if a smaller share of their numbers is on both sides; 1: all must be."
flags.DEFINE_float("number_overlap", None, NUMBERS)
WEIGHTS = "How often an epoch has each pair of the first file of --train_source, the second, ..."
flags.DEFINE_list("weights", None, WEIGHTS)
KINDS = "Kind of vocabulary; pieces is that of imported models, and goes with --vocabulary."
flags.DEFINE_enum("tokenizer", "bpe", list(SUFFIXES), KINDS)
SIZE = "Ids of a vocabulary, special ones included. 37000 if not given, or those of --vocabulary."
flags.DEFINE_integer("vocab_size", None, SIZE)
EXISTING = "A SentencePiece model to use, or SOURCE,TARGET of two; none: learn from the text."
flags.DEFINE_list("vocabulary", [], EXISTING)
flags.DEFINE_bool("shared_vocabulary", True, "One vocabulary for both sides, or one for each.")
flags.DEFINE_integer("max_length", 256, "Largest number of ids per side of a pair, EOS included.")
flags.DEFINE_integer(
    "seed",
    1,
    "Seed of the order of pairs and of what is sampled.",
    lower_bound=0,
    upper_bound=LARGEST_SEED,
)
OPTIONS = "runner=beam: flags of Apache Beam, separated by spaces, e.g. --runner=FlinkRunner."
RUNNER = "Encodes the training pairs with this machine's cores, or as an Apache Beam pipeline."
flags.DEFINE_enum("runner", "local", ["local", "beam"], RUNNER)
flags.DEFINE_string("pipeline_options", "", OPTIONS)
FLAGS = flags.FLAGS


def main() -> dict[str, Any]:
    values = flag_values(PreparationConfig) | {
        "length_limits": _numbers("length_limits", int),
        "weights": _numbers("weights", float),
    }
    config = PreparationConfig(**values)
    return prepare(_source(), FLAGS.data_dir, config, _training_writer())


def _training_writer() -> TrainingWriter | None:
    if FLAGS.runner == "local":
        rule = "--pipeline_options must not be given without --runner=beam"
        require(not FLAGS["pipeline_options"].present, rule, FLAGS.pipeline_options)
        return None
    from pipelines.beam import training_writer

    return training_writer(FLAGS.pipeline_options.split())


def _source() -> Source:
    if FLAGS.dataset == "files":
        _reject(TFDS_FLAGS + GRAMMAR_FLAGS + TREE_FLAGS)
        return FileSource(_files())
    if FLAGS.dataset == "grammar":
        _reject(FILE_FLAGS + TFDS_FLAGS + TREE_FLAGS)
        return GrammarSource(FLAGS.grammar_pairs, FLAGS.seed)
    if FLAGS.dataset == "treebank":
        _reject(FILE_FLAGS + TFDS_FLAGS + GRAMMAR_FLAGS + SELECTION_FLAGS)
        return _treebank()
    if FLAGS.dataset.startswith("tfds:"):
        _reject(FILE_FLAGS + GRAMMAR_FLAGS + TREE_FLAGS)
        _require(TFDS_FLAGS[:2])
        name = FLAGS.dataset.removeprefix("tfds:")
        return TfdsSource(name, FLAGS.source_language, FLAGS.target_language, FLAGS.tfds_data_dir)
    rule = "--dataset must be files, grammar, treebank or tfds:NAME"
    raise InputError(f"{rule}. Received: {FLAGS.dataset}")


def _files() -> dict[str, tuple[list[str], list[str]]]:
    """Split -> (source files, target files), of the splits whose flags are given."""
    given = [
        split
        for split in SPLITS
        if FLAGS[f"{split}_source"].present or FLAGS[f"{split}_target"].present
    ]
    for split in dict.fromkeys(["train", *given]):
        _require([f"{split}_source", f"{split}_target"])
    return {split: (_matching(f"{split}_source"), _matching(f"{split}_target")) for split in given}


def _matching(name: str) -> list[str]:
    return matching_files(f"--{name}", FLAGS[name].value)


def _treebank() -> TreebankSource:
    _require(["train_trees"])
    rule = "--tokenizer must be bpe with --dataset=treebank, which keeps brackets whole"
    require(FLAGS.tokenizer == "bpe", rule, FLAGS.tokenizer)
    names = {split: f"{split}_trees" for split in SPLITS}
    files = {split: FLAGS[name].value and _matching(name) for split, name in names.items()}
    linearisation = Linearisation(FLAGS.tree_words, FLAGS.tree_unaries)
    return TreebankSource(
        {split: paths for split, paths in files.items() if paths is not None}, linearisation
    )


def _numbers(name: str, kind: type) -> list[float] | None:
    try:
        return FLAGS[name].value and list(map(kind, FLAGS[name].value))
    except ValueError:
        rule = f"--{name} must be {'whole ' if kind is int else ''}numbers, separated by commas"
        raise InputError(f"{rule}. Received: {','.join(FLAGS[name].value)}") from None


def _require(names: list[str]) -> None:
    for name in names:
        rule = f"--{name} must be given with --dataset={FLAGS.dataset}"
        require(FLAGS[name].value, rule, "none")


def _reject(names: list[str]) -> None:
    for name in names:
        rule = f"--{name} must not be given with --dataset={FLAGS.dataset}"
        require(not FLAGS[name].present, rule, FLAGS[name].value)


if __name__ == "__main__":
    run(main)
