"""Documents translated by models that capitalize, change nothing, or count."""

import random
import re

import pytest

from keras_transformer.kit.documents.formats import read_document
from keras_transformer.kit.documents.tree import translation
from keras_transformer.kit.documents.tree.alignment import units
from keras_transformer.kit.documents.tree.marked import MarkedSentence
from keras_transformer.kit.documents.tree.segments import (
    Document,
    Mark,
    MarkKind,
    Segment,
    writing_with,
)
from keras_transformer.kit.documents.tree.translation import AlignedText, DocumentTranslator, Model
from keras_transformer.use.translate.answers import Link
from tests.kit.documents.doubles import with_words_reversed
from tests.kit.documents.trees import pieces_of
from tests.refusals import refused


class Shouter:
    """Capitalizes words, each aligned with itself; its subwords are words."""

    def __init__(self, limit=50):
        self.plain, self.aligned, self.limit = [], [], limit

    @property
    def model(self):
        return Model(self.translate, self.count_subwords, self.limit)

    def change(self, text):
        return text.upper()

    def translate(self, texts, aligned):
        for asked, wanted in ((self.plain, False), (self.aligned, True)):
            some = [
                text
                for text, is_aligned in zip(texts, aligned, strict=True)
                if is_aligned is wanted
            ]
            if some:
                asked.append(some)
        return [self.answer(text) for text in texts]

    def answer(self, text):
        return AlignedText(self.change(text), [Link(unit, unit) for unit in units(text)])

    def count_subwords(self, texts):
        return [len(text.split()) for text in texts]


class Parrot(Shouter):
    def change(self, text):
        return text


def translated(document, model=None, language="en", case="keep"):
    if isinstance(document, str):
        document = read_document(document, "text", language)
    model = model or Shouter()
    return "".join(DocumentTranslator(model.model, language, case).translate(document.parts))


def test_each_sentence_is_translated_and_spaces_are_kept():
    model = Shouter()
    text = " A dog.  It sleeps. \r\n\n\tA cat. A dog.\nlast"
    assert translated(text, model) == text.upper()
    assert model.plain == [["A dog.", "It sleeps.", "A cat.", "last"]], "equal sentences once"
    assert model.aligned == []


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "\n", "\r\n \n", "\ufeff", "https://a.b/c {x}\n5: %s\n"),
        "---\n12:30 - 1.\n* * *\n-\n$5.00 🙂?!\n2) 3) > ",
    ],
)
def test_without_language_nothing_is_translated(text):
    model = Shouter()
    assert translated(text, model) == text and model.plain == []


def test_signs_before_items_and_emoji_stay():
    model = Shouter()
    text = "- a dog.\n> 2) it sleeps. 12. -\n>> 🐶 it 🙂\n1. a cat.\n"
    assert translated(text, model) == text.upper()
    assert model.plain == [["a dog.", "it sleeps.", "it", "a cat."]]


def test_strange_characters_go_through():
    text = "\0a\0. \ud800 b\u2028c. \ufeff d\n" + "z" * 1000
    upper = "A. \ud800 B C. D\n" + "Z" * 1000
    assert translated(text) == upper
    assert translated("\ufeff" + text) == "\ufeff" + upper
    assert translated(text, Parrot()) == text


@pytest.mark.parametrize(
    "text",
    [
        "A\u00a0dog  runs.",
        "A\tdog \u202f runs.",
        "A dog\u2028runs.",
        "A d\u00adog r\u200bu\u2060ns.",
        "\ufeff A dog\x00 runs\u00ad.",
    ],
)
def test_a_model_is_given_plain_spaces_and_nothing_unseen(text):
    model = Shouter()
    assert translated(text, model).endswith("A DOG RUNS.")
    assert model.plain == [["A dog runs."]]
    assert MarkedSentence([text]).model_text == "A dog runs."


def test_marks_come_beside_their_words_where_spaces_are_not_plain():
    page = read_document("<p>A\u00a0\u00a0<b>d\u00adog</b>\u00a0 runs.</p>", "html", "en")
    assert with_words_reversed(page) == "<p>. RUNS <b>DOG</b> A</p>"


def test_placeholders_stay_in_their_places():
    text = "See https://a.b/c?d=e. Then {name} sleeps, %s too. Write to a@b.de now"
    wanted = "SEE https://a.b/c?d=e. THEN {name} SLEEPS, %s TOO. WRITE TO a@b.de NOW"
    model = Shouter()
    assert translated(text, model) == wanted
    assert model.aligned == [["See.", "Then sleeps, too.", "Write to now"]]


def segment(written):
    """Makes a segment from text with "<b>", "</b>" and "~", a line break that replaces a space."""
    pieces = pieces_of(written, "\n> ", re.compile("(</?b>|</?i>|~)"))
    return Segment(written.replace("~", "\n> "), pieces)


@pytest.mark.parametrize(
    "written",
    [
        "A <b>red</b> dog. A cat.",
        "<b>A dog. A</b> cat. One.",
        "A <b>dog. <i>It</i> sleeps. A</b> cat.",
        "<b><i>A dog.</i> A cat.</b>",
        "A dog.<b></b> A cat.<i> It</i> is.",
        "<b>A dog.</b> <b>A cat.</b>",
        "A~dog.~A <b>cat~is</b>~here.",
        "<b> A dog. </b><i>A</i> cat.",
    ],
)
def test_elements_may_go_on_in_the_next_sentence(written):
    shouted = written.upper().replace("B>", "b>").replace("I>", "i>").replace("~", "\n> ")
    assert translated(Document((segment(written),))) == shouted
    model = Parrot()
    assert translated(Document((segment(written),)), model) == segment(written).source


def test_only_what_alignment_helps_is_aligned():
    model = Shouter()
    parts = tuple(map(segment, ["One~line.", "A <b>dog</b>.", "A dog."]))
    translated(Document(parts), model)
    assert model.aligned == [["A dog."]] and model.plain == [["One line."]], "equal ones once"


def test_text_is_written_as_the_format_writes_it():
    escape = {"<": "&lt;", "Ä": "&Auml;"}

    def written(text):
        return "".join(escape.get(character, character) for character in text)

    source = "a &#60; <code>x&lt;</code> &auml;. ok"
    code = Mark("<code>x&lt;</code>", text="x")
    part = Segment(source, ["a < ", code, " ä. ok"], writing_with(written))
    assert translated(Document((part,))) == "A &lt; <code>x&lt;</code> &Auml;. OK"
    assert translated(Document((part,)), Parrot()) == source, "unchanged, as it was"


def test_long_sentences_are_cut_and_joined():
    model = Shouter(limit=4)
    text = "one two three, four five; six seven eight {x} nine. Ten."
    assert translated(text, model) == text.upper().replace("{X}", "{x}")
    (given,) = model.plain
    assert max(len(part.split()) for part in given) <= 4 and "one two three," in given


def test_sentences_of_chinese_have_spaces_between_them_in_another_script():
    class English(Shouter):
        def change(self, text):
            return f"Sentence {len(text)}."

    assert translated("狗睡觉。猫来了了。", English(), "zh") == "Sentence 4. Sentence 5."
    assert translated("狗睡觉。 猫来了了。", English(), "zh") == "Sentence 4. Sentence 5."
    assert translated("狗睡觉。猫来了了。", Parrot(), "zh") == "狗睡觉。猫来了了。"


def test_a_line_break_of_a_model_is_no_line_break_of_the_document():
    class Breaker(Shouter):
        def change(self, text):
            return "a\r\nb"

    assert translated("One.\nTwo.", Breaker()) == "a  b\na  b"


def test_a_sentence_whose_translation_is_empty_stays():
    class Silent(Shouter):
        def change(self, text):
            return "" if text.startswith("without") else text.upper()

    assert translated("without. A dog.\n\nwithout %s", Silent()) == "without. A DOG.\n\nwithout %s"


def test_capitals_and_titles():
    class Lower(Shouter):
        def change(self, text):
            return text.replace("dog", "Hund").replace("sleep", "schläf")

    model = Lower()
    assert (
        translated("THE {x} DOG SLEEPS. A dog!", model, case="auto")
        == "THE {x} HUND SCHLÄFS. A Hund!"
    )
    assert model.aligned == [["The dog sleeps."]]
    assert translated("THE CAT. A cat.", model, case="auto") == "THE CAT. A cat.", "unchanged"
    title = "Young Dogs Sleep In Small Houses"
    assert translated(title, model, case="auto") == "Young Hunds schläf in small houses"
    assert translated(title, model, case="keep") == title
    with refused("case", "'lower'"):
        translated("a", case="lower")


def test_chunks_hold_a_bounded_number_of_sentences(monkeypatch):
    monkeypatch.setattr(translation, "CHUNK_SENTENCES", 10)
    model, read = Shouter(), []

    def parts():
        for number in range(50):
            read.append(number)
            yield Segment(f"a {number}. b.", [f"a {number}. b."])

    found = DocumentTranslator(model.model, "en").translate(parts())
    assert next(found) == "A 0. B." and len(read) == 5
    assert len(list(found)) == 49
    assert max(map(len, model.plain)) <= 10
    # A single paragraph of many sentences is translated in parts, too.
    model = Shouter()
    text = " ".join(f"A {number}." for number in range(95))
    assert translated(text, model) == text.upper()
    assert [len(texts) for texts in model.plain] == [10] * 9 + [5]


@pytest.mark.parametrize("count", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_any_marks_come_back_once(count):
    generator = random.Random(1)

    def inner(depth=0):
        parts = []
        for _ in range(generator.randint(1, 6)):
            choice = generator.randint(0, 5)
            if choice < 3:
                parts.append(generator.choice(["a dog. ", "A", " {x} ", "B? ", "big", "。"]))
            elif choice == 3:
                parts.append("~")
            elif depth < 3:
                parts.append(f"<b>{inner(depth + 1)}</b>")
        return "".join(parts)

    class Random(Shouter):
        def change(self, text):
            words = [
                generator.choice(["x", "yy", ".", "狗"]) for _ in range(generator.randint(0, 9))
            ]
            return generator.choice(["", " "]).join(words)

        def answer(self, text):
            return AlignedText(self.change(text))

    for _ in range(count):
        part = segment(inner())
        found = translated(Document((part,)), Random(limit=3))
        for source in ("<b>", "</b>", "{x}", "\n> "):
            assert found.count(source) == part.source.count(source), part.source
        depth = 0
        for tag in found.replace("</b>", "|-|").replace("<b>", "|+|").split("|"):
            depth += {"+": 1, "-": -1}.get(tag, 0)
            assert depth >= 0
        assert translated(Document((part,)), Parrot(limit=3)) == part.source


@pytest.mark.parametrize("limit", [50, 2])
def test_a_mark_that_reads_as_spaces_is_within_one_sentence(limit):
    first = Mark("<a>", text="\u00a0x")
    second, third = Mark("<b>", text=" \u00a0. "), Mark("<c>", text=" y\u00a0\u00a0")
    part = Segment("-", [first, " a dog.", second, "A cat", third, "."])
    found = translated(Document((part,)), Shouter(limit))
    assert found == "<a> A DOG.<b>A CAT<c>."


def test_a_space_beside_two_marks_is_left_out_once():
    x, break_tag = Mark("{x}", text="x"), Mark("<br>")
    opening, closing = Mark("<i>", MarkKind.OPEN), Mark("</i>", MarkKind.CLOSE)
    for mark in (break_tag, Mark("{y}", text=" y")):
        sentence = MarkedSentence([x, opening, mark, " dog", closing])
        assert sentence.model_text == "dog" and sentence.root.elements[0].span == (0, 3)


def test_sentences_are_told_with_their_places():
    text = "\ufeff A 😀 dog.  It sleeps: www.example.org/a.b\r\n\n\t这是狗。它睡。\n12 \n"
    document = read_document(text, "text", "zh")
    translator = DocumentTranslator(Shouter().model, "zh", "keep")
    whole, sentences = translator.translate_sentences(document.parts)
    assert whole == "".join(
        DocumentTranslator(Shouter().model, "zh", "keep").translate(document.parts)
    )
    assert [sentence.source for sentence in sentences] == [
        *("A 😀 dog.", "It sleeps: www.example.org/a.b", "这是狗。", "它睡。", "12")
    ]
    for sentence in sentences:
        assert whole[sentence.start : sentence.end] == sentence.translation
        shouted = sentence.source.upper().replace("WWW.EXAMPLE.ORG/A.B", "www.example.org/a.b")
        assert sentence.translation == shouted
    assert DocumentTranslator(Parrot().model, "zh").translate_sentences(document.parts)[0] == text
