"""`keras_transformer.prepare`, `train` and `evaluate`: the programs as plain functions.

With `keras_transformer.load`, two text files become translations in a notebook.
"""

import dataclasses
import os
from collections.abc import Collection
from typing import Any

from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.training.run_config import DeviceConfig, LoopConfig
from keras_transformer.support.errors import require
from pipelines.batches.data_set import DataSet
from pipelines.evaluation import EvaluationConfig, evaluate_on
from pipelines.prepare import preparation
from pipelines.prepare.preparation_config import PreparationConfig
from pipelines.sources.source_options import OPTION_NAMES, make_source
from pipelines.sources.text_files import AnyPath, Paths, paths_of
from pipelines.training import train_on


def prepare(
    data_dir: AnyPath,
    train_source: Paths = (),
    train_target: Paths = (),
    *,
    dataset: str = "files",
    **options: Any,
) -> dict[str, Any]:
    """Prepares a data directory: vocabulary, shards of records and metadata.

    Args:
        data_dir: a new or empty folder; or that of the same data set, which is then checked.
        train_source, train_target: with dataset="files", text to train on, one sentence per line.
        dataset: where the pairs come from. "files": parallel text, or files that contain both
            sides. "treebank": files of Penn Treebank trees, for parsing. "tfds:NAME": a data set
            of TensorFlow Datasets, such as "tfds:wmt14_translate/de-en".
        options: the data set's options, which are the fields of the dataclass that SOURCES in
            pipelines/sources/source_options.py has for it, such as validation_source,
            train_trees or source_language; and fields of PreparationConfig, such as
            vocab_size, max_length or dedupe. Each field has a help text.

    Returns:
        Facts about the data set: {"data_dir", "vocab_size", "pairs" of each split, "dropped", ...};
            see pipelines.prepare.preparation.prepare.

    Raises:
        InputError: if an argument or a file is invalid.

    Example:
        prepare("data", "train.en", "train.de", vocab_size=8000)
        prepare("data", dataset="treebank", train_trees="*.mrg", vocab_size=16_000)
    """
    _check_path(data_dir, "data_dir")
    _check_names(options, [*OPTION_NAMES, *_fields(PreparationConfig)])
    texts = {"train_source": train_source, "train_target": train_target}
    source_options = {argument: paths for argument, paths in texts.items() if paths != ()}
    source_options |= {name: options.pop(name) for name in OPTION_NAMES if name in options}
    if "vocabulary" in options:
        options["vocabulary"] = paths_of("vocabulary", options["vocabulary"])
    config = PreparationConfig(**options)
    return preparation.prepare(make_source(dataset, source_options), data_dir, config)


def train(
    data_dir: AnyPath,
    model_dir: AnyPath,
    preset: str | None = None,
    init_from: AnyPath | None = None,
    sample_sentences: int = 100,
    **options: Any,
) -> dict[str, Any]:
    """Trains a model on a data directory, or resumes the run with the same arguments.

    Args:
        data_dir: prepared data.
        model_dir: the folder for checkpoints, curves and settings, created if needed.
        preset: a name in PRESETS. If not given, the model of `init_from`, or else "base".
        init_from: a trained model to initialize the weights from; see `train_on`. With lora_rank=8
            among the options, an adapter is trained for it.
        sample_sentences: number of validation sentences to translate for BLEU.
        options: fields of TransformerConfig, TrainingConfig, LoopConfig or DeviceConfig, such as
            train_steps=20_000, train_minutes=30, tokens_per_batch=4096 or num_layers=2.

    Returns:
        The state of the run: {"step", "minutes", "stopped", "loss", "perplexity", "checkpoint",
            "best", ...}; see keras_transformer.core.training.loop.train.

    Raises:
        InputError: if an argument or a file is invalid. KeyboardInterrupt: on Ctrl-C, after the
            steps under way were saved.
    """
    _check_path(data_dir, "data_dir")
    _check_path(model_dir, "model_dir")
    kinds = (TransformerConfig, TrainingConfig, LoopConfig, DeviceConfig)
    _check_names(options, [name for kind in kinds for name in _fields(kind)])
    loop = {name: options.pop(name) for name in _fields(LoopConfig) if name in options}
    devices = {name: options.pop(name) for name in _fields(DeviceConfig) if name in options}
    return train_on(
        data_dir,
        model_dir,
        preset=preset,
        settings=options,
        init_from=init_from,
        loop=LoopConfig(**loop),
        devices=DeviceConfig(**devices),
        sample_sentences=sample_sentences,
    )


def evaluate(
    model_dir: AnyPath,
    data_dir: AnyPath,
    split: str = "test",
    checkpoint: str | None = None,
    limit: int | None = None,
    output: str | None = None,
    tokenize: str | None = None,
    lowercase: bool = False,
    choose_alpha: bool = False,
    adapter: AnyPath | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Scores a trained model on a split of a data directory.

    A model directory stores the results, if all sentences were translated.

    Args:
        model_dir: a model directory, or another path that `keras_transformer.load` takes.
        data_dir: prepared data, with the model's vocabulary.
        split: "validation" or "test". The text of "train" is not kept.
        checkpoint: which weights to use; see `keras_transformer.load`.
        limit: maximum number of sentences to translate per direction; perplexity covers all.
        output: a file for the translations, one per line.
        tokenize: sacreBLEU's tokenization; "13a" if not given.
        lowercase: whether to ignore case.
        choose_alpha: whether to first choose the length penalty on the validation split. A model
            directory stores it, so that `keras_transformer.load` uses it.
        adapter: an adapter to add to the model; see `keras_transformer.load`. Its directory stores
            the results.
        options: search options; see `keras_transformer.load`.

    Returns:
        {"bleu", "chrf", "perplexity", "sentences", "seconds", ...}; see evaluate_on.

    Raises:
        InputError: if an argument or a file is invalid.
    """
    from keras_transformer.loading import translator_of
    from keras_transformer.use.store.decoding import check_options
    from keras_transformer.use.store.model_path import ModelPath
    from keras_transformer.use.store.opening import open_model

    _check_path(data_dir, "data_dir")
    check_options(options)
    config = EvaluationConfig(split, limit, output, tokenize, lowercase, choose_alpha=choose_alpha)
    config.check_alpha(options.get("alpha"))
    data = DataSet.open(data_dir)
    config.check(data)
    stored = open_model(ModelPath(model_dir, checkpoint, adapter, argument="model_dir"))
    return evaluate_on(
        data,
        translator_of(stored, {"n_best": 1, **options}, needs_tensorflow=choose_alpha),
        config,
        model_dir=stored.results_dir,
        notes={name: _plain(value) for name, value in options.items()},
    )


def _check_path(path: Any, argument: str) -> None:
    require(isinstance(path, str | os.PathLike), argument, "must be a path", repr(path))


def _fields(kind: type) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def _check_names(options: dict[str, Any], names: Collection[str]) -> None:
    for name in options:
        require(name in names, "options", f"must be among {', '.join(names)}", repr(name))


def _plain(value: Any) -> Any:
    """Returns an option as a JSON value."""
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value
