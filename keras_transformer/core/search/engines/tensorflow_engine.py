"""TensorFlow's engine, for models in this process and for exports.

It calls a model's graphs, or an export's signatures, which have the same names.

Later batches of a size that memory did not hold are divided before anything is called: a GPU tries
for ten seconds before it gives up.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import tensorflow as tf
from absl import logging

from keras_transformer.core.config import PAD_ID
from keras_transformer.core.search.engines.engine import Explained, Request, Rows
from keras_transformer.core.search.engines.graphs import ExportedGraphs, SearchGraphs, Tensors
from keras_transformer.core.search.engines.streams import streams
from keras_transformer.core.search.hypotheses import Hypotheses
from keras_transformer.support.errors import InputError, reason, require


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
    """Compiled searches, which give the results of the graphs; see xla_programs.XlaPrograms."""

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

    name = "tensorflow"

    def __init__(self, graphs: SearchGraphs | ExportedGraphs, programs: Programs = NO_PROGRAMS):
        self.graphs = graphs  # a tf.function does not keep its method's object alive
        self.programs = programs
        self.functions = sorted(graphs.named)
        self.streams = streams()
        self._most_tokens = sys.maxsize  # in a batch's sources, with padding, that memory holds

    def search(self, request: Request) -> Hypotheses:
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
        return Hypotheses.of(outputs)

    def search_alphas(self, ids: Rows, alphas: Sequence[float]) -> Hypotheses:
        outputs = self._call(
            "alpha_ids", source=padded(ids), alphas=tf.constant(alphas, tf.float32)
        )
        require_finite(~np.isnan(outputs["score"]), "scores")
        return Hypotheses.of(outputs)

    def search_greedily(self, request: Request) -> Hypotheses:
        if "greedy_ids" not in self.graphs.named:
            return self.search(request)
        inputs = {"source": padded(request.ids), "prefix": _padded_prefix(request)}
        outputs = self._call(self._aligned("greedy_ids", request), **inputs)
        require_finite(outputs["is_finite"], "logits")
        return Hypotheses.of(outputs)

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
    """Returns some rows of a batch; scalars and alphas are for all of them."""
    return {
        name: tensor[start : start + count] if tensor.shape.rank > 1 else tensor
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
