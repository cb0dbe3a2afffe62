"""A second Transformer, in NumPy from the paper's equations, sharing no code with the library.

It loops over heads, positions and sentences where the library uses tensors; float64 throughout.
"""

import math

import numpy as np


def float64(*arrays):
    return [np.asarray(array, np.float64) for array in arrays]


def softmax(scores):
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def attention(queries, keys, values, allowed):
    """Equation 1 for one head and one sentence; allowed [Q, P] is True where a query may attend."""
    queries, keys, values = float64(queries, keys, values)
    scores = queries @ keys.T / np.sqrt(queries.shape[-1])
    return softmax(np.where(allowed, scores, -np.inf)) @ values


def rotated(vectors):
    """Su et al. 2021, equation 15: at each position, a block diagonal matrix of rotations."""
    length, width = vectors.shape
    result = np.zeros_like(vectors)
    for pos in range(length):
        matrix = np.zeros((width, width))
        for i in range(width // 2):
            a = pos / 10000 ** (2 * i / width)
            matrix[2 * i, 2 * i : 2 * i + 2] = np.cos(a), -np.sin(a)
            matrix[2 * i + 1, 2 * i : 2 * i + 2] = np.sin(a), np.cos(a)
        result[pos] = matrix @ vectors[pos]
    return result


def multi_head(
    x, memory, w_q, w_k, w_v, w_o, num_heads, allowed, biases=(0, 0, 0, 0), rotary=False
):
    """Section 3.2.2 for one sentence: x [Q, D], memory [P, D]; biases of the four projections."""
    x, memory, w_q, w_k, w_v, w_o = float64(x, memory, w_q, w_k, w_v, w_o)
    b_q, b_k, b_v, b_o = float64(*biases)
    queries, keys, values = x @ w_q + b_q, memory @ w_k + b_k, memory @ w_v + b_v
    heads = []
    for h in range(num_heads):
        d_k, d_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
        q = queries[:, h * d_k : (h + 1) * d_k]
        k = keys[:, h * d_k : (h + 1) * d_k]
        v = values[:, h * d_v : (h + 1) * d_v]
        if rotary:
            q, k = rotated(q), rotated(k)
        heads.append(attention(q, k, v, allowed))
    return np.concatenate(heads, axis=-1) @ w_o + b_o


def relu(x):
    return np.maximum(0, x)


def swish(x):
    return x / (1 + np.exp(-x))


def gelu(x):
    """x times the probability that a standard normal variable is less than x."""
    return x * (1 + np.vectorize(math.erf)(x / np.sqrt(2))) / 2


ACTIVATIONS = {"relu": relu, "swish": swish, "gelu": gelu}
GATES = {"swiglu": swish}


def feed_forward(x, w_1, b_1, w_2, b_2, activation=relu):
    """Equation 2."""
    x, w_1, b_1, w_2, b_2 = float64(x, w_1, b_1, w_2, b_2)
    return activation(x @ w_1 + b_1) @ w_2 + b_2


def gated_feed_forward(x, w, v, w_2, activation):
    """Shazeer 2020, equation 6."""
    x, w, v, w_2 = float64(x, w, v, w_2)
    return (activation(x @ w) * (x @ v)) @ w_2


def ssru(x, w, w_f, b_f):
    """Kim et al. 2019, equations 3 to 5, position by position: [T, D]."""
    x, w, w_f, b_f = float64(x, w, w_f, b_f)
    state = np.zeros(x.shape[1])
    outputs = []
    for row in x:
        gate = 1 / (1 + np.exp(-(row @ w_f + b_f)))
        state = gate * state + (1 - gate) * (row @ w)
        outputs.append(relu(state))
    return np.stack(outputs)


def layer_norm(x, gamma, beta, epsilon=1e-6):
    x, gamma, beta = float64(x, gamma, beta)
    variance = ((x - x.mean(-1, keepdims=True)) ** 2).mean(-1, keepdims=True)
    return gamma * (x - x.mean(-1, keepdims=True)) / np.sqrt(variance + epsilon) + beta


def positional_encoding(length, d_model, divisor=None):
    """Section 3.5, number by number; `divisor` replaces d_model in the exponent."""
    encoding = np.zeros((length, d_model))
    for pos in range(length):
        for i in range(d_model // 2):
            angle = pos / 10000 ** (2 * i / (divisor or d_model))
            encoding[pos, 2 * i] = np.sin(angle)
            encoding[pos, 2 * i + 1] = np.cos(angle)
    return encoding


def neighbourhood(queries, keys, window):
    """Section 4, pair by pair: bool [Q, P], True where a key is at most r // 2 = window // 2 away.

    If `window` is None, it is True everywhere.
    """
    allowed = np.zeros((queries, keys), bool)
    for i in range(queries):
        for j in range(keys):
            allowed[i, j] = window is None or abs(i - j) <= window // 2
    return allowed


def transformer(
    weights,
    source,
    target,
    num_layers,
    num_heads,
    decoder_layers=None,
    norm="post",
    positions="sinusoidal",
    attention_window=None,
    activation="relu",
    scale_embeddings=True,
    norm_epsilon=1e-6,
    decoder_self_attention="attention",
    starts_with_zeros=False,
):
    """Computes the logits of one sentence pair.

    Missing matrices mean tied embeddings, and missing biases are 0.

    Args:
        weights: path of a variable in the Keras model -> its value.
        source: [S] ids without padding.
        target: [T] ids, starting with BOS.
        num_layers, num_heads, ...: fields of the configuration that the weights do not determine.

    Returns:
        [T, V].
    """
    weights = {path: np.asarray(value, np.float64) for path, value in weights.items()}
    names = ["embedding"]  # for the source, the target, and the softmax
    for name in ("target_embedding", "logits_embedding"):
        names.append(name if f"{name}/embeddings" in weights else names[-1])
    d_model = weights["embedding/embeddings"].shape[1]

    def embed(ids, name, side):
        scaled = weights[f"{name}/embeddings"][ids]
        if scale_embeddings:
            scaled = scaled * np.sqrt(d_model)
        if starts_with_zeros and side == "target":
            scaled[0] = 0
        if positions == "rotary":
            return scaled
        if positions == "learned":
            return scaled + weights[f"{side}_positions/embeddings"][: len(ids)] * np.sqrt(d_model)
        divisor = d_model if positions == "sinusoidal" else d_model - 2
        first = 2 if positions == "m2m100" else 0
        return scaled + positional_encoding(first + len(ids), d_model, divisor)[first:]

    def attend(prefix, x, memory, allowed):
        paths = [f"{prefix}/{name}" for name in ("query", "key", "value", "output")]
        kernels = [weights[f"{path}/kernel"] for path in paths]
        biases = [weights.get(f"{path}/bias", 0) for path in paths]
        rotary = positions == "rotary" and memory is x
        return multi_head(x, memory, *kernels, num_heads, allowed, biases, rotary)

    def transform(prefix, x):
        if activation in GATES:
            matrices = [weights[f"{prefix}/{name}/kernel"] for name in ("gate", "inner", "outer")]
            return gated_feed_forward(x, *matrices, GATES[activation])
        names = ("inner/kernel", "inner/bias", "outer/kernel", "outer/bias")
        matrices = [weights[f"{prefix}/{name}"] for name in names]
        return feed_forward(x, *matrices, ACTIVATIONS[activation])

    def normalize(prefix, x):
        return layer_norm(x, weights[f"{prefix}/gamma"], weights[f"{prefix}/beta"], norm_epsilon)

    def residual(prefix, x, sublayer):
        if norm == "pre":
            return x + sublayer(normalize(f"{prefix}_norm", x))
        return normalize(f"{prefix}_norm", x + sublayer(x))

    x = embed(source, names[0], "source")
    near = neighbourhood(len(source), len(source), attention_window)
    for n in range(num_layers):
        at = f"encoder/layer_{n}"
        prefix = f"{at}/self_attention"
        x = residual(prefix, x, lambda x, prefix=prefix: attend(prefix, x, x, near))
        prefix = f"{at}/feed_forward"
        x = residual(prefix, x, lambda x, prefix=prefix: transform(prefix, x))
    memory = normalize("encoder/last_norm", x) if norm == "pre" else x

    y = embed(target, names[1], "target")
    earlier = np.tril(neighbourhood(len(target), len(target), attention_window))
    to_memory = np.ones((len(target), len(source)), bool)
    for n in range(decoder_layers or num_layers):
        at = f"decoder/layer_{n}"
        prefix = f"{at}/self_attention"
        if decoder_self_attention == "ssru":
            names_of_weights = ("input/kernel", "forget/kernel", "forget/bias")
            of_unit = [weights[f"{prefix}/{name}"] for name in names_of_weights]
            y = residual(prefix, y, lambda y, of_unit=of_unit: ssru(y, *of_unit))
        else:
            y = residual(prefix, y, lambda y, prefix=prefix: attend(prefix, y, y, earlier))
        prefix = f"{at}/cross_attention"
        y = residual(prefix, y, lambda y, prefix=prefix: attend(prefix, y, memory, to_memory))
        prefix = f"{at}/feed_forward"
        y = residual(prefix, y, lambda y, prefix=prefix: transform(prefix, y))
    states = normalize("decoder/last_norm", y) if norm == "pre" else y
    bias = weights.get(f"{names[2]}/bias", 0)
    return states @ weights[f"{names[2]}/embeddings"].T + bias
