"""Random documents in text formats: they survive without translation, and only language changes.

Capitalized words stand for a translation. Everything that must not be translated contains "zq". For
formats with special signs, some documents also have unpaired ones: only the parser can tell which
parts of them are language, but all letters must come back all the same.
"""

import csv
import html
import io
import json
import random
import re
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import polib
import pytest

from keras_transformer.kit.documents.formats import FORMATS, read_document
from keras_transformer.kit.documents.text import po
from tests.kit.documents.doubles import capitals, documents, in_place, written

WORDS = [
    "the dog",
    "sleeps.",
    "Über",
    "e\u0301t\u00e9",
    "犬は寝る。",
    "3",
    "m.",
    "?!",
    "\U0001f600",
]
SPACES = [" ", " ", "  ", *"\t\u00a0\u3000\u2003\u2028\v\f\x1c\u200b"]
PLACEHOLDERS = [" https://a.b/zq ", " {zq} ", " {{ zq }} ", " ${zq} ", " %(zq)s ", " zq@a.example "]
MARKDOWN = [
    *["`zq`", "**{}**", "*{}*", "[{}](zq 'zq')", "![{}](zq)", "<b zq>{}</b>", "[^zq]"],
    " $zq$ ",
]
HTML = [
    *["<b zq>{}</b>", "<a href='zq'>{}</a>", "<br zq>", "<code>zq</code>"],
    "<img alt='{}' src=zq>",
]
SUBTITLES = ["<i>{}</i>", "<c.zq>{}</c>", "<v zq>{}", "</i>", "<i>", "<00:00:01.000>"]
XLIFF = ["<g id='zq'>{}</g>", "<x id='zq'/>", "<ph id='zq'>-</ph>", "<mrk>{}</mrk>"]


def text_of(random_, tokens=(), spaces=SPACES, depth=0):
    """Draws a text of words, spaces and tokens; "{}" in a token is replaced by such a text.

    Links and attributes contain no tokens, because links cannot be nested.
    """
    pieces = []
    for _ in range(random_.randint(1, 6)):
        kind = random_.random()
        if tokens and kind < 0.3 and depth < 3:
            token = random_.choice(tokens)
            is_link = "[" in token or "=" in token
            inner = text_of(random_, [] if is_link else tokens, spaces, depth + 1)
            pieces.append(token.replace("{}", inner))
        elif kind < 0.7:
            pieces.append(random_.choice(WORDS))
        else:
            pieces.append(random_.choice(spaces))
    return "".join(pieces)


def of_text(random_, strays):
    lines = [text_of(random_, PLACEHOLDERS)]
    lines += [text_of(random_, strays or [" - "]) for _ in range(random_.randint(0, 3))]
    return random_.choice(["\n", "\r\n", "\n\n> "]).join(lines)


def of_markdown(random_, strays):
    blocks = []
    for _ in range(random_.randint(1, 3)):
        block = random_.choice(["{}", "# {}", "- {}\n  {}", "> {}\n> {}", "|{}|{}|\n|-|-|\n|{}|{}"])
        while "{}" in block:
            text = text_of(random_, [*MARKDOWN, *strays])
            block = block.replace("{}", text, 1)
        blocks.append(
            random_.choice([block, block, "```zq\nzq\n```", "<div zq>\n\nword\n\n</div>"])
        )
    return random_.choice(["\n\n", "\r\n\r\n"]).join(blocks)


def of_html(random_, strays):
    blocks = [
        random_.choice(["<p zq>{}</p>", "{}", "<ul><li>{}<li zq>{}</ul>", "<pre zq>{}</pre>"])
        .replace("{}", text_of(random_, [*HTML, "&amp;", "&lt;", "\n", *strays]))
        for _ in range(random_.randint(1, 3))
    ]  # fmt: skip
    return random_.choice(["", "\n", "<!-- zq -->", "<script>zq</script>"]).join(blocks)


def of_po(random_, strays):
    entries = ['msgid ""\nmsgstr ""\n"Language: zq"\n'] * random_.randint(0, 1)
    for number in range(random_.randint(1, 4)):
        text = text_of(random_, [*PLACEHOLDERS, "\n", *HTML[:3], "``zq``", *strays])
        source = f'"{polib.escape(f"{number}{text}")}"'
        source = random_.choice([source, f'""\n{source}\n""'])
        entry = (
            random_.choice(["", "# zq\n", "#: zq:3\n", '\nmsgctxt "zq"\n']) + f"msgid {source}\n"
        )
        ending = ['msgstr ""\n', f'msgid_plural {source}\nmsgstr[0] ""\nmsgstr[1] ""\n']
        ending += [
            'msgstr "zq"\n',
            '  msgstr ""\n""\n',
            '\t\nmsgstr ""\n# zq\n#~ msgid "zq"\n#~ msgstr "zq"\n',
        ]
        entries.append(entry + random_.choice(ending))
    return random_.choice(["\n", "\r\n"]).join("\n".join(entries).split("\n"))


def of_xliff(random_, strays):
    found = []
    for _ in range(random_.randint(1, 4)):
        words = text_of(random_, [escape(stray) for stray in strays], [" ", "\n", "\u3000"])
        source = text_of(random_, [*XLIFF, words], [" ", "\n", "\u3000"])
        alternative = "<alt-trans><source>zq</source><target>zq</target></alt-trans>"
        target = random_.choice(["", "<target/>", "<target></target>", "<target>zq</target>"])
        middle = random_.choice(["", "\n  ", "<seg-source>zq</seg-source>"])
        unit = f"<source>{source}</source>{middle}{target}{random_.choice(['', alternative])}"
        found.append(f"<trans-unit id='zq'>{unit}</trans-unit>")
    content = "\n".join(found)
    return f"<?xml version='1.0'?>\n<xliff><file zq=''>{content}</file></xliff>"


def of_subtitles(random_, strays):
    """Draws cues whose text has no empty lines, and no tags that end in another cue."""
    blocks = [random_.choice(["WEBVTT zq\n", "\nNOTE zq\n\n"])]
    spaces = [" ", "  ", "\n", "\u3000", "\u200b"]
    for number in range(random_.randint(1, 5)):
        text = text_of(random_, [*SUBTITLES, *PLACEHOLDERS, *strays], spaces)
        text = re.sub("\n+", "\n", text.strip("\n")) or "3"
        begin = random_.choice(["", "", "{\\zq}", "-", "- ", "<i>- "])
        name = random_.choice(["", f"{number}\n", "zq\n"])
        times = f"00:00:{number:02d},000 --> 00:01:00,000 zq:{number}%"
        blocks.append(f"{name}{times}\n{begin}{text}\n")
    return random_.choice(["\n", "\r\n"]).join("\n".join(blocks).split("\n"))


def of_tsv(random_, strays):
    rows = ["zq\tt\tzq"]
    spaces = [space for space in SPACES if space != "\t"]
    for _ in range(random_.randint(0, 3)):
        rows.append(f"zq\t{text_of(random_, [*PLACEHOLDERS, *strays], spaces)}\t zq")
    return random_.choice(["\n", "\r\n"]).join(rows)


def of_csv(random_, strays):
    separator = random_.choice(",;\t")
    rows = [separator.join(["zq", '"t"', "zq"])]
    for _ in range(random_.randint(0, 3)):
        text = text_of(random_, [*PLACEHOLDERS, ",", ";", '"', "\n", *strays])
        is_free = text[0] != '"' and not any(sign in text for sign in f"{separator}\n")
        quoted = '"{}"'.format(text.replace('"', '""'))
        cell = random_.choice([quoted, text]) if is_free else quoted
        rows.append(separator.join(['"z""zq"', cell, " zq "]))
    return random_.choice(["\n", "\r\n"]).join(rows) + random_.choice(["", "\n"])


def of_jsonl(random_, strays):
    rows = []
    spaces = [space for space in SPACES if space not in "\t\f"]  # their escapes have letters
    tokens = [*PLACEHOLDERS, "\\", '"', *strays]
    for _ in range(random_.randint(1, 3)):
        texts = [text_of(random_, tokens, spaces) for _ in range(2)]
        written = [json.dumps(text, ensure_ascii=random_.random() < 0.5) for text in texts]
        value = random_.choice([written[0], f"[ {written[0]},{written[1]}]", "[ ]"])
        rows.append(f'{{"zq": 1.5 , "t":{value}, "zq2":{{"t":"zq"}} }}')
    return random_.choice(["\n", "\r\n", "\n\n "]).join(rows)


GENERATORS = {
    "text": of_text,
    "wrapped": of_text,
    "markdown": of_markdown,
    "html": of_html,
    "po": of_po,
    "xliff": of_xliff,
    "srt": of_subtitles,
    "vtt": of_subtitles,
    "tsv": of_tsv,
    "csv": of_csv,
    "jsonl": of_jsonl,
}
LONELY = {"markdown": "*_`~!<>[]()#|\\-\n", "html": "<>&'\"=/", "po": "<>`|:&\\"}


def translated(document, change):
    """Translates a document by changing its texts, with each word and sign in its place."""
    return "".join(documents(in_place(change)).translate(document.parts))


def letters(text):
    """Returns the letters and digits of a text in capitals, escaped or not."""
    text = re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), html.unescape(text))
    return "".join(filter(str.isalnum, capitals(text)))


def without_translations(format, text):
    """Removes the translations, and the elements or lines around them, from a bilingual file."""
    if format == "po":
        return [line for line in text.split("\n") if "msgstr" not in line]
    return re.sub("<target>.*?</target>|<target/>", "", text, flags=re.DOTALL)


def pairs_of(format, text):
    """Returns the sources and targets of a catalogue or an XLIFF file."""
    if format == "po":
        return [(entry.source + entry.plural, entry.target) for entry in po.entries(text)]
    found = []
    for unit in ElementTree.fromstring(text).iter("trans-unit"):
        sides = (unit.find("source"), unit.find("target"))
        found.append(tuple("" if side is None else "".join(side.itertext()) for side in sides))
    return found


def check_filled(format, text, result):
    """Checks that translations in a bilingual file have exactly the letters of their sources."""
    assert without_translations(format, result) == without_translations(format, text)
    filled = pairs_of(format, result)
    for (source, target), (same, found) in zip(pairs_of(format, text), filled, strict=True):
        assert same == source
        if target:
            assert found == target
        else:
            assert sorted(letters(found)) == sorted(letters(source))


def content_of(format, text):
    """Returns the values of a table, whose notation may change, or the whole text."""
    if format == "csv":
        separator = max(",;\t", key=text.partition("\n")[0].count)
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    if format == "jsonl":
        return [json.loads(line) if line.strip() else line for line in text.split("\n")]
    return text


def check_translated(format, text, document, result):
    """Checks that a document keeps its letters, and all its content if its texts are unchanged."""
    content = content_of(format, text)
    assert content_of(format, document.source) == content
    assert content_of(format, translated(document, str)) == content
    # Emphasis that signs cannot express is written with tags; part of a word may lose it.
    in_place, moved, wanted = (
        letters(re.sub("</?(em|strong|s|b|i|u)>", "", each))
        for each in (written(document.parts, capitals), result, text)
    )
    assert in_place == wanted
    assert sorted(moved) == sorted(wanted)


@pytest.mark.parametrize("format", GENERATORS)
@pytest.mark.parametrize("count", [50, pytest.param(2000, marks=pytest.mark.slow)])
def test_untranslated_documents_come_back_and_only_language_is_translated(format, count):
    random_ = random.Random(1)
    columns = ["t"] if FORMATS[format].has_columns else None
    for number in range(count):
        lonely = LONELY.get(format, "<&'\"\\`{") if number % 2 else ""
        text = GENERATORS[format](random_, list(lonely))
        document = read_document(text, format, "en", columns)
        result = translated(document, capitals)
        if format in ("po", "xliff"):
            check_filled(format, text, result)
        else:
            check_translated(format, text, document, result)
        if not lonely:
            assert result.count("zq") >= text.count("zq")
