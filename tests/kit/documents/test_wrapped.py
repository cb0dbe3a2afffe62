import random
import textwrap

import pytest

from keras_transformer.kit.documents.text.wrapped import continued_line, read
from tests.kit.documents.doubles import with_words_reversed

MAIL = """\
Dear Mr Smith,

the committee met on Tuesday in the old town hall, and after a discussion of
three hours it decided nothing at all. It will meet again next week, when the
mayor is back from his holidays. You can read the minutes of the meeting at
https://example.com/minutes/november/tuesday/an-address-that-is-wider-than-the-text
before you come.

 - The first item of the list is longer than one line, so that it goes
   on in the next one.
 - The second one is short.

> I asked him whether he would come, and he said that he did not know yet
> because his sister is ill.
>
>> And his brother?

Max Mustermann
Hauptstrasse 15
12345 Berlin
--\x20
Sent from my phone
"""


def texts_of(text):
    document = read(text, "en")
    assert document.source == text
    return [segment.text for segment in document.segments]


def test_lines_of_a_paragraph_are_one_segment():
    assert texts_of(MAIL) == [
        "Dear Mr Smith,",
        "the committee met on Tuesday in the old town hall, and after a discussion of three hours "
        "it decided nothing at all. It will meet again next week, when the mayor is back from his "
        "holidays. You can read the minutes of the meeting at "
        "https://example.com/minutes/november/tuesday/an-address-that-is-wider-than-the-text "
        "before you come.",
        "- The first item of the list is longer than one line, so that it goes on in the next one.",
        "- The second one is short.",
        "I asked him whether he would come, and he said that he did not know yet because his "
        "sister is ill.",
        "And his brother?",
        "Max Mustermann",
        "Hauptstrasse 15",
        "12345 Berlin",
        "Sent from my phone",
    ]


def test_a_translation_has_as_many_lines_and_its_breaks_are_quoted():
    translated = with_words_reversed(read(MAIL, "en"))
    assert translated.count("\n") == MAIL.count("\n")
    assert (
        "> . ILL IS SISTER HIS BECAUSE YET KNOW NOT DID HE THAT SAID HE AND , COME\n> "
        in translated
    )


@pytest.mark.parametrize("width", [50, 72, 100])
def test_paragraphs_are_found_at_any_width_without_empty_lines(width):
    rng = random.Random(width)
    words = ["the", "of", "dog", "committee", "a", "Tuesday", "in", "translation", "neighbour"]

    def sentence():
        return " ".join(rng.choices(words, k=rng.randint(6, 30))).capitalize() + "."

    paragraphs = [" ".join(sentence() for _ in range(rng.randint(2, 5))) for _ in range(60)]
    text = "\n\n".join("\r\n".join(textwrap.wrap(each, width)) for each in paragraphs)
    assert texts_of(text) == paragraphs
    without_empty_lines = "\n".join(textwrap.fill(each, width) for each in paragraphs)
    # If a paragraph's last line happens to be full, the next paragraph is joined to it.
    assert len(set(texts_of(without_empty_lines)) & set(paragraphs)) > 0.7 * len(paragraphs)
    assert continued_line(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "A dog sleeps.\nA cat sleeps.\nThe old woman reads a book in the garden of the house.\n",
        "bread\nmilk\neggs\n",
        "Firma Mustermann und Söhne\nHauptstraße 15\n12345 Berlin",
        "A title\n=======\nThe text of the first chapter begins here.\n",
        "\n".join("x" * length + " y." for length in range(1, 300, 7)),
    ],
)
def test_other_lines_stay_paragraphs(text):
    assert texts_of(text) == [
        line for line in text.split("\n") if any(map(str.isalpha, line)) and line
    ]
    assert continued_line(text) is None


def test_an_indented_line_begins_a_paragraph():
    filled = textwrap.fill("The dog sees the cat of a neighbour. " * 9, 60, initial_indent="   ")
    assert len(texts_of(filled + "\n" + filled)) == 2


def test_only_words_say_that_a_text_looks_wrapped():
    assert continued_line(MAIL) == 3
    assert continued_line("A short line\nand the next one\n") is None
    assert continued_line("") is continued_line("\n") is None
    many = "A sentence.\n" * 20
    assert continued_line(many + MAIL[: MAIL.index("hours")]) is None, "one line of many"


@pytest.mark.parametrize("count", [500, pytest.param(5000, marks=pytest.mark.slow)])
def test_nothing_is_lost(count):
    rng = random.Random(1)
    pieces = ["a ", "word", "\n", " ", ">", "- ", "\r\n", "Some words of a line that is", "x" * 50]
    for _ in range(count):
        text = "".join(rng.choices([*pieces, ".", "\v", "\u2028", "\t"], k=rng.randrange(12)))
        assert read(text, "en").source == text
        with_words_reversed(read(text, "en"))


def test_megabytes_are_read_at_once():
    assert (
        len(texts_of("a" + " " * 1_000_000 + "b\n" + ">" * 1_000_000 + "\n" + "- " * 300_000)) == 1
    )


@pytest.mark.parametrize(
    ("first", "second", "read_as"),
    [
        ("they met in the build-", "ing of it", "they met in the building of it"),
        ("they met in the build-", "ing, and", "they met in the building, and"),
        ('it was an "un-', 'believable" one', 'it was an "unbelievable" one'),
        ("sie schrieben (Über\u2010", "raschung) es", "sie schrieben (Überraschung) es"),
        ("sie schrieben einen Neben\u00ad", "satz hier", "sie schrieben einen Nebensatz hier"),
        ("THEY MET IN THE BUILD-", "ING OF IT", "THEY MET IN THE BUILDING OF IT"),
        # A hyphen that belongs to the word.
        ("they met in a state-of-the-", "art hall", "they met in a state-of-the-art hall"),
        ("they met in a well-", "known hall", "they met in a well-known hall"),
        ("they met in Baden-", "Baden again", "they met in Baden-Baden again"),
        # A hyphen or dash that does not split a word.
        ("sie schrieben Haupt-", "und Nebensatz", "sie schrieben Haupt- und Nebensatz"),
        ("they met at https://x.y/in-", "the hall", "they met at https://x.y/in- the hall"),
        ("they met the 10-", "year plan", "they met the 10- year plan"),
        ("they met then -", "or not", "they met then - or not"),
    ],
)
def test_a_word_that_is_divided_at_the_end_of_a_line_reads_as_one(first, second, read_as):
    before = "Once upon a time, in the well-known town hall,"
    text = f"> {before} {first} \n> {second}"
    assert texts_of(text) == [f"{before} {read_as}"]


def test_the_break_within_a_word_comes_after_it():
    text = "> We have met here all of us in the build-\n> ing which is\n"
    assert translated(text) == ("> IS WHICH BUILDING THE IN US OF ALL HERE\n> MET HAVE WE\n")
    text = "> We have met here all of us in the build-\n> ing"
    assert translated(text) == "> BUILDING THE IN US OF ALL HERE MET HAVE WE"
    unchanged = "1234567890 1234567890 1234567890 1234567890 build-\ning 1\n"
    assert read(unchanged, "en").source == unchanged


def test_a_line_that_ends_in_a_part_of_a_word_goes_on():
    text = "They have met in the evening of this day in the build-\ning of it.\n"
    assert continued_line(text) == 1


def translated(text):
    return with_words_reversed(read(text, "en"))
