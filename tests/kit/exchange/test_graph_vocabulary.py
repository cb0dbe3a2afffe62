"""The vocabulary inside a graph does what vocabulary/subwords.py does in Python."""

import gc
import gzip
import itertools
import json
import random

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import UNK_ID
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.kit.exchange.graph_vocabulary import GraphVocabulary
from keras_transformer.use.translate.texts import encoded
from pipelines.prepare.vocabulary import learn_subwords

TEXT = [
    "the dog sees the big dog and the small cats.",
    "der Hund sieht den großen Hund, und die kleinen Katzen!",
    'don\'t stop: "dogs" (and cats) see #1 ## x##y',
    "a b c d e f g h i j k l m n o p q r s t u v w x y z 漢字 日本",
    "<s> </s> [EOS] [PAD] <unk> <pad>",
] * 20
LINES = [
    *TEXT[:5],
    *("", " ", "\t\u2028\x85", "  the  dog ", "big  cats   dog ", "#1 ## x##y ###", "a b c d"),
    *("漢字 日 dog漢x 本", "doghouse catdog", "tab\tnul\0", "\r", " a\nb\r", "x▁y", "▁▁", " ▁ a"),
    *("😀 Ж\u2028ñ\x85", "ﬁ e\u0301 \u00a0", "\U0001f431 \u200d\ufeff", "<0x41> <0x0A>"),
    *(">>de<< the dog", ">>pt-BR<<the dog", ">>de<<", ">>de<<  ", ">>de<< >>de<< a", " >>de<< a"),
    *(">>de<< >>pt-BR<< the dog", ">>de<<>>de<<a", ">>de<< >>de<< >>de<< a", ">>xx<< >>de<< a"),
    *(">>de<<  >>de<< a", ">>de<< >>de<<", ">>de<< >>pt-BR<< ", ">>de<< >>xx<< a"),
    *("a >>de<<", ">>fr<< a", ">>DE<< a", "x>>de<<", ">>de<<\u00a0", ">>de<<\n\ndog"),
]
# The parts of random lines.
PARTS = [
    *("the", "dog", "Hund", "großen", "x", "#", "##", "漢", "日", "ไ", "한", "e\u0301", "Ж", "😀"),
    *(" ", " ", " ", "  ", "\t", "\n", "\r", "\r\n", "\v", "\0", "\u00a0", "\u2028", "▁", ".", "'"),
    *("</s>", "[EOS]", "<unk>", "<0x41>", ">>de<<", ">>pt-BR<<", ">>", "<<", "1", "²", "_", "ǆ"),
]
SIZES = {"bpe": 340, "wordpiece": 140}
KINDS = ("bpe", "wordpiece", "coded bpe", "coded wordpiece", "pieces")


def random_lines(count, seed):
    generator = random.Random(seed)
    return ["".join(generator.choices(PARTS, k=generator.randrange(12))) for _ in range(count)]


def numbered_pieces(folder):
    """A SentencePiece model whose pieces have other ids, or none, with a language code added."""
    given = learn_subwords(TEXT, "bpe", 340, folder, seed=1)
    others = given.pieces[UNK_ID + 1 :]
    random.Random(1).shuffle(others)
    pieces = [*given.pieces[: UNK_ID + 1], *others[:-20], ">>de<<"]
    file = folder / "vocabulary.pieces"
    file.write_bytes(json.dumps(pieces).encode() + b"\n" + given.file.read_bytes())
    return Subwords(file)


@pytest.fixture(scope="module", params=KINDS)
def vocabulary(request, tmp_path_factory):
    """A vocabulary in Python."""
    folder = tmp_path_factory.mktemp("vocabulary")
    if request.param == "pieces":
        return numbered_pieces(folder)
    kind = request.param.removeprefix("coded ")
    languages = ["de", "pt-BR"] if request.param != kind else []
    return learn_subwords(TEXT, kind, SIZES[kind], folder, seed=1, languages=languages)


@pytest.fixture(scope="module")
def graph(vocabulary):
    """The same vocabulary in a graph."""
    return GraphVocabulary(vocabulary)


def texts_of(tensor):
    return [text.decode("utf-8") for text in tensor.numpy()]


def rows_of(vocabulary, lines):
    return [ids.tolist() for ids in encoded(vocabulary, lines)]


def assert_same(vocabulary, graph, lines):
    ids = graph.encode(tf.constant(lines))
    rows = ids.to_list()
    for line, found, wanted in zip(lines, rows, rows_of(vocabulary, lines), strict=True):
        assert found == wanted, repr(line)
    assert texts_of(graph.decode(ids.to_tensor())) == vocabulary.decode(rows)


def test_lines(vocabulary, graph):
    assert graph.languages == vocabulary.languages
    assert_same(vocabulary, graph, LINES)


def test_random_lines(vocabulary, graph):
    assert_same(vocabulary, graph, random_lines(500, seed=2))


@pytest.mark.slow  # long lines
def test_lines_of_news(vocabulary, graph, corpora):
    for language in ("cs", "de", "fr"):
        with gzip.open(
            corpora / "news" / f"newstest2014.en-{language}.{language}.gz", "rt", encoding="utf-8"
        ) as file:
            lines = [line.rstrip("\n") for line in itertools.islice(file, 60)]
        assert_same(vocabulary, graph, lines)


@pytest.mark.slow
def test_many_random_lines(vocabulary, graph):
    for seed in range(20):
        assert_same(vocabulary, graph, random_lines(1000, seed))


def test_random_ids(vocabulary, graph):
    ids = np.random.default_rng(0).integers(0, vocabulary.vocab_size, size=(200, 20))
    texts = texts_of(graph.decode(tf.constant(ids, tf.int32)))  # incomplete UTF-8 would raise here
    assert texts == vocabulary.decode(ids.tolist())


def test_invalid_utf8_is_read_as_replacement_characters(vocabulary, graph):
    rows = graph.encode(tf.constant([b"dog \xff\xfe", b"\xf0\x9f", b"\xff>>de<<"]))
    wanted = rows_of(vocabulary, ["dog \ufffd\ufffd", "\ufffd", "\ufffd>>de<<"])
    assert rows.to_list() == wanted


@pytest.mark.parametrize("vocabulary", KINDS[2:], indirect=True)
def test_codes(vocabulary, graph):
    assert graph.encode(tf.constant([">>de<<", ">>de<< \u2028"])).to_list() == [[], []]


def test_empty_batches(graph):
    assert graph.encode(tf.zeros([0], tf.string)).shape[0] == 0
    assert graph.decode(tf.zeros([0, 3], tf.int32)).shape == [0]
    assert graph.decode(tf.zeros([2, 0], tf.int32)).numpy().tolist() == [b"", b""]


@pytest.mark.parametrize("vocabulary", KINDS[2:], indirect=True)
def test_a_saved_model_encodes_and_decodes(vocabulary, graph, tmp_path):
    class Echo(tf.Module):
        def __init__(self):
            super().__init__()
            self.vocabulary = graph

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def __call__(self, text):
            ids = self.vocabulary.encode(text)
            return ids, self.vocabulary.decode(ids.to_tensor())

    tf.saved_model.save(Echo(), str(tmp_path / "echo"))
    ids, texts = tf.saved_model.load(str(tmp_path / "echo"))(tf.constant(LINES))
    rows = rows_of(vocabulary, LINES)
    assert ids.to_list() == rows
    assert texts_of(texts) == vocabulary.decode(rows)


@pytest.mark.parametrize("vocabulary", KINDS[:2], indirect=True)
def test_setting_a_seed_leaves_a_tokenizer_working(vocabulary, graph):
    echo = tf.function(lambda text: graph.decode(graph.encode(text).to_tensor()))
    text = tf.constant(["the dog"])
    wanted = vocabulary.decode(vocabulary.encode(["the dog"]))
    echo(text)
    tf.random.set_seed(1)
    keras.utils.clear_session()
    keras.utils.set_random_seed(1)  # again, after clear_session
    assert texts_of(echo(text)) == wanted
    # Deleting another object for the same file does not delete the model they share.
    assert texts_of(GraphVocabulary(vocabulary).decode(graph.encode(text).to_tensor())) == wanted
    gc.collect()
    assert texts_of(echo(text)) == wanted
