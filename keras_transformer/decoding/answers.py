"""Texts in, answers out: what an exported model does, as pure graph functions (export/saved_model).

Each takes string [B], B from 0 to any number, and gives a dict of tensors whose first axis is B.
Texts are UTF-8; invalid bytes are read as U+FFFD. Sources longer than `max_source_length`, and
targets longer than a translation may become, are cut there. Memory is bounded by
`DecodingConfig.batch_tokens`, but for `attention`, whose answer alone is larger.
"""

import keras
import tensorflow as tf

from keras_transformer.config import EOS_ID, PAD_ID
from keras_transformer.decoding.attention_maps import alignment, attention_maps
from keras_transformer.decoding.batched import in_batches
from keras_transformer.decoding.inference import (
    DecodingConfig,
    Tokenizer,
    encode_text,
    output_limit,
    source_limit,
    target_log_probs,
    translate_ids,
)
from keras_transformer.model.masks import padding_mask

EOS_PIECE = "</s>"


def n_best(
    model: keras.Model, tokenizer: Tokenizer, texts: tf.Tensor, config: DecodingConfig
) -> dict[str, tf.Tensor]:
    """Translates texts, best translations first.

    Returns:
        translation string [B, K]; score float32 [B, K], log-probability / length penalty; log_prob
        float32 [B, K]; length int32 [B, K], subwords with EOS; truncated bool [B], whether the
        text was cut. A text with fewer than K translations has "" with score -inf in their place.
    """
    ids, truncated = encode_text(tokenizer, texts, source_limit(model, config))

    def translate_batch(source):
        found, best = translate_ids(model, tokenizer, source, config)
        return {
            "translation": found,
            "score": best.scores,
            "log_prob": best.log_probs,
            "length": best.lengths,
        }

    return {**in_batches(translate_batch, config.batch_tokens, ids), "truncated": truncated}


def best(
    model: keras.Model, tokenizer: Tokenizer, texts: tf.Tensor, config: DecodingConfig
) -> dict[str, tf.Tensor]:
    """Gives the first translation of each text: the fields of n_best, all of them [B]."""
    found = n_best(model, tokenizer, texts, config)
    first = {name: found[name][:, 0] for name in ("translation", "score", "log_prob", "length")}
    return {**first, "truncated": found["truncated"]}


def score(
    model: keras.Model,
    tokenizer: Tokenizer,
    sources: tf.Tensor,
    targets: tf.Tensor,
    config: DecodingConfig,
) -> dict[str, tf.Tensor]:
    """Finds how probable the model thinks each target as a translation of its source.

    Returns:
        log_prob float32 [B], natural logarithm, EOS included; length int32 [B], subwords of the
        target with EOS; perplexity float32 [B], exp(-log_prob / length).
    """
    source, target = encode_pairs(model, tokenizer, sources, targets, config)

    def score_batch(source, target):
        log_probs = target_log_probs(model, source, target)
        return {"log_prob": tf.reduce_sum(log_probs, axis=1)}

    log_prob = in_batches(score_batch, config.batch_tokens, source, target)["log_prob"]
    length = tf.cast(target.row_lengths(), tf.int32)
    perplexity = tf.exp(-log_prob / tf.cast(length, tf.float32))
    return {"log_prob": log_prob, "length": length, "perplexity": perplexity}


def tokenize(
    model: keras.Model, tokenizer: Tokenizer, texts: tf.Tensor, config: DecodingConfig
) -> dict[str, tf.Tensor]:
    """Shows what the model reads of each text.

    Returns:
        ids int32 [B, S], EOS included; length int32 [B], of them; pieces string [B, S], the
        vocabulary's spelling of each.
    """
    ids, _ = encode_text(tokenizer, texts, source_limit(model, config))
    length = tf.cast(ids.row_lengths(), tf.int32)
    ids = padded(ids)
    return {"ids": ids, "length": length, "pieces": pieces(tokenizer, ids)}


def attention(
    model: keras.Model,
    tokenizer: Tokenizer,
    sources: tf.Tensor,
    targets: tf.Tensor,
    config: DecodingConfig,
) -> dict[str, tf.Tensor]:
    """Shows what predicting each target token attends to, all pairs in one batch.

    Returns:
        source_pieces string [B, S], target_pieces string [B, T], EOS included; the fields of
        AttentionMaps; and the alignment int32 [B, T], a source position for each target token.
    """
    pairs = encode_pairs(model, tokenizer, sources, targets, config)
    source, target = (padded(ids) for ids in pairs)
    maps = attention_maps(model, source, target)
    return {
        "source_pieces": pieces(tokenizer, source),
        "target_pieces": pieces(tokenizer, target),
        **maps._asdict(),
        "alignment": alignment(maps, padding_mask(source)),
    }


def encode_pairs(
    model: keras.Model,
    tokenizer: Tokenizer,
    sources: tf.Tensor,
    targets: tf.Tensor,
    config: DecodingConfig,
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Maps pairs of texts to int32 [B, None] each."""
    rule = "there must be a target for every source"
    same = tf.debugging.assert_equal(tf.size(sources), tf.size(targets), message=rule)
    with tf.control_dependencies([] if same is None else [same]):
        source, _ = encode_text(tokenizer, sources, source_limit(model, config))
        target, _ = encode_text(tokenizer, targets, output_limit(model, config))
    return source, target


def padded(ids: tf.RaggedTensor) -> tf.Tensor:
    """Makes int32 [B, longest] of ids, with one column at least."""
    longest = tf.reduce_max(tf.concat([[1], ids.row_lengths()], axis=0))
    return ids.to_tensor(PAD_ID, shape=tf.stack([-1, longest]))


def pieces(tokenizer: Tokenizer, ids: tf.Tensor) -> tf.Tensor:
    """Spells ids int32 [B, S]: string [B, S], "</s>" for EOS and "" for padding."""
    spelled = tokenizer.pieces_tensor(ids)
    spelled = tf.where(ids == EOS_ID, EOS_PIECE, spelled)
    return tf.where(ids == PAD_ID, "", spelled)
