"""Texts in, texts out, inside a graph: an export's functions for users with TensorFlow alone.

The graphs take string [B] and return a dict of tensors whose first axis is B, which may be 0; one
text, string [], is a batch of one. Texts are UTF-8, and are truncated to the limits in the options.
They call the graphs on ids from search/engines/graphs.py, in batches of similar length. In a
process with this package, a Translator does the same, and more, in Python.

Only an export handles text inside a graph, and only sentences, as TensorFlow Serving needs it.
Documents, prefixes and alignments are in Python, around the graphs of ids.
"""

from collections.abc import Callable

import tensorflow as tf

from keras_transformer.core.config import EOS_ID, PAD_ID
from keras_transformer.core.search.engines.graphs import SearchGraphs, Tensors, graph
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.exchange.graph_vocabulary import GraphVocabulary
from keras_transformer.use.translate.batches import MIN_ROW_TOKENS

TEXTS = tf.TensorSpec([None], tf.string)


class TextGraphs:
    """The graphs on texts, by name in `named`.

    Args:
        graphs: the graphs on ids.
        vocabularies: the source and target vocabularies.

    Attributes:
        vocabularies: their graph versions, whose tables a SavedModel must track. Tracking this
            object instead would save all graphs, whatever the signatures.
    """

    def __init__(self, graphs: SearchGraphs, vocabularies: VocabularyPair):
        self._graphs = graphs
        self._options = graphs.settings.options
        self._source = GraphVocabulary(vocabularies.source)
        self._target = self._source
        if vocabularies.own_source is not None:
            self._target = GraphVocabulary(vocabularies.target)
        self.vocabularies = [self._source, self._target]
        self.named: dict[str, Callable[..., Tensors]] = {
            "serving_default": self.serving_default,
            "n_best": self.n_best,
            "score": self.score,
        }

    @graph(TEXTS)
    def serving_default(self, text) -> Tensors:
        """The best translation string [B], its score float32 [B], and truncated bool [B]."""
        best = self._translate(text, guaranteed=1)
        return {
            "translation": best["translation"][:, 0],
            "score": best["score"][:, 0],
            "truncated": best["truncated"],
        }

    @graph(TEXTS)
    def n_best(self, text) -> Tensors:
        """Finds the K best translations of each text; K is the number of beams.

        Returns:
            translation string [B, K], best first; score float32 [B, K], log probability / length
            penalty; log_prob float32 [B, K]; length int32 [B, K], subwords with EOS; unfinished
            bool [B, K], whether the translation reached its length limit before EOS; truncated bool
            [B], whether the text was truncated. Missing translations are "" with score -inf; a
            blank text has the translation "" with score 0.
        """
        return self._translate(text, self._options.guaranteed)

    @graph(TEXTS, TEXTS)
    def score(self, source, target) -> Tensors:
        """Computes the probability of each target as a translation of its source.

        Returns:
            log_prob float32 [B], natural logarithm, EOS included; length int32 [B], subwords of the
            target with EOS; perplexity float32 [B], exp(-log_prob / length); truncated bool [B],
            whether source or target was truncated.
        """
        rule = "there must be a target for every source"
        same = tf.debugging.assert_equal(tf.size(source), tf.size(target), message=rule)
        with tf.control_dependencies([same]):
            source, target = tf.identity(source), tf.identity(target)
        limits = self._graphs.limits
        source_ids, source_cut = encoded(self._source, source, limits.source)
        target_ids, target_cut = encoded(self._target, target, limits.target)
        scores = in_batches(
            self._graphs.score_ids, self._options.batch_tokens, source_ids, target_ids
        )
        log_prob = scores["log_prob"]
        length = tf.cast(target_ids.row_lengths(), tf.int32)
        perplexity = tf.exp(-log_prob / tf.cast(length, tf.float32))
        return {
            "log_prob": log_prob,
            "length": length,
            "perplexity": perplexity,
            "truncated": source_cut | target_cut,
        }

    def _translate(self, text, guaranteed: int) -> Tensors:
        """Translates texts in batches: the outputs of `n_best`, with that many guaranteed."""
        source_ids, truncated = encoded(self._source, text, self._graphs.limits.source)

        def translate_batch(source):
            no_prefix = tf.fill([tf.shape(source)[0], 1], PAD_ID)
            hypotheses = self._graphs.search_ids(source, no_prefix, guaranteed, self._options.alpha)
            return {
                "translation": self._texts(hypotheses["ids"]),
                "score": hypotheses["score"],
                "log_prob": hypotheses["log_prob"],
                "length": hypotheses["length"],
                "unfinished": _unfinished(hypotheses),
            }

        translations = in_batches(translate_batch, self._options.batch_tokens, source_ids)
        return {**translations, "truncated": truncated}

    def _texts(self, ids: tf.Tensor) -> tf.Tensor:
        """Decodes ids, int32 [B, K, T]: string [B, K]."""
        batch, beams, length = tf.unstack(tf.shape(ids))
        rows = tf.reshape(ids, [batch * beams, length])  # [B K, T], T may be 0
        return tf.reshape(self._target.decode(rows), [-1, self._options.beam_size])


def _unfinished(hypotheses: Tensors) -> tf.Tensor:
    """Whether a translation reached its length limit before EOS: bool [B, K]."""
    has_eos = tf.reduce_any(hypotheses["ids"] == EOS_ID, axis=2)
    return (hypotheses["length"] > 0) & ~has_eos


def encoded(
    vocabulary: GraphVocabulary, texts: tf.Tensor, limit: int
) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """Encodes texts, string [B], as at most `limit` ids with EOS.

    Returns:
        The ids, int32 [B, None]; and bool [B], whether a text was truncated.
    """
    ids = vocabulary.encode(texts)
    truncated = ids.row_lengths() > limit - 1
    ends = tf.fill([ids.nrows(), 1], EOS_ID)
    return tf.concat([ids[:, : limit - 1], ends], axis=1), truncated


def in_batches(
    function: Callable[..., Tensors], batch_tokens: int, *ids: tf.RaggedTensor
) -> Tensors:
    """Applies a function to rows of ids in batches of similar length, the longest rows first.

    Args:
        function: maps int32 [b, length], padded, one tensor for each of `ids`, to tensors [b, ...]
            whose other axes have fixed sizes. A row's results must not depend on the others.
        batch_tokens: limit on rows x longest length in a batch, except for a single longer row.
        ids: int32 [B, None, ...] each; the results are [B, ...] in the order of the rows.
    """
    specs = [tf.TensorSpec([None] * rows.shape.rank, tf.int32) for rows in ids]
    function = tf.function(function, specs, autograph=False).get_concrete_function()
    lengths = tf.reduce_max([rows.row_lengths() for rows in ids], axis=0)
    lengths = tf.cast(lengths, tf.int32)  # [B]
    order = tf.argsort(lengths, direction="DESCENDING")
    total = tf.size(order)

    def advance(start, results):
        longest = tf.maximum(lengths[order[start]], MIN_ROW_TOKENS)
        batch = order[start : start + tf.maximum(batch_tokens // longest, 1)]  # [b]
        outputs = function(*[tf.gather(rows, batch).to_tensor(PAD_ID) for rows in ids])
        results = {
            name: tf.tensor_scatter_nd_update(results[name], batch[:, None], outputs[name])
            for name in results
        }
        return start + tf.size(batch), results

    results = {
        name: tf.zeros([total, *tensor.shape[1:]], tensor.dtype)
        for name, tensor in function.structured_outputs.items()
    }
    # One after another, as parallel batches would multiply the memory.
    _, results = tf.while_loop(
        lambda start, _: start < total, advance, [0, results], parallel_iterations=1
    )
    return results
