import numpy as np
import pytest

from keras_transformer.core.vocabulary.subwords import Subwords
from pipelines.prepare.vocabulary import learn_subwords
from tests.refusals import refused

WORDPIECE = pytest.param("wordpiece", marks=pytest.mark.tensorflow)
TEXT = [
    "the dog sees the big dog and the small cats.",
    "der Hund sieht den großen Hund, und die kleinen Katzen!",
    'don\'t stop: "dogs" (and cats) see #1 ## x##y',
    "a b c d e f g h i j k l m n o p q r s t u v w x y z 漢字 日本",
    "<s> </s> [EOS] [PAD] <unk> <pad>",
] * 20

EXACT = [
    "the dog",
    "the dogs, and (small) cats.",
    "a b c d",
    "big  cats   dog ",
    'don\'t: "stop"',
    "#1 ## x##y ###",
    "漢字 日 dog漢x 本",
    "doghouse catdog",
    "</s> <s> [EOS] [PAD] <pad> <unk>",
    "",
]


@pytest.fixture(scope="module")
def bpe(tmp_path_factory):
    return learn_subwords(TEXT, "bpe", 340, tmp_path_factory.mktemp("bpe"), seed=1)


@pytest.fixture(scope="module")
def wordpiece(tmp_path_factory):
    return learn_subwords(TEXT, "wordpiece", 140, tmp_path_factory.mktemp("wordpiece"), seed=1)


@pytest.fixture(scope="module", params=["bpe", WORDPIECE])
def learned(request):
    return request.getfixturevalue(request.param)


def test_size_and_file(learned):
    assert learned.vocab_size == {"bpe": 340, "wordpiece": 140}[learned.kind]
    names = {"bpe": "vocabulary.model", "wordpiece": "vocabulary.txt"}
    assert learned.file.name == names[learned.kind]
    again = Subwords(learned.file)
    assert (again.kind, again.fingerprint) == (learned.kind, learned.fingerprint)
    assert again.encode(EXACT) == learned.encode(EXACT)


def test_words_of_subwords(learned):
    # In others a WordPiece is of two words, as ">▁<", or words are parted without a space.
    texts = [*EXACT[:4], "doghouse catdog", ""]
    rows = learned.encode(texts)
    for text, ids in zip(texts, rows, strict=True):
        parts = [[] for _ in text.split()]
        for piece, number in zip(ids, learned.words(ids), strict=True):
            parts[number].append(piece)
        assert [part.strip() for part in learned.decode(parts)] == text.split()


def test_no_word_precedes_the_first(bpe):
    (ids,) = bpe.encode(["   the dogs"])
    assert bpe.words(ids)[0] == -1


@pytest.mark.parametrize("text", EXACT)
def test_text_comes_back(learned, text):
    ids = learned.encode([text])
    # Nothing a user writes, not even the name of a special symbol, becomes pad, bos, eos or unk.
    assert all(4 <= id_ < learned.vocab_size for id_ in ids[0])
    assert learned.decode(ids) == [text]


@pytest.mark.parametrize("text", ["😀 Ж\u2028ñ\x85", "tab\tnul\0", "ﬁ e\u0301 \u00a0", "\r"])
def test_bpe_spells_what_it_has_never_seen(bpe, text):
    assert bpe.decode(bpe.encode([text])) == [text]


def test_what_bpe_does_not_keep(bpe):
    assert bpe.decode(bpe.encode(["  dog", "x▁y"])) == ["dog", "x y"]


@pytest.mark.tensorflow
def test_what_wordpiece_does_not_keep(wordpiece):
    ids = wordpiece.encode(["dog Ж", "dЖg", "x▁y", " a\nb\r"])
    assert 3 in ids[0]
    assert wordpiece.decode(ids) == ["dog ⁇", "d ⁇g", "x y", " a b "]


def test_replacement_characters(learned):
    texts = learned.decode(learned.encode(["dog ��", "�"]))
    expected = {"bpe": ["dog ��", "�"], "wordpiece": ["dog ⁇ ⁇", "⁇"]}
    assert texts == expected[learned.kind]


def test_halves_of_characters_are_question_marks(learned):
    assert learned.encode(["dog \ud83d"]) == learned.encode(["dog ?"])


def test_any_ids_decode_to_valid_utf8(learned):
    ids = np.random.default_rng(0).integers(0, learned.vocab_size, size=(50, 20), dtype=np.int32)
    texts = learned.decode(ids.tolist())
    # Lone bytes of a character would be halves of characters, which cannot be encoded.
    assert [text.encode("utf-8").decode("utf-8") for text in texts] == texts


def test_decoding_stops_at_eos_and_leaves_out_pad_and_bos(learned):
    (dog,) = learned.encode(["the dog"])
    assert learned.decode([[1, 0, *dog, 2, *dog, 2], [2, *dog], [], dog]) == [
        "the dog",
        "",
        "",
        "the dog",
    ]


def test_empty_batches(learned):
    assert learned.encode([]) == []
    assert learned.decode([]) == []
    assert learned.decode([[], []]) == ["", ""]
    assert learned.words([]) == []


def test_a_sentence_is_encoded_alike_in_every_batch(learned):
    together = learned.encode(EXACT)
    assert [learned.encode([text])[0] for text in EXACT] == together
    assert learned.encode(EXACT * 20, threads=3) == together * 20
    assert learned.decode(together) == EXACT


def test_files_that_are_not_vocabularies_are_named(tmp_path):
    (tmp_path / "any.model").write_bytes(b"nonsense")
    with refused(None, "SentencePiece", place="any.model"):
        Subwords(tmp_path / "any.model")
    (tmp_path / "any.txt").write_text("the\nof\n")
    with refused(None, "[PAD], [BOS], [EOS], [UNK]", place="any.txt"):
        Subwords(tmp_path / "any.txt")


@pytest.mark.parametrize(
    ("first_line", "received"),
    [
        (b"[" * 100_000, "recursion"),
        (b'["<pad>", 1]', "[1] must be of type str"),
        (b'{"<pad>": 0}', "must be of type list"),
        (b'["<pad>", "<start>", "</s>", "<unk>"]', "another file"),
    ],
)
def test_numbered_pieces_that_are_none(first_line, received, tmp_path):
    file = tmp_path / "vocabulary.pieces"
    file.write_bytes(first_line + b"\nno model")
    with refused(None, received, place=file):
        Subwords(file)


class TestCodes:
    """The codes of target languages."""

    @pytest.fixture(scope="class", params=["bpe", WORDPIECE])
    def coded(self, request, tmp_path_factory):
        size = {"bpe": 340, "wordpiece": 140}[request.param]
        folder = tmp_path_factory.mktemp(request.param)
        return learn_subwords(TEXT, request.param, size, folder, seed=1, languages=["de", "pt-BR"])

    def test_a_code_is_one_id_before_those_of_the_text(self, coded):
        assert coded.languages == ("de", "pt-BR") and coded.vocab_size in (340, 140)
        german, brazilian, text = coded.encode([">>de<<", ">>pt-BR<<", "the dog"])
        assert len(german) == len(brazilian) == 1 and german != brazilian
        coded_texts = [">>de<< the dog", ">>pt-BR<< the dog", ">>de<<the dog"]
        assert coded.encode(coded_texts) == [german + text, brazilian + text, german + text]

    def test_only_known_codes_at_the_beginning_are_ids(self, coded):
        (german,) = coded.encode([">>de<<"])[0]
        others = [" >>de<< a", "a >>de<<", ">>fr<< a", ">>DE<< a", "x>>de<<"]
        assert all(german not in ids for ids in coded.encode(others))
        assert coded.encode([">>de<< >>de<< >>de<<"])[0].count(german) == 2

    def test_codes_are_no_text(self, coded):
        ids = coded.encode([">>de<< the dog", ">>de<<", "the dog"])
        assert coded.decode(ids) == ["the dog", "", "the dog"]
        words = coded.words(ids[0])
        assert words[0] == -1 and set(words[1:]) == {0, 1}

    def test_other_vocabularies_have_no_codes(self, learned):
        assert learned.languages == ()
