"""The Transformer as two ONNX graphs, written from the weights of search/weights.py.

The encoder also projects the keys and values for the decoder's cross-attention, once. The decoder
computes one position for every hypothesis, with the keys and values of earlier positions, or the
states of SSRUs, as inputs and outputs; docs/reference/onnx.md lists its tensors. The results equal
those of search/compiled_model.py, whose functions have similar names.

Axis letters are those in keras_transformer/__init__.py; R = B K are rows, the hypotheses of all
sentences, and P positions.

A converter would convert the graphs of the search, whose operations no other runtime has. Here,
callers search in a few lines, with the cache and the rows that continue as inputs, and move no
tensors. int8 weights have 7 bits, so that sums of two products fit into 16 bits, and each column
has a scale; onnxruntime's quantizer gives a tied matrix one. Inputs have one scale for all rows, so
results depend slightly on the rest of a batch.
"""

import numpy as np
import onnx

from keras_transformer.core.config import BOS_ID, EOS_ID, GATED, PAD_ID, TransformerConfig
from keras_transformer.core.model.attention import MASKED_SCORE
from keras_transformer.core.model.positions import Learned, Rotary, Sinusoidal, frequencies
from keras_transformer.core.search.compiled_model import CompiledModel
from keras_transformer.core.search.matrices import EmbeddingTable, Int8Matrix
from keras_transformer.core.search.weights import (
    DecoderLayerWeights,
    EncoderLayerWeights,
    Linear,
    Normalization,
    SelfAttentionWeights,
)
from keras_transformer.kit.exchange.onnx_graph import Graph, Tensor

FLOAT, INT32 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT32
SOURCE = Tensor("source", INT32, ["sentences", "source_length"])


def encoder_graph(model: CompiledModel) -> onnx.ModelProto:
    """Writes the encoder: `source` -> `memory_keys_i` and `memory_values_i`."""
    config, weights = model.config, model.weights
    writer = Writer(config)
    graph = writer.graph
    length = graph.node("Shape", "source", start=1, end=2)
    writer.set_positions(writer.range(length))
    bias = writer.padding_bias()
    if config.attention_window is not None:
        rows = graph.node("Unsqueeze", writer.positions, graph.weight([1]))  # [S, 1]
        distances = graph.node("Abs", graph.node("Sub", rows, writer.positions))  # [S, S]
        bias = graph.node("Add", bias, writer.window_bias(distances))  # [B, 1, S, S]
    by_position = graph.weight([0, 0, config.num_heads, -1])  # [B, S, H, d]

    x = writer.embed(weights.source_embedding, "source", weights.encoder.positions)  # [B, S, D]
    for layer in weights.encoder.layers:
        x = _encoder_layer(writer, layer, x, by_position, bias)
    x = writer.last_norm(weights.encoder.last_norm, x)
    for number, layer in enumerate(weights.decoder.layers):
        projected = writer.linear(layer.cross_attention.key_value, x)
        keys, values = writer.split(projected, [config.d_k, config.d_v])
        writer.split_heads(keys, by_position, output=f"memory_keys_{number}")
        writer.split_heads(values, by_position, output=f"memory_values_{number}")
    return graph.model("encoder", [SOURCE], _memory(config))


def decoder_graph(model: CompiledModel) -> onnx.ModelProto:
    """Writes one decoder position; docs/reference/onnx.md lists its inputs and outputs."""
    config, weights = model.config, model.weights
    writer = Writer(config)
    graph = writer.graph
    is_recurrent = config.decoder_self_attention == "ssru"
    position = "position" if is_recurrent else graph.node("Shape", "keys_0", start=2, end=3)  # [1]
    writer.set_positions(position)
    bias = None
    if config.attention_window is not None and not is_recurrent:
        count = graph.node("Add", position, graph.weight([1]))
        earlier = graph.node("Cast", writer.range(count), to=FLOAT)
        bias = writer.window_bias(graph.node("Sub", writer.positions, earlier))  # [T + 1]
    source_bias = writer.padding_bias()  # [B, 1, 1, S]
    sentences = graph.node("Shape", "source", start=0, end=1)
    heads = graph.weight([-1, config.num_heads, config.d_k])
    by_hypothesis = graph.node("Concat", sentences, heads, axis=0)  # [B, K, H, d_k]

    x = writer.embed(weights.target_embedding, "token", weights.decoder.positions)  # [R, D]
    for number, layer in enumerate(weights.decoder.layers):
        if is_recurrent:
            x = _recur(writer, number, layer, x)
        else:
            x = _attend_to_cache(writer, number, layer, x, bias)
        x = _attend_to_memory(writer, number, layer, x, by_hypothesis, source_bias)
        x = writer.feed_forward(layer, x)
    x = writer.last_norm(weights.decoder.last_norm, x)
    logits = writer.linear(weights.logits, x)
    graph.node("LogSoftmax", logits, axis=-1, output="log_probabilities")
    if is_recurrent:
        graph.node("Add", position, graph.weight(np.int32([1])), output="new_position")

    rows = [Tensor("token", INT32, ["rows"]), Tensor("parent", INT32, ["rows"]), SOURCE]
    earlier = _cache(config, "", "earlier_rows", "positions")
    log_probabilities = Tensor("log_probabilities", FLOAT, ["rows", config.vocab_size])
    cache = _cache(config, "new_", "rows", "positions_with_this")
    return graph.model("decoder", [*rows, *_memory(config), *earlier], [log_probabilities, *cache])


def _encoder_layer(
    writer: "Writer", layer: EncoderLayerWeights, x: str, by_position: str, bias: str
) -> str:
    """Writes an encoder layer, [B, S, D] -> [B, S, D]."""
    weights, norm = layer.self_attention, layer.self_attention_norm
    projected = writer.queries_keys_values(weights, writer.norm_if_pre(norm, x))
    queries, keys, values = (writer.split_heads(each, by_position) for each in projected)
    queries, keys = writer.rotated(queries), writer.rotated(keys)
    heads = writer.attend(queries, keys, values, bias)  # [B, H, S, d_v]
    heads = writer.graph.node("Transpose", heads, perm=[0, 2, 1, 3])
    attended = writer.graph.node("Reshape", heads, writer.graph.weight([0, 0, -1]))
    x = writer.residual(norm, x, writer.linear(weights.output, attended))
    return writer.feed_forward(layer, x)


def _attend_to_cache(
    writer: "Writer", number: int, layer: DecoderLayerWeights, x: str, bias: str | None
) -> str:
    """Self-attention at one position over earlier ones and itself, [R, D] -> [R, D]."""
    weights, norm = layer.self_attention, layer.self_attention_norm
    projected = writer.queries_keys_values(weights, writer.norm_if_pre(norm, x))
    queries, keys, values = (writer.one_position(each) for each in projected)
    queries, keys = writer.rotated(queries), writer.rotated(keys)  # [R, H, 1, d_k]
    keys = writer.with_earlier(f"keys_{number}", keys)  # [R, H, T + 1, d_k]
    values = writer.with_earlier(f"values_{number}", values)
    heads = writer.attend(queries, keys, values, bias)  # [R, H, 1, d_v]
    attended = writer.graph.node("Reshape", heads, writer.graph.weight([0, -1]))
    return writer.residual(norm, x, writer.linear(weights.output, attended))


def _recur(writer: "Writer", number: int, layer: DecoderLayerWeights, x: str) -> str:
    """The SSRU at one position, [R, D] -> [R, D]."""
    graph = writer.graph
    weights, norm = layer.self_attention, layer.self_attention_norm
    projected = writer.linear(weights.input_forget, writer.norm_if_pre(norm, x))
    inputs, forget = graph.nodes("Split", 2, projected, axis=-1)
    gates = graph.node("Add", forget, graph.weight(weights.forget_bias.numpy()))
    gates = graph.node("Sigmoid", gates)
    # f c + (1 - f) x W is x W + f (c - x W).
    earlier = graph.node("Gather", f"state_{number}", "parent", axis=0)
    kept = graph.node("Mul", gates, graph.node("Sub", earlier, inputs))
    state = graph.node("Add", inputs, kept, output=f"new_state_{number}")
    return writer.residual(norm, x, graph.node("Relu", state))


def _attend_to_memory(
    writer: "Writer",
    number: int,
    layer: DecoderLayerWeights,
    x: str,
    by_hypothesis: str,
    bias: str,
) -> str:
    """Attention to the encoder's output, [R, D] -> [R, D]: a sentence's K rows share one memory."""
    graph, config = writer.graph, writer.config
    weights, norm = layer.cross_attention, layer.cross_attention_norm
    queries = writer.linear(weights.query, writer.norm_if_pre(norm, x))
    queries = writer.split_heads(queries, by_hypothesis)  # [B, H, K, d_k]
    memory = (f"memory_keys_{number}", f"memory_values_{number}")
    heads = writer.attend(queries, *memory, bias)  # [B, H, K, d_v]
    heads = graph.node("Transpose", heads, perm=[0, 2, 1, 3])
    attended = graph.node("Reshape", heads, graph.weight([-1, config.num_heads * config.d_v]))
    return writer.residual(norm, x, writer.linear(weights.output, attended))


def _memory(config: TransformerConfig) -> list[Tensor]:
    return _keys_and_values(config, "memory_", "sentences", "source_length")


def _cache(config: TransformerConfig, prefix: str, rows: str, length: str) -> list[Tensor]:
    """Returns what the decoder keeps between positions."""
    if config.decoder_self_attention == "attention":
        return _keys_and_values(config, prefix, rows, length)
    layers = range(config.num_decoder_layers)
    states = [Tensor(f"{prefix}state_{number}", FLOAT, [rows, config.d_model]) for number in layers]
    return [*states, Tensor(f"{prefix}position", INT32, [1])]


def _keys_and_values(
    config: TransformerConfig, prefix: str, rows: str, length: str
) -> list[Tensor]:
    """Returns the keys and values of every decoder layer."""
    tensors = []
    for number in range(config.num_decoder_layers):
        for name, width in (("keys", config.d_k), ("values", config.d_v)):
            shape = [rows, config.num_heads, length, width]
            tensors.append(Tensor(f"{prefix}{name}_{number}", FLOAT, shape))
    return tensors


class Writer:
    """Writes parts of a model into a graph; its methods take and return value names."""

    def __init__(self, config: TransformerConfig):
        self.graph = Graph()
        self.config = config
        self.positions = ""  # float32 [P]; the positions to compute
        self._whole_positions = ""  # int64 [P]
        self._rotation: tuple[str, str] | None = None  # cosines and sines, [P, d_k]

    def number(self, value: float) -> str:
        return self.graph.weight(np.float32(value))

    def range(self, count: str) -> str:
        """0, 1, ...: int64 [count] for a count of shape [1]."""
        count = self.graph.node("Squeeze", count)
        zero, one = self.graph.weight(np.int64(0)), self.graph.weight(np.int64(1))
        return self.graph.node("Range", zero, count, one)

    def set_positions(self, positions: str) -> None:
        """Sets the positions to compute, int64 [P]."""
        graph = self.graph
        self._whole_positions = positions
        self.positions = graph.node("Cast", positions, to=FLOAT)
        if isinstance(self.config.position_kind, Rotary):
            angles = self._angles(frequencies(self.config.d_k))
            self._rotation = (graph.node("Cos", angles), graph.node("Sin", angles))

    def padding_bias(self) -> str:
        """Returns the bias that masks padding and unread EOS: float32 [B, 1, 1, S]."""
        graph = self.graph
        padding = graph.node("Equal", "source", graph.weight(np.int32(PAD_ID)))
        if not self.config.encoder_reads_eos:
            eos = graph.node("Equal", "source", graph.weight(np.int32(EOS_ID)))
            padding = graph.node("Or", padding, eos)
        bias = graph.node("Where", padding, self.number(MASKED_SCORE), self.number(0))
        return graph.node("Unsqueeze", bias, graph.weight([1, 2]))

    def window_bias(self, distances: str) -> str:
        """Section 4: returns the bias on scores of keys at these distances, float32 [..., P]."""
        reach = self.number(self.config.attention_window // 2)
        near = self.graph.node("LessOrEqual", distances, reach)
        return self.graph.node("Where", near, self.number(0), self.number(MASKED_SCORE))

    def embed(self, embedding, ids: str, table) -> str:
        """Sections 3.4 and 3.5: int32 [...] -> float32 [..., D]; `table`: the learned positions."""
        graph, config = self.graph, self.config
        x = self.look_up(embedding, ids)
        if config.starts_with_zeros and ids == "token":
            is_first = graph.node("Equal", ids, graph.weight(np.int32(BOS_ID)))
            is_first = graph.node("Unsqueeze", is_first, graph.weight([1]))
            x = graph.node("Where", is_first, self.number(0), x)
        if config.scale_embeddings:
            x = graph.node("Mul", x, self.number(config.d_model**0.5))
        kind = config.position_kind
        if isinstance(kind, Learned):
            table = graph.weight(table.numpy() * np.float32(config.d_model**0.5))
            return graph.node("Add", x, graph.node("Gather", table, self._whole_positions))
        if isinstance(kind, Sinusoidal):
            rates = frequencies(config.d_model, kind.divisor(config.d_model))
            angles = self._angles(rates, kind.first)
            is_even = graph.weight(np.arange(config.d_model) % 2 == 0)
            sines, cosines = graph.node("Sin", angles), graph.node("Cos", angles)
            return graph.node("Add", x, graph.node("Where", is_even, sines, cosines))
        if isinstance(kind, Rotary):  # acts in attention, see `rotated`
            return x
        raise TypeError(f"no graph of positions of the kind {kind}")

    def look_up(self, embedding, ids: str) -> str:
        """int32 [...] -> float32 [..., D]; a matrix for logits has a column for each id."""
        graph = self.graph
        if isinstance(embedding, EmbeddingTable):
            return graph.node("Gather", graph.weight(embedding.values.numpy()), ids)
        columns = graph.node("Gather", graph.weight(embedding.values.numpy()), ids, axis=1)
        axes = 2 if ids == "source" else 1
        vectors = graph.node("Transpose", columns, perm=[*range(1, axes + 1), 0])
        if not isinstance(embedding, Int8Matrix):
            return vectors
        scales = graph.node("Gather", graph.weight(_scales(embedding)), ids)
        scales = graph.node("Unsqueeze", scales, graph.weight([-1]))
        return graph.node("Mul", graph.node("Cast", vectors, to=FLOAT), scales)

    def _angles(self, rates: np.ndarray, first: int = 0) -> str:
        """Returns the angles of positions, float32 [P, 2 E], for rates [E], each twice.

        Args:
            rates: in radians per position.
            first: the position of the first token.
        """
        graph = self.graph
        positions = graph.node("Add", self.positions, self.number(first))
        positions = graph.node("Unsqueeze", positions, graph.weight([1]))  # [P, 1]
        return graph.node("Mul", positions, graph.weight(np.repeat(rates, 2).astype(np.float32)))

    def rotated(self, heads: str) -> str:
        """Applies rotary positions to queries or keys [..., P, d_k], if the model has them."""
        if self._rotation is None:
            return heads
        graph = self.graph
        cosines, sines = self._rotation
        quarter_turn = np.kron(np.eye(self.config.d_k // 2), [[0, 1], [-1, 0]])
        turned = graph.node("MatMul", heads, graph.weight(quarter_turn.astype(np.float32)))
        heads, turned = graph.node("Mul", heads, cosines), graph.node("Mul", turned, sines)
        return graph.node("Add", heads, turned)

    def linear(self, linear: Linear, rows: str) -> str:
        """rows W + b, with integer products if W is int8."""
        graph, matrix = self.graph, linear.matrix
        values = graph.weight(matrix.values.numpy())
        if isinstance(matrix, Int8Matrix):
            levels, scale, zero = graph.nodes("DynamicQuantizeLinear", 3, rows)
            sums = graph.node("MatMulInteger", levels, values, zero)
            scales = graph.node("Mul", scale, graph.weight(_scales(matrix)))
            products = graph.node("Mul", graph.node("Cast", sums, to=FLOAT), scales)
        else:
            products = graph.node("MatMul", rows, values)
        if linear.bias is None:
            return products
        return graph.node("Add", products, graph.weight(linear.bias.numpy()))

    def queries_keys_values(self, weights: SelfAttentionWeights, rows: str) -> list[str]:
        config = self.config
        projected = self.linear(weights.query_key_value, rows)
        return self.split(projected, [config.d_k, config.d_k, config.d_v])

    def split(self, projected: str, widths: list[int]) -> list[str]:
        """[..., sum of H d] -> for each d in `widths`, [..., H d]."""
        sizes = self.graph.weight([self.config.num_heads * width for width in widths])
        return self.graph.nodes("Split", len(widths), projected, sizes, axis=-1)

    def split_heads(self, projected: str, shape: str, output: str = "") -> str:
        """[..., H d] -> [B, H, P, d], via `shape`, the shape [B, P, H, d]."""
        heads = self.graph.node("Reshape", projected, shape)
        return self.graph.node("Transpose", heads, perm=[0, 2, 1, 3], output=output)

    def one_position(self, projected: str) -> str:
        """[R, H d] -> [R, H, 1, d]."""
        shape = self.graph.weight([0, self.config.num_heads, 1, -1])
        return self.graph.node("Reshape", projected, shape)

    def with_earlier(self, name: str, entries: str) -> str:
        """Adds entries [R, H, 1, d] to the input `name` [C, H, T, d], and outputs the result."""
        earlier = self.graph.node("Gather", name, "parent", axis=0)
        return self.graph.node("Concat", earlier, entries, axis=2, output=f"new_{name}")

    def attend(self, queries: str, keys: str, values: str, bias: str | None) -> str:
        """Equation 1: [..., Q, d_v]; `bias` is added to the scores."""
        graph = self.graph
        queries = graph.node("Mul", queries, self.number(self.config.d_k**-0.5))
        scores = graph.node("MatMul", queries, graph.node("Transpose", keys, perm=[0, 1, 3, 2]))
        if bias is not None:
            scores = graph.node("Add", scores, bias)
        return graph.node("MatMul", graph.node("Softmax", scores, axis=-1), values)

    def feed_forward(self, layer, x: str) -> str:
        """The feed-forward network (equation 2) with its residual connection."""
        graph = self.graph
        norm, weights = layer.feed_forward_norm, layer.feed_forward
        inner = self.linear(weights.inner, self.norm_if_pre(norm, x))
        if self.config.activation in GATED:
            gate, inner = graph.nodes("Split", 2, inner, axis=-1)
            inner = graph.node("Mul", self._activation(gate), inner)
        else:
            inner = self._activation(inner)
        return self.residual(norm, x, self.linear(weights.outer, inner))

    def _activation(self, x: str) -> str:
        graph = self.graph
        activation = GATED.get(self.config.activation, self.config.activation)
        if activation == "relu":
            return graph.node("Relu", x)
        if activation == "swish":
            return graph.node("Mul", x, graph.node("Sigmoid", x))
        erf = graph.node("Erf", graph.node("Div", x, self.number(2**0.5)))  # gelu
        share = graph.node("Mul", graph.node("Add", erf, self.number(1)), self.number(0.5))
        return graph.node("Mul", x, share)

    def norm_if_pre(self, norm: Normalization, x: str) -> str:
        """Returns a sublayer's input: with norm="pre", x after layer normalization."""
        return self.last_norm(norm, x) if self.config.norm == "pre" else x

    def residual(self, norm: Normalization, x: str, output: str) -> str:
        """Adds x to a sublayer's output; with norm="post", normalizes the sum."""
        x = self.graph.node("Add", x, output)
        return self.last_norm(norm, x) if self.config.norm == "post" else x

    def last_norm(self, norm: Normalization | None, x: str) -> str:
        """Layer normalization over the last axis; None for none."""
        if norm is None:
            return x
        gamma, beta = (self.graph.weight(each.numpy()) for each in norm)
        epsilon = self.config.norm_epsilon
        return self.graph.node("LayerNormalization", x, gamma, beta, axis=-1, epsilon=epsilon)


def _scales(matrix: Int8Matrix) -> np.ndarray:
    """Returns the scale of each column, float32 [E]."""
    return (matrix.ranges.numpy() / 127).astype(np.float32)
