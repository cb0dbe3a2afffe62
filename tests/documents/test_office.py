"""Office documents and e-books: archives in which only text is translated."""

import io
import random
import re
import zipfile
from collections import Counter
from xml.etree import ElementTree

import pytest

from keras_transformer.documents.alignment import units
from keras_transformer.documents.formats import FORMATS, read_document
from keras_transformer.documents.translation import AlignedText, DocumentTranslator, Model
from keras_transformer.translate.answers import Link
from tests.documents.archives import archive, content_of, translated
from tests.documents.doubles import capitals
from tests.refusals import refused

ARCHIVES = [name for name, format in FORMATS.items() if format.is_archive]


def by_words(change, reverse=False):
    """Returns a function that translates parts word by word, in order or in reverse."""

    def align(texts):
        return [_aligned(text, change, reverse) for text in texts]

    def count_subwords(texts):
        return [len(text.split()) for text in texts]

    model = Model(
        lambda texts: [answer.text for answer in align(texts)], align, count_subwords, 400
    )
    return DocumentTranslator(model, "en", "keep").translate


def _aligned(text, change, reverse):
    if not reverse:
        return AlignedText(change(text), [Link(unit, unit) for unit in units(text)])
    words, links, length = [], [], 0
    for start, end in reversed(units(text)):
        word = change(text[start:end])
        words.append(word)
        links.append(Link((start, end), (length, length + len(word))))
        length += len(word) + 1
    return AlignedText(" ".join(words), links)


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

    for code, shown in ((" HYPERLINK x", "DOG"), (" REF x", "dog")):
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
        run("zq", "<w:noProof/>"),
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


def test_headers_notes_and_comments_are_members_of_their_own():
    members = {
        f"word__{name}_xml": f'<w:x xmlns:w="w">{paragraph(run("a dog"))}</w:x>'
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
    members = {
        "a_opf": '<x xmlns:dc="d"><dc:title>a book</dc:title><dc:language>en</dc:language></x>',
        "toc_ncx": "<ncx><text>a chapter</text></ncx>",
    }
    content = "<script src='x'/><p>A <b>dog</b> &amp; it</p>"
    document = read_document(archive("epub", content, **members), "epub", "en")
    (result,) = document.written(by_words(capitals)(document.parts))
    assert content_of("epub", result) == "<script src='x'/><p>A <b>DOG</b> &amp; IT</p>"
    with opened(result) as found:
        assert b"<dc:title>A BOOK</dc:title><dc:language>en<" in found.read("a.opf")
        assert found.read("toc.ncx") == b"<ncx><text>A CHAPTER</text></ncx>"


def test_a_book_says_the_language_of_its_translation():
    package = (
        '<package xml:lang="en"><dc:language id="x">en-GB</dc:language>'
        '<dc:title xml:lang="en">a book</dc:title></package>'
    )
    chapter = "<html lang='en' xml:lang=\"en\"><body><p lang='fr'>un x</p></body></html>"
    ncx = '<ncx version="2"><text>1</text></ncx>'
    members = {"a_opf": f"<x xmlns:dc='d'>{package}</x>", "b_XHTML": chapter, "toc_ncx": ncx}
    book = archive("epub", "", **members)
    unknown = read_document(book, "epub", "en")
    with opened(next(unknown.written(by_words(str)(unknown.parts)))) as found:
        assert found.read("b.XHTML").decode() == chapter
    document = read_document(book, "epub", "en", target="pt_BR")
    with opened(next(document.written(by_words(str)(document.parts)))) as found:
        wanted = package.replace('xml:lang="en"><dc:l', 'xml:lang="pt-BR"><dc:l')
        assert wanted.replace("en-GB", "pt-BR") in found.read("a.opf").decode()
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
    ],
    "pptx": [
        "<a:r><a:rPr b='1'/><a:t>a dog </a:t></a:r>",
        "<a:r><a:t> sleeps. &lt;x </a:t></a:r>",
        "<a:br/>",
        "<a:fld><a:t>3</a:t></a:fld>",
    ],
    "odt": [
        "a dog ",
        " sleeps &amp; it. ",
        "<text:span x='1'>red <text:a y='2'>cat</text:a></text:span>",
        "<text:s/>",
        "<text:bookmark z='3'/>",
        "<text:note><text:p>a note</text:p></text:note>",
        "<text:span x='4'> </text:span>",
    ],
    "epub": [
        "a <b>dog</b> ",
        "sleeps. ",
        "<a href='x'>é<i>x</i></a>",
        "<br/>",
        "<img alt='a cat'/>",
    ],
}
PIECES["odp"] = PIECES["odt"]
AROUND = {
    "docx": paragraph("{}"),
    "pptx": "<a:p>{}</a:p>",
    "odt": "<text:p>{}</text:p>",
    "odp": "<text:p>{}</text:p>",
    "epub": "<p>{}</p>",
}
OF_RUNS = ("w:r", "w:t", "w:rPr", "w:b", "w:i", "a:r", "a:t", "a:rPr")  # runs may be merged


def structure(content):
    """Counts elements with their attributes, and letters."""
    names = {*re.findall("[a-z]+(?=:)", content)} - {"xml"}
    declared = " ".join(f'xmlns:{name}="{name}"' for name in sorted(names))
    root = ElementTree.fromstring(f"<x {declared}>{content}</x>")
    elements = Counter(
        (re.sub("{(.*)}", r"\1:", one.tag), str({**one.attrib, "alt": ""})) for one in root.iter()
    )
    kept = {key: count for key, count in elements.items() if key[0] not in OF_RUNS}
    texts = "".join(root.itertext()) + "".join(one.get("alt", "") for one in root.iter())
    return kept, Counter(filter(str.isalnum, capitals(texts)))


@pytest.mark.parametrize("format", ARCHIVES)
@pytest.mark.parametrize("count", [40, pytest.param(2000, marks=pytest.mark.slow)])
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
        (archive("odt", ""), "mimetype", "word/document.xml"),
        (archive("docx", "<w:p>"), "mismatched tag (word/document.xml, line 2)", "XML"),
        (archive("docx", "&e;"), "undefined entity", "XML"),
        (archive("docx", "<w:x>" * 300), "w:x", "nest"),
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
