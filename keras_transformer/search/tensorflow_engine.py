"""TensorFlow's engine, for models in this process and for exports.

`SearchGraphs` are a model's graphs: tensors of ids in, tensors out. `TensorFlowEngine` calls them,
or an export's signatures, which have the same names (export/saved_model.py).
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf
from absl import logging

from keras_transformer.config import PAD_ID
from keras_transformer.errors import InputError, reason, require
from keras_transformer.search.alignment import alignment, attention_maps
from keras_transformer.search.beam_search import BeamSearch
from keras_transformer.search.cache import SearchCache
from keras_transformer.search.compiled_model import CompiledModel
from keras_transformer.search.config import SearchSettings
from keras_transformer.search.constraints import constrained_search
from keras_transformer.search.engine import Explained, Request, Rows, SearchResult
from keras_transformer.search.ensemble import Ensemble, decode_target
from keras_transformer.search.greedy_search import GreedySearch
from keras_transformer.search.sampling import Sampling
from keras_transformer.search.search_loop import search
from keras_transformer.search.state import Hypotheses
from keras_transformer.search.streams import streams

IDS = tf.TensorSpec([None, None], tf.int32)
PHRASES = tf.TensorSpec([None, None, None], tf.int32)
NUMBER = tf.TensorSpec([], tf.int32)
ALPHA = tf.TensorSpec([], tf.float32)

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
        if len(model.members) == 1:  # an ensemble's models may have different heads
            self.named["attention_ids"] = self.attention_ids

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
        return self._search(source, prefix, guaranteed, alpha)

    @graph(IDS, IDS, NUMBER, ALPHA)
    def aligned_search_ids(self, source, prefix, guaranteed, alpha) -> Tensors:
        """Like `search_ids`, but also aligns, in a few percent more time.

        Returns:
            The same, and for each target token: alignment int32 [B, K, T], a source position; and
            token_log_prob float32 [B, K, T], natural logarithm, 0 at padding.
        """
        return self._search(source, prefix, guaranteed, alpha, aligned=True)

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
        return outputs_of(best)

    @graph(IDS, IDS)
    def greedy_ids(self, source, prefix) -> Tensors:
        """Like `search_ids`, with one beam and without scores.

        Returns:
            ids and length, as in `search_ids`; is_finite bool [B, 1], False if a logit is NaN
            because weights are not finite.
        """
        return self._search_greedily(source, prefix)

    @graph(IDS, IDS)
    def aligned_greedy_ids(self, source, prefix) -> Tensors:
        """Like `greedy_ids`, but also aligns, in a few percent more time.

        Returns:
            The same, and alignment int32 [B, 1, T], a source position for each target token.
        """
        return self._search_greedily(source, prefix, aligned=True)

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
        encoded, decoded = computed[0]
        return {
            "log_probs": token_log_probs(logits, target),
            "alignment": alignment(cross_attention, encoded.mask),
            **attention_maps(encoded, decoded)._asdict(),
        }

    def run(self, step, cache, max_lengths, strategy, prefix, aligned, first) -> Any:
        """Runs a search; see search_loop.search."""
        return search(step, cache, max_lengths, strategy, prefix, aligned, first)

    def _search(self, source, prefix, guaranteed, alpha, aligned: bool = False) -> Tensors:
        model, options = self.model.in_graph(self.for_xla), self.settings.options
        cache = model.start(source, options.beam_size)
        if options.sampling is None:
            strategy = BeamSearch(self.settings, guaranteed, alpha)
        else:
            strategy = Sampling(self.settings, alpha)
        lengths, first = self._max_lengths(cache), model.first_inputs(source)
        best = self.run(model.step, cache, lengths, strategy, prefix, aligned, first)
        return outputs_of(best)

    def _search_greedily(self, source, prefix, aligned: bool = False) -> Tensors:
        model = self.model.in_graph(self.for_xla)
        cache = model.start(source, beams=1)
        strategy, lengths = GreedySearch(self.settings), self._max_lengths(cache)
        first = model.first_inputs(source)
        best = self.run(model.scaled_step, cache, lengths, strategy, prefix, aligned, first)
        outputs = {"ids": best.ids, "length": best.lengths, "is_finite": best.is_finite}
        return {**outputs, "alignment": best.alignment} if aligned else outputs

    def _max_lengths(self, cache: SearchCache) -> tf.Tensor:
        """Returns the maximum target length for each source, int32 [B]: 0 for an empty one."""
        options = self.settings.options
        source_lengths = tf.reduce_sum(tf.cast(cache.source_mask, tf.int32), axis=1)
        longest = tf.minimum(source_lengths + options.extra_length, self.limits.target)
        return tf.where(source_lengths > 1, longest, 0)


def outputs_of(best: Hypotheses) -> Tensors:
    """Returns hypotheses by the names of a graph's outputs."""
    outputs = {
        "ids": best.ids,
        "length": best.lengths,
        "score": best.scores,
        "log_prob": best.log_probs,
    }
    if not tf.is_tensor(best.alignment):
        return outputs
    before = tf.pad(best.totals[:, :, :-1], [[0, 0], [0, 0], [1, 0]])
    is_token = tf.sequence_mask(best.lengths, tf.shape(best.ids)[2])
    log_probs = tf.where(is_token, best.totals - before, 0.0)
    return {**outputs, "alignment": best.alignment, "token_log_prob": log_probs}


def token_log_probs(logits: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    """Returns the log probabilities of targets, int32 [B, T]: float32 [B, T], 0 at padding."""
    target_logits = tf.gather(logits, target, batch_dims=2)
    log_probs = target_logits - tf.reduce_logsumexp(logits, axis=2)
    return tf.where(target == PAD_ID, 0.0, log_probs)


class ExportedGraphs(NamedTuple):
    """An export's signatures."""

    named: dict[str, Callable[..., Tensors]]


def choose_device(device: str) -> None:
    """Chooses the device for all graphs of this process; call before TensorFlow uses any device.

    Args:
        device: as in store.model_path.ModelPath.

    Raises:
        InputError: for "cuda" without a GPU, and for "cpu" once TensorFlow uses a GPU.
    """
    if device == "cuda":
        rule = "must not be cuda without a GPU that TensorFlow can use"
        require(tf.config.get_visible_devices("GPU"), "device", rule, "no GPU")
    elif device == "cpu":
        try:
            tf.config.set_visible_devices([], "GPU")
        except RuntimeError:  # TensorFlow already uses devices, including a GPU
            rule = "must be chosen before TensorFlow uses a GPU"
            raise InputError("device", rule, "cpu") from None


class Programs(Protocol):
    """Compiled searches, which give the same results as the graphs; see xla_search.XlaPrograms."""

    def find(self, name: str, inputs: dict[str, tf.Tensor]) -> Callable[..., Tensors] | None:
        """Returns the program for a batch, or None if the graph of that name has to search it.

        Raises:
            tf.errors.ResourceExhaustedError: if the device has no memory for the program, but may
                have it for a part of the batch.
        """


class NoPrograms:
    """Leaves all searches to the graphs."""

    def find(self, name: str, inputs: dict[str, tf.Tensor]) -> None:
        return None


NO_PROGRAMS = NoPrograms()


class TensorFlowEngine:
    """The engine that calls graphs; see engine.Engine for its functions.

    A batch for which the device has no memory is computed in parts, and so are later ones of its
    size.

    Args:
        graphs: the graphs of a model in this process, or of an export.
        programs: its compiled searches.

    Raises:
        InputError: from any function if an export lacks the required signature, the model's weights
            are not finite, or the device has no memory for a single sentence.
    """

    def __init__(self, graphs: SearchGraphs | ExportedGraphs, programs: Programs = NO_PROGRAMS):
        self.graphs = graphs  # a tf.function does not keep its method's object alive
        self.programs = programs
        self.functions = sorted(graphs.named)
        self.streams = streams()
        self._most_tokens = sys.maxsize  # in a batch's sources, with padding, that memory holds

    def search(self, request: Request) -> SearchResult:
        source, prefix = padded(request.ids), _padded_prefix(request)
        inputs = {
            "source": source,
            "prefix": prefix,
            "guaranteed": tf.constant(request.guaranteed),
            "alpha": tf.constant(request.alpha, tf.float32),
        }
        if request.phrases is None:
            outputs = self._call(self._aligned("search_ids", request), **inputs)
        else:
            rule = "must be used with an export made with constraints"
            exists = "constrain_ids" in self.graphs.named
            require(exists, "required_phrases", rule, "one without them")
            outputs = self._call(
                "constrain_ids", phrases=_padded_phrases(request.phrases), **inputs
            )
        require_finite(~np.isnan(outputs["score"]), "scores")
        scores = outputs["score"], outputs["log_prob"]
        by_token = outputs.get("alignment"), outputs.get("token_log_prob")
        return SearchResult(outputs["ids"], outputs["length"], *scores, *by_token)

    def search_greedily(self, request: Request) -> SearchResult:
        if "greedy_ids" not in self.graphs.named:
            return self.search(request)
        inputs = {"source": padded(request.ids), "prefix": _padded_prefix(request)}
        outputs = self._call(self._aligned("greedy_ids", request), **inputs)
        require_finite(outputs["is_finite"], "logits")
        return SearchResult(outputs["ids"], outputs["length"], None, None, outputs.get("alignment"))

    def score(self, source: Rows, target: Rows) -> np.ndarray:
        outputs = self._call("score_ids", source=padded(source), target=padded(target))
        require_finite(~np.isnan(outputs["log_prob"]), "log-probabilities")
        return outputs["log_prob"]

    def explain(self, source: Rows, target: Rows, attention: bool = False) -> Explained:
        name = "attention_ids" if attention else "align_ids"
        outputs = self._call(name, source=padded(source), target=padded(target))
        require_finite(~np.isnan(outputs["log_probs"]), "log-probabilities")
        return Explained(**outputs)

    def _aligned(self, name: str, request: Request) -> str:
        """Returns the name of the graph that aligns, too, if needed; some exports have none."""
        aligned = f"aligned_{name}"
        return aligned if any(request.needs_alignment) and aligned in self.graphs.named else name

    def _call(self, name: str, **inputs: tf.Tensor) -> dict[str, np.ndarray]:
        rule = "must be among the export's signatures; export the model again with it"
        require(name in self.graphs.named, name, rule, ", ".join(self.functions))
        rows, length = inputs["source"].shape
        most_rows = max(1, self._most_tokens // length)
        if rows > most_rows:
            parts = [_rows_of(inputs, start, most_rows) for start in range(0, rows, most_rows)]
            return joined([self._call(name, **part) for part in parts])
        try:
            search = self.programs.find(name, inputs) or self.graphs.named[name]
            return _arrays(search(**inputs))
        except tf.errors.ResourceExhaustedError:
            if rows == 1:
                return self._call_graph_of_one(name, **inputs)
        self._most_tokens = rows * length // 2
        message = "no memory for %d sentences of %d tokens: from now on, %d tokens at a time"
        logging.warning(message, rows, length, self._most_tokens)
        return self._call(name, **inputs)

    def _call_graph_of_one(self, name: str, **inputs: tf.Tensor) -> dict[str, np.ndarray]:
        """Calls a graph for one sentence: it takes less memory than a program."""
        try:
            return _arrays(self.graphs.named[name](**inputs))
        except tf.errors.ResourceExhaustedError as error:
            received = f"{inputs['source'].shape[1]} tokens ({reason(error)})"
            rule = "must be short enough for the device's memory"
            raise InputError("source", rule, received) from None


def _arrays(outputs: Tensors) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in outputs.items()}


def _rows_of(inputs: Tensors, start: int, count: int) -> Tensors:
    """Returns some rows of a batch; scalars are for all of them."""
    return {
        name: tensor[start : start + count] if tensor.shape.rank else tensor
        for name, tensor in inputs.items()
    }


def joined(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Joins the outputs for the parts of a batch, padded with zeros to the longest of each axis."""
    outputs = {}
    for name in parts[0]:
        arrays = [part[name] for part in parts]
        longest = np.max([array.shape[1:] for array in arrays], axis=0)
        padded_arrays = [
            np.pad(array, [(0, 0), *((0, more) for more in longest - array.shape[1:])])
            for array in arrays
        ]
        outputs[name] = np.concatenate(padded_arrays)
    return outputs


def require_finite(is_finite: np.ndarray, what: str) -> None:
    """Raises an InputError unless all of a model's results are finite.

    Args:
        is_finite: bool, of any shape.
        what: the results, such as "scores".
    """
    require(is_finite.all(), "model", "must have finite weights", f"{what} that are NaN")


def padded(rows: Rows) -> tf.Tensor:
    """Pads rows of ids to int32 [B, longest], with at least one column."""
    longest = max([1, *(len(row) for row in rows)])
    ids = np.full([len(rows), longest], PAD_ID, np.int32)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row
    return tf.constant(ids)


def _padded_prefix(request: Request) -> tf.Tensor:
    prefix = [()] * len(request.ids) if request.prefix is None else request.prefix
    return padded(prefix)


def _padded_phrases(rows: Sequence[Rows]) -> tf.Tensor:
    """Pads lists of phrases to int32 [B, P, M], with at least one phrase and one column."""
    most = max([1, *(len(phrases) for phrases in rows)])
    longest = max([1, *(len(phrase) for phrases in rows for phrase in phrases)])
    ids = np.full([len(rows), most, longest], PAD_ID, np.int32)
    for sentence, phrases in enumerate(rows):
        for number, phrase in enumerate(phrases):
            ids[sentence, number, : len(phrase)] = phrase
    return tf.constant(ids)
