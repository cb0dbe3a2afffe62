"""Runs OpenNMT-tf's training step, or counts its padding, for benchmarks/training.py.

It needs an environment of its own (see opennmt_peer.py). The model is OpenNMT-tf's stock
Transformer with our shapes, post-norm, with all embeddings shared, and without the biases and the
dropout of attention weights and ReLU that the paper does not have; it has as many parameters as
ours. The timed step is a tf.function around Model.train: forward and backward pass, an update by
LazyAdam, the default, and reading the loss. OpenNMT-tf's Trainer does the same in two such
functions, because it can accumulate gradients.

`padding LENGTHS TOKENS` prints the share of padding in OpenNMT-tf's own batches instead.
"""

import json
import os
import sys
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


def padding(path, tokens_per_batch):
    """Counts padding in batches of OpenNMT-tf's training pipeline, for pairs of given lengths.

    Buckets are 2 tokens wide, the default, and batches have the same token limit as ours.
    """
    lengths = np.load(path)  # int64 [pairs, 2], in random order
    dataset = tf.data.Dataset.from_tensor_slices((lengths[:, 0], lengths[:, 1]))
    sides = dataset.map(lambda *pair: tuple({"ids": tf.ones([n]), "length": n} for n in pair))
    batches = sides.apply(
        opennmt.data.training_pipeline(
            tokens_per_batch,
            batch_type="tokens",
            length_bucket_width=2,
            features_length_fn=lambda side: side["length"],
            labels_length_fn=lambda side: side["length"],
            single_pass=True,
        )
    )
    tokens, positions, count = np.zeros(2), np.zeros(2), 0
    for batch in batches:
        count += 1
        tokens += [int(tf.reduce_sum(side["length"])) for side in batch]
        positions += [int(tf.size(side["ids"])) for side in batch]
    shares = [round(float(share), 4) for share in 1 - tokens / positions]
    return {"source": shares[0], "target": shares[1], "batches": count}


if __name__ == "__main__":
    if sys.argv[1] == "padding":
        print(json.dumps(padding(sys.argv[2], int(sys.argv[3]))))
    else:
        step_clock.main(build, multiply)
