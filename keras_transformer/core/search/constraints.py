"""Lexical constraints: phrases that a hypothesis must contain (Hokamp and Liu 2017).

To produce hypotheses with the phrases, a step considers more extensions, and divides the beam among
hypotheses that have more or fewer tokens of their phrases: dynamic beam allocation (Post and Vilar
2018, section 3). Phrases are token ids, int32 [B, P, M], padded, P and M at least 1; all padding
means no phrase. They may overlap, and a phrase given twice need only occur once.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.core.search.beam_search import BeamSearch
from keras_transformer.core.search.candidates import Extensions, without
from keras_transformer.core.search.config import SearchSettings
from keras_transformer.core.search.hypotheses import Hypotheses
from keras_transformer.core.search.search_loop import StepFunction, search
from keras_transformer.core.search.state import (
    NONE,
    Cache,
    FirstInputs,
    SearchState,
    choose,
    merged,
    only_existing,
    resized,
)


def constrained_search(
    step_fn: StepFunction,
    cache: Cache,
    max_lengths: tf.Tensor,
    strategy: BeamSearch,
    phrases: tf.Tensor,
    prefix: tf.Tensor | None = None,
    aligned: bool = False,
    first: FirstInputs | None = None,
) -> Hypotheses:
    """Searches with `strategy`, and then with the phrases for sentences that lack one.

    A beam divided into banks may lose hypotheses that contain the phrases anyway. So those of the
    first search are kept, and sentences that have their best ones are not searched again.

    Args:
        strategy: the search without phrases.
        phrases: int32 [B, P, M], padded: phrases that hypotheses must contain.
        others: see `search`.

    Returns:
        Hypotheses padded to the longest. Unfinished ones are returned only if there are no others,
        those with most of their phrases first.
    """
    settings = strategy.settings
    max_lengths = tf.convert_to_tensor(max_lengths, tf.int32)
    free = search(step_fn, cache, max_lengths, strategy, prefix, aligned, first)
    free, has_best = complete_hypotheses(free, phrases, strategy)
    with_phrases = ConstrainedSearch(settings, strategy.guaranteed, strategy.alpha, phrases)
    remaining = tf.where(has_best, 0, max_lengths)
    constrained = search(step_fn, cache, remaining, with_phrases, prefix, aligned, first)
    return better_of(free, constrained, has_best, settings)


class ConstrainedSearch(BeamSearch):
    """Beam search for hypotheses that contain phrases.

    Args:
        settings, guaranteed, alpha: as for BeamSearch.
        phrases: int32 [B, P, M], padded.
    """

    def __init__(
        self,
        settings: SearchSettings,
        guaranteed: tf.Tensor,
        alpha: tf.Tensor,
        phrases: tf.Tensor,
    ):
        super().__init__(settings, guaranteed, alpha)
        self.phrases = phrases

    def extend(self, state: SearchState, logits: tf.Tensor, banned: tf.Tensor | None) -> Extensions:
        free = super().extend(state, logits, banned)
        required = required_tokens(state, self.settings)
        allowed = without(logits, banned)
        return add_required(free, state.alive.log_prob, logits, allowed, required)

    def choose(
        self, state: SearchState, ids: tf.Tensor, scores: tf.Tensor, log_probs: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Chooses by `allocate_beam`; only hypotheses with all phrases are acceptable."""
        progress = phrase_progress(ids, state.position + 1, state.phrases, self.settings.pad_id)
        scores = tf.where(tf.reduce_all(progress.occurs, axis=2), scores, NONE)
        beams = self.settings.options.beam_size
        return scores, *allocate_beam(progress, log_probs, beams)


def complete_hypotheses(
    free: Hypotheses, phrases: tf.Tensor, strategy: BeamSearch
) -> tuple[Hypotheses, tf.Tensor]:
    """Drops hypotheses that lack EOS or a phrase from a search without phrases.

    Returns:
        The others, the only ones with a score, and whether they include the guaranteed ones: bool
        [B]. A sentence without phrases keeps all of its hypotheses.
    """
    pad_id = strategy.settings.pad_id
    free = resized(free, tf.maximum(tf.shape(free.ids)[2], 1), pad_id)
    progress = phrase_progress(free.ids, tf.shape(free.ids)[2], phrases, pad_id)
    ended = tf.reduce_any(free.ids == strategy.settings.eos_id, axis=2)  # [B, K]
    needs_none = tf.reduce_all(phrases == pad_id, axis=[1, 2])[:, None]  # [B, 1]
    is_complete = needs_none | (ended & tf.reduce_all(progress.occurs, axis=2))  # [B, K]
    scores = tf.where(is_complete, free.score, NONE)
    has_best = tf.reduce_all(is_complete[:, : strategy.guaranteed], axis=1)
    return free._replace(score=scores), has_best


def better_of(
    free: Hypotheses, constrained: Hypotheses, has_best: tf.Tensor, settings: SearchSettings
) -> Hypotheses:
    """Merges both searches' hypotheses, and returns the K best without duplicates.

    Args:
        free: hypotheses of the search without phrases; those with a score contain the phrases.
        constrained: hypotheses of the search with phrases.
        has_best: bool [B], whether only `free` was searched.
    """
    length = tf.maximum(tf.shape(free.ids)[2], tf.shape(constrained.ids)[2])
    free, constrained = (resized(each, length, settings.pad_id) for each in (free, constrained))
    is_complete = free.score > NONE  # [B, K]
    ended = tf.reduce_any(constrained.ids == settings.eos_id, axis=2)  # [B, K]
    same = tf.reduce_all(constrained.ids[:, :, None] == free.ids[:, None], axis=3)  # [B, K, K]
    is_known = tf.reduce_any(same & is_complete[:, None], axis=2)  # [B, K]
    is_new = ended & ~is_known & ~has_best[:, None]
    new = constrained._replace(score=tf.where(is_new, constrained.score, NONE))
    both = only_existing(merged(free, new, settings.options.beam_size), settings.pad_id)
    # Unfinished hypotheses are ordered differently, and count only if there are no others.
    return choose(has_best | (both.score[:, 0] > NONE), both, constrained)


class PhraseProgress(NamedTuple):
    """The progress of hypotheses towards their phrases."""

    # How many tokens of each phrase a hypothesis has: all if the phrase occurs, otherwise the
    # length of the phrase's longest prefix that ends the hypothesis.
    counts: tf.Tensor  # int32 [B, K, P]
    occurs: tf.Tensor  # bool [B, K, P], whether a phrase occurs


def phrase_progress(
    ids: tf.Tensor, position: tf.Tensor, phrases: tf.Tensor, pad_id: int
) -> PhraseProgress:
    """Compares hypotheses with their sentence's phrases.

    Args:
        ids: int32 [B, K, L], of which the first `position` tokens are valid.
        position: int32 scalar.
        phrases: int32 [B, P, M], padded.
        pad_id: the id of padding.

    Example:
        The hypothesis 7 5 8 5 contains the phrase 5 8, and ends with the beginning of 5 9.

        >>> ids = tf.constant([[[7, 5, 8, 5]]])
        >>> phrases = tf.constant([[[5, 8], [5, 9]]])
        >>> progress = phrase_progress(ids, tf.constant(4), phrases, pad_id=0)
        >>> progress.counts.numpy().tolist(), progress.occurs.numpy().tolist()
        ([[[2, 1]]], [[[True, False]]])
    """
    is_padding = phrases == pad_id  # [B, P, M]
    starts = tf.range(tf.shape(ids)[2])  # [L], where a phrase may begin
    positions = starts[:, None] + tf.range(tf.shape(phrases)[2])  # [L, M]
    windows = tf.gather(ids, tf.minimum(positions, starts[-1]), axis=2)  # [B, K, L, M]
    # Unlike ==, tf.equal keeps the rank if L is not known yet.
    same = tf.equal(windows[:, :, None], phrases[:, None, :, None])  # [B, K, P, L, M]
    same |= is_padding[:, None, :, None] | (positions >= position)
    begins_here = tf.reduce_all(same, axis=4)  # [B, K, P, L]
    lengths = tf.math.count_nonzero(~is_padding, axis=2, dtype=tf.int32)[:, None]  # [B, 1, P]
    written = tf.maximum(position - starts, 0)  # [L], the number of tokens from each start
    begun = tf.minimum(lengths[..., None], written)  # [B, 1, P, L], their tokens if they begin here
    counts = tf.reduce_max(tf.where(begins_here, begun, 0), axis=3)  # [B, K, P]
    return PhraseProgress(counts, counts == lengths)


def required_tokens(state: SearchState, settings: SearchSettings) -> tf.Tensor:
    """Returns the tokens that continue each phrase: int32 [B, P, K], -1 for complete phrases."""
    pad_id = settings.pad_id
    progress = phrase_progress(state.alive.ids, state.position, state.phrases, pad_id)  # [B, K, P]
    counts = tf.transpose(progress.counts, [0, 2, 1])  # [B, P, K]
    # A complete phrase of M tokens continues with padding.
    padded = tf.pad(state.phrases, [[0, 0], [0, 0], [0, 1]], constant_values=pad_id)
    tokens = tf.gather(padded, counts, batch_dims=2)  # [B, P, K]
    return tf.where(tokens == pad_id, -1, tokens)


def add_required(
    free: Extensions, alive: tf.Tensor, logits: tf.Tensor, allowed: tf.Tensor, required: tf.Tensor
) -> Extensions:
    """Adds extensions by required tokens, and by each hypothesis's best two tokens.

    Two, as one of them may be EOS; and only for sentences with a required token.

    Args:
        free: the extensions without regard to phrases.
        alive: float32 [B, K], log probabilities of the hypotheses to extend.
        logits: float32 [B, K, V].
        allowed: the same, with -inf for banned tokens.
        required: int32 [B, P, K], tokens, or -1 for none.

    Returns:
        `free` and the others. Duplicates of `free` and banned ones have log probability -inf.
    """
    batch, beams, vocab_size = tf.unstack(tf.shape(logits))
    best = tf.transpose(tf.math.top_k(allowed, 2).indices, [0, 2, 1])  # [B, 2, K]
    best = tf.where(tf.reduce_any(required >= 0, axis=[1, 2], keepdims=True), best, -1)
    tokens = tf.reshape(tf.concat([required, best], axis=1), [batch, -1])  # [B, (P + 2) K]
    exists = tokens >= 0
    tokens = tf.maximum(tokens, 0)
    parents = tf.zeros_like(tokens) + tf.range(tf.shape(tokens)[1]) % beams
    indices = parents * vocab_size + tokens
    log_probs = tf.gather(tf.reshape(allowed, [batch, -1]), indices, batch_dims=1)
    log_probs -= tf.gather(tf.reduce_logsumexp(logits, axis=2), parents, batch_dims=1)
    log_probs = tf.minimum(log_probs, 0.0) + tf.gather(alive, parents, batch_dims=1)
    more = Extensions(tokens, parents, tf.where(exists, log_probs, NONE))
    every = Extensions(*[tf.concat(pair, axis=1) for pair in zip(free, more, strict=True)])
    keys = tf.where(every.log_probs > NONE, every.parents * vocab_size + every.tokens, -1)
    return every._replace(log_probs=tf.where(earlier_equals(keys) > 0, NONE, every.log_probs))


def allocate_beam(
    progress: PhraseProgress, log_probs: tf.Tensor, beams: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Chooses K of C hypotheses by progress and log probability, in the form of tf.math.top_k.

    A bank contains the hypotheses with the same number of phrase tokens: those of complete phrases
    and of one begun phrase. The beam takes the best of each bank in turn, starting with the bank
    that has the most tokens, which gains a token at each step.

    Args:
        progress: the progress of the C hypotheses, [B, C, P] each.
        log_probs: float32 [B, C].
        beams: K.

    Returns:
        The log probabilities of the chosen hypotheses, float32 [B, K], and their indices, int32.

    Example:
        Four hypotheses have 0, 2, 2 and 1 tokens of their only phrase, which has three tokens.
        There is room for three: one from each bank precedes the second one with two tokens.

        >>> counts = tf.constant([[[0], [2], [2], [1]]])
        >>> progress = PhraseProgress(counts, counts == 3)
        >>> log_probs = tf.constant([[-1.0, -4.0, -5.0, -6.0]])
        >>> chosen, indices = allocate_beam(progress, log_probs, beams=3)
        >>> indices.numpy().tolist(), chosen.numpy().tolist()
        ([[1, 3, 0]], [[-4.0, -6.0, -1.0]])
    """
    complete_tokens = tf.where(progress.occurs, progress.counts, 0)
    begun_tokens = tf.where(progress.occurs, 0, progress.counts)
    banks = tf.reduce_sum(complete_tokens, axis=2) + tf.reduce_max(begun_tokens, axis=2)  # [B, C]
    log_probs, order = tf.math.top_k(log_probs, tf.shape(log_probs)[1])
    banks = tf.gather(banks, order, batch_dims=1)
    fullest = tf.reduce_max(banks, axis=1, keepdims=True)
    turns = earlier_equals(banks) * (fullest + 1) + fullest - banks
    _, chosen = tf.math.top_k(-tf.where(log_probs > NONE, turns, tf.int32.max), beams)
    return tf.gather(log_probs, chosen, batch_dims=1), tf.gather(order, chosen, batch_dims=1)


def earlier_equals(keys: tf.Tensor) -> tf.Tensor:
    """Counts the earlier occurrences of each key in its row: int32 [B, C].

    Example:
        >>> earlier_equals(tf.constant([[3, 1, 3, 3]])).numpy().tolist()
        [[0, 0, 1, 2]]
    """
    columns = tf.range(tf.shape(keys)[1])
    equals = (keys[:, :, None] == keys[:, None]) & (columns[:, None] > columns)
    return tf.math.count_nonzero(equals, axis=2, dtype=tf.int32)
