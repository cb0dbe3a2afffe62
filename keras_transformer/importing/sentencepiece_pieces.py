"""Vocabularies of Marian's models: SentencePiece models, and files that give their pieces ids.

The ids of a model's files become ids of this library, whose special ids come first: padding, BOS,
EOS and unknown pieces. All other pieces follow in the order that they have in the files.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import sentencepiece

from keras_transformer.errors import InputError, reason, require
from keras_transformer.files.json_files import read_json
from keras_transformer.importing.yaml_map import read_yaml

NEW_ROW = -1  # in place of an id of the files, where they have no such piece


class Pieces(NamedTuple):
    """The vocabulary of the source or of the target."""

    sentencepiece_model: Path  # cuts text into pieces
    names: list[str]  # the pieces, in the order of the ids of this library
    rows: np.ndarray  # int [V], the same pieces' ids in the model's files, or NEW_ROW

    @property
    def size_in_files(self) -> int:
        """How many ids the model's files have."""
        return int(self.rows.max()) + 1


def read_pieces(sentencepiece_model: Path, id_file: Path, start_id: int = NEW_ROW) -> Pieces:
    """Reads the vocabulary of one side.

    Args:
        sentencepiece_model: the SentencePiece model.
        id_file: gives pieces their ids: a map in JSON or YAML, or a SentencePiece model (*.spm),
            whose pieces are numbered.
        start_id: the id in the files that decoding starts with; NEW_ROW if it starts with none of
            them.

    Raises:
        InputError: if a file is missing or damaged, or the ids are not those of a vocabulary.
    """
    try:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(sentencepiece_model))
        ids = _read_ids(processor, id_file)
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        rule = f"must be a SentencePiece model, and {id_file} a vocabulary"
        raise InputError(None, rule, reason(error), sentencepiece_model) from None

    are_consecutive = sorted(ids.values()) == list(range(len(ids)))
    has_special_pieces = "</s>" in ids and "<unk>" in ids
    rule = "must give the ids from 0 on to as many pieces, </s> and <unk> among them"
    is_vocabulary = are_consecutive and has_special_pieces and start_id < len(ids)
    require(is_vocabulary, None, rule, f"{len(ids)} pieces", id_file)

    pieces = sorted(ids, key=ids.__getitem__)
    padding_id = ids.get("<pad>", NEW_ROW)
    eos_id, unknown_id = ids["</s>"], ids["<unk>"]
    special_ids = (padding_id, eos_id, unknown_id)
    other_ids = [number for number in range(len(ids)) if number not in special_ids]
    return Pieces(
        sentencepiece_model,
        names=["<pad>", "<start>", "</s>", "<unk>", *(pieces[number] for number in other_ids)],
        rows=np.array([padding_id, start_id, eos_id, unknown_id, *other_ids]),
    )


def _read_ids(processor: sentencepiece.SentencePieceProcessor, id_file: Path) -> dict[str, int]:
    """The id of each piece, not checked yet; an .spm file's are those of `processor`."""
    if id_file.suffix == ".spm":
        return {processor.id_to_piece(i): i for i in range(processor.get_piece_size())}
    if id_file.suffix == ".json":
        return read_json(id_file, dict[str, int])
    numbers = read_yaml(id_file, id_file.read_bytes(), typed=False)
    return {piece: int(number) for piece, number in numbers.items()}
