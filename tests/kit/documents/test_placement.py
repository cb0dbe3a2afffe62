"""Places of marks in translations. Sentences are written with their marks.

<b> and </b> are a pair, and so are <f> and </f>, which are formatting. {x} stands for words, !x!
for nothing, and ~ is a line break that replaces a space. Alignments between words and punctuation
marks are in the Pharaoh format.
"""

import random

import pytest

from keras_transformer.kit.documents.text.html import read
from keras_transformer.kit.documents.tree.alignment import units
from keras_transformer.kit.documents.tree.marked import MarkedSentence
from keras_transformer.kit.documents.tree.placement import place
from keras_transformer.kit.documents.tree.segments import Mark, MarkKind
from keras_transformer.use.translate.answers import Link
from tests.kit.documents.doubles import with_words_reversed
from tests.kit.documents.trees import pieces_of


def marked(written):
    return MarkedSentence(pieces_of(written))


def written(pieces):
    return "".join(piece.source if isinstance(piece, Mark) else piece for piece in pieces)


def placed(source, translation, pharaoh=""):
    sentence = marked(source)
    sources, targets = units(sentence.model_text), units(translation)
    pairs = [map(int, pair.split("-")) for pair in pharaoh.split()]
    return written(place(sentence, translation, [Link(sources[i], targets[j]) for i, j in pairs]))


@pytest.mark.parametrize(
    "source, model_text",
    [
        ("See the {list} and~<b>press</b> Enter.", "See the and press Enter."),
        ("Press {key}.", "Press."),
        ("{x} likes {y}!", "likes!"),
        ("{name}, please wait.", "please wait."),
        ("Use {a}, {b} and {c} (or ({d})) now", "Use and (or) now"),
        ("see {a}/{b} ({c})", "see"),
        ("a~{x}~b {y}~c~{z} d", "a b c d"),
        ("a <b>{x}</b> b <i></i>c", "a b c"),
        ("Is <b>it</b><i>?</i>", "Is it?"),
        ("voir {x} !", "voir !"),
        ("a!x!b c", "ab c"),
        ("{x}", ""),
    ],
)
def test_what_a_model_is_given(source, model_text):
    sentence = marked(source)
    assert sentence.model_text == model_text
    assert sentence.root.span == (0, len(model_text))
    assert written(sentence.pieces) == source


def test_numbers_and_punctuation_are_no_language():
    assert not marked("{x} 3.5 {y}!").has_language and marked("{x} a {y}!").has_language
    assert not marked("3.5").has_language and not marked(" ").has_language
    assert marked("日").has_language


@pytest.mark.parametrize("source", ["A <b>red {x}~dog</b>.", "a </b>b <i>c", "{x} {y}", ""])
def test_an_unchanged_sentence_keeps_its_marks(source):
    assert placed(source, marked(source).model_text) == source


@pytest.mark.parametrize(
    "source, translation, pharaoh, expected",
    [
        # Elements.
        ("The <b>dog</b> sleeps.", "Der Hund schläft.", "1-1", "Der <b>Hund</b> schläft."),
        ("<b>A dog.</b>", "Ein Hund.", "0-0", "<b>Ein Hund.</b>"),
        (
            "A <a>dog</a> and a <b>cat</b>.",
            "Eine Katze und ein Hund.",
            "3-0 4-1 2-2 0-3 1-4 5-5",
            "Eine <b>Katze</b> und ein <a>Hund</a>.",
        ),
        (
            "a <b>very <i>big</i> dog</b> here",
            "hier ein Hund, sehr groß",
            "4-0 0-1 3-2 3-3 1-4 2-5",
            "hier ein <b>Hund, sehr <i>groß</i></b>",
        ),
        # A word between two words of an element joins it if most words there are the element's.
        (
            "<b>not a big</b> dog",
            "kein so großer Hund",
            "0-0 2-2 3-3",
            "<b>kein so großer</b> Hund",
        ),
        # Each element keeps a unit if there are enough, otherwise only its pair of marks.
        ("<b>x</b> <i>y</i>", "A B", "", "<b>A</b> <i>B</i>"),
        ("<b>x</b> <i>y</i>", "A", "", "<b>A</b><i></i>"),
        # An element with words does not end up around only punctuation.
        ("See the <a>manual</a>.", "Siehe das.", "0-0 2-2", "Siehe <a>das</a>."),
        ("Why <b>not</b> ?", "Wieso ?", "0-0 1-1", "<b>Wieso</b> ?"),
        ("A dog <b>!</b>", "Ein Hund !", "2-2", "Ein Hund <b>!</b>"),
        ("A dog<b>,</b> it", "Ein Hund, es", "0-0 1-1 3-3", "Ein Hund<b>,</b> es"),
        # An element whose words share their translation with other words.
        (
            "Now an <b>old</b> boy sleeps",
            "Nun schläft der Greis",
            "0-0 1-2 2-3 3-3 4-1",
            "Nun schläft der <b>Greis</b>",
        ),
        # Formatting whose words have no translation is dropped, but not what is in it.
        ("It does <f>not</f> go", "Es geht", "0-0 3-1", "Es geht"),
        ("It does <b>not</b> go", "Es geht", "0-0 3-1", "Es <b>geht</b>"),
        ("Go <f>now</f>.", "Gehe.", "0-0 1-1 2-1", "Gehe."),
        ("Go<f>,</f> now", "Gehe jetzt", "0-0 2-1", "Gehe jetzt"),
        ("It <f>does {x} not</f> go", "Es geht", "0-0 3-1", "Es {x} geht"),
        ("It <f>does~not</f> go", "Es geht", "0-0 3-1", "Es~geht"),
        ("It <f>does <b>not</b></f> go", "Es geht", "0-0 3-1", "Es <b>geht</b>"),
        ("It <b>does <f>not</f></b> go", "Es geht so", "0-0 3-1 1-2", "Es geht <b>so</b>"),
        ("<f>Get</f> it <f>up</f>", "Hole es", "0-0 1-1 2-0", "<f>Hole</f> es"),
        ("<f>x</f> y", "A B", "", "<f>A</f> B"),
        ("x <f>y", "A", "0-0", "A<f>"),
        # Elements that span several sentences.
        ("a</b> c <i>d", "A C D", "0-0 1-1 2-2", "A</b> C <i>D"),
        ("a c</b> d", "D A C", "0-1 1-2 2-0", "D A C</b>"),
        ("a <i>c d", "C A D", "0-1 1-0 2-2", "C A <i>D"),
        # Marks within words.
        ("un<b>believ</b>able", "unglaublich", "0-0", "<b>unglaublich</b>"),
        ("H<s>2</s>O is", "H2O ist", "0-0 1-1", "H<s>2</s>O ist"),
        ("H<s>2</s>O is H<s>2</s>O", "H2O ist H2O", "", "H<s>2</s>O ist H<s>2</s>O"),
        ("H<s>2</s>O is", "H2O ist H2O", "", "H<s>2</s>O ist H2O"),
        ("(<b>see</b>) it", "(siehe) es", "0-0 1-1 2-2 3-3", "(<b>siehe</b>) es"),
        # Insertions.
        ("See the {x} and go", "Siehe die und geh", "2-2", "Siehe die {x} und geh"),
        ("Open {x}.", "Öffnen.", "0-0 1-1", "Öffnen {x}."),
        ("word{x} next", "danach Wort", "0-1 1-0", "danach Wort{x}"),
        ("{x} is it", "es ist", "0-1 1-0", "{x} es ist"),
        ("{x}, see it", "siehe es", "", "{x}, siehe es"),
        ("{x}-like it", "-artig es", "", "{x}-artig es"),
        ("{x}s a", "s A", "0-0 1-1", "{x}s A"),
        ("it is {x}", "es ist", "", "es ist {x}"),
        ("a <b>{x} b</b>, c", "A B, C", "1-1 2-2", "A <b>{x} B</b>, C"),
        ("a {x} ({y}) b", "A B", "0-0 1-1", "A {x} ({y}) B"),
        ("a ({x} b) c", "A (B) C", "1-1 2-2 3-3 4-4", "A ({x} B) C"),
        ("a b !x!c", "C A B", "0-1 1-2 2-0", "!x!C A B"),
        ("a b <i></i>c", "C A B", "0-1 1-2 2-0", "<i></i>C A B"),
        ("a ({x}) b</b> c", "C B A", "0-2 1-1 2-0", "C ({x}) B A</b>"),
        ("x {1} y", "", "", "{1}"),
        # Punctuation beside an insertion, which the translation lacks or has.
        (
            "go to {x}, then rest",
            "gehe zu dann ruhe",
            "0-0 1-1 2-2 3-2 4-3",
            "gehe zu {x} dann ruhe",
        ),
        (
            "go to {x}, then rest",
            "gehe zu, dann ruhe",
            "0-0 1-1 2-2 3-3 4-4",
            "gehe zu {x}, dann ruhe",
        ),
        ("about {x}% of it", "etwa Prozent davon", "0-0 1-1 2-1 3-2", "etwa {x} Prozent davon"),
        ("it ({x} or b) is", "es oder b ist", "0-0 1-0 2-1 3-2 5-3", "es {x} oder b ist"),
        (
            "see a <b>cat</b>{x}?",
            "eine Katze sehen?",
            "0-2 1-0 2-1 3-3",
            "eine <b>Katze</b>{x} sehen?",
        ),
        (
            "see a cat!x!, it",
            "eine Katze sehen, es",
            "0-2 1-0 2-1 3-3 4-4",
            "eine Katze!x! sehen, es",
        ),
        ("it is 9 m{x}", "9 m ist es", "0-3 1-2 2-0 3-1", "9 m{x} ist es"),
        # Line breaks.
        ("one~two~three four", "eins zwei drei vier", "1-1 2-2", "eins~zwei~drei vier"),
        ("one~two three", "drei eins zwei", "0-1 1-2 2-0", "drei eins~zwei"),
        ("a~{x} b~{y}~c", "A B C", "0-0 1-1 2-2", "A~{x} B~{y}~C"),
        ("one~two~three", "eins zwei", "", "eins~zwei~"),
        # Scripts without spaces.
        ("the <b>red dog</b> sleeps", "红狗睡觉", "1-0 2-1 3-2 3-3", "<b>红狗</b>睡觉"),
        ("<b>红狗</b>睡觉", "red dog sleeps", "0-0 1-1 2-2", "<b>red dog</b> sleeps"),
        ("see~the {x} dog", "看狗", "0-0 2-1", "看~{x} 狗"),
    ],
)
def test_where_marks_come(source, translation, pharaoh, expected):
    assert placed(source, translation, pharaoh) == expected


def test_units_are_words_punctuation_marks_and_characters_of_scripts_without_spaces():
    def of(text):
        return [text[start:end] for start, end in units(text)]

    assert of("Don't go (now), über_all 3.5!") == [
        *("Don", "'", "t", "go", "(", "now", ")", ",", "über_all", "3", ".", "5", "!"),
    ]
    assert of("红狗 dog红") == ["红", "狗", "dog", "红"]
    assert of("हिन्दी é") == ["हिन्दी", "é"], "accents are of their words"
    assert of(" ") == []


def test_elements_may_be_nested_deeply():
    source = "<b>" * 50 + "a b" + "</b>" * 50
    assert placed(source, "C D") == source.replace("a b", "C D")
    source = "<b>" * 1000 + "a b" + "</b>" * 1000 + " c"
    found = with_words_reversed(read(source, "en"))
    assert found.startswith("C <b>") and found.endswith("</b>")
    assert found.count("<b>") == found.count("</b>") == 1000


def random_marked(generator, depth=0):
    parts = []
    for _ in range(generator.randint(0, 4)):
        kind = generator.choice(
            ["word", "word", "word", "pair", "whole", "nothing", "break", "mark"]
        )
        if kind == "word":
            parts.append(generator.choice(["dog ", "big", " a", "3", "红", "é"]))
        elif kind == "pair" and depth < 3:
            name = generator.choice("abf")
            parts.append(f"<{name}>{random_marked(generator, depth + 1)}</{name}>")
        elif kind == "mark":
            parts.append(generator.choice([".", ", ", "(", ")", '"', " - "]))
        else:
            parts.append({"whole": "{x}", "nothing": "!x!", "break": "~"}.get(kind, " "))
    return "".join(parts)


@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_all_marks_come_back_nested_and_the_translation_is_whole(count):
    generator = random.Random(1)
    for _ in range(count):
        source = random_marked(generator)
        if generator.random() < 0.3:  # elements span several sentences
            source = random_marked(generator) + "</b>" + source + "<i>" + random_marked(generator)
        sentence = marked(source)
        words = ["Hund", "ein", ".", ",", " ", "  ", "(", ")", "狗", "dog", "3"]
        translation = "".join(generator.choices(words, k=generator.randint(0, 9)))
        sources, targets = units(sentence.model_text), units(translation)
        links = []
        if sources and targets:
            count = generator.randint(0, 8)
            links = [
                Link(generator.choice(sources), generator.choice(targets)) for _ in range(count)
            ]
        pieces = place(sentence, translation, links)
        marks = [piece for piece in sentence.pieces if isinstance(piece, Mark)]
        found = [piece for piece in pieces if isinstance(piece, Mark)]
        if links:  # formatting may be dropped with its words
            marks = [mark for mark in marks if mark in found or mark.source not in ("<f>", "</f>")]
        assert sorted(map(id, found)) == sorted(map(id, marks)), source
        assert nesting(found) == nesting(marks), (source, written(pieces))
        elements = elements_of_breaks(found)
        for mark, around in elements_of_breaks(marks).items():
            assert around <= elements[mark], (source, written(pieces))
        if sentence.model_text == sentence.text:  # no mark stands for words
            texts = "".join(piece for piece in pieces if isinstance(piece, str))
            has_changed_spaces = "!" in source or "></" in source or "~" in source
            assert texts == translation or has_changed_spaces, source
            assert texts.replace(" ", "") == translation.replace(" ", ""), source


def nesting(marks):
    """Returns pairs (mark id, id of the element directly around it or None), and open elements.

    Line breaks are left out: they may move into another element.
    """
    stack, pairs = [], set()
    for mark in marks:
        around = id(stack[-1]) if stack else None
        if mark.kind is MarkKind.OPEN:
            pairs.add((id(mark), around))
            stack.append(mark)
        elif mark.kind is MarkKind.CLOSE:
            pairs.add((id(mark), around))
            del stack[-1:]
        elif mark.source != "~":
            pairs.add((id(mark), around))
    return pairs, [id(mark) for mark in stack]


def elements_of_breaks(marks):
    """Returns the elements around each line break, directly or not."""
    stack, found = [], {}
    for mark in marks:
        if mark.kind is MarkKind.OPEN:
            stack.append(id(mark))
        elif mark.kind is MarkKind.CLOSE:
            del stack[-1:]
        elif mark.source == "~":
            found[id(mark)] = set(stack)
    return found


def test_the_example_of_the_module():
    found = placed("<b>Press</b> {key} to begin.", "Zum Beginn drücken.", "0-2 1-0 2-1")
    assert found == "{key} Zum Beginn <b>drücken</b>."
