import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import BOS_ID, EOS_ID, PAD_ID
from keras_transformer.core.model import attention
from keras_transformer.core.search.alignment import alignment
from keras_transformer.core.search.compiled_model import attention_maps, compile_model
from tests import numpy_reference
from tests.small_models import padded

SOURCES = [[9, 10, 11, 12, EOS_ID], [20, 21, EOS_ID], [EOS_ID]]
TARGETS = [[30, EOS_ID], [40, 41, 42, EOS_ID], [50, 51, EOS_ID]]


def maps_of(model, source, target):
    """The attention maps of a Keras model, after it is compiled."""
    compiled = compile_model(model)
    return attention_maps(*compiled.decode_target(source, target))


def reference_weights(model, source, target, monkeypatch):
    """Weights of one pair by the NumPy Transformer, in the order it computes them.

    Encoder layer by layer, then each decoder layer's self-attention and memory attention, heads
    innermost: a list of [Q, P].
    """
    recorded = []

    softmax = numpy_reference.softmax

    def recording_softmax(scores):
        recorded.append(softmax(scores))
        return recorded[-1]

    weights = {v.path: v.numpy() for v in model.trainable_variables}
    inputs = [BOS_ID, *target[:-1]]
    with monkeypatch.context() as patch:
        patch.setattr(numpy_reference, "softmax", recording_softmax)
        numpy_reference.transformer(weights, np.array(source), np.array(inputs), 2, 2)
    return recorded


def test_weights_are_those_of_the_equations(model, monkeypatch):
    maps = maps_of(model, padded(SOURCES), padded(TARGETS))
    for b, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        wanted = reference_weights(model, source, target, monkeypatch)
        assert len(wanted) == 12, "2 heads of 2 layers of 3 attentions"
        s, t = len(source), len(target)
        for n in range(2):
            for h in range(2):
                found = (
                    maps.encoder[b, n, h, :s, :s],
                    maps.decoder[b, n, h, :t, :t],
                    maps.memory[b, n, h, :t, :s],
                )
                places = (2 * n + h, 4 + 4 * n + h, 4 + 4 * n + 2 + h)
                for weights, place in zip(found, places, strict=True):
                    np.testing.assert_allclose(weights, wanted[place], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "settings",
    [{}, {"positions": "learned", "norm": "pre", "tie_embeddings": False, "d_k": 3, "d_v": 5}],
)
def test_weights_are_those_of_the_models_own_pass(make_model, settings, monkeypatch):
    model = make_model(**settings)
    source, target = padded(SOURCES), padded(TARGETS)
    maps = maps_of(model, source, target)
    attend, recorded = attention.scaled_dot_product_attention, []

    def recording_attention(*arguments, **others):
        outputs, weights = attend(*arguments, **others)
        recorded.append(weights)
        return outputs, weights

    monkeypatch.setattr(attention, "scaled_dot_product_attention", recording_attention)
    shifted = tf.constant(np.insert(target.numpy()[:, :-1], 0, BOS_ID, axis=1))
    model({"source": source, "target": shifted}, training=False)
    # Both layers of the encoder, then self- and cross-attention of each layer of the decoder.
    for part, wanted in zip(maps, (recorded[:2], recorded[2::2], recorded[3::2]), strict=True):
        np.testing.assert_allclose(part, np.stack(wanted, axis=1), rtol=1e-4, atol=1e-5)


def test_no_pairs(model):
    none = tf.zeros([0, 4], tf.int32)
    maps = maps_of(model, none, none)
    assert [part.shape.as_list() for part in maps] == [[0, 2, 2, 4, 4]] * 3
    layers = tf.unstack(maps.memory, axis=1)
    assert alignment([layers], none != PAD_ID).shape == [0, 4]


def test_alignment_is_to_words_by_the_last_two_layers():
    # One pair of two tokens a side and EOS, three layers of one head; columns: a, b, EOS, padding.
    layers = [
        [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]],
        [[0.1, 0.3, 0.6, 0], [0.8, 0.1, 0.1, 0], [0, 0, 1, 0]],
        [[0.2, 0.1, 0.7, 0], [0.1, 0.5, 0.4, 0], [0, 0.1, 0.9, 0]],
    ]  # sums of the last two: [.3 .4 1.3], [.9 .6 .5], [0 .1 1.9]
    lone_eos = [[[1, 0, 0, 0]] * 3] * 3
    memory = tf.constant([layers, lone_eos], tf.float32)[:, :, None]
    memory = tf.unstack(memory, axis=1)
    mask = tf.constant([[True, True, True, False], [True, False, False, False]])
    assert alignment([memory], mask).numpy().tolist() == [[1, 0, 1], [0, 0, 0]]
    # Beside a second model, of one layer of two heads: [1 0 0], [0 .1 .9], [.7 .2 .1] on average.
    heads = [
        [[1, 0, 0, 0], [0, 0.2, 0.8, 0], [1, 0, 0, 0]],
        [[1, 0, 0, 0], [0, 0, 1, 0], [0.4, 0.4, 0.2, 0]],
    ]
    second = tf.constant([[heads], [[lone_eos[0]] * 2]], tf.float32)
    positions = alignment([memory, tf.unstack(second, axis=1)], mask)
    assert positions.dtype == tf.int32
    # Means of both: [.575 .1 ...], [.225 .2 ...], [.35 .125 ...].
    assert positions.numpy().tolist() == [[0, 0, 0], [0, 0, 0]]
