"""Packages of Argos Translate, which LibreTranslate uses, read and written.

A package is a zip file with one folder: metadata.json, the CTranslate2 directory `model`, and
sentencepiece.model. Installed packages are such folders. A package translates in one direction, so
a model with several directions becomes several packages. Argos Translate splits sentences itself,
and chooses the search options.

What it does not support is left to CTranslate2 or SentencePiece:

- The language code at the beginning of sources (language_codes.py) is CTranslate2's source BOS.
- Source and target share one SentencePiece model, which splits sources and joins target pieces. If
  each side has its own, it is the source's: pieces that it lacks are joined as they are spelled.
"""

import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.vocabulary.language_codes import Direction, code_of, is_language
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.exchange.ctranslate2 import arrays_of, write_model
from keras_transformer.kit.exchange.ctranslate2_reader import read_with
from keras_transformer.kit.exchange.directory import write_export
from keras_transformer.kit.exchange.foreign_model import ForeignModel
from keras_transformer.kit.exchange.formats import check_config
from keras_transformer.kit.exchange.sentencepiece_pieces import sentencepiece_model
from keras_transformer.support.errors import InputError, reason, require
from keras_transformer.support.fields import from_json
from keras_transformer.support.files.json_files import read_json
from keras_transformer.use.store.card import ModelCard
from keras_transformer.use.store.languages import ModelLanguages, name_of, primary

ARGOS_VERSION = "1.9"  # the version of Argos Translate that packages are for


def export_argos(
    model: Transformer,
    vocabularies: VocabularyPair,
    export_dir: str | os.PathLike,
    card: ModelCard,
    overwrite: bool = False,
    directions: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Writes a package for each direction, and a model card.

    Args:
        model, vocabularies, export_dir, card, overwrite: see formats.export.
        directions: the directions to package, such as "en-de", which the model was trained for, if
            it knows its directions; all of them by default.

    Returns:
        {"argos": the package files, "bytes"}.

    Raises:
        InputError: as for `export_ctranslate2`; for WordPiece, which Argos Translate does not
            support; for a model whose decoder reads codes; or if the directions are unknown, or not
            the model's.
    """
    check_config("argos", model.config)
    pieces = sentencepiece_model(vocabularies.source)
    chosen = packages(card, directions)
    arrays, card = arrays_of(model, card)
    languages = card.languages
    has_codes = languages is not None and languages.has_codes

    def write(folder: Path) -> None:
        for direction in chosen:
            settings = {}
            if has_codes:
                settings = {"bos_token": code_of(direction.target), "add_source_bos": True}
            with tempfile.TemporaryDirectory() as content:
                (Path(content) / "model").mkdir()
                write_model(Path(content) / "model", arrays, vocabularies, model.config, **settings)
                (Path(content) / "sentencepiece.model").write_bytes(pieces)
                metadata = json.dumps(metadata_of(direction, card), ensure_ascii=False, indent=2)
                (Path(content) / "metadata.json").write_text(metadata + "\n", encoding="utf-8")
                write_zip(Path(content), folder / f"{package_name(direction)}.argosmodel")

    size = write_export(write, export_dir, card, overwrite)
    files = [f"{export_dir}/{package_name(direction)}.argosmodel" for direction in chosen]
    return {"argos": files, "bytes": size}


def read(path: Path) -> ForeignModel:
    """Reads a package, or the folder of an installed one.

    Raises:
        InputError: if it is damaged, or not a package with one model and SentencePiece; also as
            for models of CTranslate2.
    """
    if (path / "metadata.json").is_file():
        return _read_folder(path, path)
    if path.is_dir():
        files = sorted(path.glob("*.argosmodel"))
        rule = "must be a package, or a folder with one package"
        require(len(files) == 1, "path", rule, f"{path}, with {len(files)} packages")
        path = files[0]
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(path) as package:
                package.extractall(folder)
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
            rule = "must be a complete package of Argos Translate, a zip file"
            raise InputError(None, rule, reason(error), path) from None
        tops = [file.parent for file in Path(folder).glob("*/metadata.json")]
        rule = "must contain one folder with metadata.json"
        require(len(tops) == 1, None, rule, f"{len(tops)} of them", path)
        return _read_folder(tops[0], path)


def _read_folder(folder: Path, path: Path) -> ForeignModel:
    """Reads the folder of a package; `path` is what a user knows of it, for errors."""
    models = sorted(file.parent for file in folder.rglob("model.bin"))
    rule = "must have one model, in the folder model: import the package of each direction"
    names = ", ".join(str(model.relative_to(folder)) for model in models)
    require(models == [folder / "model"], None, rule, names or "none", path)
    pieces = folder / "sentencepiece.model"
    rule = "must have sentencepiece.model: this library does not read other subwords (bpe.model)"
    require(pieces.is_file(), None, rule, "none", path)
    metadata = from_json(
        {"from_code": str, "to_code": str}, read_json(folder / "metadata.json"), path
    )
    try:
        foreign = read_with(models[0], [pieces])
    except InputError as error:
        place = str(error.place).replace(str(folder), str(path))
        raise error.replaced(place=None if error.place is None else place) from None
    return foreign._replace(languages=(metadata["from_code"], metadata["to_code"]))


def packages(card: ModelCard, directions: Sequence[str] | None) -> list[Direction]:
    """Returns the directions to package; see `export_argos`."""
    languages = card.languages
    known = {} if languages is None else {str(each): each for each in languages.directions}
    if directions is None:
        rule = "must be given, such as en-de, as the model does not know its languages"
        require(known, "directions", rule, "none")
        return list(known.values())
    chosen = []
    for name in directions:
        source, _, target = name.partition("-")
        direction = known.get(name, Direction(source, target))
        is_pair = is_language(direction.source) and is_language(direction.target)
        require(is_pair, "directions", "must be SOURCE-TARGET, such as en-de", repr(name))
        rule = f"must be directions that the model was trained for: {', '.join(known)}"
        require(not known or _is_trained(direction, languages), "directions", rule, repr(name))
        if languages is not None and languages.has_codes:
            rule = f"must have a target of the model: {', '.join(languages.targets)}"
            require(direction.target in languages.targets, "directions", rule, repr(name))
        chosen.append(direction)
    is_many = languages is not None and languages.has_codes
    rule = "must be a single one if the model has one direction, and must not repeat"
    is_right = len(set(chosen)) == len(chosen) and (is_many or len(chosen) == 1)
    require(is_right, "directions", rule, ",".join(directions))
    return chosen


def _is_trained(direction: Direction, languages: ModelLanguages) -> bool:
    """Whether a model was trained for a direction; "en-US" counts as "en"."""
    trained = [(primary(each.source), primary(each.target)) for each in languages.directions]
    return (primary(direction.source), primary(direction.target)) in trained


def package_name(direction: Direction) -> str:
    """Returns Argos Translate's name for a package with this direction."""
    return f"translate-{direction.source}_{direction.target}"


def metadata_of(direction: Direction, card: ModelCard) -> dict[str, Any]:
    """Returns the content of metadata.json."""
    return {
        "type": "translate",
        "package_version": (card.date or "1.0").replace("-", "."),
        "argos_version": ARGOS_VERSION,
        "from_code": direction.source,
        "from_name": name_of(direction.source),
        "to_code": direction.target,
        "to_name": name_of(direction.target),
    }


def write_zip(content: Path, file: Path) -> None:
    """Writes a package for installation from the files in the folder `content`."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
        for path in sorted(content.rglob("*")):
            package.write(path, f"{file.stem}/{path.relative_to(content).as_posix()}")
