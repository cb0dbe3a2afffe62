"""Imports Marian models, such as those of OPUS-MT, and M2M-100's kind, as model directories.

There are two formats, Hugging Face's (hugging_face.py) and Marian's own (marian_npz.py). A model's
options become fields of TransformerConfig, and its weights are rearranged for this library
(marian_model.py).
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import logging

from keras_transformer.core.config import SUFFIXES
from keras_transformer.core.vocabulary.language_codes import Direction, options_of
from keras_transformer.core.vocabulary.pair import SEPARATE, SHARED, VocabularyPair
from keras_transformer.kit.exchange.hugging_face import read_hugging_face, read_languages
from keras_transformer.kit.exchange.marian_model import build
from keras_transformer.kit.exchange.marian_npz import read_npz
from keras_transformer.kit.exchange.sentencepiece_pieces import Pieces
from keras_transformer.support.errors import require
from keras_transformer.support.files.paths import is_device
from keras_transformer.support.files.replacing import write_file
from keras_transformer.use.store.directory import write_model_directory
from keras_transformer.use.store.languages import find_language, is_language_code


def import_marian(
    path: Path,
    model_dir: Path,
    languages: Sequence[str] | None = None,
    files: Mapping[str, bytes] | None = None,
) -> dict[str, str | int]:
    """Imports a Marian model as a model directory.

    Args:
        path: the directory of the Marian model, in either format.
        model_dir: the directory to create.
        languages: the codes of source and target, or only the source if the vocabulary has codes
            for the targets. None for those in Hugging Face's files, if they have any; Marian's own
            have none. A model that reads its sources' codes, too, has all of its languages, or the
            source alone, or only this direction.
        files: the content of further files in `model_dir`, by name.

    Returns:
        {"model_dir", "checkpoint", "parameters"}, as write_model_directory.

    Raises:
        InputError: if a file is missing, damaged or a device, the files do not match, the model has
            an unsupported feature, `model_dir` is not empty, or `languages` do not fit the model.
    """
    for file in path.glob("*"):
        require(not is_device(file), None, "must be a file", "a pipe or a device", file)
    is_hugging_face = (path / "config.json").is_file()
    kept = read_hugging_face(path) if is_hugging_face else read_npz(path)
    model = build(kept)
    if kept.notice:
        logging.warning(kept.notice)
    with tempfile.TemporaryDirectory() as folder:
        names = SHARED if kept.source is kept.target else SEPARATE
        for name, pieces in zip(names, (kept.source, kept.target), strict=False):
            _write_vocabulary(Path(folder, name + SUFFIXES["pieces"]), pieces)
        vocabularies = VocabularyPair.load(folder)
        codes = vocabularies.source.languages
        # A model with one target language may have its code, but does not need it.
        targets = list(codes) if len(codes) > 1 else []
        if kept.reads_source_code:
            task_options, languages = _options_of_both(languages, targets)
        else:
            task_options, languages = _options_of_targets(path, languages, targets, is_hugging_face)
        return write_model_directory(
            model_dir,
            model,
            vocabularies,
            max_length=kept.max_length,
            task_options=task_options,
            languages=languages,
            files=files,
        )


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
    path: Path, languages: Sequence[str] | None, targets: Sequence[str], is_hugging_face: bool
) -> tuple[dict[str, Any], Sequence[str] | None]:
    """Returns the task options of other models, and their languages, as far as they are known."""
    task_options = {"target_languages": targets} if targets else {}
    if languages:
        _check_languages(languages, targets)
    elif is_hugging_face:
        languages = _known_languages(path, targets)
    if languages and targets:
        task_options = options_of(Direction(languages[0], target) for target in targets)
        languages = [*languages, *targets]
    return task_options, languages


def _known_languages(path: Path, targets: Sequence[str]) -> list[str] | None:
    """Returns the languages in Hugging Face's files, like those that a user may give.

    A file may also name a group of languages there, such as "ROMANCE".
    """
    languages = read_languages(path)[: 1 if targets else 2]
    return languages if _are_languages(languages, targets) else None


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
    write_file(file, names + b"\n" + pieces.sentencepiece_model.read_bytes())
