"""Translates with OpenNMT-tf and the same weights, for benchmarks/decoding.py.

It needs Python 3.11 or older and a TensorFlow from 2023, in an environment of its own:

    python3.11 -m venv opennmt
    opennmt/bin/pip install "tensorflow==2.13.*" "OpenNMT-tf==2.32.*"

The model is OpenNMT-tf's stock Transformer, without biases in attention and softmax, with our
sinusoids (models with learned positions are not compared) and our layer normalisation's epsilon.
Sentences are passed as ids, in batches of similar length.
"""

import json
import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import opennmt
import tensorflow as tf
from decoding import ALPHA, measure, read_job

EPSILON = 1e-6
BATCH = 64
# OpenNMT-tf's names for the special ids, which come first in the vocabulary.
SPECIAL = ["<blank>", "<s>", "</s>"]
END = SPECIAL.index("</s>")


class Sinusoids(opennmt.layers.PositionEncoder):
    """The paper's sinusoids: interleaved, from position 0."""

    def _encode(self, positions, depth):
        positions = tf.cast(tf.convert_to_tensor(positions), tf.float32) - 1  # counted from 1
        frequencies = 10000.0 ** (-tf.range(0, depth, 2, tf.float32) / depth)
        angles = positions[..., None] * frequencies  # [1, T, D/2]
        pairs = tf.stack([tf.sin(angles), tf.cos(angles)], axis=-1)
        return tf.reshape(pairs, [1, -1, depth])


def build(job, weights):
    """Builds the model with the given weights."""
    config = job["model"]
    sharing = opennmt.models.EmbeddingsSharingLevel
    model = opennmt.models.Transformer(
        num_layers=config["num_layers"],
        num_units=config["d_model"],
        num_heads=config["num_heads"],
        ffn_inner_dim=config["d_ff"],
        mha_bias=False,
        output_layer_bias=False,
        position_encoder_class=Sinusoids,
        share_embeddings=sharing.ALL if config["tie_embeddings"] else sharing.NONE,
        pre_norm=config["norm"] == "pre",
    )
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        # The last id is OpenNMT-tf's bucket for unknown tokens, which adds a row.
        tokens = [*SPECIAL, *job["vocabulary"][len(SPECIAL) : -1]]
        file.write("".join(f"{token}\n" for token in tokens))
        file.flush()
        data = {"source_vocabulary": file.name, "target_vocabulary": file.name}
        search = {"beam_width": job["beams"], "length_penalty": ALPHA}
        model.initialize(data, {**search, "maximum_decoding_length": job["max_length"]})
        model.create_variables()
    for layer in model.submodules:
        if isinstance(layer, tf.keras.layers.LayerNormalization):
            layer.epsilon = EPSILON
    assign(model, weights, config)
    return model


def assign(model, weights, config):
    """Copies the weights, which are named as in our model."""
    source_matrix = weights["embedding/embeddings"]
    model.features_inputter.embedding.assign(source_matrix)
    if not config["tie_embeddings"]:
        model.labels_inputter.embedding.assign(weights["target_embedding/embeddings"])
        softmax_matrix = weights["logits_embedding/embeddings"]
        model.decoder.output_layer.kernel.assign(softmax_matrix.T)

    for number, layer in enumerate(model.encoder.layers):
        prefix = f"encoder/layer_{number}"
        assign_attention(layer.self_attention, weights, f"{prefix}/self_attention")
        assign_feed_forward(layer.ffn, weights, f"{prefix}/feed_forward")
    for number, layer in enumerate(model.decoder.layers):
        prefix = f"decoder/layer_{number}"
        assign_attention(layer.self_attention, weights, f"{prefix}/self_attention")
        assign_attention(layer.attention[0], weights, f"{prefix}/cross_attention")
        assign_feed_forward(layer.ffn, weights, f"{prefix}/feed_forward")
    if config["norm"] == "pre":
        assign_norm(model.encoder.layer_norm, weights, "encoder/last_norm")
        assign_norm(model.decoder.layer_norm, weights, "decoder/last_norm")


def assign_attention(wrapper, weights, path):
    """Copies the weights of our MultiHeadAttention at `path`, and of its normalisation."""
    attention = wrapper.layer
    attention.linear_queries.kernel.assign(weights[f"{path}/query/kernel"])
    attention.linear_keys.kernel.assign(weights[f"{path}/key/kernel"])
    attention.linear_values.kernel.assign(weights[f"{path}/value/kernel"])
    attention.linear_output.kernel.assign(weights[f"{path}/output/kernel"])
    assign_norm(wrapper.input_layer_norm or wrapper.output_layer_norm, weights, f"{path}_norm")


def assign_feed_forward(wrapper, weights, path):
    """Copies the weights of our FeedForward at `path`, and of its normalisation."""
    inner, outer = wrapper.layer.inner, wrapper.layer.outer
    inner.kernel.assign(weights[f"{path}/inner/kernel"])
    inner.bias.assign(weights[f"{path}/inner/bias"])
    outer.kernel.assign(weights[f"{path}/outer/kernel"])
    outer.bias.assign(weights[f"{path}/outer/bias"])
    assign_norm(wrapper.input_layer_norm or wrapper.output_layer_norm, weights, f"{path}_norm")


def assign_norm(layer, weights, path):
    layer.gamma.assign(weights[f"{path}/gamma"])
    layer.beta.assign(weights[f"{path}/beta"])


def main(case, folder):
    job = read_job(folder)
    model = build(job, np.load(os.path.join(folder, "weights.npz")))
    ids_of = {token: number for number, token in enumerate(job["vocabulary"])}

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def search(ids):
        _, best = model({"ids": ids, "length": tf.math.count_nonzero(ids, 1, tf.int32)})
        return best["tokens"][:, 0], best["length"][:, 0]

    def translate(sources):
        outputs = [None] * len(sources)
        order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
        for rows in (order[start : start + BATCH] for start in range(0, len(order), BATCH)):
            ids = [[*(ids_of[token] for token in sources[i]), END] for i in rows]
            tokens, lengths = search(tf.ragged.constant(ids, tf.int32).to_tensor())
            for i, row, length in zip(rows, tokens.numpy().tolist(), lengths.numpy(), strict=True):
                outputs[i] = [token.decode() for token in row[:length] if token != b"</s>"]
        return outputs

    print(json.dumps(measure(case, job["sources"], translate)))


if __name__ == "__main__":
    main(*sys.argv[1:])
