"""Sentences found in a translation memory, in documents and on their own."""

import pytest

from keras_transformer.kit.documents.formats import read_document
from keras_transformer.kit.documents.memory.memory import TranslationMemory, difference
from keras_transformer.kit.documents.tree.translation import AlignedText
from keras_transformer.use.translate.answers import Link
from tests.kit.documents.doubles import documents

MEMORY = TranslationMemory(
    {
        "A dog.": "Ein Hund.",
        "Delete  {name}?": "{name} löschen?",
        "%s and %s": "%s und %s",
        "{a} of {b}": "{b}: {a}",
        "See https://a.b/c.": "Siehe https://a.b/c.",
        "One. Two.": "Eins,  zwei.",
        "OPEN THE FILE": "Öffnen",
        ">>de<< A cat.": "Eine Katze.",
        "": "nothing",
        "blank": " ",
    }
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A dog.", "Ein Hund."),
        (" A\N{NO-BREAK SPACE}\td\N{SOFT HYPHEN}og. ", "Ein Hund."),
        ("a dog.", None),
        ("Delete {file}?", "{file} löschen?"),
        ("Delete %s?", "%s löschen?"),
        ("Delete this?", None),
        ("%d and %d", "%d und %d"),
        ("%d and %s", None),
        ("%(x)s of {1}", "{1}: %(x)s"),
        ("{a} of {a}", None),
        ("See http://x.org.", "Siehe http://x.org."),
        ("One.  Two.", "Eins, zwei."),
        (">>de<< A  cat.", "Eine Katze."),
        ("A cat.", None),
        (">>cs<< A cat.", None),
        ("", None),
        ("blank", None),
    ],
)
def test_white_space_and_placeholders_do_not_count(text, wanted):
    assert MEMORY.find(text) == wanted


def test_a_translation_without_a_required_phrase_is_not_found():
    assert MEMORY.find("A dog.", ["Hund", "Ein"]) == "Ein Hund."
    assert MEMORY.find("A dog.", ["Hund", "Tier"]) is None


def recalling(limit=50, given=None):
    """Makes a translator that uses the memory, or else capitalizes; `given` gets the texts."""

    def answer(text):
        if given is not None:
            given.append(text)
        found = MEMORY.find(text) or text.upper()
        return AlignedText(found, [Link((0, len(text)), (0, len(found)))])

    return documents(answer, limit, case="auto", knows=lambda text: MEMORY.find(text) is not None)


@pytest.mark.parametrize(
    ("format", "text", "wanted", "given"),
    [
        ("text", "A  dog. Delete {x}?", "Ein Hund. {x} löschen?", ["A dog.", "Delete {x}?"]),
        ("text", " One. Two.\nOne. Two", " Eins, zwei.\nONE. TWO", ["One. Two.", "One.", "Two"]),
        ("text", "OPEN THE FILE\nOPEN IT", "Öffnen\nOPEN IT", ["OPEN THE FILE", "Open it"]),
        ("html", "<p>Delete\n{x}?</p>", "<p>{x} löschen?</p>", ["Delete {x}?"]),
        ("html", "<p>A <b>dog</b>.</p>", "<p>Ein <b>Hund</b>.</p>", ["A dog."]),
        ("html", "<p>Delete <b>{x}</b>?</p>", "<p>DELETE <b>{x}</b>?</p>", ["Delete?"]),
    ],
)
def test_sentences_of_documents(format, text, wanted, given):
    texts = []
    parts = read_document(text, format, "en").parts
    assert "".join(recalling(given=texts).translate(parts)) == wanted
    assert texts == given


def test_what_is_known_is_not_cut_to_the_limit_of_the_model():
    parts = read_document("One. Two.\nthree four five", "text", "en").parts
    assert "".join(recalling(limit=1).translate(parts)) == "Eins, zwei.\nTHREE FOUR FIVE"


def test_sentences_say_whether_they_are_from_the_memory():
    parts = read_document("A dog. It runs.", "text", "en").parts
    text, sentences = recalling().translate_sentences(parts)
    assert text == "Ein Hund. IT RUNS."
    assert [sentence.from_memory for sentence in sentences] == [True, False]


SIMILAR = TranslationMemory(
    {
        "The old man sees a dog.": "Der alte Mann sieht einen Hund.",
        "The old man sees a big dog.": "Der alte Mann sieht einen großen Hund.",
        "Delete {name} from the list?": "{name} aus der Liste löschen?",
        ">>de<< The old man sees a cat.": "Der alte Mann sieht eine Katze.",
        "我喜欢猫和狗。": "Ich mag Katzen und Hunde.",
    }
)


def test_fuzzy_matches_are_ranked_by_their_similarity():
    first, second = SIMILAR.matches("The old  man sees a dig.", count=3)
    assert first.source == "The old man sees a dog." and first.similarity == 1 - 1 / 23
    assert first.translation == "Der alte Mann sieht einen Hund."
    assert second.source == "The old man sees a big dog." and second.similarity == 1 - 5 / 27
    assert SIMILAR.matches("The old man sees a dig.") == [first]
    assert SIMILAR.matches("The old man sees a dig.", 3, least_similarity=0.9) == [first]
    (exact,) = SIMILAR.matches("The old man sees a dog.")
    assert exact.similarity == 1 and [change.kind for change in exact.difference] == ["equal"]


@pytest.mark.parametrize("text", ["", "A cat.", ">>cs<< The old man sees a cat."])
def test_there_may_be_no_fuzzy_match(text):
    assert SIMILAR.matches(text) == []


def test_a_fuzzy_match_has_the_language_code_and_the_placeholders_of_the_text():
    (match,) = SIMILAR.matches(">>de<< The old men sees a cat.", count=3)
    assert match.source == "The old man sees a cat."
    assert match.difference[1:3] == [("delete", "man "), ("insert", "men ")]
    (match,) = SIMILAR.matches("Delete {file} from this list?")
    assert match.translation == "{file} aus der Liste löschen?"
    assert match.source == "Delete {file} from the list?"
    assert match.similarity == 1 - 2 / 26, "a placeholder counts as three characters"


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        ("A dog", "A dog", [("equal", "A dog")]),
        (
            "The old man sees a dog.",
            "The woman sees a big dog!",
            [
                ("equal", "The "),
                ("delete", "old man "),
                ("insert", "woman "),
                ("equal", "sees a "),
                ("insert", "big "),
                ("equal", "dog"),
                ("delete", "."),
                ("insert", "!"),
            ],
        ),
        ("猫和狗", "猪和狗", [("delete", "猫"), ("insert", "猪"), ("equal", "和狗")]),
        ("A", "B C", [("delete", "A"), ("insert", "B C")]),
    ],
)
def test_the_difference_of_two_sentences(first, second, wanted):
    assert difference(first, second) == wanted


def test_translations_are_replaced_at_once():
    memory = TranslationMemory({"A": "1"})
    memory.replace({"B": "2", "C": "3"})
    assert (memory.find("A"), memory.find("B"), len(memory)) == (None, "2", 2)
