import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.core.model.positional_encoding import PositionalEncoding
from keras_transformer.core.model.positions import rotate, shift_matrix, sinusoids
from keras_transformer.support.errors import InputError
from tests import numpy_reference
from tests.refusals import refused


def test_sinusoids_by_hand():
    # d_model 4: wavelengths 2 pi and 2 pi 100; sine and cosine interleaved.
    expected = [
        [0, 1, 0, 1],
        [0.841470985, 0.540302306, 0.009999833, 0.99995],
        [0.909297427, -0.416146837, 0.019998667, 0.999800007],
    ]
    np.testing.assert_allclose(sinusoids(np.arange(3), 4), expected, atol=5e-7)


def test_sinusoids_equal_numpy_far_out():
    expected = numpy_reference.positional_encoding(600, 32)
    np.testing.assert_allclose(sinusoids(np.arange(600), 32), expected, atol=5e-5)


@pytest.mark.parametrize("offset", [-7, 0, 1, 10, 500])
def test_one_matrix_moves_every_position(offset):
    matrix = shift_matrix(offset, 32)
    encoding = numpy_reference.positional_encoding(1100, 32)
    start = np.arange(7, 600)  # PE(pos) -> PE(pos + offset), of all positions by one matrix
    np.testing.assert_allclose(
        encoding[start] @ matrix.T, encoding[start + offset], rtol=0, atol=1e-10
    )
    narrow = ops.convert_to_numpy(sinusoids(np.arange(1100), 32))
    moved = narrow[start] @ matrix.T.astype("float32")
    np.testing.assert_allclose(moved, narrow[start + offset], rtol=0, atol=1e-4)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_sinusoids_are_float32_under_any_policy(policy):
    layer = PositionalEncoding(dtype=policy)
    encoded = layer(np.zeros((1, 300, 16), "float32"))
    exact = numpy_reference.positional_encoding(300, 16)
    rounded = ops.convert_to_numpy(ops.cast(ops.cast(exact, layer.compute_dtype), "float32"))
    rows = ops.convert_to_numpy(ops.cast(encoded, "float32"))[0]
    # Rounded once, at the end: angles of a narrow type would be wrong by whole turns at 300.
    np.testing.assert_allclose(rows, rounded, atol=8e-3 if "bfloat16" in policy else 1e-3)


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", "marian", "m2m100"])
def test_the_encodings_of_the_first_positions_are_added(kind):
    layer = PositionalEncoding(kind)
    added = ops.convert_to_numpy(layer(np.ones((1, 6, 8), "float32"))) - 1
    np.testing.assert_allclose(added[0], layer.encoding(6, 8), atol=1e-6)
    np.testing.assert_allclose(added[0, :2], layer.encoding(2, 8), atol=1e-6)
    assert not np.allclose(added[0, 0], added[0, 1])


def test_marian_sinusoids_by_hand():
    # d_model 4: 1 and exactly 1/10000 radians a position.
    expected = [
        [0, 1, 0, 1],
        [0.841470985, 0.540302306, 0.0001, 1],
        [0.909297427, -0.416146837, 0.0002, 1],
    ]
    np.testing.assert_allclose(PositionalEncoding("marian").encoding(3, 4), expected, atol=5e-7)


def test_m2m_100_counts_marians_sinusoids_from_2():
    counted_from_0 = PositionalEncoding("marian").encoding(5, 8)
    np.testing.assert_allclose(
        PositionalEncoding("m2m100").encoding(3, 8), counted_from_0[2:], atol=1e-7
    )


def test_learned_table_has_the_paper_settings():
    layer = PositionalEncoding("learned", max_positions=500)
    layer.build((1, 5, 256))
    assert layer.embeddings.shape == (500, 256)
    assert abs(ops.convert_to_numpy(layer.embeddings).std() * 16 - 1) < 0.02
    # As large as token embeddings times sqrt(d_model): variance 1.
    assert abs(ops.convert_to_numpy(layer.encoding(500, 256)).std() - 1) < 0.02


def test_other_positions_are_refused():
    with refused("positions", '"relative"'):
        PositionalEncoding("relative")
    with refused("positions", "rotary", about="added"):
        PositionalEncoding("rotary").encoding(3, 4)


def test_relative_positions_equal_numpy():
    vectors = np.random.default_rng(0).normal(size=(7, 6)).astype("float32")
    rotated = rotate(vectors[None], np.arange(7))[0]
    np.testing.assert_allclose(rotated, numpy_reference.rotated(vectors), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(rotated[0], vectors[0])  # the first is turned by nothing


def test_only_sinusoids_need_an_even_width():
    inputs = np.ones((1, 4, 5), "float32")
    np.testing.assert_array_equal(PositionalEncoding("rotary")(inputs), inputs)
    assert PositionalEncoding("learned")(inputs).shape == (1, 4, 5)
    with refused("inputs", 5):
        PositionalEncoding("sinusoidal")(inputs)


@pytest.mark.parametrize("width", [0, 5])
def test_sinusoids_of_an_odd_width_are_refused(width):
    with refused("d_model", width):
        sinusoids(np.arange(5), width)


@pytest.mark.parametrize("positions", [1, 3])
def test_more_positions_than_were_learned_are_refused(positions):
    layer = PositionalEncoding("learned", positions)
    assert layer(np.ones((2, positions, 8), "float32")).shape == (2, positions, 8)
    with refused("inputs", 4, about=f"at most {positions} "):
        layer(np.ones((2, 4, 8), "float32"))
    # Keras makes an error of the message, with its own before it.
    with pytest.raises(InputError, match=rf"inputs must .* {positions} positions.* Received: 4"):
        layer(keras.Input((4, 8)))
    assert layer(keras.Input((None, 8))).shape == (None, None, 8)
