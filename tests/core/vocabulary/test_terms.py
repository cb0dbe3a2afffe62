import numpy as np
import pytest

from keras_transformer.core.config import EOS_ID
from keras_transformer.core.vocabulary.spans import piece_spans
from keras_transformer.core.vocabulary.subwords import spelled
from keras_transformer.core.vocabulary.terms import (
    Term,
    encode_with_terms,
    has_form_of,
    has_terms,
    have_one_stem,
    options_of_terms,
    remove_terms,
)
from pipelines.prepare.vocabulary import learn_subwords
from tests.refusals import refused

WORDPIECE = pytest.param("wordpiece", marks=pytest.mark.tensorflow)
TEXT = ["the dog sees a big dog.", "der Hund sieht den großen Hund! < > / term as"] * 20


@pytest.fixture(scope="module", params=["bpe", WORDPIECE])
def vocabulary(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    size = {"bpe": 330, "wordpiece": 60}[request.param]
    return learn_subwords(TEXT, request.param, size, folder, 1, languages=["de"], term_marks=True)


def encoded(vocabulary, text):
    return vocabulary.encode([text])[0] + [EOS_ID]


def written(vocabulary, row):
    """The texts around and inside the marks, which are written as they are."""
    texts, part = [], []
    for id_ in row:
        if id_ in vocabulary.term_ids:
            texts += [vocabulary.decode([part])[0], vocabulary.pieces[id_]]
            part = []
        else:
            part.append(id_)
    return [text.strip() for text in [*texts, *vocabulary.decode([part])]]


def test_terms_are_written_into_a_source(vocabulary):
    text = "the dog sees a big dog."
    row = encoded(vocabulary, text)
    terms = [Term(4, 7, "Hund"), Term(15, 22, "großen Hund")]
    annotated = encode_with_terms(vocabulary, text, row, terms)
    assert written(vocabulary, annotated) == [
        *("the", "<term>", "dog", "<as>", "Hund", "</term>"),
        *("sees a", "<term>", "big dog", "<as>", "großen Hund", "</term>", "."),
    ]
    own, positions = remove_terms(vocabulary, annotated)
    assert own == row and encode_with_terms(vocabulary, text, row, []) == row
    assert len(positions) == len(annotated) and positions[-1] == len(row) - 1
    dog = row.index(vocabulary.encode(["dog"])[0][0])
    at = annotated.index(vocabulary.encode(["Hund"])[0][0])
    assert positions[at] == dog, "a target is aligned with its term"
    for id_, position in zip(annotated, positions, strict=True):
        is_own = id_ not in vocabulary.term_ids and id_ == row[position]
        assert is_own or id_ in annotated[at - 1 :] or id_ == vocabulary.term_ids[0]


def test_a_row_without_terms_stays_as_it_is(vocabulary):
    row = encoded(vocabulary, "the dog")
    assert remove_terms(vocabulary, row) == (row, list(range(len(row))))


def test_terms_after_a_language_code(vocabulary):
    text = ">>de<< dog, dog"
    row = encoded(vocabulary, text)
    annotated = encode_with_terms(vocabulary, text, row, [Term(2, 4, "x"), Term(7, 10, "Hund")])
    assert annotated[0] == row[0] == vocabulary.pieces.index(">>de<<")
    assert written(vocabulary, annotated)[1:6] == ["<term>", "dog", "<as>", "Hund", "</term>"]
    assert annotated.count(vocabulary.term_ids[0]) == 1, "a code has no terms"


def test_terms_that_do_not_fit_are_left_out(vocabulary):
    text = "dog big dog"
    row = encoded(vocabulary, text)
    terms = [Term(0, 3, "großen großen großen"), Term(8, 11, "Hund")]
    short = encode_with_terms(vocabulary, text, row, terms[1:])
    assert encode_with_terms(vocabulary, text, row, terms, limit=len(short)) == short
    assert encode_with_terms(vocabulary, text, row, terms, limit=len(short) - 1) == row
    cut = row[: len(vocabulary.encode(["dog"])[0])]
    assert encode_with_terms(vocabulary, text, cut, terms[1:]) == cut


def test_a_term_inside_a_subword_includes_all_of_it(vocabulary):
    text = "the dog"
    row = encoded(vocabulary, text)
    last = piece_spans(text, spelled(vocabulary, row), vocabulary.words(row))[-2]
    assert last[1] - last[0] > 1, "the subword has several letters"
    annotated = encode_with_terms(vocabulary, text, row, [Term(6, 7, "Hund")])
    assert annotated == encode_with_terms(vocabulary, text, row, [Term(*last, "Hund")])


def test_terms_beside_characters_that_the_vocabulary_lacks(vocabulary):
    text = "\N{AUTOMOBILE} the dog"
    row = encoded(vocabulary, text)
    annotated = encode_with_terms(vocabulary, text, row, [Term(6, 9, "Hund")])
    assert written(vocabulary, annotated)[1:] == ["<term>", "dog", "<as>", "Hund", "</term>", ""]


def test_marks_are_neither_encoded_nor_decoded(vocabulary):
    text = "the <term> dog <as> Hund </term>."
    row = vocabulary.encode([text])[0]
    assert not set(row) & set(vocabulary.term_ids)
    assert vocabulary.decode([row]) == [text]
    begin, translated_as, end = vocabulary.term_ids
    (dog,) = [vocabulary.encode(["dog"])[0]]
    assert vocabulary.decode([[begin, *dog, translated_as, end, EOS_ID]]) == ["dog"]
    assert vocabulary.words([begin, *dog])[-1] == 0


@pytest.mark.tensorflow
def test_marks_in_a_graph(vocabulary):
    from keras_transformer.kit.exchange.graph_vocabulary import GraphVocabulary

    graph = GraphVocabulary(vocabulary)
    dog = vocabulary.encode(["dog"])[0]
    ids = np.array([[*vocabulary.term_ids, *dog, *vocabulary.term_ids, EOS_ID]], np.int32)
    assert graph.decode(ids).numpy()[0].decode() == "dog"
    text = "the <term> dog <as> Hund </term>."
    assert graph.encode([text]).to_list() == vocabulary.encode([text])


def test_marks_in_a_page(vocabulary):
    from keras_transformer.kit.exchange.web.page_vocabulary import page_vocabulary

    texts = page_vocabulary(vocabulary)["texts"]
    assert [texts[id_] for id_ in vocabulary.term_ids] == [None] * 3


def test_task_options():
    assert has_terms(options_of_terms(True)) and not has_terms(options_of_terms(False))
    assert options_of_terms(False) == {}, "other models have no such option"
    with refused("terms", "yes", "task_options"):
        has_terms({"terms": "yes"})


@pytest.mark.parametrize(
    ("word", "other", "is_same"),
    [
        ("Hund", "Hunde", True),
        ("Hunde", "Hundes", True),
        ("Hund", "hunde", False),
        ("Hund", "Hundehalsband", False),
        ("frei", "Freibad", False),
        ("sitzt", "sitzen", True),
        ("rot", "rote", False),  # too short to know
        ("Frauen", "Frau", True),
        ("spielen", "spielte", True),
        ("Freien", "Freibad", False),
    ],
)
def test_stems(word, other, is_same):
    assert have_one_stem(word, other) == have_one_stem(other, word) == is_same


@pytest.mark.parametrize(
    ("text", "phrase", "is_there"),
    [
        ("zwei rote Wagen.", "roter Wagen", True),
        ("zwei rote Wagen.", "roter Bus", False),
        ("ein T-Shirt", "T-Shirt", True),
        ("den Hunden", "Hund", True),
        ("", "Hund", False),
        ("C++ ist alt", "C++", True),
        ("漢字", "漢", True),
    ],
)
def test_forms_of_a_phrase(text, phrase, is_there):
    assert has_form_of(text, phrase) == is_there
