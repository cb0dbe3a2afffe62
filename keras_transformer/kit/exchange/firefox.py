"""Firefox's models, read and written: students with SSRUs, in int8 for its fork of Marian.

A directory with one model in Marian's binary format (marian_binary.py), which contains its options
as YAML, and its vocabulary: *.spm, or one for each side, such as srcvocab.spm and trgvocab.spm. A
shortlist next to it (lex*.bin) is not read.

The engine rounds the inputs of each matrix to int8 with a fixed scale, `MATRIX_QuantMultA`: 127
divided by the mean of their largest magnitudes in some sentences plus 1.1 standard deviations.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.core.config import BOS_ID, PAD_ID, TransformerConfig
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.core.vocabulary.sentencepiece_models import read_model
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.kit.exchange import marian
from keras_transformer.kit.exchange.activations import LOGITS, input_maxima
from keras_transformer.kit.exchange.directory import write_export, write_files
from keras_transformer.kit.exchange.foreign_model import ForeignModel, make_config, require_values
from keras_transformer.kit.exchange.formats import check_config
from keras_transformer.kit.exchange.marian_binary import (
    LEVELS,
    Stored,
    array_of,
    binary_file,
    float_tensor,
    int8_matrix,
    is_binary,
    is_rounded,
    read_binary,
    text_tensor,
)
from keras_transformer.kit.exchange.sentencepiece_pieces import (
    NEW_ROW,
    Pieces,
    by_side,
    read_pieces,
    sentencepiece_model,
    sentencepiece_names,
)
from keras_transformer.kit.exchange.tensor_table import Arrangement, tensors_of
from keras_transformer.support.errors import require
from keras_transformer.support.files.reading import opened, text_lines
from keras_transformer.use.store.card import ModelCard

OPTIONS = marian.OPTIONS
SCALE = "_QuantMultA"  # ends the name of the scale of a matrix's inputs
DEVIATIONS = 1.1  # standard deviations above the mean, for scales of inputs
SMALLEST = 1e-6  # stands for a matrix whose inputs are all zero
WIDTHS, PIECES = 64, 8  # the engine's products need multiples of these
MODEL = "model.intgemm.alphas.bin"
REQUIRED_OPTIONS = {
    **marian.REQUIRED_OPTIONS,
    "transformer-decoder-autoreg": "rnn",
    "dec-cell": "ssru",
    "transformer-train-position-embeddings": False,
}
# The options that are not those of other Marian models, as the engine requires them.
WRITTEN_OPTIONS = {
    "transformer-decoder-autoreg": "rnn",
    "dec-cell": "ssru",
    "dec-cell-base-depth": 2,
    "dec-cell-high-depth": 1,
    "transformer-rnn-projection": False,
    "transformer-decoder-dim-ffn": 0,
    "transformer-decoder-ffn-depth": 0,
    "layer-normalization": False,
    "tied-embeddings-src": False,
}
TABLE = marian.TABLE._replace(
    layers={
        **marian.TABLE.layers,
        "self_attention/input": "rnn_{}",
        "self_attention/forget": "rnn_{}f",
    },
    decoder={"self_attention_norm": "rnn_ffn_ln_{}"},
)


def read(path: Path) -> ForeignModel:
    """Reads a directory with a model of Firefox.

    Raises:
        InputError: if a file is missing or damaged, the files do not match, or the model has an
            unsupported feature.
    """
    files = [file for file in sorted(path.glob("*.bin")) if is_binary(file)]
    rule = "must be a directory with one *.bin of Marian's binary format"
    require(len(files) == 1, "path", rule, f"{path}, with {len(files)} of them")
    file = files[0]
    stored = read_binary(file)
    require(OPTIONS in stored, None, f"must contain {OPTIONS}", "a file without it", file)
    options = marian.read_options(file, stored.pop(OPTIONS).data)
    tensors = {
        name: array_of(name, each) for name, each in stored.items() if not name.endswith(SCALE)
    }
    source, target = _read_vocabularies(path)
    require_values(file, options, REQUIRED_OPTIONS)
    require_values(file, options, marian.POST_NORM_PROCESSES)
    config = make_config(
        file,
        options,
        marian.OPTION_NAMES,
        vocab_size=len(target.names),
        source_vocab_size=None if "Wemb" in tensors else len(source.names),
        positions="marian",
        attention_bias=True,
        logits_bias=True,
        decoder_self_attention="ssru",
        starts_with_zeros=True,
    )
    new = [id_ for id_ in (PAD_ID, BOS_ID) if target.rows[id_] == NEW_ROW]
    return ForeignModel(file, tensors, config, source, target, TABLE, never_generated=tuple(new))


def _read_vocabularies(path: Path) -> tuple[Pieces, Pieces]:
    files = sorted(path.glob("*.spm"))
    names = ", ".join(file.name for file in files)
    sides = by_side(files) if len(files) in (1, 2) else None
    rule = "must contain one *.spm, or two with src and trg in their names"
    require(sides is not None, None, rule, names or "none", path)
    source = _read_pieces(sides[0])
    return source, source if sides[0] == sides[1] else _read_pieces(sides[1])


def _read_pieces(file: Path) -> Pieces:
    """Reads a vocabulary, which has a piece for BOS if it is one of this library."""
    names = sentencepiece_names(file)
    return read_pieces(file, file, names.index("<s>") if "<s>" in names else NEW_ROW)


def export_firefox(
    model: Transformer,
    vocabularies: VocabularyPair,
    export_dir: str | os.PathLike,
    card: ModelCard,
    overwrite: bool = False,
    calibration: str | None = None,
) -> dict[str, Any]:
    """Writes the directory: the model in int8, its vocabularies, and a model card.

    Args:
        model, vocabularies, export_dir, overwrite: see formats.export.
        card: the model card; its `weights` are "int8".
        calibration: a file of source sentences, one a line, for the scales of activations.

    Returns:
        {"firefox": export_dir, "bytes"}.

    Raises:
        InputError: if the format cannot hold the model, its widths do not fit the engine, a
            vocabulary is not a SentencePiece model, there are no sentences, or `export_dir` is not
            empty or not writable.
    """
    config = model.config
    check_config("firefox", config)
    for field in ("d_model", "d_ff"):
        rule = f"must have a {field} that is a multiple of {WIDTHS} with format=firefox"
        width = getattr(config, field)
        require(width % WIDTHS == 0, "model", rule, f"{field}={width}")
    sides = (vocabularies.source, vocabularies.target)
    rows = [_rows(vocabulary) for vocabulary in sides]
    pieces = int(rows[1].max()) + 1
    rule = f"must have a multiple of {PIECES} pieces with format=firefox"
    require(pieces % PIECES == 0, "vocabulary", rule, pieces)
    table = TABLE._replace(needs_biases=False)  # the model has all but one for the SSRU's W
    tensors = tensors_of(model, Arrangement(table, config, *rows))
    is_shared = config.source_vocab_size is None
    if is_shared:
        tensors["Wemb"] = tensors.pop("encoder_Wemb")
    tensors |= _input_scales(model, _sentences(vocabularies.source, calibration, card), card)
    stored = {name: _stored(name, tensors[name]) for name in sorted(tensors)}
    stored[OPTIONS] = text_tensor(_yaml(_options_of(config, rows)))

    files = {MODEL: binary_file(stored)}
    names = ["vocab.spm"] if is_shared else ["srcvocab.spm", "trgvocab.spm"]
    for name, vocabulary in zip(names, sides, strict=False):
        files[name] = sentencepiece_model(vocabulary)
    size = write_export(lambda folder: write_files(folder, files), export_dir, card, overwrite)
    return {"firefox": str(export_dir), "bytes": size}


def _rows(vocabulary: Subwords) -> np.ndarray:
    """Returns the number of each id's piece in the SentencePiece model of a vocabulary.

    Padding and BOS of a model that came from elsewhere have none.

    Raises:
        InputError: if there are other pieces.
    """
    processor = read_model(sentencepiece_model(vocabulary))
    numbers = {processor.id_to_piece(id_): id_ for id_ in range(processor.get_piece_size())}
    rows = np.array([numbers.get(piece, NEW_ROW) for piece in vocabulary.pieces])
    rule = "must have the pieces of its SentencePiece model, as Firefox requires"
    are_equal = sorted(rows[rows != NEW_ROW]) == list(range(len(numbers)))
    received = f"{vocabulary.vocab_size} and {len(numbers)} pieces"
    require(are_equal, "vocabulary", rule, received)
    return rows


def _sentences(vocabulary: Subwords, file: str | None, card: ModelCard) -> list[list[int]]:
    """Reads the sentences for the scales of activations, as ids."""
    rule = "must be a file of source sentences, one a line, with format=firefox"
    require(file is not None, "calibration", rule, file)
    with opened(file) as lines:
        texts = list(text_lines(lines, file))
    rows = [row[: card.decoding.max_source_length - 1] for row in vocabulary.encode(texts) if row]
    require(rows, "calibration", rule, f"{file}, with {len(texts)} empty lines")
    return rows


def _input_scales(
    model: Transformer, sources: list[list[int]], card: ModelCard
) -> dict[str, np.ndarray]:
    """Returns the scales of the inputs of all matrices, float32 [1], by their names."""
    maxima = input_maxima(model, sources, card.decoding)
    kernels = [path for path in maxima if path != LOGITS]
    largest = {held.names[0]: maxima[held.paths[0]] for held in TABLE.held(kernels, model.config)}
    output = "Wemb" if model.config.source_vocab_size is None else "decoder_Wemb"
    # The engine's name for the matrix of logits is "none" with a shortlist.
    largest |= {output: maxima[LOGITS], "none": maxima[LOGITS]}
    return {f"{name}{SCALE}": _input_scale(values) for name, values in largest.items()}


def _input_scale(maxima: list[float]) -> np.ndarray:
    largest = np.mean(maxima) + DEVIATIONS * np.std(maxima)
    return np.array([LEVELS / max(largest, SMALLEST)], np.float32)


def _stored(name: str, tensor: np.ndarray) -> Stored:
    return int8_matrix(name, tensor) if is_rounded(name) else float_tensor(tensor)


def _options_of(config: TransformerConfig, rows: list[np.ndarray]) -> dict[str, Any]:
    return {**marian.options_of(config, rows), **WRITTEN_OPTIONS}


def _yaml(content: dict[str, Any]) -> str:
    """Returns a map as YAML, with names without quotes, as engines read it line by line."""
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in content.items())
