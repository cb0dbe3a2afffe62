"""Vocabularies of Marian models: SentencePiece models, and files that map pieces to ids.

The ids in a model's files are converted to this library's, whose special ids come first: padding,
BOS, EOS and unknown pieces. All other pieces follow in their original order.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sentencepiece

from keras_transformer.core.vocabulary.sentencepiece_models import split_numbered
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.kit.exchange.yaml_map import read_yaml
from keras_transformer.support.errors import InputError, reason, require
from keras_transformer.support.files.json_files import read_json

NEW_ROW = -1  # instead of an id in the files, for pieces that they lack
# In the names of two vocabularies.
SOURCE_NAMES = re.compile("source|src", re.IGNORECASE)
TARGET_NAMES = re.compile("target|trg|tgt", re.IGNORECASE)


class Pieces(NamedTuple):
    """The source or target vocabulary."""

    sentencepiece_model: bytes  # splits text into pieces
    names: list[str]  # the pieces, in the order of the ids of this library
    rows: np.ndarray  # int [V], the pieces' ids in the model's files, or NEW_ROW


def read_pieces(
    sentencepiece_model: Path,
    id_file: Path,
    start_id: int = NEW_ROW,
    further_pieces: Sequence[str] = (),
) -> Pieces:
    """Reads the vocabulary of one side.

    Args:
        sentencepiece_model: the SentencePiece model.
        id_file: maps pieces to ids: a JSON or YAML map, or a SentencePiece model (*.spm), whose
            pieces are numbered.
        start_id: the id in the files with which decoding starts; NEW_ROW if it is not in them.
        further_pieces: pieces whose ids follow those in the file.

    Raises:
        InputError: if a file is missing or damaged, or the ids are not a valid vocabulary.
    """
    try:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(sentencepiece_model))
        ids = _read_ids(processor, id_file)
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        rule = f"must be a SentencePiece model, and {id_file} a vocabulary"
        raise InputError(None, rule, reason(error), sentencepiece_model) from None
    ids |= {piece: number for number, piece in enumerate(further_pieces, start=len(ids))}
    return numbered_pieces(sentencepiece_model, ids, id_file, start_id)


def numbered_pieces(
    sentencepiece_model: Path, ids: dict[str, int], id_file: Path, start_id: int
) -> Pieces:
    """Makes the vocabulary of one side.

    Args:
        sentencepiece_model, start_id: as for `read_pieces`.
        ids: the ids of the pieces in the model's files.
        id_file: the file with the ids, for errors.

    Raises:
        InputError: if the ids are not a valid vocabulary.
    """
    are_consecutive = sorted(ids.values()) == list(range(len(ids)))
    has_special_pieces = "</s>" in ids and "<unk>" in ids
    rule = "must map pieces to consecutive ids from 0, including </s> and <unk>"
    is_vocabulary = are_consecutive and has_special_pieces and start_id < len(ids)
    require(is_vocabulary, None, rule, f"{len(ids)} pieces", id_file)

    pieces = sorted(ids, key=ids.__getitem__)
    padding_id = ids.get("<pad>", NEW_ROW)
    eos_id, unknown_id = ids["</s>"], ids["<unk>"]
    special_ids = (padding_id, start_id, eos_id, unknown_id)
    start = "<start>" if start_id in (padding_id, eos_id, NEW_ROW) else pieces[start_id]
    other_ids = [number for number in range(len(ids)) if number not in special_ids]
    return Pieces(
        sentencepiece_model.read_bytes(),
        names=["<pad>", start, "</s>", "<unk>", *(pieces[number] for number in other_ids)],
        rows=np.array([padding_id, start_id, eos_id, unknown_id, *other_ids]),
    )


def sentencepiece_names(sentencepiece_model: Path) -> list[str]:
    """Returns the pieces of a SentencePiece model, in the order of their numbers.

    Raises:
        InputError: if it is missing or damaged.
    """
    try:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(sentencepiece_model))
    except (OSError, RuntimeError) as error:
        rule = "must be a SentencePiece model"
        raise InputError(None, rule, reason(error), sentencepiece_model) from None
    return _names(processor)


def _names(processor: sentencepiece.SentencePieceProcessor) -> list[str]:
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())]


def _read_ids(processor: sentencepiece.SentencePieceProcessor, id_file: Path) -> dict[str, int]:
    """Reads the id of each piece, unchecked; an .spm file's are those of `processor`."""
    if id_file.suffix == ".spm":
        return {piece: number for number, piece in enumerate(_names(processor))}
    if id_file.suffix == ".json":
        return read_json(id_file, dict[str, int])
    numbers = read_yaml(id_file, id_file.read_bytes(), typed=False)
    return {piece: int(number) for piece, number in numbers.items()}


def by_side(files: Sequence[Path]) -> tuple[Path, Path] | None:
    """Returns the source's and the target's of one or two files; None if names do not tell."""
    if len(files) == 1:
        return files[0], files[0]
    source_files = [file for file in files if SOURCE_NAMES.search(file.name)]
    target_files = [file for file in files if TARGET_NAMES.search(file.name)]
    sides_are_known = len(source_files) == len(target_files) == 1 and source_files != target_files
    return (source_files[0], target_files[0]) if sides_are_known else None


def sentencepiece_model(vocabulary: Subwords) -> bytes:
    """Returns the SentencePiece model of a vocabulary.

    Raises:
        InputError: for WordPiece, which has none.
    """
    rule = "must be a SentencePiece model, as this format requires"
    require(vocabulary.kind != "wordpiece", "vocabulary", rule, vocabulary.kind)
    content = vocabulary.file.read_bytes()
    return content if vocabulary.kind == "bpe" else split_numbered(content)[1]
