import itertools
import random
import sys
import time
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from keras_transformer.kit.documents.formats import read_document
from keras_transformer.kit.documents.text.markdown import read
from keras_transformer.kit.documents.tree.segments import Segment
from tests.kit.documents.doubles import capitals, with_words_reversed, written
from tests.kit.documents.trees import marks_in
from tests.refusals import refused

ROOT = Path(__file__).resolve().parents[3]
GUIDES = ROOT / "docs" / "guides"


def parts_of(text):
    """Returns a document's parts, with only the texts of segments."""
    document = read(text, "en")
    assert document.source == text
    return [part.text if isinstance(part, Segment) else (part,) for part in document.parts]


def segment_of(text):
    (segment,) = read(text, "en").segments
    return segment


def marks_of(text):
    segment = segment_of(text)
    return segment.text, [(mark.source, mark.start, mark.end) for mark in marks_in(segment)]


def structure(text):
    """Parses a document with a CommonMark parser: blocks and their content, text in capitals."""
    parser = MarkdownIt("commonmark", {"maxNesting": 40}).enable(["table", "strikethrough"])
    found, words = [], []

    def add(item):
        if "".join(words).strip():
            found.append(("text", " ".join(capitals("".join(words)).split())))
        words.clear()
        found.append(item)

    def add_inline(tokens):
        for token in tokens:
            if token.type in ("text", "text_special"):
                words.append(token.content)
            elif token.type in ("softbreak", "hardbreak"):
                words.append(" ")
            else:
                attributes = {name: value for name, value in token.attrs.items() if name != "alt"}
                is_text = token.type == "image"
                add((token.type, token.tag, str(attributes), "" if is_text else token.content))
                add_inline(token.children or [])

    for token in parser.parse(text):
        if token.type == "inline":
            add_inline(token.children)
        elif token.type != "html_block":
            add((token.type, token.tag, token.markup, token.content))
    return found


def without_text(found):
    """Drops text from a structure, and sorts each block so that order does not matter."""
    blocks = [[]]
    for item in found:
        is_block = item[0].startswith(("paragraph", "heading", "th", "td", "list", "tr", "table"))
        if is_block:
            blocks.append([])
        if item[0] != "text":
            blocks[-1].append(item)
    return [sorted(block) for block in blocks]


def with_emphasis(found):
    """Replaces HTML tags for emphasis in a structure by the emphasis they stand for."""
    result = []
    for item in found:
        name = item[-1].strip("</>") if item[0] == "html_inline" else None
        if name in ("em", "strong", "s"):
            kind = "close" if item[-1].startswith("</") else "open"
            item = (f"{name}_{kind}", name, "{}", "")
        result.append(item)
    return result


def test_blocks_are_segments_and_what_is_around_them_stays():
    text = """\
---
title: A dog
---

# A heading #

Paragraph
: of two lines.

> - In a list
>   and a quote
>
> 1. One

Underlined
==========

| Head | Other \\| one |
|------|:------------|
| cell |              | more |

    code

```
more code
```

***

[name]: https://example.com "Title"
"""
    assert parts_of(text) == [
        ("---\ntitle: A dog\n---\n\n# ",),
        "A heading",
        (" #\n\n",),
        "Paragraph : of two lines.",
        ("\n\n> - ",),
        "In a list and a quote",
        ("\n>\n> 1. ",),
        "One",
        ("\n\n",),
        "Underlined",
        ("\n==========\n\n| ",),
        "Head",
        (" | ",),
        "Other | one",
        (" |\n|------|:------------|\n| ",),
        "cell",
        (text[text.index(" |              |") :],),
    ]


def test_what_is_in_a_paragraph_is_a_mark():
    assert marks_of("> A *dog* [and\n> a **cat**](u 'T') `x` <b>&amp;</b>\\!") == (
        "A dog and a cat x &!",
        [
            *[("*", 2, 2), ("*", 5, 5), ("[", 6, 6), ("\n> ", 9, 10), ("**", 12, 12)],
            *[("**", 15, 15), ("](u 'T')", 15, 15), ("`x`", 16, 17), ("<b>", 18, 18)],
            ("</b>", 19, 19),
        ],
    )
    assert marks_of("See <https://a.b>,\\\n~~or~~ https://c.d/_e_f.") == (
        "See https://a.b, or https://c.d/_e_f.",
        [
            *[("<https://a.b>", 4, 15), ("\\\n", 16, 17), ("~~", 17, 17), ("~~", 19, 19)],
            ("https://c.d/_e_f", 20, 36),
        ],
    )
    assert marks_of("Press <kbd>Ctrl *</kbd> <br> <i class='x'></i>here") == (
        "Press Ctrl * here",
        [("<kbd>Ctrl *</kbd>", 6, 12), (" <br> ", 12, 13), ("<i class='x'></i>", 13, 13)],
    )


def test_what_is_around_all_of_the_text_is_outside_of_the_segment():
    text = "- [x] [**A dog**](url) ![](dog.png)\n- `code` [`more`](url)\n"
    assert parts_of(text) == [("- [x] [**",), "A dog", ("**](url) ![](dog.png)\n" + text[36:],)]


def test_alternative_texts_are_segments_of_their_own():
    document = read("See ![a *red* dog](dog.png 'Title') here. ![ref]\n\n[ref]: x", "en")
    assert [segment.text for segment in document.segments] == ["See here.", "a red dog"]
    wanted = "SEE ![A *RED* DOG](dog.png 'Title') HERE. ![ref]\n\n[ref]: x"
    assert written(document.parts, capitals) == wanted


@pytest.mark.parametrize(
    "link", ["[The Dog]", "[The Dog][]", "[The Dog][the  dog]", "[The\n> Dog]"]
)
def test_links_that_are_named_by_their_text_keep_their_target(link):
    text = f"> A {link}, [no link]\n\n[the dog]: https://a.b\n"
    result = written(read(text, "en").parts, capitals)
    assert structure(result) == structure(text) and "[NO LINK]" in result
    assert written(read("[The Dog]\n\n[the dog]: u", "en").parts, capitals).startswith(
        "[THE DOG][The Dog]\n"
    )


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("A dog[^1] sleeps.", "[^1]"),
        ("[^1]: A note.", "[^1]: "),
        ("> [!NOTE]\n> A dog.", "> [!NOTE]\n> "),
        ("- [ ] A task.", "- [ ] "),
        ("## A dog {#dog .x}", " {#dog .x}"),
        ("A $x_1 + y_1$ formula", "$x_1 + y_1$"),
        ("A {{ _name_ }} here", "{{ _name_ }}"),
        ("{% if x %} A dog", "{% if x %} "),
        ("::: warning *now*\nA dog.\n:::", "::: warning *now*\n"),
        ("See [[Wiki Link]] now", "[[Wiki Link]]"),
        ("A dog :smile: sleeps", ":smile:"),
        ("import Box from '../box'\n\nA dog.", "import Box from '../box'"),
        ("export const x = {y: 'z'}\n\nA dog.", "export const x = {y: 'z'}"),
        ('!!! note "A *note*"\nA dog.', '!!! note "A *note*"\n'),
    ],
)
def test_what_tools_add_to_markdown_stays(text, kept):
    result = written(read(text, "en").parts, capitals)
    assert kept in result
    assert result.replace(kept, "") == capitals(text.replace(kept, ""))


def test_signs_of_notes_and_exponents_in_html_stay_at_their_words():
    text = "A cat<sup>1</sup> *runs*.<sup><a>[2]</a></sup> Stop 9 m<sup>2</sup>\n"
    (segment,) = read(text, "en").segments
    assert segment.text == "A cat1 runs. Stop 9 m2"
    assert [mark.source for mark in marks_in(segment)] == [
        *["<sup>1</sup>", "*", "*", "<sup><a>[2]</a></sup>", "<sup>2</sup>"]
    ]


def test_html_blocks_are_read_as_html():
    text = '<details>\n  <summary>A <b>dog</b></summary>\n\n- x\n  <p title="Hi">*y*</p>\n'
    assert parts_of(text) == [
        ("<details>\n  <summary>",),
        "A dog",
        ("</summary>\n\n- ",),
        "x",
        ('\n  <p title="',),
        "Hi",
        ('">',),
        "*y*",
        ("</p>\n",),
    ]
    quoted = "> <p>\n> text\n> </p>"
    assert parts_of(quoted) == [(quoted,)]


HOSTILE = [
    *["* a", "# x", "1. y", "1) y", "a_b_c", "_a_", "<b>", "[x](y)", "`", "``a``", "a\\", "\\*"],
    *["- a", "+ a", "> a", "---", "===", "***", "a *b* c", "a**b**", "~~a~~", "![a](b)", "&amp;"],
    *["&#38;", "| a | b |", "|--|", "<https://a.b>", "<!-- a -->", "[a]: b", "[ref]", "[^1]"],
    *["[x] a", "[!NOTE]", "a #", "C#", "    a", "a\n\nb", "\ta", "2 * 3 * 4", "5 < 6 > 4", "~a~"],
    *["```", "~~~", "<div>", "<x", "a]", "[a", "(a)", "a  b", "\\", "\\\\", "1.", "-", "#", ">"],
    *["=", ":-:", "a|b", "wow!", "snake_case __init__", "{{x}}", "$5 and $6", "AT&T", "R&D;"],
]


def kinds(found):
    """Returns the kinds of a structure's items, except text."""
    return [item[0] for item in found if item[0] != "text"]


@pytest.mark.parametrize(
    "template", ["word", "> - word", "# word", "| a |\n|--|\n| word |", "[word](u)", "*word*, x"]
)
def test_translated_text_reads_as_it_is(template):
    source = f"{template}\n\n[ref]: x"
    wanted = kinds(structure(source))
    (place,) = [each for each in read(source, "en").segments if "word" in each.text]
    for text in HOSTILE:
        marks = [each.mark for each in marks_in(place)]
        pieces = [marks[0], text, marks[1], ", x"] if marks else [text]
        found = with_emphasis(structure(source.replace(place.source, place.write(pieces))))
        assert ("text", " ".join(capitals(text).split())) in found, text
        assert kinds(found) == wanted, text


def test_signs_mean_something_only_beside_each_other():
    def result(text, *pieces):
        marks = (each.mark for each in marks_in(segment_of(text)))
        found = [next(marks) if piece is None else piece for piece in pieces]
        return segment_of(text).write(found)

    # A link after an exclamation mark does not become an image.
    assert result("a [b](u)", "Wow!", None, "b", None) == "Wow\\![b](u)"
    # Emphasis that CommonMark would not recognize is written as tags.
    assert result("a **b** c", "x", None, "b.", None, "c") == "x<strong>b.</strong>c"
    assert result("a _b_ c", "x", None, "b", None, " c") == "x<em>b</em> c"
    # Adjacent code spans remain two.
    assert result("`a` b `c` d", None, None, " b") == "`a` `c` b"
    # Line breaks at the ends, or two in a row, would end the paragraph.
    assert result("> a\n> b\n> c", None, "b", None, "c") == "b\n> c"
    assert result("> a\n> b\n> c", "a", None, " ", None, "c") == "a\n>  c"
    assert result("> a\n> b\n> c", "a", None, "b", None) == "a\n> b"
    # Text that could begin a block does so only at the beginning of a line.
    assert result("a `b` c\nd", "a ", None, "- c", None, "- d") == "a `b`- c\n\\- d"


def test_without_the_parser_an_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    monkeypatch.delitem(sys.modules, "keras_transformer.kit.documents.text.markdown")
    with refused("format", "markdown: ", about="[documents]"):
        read_document("text", "markdown", "en")


@pytest.mark.parametrize("text", ["", "\n", " \t\n", "---\n---\n", "---\nx: y", "\ufeff", "```\nx"])
def test_without_language_there_are_no_segments(text):
    document = read(text, "en")
    assert document.source == text and len(document.segments) == text.count("y")


def test_line_ends_and_strange_characters_stay():
    text = "\ufeff---\r\na: b\r\n---\r\nA \0 *dog*\rand\r\n\x0c a\u2028 cat.\r\n\r\n# x\ud800y\n"
    document = read(text, "en")
    assert document.source == text
    assert [segment.text for segment in document.segments][1:] == ["x\ud800y"]
    assert "\r\n---\r\nA \ufffd *DOG*\rAND\r\n\x0c A\u2028 CAT.\r\n\r\n# X" in written(
        document.parts, capitals
    )


@pytest.mark.parametrize("length", [1_000, pytest.param(8_000, marks=pytest.mark.slow)])
def test_deep_and_long_documents_are_read_in_time_in_proportion(length):
    started = time.process_time()
    longs = ["*a* ", "[a](b) ", "[", "`" * 3 + " ", "<b>", "![", "**a ", "[a\n", "$a", "\\", "[^"]
    texts = [long * (length // len(long)) for long in longs]
    texts += ["> " * 1000 + "x", "- " * 1000 + "x", "word " * length, "| a " * 1000 + "\n|-"]
    texts += ["| a |\n|--|\n| " + "word \\| " * length]
    for text in texts:
        assert read(text, "en").source == text
    deep = "".join("  " * depth + "- x\n" for depth in range(19))
    assert len(read(deep, "en").segments) == 19
    assert time.process_time() - started < 60


# Emphasis with only one end inside an element is not always kept, so <kbd> contains none here.
WORDS = [
    *["alpha", "über", "1.", "-", "note:", "a_b", "R&D", "2 * 3", "*", "foo.", "(bar)", "&amp;"],
    *["\\*", "&lt;b&gt;", "a|b", "https://a.b/c_d_", "wow!", "#", "=", "[a]", "~5", "{{n}}", "é"],
]
MARKED = [
    *["**{}**", "*{}*", "_{}_", "~~{}~~", "[{}](u 't')", "![{}](i.png)", "<b>{}</b>", "`{}`"],
    *[
        "[{}][ref]",
        "<kbd>**Ctrl** \\*</kbd>",
        "<i>{}",
        "{}  \n",
        "{}\\\n",
        "{}\n",
        "{}<br>",
        "<https://x.y>{}",
    ],
]


def phrase(random_, depth=0):
    pieces = []
    for _ in range(random_.randint(1, 4)):
        if random_.random() < 0.6 or depth > 2:
            pieces.append(random_.choice(WORDS))
        else:
            pieces.append(random_.choice(MARKED).format(phrase(random_, depth + 1)))
    return random_.choice([" ", " ", "  ", ""]).join(pieces)


def line(random_):
    return phrase(random_).replace("\n", " ")


def block(random_, depth=0):
    kind = random_.randrange(8 if depth < 3 else 4)
    if kind < 2:
        return phrase(random_)
    if kind == 2:
        return "#" * random_.randint(1, 6) + " " + line(random_)
    if kind == 3:
        return random_.choice(["```\ncode *x*\n```", "    code", "***", "<div>\n<p>x</p>\n</div>"])
    if kind == 4:
        cells = [line(random_).replace("|", "\\|") for _ in range(4)]
        return "| {} | {} |\n|--|--|\n| {} | {}".format(*cells)
    if kind == 5:
        return "\n".join(f"> {text}" for text in blocks(random_, depth + 1).split("\n"))
    mark = random_.choice(["- ", "* ", "1. ", "10) "])
    return mark + blocks(random_, depth + 1).replace("\n", "\n" + " " * len(mark))


def blocks(random_, depth=0):
    return "\n\n".join(block(random_, depth) for _ in range(random_.randint(1, 3)))


@pytest.mark.parametrize("count", [25, pytest.param(250, marks=pytest.mark.slow)])
def test_generated_documents_keep_their_structure(count):
    random_ = random.Random(4)
    for _ in range(count):
        text = blocks(random_) + "\n\n[ref]: https://a.b\n"
        document = read(text, "en")
        assert document.source == text
        wanted = with_emphasis(structure(text))
        for change in (str, capitals):
            assert with_emphasis(structure(written(document.parts, change))) == wanted


# Characters that str.isspace, CommonMark or other programs treat as spaces.
UNICODE_SPACES = [chr(code) for code in range(0x3001) if chr(code).isspace()]
UNICODE_SPACES = [space for space in UNICODE_SPACES if space not in "\t\r\n"] + ["\u200b", "\ufeff"]


TEMPLATES = [
    *["{}", "before\n\n{}\n\nafter", "# {}", "### {} ###", "{}\n===", "{}\n---\n"],
    *["- {}", "10) {}\n    {}", "> {}\n> {}", "> - {}\n>   {}\n\n{}"],
    *["| {} | b |\n|--|--|\n| {} | {} |", "|{}|{}|\n|--|--|\n|{}|{}|\n{}"],
]
SPACED = [
    "_the old dog sleeps. It **snores** loudly._",
    "_ _*the* old_dog _",
    " _a_**b**_*_c",
    "**_a**b_~~c~~_",
]


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_all_spaces_of_unicode_may_be_at_edges_and_within(step):
    """Tries each content in each template, with every `step`-th space."""
    for number, (template, content) in enumerate(itertools.product(TEMPLATES, SPACED)):
        for space in UNICODE_SPACES[number % step :: step]:
            text = template.replace("{}", content.replace("_", space))
            document = read(text, "en")
            assert document.source == text
            assert written(document.parts, capitals).replace("\\", "") == text.upper()
            assert with_words_reversed(document) != text


@pytest.mark.parametrize("space", ["\v", "\f", "\u00a0", "\u3000"], ids=ascii)
def test_lines_of_spaces_of_unicode_may_begin_and_end_a_paragraph(space):
    for text in (f"{space}\n{space}{space}\nan *old* dog\n{space}", f"> {space}\n> an *old* dog"):
        document = read(text, "en")
        assert document.source == text
        assert written(document.parts, capitals) == text.upper()
        assert [segment.text.strip() for segment in document.segments] == ["an old dog"]


def test_emphasis_within_what_stays_does_not_make_tags_of_other_emphasis():
    document = read("*a* <code>*b*</code> c", "en")
    assert with_words_reversed(document) == "<code>*b*</code> C *A*"


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_signs_at_random_keep_their_structure(count):
    random_ = random.Random(1)
    signs = "*_[]()`<>#-+=|~!&\\ \t\n1.ab\"':/{^\0"
    for _ in range(count):
        choices = [random_.choice(signs), random_.choice(UNICODE_SPACES), "b c"]
        text = "".join(random_.choice(choices) for _ in range(30))
        text = text.replace("\n", random_.choice(["\n", "\r\n"]))
        document = read(text, "en")
        assert document.source == text
        assert with_emphasis(structure(written(document.parts, str))) == with_emphasis(
            structure(text)
        )


@pytest.mark.parametrize("pattern", ["documents.md", pytest.param("*.md", marks=pytest.mark.slow)])
def test_our_own_pages(pattern):
    formats = ROOT / "docs" / "reference" / "formats.md"
    for path in [ROOT / "README.md", formats, *sorted(GUIDES.glob(pattern))]:
        text = path.read_text(encoding="utf-8")
        document = read(text, "en")
        assert document.source == text
        assert structure(written(document.parts, capitals)) == structure(text), path.name
        turned = with_words_reversed(document)
        assert turned != text, path.name
        assert without_text(structure(turned)) == without_text(structure(text)), path.name


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_pages_of_others(corpora, language):
    paths = sorted((corpora / "documents" / "markdown" / language).glob("*.md"))
    assert len(paths) >= 59
    for path in paths:
        text = path.read_text(encoding="utf-8")
        document = read(text, language)
        assert document.source == text and document.segments, path.name
        turned = with_words_reversed(document)
        assert without_text(structure(turned)) == without_text(structure(text)), path.name
