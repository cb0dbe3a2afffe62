"""Office documents and e-books: archives in which only text is translated."""

import io
import random
import re
import time
import tracemalloc
import zipfile
from collections import Counter
from xml.etree import ElementTree

import pytest

from keras_transformer.kit.documents.formats import FORMATS, read_document
from keras_transformer.kit.documents.office import docx
from keras_transformer.kit.documents.text.xml_source import MOST_MARKUP
from tests.kit.documents.archives import (
    NAMES,
    NAMESPACES,
    PACKAGE,
    archive,
    content_of,
    declared,
    translated,
    types_of,
)
from tests.kit.documents.doubles import capitals, documents, in_place, in_reverse
from tests.refusals import refused

ARCHIVES = [name for name, format in FORMATS.items() if format.is_archive]


def by_words(change, reverse=False):
    """Returns a function that translates parts word by word, in order or in reverse."""
    return documents(in_reverse(change) if reverse else in_place(change)).translate


def opened(document):
    return zipfile.ZipFile(io.BytesIO(document))


def run(text, properties=""):
    properties = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*content, properties=""):
    return f"<w:p>{properties}{''.join(content)}</w:p>"


def shouted(*content, properties="", reverse=False):
    """Translates a Word paragraph into capitals; returns its content."""
    result = translated(
        "docx", paragraph(*content, properties=properties), by_words(capitals, reverse)
    )
    return result.removeprefix(f"<w:p>{properties}").removesuffix("</w:p>")


def test_runs_that_no_reader_sees_are_one():
    spelling = '<w:proofErr w:type="spellStart"/>'
    language = '<w:lang w:val="en-US"/>'
    content = f'<w:r w:rsidR="1"><w:t>A do</w:t></w:r>{spelling}{run("g.", language)}\n'
    assert shouted(content) == run("A DOG.")
    assert shouted(run("3.5"), spelling) == run("3.5") + spelling, "without letters it stays"


def test_properties_of_most_letters_are_plain():
    bold, italic = "<w:b/>", "<w:i/>"
    content = [run("A long ", bold), run("red", italic), run(" dog sleeps.", bold)]
    assert shouted(*content) == (
        run("A LONG ", bold) + run("RED", italic) + run(" DOG SLEEPS.", bold)
    )
    assert shouted(*content, reverse=True) == (
        run(". SLEEPS DOG ", bold) + run("RED", italic) + run(" LONG A", bold)
    )


def test_links_fields_and_insertions_are_around_their_words():
    link = ('<w:hyperlink r:id="x">', "</w:hyperlink>")
    style = '<w:rStyle w:val="Hyperlink"/>'
    content = [run("See the "), link[0], run("red ", style), run("dog", style), link[1], run(".")]
    assert shouted(*content, reverse=True) == (
        run(". ") + link[0] + run("DOG RED", style) + link[1] + run(" THE SEE")
    )

    def sign(kind):
        return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'

    for code, shown in ((" HYPERLINK x", "DOG"), (" REF x", "DOG"), (" PAGE x", "dog")):
        before = f"{sign('begin')}<w:r><w:instrText>{code}</w:instrText></w:r>{sign('separate')}"
        assert shouted(run("A "), before, run("dog"), sign("end"), run(" runs.")) == (
            run("A ") + before + run(shown) + sign("end") + run(" RUNS.")
        )
    tracked = '<w:ins w:id="1">', "</w:ins>"
    deleted = '<w:del w:id="2"><w:r><w:delText>cat</w:delText></w:r></w:del>'
    assert shouted(run("A "), deleted, tracked[0], run("dog"), tracked[1], run(" runs.")) == (
        run("A ") + deleted + tracked[0] + run("DOG") + tracked[1] + run(" RUNS.")
    )


@pytest.mark.parametrize(
    "kept",
    [
        '<w:r><w:rPr><w:vertAlign/></w:rPr><w:footnoteReference w:id="2"/></w:r>',
        "<w:r><w:tab/></w:r>",
        "<w:r><w:br/></w:r>",
        '<w:r><w:br w:type="page"/></w:r>',
        '<w:bookmarkStart w:id="1" w:name="zq"/>',
        "<m:oMath><m:t>x+y</m:t></m:oMath>",
        run("x = f(y)", '<w:rStyle w:val="SourceCode"/>'),
        run("zq", "<w:vanish/>"),
        '<w:fldSimple w:instr="PAGE"><w:r><w:t>zq</w:t></w:r></w:fldSimple>',
    ],
)
def test_what_is_no_language_stays(kept):
    result = shouted(run("A dog "), kept, run(" sleeps."))
    assert re.sub(" *", "", result.replace(kept, "")) == re.sub(
        " *", "", run("A DOG ") + run("SLEEPS.")
    )
    assert kept in shouted(run("A dog"), kept, run(" sleeps."), reverse=True)


def test_a_tab_is_between_columns_and_a_line_break_at_its_word():
    tab, line_break = "<w:r><w:tab/></w:r>", "<w:r><w:br/></w:r>"
    content = run("Name of it:"), tab, run("a dog "), line_break, run("sleeps")
    assert shouted(*content, reverse=True) == (
        run(": IT OF NAME") + tab + run("SLEEPS") + line_break + run("DOG A")
    )
    content = "Name of it:<text:tab/>a dog"
    result = translated("odt", f"<text:p>{content}</text:p>", by_words(capitals, True))
    assert result == "<text:p>: IT OF NAME<text:tab/>DOG A</text:p>"


def test_no_range_ends_before_it_begins():
    marks = [f'<w:bookmark{side} w:id="1"/>' for side in ("Start", "End")]
    other = '<w:bookmarkEnd w:id="2"/>'
    content = [run("A dog "), marks[0], run("and a "), other, run("cat"), marks[1], run(" sleep.")]
    result = shouted(*content, reverse=True)
    assert result.index(marks[0]) < result.index(marks[1]) and other in result
    content = ["a ", '<text:bookmark-start text:name="x"/>', "b c"]
    content += ['<text:bookmark-end text:name="x"/>', " d"]
    result = translated("odt", f"<text:p>{''.join(content)}</text:p>", by_words(capitals, True))
    assert result.index("bookmark-start") < result.index("bookmark-end")


def test_text_boxes_tables_and_alternative_texts():
    box = paragraph(
        run("A {}"), '<w:r><w:drawing><wp:docPr id="1" descr="a &quot;{}&quot;"/></w:drawing></w:r>'
    )
    content = (
        f"<w:tbl><w:tc>{paragraph(run('{}'))}</w:tc></w:tbl>"
        f"{paragraph(run('One '), f'<w:r><w:txbxContent>{box}</w:txbxContent></w:r>', run('{}'))}"
        + paragraph('<w:r><w:drawing><wp:docPr title="{}"/></w:drawing></w:r>')
    )
    result = translated("docx", content.replace("{}", "dog"), by_words(capitals))
    wanted = content.replace("{}", "DOG").replace("One ", "ONE ").replace('"a &quot;', '"A &quot;')
    assert result == wanted.replace("&quot;", "&#34;")


def test_a_text_box_in_a_paragraph_without_text():
    def around(*content):
        return paragraph(f"<w:r><w:txbxContent>{''.join(content)}</w:txbxContent></w:r>")

    box = around(paragraph(run("a dog")), paragraph(run("a cat")))
    picture = '<w:r><w:drawing><wp:docPr descr="a dog"/></w:drawing></w:r>'
    sign = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'.format
    code = "<w:r><w:instrText>INCLUDEPICTURE x</w:instrText></w:r>"
    field = paragraph(sign("begin"), code, sign("separate"), picture, sign("end"))
    for content in (box, around(run("12"), box), around(box, box), paragraph(picture), field):
        wanted = content.replace("a dog", "A DOG").replace("a cat", "A CAT")
        assert translated("docx", content, by_words(capitals)) == wanted
    content = field.replace("<w:p>", f"<w:p>{run('One ')}")
    wanted = content.replace("a dog", "A DOG").replace("One ", "ONE ")
    assert translated("docx", content, by_words(capitals)) == wanted


def test_text_boxes_within_each_other_are_read_once(monkeypatch):
    reads = []
    find = docx._Reader._paragraph
    monkeypatch.setattr(
        docx._Reader, "_paragraph", lambda self, one: reads.append(one) or find(self, one)
    )
    content = paragraph(run("a dog"))
    for _ in range(39):
        content = paragraph(f"<w:r><w:txbxContent>{content}</w:txbxContent></w:r>")
    assert translated("docx", content, by_words(capitals)) == content.replace("a dog", "A DOG")
    assert len(reads) == 40


def test_headers_notes_and_comments_are_members_of_their_own():
    members = {
        f"word__{name}_xml": f"<w:x {declared('w')}>{paragraph(run('a dog'))}</w:x>"
        for name in ("header1", "footer2", "footnotes", "endnotes", "comments", "styles")
    }
    document = read_document(archive("docx", "", **members), "docx", "en")
    (result,) = document.written(by_words(capitals)(document.parts))
    with opened(result) as found:
        texts = {name: b"A DOG" in found.read(name) for name in found.namelist()}
    assert [name for name in texts if texts[name]] == [
        *("word/header1.xml", "word/footer2.xml", "word/footnotes.xml"),
        *("word/endnotes.xml", "word/comments.xml"),
    ]


def test_slides():
    def run_of(text, properties=""):
        return f"<a:r>{properties}<a:t>{text}</a:t></a:r>"

    link = '<a:rPr lang="en-US" dirty="0"><a:hlinkClick r:id="x"/></a:rPr>'
    after = "<a:br/><a:fld><a:t>x</a:t></a:fld><a:endParaRPr/></a:p>"
    words = run_of("A d", "<a:rPr lang='en-US' err='1'/>") + run_of("og ")
    content = f"<a:p><a:pPr/>{words}{run_of('sleeps', link)}{after}"
    plain = link.replace(' lang="en-US" dirty="0"', "")
    assert translated("pptx", content, by_words(capitals)) == (
        f"<a:p><a:pPr/>{run_of('A DOG ')}{run_of('SLEEPS', plain)}{after}"
    )


@pytest.mark.parametrize("format", ["odt", "odp"])
def test_texts_of_libreoffice(format):
    content = (
        '<style:style style:name="T1" style:family="text">'
        '<style:text-properties officeooo:rsid="1"/></style:style>'
        '<text:h>A <text:span text:style-name="T1">d</text:span>og</text:h>'
        '<text:p>A <text:a x="y">cat</text:a><text:s text:c="2"/>runs.<text:note>'
        "<text:note-citation>1</text:note-citation><text:p>a note</text:p></text:note></text:p>"
        "<svg:title>a title</svg:title><text:p>at <text:page-number>zq</text:page-number></text:p>"
        '<text:p text:style-name="Preformatted_20_Text">zq</text:p>'
        "<text:tracked-changes><text:p>zq</text:p></text:tracked-changes>"
    )
    result = translated(format, content, by_words(capitals))
    before, _, after = result.partition("<text:h>")
    assert before == content.partition("<text:h>")[0]
    assert after == (
        'A DOG</text:h><text:p>A <text:a x="y">CAT</text:a><text:s text:c="2"/>RUNS.<text:note>'
        "<text:note-citation>1</text:note-citation><text:p>A NOTE</text:p></text:note></text:p>"
        "<svg:title>A TITLE</svg:title><text:p>AT <text:page-number>zq</text:page-number></text:p>"
        '<text:p text:style-name="Preformatted_20_Text">zq</text:p>'
        "<text:tracked-changes><text:p>zq</text:p></text:tracked-changes>"
    )


def test_words_of_two_spans_are_one():
    content = "<text:p><text:span>Mac</text:span><text:span x='1'>Donald</text:span></text:p>"
    document = read_document(archive("odt", content), "odt", "en")
    assert [segment.text for segment in document.segments] == ["MacDonald"]


def test_chapters_and_titles_of_books():
    titles = "<dc:title>a book</dc:title><dc:language>en</dc:language>"
    contents = '<n:ncx xmlns:n="http://www.daisy.org/z3986/2005/ncx/"><n:text>{}</n:text></n:ncx>'
    members = {
        "a_opf": PACKAGE.format(titles),
        "toc_ncx": contents.format("a chapter"),
        "__MACOSX__chapter_xhtml": "\0 not XML",
    }
    content = "<script src='x'/><p>A <b>dog</b> &amp; it</p>"
    document = read_document(archive("epub", content, **members), "epub", "en")
    (result,) = document.written(by_words(capitals)(document.parts))
    assert content_of("epub", result) == "<script src='x'/><p>A <b>DOG</b> &amp; IT</p>"
    with opened(result) as found:
        assert b"<dc:title>A BOOK</dc:title><dc:language>en<" in found.read("a.opf")
        assert found.read("toc.ncx").decode() == contents.format("A CHAPTER")


def test_a_book_says_the_language_of_its_translation():
    package = PACKAGE.format(
        '<dc:language id="x">en-GB</dc:language><dc:title xml:lang="en">a book</dc:title>'
    ).replace("<package", '<package xml:lang="en"')
    chapter = "<html lang='en' xml:lang=\"en\"><body><p lang='fr'>un x</p></body></html>"
    ncx = '<ncx version="2"><text>1</text></ncx>'
    members = {"a_opf": package, "b_XHTML": chapter, "toc_ncx": ncx}
    book = archive("epub", "", **members)
    unknown = read_document(book, "epub", "en")
    with opened(next(unknown.written(by_words(str)(unknown.parts)))) as found:
        assert found.read("b.XHTML").decode() == chapter
    document = read_document(book, "epub", "en", target="pt_BR")
    with opened(next(document.written(by_words(str)(document.parts)))) as found:
        wanted = package.replace('<package xml:lang="en"', '<package xml:lang="pt-BR"')
        assert found.read("a.opf").decode() == wanted.replace("en-GB", "pt-BR")
        wanted = chapter.replace("'en'", '"pt-BR"').replace('"en"', '"pt-BR"')
        assert found.read("b.XHTML").decode() == wanted
        assert found.read("toc.ncx").decode() == ncx


PIECES = {
    "docx": [
        run("a dog ", "<w:b/>"),
        run(" sleeps &amp; it. "),
        run(" "),
        '<w:hyperlink r:id="x">' + run("é ") + run("zq", "<w:i/>") + "</w:hyperlink>",
        '<w:r><w:footnoteReference w:id="2"/></w:r>',
        "<w:r><w:tab/><w:t>犬は寝る。</w:t></w:r>",
        "<w:ins>" + run("m. ") + "</w:ins>",
        "<w:r><w:txbxContent>" + paragraph(run("a box")) + "</w:txbxContent></w:r>",
        run("no\u00a0break\u2003x"),
        *[
            f"<{tag}><w:r><{space}/></w:r>{run('b ')}</{tag.partition(' ')[0]}>"
            for tag in ("w:ins", "w:moveTo", "w:smartTag", "w:customXml", "w:hyperlink w:y='1'")
            for space in ("w:tab", "w:br", "w:cr")
        ],
        f"<w:sdt><w:sdtPr/><w:sdtContent><w:r><w:tab/></w:r>{run('b ')}</w:sdtContent></w:sdt>",
    ],
    "pptx": [
        "<a:r><a:rPr b='1'/><a:t>a dog </a:t></a:r>",
        "<a:r><a:t> sleeps. &lt;x </a:t></a:r>",
        "<a:br/>",
        "<a:fld><a:t>3</a:t></a:fld>",
    ],
    "xlsx": [
        "<r><rPr><b/></rPr><t>a dog </t></r>",
        "<r><t> sleeps. &lt;x </t></r>",
        "<r><rPr><i/></rPr><t>\u00a0é\nx </t></r>",
    ],
    "odt": [
        "a dog ",
        " sleeps &amp; it. ",
        "<text:span x='1'>red <text:a y='2'>cat</text:a></text:span>",
        "<text:s/>",
        "<text:bookmark z='3'/>",
        "<text:note><text:p>a note</text:p></text:note>",
        "<text:span x='4'> </text:span>",
        "no\u00a0break&#160;x",
        "<text:span x='5'><text:tab/>b </text:span>",
        "<text:a x='6'><text:line-break/>b </text:a>",
    ],
    "epub": [
        "a <b>dog</b> ",
        "sleeps. ",
        "<a href='x'>é<i>x</i></a>",
        "<br/>",
        "<img alt='a cat'/>",
        "no\u00a0break&#160;x",
        "<svg><text>b</text></svg>",
    ],
}
PIECES["odp"] = PIECES["ods"] = PIECES["odt"]
AROUND = {
    "docx": paragraph("{}"),
    "pptx": "<a:p>{}</a:p>",
    "xlsx": "<si>{}</si>",
    **dict.fromkeys(("odt", "odp", "ods"), "<text:p>{}</text:p>"),
    "epub": "<p>{}</p>",
}
RUN_TAGS = [  # runs may be merged
    *["w:r", "w:t", "w:rPr", "w:b", "w:i", "a:r", "a:t", "a:rPr", "r", "t", "rPr", "b", "i"],
]


def structure(content):
    """Counts elements with their attributes, and letters."""
    names = {*re.findall("[a-z]+(?=:)", content)} - {"xml"}
    declared = " ".join(f'xmlns:{name}="{name}"' for name in sorted(names))
    root = ElementTree.fromstring(f"<x {declared}>{content}</x>")
    elements = Counter(
        (re.sub("{(.*)}", r"\1:", one.tag), str({**one.attrib, "alt": ""})) for one in root.iter()
    )
    kept = {key: count for key, count in elements.items() if key[0] not in RUN_TAGS}
    texts = "".join(root.itertext()) + "".join(one.get("alt", "") for one in root.iter())
    return kept, Counter(filter(str.isalnum, capitals(texts)))


@pytest.mark.parametrize("format", ARCHIVES)
@pytest.mark.parametrize("count", [40, pytest.param(500, marks=pytest.mark.slow)])
def test_random_documents_keep_their_elements_and_letters(format, count):
    generator = random.Random(1)
    for _ in range(count):
        content = ""
        for _ in range(generator.randint(1, 3)):
            pieces = generator.choices(PIECES[format], k=generator.randint(0, 7))
            content += AROUND[format].format("".join(pieces))
        assert translated(format, content, by_words(str)) == content
        for reverse in (False, True):
            result = translated(format, content, by_words(capitals, reverse))
            assert structure(result) == structure(content), content


@pytest.mark.parametrize("format", ARCHIVES)
def test_other_members_come_back_in_their_order(format):
    document = archive(format, AROUND[format].format(PIECES[format][0]))
    read = read_document(document, format, "en")
    (result,) = read.written(by_words(capitals)(read.parts))
    with opened(document) as source, opened(result) as found:
        assert found.namelist() == source.namelist()
        for one, other in zip(source.infolist(), found.infolist(), strict=True):
            assert one.compress_type == other.compress_type and one.date_time == other.date_time
        assert found.read("picture.png") == source.read("picture.png")


def bomb(size, **members):
    """Makes an archive with a member that claims a given unpacked size."""
    content = archive("docx", "", **members)
    return content.replace((1000).to_bytes(4, "little"), size.to_bytes(4, "little"))


@pytest.mark.parametrize(
    ("content", "received", "about"),
    [
        (b"", "", "ZIP"),
        (b"PK\x03\x04 cut short", "", "ZIP"),
        (archive("docx", "<w:p/>")[:-40], "", "ZIP"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "old or protected", "LibreOffice"),
        (archive("odt", ""), "mimetype", "[Content_Types].xml"),
        (archive("pptx", ""), "mimetype", "a file of Word"),
        (archive("docx", "<w:p>"), "mismatched tag (word/document.xml, line 2)", "XML"),
        (archive("docx", "&e;"), "undefined entity", "XML"),
        (archive("docx", "<w:x>" * 300), "w:x (word/document.xml, line 2)", "nest"),
        (archive("docx", "<w:x/>" * 1_200_000), "1,200,0", "tags"),
        (archive("docx", "<w:x " + "a='' " * 1_200_000 + "/>"), "1,200,01", "attributes"),
        (bomb(2 << 30, a_bin=b"0" * 1000), "", "unpacked"),
        (bomb(1 << 28, word__header1_xml=b"0" * 1000), "header1.xml: 268435456", "text"),
        (archive("docx", "").replace(b"mimetypex", b"mimetypey", 1), "mimetype", "ZIP"),
    ],
)
def test_what_is_no_document_ends_in_one_line(content, received, about):
    with refused(None, received, "the document", about):
        read_document(content, "docx", "en")


def test_a_protected_document_is_refused():
    content = bytearray(archive("docx", "<w:p/>"))
    for place in (match.start() for match in re.finditer(b"PK\x01\x02", bytes(content))):
        content[place + 8] |= 1
    with refused(None, "password", "the document", "protected"):
        read_document(bytes(content), "docx", "en")
    key = "<x>encryption-data</x>"
    with refused(None, "password", "the document", "protected"):
        read_document(archive("odt", "", **{"META-INF__manifest_xml": key}), "odt", "en")


def test_there_may_be_ten_thousand_members():
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w") as target:
        for number in range(10_001):
            target.writestr(f"{number}", b"")
    with refused(None, 10_001, "the document", "members"):
        read_document(result.getvalue(), "docx", "en")


def read_members(document, format, change=capitals, target=None):
    """Translates a document; returns its members as text, and the counts of what stayed."""
    read = read_document(document, format, "en", target=target)
    (result,) = read.written(by_words(change)(read.parts))
    with opened(result) as found:
        members = {name: found.read(name).decode("latin-1") for name in found.namelist()}
    return members, +read.left


@pytest.mark.parametrize("format", ["odt", "odp", "ods", "epub"])
@pytest.mark.parametrize("space", ["\u00a0", "&#160;", "\u2003", "\u202f"])
def test_no_space_makes_a_document_unreadable(format, space):
    around = "<p>{}</p>" if format == "epub" else "<text:p>{}</text:p>"
    content = around.format(f"{space}Hello.{space}A <b>dog</b>{space}sleeps.{space}")
    content = content.replace("b>", "text:span>") if format != "epub" else content
    for change in (str, capitals, lambda text: f"\u00a0{text.upper()}\u00a0!"):
        result = translated(format, content, by_words(change))
        ElementTree.fromstring(f"<x {declared('text')}>{result}</x>")


@pytest.mark.parametrize("first", ["<w:tab/>", "<w:br/>", "<w:cr/>"])
@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ('<w:ins w:id="1">', "</w:ins>"),
        ('<w:hyperlink r:id="x">', "</w:hyperlink>"),
        ("<w:sdt><w:sdtPr/><w:sdtContent>", "</w:sdtContent></w:sdt>"),
        ("<w:smartTag>", "</w:smartTag>"),
        ('<w:moveTo w:id="1">', "</w:moveTo>"),
        ("<w:customXml>", "</w:customXml>"),
    ],
)
def test_what_is_around_a_whole_paragraph_may_begin_with_a_space(opening, closing, first):
    content = f"{opening}<w:r>{first}</w:r>{run('A dog.')}{closing}"
    assert shouted(content) == f"{opening}<w:r>{first}</w:r>{run('A DOG.')}{closing}"


def test_a_translation_that_would_damage_a_member_is_not_written(capsys):
    document = read_document(archive("odt", "<text:p>a</text:p><text:p>b</text:p>"), "odt", "en")
    for broken in (
        "x</text:p><text:p>y",
        "<text:p>",
        "&nbsp;",
        "</text:p>",
        "<text:span>x",
        "<d:x/>",
    ):
        left = document.left["damaged"]
        parts = [
            part if isinstance(part, str) else f"{broken}{part.source}" for part in document.parts
        ]
        (result,) = document.written(parts)
        assert content_of("odt", result) == "<text:p>a</text:p><text:p>b</text:p>"
        assert document.left["damaged"] == left + 1
        assert "content.xml" in capsys.readouterr().err
    assert "<text:span>x</text:span>a" in content_of(
        "odt",
        next(
            document.written(
                part if isinstance(part, str) else f"<text:span>x</text:span>{part.source}"
                for part in document.parts
            )
        ),
    )


@pytest.mark.parametrize("prefix", ["ns0:", ""])
def test_any_prefix_of_a_namespace_will_do(prefix):
    document = archive("docx", paragraph(run("A "), run("red", "<w:b/>"), run(" dog.")))
    with opened(document) as found:
        text = found.read("word/document.xml").decode()
    attribute = "ns0:" if prefix else ""
    for before, after in (("<w:", f"<{prefix}"), ("</w:", f"</{prefix}"), (" w:", f" {attribute}")):
        text = text.replace(before, after)
    text = text.replace("xmlns:w=", f"xmlns:{prefix[:-1]}=" if prefix else "xmlns=")
    members, _ = read_members(archive("docx", "", **{"word__document_xml": text}), "docx")
    wanted = text.replace("A <", "A <").replace("red<", "RED<").replace(" dog.", " DOG.")
    assert members["word/document.xml"] == wanted


RUNS_WITH_NAMESPACES = {
    "docx": '<w:p><w:r xmlns:d="urn:d"><w:rPr><d:glow/></w:rPr><w:t>A red</w:t></w:r>'
    "<w:r><w:t> dog</w:t></w:r></w:p>",
    "pptx": '<a:p><a:r xmlns:d="urn:d"><a:rPr><d:glow/></a:rPr><a:t>A red</a:t></a:r>'
    "<a:r><a:t> dog</a:t></a:r></a:p>",
    "xlsx": f'<si><d:r xmlns:d="{NAMESPACES["x"]}"><d:rPr><b/></d:rPr><t>A red</t></d:r>'
    "<r><t> dog</t></r></si>",
}


@pytest.mark.parametrize("format", RUNS_WITH_NAMESPACES)
@pytest.mark.parametrize("reverse", [False, True])
def test_a_run_may_declare_the_namespace_of_its_properties(format, reverse):
    content = RUNS_WITH_NAMESPACES[format]
    result = translated(format, content, by_words(capitals, reverse))
    before, after = (
        ElementTree.fromstring(f"<x {declared('w', 'a')} xmlns='{NAMESPACES['x']}'>{text}</x>")
        for text in (content, result)
    )
    assert {element.tag for element in after.iter()} == {element.tag for element in before.iter()}
    assert sorted("".join(after.itertext()).split()) == ["A", "DOG", "RED"]


def test_strict_documents_and_other_names_of_the_main_member():
    members = {"word/document2.xml": f"<w:x {declared('w')}>{paragraph(run('a dog'))}</w:x>"}
    members["word/document2.xml"] = members["word/document2.xml"].replace(
        NAMESPACES["w"], "http://purl.oclc.org/ooxml/wordprocessingml/main"
    )
    types = types_of(["word/document.xml"]).replace("document.xml", "document2.xml")
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w") as target:
        for name, text in {"[Content_Types].xml": types, **members}.items():
            target.writestr(name, text)
    found, _ = read_members(result.getvalue(), "docx")
    assert "A DOG" in found["word/document2.xml"]


def test_a_table_of_contents_gets_the_translations_of_the_headings():
    sign = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'.format
    code = "<w:r><w:instrText>{}</w:instrText></w:r>".format
    unchecked = "<w:noProof/>"
    number = f"{sign('begin')}{code('PAGEREF x')}{sign('separate')}{run('3')}{sign('end')}"
    entry = run("a heading", unchecked) + "<w:r><w:tab/></w:r>" + number
    before = f"{sign('begin')}{code('TOC')}{sign('separate')}"
    content = f'{before}<w:hyperlink w:anchor="x">{entry}</w:hyperlink>'
    assert shouted(content) == content.replace("a heading", "A HEADING")
    repeated = f"{sign('begin')}{code('REF x')}{sign('separate')}{run('a heading')}{sign('end')}"
    document = read_document(
        archive("docx", paragraph(run("See "), repeated, run(" below."))), "docx", "en"
    )
    assert [segment.text for segment in document.segments] == ["See a heading below.", "a heading"]


def test_what_people_see_outside_paragraphs_of_a_word_document():
    content = (
        paragraph('<w:r><w:pict><v:shape alt="a dog"><v:textpath string="a mark"/></v:shape>'
                  "</w:pict></w:r>")
        + paragraph('<w:hyperlink w:tooltip="a hint">', run("x"), "</w:hyperlink>")
        + paragraph("<w:sdt><w:sdtPr><w:dropDownList>"
                    '<w:listItem w:displayText="one" w:value="one"/></w:dropDownList></w:sdtPr>'
                    "<w:sdtContent>", run("one"), "</w:sdtContent></w:sdt>")
        + '<w:tblPr><w:tblCaption w:val="a table"/></w:tblPr>'
    )  # fmt: skip
    wanted = content.replace("a dog", "A DOG").replace("a mark", "A MARK")
    wanted = wanted.replace("a hint", "A HINT").replace('displayText="one"', 'displayText="ONE"')
    wanted = wanted.replace("a table", "A TABLE").replace(">one<", ">ONE<").replace(">x<", ">X<")
    assert translated("docx", content, by_words(capitals)) == wanted


def test_ruby_in_word_is_read_without_its_annotation():
    ruby = "<w:r><w:ruby><w:rt>{}</w:rt><w:rubyBase>{}</w:rubyBase></w:ruby></w:r>"
    assert shouted(run("A "), ruby.format(run("zq"), run("dog")), run(".")) == run("A DOG.")


def test_words_of_numbers_but_no_bullets():
    level = '<w:lvl><w:numFmt w:val="{}"/><w:lvlText w:val="{}"/></w:lvl>'
    text = level.format("decimal", "Chapter %1.") + level.format("bullet", "ox")
    text += level.format("lowerLetter", "%1)")
    numbering = f"<w:numbering {declared('w')}>{text}</w:numbering>"
    members, _ = read_members(archive("docx", "", **{"word__numbering_xml": numbering}), "docx")
    assert members["word/numbering.xml"] == numbering.replace("Chapter", "CHAPTER")


def test_the_default_language_of_checks_becomes_that_of_the_translation():
    lang = '<w:lang w:val="{}" w:eastAsia="ja-JP"/>'
    default, other = lang.format("en-US"), lang.format("fr-FR")
    styles = f"<w:styles {declared('w')}>{default}{other}{default}</w:styles>"
    members, _ = read_members(
        archive("docx", "", **{"word__styles_xml": styles}), "docx", str, "de"
    )
    assert members["word/styles.xml"] == styles.replace("en-US", "de")
    content = (
        '<style:default-style><style:text-properties fo:language="en" fo:country="US"/>'
        "</style:default-style>"
    )
    document = read_document(archive("odt", content), "odt", "en", target="pt_BR")
    (result,) = document.written(by_words(str)(document.parts))
    assert 'fo:language="pt" fo:country="BR"' in content_of("odt", result)


def test_the_default_language_of_slides_becomes_that_of_the_translation():
    style = '<p:txStyles><a:lvl1pPr><a:defRPr lang="en-US" sz="1"/></a:lvl1pPr></p:txStyles>'
    text = f"<p:x {declared('p', 'a')}>{style}</p:x>"
    members = {"ppt__slideMaster1_xml": text, "ppt__presentation_xml": text}
    for target in ("de", None):
        found, _ = read_members(archive("pptx", "", **members), "pptx", str, target)
        for name in ("ppt/slideMaster1.xml", "ppt/presentation.xml"):
            assert found[name] == text.replace("en-US", target or "en-US")


def test_titles_charts_and_comments_on_slides():
    core = f"<x {declared('dc')}><dc:title>a title</dc:title><dc:creator>ann</dc:creator></x>"
    point = "<c:pt><c:v>{}</c:v></c:pt>"
    chart = (
        f"<c:x {declared('c', 'a')}><c:strCache>{point.format('a year')}</c:strCache>"
        f"<c:numCache>{point.format('1E5')}</c:numCache></c:x>"
    )
    comment = f"<p:x {declared('p')}><p:cm><p:text>a note</p:text></p:cm></p:x>"
    layout = (
        f"<p:x {declared('p', 'a')}><p:sp><p:ph/><a:p><a:r><a:t>click</a:t></a:r></a:p></p:sp>"
        "<p:sp><a:p><a:r><a:t>a firm</a:t></a:r></a:p></p:sp></p:x>"
    )
    members = {
        "docProps__core_xml": core,
        "charts__chart1_xml": chart,
        "ppt__comments1_xml": comment,
        "ppt__slideLayout1_xml": layout,
    }
    found, _ = read_members(archive("pptx", "", **members), "pptx")
    assert found["docProps/core.xml"] == core.replace("a title", "A TITLE")
    assert found["charts/chart1.xml"] == chart.replace("a year", "A YEAR")
    assert found["ppt/comments1.xml"] == comment.replace("a note", "A NOTE")
    assert found["ppt/slideLayout1.xml"] == layout.replace("a firm", "A FIRM")


def test_texts_of_cells_are_translated_as_in_formulas_and_tables():
    strings = (
        "<si><t>a dog</t></si><si><t>Yes</t></si><si><t>Amount</t></si><si><t>12</t></si>"
        '<si><t xml:space="preserve"> one &amp; \ntwo_x000D_</t></si>'
        "<si><r><t>a </t></r><r><rPr><b/></rPr><t>red</t></r><r><t> cat</t></r>"
        "<rPh><t>zq</t></rPh></si>"
    )
    sheet = (
        f'<worksheet xmlns="{NAMESPACES["x"]}"><c t="s"><v>0</v></c><c><f>IF(A1="Yes",1,0)</f></c>'
        '<c t="str"><f>A1</f><v>a dog</v></c><c t="inlineStr"><is><t>a cell</t></is></c>'
        '<oddHeader>&amp;C&amp;"Arial,Bold"a header &amp;P</oddHeader></worksheet>'
    )
    table = f'<table xmlns="{NAMESPACES["x"]}"><tableColumn id="1" name="Amount"/></table>'
    members = {"xl__worksheet1_xml": sheet, "xl__table1_xml": table}
    document = archive("xlsx", strings, **members)
    found, left = read_members(document, "xlsx")
    wanted = strings.replace("a dog", "A DOG").replace("one", "ONE").replace("two", "TWO")
    wanted = wanted.replace("<r><t>a ", '<r><t xml:space="preserve">A ')
    wanted = wanted.replace("<t>red", '<t xml:space="preserve">RED')
    wanted = wanted.replace("<t> cat", '<t xml:space="preserve"> CAT')
    wanted = wanted.replace("Yes", "YES").replace("Amount", "AMOUNT")
    (_, result) = found["xl/sharedStrings.xml"].split("\n", 1)
    assert result.removeprefix(f'<sst xmlns="{NAMESPACES["x"]}">') == f"{wanted}</sst>"
    assert found["xl/worksheet1.xml"] == sheet.replace("a cell", "A CELL").replace("Yes", "YES")
    assert found["xl/table1.xml"] == table.replace("Amount", "AMOUNT")
    assert left == {"formula": 1, "header": 1, "ruby": 1}


def test_readings_of_cells_stay_and_count_as_left():
    reading = "<rPh><t>{}</t></rPh>"
    content = f"<si><t>a dog</t>{reading.format('zq')}</si><si><t>a cat</t>{reading.format(1)}</si>"
    found, left = read_members(archive("xlsx", content), "xlsx")
    assert content.replace("a dog", "A DOG").replace("a cat", "A CAT") in found[NAMES["xlsx"]]
    assert left == {"ruby": 1}


def test_sheets_without_text_may_be_large():
    cells = "".join(f'<c r="A{number}" t="s"><v>{number}</v></c>' for number in range(300_000))
    cells += '<c t="str"><f>A1</f><v>a dog</v></c><c t="str"><f>A2</f><v>12</v></c>'
    sheet = f'<worksheet xmlns="{NAMESPACES["x"]}"><sheetData>{cells}</sheetData></worksheet>'
    document = archive("xlsx", "<si><t>a dog</t></si>", xl__worksheet1_xml=sheet)
    found, left = read_members(document, "xlsx")
    assert found["xl/worksheet1.xml"] == sheet and "A DOG" in found["xl/sharedStrings.xml"]
    assert left == {"formula": 1}
    for name in ("xl__worksheet1_xml", "xl__sharedStrings_xml"):
        sheet = f'<worksheet>{"<is/>" * 1_200_000}<c t="inlineStr"/></worksheet>'
        with refused(None, "1,200,00", "the document", "tags and attributes"):
            read_document(archive("xlsx", "", **{name: sheet}), "xlsx", "en")


@pytest.mark.parametrize("piece", ["<f ", "<c ", '<c t="str">', '<c t="str"><v>1', "<tableColumn "])
def test_the_time_for_a_sheet_is_in_proportion_to_its_length(piece):
    document = archive("xlsx", "", xl__worksheet1_xml=piece * 20_000, xl__table1_xml=piece * 20_000)
    start = time.process_time()
    read_document(document, "xlsx", "en")
    assert time.process_time() - start < 2


def test_cells_of_libreoffice_that_are_computed_stay():
    cell = "<table:table-cell {}><text:p>{}</text:p></table:table-cell>"
    namespace = declared("table")
    content = f"<table:table {namespace}>" + "".join([
        cell.format('office:value-type="string"', "a dog"),
        cell.format('office:value-type="date"', "3 May"),
        cell.format('office:value-type="string" table:formula="of:=A1"', "a dog"),
        cell.format('office:value-type="float" table:formula="IF(B1=&quot;yes&quot;;1)"', "1"),
        cell.format('office:value-type="string"', "yes"),
    ]) + "</table:table>"  # fmt: skip
    document = read_document(archive("ods", content), "ods", "en")
    assert [segment.text for segment in document.segments] == ["a dog"]
    assert +document.left == {"formula": 3}


def test_texts_of_libreoffice_that_formulas_see_stay():
    cell = "<table:table-cell {}><text:p>{}</text:p></table:table-cell>"
    for formula, wanted in (
        ("of:=VLOOKUP(&quot;A DOG&quot;;[.A1:.B2];2;0)", ["a cat"]),
        ("of:=COUNTIF([.A1:.A2];&quot;*dog*&quot;)", ["a cat"]),
        ("of:=MATCH(&quot;a dog &quot;;[.A1:.B1];0)", ["a cat"]),
        ("of:=LEN([$Data.$B$1])", ["a dog"]),
        ("of:=SUM(INDIRECT([.A1]))", ["a cat"]),
        ("of:=LEN(Names)", ["a dog"]),
        ("of:=[.A1]&amp;[.B1]", ["a dog", "a cat"]),
    ):
        cells = cell.format("", "a dog") + cell.format("", "a cat")
        cells += cell.format(f'office:value-type="float" table:formula="{formula}"', "1")
        content = (
            f'<table:table {declared("table")} table:name="Data"><table:table-row>{cells}'
            '</table:table-row></table:table><table:named-range table:name="Names" '
            f'{declared("table")} table:cell-range-address="$Data.$B$1"/>'
        )
        document = read_document(archive("ods", content), "ods", "en")
        assert [segment.text for segment in document.segments] == wanted
        assert +document.left == ({"formula": 1} if len(wanted) < 2 else {})


def test_comments_on_computed_cells_and_objects_in_texts_are_translated():
    cell = (
        f'<table:table-cell {declared("table")} table:formula="A1"><office:annotation>'
        "<text:p>a note</text:p></office:annotation><text:p>zq</text:p></table:table-cell>"
    )
    members, left = read_members(archive("ods", cell), "ods")
    assert cell.replace("a note", "A NOTE") in members["content.xml"]
    assert left == {"formula": 1}
    _, left = read_members(archive("ods", cell.replace("zq", "1")), "ods")
    assert left == {}
    chart = f"<x {declared('text')}><text:p>a title</text:p></x>"
    members, _ = read_members(archive("odt", "", Obj1__content_xml=chart), "odt")
    assert members["Obj1/content.xml"] == chart.replace("a title", "A TITLE")


def test_pieces_that_stay_are_counted():
    deleted = '<w:del w:id="2"><w:r><w:delText>cat</w:delText></w:r></w:del>'
    content = paragraph(
        run("A dog "), deleted, run("zq", "<w:vanish/>"), "<m:oMath><m:t>x</m:t></m:oMath>",
        '<w:fldSimple w:instr="DATE">' + run("May") + "</w:fldSimple>",
        run("code", '<w:rStyle w:val="SourceCode"/>'),
    )  # fmt: skip
    _, left = read_members(archive("docx", content), "docx")
    assert left == {"deleted": 1, "hidden": 1, "equation": 1, "field": 1, "code": 1}
    content = (
        "<text:tracked-changes><text:deletion><text:p>a</text:p></text:deletion>"
        "</text:tracked-changes><text:p>a <text:date>May</text:date></text:p>"
    )
    _, left = read_members(archive("odt", content), "odt")
    assert left == {"deleted": 1, "field": 1}


def test_code_without_letters_does_not_count_as_left():
    style = '<w:pPr><w:pStyle w:val="SourceCode"/></w:pPr>'
    box = "<w:r><w:pict><w:txbxContent>{}</w:txbxContent></w:pict></w:r>"
    box = box.format(paragraph(run("a dog")))
    field = f'<w:fldSimple w:instr="SEQ x">{box}</w:fldSimple>'
    for content, count in (
        (paragraph(run("} // 1"), properties=style), {}),
        (paragraph(run("} // x"), properties=style), {"code": 1}),
        (paragraph(box, properties=style), {}),
        (paragraph(box, run("x"), properties=style), {"code": 1}),
        (paragraph(field), {}),
    ):
        found, left = read_members(archive("docx", content), "docx")
        assert left == count
        assert content.replace("a dog", "A DOG") in found["word/document.xml"]
    code = '<text:p text:style-name="Source_20_Text">{}</text:p>'
    for text, count in (("} // 1", {}), ("} // x", {"code": 1})):
        _, left = read_members(archive("odt", code.format(text)), "odt")
        assert left == count


@pytest.mark.parametrize(
    "format, around",
    [
        ("docx", "<w:p><w:r><w:t>{}</w:t></w:r></w:p>"),
        ("xlsx", "<si><t>{}</t></si>"),
        ("odt", "<text:p>{}</text:p>"),
        ("epub", "<p>{}</p>"),
    ],
)
def test_reading_and_writing_take_little_memory(format, around):
    sentences = [f"A small dog, number {number}, sleeps." for number in range(3000)]
    content = "".join(map(around.format, sentences))
    document = archive(format, content)
    read_document(document, format, "en")  # imports modules
    tracemalloc.start()
    read = read_document(document, format, "en")
    texts = (
        part if isinstance(part, str) else part.source.replace("small dog", "SMALL DOG")
        for part in read.parts
    )
    (result,) = read.written(texts)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert content_of(format, result).count("SMALL DOG") == 3000
    per_tag = (peak - len(content)) / content.count("<")
    assert per_tag * MOST_MARKUP <= 400e6


def test_an_item_of_a_book_may_lack_its_path():
    package = PACKAGE.format("").replace("<manifest>", "<manifest><item media-type='text/html'/>")
    found, _ = read_members(archive("epub", "<p>a</p>", a_opf=package), "epub")
    assert "<p>A</p>" in found["chapter.xhtml"]


def test_a_chapter_is_xml_even_if_it_does_not_say_so(capsys):
    members = {"chapter_xhtml": "<span>A dog.</span>"}
    found, left = read_members(
        archive("epub", "", **members), "epub", lambda text: f"\u00a0{capitals(text)}"
    )
    assert found["chapter.xhtml"].encode("latin-1").decode() == "<span>\u00a0A DOG.</span>"
    assert left == {} and capsys.readouterr().err == ""


def test_a_book_with_copy_protection_is_refused_but_fonts_may_be_encrypted():
    reference = '<x><CipherReference URI="{}"/></x>'
    for name, is_refused in (("chapter.xhtml", True), ("fonts/a.otf", False)):
        members = {"META-INF__encryption_xml": reference.format(name)}
        document = archive("epub", "<p>a</p>", **members)
        if is_refused:
            with refused(None, name, "the document", "copy protection"):
                read_document(document, "epub", "en")
        else:
            read_document(document, "epub", "en")


@pytest.mark.parametrize("format", ["docx", "pptx", "xlsx"])
def test_names_of_members_may_have_backslashes_and_another_case(format):
    """As some programs write them, and Excel and Word read them."""
    content = {
        "docx": paragraph(run("A dog.")),
        "pptx": "<a:p><a:r><a:t>A dog.</a:t></a:r></a:p>",
        "xlsx": "<si><t>A dog.</t></si>",
    }[format]
    written = io.BytesIO()
    with opened(archive(format, content)) as source, zipfile.ZipFile(written, "w") as target:
        for name in source.namelist():
            new = "[content_types].xml" if name == "[Content_Types].xml" else name
            target.writestr(new.replace("/", "\\"), source.read(name))
    document = read_document(written.getvalue(), format, "en", is_reviewed=True)
    (result,) = document.written(by_words(capitals)(document.parts))
    assert content_of(format, result) == content.replace("A dog.", "A DOG.")
    assert "[content_types].xml" in opened(result).namelist()
