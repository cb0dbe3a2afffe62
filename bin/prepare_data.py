"""Prepares text as a data directory: vocabulary, shards of records and metadata.

    python bin/prepare_data.py --dataset=files --train_source=train.en --train_target=train.de \\
        --data_dir=data/en-de
    python bin/prepare_data.py --dataset=tfds:wmt14_translate/de-en --source_language=en \\
        --target_language=de --data_dir=data/wmt14
    python bin/prepare_data.py --dataset=grammar --vocab_size=2000 --data_dir=data/grammar
    python bin/prepare_data.py --dataset=treebank --train_trees=02-21.mrg --vocab_size=16000 \\
        --data_dir=data/wsj
    python bin/prepare_data.py --dataset=files --train_source=... --train_target=... \\
        --data_dir=/shared/en-de --runner=beam --pipeline_options="--runner=FlinkRunner ..."

The same command resumes an interrupted preparation. On a complete data set, it checks every shard
and rewrites damaged or missing files.
"""

from command import (  # isort: skip  (first: it makes the checkout importable)
    define_flag,
    define_flags,
    flag_values,
    run,
)

import dataclasses
from typing import Annotated, Any

from absl import flags

from keras_transformer.errors import InputError, require
from keras_transformer.fields import one_of
from keras_transformer.parsing.linearisation import WORDS, Linearisation
from keras_transformer.parsing.trees import UNARIES
from pipelines.file_arguments import SPLITS, FileArguments, file_source
from pipelines.pair_files import READERS
from pipelines.preparation import prepare
from pipelines.preparation_config import PreparationConfig
from pipelines.selection import SelectionConfig
from pipelines.sources import FileSource, GrammarSource, Source
from pipelines.text_files import matching_files
from pipelines.tfds_source import TfdsSource
from pipelines.treebank import TreebankSource

LANGUAGE_FLAGS = ["source_language", "target_language"]
FILE_FLAGS = [field.name for field in dataclasses.fields(FileArguments)]
ONLY_FILE_FLAGS = [name for name in FILE_FLAGS if name not in LANGUAGE_FLAGS]
GRAMMAR_FLAGS = ["grammar_pairs"]
TFDS_FLAGS = ["tfds_data_dir"]
TREEBANK_FLAGS = [*(f"{split}_trees" for split in SPLITS), "tree_words", "tree_unaries"]
SELECTION_FLAGS = [field.name for field in dataclasses.fields(SelectionConfig)]

FLAGS = flags.FLAGS
flags.DEFINE_string("dataset", None, "files, grammar, treebank or tfds:NAME.", required=True)
flags.DEFINE_string("data_dir", None, "Directory to write the data set to.", required=True)
flags.DEFINE_enum(
    "runner",
    "local",
    ["local", "beam"],
    "Encode the training pairs on this machine's cores or in an Apache Beam pipeline.",
)
flags.DEFINE_string(
    "pipeline_options",
    "",
    "Flags for Apache Beam, separated by spaces, such as --runner=FlinkRunner.",
)

FILES = "dataset=files: paths or patterns, separated by commas"
for split in SPLITS:
    for side in ("source", "target"):
        text_help = "Text with one sentence per line, plain, .gz or .zst."
        define_flag(f"{split}_{side}", list, None, text_help, FILES)
    pairs_help = f"Files that contain both sides: {', '.join(READERS)}."
    define_flag(f"{split}_pairs", list, None, pairs_help, FILES)
SIDES = "dataset=tfds:NAME, or files that contain both sides"
define_flag("source_language", str, None, "Source language, such as en.", SIDES)
define_flag("target_language", str, None, "Target language, such as de.", SIDES)
define_flag("tfds_data_dir", str, None, "TFDS data directory.", "dataset=tfds:NAME")
DIRECTIONS = "dataset=files, for one model with several directions"
languages_help = "Language of each --train_target file, such as de,cs,en."
define_flag("target_languages", list, None, languages_help, DIRECTIONS)
parallel_help = (
    "The same text in each language, in place of --train_source and --train_target, such as "
    "en:train.en,de:train.de,cs:train.cs."
)
define_flag("parallel", list, None, parallel_help, DIRECTIONS)
for split in ("validation", "test"):
    languages_help = f"Language of each --{split}_target file; --target_languages by default."
    define_flag(f"{split}_target_languages", list, None, languages_help, DIRECTIONS)
    define_flag(f"{split}_parallel", list, None, f"--parallel for the {split} split.", DIRECTIONS)
directions_help = "Directions of --parallel to train, such as en-de,de-cs; all by default."
define_flag("directions", list, None, directions_help, DIRECTIONS)
define_flag("grammar_pairs", int, 100_000, "Number of training pairs.", "dataset=grammar")
TREES = "dataset=treebank"
for split in SPLITS:
    trees_help = "Files of Penn Treebank trees, separated by commas."
    define_flag(f"{split}_trees", list, None, trees_help, TREES)
words_help = "How target trees represent words."
define_flag("tree_words", Annotated[str, one_of(*WORDS)], "xx", words_help, TREES)
unaries_help = "Keep chains of unary brackets, (S (VP, or collapse them into one, (S+VP."
define_flag("tree_unaries", Annotated[str, one_of(*UNARIES)], "keep", unaries_help, TREES)
define_flags(SelectionConfig, "selection of training pairs")
define_flags(PreparationConfig, "vocabulary and records")


def main() -> dict[str, Any]:
    values = flag_values(PreparationConfig)
    values["length_limits"] = numbers("length_limits", int)
    values["weights"] = numbers("weights", float)
    values["augment"] = shares("augment")
    config = PreparationConfig(**values)
    require_company("length_unit", ["length_limits", "length_ratio"])
    require_company("script_share", ["scripts"])
    source = make_source()
    if FLAGS.runner == "local":
        is_given = FLAGS["pipeline_options"].present
        rule = "must not be given without --runner=beam"
        require(not is_given, "pipeline_options", rule, FLAGS.pipeline_options)
        return prepare(source, FLAGS.data_dir, config)
    from pipelines.beam import training_writer

    writer = training_writer(FLAGS.pipeline_options.split())
    return prepare(source, FLAGS.data_dir, config, writer)


def make_source() -> Source:
    """Returns the source selected by --dataset; rejects flags for other sources."""
    if FLAGS.dataset == "files":
        refuse(TFDS_FLAGS + GRAMMAR_FLAGS + TREEBANK_FLAGS)
        return files()
    if FLAGS.dataset == "grammar":
        refuse(FILE_FLAGS + TFDS_FLAGS + TREEBANK_FLAGS)
        return GrammarSource(FLAGS.grammar_pairs, FLAGS.seed)
    if FLAGS.dataset == "treebank":
        refuse(FILE_FLAGS + TFDS_FLAGS + GRAMMAR_FLAGS)
        refuse([*SELECTION_FLAGS, "augment"])
        return treebank_source()
    if FLAGS.dataset.startswith("tfds:"):
        refuse(ONLY_FILE_FLAGS + GRAMMAR_FLAGS + TREEBANK_FLAGS)
        demand(LANGUAGE_FLAGS)
        name = FLAGS.dataset.removeprefix("tfds:")
        return TfdsSource(name, FLAGS.source_language, FLAGS.target_language, FLAGS.tfds_data_dir)
    rule = "must be files, grammar, treebank or tfds:NAME"
    raise InputError("dataset", rule, FLAGS.dataset)


def files() -> FileSource:
    arguments = {}
    for name in FILE_FLAGS:
        if FLAGS[name].present:
            is_parallel = name.endswith("parallel")
            arguments[name] = parallel_files(name) if is_parallel else FLAGS[name].value
    return file_source(FileArguments(**arguments))


def parallel_files(name: str) -> dict[str, str]:
    """Parses a flag such as en:train.en,de:train.de into a file for each language."""
    texts = FLAGS[name].value
    rule = "must list languages and their files, each once, such as en:train.en,de:train.de"
    found = {}
    for text in texts:
        language, separator, path = text.partition(":")
        is_new = language not in found
        require(separator and language and path and is_new, name, rule, ",".join(texts))
        found[language] = path
    return found


def treebank_source() -> TreebankSource:
    demand(["train_trees"])
    rule = "must be bpe with --dataset=treebank, which keeps brackets whole"
    require(FLAGS.tokenizer == "bpe", "tokenizer", rule, FLAGS.tokenizer)
    trees = {}
    for split in SPLITS:
        name = f"{split}_trees"
        if FLAGS[name].value is not None:
            trees[split] = matching_files(name, FLAGS[name].value)
    return TreebankSource(trees, Linearisation(FLAGS.tree_words, FLAGS.tree_unaries))


def numbers(name: str, kind: type) -> list[float] | None:
    """Returns a flag's comma-separated numbers; None without the flag."""
    texts = FLAGS[name].value
    if not texts:
        return texts
    try:
        return [kind(text) for text in texts]
    except ValueError:
        rule = f"must be {'whole ' if kind is int else ''}numbers, separated by commas"
        raise InputError(name, rule, ",".join(texts)) from None


def shares(name: str) -> dict[str, float] | None:
    """Parses a flag such as upper:0.05,typos:0.1; None without the flag."""
    texts = FLAGS[name].value
    if not texts:
        return None
    rule = "must list kinds and their shares, each kind once, such as upper:0.05,typos:0.1"
    found = {}
    for text in texts:
        kind, _, share = text.partition(":")
        require(kind not in found, name, rule, ",".join(texts))
        try:
            found[kind] = float(share)
        except ValueError:
            raise InputError(name, rule, ",".join(texts)) from None
    return found


def demand(names: list[str]) -> None:
    for name in names:
        require(FLAGS[name].value, name, f"must be given with --dataset={FLAGS.dataset}", "none")


def require_company(name: str, others: list[str]) -> None:
    """Rejects a flag that modifies others when none of those is given."""
    is_used = any(FLAGS[other].present for other in others)
    rule = f"must be given with {' or '.join(f'--{other}' for other in others)}"
    require(is_used or not FLAGS[name].present, name, rule, FLAGS[name].value)


def refuse(names: list[str]) -> None:
    for name in names:
        rule = f"must not be given with --dataset={FLAGS.dataset}"
        require(not FLAGS[name].present, name, rule, FLAGS[name].value)


if __name__ == "__main__":
    run(main)
