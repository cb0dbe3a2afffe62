"""The description of a model in its directory: config.json and the vocabulary.

config.json       configurations and the vocabulary's fingerprint
*vocabulary.*     the vocabulary, or one for each side: the directory suffices to translate
checkpoints/      see checkpoint_files.py; for an adapter, see adapters.py
checkpoint.json   which weights to use, if not the latest (checkpoint_files.py)
decoding.json     the search options, if any were chosen (store/results.py)
tensorboard/      curves; training_log.jsonl has them as text
lock              held by the process that trains here; see files/locks.py

A run writes config.json and the vocabularies with its first checkpoint. Until then the directory
contains nothing worth keeping: a command that failed because of a wrong setting or too little
memory can be corrected and rerun in the same directory.
"""

import dataclasses
from pathlib import Path
from typing import Any

from keras_transformer.core.config import Task, TrainingConfig, TransformerConfig
from keras_transformer.support.errors import require
from keras_transformer.support.fields import FileName, Length, from_json, shown
from keras_transformer.support.files.json_files import read_json, write_json
from keras_transformer.support.files.locks import LOCK_HOLDER
from keras_transformer.support.files.paths import require_name, to_path
from keras_transformer.support.files.reading import file_digest
from keras_transformer.support.files.replacing import is_temporary, remove_abandoned, write_file

FORMAT_VERSION = 4  # also for checkpoint records

# Fields that are known for each model that was trained or imported.
_TRAINED = {"preset": str, "training": dict, "vocabulary": FileName, "max_length": Length}

# The files that a run writes before its first checkpoint.
_BEGUN = ("lock", "tensorboard", "training_log.jsonl")


@dataclasses.dataclass(frozen=True)
class Base:
    """The model that an adapter was trained for, whose weights it needs."""

    path: str  # a model directory's checkpoint, an export or a .keras file, as found by training
    fingerprint: str  # its weights' fingerprint; see adapters.weights_fingerprint


@dataclasses.dataclass(frozen=True)
class ModelDescription:
    """All that is needed to rebuild a model, and to turn text into its inputs.

    If the training is unknown, preset, training, vocabulary and max_length are None.
    """

    preset: str | None  # the name of the preset, or "imported"
    model: TransformerConfig
    training: TrainingConfig | None
    vocabulary: FileName | None  # in the directory
    vocabulary_fingerprint: str  # SHA-256 of that file
    max_length: Length | None  # of training sentences, in ids with EOS
    # The source vocabulary, if separate, and its fingerprint.
    source_vocabulary: FileName | None = None
    source_vocabulary_fingerprint: str | None = None
    task: Task = "translation"
    # See Linearisation, and language_codes.py.
    task_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    # Source and target, as named by the data set; all languages, if there are several directions.
    languages: list[str] | None = None
    base: Base | None = None  # an adapter's base; None if the checkpoints contain the whole model

    @property
    def vocabulary_files(self) -> list[str]:
        """The names of the vocabularies in the directory: one, or one for each side."""
        names = [self.vocabulary, self.source_vocabulary]
        return [name for name in names if name is not None]

    @property
    def fingerprints(self) -> dict[str, str | None]:
        """Those of the vocabularies that it was trained with, as VocabularyPair names them."""
        return {
            "vocabulary_fingerprint": self.vocabulary_fingerprint,
            "source_vocabulary_fingerprint": self.source_vocabulary_fingerprint,
        }

    def flat(self) -> dict[str, Any]:
        """Returns all fields except `base` by name, including those of both configurations."""
        fields = dataclasses.asdict(self)
        del fields["base"]  # known by its fingerprint; its path may change
        model, training = fields.pop("model"), fields.pop("training")
        return {**fields, **model, **training}


def describe_unknown_training(
    model: TransformerConfig,
    fingerprints: dict[str, str | None],
    task: Task = "translation",
    task_options: dict[str, Any] | None = None,
) -> ModelDescription:
    """Describes a model whose training is unknown, as that of a .keras file alone is.

    Args:
        model: its configuration.
        fingerprints: those of its vocabularies; see VocabularyPair.
        task, task_options: as in a ModelDescription.
    """
    return ModelDescription(
        preset=None,
        model=model,
        training=None,
        vocabulary=None,
        max_length=None,
        task=task,
        task_options=task_options or {},
        **fingerprints,
    )


def create_or_check(
    model_dir: str | Path, description: ModelDescription, data_dir: str | Path
) -> None:
    """Creates a model directory, or checks that an existing one is for the same model.

    Args:
        model_dir: the directory, which need not exist.
        description: the model, its training and its vocabulary.
        data_dir: the folder to copy the vocabulary from.

    Raises:
        InputError: if the directory contains another model, or anything else.
    """
    check_model_dir(model_dir, description)
    model_dir = to_path(model_dir)
    model_dir.mkdir(parents=True, exist_ok=True)
    if not (model_dir / "config.json").exists():
        content = {"format_version": FORMAT_VERSION, **dataclasses.asdict(description)}
        write_json(model_dir / "config.json", content)
    copy_vocabularies(model_dir, description, data_dir)


def copy_vocabularies(
    model_dir: str | Path, description: ModelDescription, data_dir: str | Path
) -> None:
    """Copies vocabularies that a model directory lacks from the data."""
    for name in description.vocabulary_files:
        if not (to_path(model_dir) / name).exists():
            write_file(to_path(model_dir) / name, (to_path(data_dir) / name).read_bytes())


def check_model_dir(
    model_dir: str | Path, description: ModelDescription, argument: str = "model_dir"
) -> None:
    """Raises InputError if training of a model can neither start nor resume in a directory.

    The directory may be new or empty, may contain a run that ended before its first checkpoint, or
    the same model. In the last case, vocabularies may be missing, but must not differ.

    Args:
        model_dir: the directory.
        description: the model to train.
        argument: the directory's name in errors.
    """
    require_name(model_dir, argument)
    model_dir = to_path(model_dir)
    if (model_dir / "config.json").exists():
        _check_same(model_dir, description, argument)
        _check_vocabularies(model_dir, description)
        return
    rule = "must be new or empty, or a model directory from training"
    received = f"{model_dir}, which contains something else"
    require(_is_free(model_dir) or _is_begun(model_dir), argument, rule, received)


def _is_free(model_dir: Path) -> bool:
    return not model_dir.exists() or (model_dir.is_dir() and not any(model_dir.glob("*")))


def _is_begun(model_dir: Path) -> bool:
    """Whether a directory contains only what a run writes before its first checkpoint."""
    if not model_dir.is_dir() or not (model_dir / "lock").is_file():
        return False
    holder = (model_dir / "lock").read_bytes()
    is_own_lock = not holder or holder.startswith(LOCK_HOLDER)
    names = [path.name for path in model_dir.glob("*")]
    others = [name for name in names if name not in _BEGUN]
    return is_own_lock and all(_is_unfinished(name) for name in others)


def _is_unfinished(name: str) -> bool:
    """Whether a name is that of a file that a run is rewriting."""
    return is_temporary(name, "config.json") or is_temporary(name, "training_log.jsonl")


def remove_unfinished_files(model_dir: str | Path, description: ModelDescription) -> None:
    """Removes unfinished files that a killed run left in its directory."""
    for name in ("config.json", "training_log.jsonl", *description.vocabulary_files):
        remove_abandoned(to_path(model_dir) / name)


def _check_same(model_dir: Path, description: ModelDescription, argument: str) -> None:
    existing_description = read_description(model_dir, argument)
    existing = existing_description.flat()
    wanted = description.flat()
    differences = [
        f"another {name.removesuffix('_fingerprint')}"
        if name.endswith("fingerprint")
        else f"{name}: {existing[name]}, not {wanted[name]}"
        for name in existing
        if existing[name] != wanted[name] and name != "languages"  # names are not part of the model
    ]
    if existing["preset"] != wanted["preset"]:
        advice = f"preset={existing['preset']}"
    else:
        advice = "the data and settings it has"
    rule = "must be new or contain the requested model"
    received = f"{model_dir}, which has {'; '.join(differences)}. Choose another directory"
    require(not differences, argument, rule, f"{received}, or {advice}")
    if description.base is not None:
        require_same_base(model_dir, existing_description.base, description.base, "init_from")


def _check_vocabularies(model_dir: Path, description: ModelDescription) -> None:
    """Raises InputError if a vocabulary in a directory is not the model's."""
    fingerprints = {description.vocabulary: description.vocabulary_fingerprint}
    if description.source_vocabulary is not None:
        fingerprints[description.source_vocabulary] = description.source_vocabulary_fingerprint
    for name, fingerprint in fingerprints.items():
        file = model_dir / name
        rule = "must be the vocabulary of the model and its data: remove it, and it is copied"
        is_same = not file.exists() or file_digest(file) == fingerprint
        require(is_same, None, f"{rule} from the data again", "another file", file)


def require_same_base(
    model_dir: str | Path, base: Base, other: Base, argument: str, place: Path | None = None
) -> None:
    """Raises InputError if a model is not the one that an adapter was trained for.

    Args:
        model_dir: the adapter's directory.
        base: the model that the adapter was trained for, from the adapter's config.json.
        other: the model to use instead.
        argument, place: the parts of the error; see InputError.
    """
    trained_for = f"the weights that the adapter in {model_dir} was trained for"
    rule = f"must have {trained_for}, those of {base.path}"
    received = f"{other.path}, which has different ones"
    require(other.fingerprint == base.fingerprint, argument, rule, received, place)


def require_new(model_dir: str | Path) -> None:
    """Raises InputError if a new model directory would overwrite existing files."""
    require_name(model_dir, "model_dir")
    model_dir = to_path(model_dir)
    require(_is_free(model_dir), "model_dir", "must not exist yet, or be empty", model_dir)


def read_description(model_dir: str | Path, argument: str = "model_dir") -> ModelDescription:
    """Reads config.json.

    Args:
        model_dir: a model directory from training.
        argument: its name in errors.

    Raises:
        InputError: if it is missing, damaged or of another version.
    """
    require_name(model_dir, argument)
    path = to_path(model_dir) / "config.json"
    rule = "must be a model directory from training"
    require(path.exists(), argument, rule, f"{model_dir}, which has no config.json")
    content = read_json(path)
    rule = "must be a model directory: import this one with import_model, as its path"
    is_hugging_face = "format_version" not in content and "model_type" in content
    received = f"{model_dir}, a model in Hugging Face's format"
    require(not is_hugging_face, argument, rule, received)
    version = content.pop("format_version", None)
    rule = f"must be {FORMAT_VERSION}"
    require(version == FORMAT_VERSION, "format_version", rule, version, path)
    description = from_json(ModelDescription, content, path)
    from_json(_TRAINED, content, path)
    fits = (description.base is not None) == (description.training.lora_rank is not None)
    rule = "must be given if and only if training.lora_rank is"
    require(fits, "base", rule, shown(content.get("base")), path)
    return description
