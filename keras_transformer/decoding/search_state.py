"""What a beam search knows between two steps: configuration, hypotheses, sentences.

B shrinks while a search goes on, as sentences that have stopped leave it; L, the room for the
tokens of a hypothesis, grows.
"""

import dataclasses
import math
from typing import Any, NamedTuple, TypeVar

import tensorflow as tf

from keras_transformer.config import BOS_ID, EOS_ID, PAD_ID
from keras_transformer.decoding.candidates import NONE, SamplingConfig
from keras_transformer.errors import InputError


@dataclasses.dataclass(frozen=True)
class BeamSearchConfig:
    """What decides the outcome of a search, given the probabilities."""

    beam_size: int = 4  # K, section 6.1; 1 is greedy search
    alpha: float = 0.6  # length penalty, section 6.1; 0 ranks by log-probability
    n_best: int | None = None  # how many of the K must be exact; None for all
    sampling: SamplingConfig | None = None  # K random hypotheses instead of the best
    bos_id: int = BOS_ID  # the first input of every hypothesis, not a part of it
    eos_id: int = EOS_ID  # ends a hypothesis, and counts in its length
    pad_id: int = PAD_ID  # fills up what is returned

    def __post_init__(self):
        if self.beam_size < 1:
            raise InputError(f"--beam_size must be at least 1. Received: {self.beam_size}")
        # Not `alpha < 0`: NaN compares false with everything.
        if not 0 <= self.alpha < math.inf:
            raise InputError(f"--alpha must be a number of at least 0. Received: {self.alpha}")
        if self.n_best is not None and not 1 <= self.n_best <= self.beam_size:
            rule = f"--n_best must be from 1 to the beam size, {self.beam_size}"
            raise InputError(f"{rule}. Received: {self.n_best}")

    @property
    def candidates(self) -> int:
        """Extensions considered at a step for each sentence."""
        if self.sampling is not None:
            return self.beam_size
        return 1 if self.beam_size == 1 else 2 * self.beam_size

    @property
    def decisive(self) -> int:
        """Rank, from 0, of the finished hypothesis that alive ones must beat."""
        every = self.n_best is None or self.sampling is not None
        return (self.beam_size if every else self.n_best) - 1


class Cache(NamedTuple):
    """What a step function keeps from step to step: any nested structures of tensors."""

    per_beam: Any = ()  # [B, K, ...], each row that of a hypothesis: follows it
    per_sentence: Any = ()  # [B, ...], shared by a sentence's hypotheses


class Hypotheses(NamedTuple):
    """Hypotheses of each sentence, K or fewer, best first.

    Those that do not exist have score -inf and length 0.
    """

    ids: tf.Tensor  # int32 [B, K, T], with EOS, padded
    token_log_probs: tf.Tensor  # float32 [B, K, T], natural logarithm, 0 at padding
    lengths: tf.Tensor  # int32 [B, K], EOS counted
    scores: tf.Tensor  # float32 [B, K], log-probability / length penalty
    log_probs: tf.Tensor  # float32 [B, K], sum of token_log_probs


class Alive(NamedTuple):
    """Hypotheses without EOS, all of the same length, best first."""

    ids: tf.Tensor  # int32 [B, K, L], padded; L grows from round to round
    token_log_probs: tf.Tensor  # float32 [B, K, L]
    log_probs: tf.Tensor  # float32 [B, K]


class Sentences(NamedTuple):
    """What is known of the sentences still in the batch."""

    index: tf.Tensor  # int32 [B], their places in what is returned
    max_lengths: tf.Tensor  # int32 [B]
    prefix: tf.Tensor  # int32 [B, P], padded


class SearchState(NamedTuple):
    """What a step of the search hands to the next; B shrinks from round to round."""

    position: tf.Tensor  # int32 scalar, number of steps made
    running: tf.Tensor  # bool [B], whether the sentence is still searched
    last_ids: tf.Tensor  # int32 [B, K], the next inputs: last tokens of the alive hypotheses
    sentences: Sentences
    alive: Alive
    finished: Hypotheses  # with EOS, the best so far; [B, K, L] as alive
    cache: Cache  # rows in the order of the alive hypotheses


def initial_state(
    cache: Cache, max_lengths: tf.Tensor, prefix: tf.Tensor, config: BeamSearchConfig
) -> SearchState:
    """One alive hypothesis a sentence: the empty one. The other K - 1 do not exist yet.

    Where hypotheses are drawn at random, there are K empty ones.
    """
    batch, beams = tf.shape(max_lengths)[0], config.beam_size
    none = tf.fill([batch, beams], NONE)
    first = tf.concat([tf.zeros([batch, 1]), none[:, 1:]], axis=1)
    if config.sampling is not None:
        first = tf.zeros([batch, beams])
    finished = no_results(tf.zeros_like(max_lengths), config)
    return SearchState(
        position=tf.constant(0),
        running=max_lengths > 0,
        last_ids=tf.fill([batch, beams], config.bos_id),
        sentences=Sentences(tf.range(batch), max_lengths, tf.cast(prefix, tf.int32)),
        alive=Alive(finished.ids, finished.token_log_probs, first),
        finished=finished,
        cache=cache,
    )


def no_results(max_lengths: tf.Tensor, config: BeamSearchConfig) -> Hypotheses:
    """K hypotheses a sentence that do not exist, with room for the longest there may be."""
    batch, beams = tf.shape(max_lengths)[0], config.beam_size
    longest = tf.reduce_max(tf.concat([max_lengths, [1]], axis=0))  # the batch may be empty
    none = tf.fill([batch, beams], NONE)
    return Hypotheses(
        ids=tf.fill([batch, beams, longest], config.pad_id),
        token_log_probs=tf.zeros([batch, beams, longest]),
        lengths=tf.zeros([batch, beams], tf.int32),
        scores=none,
        log_probs=none,
    )


def state_shapes(state: SearchState) -> SearchState:
    """The static shapes of a SearchState that hold at every step."""

    def shape(tensor):  # [B, K, ...], where the first axis shrinks and the third may grow
        dims = tensor.shape.as_list()
        return tf.TensorShape([None, *dims[1:2], *[None for _ in dims[2:3]], *dims[3:]])

    return tf.nest.map_structure(shape, state)._replace(position=tf.TensorShape([]))


Tokens = TypeVar("Tokens", Alive, Hypotheses)


def lengthened(hypotheses: Tokens, length: tf.Tensor, config: BeamSearchConfig) -> Tokens:
    """Pads, or cuts, the tokens of Alive or Hypotheses to `length`, int32 scalar."""
    ids, token_log_probs = hypotheses.ids, hypotheses.token_log_probs
    width = [[0, 0], [0, 0], [0, tf.maximum(length - tf.shape(ids)[2], 0)]]
    return hypotheses._replace(
        ids=tf.pad(ids, width, constant_values=config.pad_id)[:, :, :length],
        token_log_probs=tf.pad(token_log_probs, width)[:, :, :length],
    )


def choose(condition: tf.Tensor, if_true: tf.Tensor, if_false: tf.Tensor) -> tf.Tensor:
    """tf.where by sentences: the condition is bool [B], the others are [B, ...]."""
    return tf.where(tf.reshape(condition, [-1] + [1] * (if_true.shape.rank - 1)), if_true, if_false)
