"""Vocabularies of CTranslate2: lists of tokens, next to the SentencePiece models of the text."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.kit.exchange.sentencepiece_pieces import (
    NEW_ROW,
    Pieces,
    by_side,
    numbered_pieces,
    sentencepiece_names,
)
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.files.json_files import read_json

PADDING = ("<pad>", "<blank>", "[PAD]")  # names of the token


def read_vocabularies(
    folder: Path,
    sentencepiece_models: Sequence[Path],
    options: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> tuple[Pieces, Pieces]:
    """Reads both vocabularies; the same object twice if they and their models are shared."""
    rule = (
        "must contain the SentencePiece model of the text, *.spm or *.model, or one for each side"
    )
    names = ", ".join(file.name for file in sentencepiece_models)
    require(len(sentencepiece_models) in (1, 2), None, rule, names or "none", folder)
    models = by_side(sentencepiece_models)
    rule = "must contain SentencePiece models with names, such as src and tgt, that tell the sides"
    require(models is not None, None, rule, names, folder)
    matrices = ("encoder/embeddings_0/weight", "decoder/embeddings/weight")
    found = []
    for side, model, matrix in zip(("source", "target"), models, matrices, strict=True):
        require(matrix in arrays, matrix, "must be among the tensors", "none", folder / "model.bin")
        file = _token_list(folder, side)
        tokens = read_json(file, list[str]) if file.suffix == ".json" else _lines(file)
        rule = f"must have {len(arrays[matrix])} tokens, the rows of {matrix}"
        require(len(tokens) == len(arrays[matrix]), None, rule, len(tokens), file)
        found.append((file, model))
    pieces = [_pieces(file, model, options) for file, model in dict.fromkeys(found)]
    return pieces[0], pieces[-1]


def _token_list(folder: Path, side: str) -> Path:
    for name in ("shared", side):
        for suffix in (".json", ".txt"):
            file = folder / f"{name}_vocabulary{suffix}"
            if file.is_file():
                return file
    rule = f"must contain shared_vocabulary.json or {side}_vocabulary.json, or the same as .txt"
    raise InputError(None, rule, "none of them", folder)


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").removesuffix("\n").split("\n")


def _pieces(file: Path, model: Path, options: Mapping[str, Any]) -> Pieces:
    """Reads the vocabulary of a list of tokens, whose special ones have several names."""
    tokens = read_json(file, list[str]) if file.suffix == ".json" else _lines(file)
    names = {options["eos_token"]: "</s>", options["unk_token"]: "<unk>"}
    names |= {name: "<pad>" for name in tokens if name in PADDING}
    ids = {names.get(token, token): id_ for id_, token in enumerate(tokens)}
    require(len(ids) == len(tokens), None, "must not have a token twice", "some", file)
    shared = len(ids.keys() & set(sentencepiece_names(model)))
    rule = f"must be the SentencePiece model of {file.name}"
    require(2 * shared > len(ids), None, rule, f"one with {shared} of its {len(ids)} tokens", model)
    start = options["decoder_start_token"]
    is_known = start is None or start in ids or file.name.startswith("source")
    require(is_known, "decoder_start_token", f"must be a token in {file.name}", start, file)
    return numbered_pieces(model, ids, file, ids.get(start, NEW_ROW))
