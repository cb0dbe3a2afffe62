"""Packed rows: a sentence among others is computed as it is in a row of its own."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.model import packing
from keras_transformer.core.model.transformer import Transformer, shift_right
from keras_transformer.core.training.losses import projected_cross_entropy
from tests.small_models import padded

VOCAB_SIZE = 30


def test_segments_by_hand():
    ids = tf.constant([[5, 2, 6, 7, 2, 0, 0], [8, 9, 2, 2, 5, 5, 2], [0, 0, 0, 0, 0, 0, 0]])
    segments = packing.segment_ids(ids)
    expected = [[0, 0, 1, 1, 1, 2, 2], [0, 0, 0, 1, 2, 2, 2], [0] * 7]
    np.testing.assert_array_equal(segments, expected)
    np.testing.assert_array_equal(
        packing.positions_in_segments(segments),
        [[0, 1, 0, 1, 2, 0, 1], [0, 1, 2, 0, 0, 1, 2], range(7)],
    )
    np.testing.assert_array_equal(
        packing.segment_starts(segments, tf.constant([[1, 2], [2, 0], [0, 1]])),
        [[2, 5], [4, 0], [0, 7]],
    )
    np.testing.assert_array_equal(
        packing.shift_segments_right(ids, segments),
        [[1, 5, 1, 6, 7, 1, 0], [1, 8, 9, 1, 1, 5, 5], [1, 0, 0, 0, 0, 0, 0]],
    )


def random_pairs(count, has_codes=False, seed=0):
    """Random pairs of sentences with 2 to 9 ids; the sources may begin with a code."""
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(count):
        source, target = (
            [*rng.integers(4, VOCAB_SIZE, rng.integers(1, 9)).tolist(), 2] for _ in range(2)
        )
        code = rng.integers(4, VOCAB_SIZE, 1).tolist() if has_codes else []
        pairs.append((code + source, target))
    return pairs


def packed(pairs, sizes, length, has_codes=False):
    """Packs pairs into rows of `sizes` pairs, and of the given length."""
    ends = np.cumsum(sizes)
    sides = np.zeros((2, len(sizes), length), "int32")
    room = [0] if has_codes else []
    for row, (size, end) in enumerate(zip(sizes, ends, strict=True)):
        of_row = pairs[end - size : end]
        for side, ids in enumerate(
            [
                [id_ for source, _ in of_row for id_ in source],
                [id_ for _, target in of_row for id_ in room + target],
            ]
        ):
            sides[side, row, : len(ids)] = ids
    return tuple(map(tf.constant, sides))


@pytest.fixture
def in_float64(monkeypatch):
    """Has softmax and loss computed in float64, too: the library casts them to float32."""
    cast = ops.cast

    def wide_cast(values, dtype):
        is_wide = getattr(values, "dtype", None) in (tf.float64, tf.bool)
        return cast(values, "float64" if is_wide and dtype == "float32" else dtype)

    monkeypatch.setattr(ops, "cast", wide_cast)
    keras.config.set_floatx("float64")
    yield
    keras.config.set_floatx("float32")


def losses_and_gradients(model, states, labels):
    """The two losses of some rows, and the gradients of the first, as arrays."""
    with tf.GradientTape() as tape:
        rows = tf.reshape(states(), [-1, model.config.d_model])
        matrix = tf.convert_to_tensor(model.logits_embedding.embeddings)
        losses = projected_cross_entropy(rows, matrix, tf.reshape(labels, [-1]), 0.1)
    variables = [variable.value for variable in model.trainable_variables]
    gradients = tape.gradient(losses[0], variables)
    return [np.array(tf.convert_to_tensor(value)) for value in (*losses, *gradients)]


@pytest.mark.parametrize(
    ("settings", "rematerialize"),
    [
        ({"positions": "rotary", "norm": "pre", "tie_embeddings": False}, True),
        ({"positions": "marian", "attention_window": 3, "activation": "swiglu"}, False),
        ({"encoder_reads_eos": False}, False),
        ({"positions": "m2m100", "decoder_reads_code": True, "attention_bias": True}, False),
        ({"positions": "rotary", "decoder_self_attention": "ssru"}, True),
        ({"decoder_self_attention": "ssru", "decoder_reads_code": True}, False),
        (
            {
                "positions": "learned",
                "max_positions": 10,
                "decoder_reads_code": True,
                "attention_window": 4,
            },
            True,
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else None,
)
def test_packed_rows_have_the_losses_and_gradients_of_plain_ones(
    in_float64, settings, rematerialize
):
    config = TransformerConfig(
        vocab_size=VOCAB_SIZE,
        num_layers=1,
        decoder_layers=2,
        d_model=8,
        d_ff=8,
        num_heads=2,
        dropout=0.0,
        **settings,
    )
    model = Transformer(config, rematerialize, dtype="float64")
    has_codes = config.decoder_reads_code
    pairs = random_pairs(9, has_codes)
    source, target = (padded(side) for side in zip(*pairs, strict=True))
    expected = losses_and_gradients(
        model,
        lambda: model.states({"source": source, "target": shift_right(target)}, training=True),
        target,
    )
    source, target = packed(pairs, [3, 2, 1, 0, 3], length=40, has_codes=has_codes)
    found = losses_and_gradients(
        model, lambda: model.packed_states(source, target, training=True), target
    )
    assert max(np.abs(gradient).max() for gradient in expected[2:]) > 1
    # Sinusoids are computed in float32, whose last bit depends on the place in a row.
    rows_differ = model.config.position_kind.even_width
    tolerance = {"rtol": 1e-6, "atol": 1e-6} if rows_differ else {"rtol": 1e-10, "atol": 1e-10}
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, **tolerance)


@pytest.mark.parametrize("kind", ["attention", "ssru"])
def test_other_sentences_of_a_row_change_nothing(kind):
    settings = {"vocab_size": VOCAB_SIZE, "num_layers": 2, "d_model": 8, "d_ff": 8, "num_heads": 2}
    settings["decoder_self_attention"] = kind
    model = Transformer(TransformerConfig(**settings))
    pairs = random_pairs(3)
    others = [([7, 2], [9, 8, 2]), pairs[1], ([5, 5, 5, 5, 2], [4, 2])]
    found = []
    for row in (pairs, others):
        source, target = packed(row, [3], length=30)
        states = model.packed_states(source, target)
        start = len(row[0][1])
        found.append(states[0, start : start + len(pairs[1][1])])
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
