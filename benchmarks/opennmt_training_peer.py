"""Runs OpenNMT-tf's training step for benchmarks/training.py.

It needs an environment of its own (see opennmt_peer.py). The model is OpenNMT-tf's stock
Transformer with our shapes, post-norm, with all embeddings shared, and without the biases and the
dropout of attention weights and ReLU that the paper does not have; it has as many parameters as
ours. The timed step is a tf.function around Model.train: forward and backward pass, an update by
LazyAdam, the default, and reading the loss. OpenNMT-tf's Trainer does the same in two such
functions, because it can accumulate gradients.
"""

import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import opennmt
import step_clock
import tensorflow as tf

SPECIAL = ["<blank>", "<s>", "</s>"]


def build(work):
    model = make_model(work)
    optimizer = opennmt.optimizers.make_optimizer("LazyAdam", 1e-4, beta_1=0.9, beta_2=0.98)
    model.create_variables(optimizer=optimizer)
    shape = (2, work.sentences, work.length)
    source, target = np.random.default_rng(0).integers(4, work.vocab_size, size=shape)
    lengths = np.full([work.sentences], work.length, "int32")
    shifted = np.concatenate([np.ones_like(target[:, :1]), target[:, :-1]], axis=1)
    features = {"ids": tf.constant(source), "length": tf.constant(lengths)}
    labels = {"ids": tf.constant(shifted), "ids_out": tf.constant(target)}
    labels["length"] = tf.constant(lengths)
    ids = tf.TensorSpec([None, None], tf.int64)  # any shape, as in its Trainer
    length = tf.TensorSpec([None], tf.int32)
    signature = [{"ids": ids, "length": length}, {"ids": ids, "ids_out": ids, "length": length}]

    @tf.function(input_signature=signature)
    def step(features, labels):
        return model.train(features, labels, optimizer)

    return lambda: float(step(features, labels))


def make_model(work):
    model = opennmt.models.Transformer(
        num_layers=work.num_layers,
        num_units=work.d_model,
        num_heads=work.num_heads,
        ffn_inner_dim=work.d_ff,
        dropout=0.1,
        attention_dropout=0.0,
        ffn_dropout=0.0,
        mha_bias=False,
        output_layer_bias=False,
        share_embeddings=opennmt.models.EmbeddingsSharingLevel.ALL,
        pre_norm=False,
    )
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        # OpenNMT-tf's bucket for unknown tokens adds a row.
        words = [f"w{number}" for number in range(work.vocab_size - len(SPECIAL) - 1)]
        file.write("".join(f"{token}\n" for token in [*SPECIAL, *words]))
        file.flush()
        data = {"source_vocabulary": file.name, "target_vocabulary": file.name}
        model.initialize(data, {"label_smoothing": 0.1, "average_loss_in_time": True})
    return model


def multiply(size):
    matrix = tf.random.normal([size, size])
    product = tf.function(lambda: tf.reduce_sum(tf.matmul(matrix, matrix)))
    return lambda: product().numpy()


if __name__ == "__main__":
    step_clock.main(build, multiply)
