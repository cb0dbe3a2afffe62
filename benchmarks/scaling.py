"""Section 3.2.1's claims, measured: dot-product beside additive attention, and why it is scaled.

    python benchmarks/scaling.py       (--quick for a look; --help)

Time and memory of dot-product attention and of additive attention, v tanh(W_1 q + W_2 k), over d_k.
Then the effect of a growing d_k on softmax(q k), for components of q and k drawn from N(0, 1),
without and with the factor 1 / sqrt(d_k): the variance of the products, the entropy of the weights,
and the gradient through the softmax (the Frobenius norm of its Jacobian). Prints a table on stderr,
one JSON line on stdout, and draws docs/scaling.svg.
"""

import argparse
import json
import os
from pathlib import Path

from charts import Line, Panel, draw
from timing import DOCS, check_chart, check_positive, log, run, seconds_of

WIDTHS = [4, 8, 16, 32, 64, 128, 256, 512, 1024]  # d_k
KEYS = 64  # per query, for the entropy and the gradient
QUERIES = 2000  # to average over


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=512, help="queries, and keys, that are timed")
    parser.add_argument("--output", type=Path, default=DOCS / "scaling.svg")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see it run")
    arguments = parser.parse_args()
    check_positive(arguments, "length")
    check_chart("--output", arguments.output)
    length, widths = (64, WIDTHS[::2]) if arguments.quick else (arguments.length, WIDTHS)
    rows = [{"d_k": d_k, **speed(length, d_k), **saturation(d_k)} for d_k in widths]
    print_table(rows)
    draw(arguments.output, panels(rows, length))
    print(json.dumps({"length": length, "keys": KEYS, "rows": rows, "threads": os.cpu_count()}))


def speed(length, d_k):
    """Milliseconds of both attentions on the same queries, keys and values, and what they store.

    Additive attention (Bahdanau et al. 2014) has a network of one hidden layer, of width d_k here,
    and its n x n x d_k hidden numbers where dot-product attention has n x n products.
    """
    import tensorflow as tf

    from keras_transformer.model.attention import scaled_dot_product_attention

    queries, keys, values = (
        tf.random.stateless_normal([length, d_k], seed=[d_k, n]) for n in range(3)
    )
    w_query, w_key = (tf.random.stateless_normal([d_k, d_k], seed=[d_k, n]) for n in range(3, 5))
    vector = tf.random.stateless_normal([d_k, 1], seed=[d_k, 5])

    @tf.function
    def dot_product():
        return scaled_dot_product_attention(queries, keys, values)[0]

    @tf.function
    def additive():
        hidden = tf.tanh((queries @ w_query)[:, None] + (keys @ w_key)[None])  # [n, n, d_k]
        return tf.nn.softmax((hidden @ vector)[..., 0]) @ values

    return {
        "dot_product_ms": round(1000 * seconds_of(lambda: dot_product().numpy(), 9, 2.0), 4),
        "additive_ms": round(1000 * seconds_of(lambda: additive().numpy(), 9, 2.0), 4),
        "dot_product_mb": round(4 * length * length / 1e6, 2),
        "additive_mb": round(4 * length * length * d_k / 1e6, 2),
    }


def saturation(d_k):
    """Figures of softmax(q k) and softmax(q k / sqrt(d_k)): means over random queries.

    For the gradient also the median: the mean hides that most queries have almost none, while a few
    queries, undecided between two keys, have a large one.
    """
    import numpy as np

    rng = np.random.default_rng(d_k)
    products = np.stack(
        [rng.normal(size=(KEYS, d_k)) @ rng.normal(size=d_k) for _ in range(QUERIES)]
    )
    found = {}
    for name, scores in (("unscaled", products), ("scaled", products / np.sqrt(d_k))):
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(axis=1)
        jacobian = weights[:, :, None] * (np.eye(KEYS) - weights[:, None, :])  # diag(p) - p p^T
        norm = np.sqrt((jacobian**2).sum(axis=(1, 2)))
        found |= {
            f"{name}_variance": round(float(scores.var()), 3),
            f"{name}_entropy": round(float(entropy.mean()), 4),
            f"{name}_gradient": float(f"{np.median(norm):.4g}"),
            f"{name}_mean_gradient": float(f"{norm.mean():.4g}"),
            f"{name}_saturated": round(float((weights.max(axis=1) > 0.99).mean()), 4),
        }
    return found


def print_table(rows):
    from keras_transformer.text_table import text_table

    log(text_table(list(rows[0]), [list(row.values()) for row in rows]))


def panels(rows, length):
    """Four of them: time, variance, entropy, gradient."""

    def lines(names, suffix):
        return [
            Line(name.replace("_", "-"), [(row["d_k"], row[name + suffix]) for row in rows], colour)
            for colour, name in enumerate(names)
        ]

    scales, gradient = ("scaled", "unscaled"), "Gradient through the softmax, median query"
    times = lines(("dot_product", "additive"), "_ms")
    entropy = Panel(
        f"Entropy of the weights of {KEYS} keys", "d_k", "nats", lines(scales, "_entropy")
    )
    return [
        Panel(f"{length} queries to {length} keys", "d_k", "milliseconds", times),
        Panel("Variance of q k", "d_k", "variance", lines(scales, "_variance")),
        entropy._replace(log_y=False),
        Panel(gradient, "d_k", "norm of its Jacobian", lines(scales, "_gradient")),
    ]


if __name__ == "__main__":
    run(main)
