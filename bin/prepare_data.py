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
from pipelines.many_languages import make_file_source
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
# Of one model of several directions; the names of those of training are without the split.
TARGET_LANGUAGE_FLAGS = {
    "train": "target_languages",
    "validation": "validation_target_languages",
    "test": "test_target_languages",
}
PARALLEL_FLAGS = {
    "train": "parallel",
    "validation": "validation_parallel",
    "test": "test_parallel",
}
MANY_LANGUAGES_FLAGS = [*TARGET_LANGUAGE_FLAGS.values(), *PARALLEL_FLAGS.values(), "directions"]
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
    flags.DEFINE_list(flag, None, "dataset=files: plain, .gz or .zst, by commas, or patterns.")
for flag in PAIR_FLAGS:
    pairs_help = f"dataset=files: files of both sides, {', '.join(READERS)}, by commas."
    flags.DEFINE_list(flag, None, pairs_help)
EXAMPLES = ("source language, e.g. en", "target language, e.g. de")
for flag, example in zip(LANGUAGE_FLAGS, EXAMPLES, strict=True):
    flags.DEFINE_string(flag, None, f"dataset=tfds:NAME, or files of both sides: the {example}.")
flags.DEFINE_list(
    "target_languages",
    None,
    "One model of several directions: the language of each file of --train_target, e.g. de,cs,en.",
)
for split in ("validation", "test"):
    languages_help = f"The same of --{split}_target; --target_languages if not given."
    flags.DEFINE_list(f"{split}_target_languages", None, languages_help)
flags.DEFINE_list(
    "parallel",
    None,
    "One model of several directions: the same text in each language, in place of --train_source "
    "and --train_target, e.g. en:train.en,de:train.de,cs:train.cs.",
)
for split in ("validation", "test"):
    flags.DEFINE_list(f"{split}_parallel", None, f"--parallel: the same of the {split} split.")
flags.DEFINE_list("directions", None, "--parallel: e.g. en-de,de-cs; all if not given.")
flags.DEFINE_string("tfds_data_dir", None, "dataset=tfds:NAME: the folder of TFDS.")
flags.DEFINE_integer("grammar_pairs", 100_000, "dataset=grammar: number of training pairs.")
for split in SPLITS:
    trees_help = "dataset=treebank: Penn Treebank brackets, comma-separated."
    flags.DEFINE_list(f"{split}_trees", None, trees_help)
flags.DEFINE_enum("tree_words", "xx", WORDS, "dataset=treebank: words in targets.")
flags.DEFINE_enum(
    "tree_unaries", "keep", UNARIES, "dataset=treebank: (S (VP stays or becomes (S+VP."
)
# Which training pairs are used, and how often.
flags.DEFINE_bool("dedupe", False, "Leaves out pairs that have occurred before.")
flags.DEFINE_list(
    "length_limits",
    None,
    "FEWEST,MOST words of a side: leaves out pairs with a shorter or a longer one.",
)
flags.DEFINE_float(
    "length_ratio",
    None,
    "Leaves out pairs with a side of more than this many times the words of the other.",
)
flags.DEFINE_enum(
    "length_unit",
    "words",
    ["words", "characters"],
    "What these lengths count; characters are for languages without spaces.",
)
flags.DEFINE_bool("drop_identical", False, "Leaves out pairs of equal sides, in any case.")
flags.DEFINE_list(
    "scripts",
    None,
    "SOURCE,TARGET, e.g. Latin,Han+Hiragana+Katakana: leaves out pairs with a side in others.",
)
flags.DEFINE_float("script_share", 0.5, "Smallest share of a side's letters in its --scripts.")
flags.DEFINE_float(
    "number_overlap",
    None,
    "Leaves out pairs if a smaller share of their numbers is on both sides; 1: all must be.",
)
flags.DEFINE_list(
    "weights",
    None,
    "How often an epoch has each pair of the first file of --train_source, the second, ...",
)
flags.DEFINE_float(
    "temperature",
    None,
    "In place of --weights: a training file of n pairs has a share that is proportional to "
    "n^(1/T); the largest is used once. 5 is usual for languages with little text.",
)
flags.DEFINE_list(
    "augment",
    None,
    "Training pairs to add, as shares of all, e.g. upper:0.05,typos:0.1: copies in capitals "
    "(upper), in title case (title), with typos in the source (typos), without the last full stop "
    "(no_stop), and pairs of single words (words).",
)
# The vocabulary, and the records.
flags.DEFINE_enum(
    "tokenizer",
    "bpe",
    list(SUFFIXES),
    "Kind of vocabulary; pieces is that of imported models, and goes with --vocabulary.",
)
flags.DEFINE_integer(
    "vocab_size",
    None,
    "Ids of a vocabulary, special ones included. 37000 if not given, or those of --vocabulary.",
)
flags.DEFINE_list(
    "vocabulary",
    [],
    "A SentencePiece model to use, or SOURCE,TARGET of two; none: learn from the text.",
)
flags.DEFINE_bool("shared_vocabulary", True, "One vocabulary for both sides, or one for each.")
flags.DEFINE_integer("max_length", 256, "Largest number of ids per side of a pair, EOS included.")
flags.DEFINE_integer(
    "seed",
    1,
    "Seed of the order of pairs and of what is sampled.",
    lower_bound=0,
    upper_bound=LARGEST_SEED,
)
flags.DEFINE_enum(
    "runner",
    "local",
    ["local", "beam"],
    "Encodes the training pairs with this machine's cores, or as an Apache Beam pipeline.",
)
flags.DEFINE_string(
    "pipeline_options",
    "",
    "runner=beam: flags of Apache Beam, separated by spaces, e.g. --runner=FlinkRunner.",
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
        return file_source()
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


def file_source() -> FileSource:
    files, pair_files = {}, {}
    parallel = {
        split: parallel_files(name) for split, name in PARALLEL_FLAGS.items() if FLAGS[name].present
    }
    for split in SPLITS:
        source, target, pairs = f"{split}_source", f"{split}_target", f"{split}_pairs"
        has_text = FLAGS[source].present or FLAGS[target].present
        has_other_text = FLAGS[pairs].present or parallel
        if has_text or (split == "train" and not has_other_text):
            demand([source, target])
            files[split] = (files_of(source), files_of(target))
        if FLAGS[pairs].present:
            pair_files[split] = files_of(pairs)
    languages = None
    if FLAGS.source_language or FLAGS.target_language:
        demand(LANGUAGE_FLAGS)
        languages = (FLAGS.source_language, FLAGS.target_language)
    target_languages = {
        split: FLAGS[name].value
        for split, name in TARGET_LANGUAGE_FLAGS.items()
        if FLAGS[name].present
    }
    if pair_files and not parallel and not target_languages:
        demand(LANGUAGE_FLAGS)
    return make_file_source(
        files, pair_files, languages, target_languages, parallel, FLAGS.directions
    )


def parallel_files(name: str) -> dict[str, list[str]]:
    """The files of a flag such as en:train.en,de:train.de, by their languages."""
    texts = FLAGS[name].value
    rule = "must be languages and their files, each once, as en:train.en,de:train.de"
    found = {}
    for text in texts:
        language, separator, path = text.partition(":")
        is_new = language not in found
        require(separator and language and path and is_new, name, rule, ",".join(texts))
        found[language] = matching_files(name, [path])
    return found


def treebank_source() -> TreebankSource:
    demand(["train_trees"])
    rule = "must be bpe with --dataset=treebank, which keeps brackets whole"
    require(FLAGS.tokenizer == "bpe", "tokenizer", rule, FLAGS.tokenizer)
    files = {}
    for split in SPLITS:
        if FLAGS[f"{split}_trees"].value is not None:
            files[split] = files_of(f"{split}_trees")
    return TreebankSource(files, Linearisation(FLAGS.tree_words, FLAGS.tree_unaries))


def files_of(name: str) -> list[str]:
    """The files that a flag names, also by patterns."""
    return matching_files(name, FLAGS[name].value)


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
