import random

import pytest

from keras_transformer.kit.documents.formats import FORMATS, read_document
from keras_transformer.kit.documents.tree.placeholders import (
    PLACEHOLDER,
    with_conversions,
    with_placeholders,
)
from keras_transformer.kit.documents.tree.segments import (
    Mark,
    MarkKind,
    Segment,
)
from tests.kit.documents.doubles import capitals, documents, in_place
from tests.kit.documents.trees import marks_in


def found(text):
    return [mark.mark.text for mark in marks_in(with_placeholders(Segment(text, [text])))]


@pytest.mark.parametrize(
    "text, placeholders",
    [
        (
            "See https://a.b/c_(d)?x=1&y=2. (http://x.y/z)!",
            ["https://a.b/c_(d)?x=1&y=2", "http://x.y/z"],
        ),
        (
            'Ask "ftp://a.b", www.example.com, or <https://q.r/s>.',
            ["ftp://a.b", "www.example.com", "https://q.r/s"],
        ),
        ("下载 https://x.y/z。", ["https://x.y/z"]),
        ("Write to a.b+c@d-e.co.uk, not to mailto:x@y.z.", ["a.b+c@d-e.co.uk", "mailto:x@y.z"]),
        (
            "Hello {{name}}, {{ a.b|c }} and {{{raw}}}, {% if x %}.",
            ["{{name}}", "{{ a.b|c }}", "{{{raw}}}", "{% if x %}"],
        ),
        ("Line {0} of {name} has {x:.2f} or {}.", ["{0}", "{name}", "{x:.2f}", "{}"]),
        ("On {day, date, long} at ${HOME}.", ["{day, date, long}", "${HOME}"]),
        (
            "You have {count, plural, =0 {no file} one {# file} other {# files of {name}}} here.",
            ["{count, plural, =0 {no file} one {# file} other {# files of {name}}}"],
        ),
        (
            "{who, select, her {{n, plural, other {its {a}}}} other {{x}}} or {n, plural, one {a}",
            ["{who, select, her {{n, plural, other {its {a}}}} other {{x}}}", "{a}"],
        ),
        (
            "%(count)d files, %s and %1$s, %5.2f%% of %@.",
            ["%(count)d", "%s", "%1$s", "%5.2f%%", "%@"],
        ),
        ("%s%s and %d/%d: %s", ["%s%s", "%d", "%d", "%s"]),
        ("Dogs%s of v%s, %dx%d, name_%s.", ["%s", "v%s", "%dx%d", "name_%s"]),
        ("%(part)s%% funded, %(n)ds", ["%(part)s%%", "%(n)d"]),
        ("In %PATH% there.", ["%PATH%"]),
        ("Two [X0X] dogs in [X12X].", ["[X0X]", "[X12X]"]),
        (
            "Hi <i class=notranslate>{0}</i>, <i class=other>{1}</i>",
            ["<i class=notranslate>{0}</i>", "{1}"],
        ),
        ("- A dog - and a cat", ["-"]),
        ("> >> - A dog > it", ["> >> -"]),
        (">A dog", [">"]),
        ("-> A dog -> it", ["->"]),
        ("• ✓ A dog", ["•", "✓"]),
        ("2) A dog 3) it", ["2)"]),
        ("(iv) A (b) dog", ["(iv)"]),
        ("- [x] A dog", ["- [x]"]),
        ("I ❤️ 👩‍👩‍👧, 🇩🇪 and 1️⃣!", ["❤️", "👩‍👩‍👧", "🇩🇪", "1️⃣"]),
        ('Press <x id="1"/> or <g id="2">this</g>.', ['<x id="1"/>', '<g id="2">', "</g>"]),
    ],
)
def test_what_is_no_language_is_found(text, placeholders):
    assert found(text) == placeholders


@pytest.mark.parametrize(
    "text",
    [
        "100% sure, 5% discount, 20% done.",
        "It costs 50 %d and 100%s, and 12 % des Umsatzes.",
        "%sure is a word, and 5%a% is nothing.",
        "a < b > c, <gone> and {not this one} and {a, b}",
        "@user and a@b, http://.",
        "$5 and $HOME, :name",
        "-5 degrees, 3 - 2, A - b",
        "1. A dog",
        "2.5 million",
        "#1 of *all*",
        "(this) and [that] and (mixed) 2)",
        "Größe ½ × 3 €, © 2017",
    ],
)
def test_language_is_left_alone(text):
    assert found(text) == []


def test_marks_of_the_format_come_first():
    tags = Mark("<a>", MarkKind.OPEN), Mark("</a>", MarkKind.CLOSE)
    code = Mark("`%s`", text="%s")

    def found(*nodes):
        placed = marks_in(with_placeholders(Segment("-", [*nodes, " now ", code])))
        return [(mark.source or mark.mark.text, mark.start, mark.end) for mark in placed]

    url = ("https://a.b/c", 4, 17)
    assert found("See ", tags[0], "https://a.b/c", tags[1]) == [
        *[("<a>", 4, 4), url, ("</a>", 17, 17), ("`%s`", 22, 24)]
    ]
    # The URL contains a tag, so it stays text.
    assert found("See https:", tags[0], "//a.b/c", tags[1]) == [
        *[("<a>", 10, 10), ("</a>", 17, 17), ("`%s`", 22, 24)]
    ]


def test_random_texts_lose_no_placeholder():
    """A text without their signs is not searched, so none of them may be missing."""
    parts = [*"aB1_ -–>*+#•[](){}%$<>/@.:,■☀\ufe0f\u20e3\U0001f600", "www.", "mailto:", "http://"]
    parts += ["%s", "%PATH%", "{n, plural,", "{{", "<x a>", "a@b.cd", "1) ", "(iv) ", "[X1X]"]
    draw = random.Random(0)
    count = 0
    for _ in range(20_000):
        text = "".join(draw.choices(parts, k=draw.randint(1, 4)))
        wanted = [match[0] for match in PLACEHOLDER.finditer(text)]
        assert found(text) == wanted, text
        count += len(wanted) > 0
    assert count > 4000


@pytest.mark.parametrize(
    ("format", "document"),
    [
        ("html", "<p>use http://x?a&amp;b now</p>"),
        ("tsv", 't\nuse {{ "b" }} \\ now'),
        ("csv", 't\n"use {{ ""b"" }} \\ now"'),
        ("jsonl", '{"t": "use {{ \\"b\\" }} \\\\ now"}'),
        ("po", 'msgid "x"\nmsgstr "x"\n\nmsgid "use {{ \\"b\\" }} now"\nmsgstr ""\n'),
    ],
)
def test_a_placeholder_is_written_as_its_format_does(format, document):
    columns = ["t"] if FORMATS[format].has_columns else None
    parts = read_document(document, format, "en", columns).parts
    wanted = document.replace("use", "USE").replace("now", "NOW")
    if format == "po":
        message = wanted.splitlines()[3].removeprefix("msgid ")
        wanted = document.replace('msgstr ""', f"msgstr {message}")
    assert "".join(documents(in_place(capitals)).translate(parts)) == wanted


def test_all_conversions_of_a_format_are_found():
    text = "100%s of %sure 5 %d%%, %(n)dth %%"
    found = marks_in(with_conversions(Segment(text, [text])))
    assert [mark.mark.text for mark in found] == ["%s", "%s", "%d%%", "%(n)d", "%%"]


@pytest.mark.parametrize(
    "text",
    ["http://" + "(" * 99_999, "{{" * 50_000, "a.b-" * 50_000, "%0" * 9, "{a, plural, " * 9999],
)
def test_long_texts_take_little_time(text):
    assert found(text) == []
