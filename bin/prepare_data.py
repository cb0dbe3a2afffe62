"""Prepares text as a data directory: vocabulary, shards of records and metadata.

    python bin/prepare_data.py --dataset=files --train_source=train.en --train_target=train.de \\
        --data_dir=data/en-de
    python bin/prepare_data.py --dataset=tfds:wmt14_translate/de-en --source_language=en \\
        --target_language=de --data_dir=data/wmt14
    python bin/prepare_data.py --dataset=treebank --train_trees=02-21.mrg --vocab_size=16000 \\
        --data_dir=data/wsj
    python bin/prepare_data.py --dataset=files --train_source=... --train_target=... \\
        --data_dir=/shared/en-de --runner=beam --pipeline_options="--runner=FlinkRunner ..."

A data directory is written whole or not at all: after an interruption, the same command begins
again. On a complete data set, it checks every file, and names a damaged or missing one.

--help lists the flags for --dataset=files; --dataset=treebank --help those for another data set.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from command.flags import define_flags, flag_values
from command.help import ADVANCED
from command.run import run

from absl import flags

from keras_transformer.support.errors import InputError, require
from pipelines.prepare.preparation import prepare
from pipelines.prepare.preparation_config import PreparationConfig
from pipelines.prepare.selection import SelectionConfig
from pipelines.sources.source_options import OPTION_NAMES, SOURCES, make_source

FLAGS = flags.FLAGS
flags.DEFINE_string("dataset", None, f"One of {', '.join(SOURCES)}.", required=True)
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
ADVANCED.update(("runner", "pipeline_options"))

DATASET_HEADING = "dataset="  # begins the headings of flags for some data sets
# Sources inherit the options that they share, whose flags are defined once.
bases = [base for options in SOURCES.values() for base in options.__mro__]
for group in dict.fromkeys(filter(dataclasses.is_dataclass, bases)):
    datasets = [name for name, options in SOURCES.items() if issubclass(options, group)]
    define_flags(group, f"{DATASET_HEADING}{' or '.join(datasets)}")
SELECTION = "selection of training pairs"
define_flags(SelectionConfig, SELECTION)
define_flags(PreparationConfig, "vocabulary and records")


def main() -> dict[str, Any]:
    values = flag_values(PreparationConfig)
    values["length_limits"] = numbers("length_limits", int)
    values["weights"] = numbers("weights", float)
    rule = "must list kinds and their shares, each kind once, such as upper:0.05,typos:0.1"
    values["augment"] = items("augment", float, rule) if FLAGS.augment else None
    config = PreparationConfig(**values)
    source = make_source(FLAGS.dataset, source_options())
    if FLAGS.runner == "local":
        is_given = FLAGS["pipeline_options"].present
        rule = "must not be given without --runner=beam"
        require(not is_given, "pipeline_options", rule, FLAGS.pipeline_options)
        return prepare(source, FLAGS.data_dir, config)
    from pipelines.prepare.beam import training_writer

    writer = training_writer(FLAGS.pipeline_options.split())
    return prepare(source, FLAGS.data_dir, config, writer)


def source_options() -> dict[str, Any]:
    """Returns the flags on the command line that are options of a source."""
    options = {name: FLAGS[name].value for name in OPTION_NAMES if FLAGS[name].present}
    rule = "must list languages and their files, each once, such as en:train.en,de:train.de"
    for name in ("parallel", "validation_parallel", "test_parallel"):
        if name in options:
            options[name] = items(name, str, rule)
    return options


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


def items(name: str, kind: Callable[[str], Any], rule: str) -> dict[str, Any]:
    """Parses a flag such as upper:0.05,typos:0.1 into a dict.

    Args:
        kind: parses a value.
        rule: the message for wrong text.
    """
    texts = FLAGS[name].value
    parsed = {}
    for text in texts:
        key, _, value = text.partition(":")
        require(key and value and key not in parsed, name, rule, ",".join(texts))
        try:
            parsed[key] = kind(value)
        except ValueError:
            raise InputError(name, rule, ",".join(texts)) from None
    return parsed


def is_relevant(heading: str) -> bool:
    """Whether --help lists the flags under a heading: those for --dataset, by default for files."""
    kind, colon, _ = (FLAGS.dataset or "files").partition(":")
    if heading == SELECTION:
        return kind != "treebank"
    if not heading.startswith(DATASET_HEADING):
        return True
    datasets = heading.removeprefix(DATASET_HEADING).split(" or ")
    return (f"{kind}:NAME" if colon else kind) in datasets


if __name__ == "__main__":
    run(main, is_relevant)
