"""Writes models for Hugging Face's MarianMTModel and MarianTokenizer. The ids there are ours."""

import json
import os
from typing import Any

import numpy as np

from keras_transformer.core.config import BOS_ID, EOS_ID, PAD_ID, UNK_ID, TransformerConfig
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.kit.exchange.directory import write_export, write_files
from keras_transformer.kit.exchange.formats import check_config
from keras_transformer.kit.exchange.hugging_face import (
    ARCHITECTURES,
    LOGITS_BIAS,
    MARIAN,
    OPTION_NAMES,
    table_of,
)
from keras_transformer.kit.exchange.sentencepiece_pieces import sentencepiece_model
from keras_transformer.kit.exchange.tensor_table import Arrangement, tensors_of
from keras_transformer.kit.exchange.tensors import package
from keras_transformer.support.files.paths import to_path
from keras_transformer.use.store.card import ModelCard

# The options of generation that both config.json and generation_config.json have.
GENERATION_OPTIONS = (
    *("pad_token_id", "decoder_start_token_id", "eos_token_id", "forced_eos_token_id"),
    *("bad_words_ids", "num_beams", "max_length"),
)


def export_hugging_face(
    model: Transformer,
    vocabularies: VocabularyPair,
    export_dir: str | os.PathLike,
    card: ModelCard,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Writes a directory for MarianMTModel and MarianTokenizer, and a model card.

    Args:
        model, vocabularies, export_dir, card, overwrite: see formats.export.

    Returns:
        {"hugging_face": export_dir, "bytes"}.

    Raises:
        InputError: if MarianMTModel cannot hold the model, a vocabulary is not a SentencePiece
            model, safetensors is not installed, or `export_dir` is not empty or not writable.
    """
    check_config("hugging_face", model.config)
    sides = {"source": vocabularies.source, "target": vocabularies.target}
    rows = [np.arange(vocabulary.vocab_size) for vocabulary in sides.values()]
    tensors = tensors_of(model, Arrangement(table_of(model.config), model.config, *rows))
    bias = tensors.get(LOGITS_BIAS, np.zeros(model.config.vocab_size, np.float32))
    tensors[LOGITS_BIAS] = bias.reshape(1, -1)
    options = _options_of(model.config, card)
    generation = {name: options[name] for name in GENERATION_OPTIONS}
    is_separate = not options["share_encoder_decoder_embeddings"]
    source, target = card.languages.directions[0] if _has_direction(card) else (None, None)
    tokenizer = {
        "tokenizer_class": "MarianTokenizer",
        "separate_vocabs": is_separate,
        "source_lang": source,
        "target_lang": target,
        "model_max_length": options["max_position_embeddings"],
    }
    write = package("safetensors.numpy", to_path(export_dir)).save
    files = {
        "model.safetensors": write(tensors, metadata={"format": "pt"}),
        "config.json": _json(options),
        "generation_config.json": _json(generation),
        "tokenizer_config.json": _json(tokenizer),
        "vocab.json": _json(_ids(vocabularies.source)),
    }
    if is_separate:
        files["target_vocab.json"] = _json(_ids(vocabularies.target))
    for side, vocabulary in sides.items():
        files[f"{side}.spm"] = sentencepiece_model(vocabulary)
    size = write_export(lambda folder: write_files(folder, files), export_dir, card, overwrite)
    return {"hugging_face": str(export_dir), "bytes": size}


def _options_of(config: TransformerConfig, card: ModelCard) -> dict[str, Any]:
    """Returns the content of config.json. Padding and BOS are never generated."""
    return {
        "model_type": MARIAN,
        "architectures": ["MarianMTModel"],
        **{option: getattr(config, field) for field, option in OPTION_NAMES.items()},
        "decoder_layers": config.num_decoder_layers,
        "decoder_attention_heads": config.num_heads,
        "decoder_ffn_dim": config.d_ff,
        "vocab_size": config.source_vocab_size or config.vocab_size,
        "decoder_vocab_size": config.vocab_size,
        "scale_embedding": config.scale_embeddings,
        "share_encoder_decoder_embeddings": config.shares_all_embeddings,
        "tie_word_embeddings": config.tie_embeddings,
        "max_position_embeddings": card.decoding.limits(config).source,
        "pad_token_id": PAD_ID,
        "decoder_start_token_id": BOS_ID,
        "eos_token_id": EOS_ID,
        "forced_eos_token_id": EOS_ID,
        "bad_words_ids": [[PAD_ID], [BOS_ID]],
        "num_beams": card.decoding.beam_size,
        "max_length": card.decoding.limits(config).target,
        **ARCHITECTURES[MARIAN].required_options,
    }


def _ids(vocabulary: Subwords) -> dict[str, int]:
    start = vocabulary.pieces[BOS_ID]
    pieces = ["<pad>", start, "</s>", "<unk>", *vocabulary.pieces[UNK_ID + 1 :]]
    return {piece: id_ for id_, piece in enumerate(pieces)}


def _has_direction(card: ModelCard) -> bool:
    return card.languages is not None and len(card.languages.directions) == 1


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, indent=2, ensure_ascii=False).encode("utf-8")
