"""Trains a model on a prepared data directory: everything before the training loop."""

import contextlib
import dataclasses
import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from keras_transformer.core.config import DROPOUTS, TransformerConfig, replace_settings
from keras_transformer.core.presets import preset as configurations_of
from keras_transformer.core.training.model_directory import (
    Base,
    ModelDescription,
    check_model_dir,
    copy_vocabularies,
    create_or_check,
    remove_unfinished_files,
)
from keras_transformer.core.training.run_config import DeviceConfig, LoopConfig
from keras_transformer.core.vocabulary.language_codes import source_languages_of
from keras_transformer.support.errors import InputError, lacks_memory, reason, require
from keras_transformer.support.files.locks import locked
from keras_transformer.support.files.paths import to_path
from keras_transformer.use.store.model_path import ModelPath
from keras_transformer.use.store.opening import open_model
from keras_transformer.use.store.stored_model import StoredModel
from pipelines.batches.data_set import DataSet
from pipelines.prepare.metadata import Metadata

if TYPE_CHECKING:  # modules with TensorFlow, imported by functions on demand
    import keras

    from keras_transformer.core.training.data import TrainingData

EVALUATION_TOKENS = 4096  # padded tokens per side in a validation batch


def train_on(
    data_dir: str | os.PathLike,
    model_dir: str | os.PathLike,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    init_from: str | os.PathLike | None = None,
    loop: LoopConfig | None = None,
    devices: DeviceConfig | None = None,
    sample_sentences: int = 100,
) -> dict[str, Any]:
    """Trains a model on a data directory, or resumes the run with the same arguments.

    Checks that do not need TensorFlow run before it is imported.

    Args:
        data_dir: prepared data.
        model_dir: the folder for checkpoints, curves and settings, created if needed.
        preset: a name in PRESETS. If not given, the model of `init_from`, or else "base".
        settings: values that override fields of TransformerConfig or TrainingConfig, by name, such
            as {"num_layers": 2, "tokens_per_batch": 4096}.
        init_from: a model directory, a checkpoint, an export or a .keras file to initialize the
            weights from; from a deeper model, it takes some of the layers. With the setting
            lora_rank, it is the base of an adapter, and only the adapter is trained; the model
            directory then contains the adapter and the path of its base.
        loop: when the run stops, saves and reports; LoopConfig() by default.
        devices: where it runs; DeviceConfig(), the first GPU or the CPU, by default.
        sample_sentences: number of validation sentences to translate, or parse, at each validation
            for BLEU or F1; 0 for none.

    Returns:
        The state of the run: {"step", "minutes", "stopped", "loss", "perplexity", "checkpoint",
        "best", ...}; see keras_transformer.core.training.loop.train.

    Raises:
        InputError: if an argument or a file is invalid.
        OSError: if a file cannot be written. KeyboardInterrupt: on Ctrl-C, after the running steps
            were saved.
    """
    loop = LoopConfig() if loop is None else loop
    devices = DeviceConfig() if devices is None else devices
    data_set = DataSet.open(data_dir)
    loop.check_measured(_measured(data_set.metadata, sample_sentences))
    description = _describe(data_set.metadata, preset, settings or {}, init_from)
    _check_positions(data_set, description.model)
    check_model_dir(model_dir, description)

    from keras_transformer.core.training.loop import train
    from keras_transformer.core.training.strategy import (
        make_cluster,
        make_repeatable,
        make_strategy,
        uses_xla,
    )
    from keras_transformer.core.training.workers.addresses import own_addresses

    addresses = own_addresses() if devices.strategy == "multi_worker" else None
    strategy = make_strategy(devices.strategy, devices.replicas, addresses, devices.connect_seconds)
    if description.training.lora_rank is not None:
        base = _base(_opened(init_from), description)
        description = dataclasses.replace(description, base=base)
    with contextlib.ExitStack() as contexts:
        cluster = contexts.enter_context(make_cluster(addresses, model_dir))
        same = _same_on_every_worker(data_set.metadata, description, loop, devices, init_from)
        xla = "on" if uses_xla(loop.xla, devices.replicas) else "off"
        replicas = strategy.num_replicas_in_sync
        cluster.require_same({**same, "xla": xla, "replicas": replicas})
        make_repeatable(description.training.seed, devices.deterministic)
        if xla == "on":
            batches = _packed_batches(data_set, description, replicas)
        else:
            batches = _batches(data_set, description)
        data = _with_validation(batches, data_set, description, sample_sentences)
        contexts.enter_context(data_set.damage_named())
        tokens = description.training.tokens_per_batch
        contexts.enter_context(_explain_out_of_memory(model_dir, tokens))
        if cluster.is_chief:
            contexts.enter_context(locked(to_path(model_dir) / "lock", "model_dir"))
            check_model_dir(model_dir, description)  # now that no other process can change it
            remove_unfinished_files(model_dir, description)
            if (to_path(model_dir) / "config.json").exists():  # a directory from an earlier run
                copy_vocabularies(model_dir, description, data_dir)
        return train(
            description.model,
            description.training,
            data,
            model_dir,
            loop,
            strategy,
            cluster,
            initialize=_initialization(init_from, data_set, description.base),
            describe=lambda: create_or_check(model_dir, description, data_dir),
        )


@contextlib.contextmanager
def _explain_out_of_memory(model_dir: str | os.PathLike, tokens_per_batch: int) -> Iterator[None]:
    """In the block, makes errors name the device's lack of memory, or the disk's lack of space.

    Raises:
        InputError: for lack of memory. OSError: for lack of disk space.
    """
    import tensorflow as tf

    try:
        yield
    except (OSError, tf.errors.ResourceExhaustedError) as error:
        if lacks_memory(error):
            rule = "must be small enough for the device's memory, or computed in more parts "
            rule += "(accumulate_steps)"
            received = f"{tokens_per_batch} ({reason(error)})"
            raise InputError("tokens_per_batch", rule, received) from None
        no_room = os.strerror(errno.ENOSPC)
        if no_room in str(error) and getattr(error, "filename", None) is None:
            error = OSError(errno.ENOSPC, no_room, str(model_dir))
            error.add_note("the training curves and log need space")
            raise error from None
        raise


def _measured(metadata: Metadata, sample_sentences: int) -> list[str]:
    """Returns the metrics that a validation measures, which may select the best checkpoint."""
    if "validation" not in metadata.splits:
        return []
    if sample_sentences <= 0:
        return ["loss"]
    return ["loss", "f1" if metadata.task == "parsing" else "bleu"]


def _describe(
    metadata: Metadata,
    preset: str | None,
    settings: Mapping[str, Any],
    init_from: str | os.PathLike | None,
) -> ModelDescription:
    """Describes the model to train, and its training; see train_on."""
    name = preset or "base"
    model, training = configurations_of(name, metadata.vocab_size)
    if preset is None and init_from is not None:
        initial = _opened(init_from).description
        rule = "must be given for a .keras file without its model directory"
        require(initial is not None, "preset", rule, f"init_from={init_from}")
        name, model = initial.preset or "imported", initial.model
        _check_codes(metadata, initial)
    is_adapter = settings.get("lora_rank") is not None
    if is_adapter:
        _check_base(preset, init_from)
    else:
        model = dataclasses.replace(
            model, vocab_size=metadata.vocab_size, source_vocab_size=metadata.source_vocab_size
        )
    model, training = replace_settings(model, training, settings)
    return ModelDescription(
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
        languages=metadata.languages,
    )


def _check_codes(metadata: Metadata, initial: ModelDescription) -> None:
    """Raises InputError if sources lack the codes that the initial model reads."""
    needed = source_languages_of(initial.task_options)
    rule = "must be prepared with source_codes, as the model of init_from reads both languages"
    has_codes = bool(source_languages_of(metadata.task_options))
    require(has_codes or not needed, "data_dir", rule, "without them")


def _check_positions(data_set: DataSet, model: TransformerConfig) -> None:
    """Raises InputError if a model has fewer learned positions than a sentence has ids."""
    if model.longest_text is None:
        return
    for split, info in data_set.metadata.splits.items():
        place = f"{split} in {data_set.data_dir}"
        rule = f"must be at least {info.longest}, the longest sentence of {place}"
        require(info.longest <= model.longest_text, "max_positions", rule, model.longest_text)


def _check_base(preset: str | None, init_from: str | os.PathLike | None) -> None:
    """Raises InputError if an adapter cannot be trained for a model."""
    rule = "must be used with init_from, the model to train the adapter for"
    require(init_from is not None, "lora_rank", rule, "no init_from")
    rule = "must not be given with lora_rank: init_from determines the model"
    require(preset is None, "preset", rule, preset)
    rule = "must be a whole model for lora_rank; export the adapter, and use the export"
    is_whole = not _opened(init_from).is_adapter
    require(is_whole, "init_from", rule, f"{init_from}, an adapter")


def _opened(init_from: str | os.PathLike) -> StoredModel:
    """Opens a run's initial model; a resumed run with a preset does not need it any more."""
    return open_model(ModelPath(init_from, argument="init_from"))


def _base(initial: StoredModel, description: ModelDescription) -> Base:
    """Describes the model to train an adapter for.

    Raises:
        InputError: if it lacks some weights of the described model, which an adapter would not
            contain.
    """
    from keras_transformer.core.training.adapters import weights_fingerprint
    from keras_transformer.use.adapt.warm_start import check_same_layers

    trained = initial.restore()
    check_same_layers(trained.model.config, description.model, may_differ=DROPOUTS)
    for name, fingerprint in trained.vocabularies.fingerprints.items():
        rule = "must have the vocabulary of init_from to train an adapter"
        require(getattr(description, name) == fingerprint, "data_dir", rule, f"another {name}")
    return Base(initial.path_of(trained.card.checkpoint), weights_fingerprint(trained.model))


def _same_on_every_worker(
    metadata: Metadata,
    description: ModelDescription,
    loop: LoopConfig,
    devices: DeviceConfig,
    init_from: str | os.PathLike | None,
) -> dict[str, Any]:
    """Lists what must be the same on every worker, as JSON values by argument."""
    content = json.dumps(dataclasses.asdict(metadata), sort_keys=True, default=str)
    return {
        **description.flat(),
        **dataclasses.asdict(loop),
        "deterministic": devices.deterministic,
        "init_from": None if init_from is None else os.fspath(init_from),
        "base": None if description.base is None else description.base.fingerprint,
        "data_dir": hashlib.sha256(content.encode()).hexdigest()[:16],
    }


def _initialization(
    init_from: str | os.PathLike | None, data_set: DataSet, base: Base | None
) -> "Callable[[keras.Model], None]":
    """Makes the function that initializes a new model from `init_from`, if given."""
    from keras_transformer.core.training.adapters import copy_base
    from keras_transformer.use.adapt.warm_start import carry_over

    def warm_start(model: "keras.Model") -> None:
        trained = _opened(init_from).restore()
        carry_over(trained.model, trained.vocabularies, model, data_set.vocabularies())

    def read_base(model: "keras.Model") -> None:
        copy_base(open_model(ModelPath(base.path)).restore().model, model)

    def keep_initial_weights(model: "keras.Model") -> None:
        pass

    if base is not None:
        return read_base
    return keep_initial_weights if init_from is None else warm_start


def _batches(data_set: DataSet, description: ModelDescription) -> "TrainingData":
    """Makes training batches of sentences of similar lengths."""
    from keras_transformer.core.training.data import TrainingData

    training = description.training
    batches = data_set.training_batches(training.tokens_per_batch, training.seed)
    info = data_set.split("train")
    return TrainingData(batches, longest=info.longest, target_tokens=info.target_tokens)


def _packed_batches(
    data_set: DataSet, description: ModelDescription, replicas: int
) -> "TrainingData":
    """Makes training batches of one shape, for XLA."""
    from keras_transformer.core.training.data import TrainingData

    training = description.training
    batches = data_set.packed_training_batches(
        training.tokens_per_batch,
        training.seed,
        parts=replicas * training.accumulate_steps,
        extra_target=int(description.model.decoder_reads_code),
    )
    info = data_set.split("train")
    return TrainingData(
        batches, packed=True, longest=info.longest, target_tokens=info.target_tokens
    )


def _with_validation(
    data: "TrainingData", data_set: DataSet, description: ModelDescription, sample_sentences: int
) -> "TrainingData":
    """Adds data from the validation split, if there is one."""
    from keras_transformer.kit.figures.pictures import attention_images
    from keras_transformer.use.evaluate.sample import SampleAnswers, SampleTask

    metadata = data_set.metadata
    if "validation" not in metadata.splits:
        return data
    validation = data_set.evaluation_batches("validation", EVALUATION_TOKENS)
    data = dataclasses.replace(data, validation=validation)
    if sample_sentences <= 0:
        return data
    sources, references = data_set.text("validation")
    task = SampleTask()
    if metadata.task == "parsing":
        from keras_transformer.kit.parsing.sample import parsing_sample

        references = data_set.trees("validation")
        task = parsing_sample(metadata.task_options)
    sample = SampleAnswers(
        data_set.vocabularies(),
        sources,
        references,
        sample_sentences,
        metadata.max_length,
        task,
        data_set.directions("validation"),
    )
    draw_sample = attention_images(sample)
    return dataclasses.replace(data, translate_sample=sample, draw_sample=draw_sample)
