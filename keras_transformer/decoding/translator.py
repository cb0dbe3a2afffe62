"""From texts to answers: one Translator for a model in this process and for an exported one.

`keras_transformer.load` makes it. Its graphs are those of decoding/answers.py, either way.
"""

import functools
import itertools
import math
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging
from tqdm import tqdm

from keras_transformer.config import TransformerConfig
from keras_transformer.decoding.answers import MIN_ROW_TOKENS, OF_TRANSLATIONS
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.decoding.minimum_risk import by_utility
from keras_transformer.decoding.streams import in_streams, streams
from keras_transformer.errors import InputError, require
from keras_transformer.fields import shown

# Batches of fewer tokens than this are not divided further among streams.
MIN_BATCH_TOKENS = 512
# What the card has of the checkpoint.
OF_CHECKPOINT = ("checkpoint", "averaged", "step", "validation_loss")


class AlignedPair(NamedTuple):
    """The subwords of a text and of a translation of it: how probable, and aligned with what."""

    source_pieces: list[str]  # S subwords, "</s>" last
    target_pieces: list[str]  # T
    source_words: list[int]  # S numbers of words, those between spaces; -1 for none
    target_words: list[int]  # T
    log_probs: list[float]  # T, of a subword after those before it; natural logarithm
    alignment: list[int]  # T source positions; see attention_maps.alignment

    @property
    def pharaoh(self) -> str:
        """The aligned words in the Pharaoh format: "0-0 1-2", source before target, from 0."""
        sources = [self.source_words[place] for place in self.alignment]
        links = zip(sources, self.target_words, self.target_pieces, strict=True)
        words = {(i, j) for i, j, piece in links if min(i, j) >= 0 and piece != "</s>"}
        return " ".join(f"{i}-{j}" for i, j in sorted(words))


class Translation(NamedTuple):
    """One answer to a sentence."""

    text: str
    score: float  # log-probability / length penalty; with `mbr`, expected utility in percent
    log_prob: float  # natural logarithm, EOS included
    tokens: int  # subwords, EOS counted


# A Translation with its AlignedPair.
AlignedTranslation = namedtuple("AlignedTranslation", (*Translation._fields, "pair"))


class TargetScore(NamedTuple):
    """How probable the model finds a given translation."""

    log_prob: float  # natural logarithm, EOS included
    tokens: int  # subwords, EOS counted


class PairAttention(NamedTuple):
    """What predicting each of T target tokens attends to; see decoding/attention_maps.py."""

    source_pieces: list[str]  # S subwords, "</s>" last
    target_pieces: list[str]  # T
    encoder: np.ndarray  # float32 [N, H, S, S]
    decoder: np.ndarray  # float32 [N, H, T, T]
    memory: np.ndarray  # float32 [N, H, T, S]
    alignment: np.ndarray  # int32 [T], source positions


class Translator:
    """Translates and scores any number of texts, in batches of similar length.

    Args:
        graphs: of `answers.text_graphs`, or the signatures of an export.
        config: how the graphs translate; its beam must not exceed the vocabulary.
        model_config: of the model whose graphs these are.
        card: what is known of the model; see export/model_card.

    Attributes:
        truncated: number of texts cut to the limit so far.
    """

    def __init__(
        self,
        graphs: Mapping[str, Callable[..., dict[str, tf.Tensor]]],
        config: DecodingConfig,
        model_config: TransformerConfig,
        card: Mapping[str, Any] | None = None,
    ):
        vocab_size = model_config.vocab_size
        rule = f"--beam_size must not exceed the model's vocabulary of {vocab_size}"
        require(config.beam_size <= vocab_size, rule, config.beam_size)
        # Exports of earlier versions have no "target_lengths", and one vocabulary.
        self.graphs = {"target_lengths": graphs.get("lengths"), **graphs}
        self.config, self.card = config, card or {}
        self.source_limit, self.target_limit = config.limits(model_config)
        self.truncated = 0

    def translate(
        self,
        texts: Sequence[str],
        progress: bool = False,
        target_prefixes: Sequence[str] | None = None,
        aligned: bool = False,
        required_phrases: Sequence[Sequence[str]] | None = None,
    ) -> list[list[Translation]] | list[list[AlignedTranslation]]:
        """Returns the translations of each text, best first: from one to `beam_size`.

        Args:
            texts: of any length, empty ones included.
            progress: whether to draw a bar on stderr.
            target_prefixes: what the translations of each text begin with, "" for anything. A
                prefix should end with a word, as its subwords are kept. Spaces around it do not
                count. The translation of a blank text is empty in any case.
            aligned: whether to return AlignedTranslations, of the exact ones (`n_best` of `load`).
            required_phrases: what the translations of each text contain, cut as forbidden ones.

        Raises:
            InputError: if the model's weights are not finite, or prefixes or phrases do not fit.
        """
        first_only = self.config.n_best == 1 and self.config.mbr is None
        signature, inputs = "beams" if first_only else "n_best", {"text": texts}
        lengths = self._lengths(texts, self.source_limit, "source")
        if target_prefixes is not None:
            self._check_fit(lengths, [[prefix] for prefix in target_prefixes], "a target prefix")
            signature, inputs = "complete", {"source": texts, "target": target_prefixes}
        if required_phrases is not None:
            rule = (
                "phrases can be required in a search, not of draws; of an export with --constraints"
            )
            require("constrain" in self.graphs and not self.config.sampling, rule, "another")
            found = self._check_fit(lengths, required_phrases, "a list of required phrases")
            unusable = found["unknown"] | (found["length"] < 2)
            wrong = list(itertools.compress(itertools.chain(*required_phrases), unusable))
            rule = "required phrases must have subwords, and characters that the vocabulary has"
            require(not wrong, rule, shown(wrong))
            inputs = {"source": texts, "target": target_prefixes or [""] * len(texts)}
            signature, inputs["phrases"] = "constrain", list(map("\t".join, required_phrases))
        run = functools.partial(self._run_aligned if aligned else self._run, signature)
        outputs = OF_TRANSLATIONS + (AlignedPair._fields if aligned else ())
        found = self._in_batches(run, inputs, lengths, outputs, translations, progress)
        if self.config.mbr is None:
            return found
        sampled = self.config.sampling is not None
        return [by_utility(answers, self.config.mbr, sampled) for answers in found]

    def score(
        self, sources: Sequence[str], targets: Sequence[str], progress: bool = False
    ) -> list[TargetScore]:
        """Scores each target as a translation of its source; InputError if their numbers differ."""
        run, outputs = functools.partial(self._run, "score"), ("log_prob", "length")
        return self._in_batches(run, *self._pairs(sources, targets), outputs, TargetScore, progress)

    def align(
        self, sources: Sequence[str], targets: Sequence[str], progress: bool = False
    ) -> list[AlignedPair]:
        """Aligns each target with its source; InputError as of `score`."""
        run, outputs = functools.partial(self._run, "align"), AlignedPair._fields
        return self._in_batches(
            run, *self._pairs(sources, targets), outputs, aligned_pair, progress
        )

    def _pairs(self, sources, targets) -> tuple[dict[str, Sequence[str]], list[int]]:
        """The inputs of signatures of pairs, and lengths to make batches by."""
        rule = "there must be a target for every source"
        require(len(sources) == len(targets), rule, f"{len(sources)} and {len(targets)}")
        source_lengths = self._lengths(sources, self.source_limit, "source")
        target_lengths = self._lengths(targets, self.target_limit, "target")
        lengths = list(map(max, source_lengths, target_lengths))
        return {"source": sources, "target": targets}, lengths

    def attention(self, source: str, target: str) -> PairAttention:
        """Returns the attention of all heads for a text and a translation of it."""
        found = self._run("attention", source=[source], target=[target])
        for name in ("source_pieces", "target_pieces"):
            found[name] = [[piece.decode("utf-8") for piece in found[name][0].tolist()]]
        return PairAttention(**{name: values[0] for name, values in found.items()})

    def score_ids(self, source: tf.Tensor, target: tf.Tensor) -> np.ndarray:
        """Returns the log-probabilities, float32 [B], of one batch of pairs that are ids already.

        They are int32 [B, S] and [B, T]; each row ends in EOS and then padding.
        """
        return self.graphs["score_ids"](source=source, target=target)["log_prob"].numpy()

    def parse(self, texts: Sequence[str], progress: bool = False) -> list:
        """Returns the trees of a Parser; any other translator raises an InputError."""
        raise InputError(
            "parse must be asked of a parsing model. Received: a translation model, which has "
            "translate, score and attention"
        )

    @property
    def checkpoint(self) -> dict[str, Any]:
        """What the weights are, as far as that is known: {"checkpoint", "step", ...}."""
        return {name: self.card[name] for name in OF_CHECKPOINT if name in self.card}

    def counts(self) -> dict[str, Any]:
        """What else is to be reported of the answers so far: of translations, nothing."""
        return {}

    def _in_batches(self, run, inputs, lengths, outputs, result, progress) -> list:
        """Runs a function over batches of similar length: what `result` makes of its outputs."""
        results: list[Any] = [None] * len(lengths)
        batches = list(length_batches(lengths, self.config.batch_tokens, streams()))

        def run_batch(batch):
            found = run(**{name: [texts[i] for i in batch] for name, texts in inputs.items()})
            return list(map(result, *[found[name].tolist() for name in outputs]))

        with tqdm(total=len(lengths), unit="sentence", disable=not progress) as bar:
            for batch, found in zip(batches, in_streams(run_batch, batches), strict=True):
                for i, answer in zip(batch, found, strict=True):
                    results[i] = answer
                bar.update(len(batch))
        return results

    def _run(self, signature: str, **texts: Sequence[str]) -> dict[str, np.ndarray]:
        # UTF-8 cannot hold lone surrogates: they become "?".
        inputs = {
            name: tf.constant([text.encode("utf-8", errors="replace") for text in part], tf.string)
            for name, part in texts.items()
        }
        outputs = self._graph(signature)(**inputs)
        return {name: tensor.numpy() for name, tensor in outputs.items()}

    def _run_aligned(self, signature: str, **texts: Sequence[str]) -> dict[str, np.ndarray]:
        """As `_run`, also the fields of AlignedPair of each text's first translations."""
        found = self._run(signature, **texts)
        source = self._run("tokenize", text=next(iter(texts.values())))["ids"]
        first = range(self.config.n_best or self.config.beam_size)
        pairs = [self._graph("align_ids")(source=source, target=found["ids"][:, k]) for k in first]
        return found | {name: np.stack([p[name] for p in pairs], axis=1) for name in pairs[0]}

    def _graph(self, signature: str) -> Callable[..., dict[str, tf.Tensor]]:
        rule = f"{signature} needs a single model, not an ensemble; or an export of this version"
        require(signature in self.graphs, rule, "another")
        return self.graphs[signature]

    def _lengths(self, texts: Sequence[str], limit: int, side: str) -> list[int]:
        """Counts what the model reads of texts, and warns of those that are cut."""
        signature = "lengths" if side == "source" else "target_lengths"
        counts = self._run(signature, text=texts)["length"].tolist()
        cut = sum(count > limit for count in counts)
        self.truncated += cut
        if cut:
            warning = "%d of %d %s sentences have more than %d subwords and were cut there"
            logging.warning(warning, cut, len(texts), side, limit)
        return [min(count, limit) for count in counts]

    def _check_fit(self, lengths: Sequence[int], rows: Sequence[Sequence[str]], what: str) -> dict:
        """Refuses what does not fit the texts, or leaves no room for a translation's EOS."""
        rule = f"there must be {what} for every sentence"
        require(len(rows) == len(lengths), rule, f"{len(rows)} for {len(lengths)}")
        found = self._run("target_lengths", text=[part for row in rows for part in row])
        counts = iter((found["length"] - 1).tolist())  # without EOS
        for row, length in zip(rows, lengths, strict=True):
            room = min(length + self.config.extra_length, self.target_limit) - 1
            count = sum(next(counts) for _ in row)
            rule = f"{what} must have at most {room} subwords for its sentence"
            require(count <= room, rule, f"{count}: {shown(' '.join(row))}")
        return found


def length_batches(
    lengths: Sequence[int], batch_tokens: int, parts: int = 1
) -> Iterator[list[int]]:
    """Cuts sentences into batches of similar length, as indices into their `lengths` in tokens.

    The longest come first, so that a batch too large for memory fails at once and the time left is
    not underestimated.

    Args:
        batch_tokens: bounds sentences x longest of a batch, except for a sentence longer itself.
        parts: how many batches there should be at least, where there are enough tokens.
    """
    share = sum(max(length, MIN_ROW_TOKENS) for length in lengths) // parts
    batch_tokens = min(batch_tokens, max(share, MIN_BATCH_TOKENS))
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        rows = max(batch_tokens // max(lengths[order[start]], MIN_ROW_TOKENS), 1)
        yield order[start : start + rows]
        start += rows


def translations(texts, scores, log_probs, lengths, *of_pairs: Sequence) -> list:
    """Makes one sentence's answers of `OF_TRANSLATIONS`, and perhaps the fields of AlignedPair.

    Beams without a hypothesis are left out. Where restrictions leave nothing to say, there is one
    with the text "" and score -inf.

    Raises:
        InputError: where a score is NaN.
    """
    answers = list(map(Translation, map(bytes.decode, texts), scores, log_probs, lengths))
    if of_pairs:
        rows = zip(answers, *of_pairs, strict=False)  # those that are not exact have no pair
        answers = [AlignedTranslation(*row, aligned_pair(*pair)) for row, *pair in rows]
    finite = not any(math.isnan(answer.score) for answer in answers)
    require(finite, "the model's weights must be finite", "scores that are NaN")
    return [answer for answer in answers if answer.score > -math.inf] or answers[:1]


def aligned_pair(*values: Sequence) -> AlignedPair:
    """Makes an AlignedPair of its fields, with padding, which it loses."""
    source, target = [[piece.decode("utf-8") for piece in side if piece] for side in values[:2]]
    of_source, *of_target = values[2:]
    cut = [numbers[: len(target)] for numbers in of_target]
    return AlignedPair(source, target, of_source[: len(source)], *cut)
