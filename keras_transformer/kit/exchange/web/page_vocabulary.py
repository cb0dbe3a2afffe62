"""A vocabulary as JSON for the page (vocabulary.js), with only the fields that its kind needs.

All kinds have

    kind      "sentencepiece" or "wordpiece"
    ids       strings that text is split into, in the order of the ids; null for ids that no text
              gives
    codes     the ids of the language codes, by code
    code      a regular expression that matches such a code at the beginning of a text; null if
              there is none
    texts     what each id adds to a decoded text: a string, the number of a byte, or null for ids
              that are left out

SentencePiece models have further fields, which `_sentencepiece` describes.
"""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.core.config import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from keras_transformer.core.vocabulary.language_codes import is_code, pattern_of
from keras_transformer.core.vocabulary.sentencepiece_models import BYTE, split_numbered
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.core.vocabulary.wordpiece import spellings
from keras_transformer.support.errors import require

UNKNOWN = " ⁇ "  # what SentencePiece writes for an unknown piece


def page_vocabulary(vocabulary: Subwords) -> dict[str, Any]:
    """Makes the JSON for a vocabulary in a file.

    Raises:
        InputError: for a SentencePiece model that is neither BPE nor a unigram model.
    """
    content = vocabulary.file.read_bytes()
    pieces = vocabulary.pieces
    code = f"^({pattern_of(vocabulary.languages)}) ?" if vocabulary.languages else None
    codes = {piece: id_ for id_, piece in enumerate(pieces) if is_code(piece)}
    fields = {"codes": codes, "code": code}
    if vocabulary.kind == "wordpiece":
        texts = _without_special(pieces, spellings(pieces), vocabulary.term_ids)
        return {"kind": "wordpiece", "ids": pieces, "texts": texts, **fields}
    if vocabulary.kind == "bpe":
        return {**_sentencepiece(content, pieces), **fields, "trimmed": False}
    # Such a vocabulary accepts any of its pieces, and any text as a code.
    _, model = split_numbered(content)
    ids = [piece if id_ > UNK_ID else None for id_, piece in enumerate(pieces)]
    fields["code"] = "^(>>[^]*?<<)"
    return {**_sentencepiece(model, pieces), **fields, "ids": ids, "trimmed": True}


def _without_special(
    pieces: list[str], texts: list[Any], term_ids: Sequence[int] = ()
) -> list[Any]:
    """Returns the texts, None for ids that decoding omits."""
    left_out = (PAD_ID, BOS_ID, EOS_ID, *term_ids)
    return [
        None if id_ in left_out or is_code(piece) else text
        for id_, (piece, text) in enumerate(zip(pieces, texts, strict=True))
    ]


def _sentencepiece(content: bytes, numbered: list[str]) -> dict[str, Any]:
    """Returns the fields for a SentencePiece model.

    Args:
        content: the file's content.
        numbered: the vocabulary's pieces in the order of its ids, which may differ.

    Returns:
        Besides ids and texts: algorithm, "bpe" or "unigram"; pieces, the strings that text is split
            into; their scores; symbols, the pieces that are never split; has_bytes, whether unknown
            characters are spelled in bytes; and the normalization: charsmap (SentencePiece's, in
            base64), dummy_prefix, extra_spaces (removed) and suffix (spaces follow words).
    """
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    model = ModelProto.FromString(content)
    trainer, normalizer, kinds = model.trainer_spec, model.normalizer_spec, ModelProto.SentencePiece
    algorithms = {trainer.BPE: "bpe", trainer.UNIGRAM: "unigram"}
    rule = "must be a BPE or a unigram model"
    known = trainer.model_type in algorithms
    require(known, "vocabulary", rule, "another SentencePiece model")
    pieces = [piece for piece in model.pieces if piece.type in (kinds.NORMAL, kinds.USER_DEFINED)]
    types = {piece.piece: piece.type for piece in model.pieces}
    written = (kinds.NORMAL, kinds.USER_DEFINED, kinds.BYTE)
    texts = [_text(piece, types.get(piece), kinds) for piece in numbered]
    return {
        "kind": "sentencepiece",
        "algorithm": algorithms[trainer.model_type],
        "pieces": [piece.piece for piece in pieces],
        "scores": [float(str(np.float32(piece.score))) for piece in pieces],
        "symbols": [piece.piece for piece in pieces if piece.type == kinds.USER_DEFINED],
        "has_bytes": trainer.byte_fallback,
        "charsmap": base64.b64encode(normalizer.precompiled_charsmap).decode("ascii"),
        "dummy_prefix": normalizer.add_dummy_prefix,
        "extra_spaces": normalizer.remove_extra_whitespaces,
        "suffix": trainer.treat_whitespace_as_suffix,
        "ids": [piece if types.get(piece) in written else None for piece in numbered],
        "texts": _without_special(numbered, texts),
    }


def _text(piece: str, kind: int | None, kinds: Any) -> str | int | None:
    """Returns a piece's text as SentencePiece decodes it; spaces are still "▁"."""
    if kind == kinds.BYTE:
        return int(BYTE.fullmatch(piece)[1], 16)
    if kind == kinds.UNKNOWN:
        return UNKNOWN
    return None if kind == kinds.CONTROL else piece
