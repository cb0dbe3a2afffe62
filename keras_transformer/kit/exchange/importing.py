"""Imports models of other toolkits as model directories.

The readers are those of the formats (formats.py). A model's options become fields of
TransformerConfig, and its weights are rearranged for this library (tensor_table.py).
"""

import importlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import logging

from keras_transformer.core.config import SUFFIXES
from keras_transformer.core.vocabulary.language_codes import Direction, options_of
from keras_transformer.core.vocabulary.pair import SEPARATE, SHARED, VocabularyPair
from keras_transformer.kit.exchange.ctranslate2_reader import read_own
from keras_transformer.kit.exchange.foreign_model import ForeignModel, build
from keras_transformer.kit.exchange.formats import FORMATS, format_at
from keras_transformer.kit.exchange.sentencepiece_pieces import Pieces
from keras_transformer.support.errors import require
from keras_transformer.support.files.paths import is_device
from keras_transformer.support.files.replacing import write_file
from keras_transformer.use.store.card import CARD
from keras_transformer.use.store.decoding import ChosenDecoding
from keras_transformer.use.store.directory import write_model_directory
from keras_transformer.use.store.export import CTranslate2Model
from keras_transformer.use.store.languages import find_language, is_language_code
from keras_transformer.use.store.model_path import ModelPath
from keras_transformer.use.store.opening import open_model


def import_model(
    path: Path,
    model_dir: Path,
    languages: Sequence[str] | None = None,
    files: Mapping[str, bytes] | None = None,
) -> dict[str, str | int]:
    """Imports a model of another toolkit as a model directory.

    Args:
        path: the directory or file of the model, in any of the formats that formats.py can read.
        model_dir: the directory to create.
        languages: the codes of source and target, or only the source if the vocabulary has codes
            for the targets. None for those in the model's files, if they have any. A model that
            reads its sources' codes, too, has all of its languages, or the source alone, or only
            this direction.
        files: the content of further files in `model_dir`, by name.

    Returns:
        {"model_dir", "checkpoint", "parameters"}, as write_model_directory.

    Raises:
        InputError: if a file is missing, damaged or a device, the files do not match, the model has
            an unsupported feature, `model_dir` is not empty, or `languages` do not fit the model.
    """
    if format_at(path) == "ctranslate2" and (path / CARD).is_file():
        return import_own(path, model_dir, files)
    foreign = read_model(path)
    model = build(foreign)
    if foreign.notice:
        logging.warning(foreign.notice)
    with tempfile.TemporaryDirectory() as folder:
        names = SHARED if foreign.source is foreign.target else SEPARATE
        for name, pieces in zip(names, (foreign.source, foreign.target), strict=False):
            _write_vocabulary(Path(folder, name + SUFFIXES["pieces"]), pieces)
        vocabularies = VocabularyPair.load(folder)
        codes = vocabularies.source.languages
        # A model with one target language may have its code, but seldom needs it.
        targets = list(codes) if len(codes) > 1 or foreign.needs_code else []
        if foreign.reads_source_code:
            task_options, languages = _options_of_both(languages, targets)
        else:
            task_options, languages = _options_of_targets(foreign, languages, targets)
        return write_model_directory(
            model_dir,
            model,
            vocabularies,
            max_length=foreign.max_length,
            task_options=task_options,
            languages=languages,
            files=files,
        )


def import_own(
    path: Path, model_dir: Path, files: Mapping[str, bytes] | None = None
) -> dict[str, str | int]:
    """Makes a model directory from a .keras file or an export of this library.

    The arguments are those of `import_model`.

    Raises:
        InputError: if there is none, it is damaged or cannot be trained, or `model_dir` is not
            empty.
    """
    stored = open_model(ModelPath(path))
    if isinstance(stored, CTranslate2Model):
        model = build(read_own(path, stored.card.config))
        vocabularies, card = stored.vocabularies(), stored.card
    else:
        trained = stored.restore()
        model, vocabularies, card = trained.model, trained.vocabularies, trained.card
    description, decoding = card.description, card.decoding
    return write_model_directory(
        model_dir,
        model,
        vocabularies,
        max_length=decoding.max_source_length,
        task=description.task,
        task_options=description.task_options,
        languages=description.languages,
        chosen=ChosenDecoding.of(decoding) if stored.is_export else None,
        files=files,
    )


def read_model(path: Path) -> ForeignModel:
    """Reads a model of another toolkit; the arguments and errors are those of `import_model`."""
    for file in path.glob("*"):
        require(not is_device(file), None, "must be a file", "a pipe or a device", file)
    kind = FORMATS[format_at(path)]
    module = importlib.import_module(f"{__package__}.{kind.reader or kind.module}")
    return module.read(path)


def _options_of_both(
    languages: Sequence[str] | None, codes: Sequence[str]
) -> tuple[dict[str, Any], list[str] | None]:
    """Returns the task options of a model whose texts have the codes of both languages.

    Args:
        languages: the source language, or source and target, to restrict the model to; None for
            all of `codes`.
        codes: the languages of the model.

    Returns:
        The task options, and the languages of the only direction, or None.
    """
    known = [find_language(codes, language) for language in languages or []]
    rule = f"must be a source language, or source and target, of {', '.join(codes)}"
    is_right = len(known) <= 2 and None not in known and len(set(known)) == len(known)
    require(is_right, "languages", rule, ",".join(languages or []))
    if len(known) == 2:
        return options_of([Direction(*known)], source_codes=True), known
    return {"target_languages": list(codes), "source_languages": known or list(codes)}, None


def _options_of_targets(
    foreign: ForeignModel, languages: Sequence[str] | None, targets: Sequence[str]
) -> tuple[dict[str, Any], Sequence[str] | None]:
    """Returns the task options of other models, and their languages, as far as they are known."""
    task_options = {"target_languages": targets} if targets else {}
    if languages:
        _check_languages(languages, targets)
    else:
        # A file may also name a group of languages, such as "ROMANCE".
        known = list(foreign.languages[: 1 if targets else 2])
        languages = known if _are_languages(known, targets) else None
    if languages and targets:
        task_options = options_of(Direction(languages[0], target) for target in targets)
        languages = [*languages, *targets]
    return task_options, languages


def _check_languages(languages: Sequence[str], targets: Sequence[str]) -> None:
    """Checks for source and target, or only the source if the model has codes for targets."""
    rule = "must be the source and the target language, such as de,en"
    if targets:
        rule = f"must be only the source language; the model has the targets {', '.join(targets)}"
    require(_are_languages(languages, targets), "languages", rule, ",".join(languages))


def _are_languages(languages: Sequence[str], targets: Sequence[str]) -> bool:
    return len(languages) == (1 if targets else 2) and all(map(is_language_code, languages))


def _write_vocabulary(file: Path, pieces: Pieces) -> None:
    """Writes the pieces in the order of their ids, followed by the SentencePiece model."""
    names = json.dumps(pieces.names).encode()
    write_file(file, names + b"\n" + pieces.sentencepiece_model)
