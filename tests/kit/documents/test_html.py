import random
import time

import pytest
from lxml import etree
from lxml.html import document_fromstring

from keras_transformer.kit.documents.text.html import read, tags_of
from keras_transformer.kit.documents.tree.segments import Segment
from tests.kit.documents.doubles import capitals, with_words_reversed, written
from tests.kit.documents.trees import marks_in

SHOWN = ("alt", "title", "placeholder")


def parts_of(text):
    """Returns a document's parts, with only the texts of segments."""
    document = read(text, "en")
    assert document.source == text
    return [part.text if isinstance(part, Segment) else (part,) for part in document.parts]


def marks_of(text):
    (segment,) = [each for each in read(text, "en").segments if marks_in(each)]
    return segment.text, [
        (mark.source, mark.start, mark.end, mark.kind.value) for mark in marks_in(segment)
    ]


def tree(text):
    """Parses a page with another parser: tags, attributes, and text in capitals."""
    found, words = [], []

    def add(item):
        if "".join(words).strip():
            found.append(" ".join(capitals("".join(words)).split()))
        words.clear()
        found.append(item)

    root = document_fromstring(f"<!doctype html><meta charset=utf-8><body>{text}")
    for event, node in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        attributes = [
            (name, capitals(value) if name in SHOWN else value)
            for name, value in getattr(node, "attrib", {}).items()
        ]
        add((event, str(node.tag), attributes, node.text if event in ("comment", "pi") else ""))
        words.append((node.text if event == "start" else node.tail) or "")
    add(None)
    return found


def without_text(found):
    return [item for item in found if not isinstance(item, str)]


def test_labels_and_fields_are_no_part_of_a_sentence():
    page = '<form>Send <input type="checkbox"><label>Read it</label><a href="x">more</a></form>'
    texts = [part for part in parts_of(page) if isinstance(part, str)]
    assert texts == ["Send", "Read it", "more"]


def test_blocks_are_segments_and_what_is_around_them_stays():
    text = """<!DOCTYPE html>
<html lang="en"><head><title>A dog</title><style>p > a { color: red }</style></head>
<body><!-- a comment -->
<h1 id=x>A <em>red</em>
  dog</h1><ul><li><a href="x?a&b">One<li>Two &amp; three</ul>
<script>if (a < b) "</p>"</script><pre>  code <b>x</b></pre>
<table><tr><td>1</td><td>cell</table>text<p>
  unclosed"""
    assert parts_of(text) == [
        ('<!DOCTYPE html>\n<html lang="en"><head><title>',),
        "A dog",
        (text[text.index("</title>") : text.index("A <em>")],),
        "A red dog",
        ('</h1><ul><li><a href="x?a&b">',),
        "One",
        ("<li>",),
        "Two & three",
        (text[text.index("</ul>") : text.index("cell")],),
        "cell",
        ("</table>",),
        "text",
        ("<p>\n  ",),
        "unclosed",
    ]


def test_what_is_in_a_paragraph_is_a_mark():
    text = (
        "<p> A <b>red\n <i>dog</b> x</i> <br>\n"
        "<code>a&lt;b c</code> <i class=x></i>&copy; end <img> </p>"
    )
    assert marks_of(text) == (
        "A red dog x a<b c © end",
        [
            *[("<b>", 2, 2, "open"), ("\n ", 5, 6, "whole"), ("<i>", 6, 6, "whole")],
            *[("</b>", 9, 9, "close"), ("</i>", 11, 11, "whole"), (" <br>\n", 11, 12, "whole")],
            *[("<code>a&lt;b c</code>", 12, 17, "whole"), ("<i class=x></i>", 18, 18, "whole")],
        ],
    )


@pytest.mark.parametrize(
    "kept",
    [
        *["<code>a b</code>", "<kbd>A</kbd>", "<samp>a</samp>", "<var>x y</var>", "<wbr>"],
        *["<math><mi>x</mi></math>", "<!-- a <b> -->", "<ruby>3<rt>a</rt></ruby>"],
        *['<b translate="no">A <i>dog</i></b>', "<span class='x notranslate'>A</span>", "<hr/>"],
        *["<script>a < b</script>", "<style>a > b</style>", "<textarea>a</textarea>", "<?php a ?>"],
        *["<pre>a <p> b</pre>", "<div translate=no>a <div>b</div> c</div>", "<!foo a>", "</>"],
        *["<![CDATA[a]]>", "<link title=a>", "<iframe>a</iframe>", "<code>a <b>b</code></b>"],
    ],
)
def test_what_is_not_translated(kept):
    text = f"<p>one {kept} two</p>"
    document = read(text, "en")
    assert document.source == text
    assert written(document.parts, capitals) == f"<p>ONE {kept} TWO</p>"


def test_kept_elements_end_with_what_is_around_them():
    text = "<p>a <code>b</p><ul><li translate=no>c<li>d</ul><p class=notranslate>e<div>f</div>"
    assert [segment.text for segment in read(text, "en").segments] == ["a b", "d", "f"]
    assert written(read(text, "en").parts, capitals) == text.replace("a <", "A <").replace(
        "<li>d", "<li>D"
    ).replace("<div>f", "<div>F")


@pytest.mark.parametrize("attribute", ['alt="A dog"', "alt = 'A dog'", 'ALT="\tA dog "'])
def test_attributes_are_segments_of_their_own(attribute):
    text = f'<p>See <img src="a&b" {attribute} data-alt="x">this. <input placeholder=Name>'
    document = read(text, "en")
    assert document.source == text
    assert [segment.text for segment in document.segments] == ["See this.", "A dog", "Name"]
    result = written(document.parts, capitals)
    assert result == (
        text.replace("See", "SEE")
        .replace("this", "THIS")
        .replace("A dog", "A DOG")
        .replace("Name", "NAME")
    )


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ('<nav><a href="/d">Docs</a><a href="/a">the API</a></nav>', ["Docs", "the API"]),
        ("<a>docs</a><i class=x></i><a>api</a>", ["docs", "api"]),
        ("<p><span>Name</span><span>Price</span></p>", ["Name", "Price"]),
        ("<div><b>Note:</b><i>read it</i> now</div>", ["Note:", "read it now"]),
        ("<p>un<b>believ</b><i>able</i></p>", ["unbelievable"]),
        ("<p><b>O</b><span>NCE upon</span></p>", ["ONCE upon"]),
        ("<p><b>CO</b><sub>2</sub> is <b>it</b> <i>Now</i></p>", ["CO2 is it Now"]),
        ("<p><b>Name </b><i>Price</i></p>", ["Name Price"]),
        ("<p><a>红</a><a>狗</a>睡觉</p>", ["红狗睡觉"]),
    ],
)
def test_elements_that_follow_each_other_without_a_space_are_items(text, segments):
    document = read(text, "en")
    assert document.source == text
    assert [segment.text for segment in document.segments] == segments
    assert written(document.parts, capitals).lower() == text.lower()


def test_an_element_with_nothing_but_an_image_comes_back_whole():
    text = '<td>word <a>\n <img alt="A dog">\n </a>\n </td><td><a> <img alt="b"> </a> </td>'
    document = read(text, "en")
    assert document.source == text
    assert written(document.parts, str) == text
    assert [segment.text for segment in document.segments] == ["word", "A dog", "b"]


def test_attributes_are_written_with_the_quotes_that_they_have():
    def result(attribute, text):
        (segment,) = read(f"<p {attribute}>", "en").segments
        return segment.write([text])

    assert result('title="a"', "\"'<&\N{NO-BREAK SPACE}>") == (
        "&quot;'&lt;&amp;\N{NO-BREAK SPACE}&gt;"
    )
    assert result("title='a'", "\"'<&") == '"&#39;&lt;&amp;'
    assert result("title=a", "a 'b'=`") == "a&#32;&#39;b&#39;&#61;&#96;"
    for attribute in ('title="a"', "title='a'", "title=a"):
        hostile = "x \"y\" 'z' <b> &amp; = > `"
        source = f"<p {attribute}>".replace("a", result(attribute, hostile))
        (tag,) = tags_of(source)
        assert tag.attributes == [("title", hostile)]


def test_text_of_drawings_is_translated_and_ruby_loses_no_text():
    page = '<p>a <svg viewBox="0"><style>b</style><text x="1">c <tspan>d</tspan></text></svg> e</p>'
    document = read(page, "en")
    assert [segment.text for segment in document.segments] == ["a e", "c d"]
    wanted = page.replace(">a <", ">A <").replace("> e<", "> E<").replace(">c <", ">C <")
    assert written(document.parts, capitals) == wanted.replace(">d<", ">D<")
    (segment,) = read("<p><ruby>a<rp>(</rp><rt>b<rp>)</rp></ruby> c</p>", "en").segments
    assert segment.text == "a c"


def test_what_is_shown_in_place_of_a_film_is_translated_apart_from_its_sentence():
    page = (
        '<p>a <video title="b" src="x"><source src="y"><object data="z"><p>c <b>d</b>.</p>e'
        '</object><code>f</code><canvas class="notranslate">g</canvas></video> h</p>'
    )
    document = read(page, "en")
    assert [segment.text for segment in document.segments] == ["a h", "b", "c d.", "e"]
    wanted = page.replace(">a <", ">A <").replace("> h<", "> H<").replace('"b"', '"B"')
    wanted = wanted.replace(">c <b>d<", ">C <b>D<").replace("</p>e<", "</p>E<")
    assert written(document.parts, capitals) == wanted
    assert dict(document.left) == {"code": 1, "protected": 1}
    assert not read("<p><audio translate=no>a</audio></p>", "en").segments
    page = f"<p>{'<object>' * 2000}a"
    assert written(read(page, "en").parts, capitals) == page.replace(">a", ">A")


@pytest.mark.parametrize(
    "beginning", ["<?xml version='1.0'?><p>", "<p xmlns='http://www.w3.org/1999/xhtml'>"]
)
def test_a_page_in_xml_gets_no_entities_of_html(beginning):
    (segment,) = read(f"{beginning}a</p>", "en").segments
    assert segment.write(["a\N{NO-BREAK SPACE}<\x01"]) == "a\N{NO-BREAK SPACE}&lt;\ufffd"
    (segment,) = read("<p>a</p>", "en").segments
    assert segment.write(["a\N{NO-BREAK SPACE}<"]) == "a&nbsp;&lt;"


def test_pieces_that_stay_are_counted():
    page = "<p>a <code>b</code> <kbd>3</kbd> <math><mi>x</mi></math> <b translate=no>c</b></p>"
    assert dict(read(f"{page}<pre>d</pre>", "en").left) == {
        "code": 2,
        "equation": 1,
        "protected": 1,
    }


@pytest.mark.parametrize(
    "text",
    ["<b>", "&amp;", "a < b > c", "&", "&lt;", "</p>", "<!--", "a\N{NO-BREAK SPACE}b", '"', "]]>"],
)
def test_translated_text_reads_as_it_is(text):
    (segment,) = read("<p>word</p>", "en").segments
    result = f"<p>{segment.write([text])}</p>"
    assert document_fromstring(result).text_content() == text
    assert [tag.name for tag in tags_of(result)] == ["p", "", "p"]


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        *[("", []), (" \n", []), ("\0", []), ("<", []), ("<a", []), ("a < b", ["a < b"])],
        *[("x<!-- a <p>b", ["x"]), ("x<script>a", ["x"]), ("x<a title='y", ["x"]), ("&", [])],
        *[("a&copy", ["a©"]), ("a &unknown; b", ["a &unknown; b"]), ("</p>a</b>", ["a"])],
        *[("<b<i>a", ["a"]), ("<p <b>a", ["a"]), ("<p/a>b", ["b"]), ("<3 a", ["<3 a"])],
        *[("</ a>b", ["b"]), ("</>a", ["a"]), ("a</>b", ["ab"]), ("<![if x]>a<![endif]>", ["a"])],
        *[
            ("\ufeffa", ["\ufeffa"]),
            ("a\ud800", ["a\ud800"]),
            ("5 &euro; 6", []),
            ("a\r\nb", ["a b"]),
        ],
    ],
)
def test_broken_html(text, segments):
    document = read(text, "en")
    assert document.source == text
    assert [segment.text for segment in document.segments] == segments


@pytest.mark.parametrize(
    ("text", "read_as", "marks"),
    [
        ("A cat<sup>1</sup> runs", "A cat1 runs", [("<sup>1</sup>", 5, 6)]),
        ("<p>9 m<sup> &minus;2</sup>", "9 m−2", [("<sup> &minus;2</sup>", 3, 5)]),
        ("a <b>cat</b><sup>2</sup>!", "a cat2!", [("<b>", 2, 2), ("</b>", 5, 5)]),
        ("<sup>3</sup>a<sup> 1 </sup> b", "a1 b", [("<sup> 1 </sup>", 1, 2)]),
        ("It runs.<sup>12</sup> Stop", "It runs. Stop", [("<sup>12</sup>", 8, 8)]),
        (
            "It runs.<sup><a href='#n'><i>[</i>note 1<i>]</i></a></sup> Stop",
            "It runs. Stop",
            [("<sup><a href='#n'><i>[</i>note 1<i>]</i></a></sup>", 8, 8)],
        ),
        ("so<sup>*</sup> it", "so it", [("<sup>*</sup>", 2, 2)]),
        ("the 2<sup>nd</sup> one", "the 2nd one", [("<sup>", 5, 5), ("</sup>", 7, 7)]),
        ("a <i>b<sup>1</i> c</sup> d", "a b1 c d", [("<i>", 2, 2), ("<sup>", 3, 3)]),
    ],
)
def test_signs_of_notes_and_exponents_stay_at_their_words(text, read_as, marks):
    found, of_text = marks_of(text)
    assert (found, [mark[:3] for mark in of_text[:2]]) == (read_as, marks)


def test_a_superscript_that_blocks_interrupt_is_none_of_a_note():
    assert parts_of("a<sup>1<p>b</sup>") == ["a1", ("<p>",), "b", ("</sup>",)]


@pytest.mark.parametrize("length", [5_000, pytest.param(60_000, marks=pytest.mark.slow)])
def test_deep_and_long_documents_are_read_in_time_in_proportion(length):
    started = time.process_time()
    longs = "<b>|<div>|<a |<!--|</|&|<|<a b='|<kbd>|</b>|<b></b>|<p>|<sup>|<sup>1"
    longs += "|<sup>*</sup>|<p><code>|<b><i></b>|<![x"
    texts = [long * (length // len(long)) for long in longs.split("|")]
    texts += ["<b>" * 1000 + "x" + "</b>" * 1000, "<div>" * 1000 + "x" + "</div>" * 1000]
    texts += ["word " * length, f"<a title='{'word ' * length}'>x</a>"]
    for text in texts:
        assert read(text, "en").source == text
    assert [segment.text for segment in read(texts[-3], "en").segments] == ["x"]
    assert time.process_time() - started < 60


WORDS = [
    *["alpha", "über", "&amp;", "&lt;b&gt;", "a & b", "1 < 2", "&nbsp;", "a\n   b", "&#x27;"],
    "“q”",
]
ATTRIBUTES = [
    *["", "", ' class="c d"', " id=x", ' title="A tip &amp; more"', " title='it is \"q\"'"],
    *[" data-x", " title=Word", ' href="u?a=1&b=2"', ' translate="no"', ' CLASS="notranslate"'],
    " lang=de",
]
ALONE = [
    *["<br>", "<br/>", "<wbr>", "<!-- c <b> -->", "<input placeholder='Your name'>"],
    *["<kbd>K</kbd>", '<img src="a.png" alt="Some picture">', "<svg><title>No</title></svg>"],
    "<code>x &lt;</code>",
    "<audio src=x>No sound. <object>Get <a href=y>it</a></object></audio>",
]
BROKEN = [
    *["<b>", "</i>", "</p>", "<p>", "<a href=x", "< ", "&", "<?x y>", "<!foo>", "<div>"],
    *["</div>", "<td>", "<code>"],
]


def phrase(random_, broken, depth=0):
    pieces = []
    for _ in range(random_.randint(1, 4)):
        kind = random_.random()
        if kind < 0.5 or depth > 3:
            pieces.append(random_.choice(WORDS))
        elif kind < 0.75:
            name = random_.choice(["b", "i", "a", "span", "STRONG", "my-x"])
            attribute = random_.choice(ATTRIBUTES)
            pieces.append(f"<{name}{attribute}>{phrase(random_, broken, depth + 1)}</{name}>")
        elif kind < 0.9 or not broken:
            pieces.append(random_.choice(ALONE))
        else:
            pieces.append(random_.choice(BROKEN))
    return random_.choice([" ", " ", "", "\n  "]).join(pieces)


def page(random_, broken, depth=0):
    pieces = []
    for _ in range(random_.randint(1, 3)):
        attribute = random_.choice(ATTRIBUTES)
        if random_.random() < 0.3 and depth < 4:
            inner = page(random_, broken, depth + 1)
            pieces.append(f"<div{attribute}>\n{inner}\n</div>")
        elif random_.random() < 0.3:
            items = [f"<li>{phrase(random_, broken)}" for _ in range(2)]
            pieces.append(f"<ul>{''.join(items)}</ul>")
        else:
            pieces.append(f"<p{attribute}>{phrase(random_, broken)}</p>")
    return "\n".join(pieces)


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("count", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_generated_pages_keep_their_tags_and_text(broken, count):
    random_ = random.Random(1)
    for _ in range(count):
        text = page(random_, broken)
        document = read(text, "en")
        assert document.source == text
        wanted = tree(text)
        for change in (str, capitals):
            assert tree(written(document.parts, change)) == wanted


@pytest.mark.parametrize("count", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_signs_at_random_keep_their_tags(count):
    random_ = random.Random(2)
    pieces = [*"<>/=&;\"'! -ap\n#", *BROKEN, *ALONE, "text ", "<!--", "-->", "title='x y'"]
    pieces.append("<img alt=y>")
    for _ in range(count):
        text = "x" + "".join(random_.choice(pieces) for _ in range(20))
        document = read(text, "en")
        assert document.source == text
        assert tree(written(document.parts, str)) == tree(text)


def test_a_page_is_translated_with_what_is_in_its_marks():
    text = (
        "<p>The <a href=x title='A tip'>red dog</a> sees <img alt='A cat'> it.</p><p>A <b>b</b></p>"
    )
    result = with_words_reversed(read(text, "en"))
    assert "<a href=x title='TIP A'>DOG RED</a>" in result and "<img alt='CAT A'>" in result
    assert result.endswith("<p><b>B</b> A</p>")
    assert len(without_text(tree(result))) == len(without_text(tree(text)))
