"""Graphs for text: their names, language codes, and batches of similar lengths."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import EOS_ID
from keras_transformer.export.text_graphs import MIN_ROW_TOKENS, TextGraphs, in_batches
from keras_transformer.search.compiled_model import compile_model
from keras_transformer.search.config import DecodingConfig, SamplingConfig, SearchSettings
from keras_transformer.search.ensemble import ensemble_of
from keras_transformer.search.tensorflow_engine import SearchGraphs
from keras_transformer.vocabulary.pair import VocabularyPair
from pipelines.vocabulary import learn_subwords
from tests.small_models import small_model

TEXT = ["the dog sees a cat. the cat sleeps.", "der Hund sieht eine Katze", "pes vidí kočku"] * 20

NAMES = {
    *("serving_default", "best", "beams", "n_best", "complete", "document", "score", "align"),
    "tokenize",
}


def describe_batch(ids):
    """Returns facts about the batch for every row."""
    shape = tf.shape(ids)
    return {
        "sum": tf.reduce_sum(ids, axis=1),
        "shape": tf.ensure_shape(tf.tile(shape[None], [shape[0], 1]), [None, 2]),
        "text": tf.strings.as_string(ids[:, 0])[:, None],
    }


def test_batches_are_of_similar_length_and_the_order_stays():
    assert MIN_ROW_TOKENS == 32
    lengths = [3, 40, 120, 50, 5, 1, 41]
    ids = tf.ragged.constant([[number] * length for number, length in enumerate(lengths, 1)])
    found = in_batches(describe_batch, 100, tf.cast(ids, tf.int32))
    assert found["sum"].numpy().tolist() == [3, 80, 360, 200, 25, 6, 287]
    assert found["text"].numpy().tolist() == [[b"%d" % number] for number in range(1, 8)]
    # Longest first: 120 alone, though too long; 50 and 41; 40 and 5, as two of 40 fit; 3 and 1.
    wanted = [[2, 3], [2, 40], [1, 120], [2, 50], [2, 40], [2, 3], [2, 50]]
    assert found["shape"].numpy().tolist() == wanted


def test_rows_of_two_sides_stay_together():
    left = tf.ragged.constant([[1], [2] * 60, [3] * 10], dtype=tf.int32)
    right = tf.ragged.constant([[4] * 70, [5], [6] * 2], dtype=tf.int32)

    def products(left, right):
        size = tf.fill([tf.shape(left)[0]], tf.shape(left)[0])
        return {"product": left[:, 0] * right[:, 0], "size": size}

    found = tf.function(lambda: in_batches(products, 110, left, right))()
    assert found["product"].numpy().tolist() == [4, 10, 18]
    # The longer side counts: 70, then 60 (with 10 beside it, two would be 120), then 10.
    assert found["size"].numpy().tolist() == [1, 1, 1]


def test_no_rows():
    none = tf.RaggedTensor.from_row_splits(tf.zeros([0], tf.int32), [0])
    found = tf.function(lambda: in_batches(describe_batch, 100, none))()
    assert found["sum"].shape == [0]
    assert found["shape"].shape == [0, 2]
    assert found["text"].dtype == tf.string


def test_a_batch_sees_what_was_computed_outside():
    # Like the weights of an exported model, which are read once and not in every batch.
    ids = tf.ragged.constant([[1], [2] * 90, [3]], dtype=tf.int32)

    @tf.function
    def scaled(factor):
        outer = factor * 10
        return in_batches(lambda ids: {"scaled": ids[:, 0] * outer}, 64, ids)

    np.testing.assert_array_equal(scaled(tf.constant(2))["scaled"], [20, 40, 60])


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    shared = learn_subwords(TEXT, "bpe", 310, folder, seed=1, languages=["de", "cs"])
    return VocabularyPair(shared, shared)


@pytest.fixture(scope="module")
def model():
    return compile_model(small_model(vocab_size=310, num_layers=1))


def graphs_of(models, vocabularies, options, constraints=True):
    graphs = SearchGraphs(ensemble_of(models), SearchSettings(options), constraints)
    return TextGraphs(graphs, vocabularies)


def test_an_ensemble_has_no_attention_and_constraints_are_asked_for(vocabularies, model):
    options = DecodingConfig(2, extra_length=3)
    one = graphs_of([model], vocabularies, options)
    assert set(one.named) == NAMES | {"constrain", "attention"}
    without = graphs_of([model], vocabularies, options, constraints=False)
    assert set(without.named) == NAMES | {"attention"}
    sampling = dataclasses.replace(options, sampling=SamplingConfig())
    assert set(graphs_of([model], vocabularies, sampling).named) == NAMES | {"attention"}
    two = graphs_of([model, model], vocabularies, options)
    assert set(two.named) == NAMES | {"constrain"}


class TestCodes:
    @pytest.fixture(scope="class")
    def graphs(self, vocabularies, model):
        options = DecodingConfig(beam_size=2, extra_length=3, max_source_length=12)
        return graphs_of([model], vocabularies, options)

    def test_a_text_of_a_code_alone_is_blank(self, graphs):
        found = graphs.serving_default(tf.constant([">>de<<", ">>cs<<  ", "", ">>de<< dog"]))
        assert found["translation"].numpy()[:3].tolist() == [b"", b"", b""]
        assert found["score"].numpy()[3] < 0

    def test_the_code_of_a_document_is_that_of_all_its_parts(self, graphs, vocabularies):
        read = []
        translate_ids = graphs._translate_ids

        def recorded(source_ids, *others, **options):
            read.append(source_ids)
            return translate_ids(source_ids, *others, **options)

        graphs._translate_ids = recorded
        try:
            text = ">>cs<< The dog.\n\nThe cat. The dog sees a cat and the dog sees a cat."
            TextGraphs.document.python_function(graphs, tf.constant([text, "The dog.", ">>de<< "]))
        finally:
            del graphs._translate_ids
        rows = read[0].to_list()
        (german,), (czech,) = vocabularies.source.encode([">>de<<", ">>cs<<"])
        assert max(map(len, rows)) <= 12 and all(row[-1] == EOS_ID for row in rows)
        firsts = [row[0] for row in rows if row != [EOS_ID]]
        assert len(firsts) > 4 and set(firsts[:-1]) == {czech}
        assert firsts[-1] not in (german, czech)  # the text without a code
        assert german not in firsts  # the text with this code is blank
