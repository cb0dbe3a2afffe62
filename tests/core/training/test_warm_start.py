import dataclasses

import numpy as np
import pytest

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.use.adapt.warm_start import carry_over, kept_layers
from tests.refusals import refused

WORDS = ["a", "b", "##c", "d"]
CONFIG = TransformerConfig(vocab_size=8, num_layers=1, d_model=4, d_ff=6, num_heads=2)


@pytest.fixture
def vocabulary(tmp_path):
    def make(name, *words):
        folder = tmp_path / name
        folder.mkdir()
        lines = ["[PAD]", "[BOS]", "[EOS]", "[UNK]", *words]
        (folder / "vocabulary.txt").write_text("\n".join(lines) + "\n")
        return Subwords(folder / "vocabulary.txt")

    return make


@pytest.fixture(scope="module")
def trained():
    """A model of CONFIG, which no test changes."""
    return Transformer(CONFIG)


def arrays(model):
    return {weight.path: np.array(weight) for weight in model.weights}


def test_the_same_vocabulary(vocabulary, trained):
    pair = VocabularyPair(*[vocabulary("one", *WORDS)] * 2)
    model = Transformer(dataclasses.replace(CONFIG, dropout=0.0, starts_with_zeros=True))
    assert carry_over(trained, pair, model, pair) == {"embedding/embeddings": (8, 8)}
    expected = arrays(trained)
    assert arrays(model).keys() == expected.keys()
    for path, values in arrays(model).items():
        np.testing.assert_array_equal(values, expected[path])


def test_rows_go_by_subword(vocabulary, trained):
    old = VocabularyPair(*[vocabulary("old", *WORDS)] * 2)
    new = VocabularyPair(vocabulary("source", "d", "new", "a"), vocabulary("target", "b", "d"))
    config = dataclasses.replace(
        CONFIG, vocab_size=6, source_vocab_size=7, tie_embeddings=False, dropout=0.3
    )
    model = Transformer(config)
    drawn = arrays(model)["embedding/embeddings"]
    counts = {"embedding": (7, 6), "target_embedding": (6, 6), "logits_embedding": (6, 6)}
    expected = {f"{name}/embeddings": count for name, count in counts.items()}
    assert carry_over(trained, old, model, new) == expected
    matrix, found = np.array(trained.embedding.embeddings), arrays(model)
    expected = np.concatenate([matrix[:4], matrix[7:8], drawn[5:6], matrix[4:5]])
    np.testing.assert_array_equal(found["embedding/embeddings"], expected)
    expected = matrix[[0, 1, 2, 3, 5, 7]]
    for name in ("target_embedding", "logits_embedding"):
        np.testing.assert_array_equal(found[f"{name}/embeddings"], expected)
    gain = "decoder/layer_0/feed_forward/inner/kernel"
    np.testing.assert_array_equal(found[gain], arrays(trained)[gain])


def test_the_bias_of_logits_goes_by_subword(vocabulary):
    config = dataclasses.replace(CONFIG, logits_bias=True)
    trained, model = Transformer(config), Transformer(dataclasses.replace(config, vocab_size=6))
    trained.logits_embedding.bias.assign(np.arange(8.0))
    old, new = (VocabularyPair(*[vocabulary(f"of{n}", *WORDS[-n:])] * 2) for n in (4, 2))
    carry_over(trained, old, model, new)
    np.testing.assert_array_equal(model.logits_embedding.bias, [0, 1, 2, 3, 6, 7])


def test_a_bias_is_carried_from_a_tied_model_to_an_untied_one(vocabulary):
    """Only the layer that makes logits has a bias: in a tied model, the embedding of the source."""
    config = dataclasses.replace(CONFIG, logits_bias=True)
    trained = Transformer(config)
    model = Transformer(dataclasses.replace(config, tie_embeddings=False))
    trained.logits_embedding.bias.assign(np.arange(8.0))
    pair = VocabularyPair(*[vocabulary("one", *WORDS)] * 2)
    carry_over(trained, pair, model, pair)
    assert model.embedding.bias is None
    np.testing.assert_array_equal(model.logits_embedding.bias, np.arange(8.0))
    for layer in (model.embedding, model.target_embedding, model.logits_embedding):
        np.testing.assert_array_equal(layer.embeddings, trained.embedding.embeddings)


def test_from_separate_vocabularies_to_one(vocabulary):
    """The matrix of both sides gets the rows of the target's."""
    sides = (vocabulary("source", "a", "d"), vocabulary("target", "b", "d"))
    trained = Transformer(dataclasses.replace(CONFIG, vocab_size=6, source_vocab_size=6))
    model = Transformer(CONFIG)
    drawn = np.array(model.embedding.embeddings)
    pair = VocabularyPair(*[vocabulary("one", *WORDS)] * 2)
    assert carry_over(trained, VocabularyPair(*sides), model, pair) == {
        "embedding/embeddings": (8, 6)
    }
    rows = np.array(trained.target_embedding.embeddings)
    expected = np.concatenate([rows[:4], drawn[4:5], rows[4:5], drawn[6:7], rows[5:6]])
    np.testing.assert_array_equal(np.array(model.embedding.embeddings), expected)


@pytest.mark.parametrize(
    "trained, kept, expected",
    [
        (6, 1, [0]),
        (4, 3, [0, 2, 3]),
        (12, 3, [0, 6, 11]),
        (5, 5, [0, 1, 2, 3, 4]),
    ],
)
def test_kept_layers_are_far_apart(trained, kept, expected):
    assert kept_layers(trained, kept) == expected


def test_fewer_layers_are_some_of_the_trained_ones(vocabulary):
    pair = VocabularyPair(*[vocabulary("one", *WORDS)] * 2)
    trained_config = dataclasses.replace(CONFIG, num_layers=3, norm="pre", positions="learned")
    trained = Transformer(trained_config)
    model = Transformer(dataclasses.replace(trained_config, num_layers=2, decoder_layers=1))
    carry_over(trained, pair, model, pair)

    expected, found = arrays(trained), arrays(model)
    old_names = {"encoder/layer_0": "encoder/layer_0", "encoder/layer_1": "encoder/layer_2"}
    for path, values in found.items():
        stack, layer, *rest = path.split("/")
        old_name = old_names.get(f"{stack}/{layer}", f"{stack}/{layer}")
        np.testing.assert_array_equal(values, expected["/".join([old_name, *rest])])


@pytest.mark.parametrize(
    ("settings", "received"),
    [
        ({"num_layers": 2, "norm": "pre"}, "num_layers: 1, not 2; norm: post, not pre"),
        ({"decoder_layers": 2}, "decoder_layers: 1, not 2"),
    ],
)
def test_more_and_other_layers_are_refused(vocabulary, trained, settings, received):
    pair = VocabularyPair(*[vocabulary("one", *WORDS)] * 2)
    model = Transformer(dataclasses.replace(CONFIG, **settings))
    with refused("init_from", received):
        carry_over(trained, pair, model, pair)
