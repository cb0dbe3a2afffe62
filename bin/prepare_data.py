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
from pipelines.file_arguments import file_source
from pipelines.pair_files import READERS
from pipelines.preparation import prepare
from pipelines.preparation_config import PreparationConfig
from pipelines.selection import SelectionConfig
from pipelines.sources import FileSource, GrammarSource, Source
from pipelines.text_files import matching_files
from pipelines.tfds_source import TfdsSource
from pipelines.treebank import TreebankSource

SPLITS = ("train", "validation", "test")
TEXT_FLAGS = [f"{split}_{side}" for split in SPLITS for side in ("source", "target")]
PAIR_FLAGS = [f"{split}_pairs" for split in SPLITS]
MANY_LANGUAGES_FLAGS = [
    "target_languages",
    "validation_target_languages",
    "test_target_languages",
    "parallel",
    "validation_parallel",
    "test_parallel",
    "directions",
]
FILE_FLAGS = TEXT_FLAGS + PAIR_FLAGS + MANY_LANGUAGES_FLAGS
LANGUAGE_FLAGS = ["source_language", "target_language"]
GRAMMAR_FLAGS = ["grammar_pairs"]
TFDS_FLAGS = ["tfds_data_dir"]
TREEBANK_FLAGS = [*(f"{split}_trees" for split in SPLITS), "tree_words", "tree_unaries"]
SELECTION_FLAGS = [field.name for field in dataclasses.fields(SelectionConfig)]

FLAGS = flags.FLAGS
flags.DEFINE_string("dataset", None, "files, grammar, treebank or tfds:NAME.", required=True)
flags.DEFINE_string("data_dir", None, "Folder that the data set is written to.", required=True)
for flag in TEXT_FLAGS:
    text_help = (
        "dataset=files: text with a sentence per line, plain, .gz or .zst; files or patterns, "
        "separated by commas."
    )
    flags.DEFINE_list(flag, None, text_help)
for flag in PAIR_FLAGS:
    pairs_help = (
        f"dataset=files: files that hold both sides ({', '.join(READERS)}), separated by commas."
    )
    flags.DEFINE_list(flag, None, pairs_help)
EXAMPLES = ("source language, e.g. en", "target language, e.g. de")
for flag, example in zip(LANGUAGE_FLAGS, EXAMPLES, strict=True):
    language_help = f"dataset=tfds:NAME, and files that hold both sides: the {example}."
    flags.DEFINE_string(flag, None, language_help)
flags.DEFINE_list(
    "target_languages",
    None,
    "For one model of several directions: the language of each file of --train_target, e.g. "
    "de,cs,en.",
)
for split in ("validation", "test"):
    languages_help = f"The language of each file of --{split}_target; default: --target_languages."
    flags.DEFINE_list(f"{split}_target_languages", None, languages_help)
flags.DEFINE_list(
    "parallel",
    None,
    "For one model of several directions: the same text in each language, instead of "
    "--train_source and --train_target, e.g. en:train.en,de:train.de,cs:train.cs.",
)
for split in ("validation", "test"):
    flags.DEFINE_list(f"{split}_parallel", None, f"Like --parallel, for the {split} split.")
flags.DEFINE_list(
    "directions", None, "Directions of --parallel to train, e.g. en-de,de-cs; default: all."
)
flags.DEFINE_string("tfds_data_dir", None, "dataset=tfds:NAME: the folder of TFDS.")
flags.DEFINE_integer("grammar_pairs", 100_000, "dataset=grammar: number of training pairs.")
for split in SPLITS:
    trees_help = "dataset=treebank: files in Penn Treebank brackets, separated by commas."
    flags.DEFINE_list(f"{split}_trees", None, trees_help)
flags.DEFINE_enum("tree_words", "xx", WORDS, "dataset=treebank: what stands for words in targets.")
flags.DEFINE_enum(
    "tree_unaries",
    "keep",
    UNARIES,
    "dataset=treebank: keep chains of unary brackets, (S (VP, or collapse them to one, (S+VP.",
)
HELP = {field.name: field.metadata["help"] for field in dataclasses.fields(PreparationConfig)}
# Which training pairs are used, and how often.
flags.DEFINE_bool("dedupe", False, HELP["dedupe"])
flags.DEFINE_list("length_limits", None, HELP["length_limits"])
flags.DEFINE_float("length_ratio", None, HELP["length_ratio"])
flags.DEFINE_enum("length_unit", "words", ["words", "characters"], HELP["length_unit"])
flags.DEFINE_bool("drop_identical", False, HELP["drop_identical"])
flags.DEFINE_list("scripts", None, HELP["scripts"])
flags.DEFINE_float("script_share", 0.5, HELP["script_share"])
flags.DEFINE_float("number_overlap", None, HELP["number_overlap"])
flags.DEFINE_list("weights", None, HELP["weights"])
flags.DEFINE_float("temperature", None, HELP["temperature"])
flags.DEFINE_list("augment", None, HELP["augment"])
# The vocabulary, and the records.
flags.DEFINE_enum("tokenizer", "bpe", list(SUFFIXES), HELP["tokenizer"])
flags.DEFINE_integer("vocab_size", None, HELP["vocab_size"])
flags.DEFINE_list("vocabulary", [], HELP["vocabulary"])
flags.DEFINE_bool("shared_vocabulary", True, HELP["shared_vocabulary"])
flags.DEFINE_integer("max_length", 256, HELP["max_length"])
flags.DEFINE_integer("seed", 1, HELP["seed"], lower_bound=0, upper_bound=LARGEST_SEED)
flags.DEFINE_enum(
    "runner",
    "local",
    ["local", "beam"],
    "Encode the training pairs with the cores of this machine, or with an Apache Beam pipeline.",
)
flags.DEFINE_string(
    "pipeline_options",
    "",
    "runner=beam: flags for Apache Beam, separated by spaces, e.g. --runner=FlinkRunner.",
)


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
    """The source that --dataset names; refuses the flags of other sources."""
    if FLAGS.dataset == "files":
        refuse(TFDS_FLAGS + GRAMMAR_FLAGS + TREEBANK_FLAGS)
        return files()
    if FLAGS.dataset == "grammar":
        refuse(FILE_FLAGS + LANGUAGE_FLAGS + TFDS_FLAGS + TREEBANK_FLAGS)
        return GrammarSource(FLAGS.grammar_pairs, FLAGS.seed)
    if FLAGS.dataset == "treebank":
        refuse(FILE_FLAGS + LANGUAGE_FLAGS + TFDS_FLAGS + GRAMMAR_FLAGS)
        refuse([*SELECTION_FLAGS, "augment"])
        return treebank_source()
    if FLAGS.dataset.startswith("tfds:"):
        refuse(FILE_FLAGS + GRAMMAR_FLAGS + TREEBANK_FLAGS)
        demand(LANGUAGE_FLAGS)
        name = FLAGS.dataset.removeprefix("tfds:")
        return TfdsSource(name, FLAGS.source_language, FLAGS.target_language, FLAGS.tfds_data_dir)
    rule = "must be files, grammar, treebank or tfds:NAME"
    raise InputError("dataset", rule, FLAGS.dataset)


def files() -> FileSource:
    arguments = {}
    for name in [*FILE_FLAGS, *LANGUAGE_FLAGS]:
        if FLAGS[name].present:
            is_parallel = name.endswith("parallel")
            arguments[name] = parallel_files(name) if is_parallel else FLAGS[name].value
    return file_source(**arguments)


def parallel_files(name: str) -> dict[str, str]:
    """The files of a flag such as en:train.en,de:train.de, by their languages."""
    texts = FLAGS[name].value
    rule = "must be languages and their files, each once, as en:train.en,de:train.de"
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
    """The numbers of a flag, which are separated by commas; None without it."""
    texts = FLAGS[name].value
    if not texts:
        return texts
    try:
        return [kind(text) for text in texts]
    except ValueError:
        rule = f"must be {'whole ' if kind is int else ''}numbers, separated by commas"
        raise InputError(name, rule, ",".join(texts)) from None


def shares(name: str) -> dict[str, float] | None:
    """The shares of a flag such as upper:0.05,typos:0.1; None without it."""
    texts = FLAGS[name].value
    if not texts:
        return None
    rule = "must be kinds and their shares, each kind once, as in upper:0.05,typos:0.1"
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
    """Refuses a flag that says how another one is meant, where no such flag is given."""
    is_used = any(FLAGS[other].present for other in others)
    rule = f"must be given with {' or '.join(f'--{other}' for other in others)}"
    require(is_used or not FLAGS[name].present, name, rule, FLAGS[name].value)


def refuse(names: list[str]) -> None:
    for name in names:
        rule = f"must not be given with --dataset={FLAGS.dataset}"
        require(not FLAGS[name].present, name, rule, FLAGS[name].value)


if __name__ == "__main__":
    run(main)
