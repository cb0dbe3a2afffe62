"""Texts in, answers out: what a model does, as graphs that take text and give tensors.

`text_graphs` makes them of a model and its vocabulary: a Translator calls them in the process that
holds the model, and an export holds the same ones as its signatures (export/saved_model).

Each takes string [B], B from 0 to any number, and gives a dict of tensors whose first axis is B.
Texts are UTF-8; invalid bytes are read as U+FFFD. Sources longer than `max_source_length`, and
targets longer than a translation may become, are cut there. Memory is bounded by
`DecodingConfig.batch_tokens`, but for `attention`, whose answer alone is larger.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable

import tensorflow as tf

from keras_transformer.config import EOS_ID, PAD_ID
from keras_transformer.decoding.attention_maps import alignment, attention_maps
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
from keras_transformer.model.transformer import Transformer

EOS_PIECE = "</s>"
# A row counts as at least this many tokens of a batch: however short, its beams take memory.
MIN_ROW_TOKENS = 32
# The outputs of `n_best` that are of one translation each.
OF_TRANSLATIONS = ("translation", "score", "log_prob", "length")


def text_graphs(
    model: Transformer,
    tokenizer: Tokenizer,
    config: DecodingConfig,
    reading_weights: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext,
) -> dict[str, Callable]:
    """Makes the graphs of a model; each is traced when it is first called.

    Args:
        model: the Transformer.
        tokenizer: the vocabulary it was trained with.
        config: how to translate.
        reading_weights: makes a context in which the model's layers read other weights than their
            variables; see export/stored_weights.

    Returns:
        The signatures of export/saved_model by name, and "continuation", `n_best` of translations
        that begin as each target does.
    """

    strings, ids = tf.TensorSpec([None], tf.string), tf.TensorSpec([None, None], tf.int32)

    def of_texts(answer, config=config):
        @tf.function(input_signature=[strings], autograph=False)
        def answer_texts(text):
            with reading_weights():
                return answer(model, tokenizer, text, config)

        return answer_texts

    def of_pairs(answer, spec=strings):
        @tf.function(input_signature=[spec, spec], autograph=False)
        def answer_pairs(source, target):
            with reading_weights():
                return answer(model, tokenizer, source, target, config)

        return answer_pairs

    # A search of its own, which ends as soon as the best translation is certain.
    beams = of_texts(n_best, dataclasses.replace(config, n_best=1))

    scored_ids = of_pairs(score_ids, ids)

    @tf.function(input_signature=[strings], autograph=False)
    def best(text):
        found = beams(text)
        first = {name: found[name][:, 0] for name in OF_TRANSLATIONS}
        return {**first, "truncated": found["truncated"]}

    @tf.function(input_signature=[strings], autograph=False)
    def serving_default(text):
        found = best(text)
        return {name: found[name] for name in ("translation", "score")}

    return {
        "serving_default": serving_default,
        "best": best,
        "beams": beams,
        "n_best": of_texts(n_best),
        "continuation": of_pairs(continuation),
        "score": of_pairs(functools.partial(score, score_batch=scored_ids)),
        "score_ids": scored_ids,
        "lengths": of_texts(lengths),
        "tokenize": of_texts(tokenize),
        "attention": of_pairs(attention),
    }


def n_best(
    model: Transformer,
    tokenizer: Tokenizer,
    texts: tf.Tensor,
    config: DecodingConfig,
    prefixes: tf.Tensor | None = None,
) -> dict[str, tf.Tensor]:
    """Translates texts, best translations first.

    Args:
        prefixes: string [B], what the translations of each text begin with.

    Returns:
        translation string [B, K]; score float32 [B, K], log-probability / length penalty; log_prob
        float32 [B, K]; length int32 [B, K], subwords with EOS; truncated bool [B], whether the
        text was cut. A text with fewer than K translations has "" with score -inf in their place.
    """
    ids, truncated = encode_text(tokenizer, texts, source_limit(model.config, config))
    inputs = [ids] if prefixes is None else [ids, tokenizer.encode_tensor(prefixes)]

    def translate_batch(source, prefix=None):
        if prefix is not None:
            prefix = tf.pad(prefix, [[0, 0], [0, 1]], constant_values=PAD_ID)  # P is at least 1
        found, best = translate_ids(model, tokenizer, source, config, prefix)
        columns = (found, best.scores, best.log_probs, best.lengths)
        return dict(zip(OF_TRANSLATIONS, columns, strict=True))

    return {**in_batches(translate_batch, config.batch_tokens, *inputs), "truncated": truncated}


def continuation(
    model: Transformer,
    tokenizer: Tokenizer,
    texts: tf.Tensor,
    prefixes: tf.Tensor,
    config: DecodingConfig,
) -> dict[str, tf.Tensor]:
    """`n_best`, of translations that begin with the prefixes, string [B]."""
    return n_best(model, tokenizer, texts, config, prefixes)


def score(
    model: Transformer,
    tokenizer: Tokenizer,
    sources: tf.Tensor,
    targets: tf.Tensor,
    config: DecodingConfig,
    score_batch: Callable[[tf.Tensor, tf.Tensor], dict[str, tf.Tensor]],
) -> dict[str, tf.Tensor]:
    """Computes how probable the model finds each target as a translation of its source.

    Args:
        score_batch: the graph of `score_ids`, which an export holds once.

    Returns:
        log_prob float32 [B], natural logarithm, EOS included; length int32 [B], subwords of the
        target with EOS; perplexity float32 [B], exp(-log_prob / length).
    """
    source, target = encode_pairs(model, tokenizer, sources, targets, config)
    log_prob = in_batches(score_batch, config.batch_tokens, source, target)["log_prob"]
    length = tf.cast(target.row_lengths(), tf.int32)
    perplexity = tf.exp(-log_prob / tf.cast(length, tf.float32))
    return {"log_prob": log_prob, "length": length, "perplexity": perplexity}


def score_ids(
    model: Transformer,
    tokenizer: Tokenizer,
    source: tf.Tensor,
    target: tf.Tensor,
    config: DecodingConfig,
) -> dict[str, tf.Tensor]:
    """Scores one batch of pairs that are ids already, int32 [B, S] and [B, T], padded.

    Returns:
        log_prob float32 [B].
    """
    return {"log_prob": tf.reduce_sum(target_log_probs(model, source, target), axis=1)}


def lengths(
    model: Transformer, tokenizer: Tokenizer, texts: tf.Tensor, config: DecodingConfig
) -> dict[str, tf.Tensor]:
    """Counts the subwords of each text, EOS included, before anything is cut.

    Returns:
        length int32 [B].
    """
    ids, _ = encode_text(tokenizer, texts, tf.int32.max)
    return {"length": tf.cast(ids.row_lengths(), tf.int32)}


def tokenize(
    model: Transformer, tokenizer: Tokenizer, texts: tf.Tensor, config: DecodingConfig
) -> dict[str, tf.Tensor]:
    """Shows what the model reads of each text.

    Returns:
        ids int32 [B, S], EOS included; length int32 [B], of them; pieces string [B, S], the
        vocabulary's spelling of each.
    """
    ids, _ = encode_text(tokenizer, texts, source_limit(model.config, config))
    length = tf.cast(ids.row_lengths(), tf.int32)
    ids = padded(ids)
    return {"ids": ids, "length": length, "pieces": pieces(tokenizer, ids)}


def attention(
    model: Transformer,
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
    model: Transformer,
    tokenizer: Tokenizer,
    sources: tf.Tensor,
    targets: tf.Tensor,
    config: DecodingConfig,
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Maps pairs of texts to int32 [B, None] each."""
    rule = "there must be a target for every source"
    same = tf.debugging.assert_equal(tf.size(sources), tf.size(targets), message=rule)
    with tf.control_dependencies([] if same is None else [same]):
        source, _ = encode_text(tokenizer, sources, source_limit(model.config, config))
        target, _ = encode_text(tokenizer, targets, output_limit(model.config, config))
    return source, target


def in_batches(
    function: Callable[..., dict[str, tf.Tensor]], batch_tokens: int, *ids: tf.RaggedTensor
) -> dict[str, tf.Tensor]:
    """Applies a function to rows of ids in batches of similar length, the longest rows first.

    Args:
        function: maps int32 [b, length], padded, one tensor for each of `ids`, to tensors [b, ...]
            whose other axes are of fixed sizes. A row's results may not depend on the others.
        batch_tokens: bounds rows x longest of a batch, except for a row longer itself.
        ids: int32 [B, None] each, of equal numbers of rows; B may be 0.

    Returns:
        What `function` gives, [B, ...], in the order of the rows.
    """
    spec = tf.TensorSpec([None, None], tf.int32)
    function = tf.function(function, [spec] * len(ids), autograph=False).get_concrete_function()
    lengths = tf.reduce_max([rows.row_lengths() for rows in ids], axis=0)  # [B]
    lengths = tf.cast(lengths, tf.int32)
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    total = tf.size(order)

    def advance(start, results):
        longest = tf.maximum(lengths[order[start]], MIN_ROW_TOKENS)
        size = tf.maximum(batch_tokens // longest, 1)
        batch = order[start : start + size]  # [b]
        found = function(*[tf.gather(rows, batch).to_tensor(PAD_ID) for rows in ids])
        results = {
            name: tf.tensor_scatter_nd_update(results[name], batch[:, None], found[name])
            for name in results
        }
        return start + size, results

    results = {
        name: tf.zeros([total, *tensor.shape[1:]], tensor.dtype)
        for name, tensor in function.structured_outputs.items()
    }
    # One after the other, as several at once would take the memory of several.
    _, results = tf.while_loop(
        lambda start, _: start < total, advance, [0, results], parallel_iterations=1
    )
    return results


def padded(ids: tf.RaggedTensor) -> tf.Tensor:
    """Makes int32 [B, longest] of ids, with one column at least."""
    longest = tf.reduce_max(tf.concat([[1], ids.row_lengths()], axis=0))
    return ids.to_tensor(PAD_ID, shape=tf.stack([-1, longest]))


def pieces(tokenizer: Tokenizer, ids: tf.Tensor) -> tf.Tensor:
    """Spells ids int32 [B, S]: string [B, S], "</s>" for EOS and "" for padding."""
    spelled = tokenizer.pieces_tensor(ids)
    spelled = tf.where(ids == EOS_ID, EOS_PIECE, spelled)
    return tf.where(ids == PAD_ID, "", spelled)
