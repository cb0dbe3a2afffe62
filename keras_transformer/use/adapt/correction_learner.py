"""Learns corrected translations as they come: a few steps for each, without forgetting the others.

A step's batch has the new correction, a random sample of earlier ones, and a batch of the text that
the model was trained on (experience replay, Rolnick et al. 2019, arXiv 1811.11682). Half of the
sample is from the last few corrections, which have been repeated least. Only an adapter is trained
(LoRA, adapters.py); the model's own weights stay unchanged. Texts are translated with a running
mean of the adapter's weights: A and B have a mean each, so that the mean is an adapter, too.

The learning rate is constant, as the stream of corrections has no end. Without the training text,
all texts get worse (docs/diary.md).
"""

import contextlib
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.core.config import EOS_ID, PAD_ID
from keras_transformer.core.training.step import TrainingStep
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.use.adapt.learning_config import LearningConfig

COPIES = 2  # of the new correction in a batch
RECENT = 20  # the last corrections, from which half of the sample is drawn
LENGTH_STEP = 4  # batches are padded to multiples of it, so that few shapes occur


class Pair(NamedTuple):
    """A source and its corrected translation, as ids that end in EOS."""

    source: list[int]
    target: list[int]


Batch = tuple[tf.Tensor, tf.Tensor]  # source int32 [B, S] and target int32 [B, T], padded


class CorrectionLearner:
    """A model with an adapter in training, and the corrections that it has learned.

    Args:
        step: the model, with the weights of its base, and its optimizer.
        vocabularies: of the model.
        max_length: the longest sentence to learn, in ids with EOS.
        config: see LearningConfig.
        replay: batches of the text that the model was trained on, without end.
        steps: number of optimizer steps taken before.

    Attributes:
        learned: the corrected translation of each source, in the order in which they were learned.
        steps: number of optimizer steps taken, with those before.
    """

    def __init__(
        self,
        step: TrainingStep,
        vocabularies: VocabularyPair,
        max_length: int,
        config: LearningConfig,
        replay: Iterator[Batch],
        steps: int = 0,
    ):
        self.step = step
        self.vocabularies = vocabularies
        self.max_length = max_length
        self.config = config
        self.learned: dict[str, str] = {}
        self.steps = steps
        self._pairs: dict[str, Pair] = {}
        self._replay = replay
        self._random = random.Random(config.seed + steps)

    def fits(self, source: str, target: str) -> bool:
        """Whether both texts are short enough to be learned."""
        return max(map(len, self._pair(source, target))) <= self.max_length

    def remember(self, corrections: Mapping[str, str]) -> None:
        """Adds corrections to those that are learned already: they are only repeated."""
        self.forget(corrections)  # the last one learned is the last in the order
        for source, target in corrections.items():
            self.learned[source] = target
            self._pairs[source] = self._pair(source, target)

    def forget(self, sources: Iterable[str]) -> None:
        """Removes corrections that were learned: they are no longer repeated.

        This does not undo what they have changed in the weights.
        """
        for source in sources:
            self.learned.pop(source, None)
            self._pairs.pop(source, None)

    def learn(self, corrections: Mapping[str, str]) -> float:
        """Learns the corrected translations of some sources, usually of one.

        Args:
            corrections: the translations by source, which must fit. One for a source that was
                learned before replaces its earlier translation.

        Returns:
            The mean loss of the last step, in nats per target token.
        """
        new = [self._pair(source, target) for source, target in corrections.items()]
        earlier = [pair for source, pair in self._pairs.items() if source not in corrections]
        for _ in range(self.config.steps):
            pairs = [*new * COPIES, *self._sample(earlier)]
            sums = self.step.run_batch(*_batch(pairs, next(self._replay)))
        self.steps += self.config.steps
        self.remember(corrections)
        return float(sums.loss / sums.target_tokens)

    def _sample(self, earlier: list[Pair]) -> list[Pair]:
        """Draws earlier corrections: half of them from the last few, half from all."""
        recent = earlier[-RECENT:]
        half = self.config.earlier // 2
        sample = self._random.sample(recent, min(half, len(recent)))
        rest = min(self.config.earlier - half, len(earlier))
        return sample + self._random.sample(earlier, rest)

    def _pair(self, source: str, target: str) -> Pair:
        (source_ids,) = self.vocabularies.source.encode([source])
        (target_ids,) = self.vocabularies.target.encode([target])
        return Pair([*source_ids, EOS_ID], [*target_ids, EOS_ID])


def _batch(pairs: Sequence[Pair], replayed: Batch) -> Batch:
    """Joins pairs and a batch of other text: (source int32 [B, S], target int32 [B, T])."""
    sources, targets = map(np.asarray, replayed)
    return (
        _stacked([pair.source for pair in pairs], sources),
        _stacked([pair.target for pair in pairs], targets),
    )


def _stacked(rows: Sequence[list[int]], others: np.ndarray) -> tf.Tensor:
    """Pads rows of ids and appends others, int32 [R, L]: int32 [rows + R, longest]."""
    longest = max(max(map(len, rows)), others.shape[1])
    length = math.ceil(longest / LENGTH_STEP) * LENGTH_STEP
    ids = np.full([len(rows) + len(others), length], PAD_ID, np.int32)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row
    ids[len(rows) :, : others.shape[1]] = others
    return tf.constant(ids)


class RunningMean:
    """The exponential mean of variables over their last values (Polyak and Juditsky 1992).

        mean_t = mean_(t-1) + (value_t - mean_(t-1)) / min(t, N)

    So the first N values count equally, and later each new value replaces one N-th of the mean.

    Args:
        variables: the variables, of any shape.
        length: N.

    Attributes:
        means: their means, a variable each in the same order; at first their values.
        count: int64 variable, t.
    """

    def __init__(self, variables: Sequence[keras.Variable], length: int):
        self._variables = [variable.value for variable in variables]
        self._length = length
        self.means = [tf.Variable(variable, trainable=False) for variable in self._variables]
        self.count = tf.Variable(0, trainable=False, dtype=tf.int64)

    @tf.function(autograph=False)
    def update(self) -> None:
        """Adds the present values."""
        count = self.count.assign_add(1)
        share = 1 / tf.minimum(count, self._length)
        for mean, variable in zip(self.means, self._variables, strict=True):
            mean.assign_add(tf.cast(share, mean.dtype) * (variable - mean))

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Gives the variables their means while the block runs."""
        values = [tf.identity(variable) for variable in self._variables]
        _assign(self._variables, self.means)
        try:
            yield
        finally:
            _assign(self._variables, values)


def _assign(variables: Sequence[tf.Variable], values: Sequence[tf.Tensor]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
