"""A model's graphs: tensors of ids in, tensors out.

The engine calls them (tensorflow_engine.py), and an export stores them as signatures of the same
names (exchange/saved_model.py).
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from keras_transformer.core.config import PAD_ID
from keras_transformer.core.search.alignment import alignment
from keras_transformer.core.search.alphas import AlphaSearch
from keras_transformer.core.search.beam_search import BeamSearch
from keras_transformer.core.search.cache import SearchCache
from keras_transformer.core.search.compiled_model import CompiledModel, attention_maps
from keras_transformer.core.search.config import SearchSettings
from keras_transformer.core.search.constraints import constrained_search
from keras_transformer.core.search.ensemble import Ensemble, decode_target
from keras_transformer.core.search.greedy_search import GreedySearch
from keras_transformer.core.search.hypotheses import Hypotheses
from keras_transformer.core.search.sampling import Sampling
from keras_transformer.core.search.search_loop import Strategy, search

IDS = tf.TensorSpec([None, None], tf.int32)
PHRASES = tf.TensorSpec([None, None, None], tf.int32)
NUMBER = tf.TensorSpec([], tf.int32)
ALPHA = tf.TensorSpec([], tf.float32)
ALPHAS = tf.TensorSpec([None], tf.float32)

Tensors = dict[str, tf.Tensor]


def graph(*signature: tf.TensorSpec) -> Callable:
    """Turns a method into a graph, traced on its first call.

    There is nothing for AutoGraph to convert, and checking would double the tracing time.
    """
    return tf.function(input_signature=signature, autograph=False)


class SearchGraphs:
    """The graphs of a model.

    Args:
        model: one model, or an ensemble.
        settings: the search options, and the forbidden phrases.
        constraints: whether to provide `constrain_ids`, an additional search.

    Attributes:
        limits: the maximum lengths of source and target.
        for_xla: whether XLA compiles the searches.
    """

    for_xla = False

    def __init__(
        self, model: CompiledModel | Ensemble, settings: SearchSettings, constraints: bool = True
    ):
        self.model = model
        self.settings = settings
        self.limits = settings.options.limits(*[each.config for each in model.members])
        self.named: dict[str, Callable[..., Tensors]] = {
            "search_ids": self.search_ids,
            "aligned_search_ids": self.aligned_search_ids,
            "score_ids": self.score_ids,
            "align_ids": self.align_ids,
        }
        if settings.options.is_greedy:
            self.named["greedy_ids"] = self.greedy_ids
            self.named["aligned_greedy_ids"] = self.aligned_greedy_ids
        if constraints and settings.options.sampling is None:
            self.named["constrain_ids"] = self.constrain_ids
        if settings.options.sampling is None:
            self.named["alpha_ids"] = self.alpha_ids
        if len(model.members) == 1:  # an ensemble's models may have different heads
            self.named["attention_ids"] = self.attention_ids

    @property
    def exported(self) -> dict[str, Callable[..., Tensors]]:
        """The graphs for an export, whose alpha has been chosen."""
        return {name: self.named[name] for name in self.named if name != "alpha_ids"}

    @graph(IDS, IDS, NUMBER, ALPHA)
    def search_ids(self, source, prefix, guaranteed, alpha) -> Tensors:
        """Searches a batch.

        Args:
            source: int32 [B, S], each row ending in EOS and then padding.
            prefix: int32 [B, P], padded, without EOS, P at least 1: a prefix for each target.
            guaranteed: int32 scalar, how many of the hypotheses must be the best ones.
            alpha: float32 scalar, for the length penalty (section 6.1).

        Returns:
            ids int32 [B, K, T], padded; length int32 [B, K], EOS included; score float32 [B, K],
            log probability / length penalty; log_prob float32 [B, K], natural logarithm. Missing
            hypotheses have length 0 and score -inf.
        """
        return self._search(self._strategy(guaranteed, alpha), source, prefix)

    @graph(IDS, IDS, NUMBER, ALPHA)
    def aligned_search_ids(self, source, prefix, guaranteed, alpha) -> Tensors:
        """Like `search_ids`, but also aligns, in a few percent more time.

        Returns:
            The same, and for each target token: alignment int32 [B, K, T], a source position; and
            token_log_prob float32 [B, K, T], natural logarithm, 0 at padding.
        """
        return self._search(self._strategy(guaranteed, alpha), source, prefix, aligned=True)

    @graph(IDS, IDS, PHRASES, NUMBER, ALPHA)
    def constrain_ids(self, source, prefix, phrases, guaranteed, alpha) -> Tensors:
        """Like `search_ids`, with required phrases.

        Args:
            phrases: int32 [B, P, M], padded, without EOS: phrases that each target must contain. If
                there is no room for all of them, targets with most of them come first.
        """
        model = self.model.in_graph()
        cache = model.start(source, self.settings.options.beam_size)
        strategy, lengths = BeamSearch(self.settings, guaranteed, alpha), self._max_lengths(cache)
        first = model.first_inputs(source)
        best = constrained_search(
            model.step, cache, lengths, strategy, phrases, prefix, first=first
        )
        return best.outputs

    @graph(IDS, ALPHAS)
    def alpha_ids(self, source, alphas) -> Tensors:
        """Like `search_ids`, with the best hypothesis for each alpha, float32 [A], instead of K."""
        return self._search(AlphaSearch(self.settings, alphas), source)

    @graph(IDS, IDS)
    def greedy_ids(self, source, prefix) -> Tensors:
        """Like `search_ids`, with one beam and without scores.

        Returns:
            ids and length, as in `search_ids`; is_finite bool [B, 1], False if a logit is NaN
            because weights are not finite.
        """
        return self._search(GreedySearch(self.settings), source, prefix)

    @graph(IDS, IDS)
    def aligned_greedy_ids(self, source, prefix) -> Tensors:
        """Like `greedy_ids`, but also aligns, in a few percent more time.

        Returns:
            The same, and alignment int32 [B, 1, T], a source position for each target token.
        """
        return self._search(GreedySearch(self.settings), source, prefix, aligned=True)

    @graph(IDS, IDS)
    def score_ids(self, source, target) -> Tensors:
        """Scores given targets: log_prob float32 [B], natural logarithm, EOS included."""
        logits, _ = decode_target(self.model.in_graph(), source, target)
        return {"log_prob": tf.reduce_sum(token_log_probs(logits, target), axis=1)}

    @graph(IDS, IDS)
    def align_ids(self, source, target) -> Tensors:
        """Computes the log probability and the alignment of each target token.

        Returns:
            log_probs float32 [B, T], natural logarithm, 0 at padding; alignment int32 [B, T], a
            source position for each target token.
        """
        explained = self.attention_ids(source, target)  # one graph of the model for both
        return {name: explained[name] for name in ("log_probs", "alignment")}

    @graph(IDS, IDS)
    def attention_ids(self, source, target) -> Tensors:
        """Like `align_ids`, with the fields of alignment.AttentionMaps."""
        logits, computed = decode_target(self.model.in_graph(), source, target)
        cross_attention = [decoded.cross_attention for _, decoded in computed]
        return {
            "log_probs": token_log_probs(logits, target),
            "alignment": alignment(cross_attention, computed[0][0].mask),
            **attention_maps(*computed[0])._asdict(),
        }

    def run(self, step, cache, max_lengths, strategy, prefix, aligned, first) -> Hypotheses:
        """Runs a search; see search_loop.search."""
        return search(step, cache, max_lengths, strategy, prefix, aligned, first)

    def _strategy(self, guaranteed, alpha) -> Strategy:
        if self.settings.options.sampling is None:
            return BeamSearch(self.settings, guaranteed, alpha)
        return Sampling(self.settings, alpha)

    def _search(self, strategy: Strategy, source, prefix=None, aligned: bool = False) -> Tensors:
        model = self.model.in_graph(self.for_xla)
        cache = model.start(source, self.settings.options.beam_size)
        step = model.scaled_step if isinstance(strategy, GreedySearch) else model.step
        lengths, first = self._max_lengths(cache), model.first_inputs(source)
        return self.run(step, cache, lengths, strategy, prefix, aligned, first).outputs

    def _max_lengths(self, cache: SearchCache) -> tf.Tensor:
        """Returns the maximum target length for each source, int32 [B]: 0 for an empty one."""
        options = self.settings.options
        source_lengths = tf.reduce_sum(tf.cast(cache.source_mask, tf.int32), axis=1)
        longest = tf.minimum(source_lengths + options.extra_length, self.limits.target)
        return tf.where(source_lengths > 1, longest, 0)


def token_log_probs(logits: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    """Returns the log probabilities of targets, int32 [B, T]: float32 [B, T], 0 at padding."""
    target_logits = tf.gather(logits, target, batch_dims=2)
    log_probs = target_logits - tf.reduce_logsumexp(logits, axis=2)
    return tf.where(target == PAD_ID, 0.0, log_probs)


class ExportedGraphs(NamedTuple):
    """An export's signatures."""

    named: dict[str, Callable[..., Tensors]]
