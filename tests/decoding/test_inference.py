import itertools

import numpy as np
import pytest
import tensorflow as tf
from keras_transformer.decoding.inference import encode_text, search_ids, target_log_probs
from keras_transformer.decoding.inference_model import inference_model

from keras_transformer.config import BOS_ID, EOS_ID, PAD_ID
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.errors import InputError
from keras_transformer.model import transformer

VOCAB_SIZE = 132


def full_logits(model, source, target):
    """Logits [V] of the token after `target`, from the functional model."""
    inputs = {"source": np.array([source], "i4"), "target": np.array([[BOS_ID, *target]], "i4")}
    return np.asarray(model(inputs, training=False), np.float64)[0, -1]


def log_softmax(logits):
    shifted = logits - np.max(logits, axis=-1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))


def sequence_log_prob(model, source, target):
    return sum(
        log_softmax(full_logits(model, source, target[:i]))[token] for i, token in enumerate(target)
    )


@pytest.mark.parametrize(
    "settings",
    [{}, {"positions": "learned", "norm": "pre", "tie_embeddings": False, "d_k": 3, "d_v": 5}],
)
def test_cached_decoding_is_the_full_forward_pass(make_model, settings):
    model = make_model(**settings)
    generator = np.random.default_rng(0)
    source = generator.integers(4, VOCAB_SIZE, (3, 7)).astype("i4")
    source[1, 4:] = PAD_ID
    target = generator.integers(4, VOCAB_SIZE, (3, 2, 6)).astype("i4")  # two beams a sentence
    target[:, :, 0] = BOS_ID

    memory, mask = model.encode(source)
    projected = model.project_memory(memory)
    cache = model.empty_cache(3, 2).reserve(6)
    cached = []
    for position in range(6):
        ids = tf.constant(target[:, :, position])
        logits, cache = model.decode_step(ids, position, cache, projected, mask)
        cached.append(logits)
    cached = np.stack(cached, axis=2)  # [B, K, T, V]
    for beam in range(2):
        full = model({"source": source, "target": target[:, beam]}, training=False)
        np.testing.assert_allclose(cached[:, beam], full, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layout", ["training", "inference"])
def test_bfloat16_search_scores_in_float32(model, layout):
    narrow = transformer.Transformer(model.config, dtype="mixed_bfloat16")
    for variable, wide in zip(narrow.trainable_variables, model.trainable_variables, strict=True):
        variable.assign(wide)
    if layout == "inference":
        narrow = inference_model(narrow)
    source = tf.constant([[50, 60, 70, EOS_ID]])
    best = search_ids(narrow, source, DecodingConfig(2, extra_length=2))
    forced = target_log_probs(narrow, tf.repeat(source, 2, axis=0), best.ids[0])
    assert best.scores.dtype == best.log_probs.dtype == forced.dtype == tf.float32
    log_probs = best.log_probs[0].numpy()
    assert np.any(log_probs != tf.cast(tf.cast(log_probs, tf.bfloat16), tf.float32))
    # bfloat16 has 8 bits: cached and full logits, which are up to 16, may differ by some 1/16.
    np.testing.assert_allclose(tf.reduce_sum(forced, axis=1), log_probs, atol=0.3)


def test_one_beam_is_greedy(model):
    source = [50, 60, 70, EOS_ID]
    best = search_ids(model, tf.constant([source]), DecodingConfig(1, extra_length=5))
    wanted = []
    while len(wanted) < 9 and EOS_ID not in wanted:
        wanted.append(int(np.argmax(full_logits(model, source, wanted))))
    assert best.ids[0, 0].numpy().tolist() == wanted
    log_prob = sequence_log_prob(model, source, wanted)
    assert float(best.log_probs[0, 0]) == pytest.approx(log_prob, abs=1e-3)


def test_beam_is_brute_force(make_model):
    # 5 tokens and at most 3 of them: 1 + 4 + 16 hypotheses, fewer than the beams of this search.
    model = make_model(seed=4, scale=1.5, vocab_size=5)
    source, others = [4, 3, EOS_ID], (0, 1, 3, 4)
    config = DecodingConfig(41, alpha=0.9, extra_length=0)
    best = search_ids(model, tf.constant([source]), config)
    wanted = []
    for length in (1, 2, 3):
        for prefix in itertools.product(others, repeat=length - 1):
            log_prob = sequence_log_prob(model, source, [*prefix, EOS_ID])
            wanted.append((log_prob / ((5 + length) / 6) ** 0.9, [*prefix, EOS_ID]))
    wanted.sort(reverse=True)
    lengths = best.lengths[0].numpy()
    assert int(np.sum(lengths > 0)) == len(wanted) == 21
    np.testing.assert_allclose(best.scores[0, :21], [score for score, _ in wanted], atol=1e-4)
    got = [best.ids[0, k, : lengths[k]].numpy().tolist() for k in range(21)]
    assert got == [sequence for _, sequence in wanted]


def test_padding_and_company_change_nothing(model):
    config = DecodingConfig(3, extra_length=4)
    sources = [[9, 10, EOS_ID], [70, 71, 72, 73, 74, 75, EOS_ID], [EOS_ID], [99, 98, 97, EOS_ID]]
    rows = tf.keras.utils.pad_sequences(sources, padding="post", value=PAD_ID)
    together = search_ids(model, tf.constant(rows), config)
    for i, source in enumerate(sources):
        alone = search_ids(model, tf.constant([source]), config)
        length = alone.ids.shape[2]
        assert np.array_equal(alone.ids[0], together.ids[i, :, :length])
        np.testing.assert_allclose(alone.scores[0], together.scores[i], rtol=1e-4, atol=1e-5)


def test_encode_text_adds_eos_and_cuts(characters):
    texts = ["ab", "", "abcdef", " \t\u3000\u2029\x00", "abcd"]
    ids, cut = encode_text(characters.source, tf.constant(texts), limit=4)
    a = ord("a") + 4
    assert ids.to_list() == [
        [a, a + 1, EOS_ID],
        [EOS_ID],
        [a, a + 1, a + 2, EOS_ID],
        [EOS_ID],
        [a, a + 1, a + 2, EOS_ID],
    ]
    assert cut.numpy().tolist() == [False, False, True, False, True]


def test_encode_text_takes_invalid_bytes(characters):
    ids, _ = encode_text(characters.source, tf.constant([b"a\xffb", b"\xc3"]), limit=9)
    assert ids.to_list() == [[ord("a") + 4, 3, ord("b") + 4, EOS_ID], [3, EOS_ID]]


def test_score_of_a_translation_is_the_search_score(model):
    source = tf.constant([[60, 61, 62, 63, EOS_ID]])
    best = search_ids(model, source, DecodingConfig(4, extra_length=3))
    forced = target_log_probs(model, tf.repeat(source, 4, axis=0), best.ids[0]).numpy()
    assert np.all(forced[best.ids[0].numpy() == PAD_ID] == 0)
    np.testing.assert_allclose(forced.sum(axis=1), best.log_probs[0], rtol=1e-4, atol=1e-5)


def test_prefix_is_kept_and_counts_in_the_score(model):
    source = tf.constant([[60, 61, 62, EOS_ID], [70, 71, EOS_ID, PAD_ID]])
    prefix = tf.constant([[80, 81], [90, PAD_ID]])
    best = search_ids(model, source, DecodingConfig(3, extra_length=3), prefix)
    assert best.ids[0, :, :2].numpy().tolist() == [[80, 81]] * 3
    assert best.ids[1, :, 0].numpy().tolist() == [90] * 3
    forced = target_log_probs(model, tf.repeat(source, 3, axis=0), tf.reshape(best.ids, [6, -1]))
    np.testing.assert_allclose(
        tf.reshape(tf.reduce_sum(forced, axis=1), [2, 3]), best.log_probs, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam_size": 0}, "beam_size must be at least 1. Received: 0"),
        ({"alpha": -1.0}, "alpha must be at least 0 and finite. Received: -1.0"),
        ({"max_source_length": 1}, "max_source_length must be at least 2. Received: 1"),
        ({"extra_length": -1}, "extra_length must be at least 0. Received: -1"),
        ({"min_length": -1}, "min_length must be at least 0. Received: -1"),
        ({"batch_tokens": 0}, "batch_tokens must be at least 1. Received: 0"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        DecodingConfig(**settings)
