"""The largest inputs of a model's matrices, by which other toolkits' engines round them to int8."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from keras_transformer.core.config import EOS_ID
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.search.compiled_model import compile_model
from keras_transformer.core.search.config import DecodingConfig, SearchSettings
from keras_transformer.core.search.engines.engine import Request
from keras_transformer.core.search.engines.graphs import SearchGraphs
from keras_transformer.core.search.engines.tensorflow_engine import TensorFlowEngine
from keras_transformer.core.search.weights import Linear

# The layers whose kernels search/weights.py concatenates.
CONCATENATED = {
    "query_key_value": ("query", "key", "value"),
    "key_value": ("key", "value"),
    "input_forget": ("input", "forget"),
}
SENTENCES_AT_ONCE = 32
LOGITS = "logits"  # stands for the path of the matrix that computes logits


class _Recorded(NamedTuple):
    """A Linear that records the largest magnitude of its inputs, call by call."""

    linear: Linear
    maxima: list[float]

    def apply(self, rows: tf.Tensor, non_negative: bool = False) -> tf.Tensor:
        self.maxima.append(float(tf.reduce_max(tf.abs(rows))))
        return self.linear.apply(rows, non_negative)


def input_maxima(
    model: Transformer, sources: Sequence[Sequence[int]], options: DecodingConfig
) -> dict[str, list[float]]:
    """Translates sources greedily, and records the largest inputs of all matrices meanwhile.

    Args:
        model: the Transformer.
        sources: ids, without EOS; none is empty.
        options: how to search, as a model card has it.

    Returns:
        By the path of a kernel, or LOGITS, the largest magnitude among the inputs of each sentence.
    """
    compiled = compile_model(model)
    engine = TensorFlowEngine(SearchGraphs(compiled, SearchSettings(options), constraints=False))
    recorded: dict[str, list[float]] = {}
    recording = compiled._replace(weights=_recording(compiled.weights, "", recorded))
    sources = sorted(([*source, EOS_ID] for source in sources), key=len)
    for start in range(0, len(sources), SENTENCES_AT_ONCE):
        batch = sources[start : start + SENTENCES_AT_ONCE]
        found = engine.search_greedily(Request(batch))
        for source, ids, length in zip(batch, found.ids[:, 0], found.length[:, 0], strict=True):
            # One at a time, as padding has inputs, too.
            recording.decode_target(tf.constant([source]), tf.constant([ids[:length]]))
    return {path: maxima for name, maxima in recorded.items() for path in _paths(name)}


def _recording(part: Any, path: str, maxima: dict[str, list[float]]) -> Any:
    """Replaces all Linears in a part of the weights, a named tuple or a tuple of layers."""
    if isinstance(part, Linear):
        maxima[path] = []
        return _Recorded(part, maxima[path])
    if isinstance(part, tuple):
        names = getattr(part, "_fields", range(len(part)))
        values = [
            _recording(value, f"{path}/{name}", maxima)
            for name, value in zip(names, part, strict=True)
        ]
        return type(part)(*values) if hasattr(part, "_fields") else tuple(values)
    return part


def _paths(name: str) -> list[str]:
    """Returns the paths of the kernels of a Linear, given its place in the weights."""
    if name == "/logits":
        return [LOGITS]
    stack, _, layer, sublayer, linear = name.split("/")[1:]
    parts = CONCATENATED.get(linear, (linear,))
    return [f"{stack}/layer_{layer}/{sublayer}/{part}/kernel" for part in parts]
