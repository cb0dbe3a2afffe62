"""The Transformer once more, in NumPy from the paper's equations, sharing no code with the library.

Loops over heads, positions and sentences where the library uses tensors; float64 throughout.
"""

import numpy as np


def float64(*arrays):
    return [np.asarray(array, np.float64) for array in arrays]


def softmax(scores):
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def attention(queries, keys, values, allowed):
    """Equation 1 for one head of one sentence; allowed [Q, P] is True where a query may look."""
    queries, keys, values = float64(queries, keys, values)
    scores = queries @ keys.T / np.sqrt(queries.shape[-1])
    return softmax(np.where(allowed, scores, -np.inf)) @ values


def multi_head(x, memory, w_q, w_k, w_v, w_o, num_heads, allowed):
    """Section 3.2.2 for one sentence: x [Q, D], memory [P, D]."""
    x, memory, w_q, w_k, w_v, w_o = float64(x, memory, w_q, w_k, w_v, w_o)
    heads = []
    for h in range(num_heads):
        d_k, d_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
        q = x @ w_q[:, h * d_k : (h + 1) * d_k]
        k = memory @ w_k[:, h * d_k : (h + 1) * d_k]
        v = memory @ w_v[:, h * d_v : (h + 1) * d_v]
        heads.append(attention(q, k, v, allowed))
    return np.concatenate(heads, axis=-1) @ w_o


def feed_forward(x, w_1, b_1, w_2, b_2):
    """Equation 2."""
    x, w_1, b_1, w_2, b_2 = float64(x, w_1, b_1, w_2, b_2)
    return np.maximum(0, x @ w_1 + b_1) @ w_2 + b_2


def layer_norm(x, gain, bias):
    x, gain, bias = float64(x, gain, bias)
    variance = ((x - x.mean(-1, keepdims=True)) ** 2).mean(-1, keepdims=True)
    return gain * (x - x.mean(-1, keepdims=True)) / np.sqrt(variance + 1e-6) + bias


def positional_encoding(length, d_model):
    """Section 3.5, number by number."""
    encoding = np.zeros((length, d_model))
    for pos in range(length):
        for i in range(d_model // 2):
            angle = pos / 10000 ** (2 * i / d_model)
            encoding[pos, 2 * i] = np.sin(angle)
            encoding[pos, 2 * i + 1] = np.cos(angle)
    return encoding


def transformer(weights, source, target, num_layers, num_heads):
    """Logits of one sentence pair, post-norm; embeddings are tied where a matrix is missing.

    Args:
        weights: path of a variable in the Keras model -> its value.
        source: [S] ids without padding.
        target: [T] ids, the first BOS.

    Returns:
        [T, V].
    """
    weights = {path: np.asarray(value, np.float64) for path, value in weights.items()}
    source_matrix = weights["embedding/matrix"]
    target_matrix = weights.get("target_embedding/matrix", source_matrix)
    softmax_matrix = weights.get("logits/matrix", target_matrix)
    d_model = source_matrix.shape[1]

    def embed(ids, matrix):
        return matrix[ids] * np.sqrt(d_model) + positional_encoding(len(ids), d_model)

    def attend(prefix, x, memory, allowed):
        names = ("query_kernel", "key_kernel", "value_kernel", "output_kernel")
        kernels = [weights[f"{prefix}/{name}"] for name in names]
        return multi_head(x, memory, *kernels, num_heads, allowed)

    def norm(prefix, x):
        return layer_norm(x, weights[f"{prefix}/norm/gain"], weights[f"{prefix}/norm/bias"])

    def transform(prefix, x):
        names = ("inner_kernel", "inner_bias", "outer_kernel", "outer_bias")
        return feed_forward(x, *[weights[f"{prefix}/{name}"] for name in names])

    x = embed(source, source_matrix)
    everywhere = np.ones((len(source), len(source)), bool)
    for n in range(num_layers):
        at = f"encoder/layer_{n}"
        attended = attend(f"{at}/self_attention", x, x, everywhere)
        x = norm(f"{at}/self_attention_residual", x + attended)
        x = norm(f"{at}/feed_forward_residual", x + transform(f"{at}/feed_forward", x))
    memory, y = x, embed(target, target_matrix)
    earlier = np.tril(np.ones((len(target), len(target)), bool))
    to_memory = np.ones((len(target), len(source)), bool)
    for n in range(num_layers):
        at = f"decoder/layer_{n}"
        attended = attend(f"{at}/self_attention", y, y, earlier)
        y = norm(f"{at}/self_attention_residual", y + attended)
        attended = attend(f"{at}/cross_attention", y, memory, to_memory)
        y = norm(f"{at}/cross_attention_residual", y + attended)
        y = norm(f"{at}/feed_forward_residual", y + transform(f"{at}/feed_forward", y))
    return y @ softmax_matrix.T
