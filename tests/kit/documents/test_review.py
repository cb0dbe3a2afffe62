"""Marks at doubtful translations, as the readers of each format see them."""

import csv
import io
import json
import zipfile
from xml.etree import ElementTree

import polib
import pytest

from keras_transformer.kit.documents.formats import FORMATS, read_document
from keras_transformer.kit.documents.tree.segments import ReviewUnit, Segment
from keras_transformer.kit.documents.tree.translation import AlignedText
from tests.kit.documents.archives import NAMESPACES, archive, content_of, declared
from tests.kit.documents.doubles import documents
from tests.refusals import refused

W = f"{{{NAMESPACES['w']}}}"
AUTHOR = "keras-transformer"


def confidence_in(text):
    """The least of the confidences that the words of a text name, as c31 names 0.31."""
    found = [int(word[1:3]) / 100 for word in text.split() if word[0] == "c"]
    return min(found, default=None)


def judged(text):
    return AlignedText(text.upper(), (), confidence_in(text))


def reviewed(content, format, columns=None, review_below=0.5):
    document = read_document(content, format, "en", columns, is_reviewed=review_below > 0)
    translate = documents(judged, review_below=review_below).translate
    result = b"".join(document.written(translate(document.parts)))
    return result if isinstance(content, bytes) else result.decode()


def test_a_unit_is_written_with_the_least_confidence_of_its_sentences():
    def write(text, confidence):
        return f"<{text}: {confidence}>"

    def segments(*texts):
        return tuple(Segment(text, [text]) for text in texts)

    def written(*parts, review_below=0.5):
        return "".join(documents(judged, review_below=review_below).translate(parts))

    unit = ReviewUnit((*segments("c90 c80.", "c31. c70"), " ", *segments("c60")), write)
    assert written(unit, "c10 ", ReviewUnit(segments("a"), write), ReviewUnit(("12",), write)) == (
        "<C90 C80.C31. C70 C60: 0.31>c10 <A: None><12: None>"
    )
    assert unit.source == "<c90 c80.c31. c70 c60: None>"
    unit = ReviewUnit(segments("c60"), write)
    for bound, shown in ((0.0, None), (0.6, None), (0.601, 0.6)):
        assert written(unit, review_below=bound) == f"<C60: {shown}>", "if below the bound"
    assert written(ReviewUnit(segments("c60"), write, shows_any=True)) == "<C60: 0.6>"


CATALOGUE = r"""msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\n"

# for translators
#: a.c:1
#, c-format
msgctxt "menu"
msgid "c31 %s"
msgstr ""

msgid "c70"
msgid_plural "c40"
msgstr[0] ""
msgstr[1] ""
msgid "c50"
msgstr ""

#, python-format
msgid "c90"
msgstr ""

msgid "c10"
msgstr "done"
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_doubtful_entries_of_a_catalogue_are_fuzzy(line_end):
    catalogue = CATALOGUE.replace("\n", line_end)
    written = reviewed(catalogue, "po")
    entries = polib.pofile(written)
    assert [(entry.msgid, entry.flags) for entry in entries] == [
        ("c31 %s", ["fuzzy", "c-format"]),
        ("c70", ["fuzzy"]),
        ("c50", []),
        ("c90", ["python-format"]),
        ("c10", []),
    ]
    assert (entries[0].tcomment, entries[0].occurrences) == ("for translators", [("a.c", "1")])
    assert entries[1].msgstr_plural == {0: "C70", 1: "C40"}
    plain = reviewed(catalogue, "po", review_below=0.0)
    unmarked = written.replace(" fuzzy, c-", " c-").replace(f"#, fuzzy{line_end}", "")
    assert unmarked == plain
    assert read_document(written, "po", "en").segments == [], "a fuzzy entry is not overwritten"


def test_doubtful_targets_of_xliff_need_a_review():
    units = "".join(
        f"<trans-unit id='{text}'><source>{text}</source>{target}</trans-unit>"
        for text, target in (
            ("c31", ""),
            ("c40", "<target xml:lang='de' state='new' state-qualifier='x'/>"),
            ("c80", "<target state='new'/>"),
            ("none", ""),
        )
    )
    written = reviewed(f"<xliff version='1.2'>{units}</xliff>", "xliff")
    targets = list(ElementTree.fromstring(written).iter("target"))
    assert [target.text for target in targets] == ["C31", "C40", "C80", "NONE"]
    review = "needs-review-translation"
    assert [target.get("state") for target in targets] == [review, review, "new", None]
    assert targets[1].get("state-qualifier") == "x"


def test_doubtful_segments_of_the_second_xliff_have_a_substate():
    namespace = "urn:oasis:names:tc:xliff:document:2.0"
    segments = "".join(
        f"<unit id='{number}'><segment{state}><source>{text}</source></segment></unit>"
        for number, (text, state) in enumerate(
            [("c31", ""), ("c40", " state='initial'"), ("c80", "")]
        )
    )
    written = reviewed(f"<xliff xmlns='{namespace}' version='2.0'>{segments}</xliff>", "xliff")
    found = list(ElementTree.fromstring(written).iter(f"{{{namespace}}}segment"))
    review = {"state": "initial", "subState": f"{AUTHOR}:needs-review-translation"}
    assert [segment.attrib for segment in found] == [review, review, {}]
    assert [segment[1].text for segment in found] == ["C31", "C40", "C80"]


def test_a_column_of_a_table_has_the_confidence():
    rows = [["id", "text", "more"], ["1", "c31 c40", "c50"], ["2", "c70", "x"], ["3", "12", ""]]
    wanted = ["confidence", "0.310", "0.700", ""]
    for format, separator in (("tsv", "\t"), ("csv", ";"), ("csv", ",")):
        table = "\r\n".join(separator.join(row) for row in rows) + "\r\n\r\n"
        found = reviewed(table, format, ["text", "more"])
        read = list(csv.reader(io.StringIO(found, newline=""), delimiter=separator))
        assert [row[3:] for row in read] == [[value] for value in wanted] + [[]]
        assert [row[0] for row in read[:-1]] == ["id", "1", "2", "3"]
        assert reviewed(table, format, ["text"], review_below=0.0).count("confidence") == 0


def test_the_column_is_the_same_in_rows_that_lack_cells():
    assert reviewed("text\tmore\nc31\n\nc70\tx\n", "tsv", ["text"]) == (
        "text\tmore\tconfidence\nC31\t\t0.310\n\nC70\tx\t0.700\n"
    )
    assert reviewed("c31\nc70,x\n", "csv", ["1"]) == "C31,,0.310\nC70,x,0.700\n"


def test_a_key_of_json_has_the_confidence():
    lines = '{"t": ["c70", "c31. c90"], "n": 1}\n{"t": "a"}\n{"t": "12"}\n'
    found = [json.loads(line) for line in reviewed(lines, "jsonl", ["t"]).splitlines()]
    assert found == [
        {"t": ["C70", "C31. C90"], "n": 1, "confidence": 0.31},
        {"t": "A"},
        {"t": "12"},
    ]


@pytest.mark.parametrize(
    ("format", "content", "columns"),
    [
        ("tsv", "text\tconfidence\na\t1\n", ["text"]),
        ("csv", "confidence,text\n1,a\n", ["text"]),
        ("jsonl", '{"text": "a", "confidence": 1}', ["text"]),
    ],
)
def test_a_column_of_the_same_name_is_not_overwritten(format, content, columns):
    with refused(None, "confidence", "line 1"):
        reviewed(content, format, columns)
    assert "A" in reviewed(content, format, columns, review_below=0.0)


def text_of(paragraph):
    return "".join(run.text for run in paragraph.iter(f"{W}t"))


def word(content, **members):
    return archive("docx", content, **members)


def paragraph(text):
    return f"<w:p><w:pPr/><w:r><w:t>{text}</w:t></w:r></w:p>"


def members_of(document):
    with zipfile.ZipFile(io.BytesIO(document)) as source:
        return {name: source.read(name).decode("latin-1") for name in source.namelist()}


def comments_in(document):
    """Returns the author and the text of each comment, by its number."""
    root = ElementTree.fromstring(members_of(document)["word/comments.xml"])
    return {
        comment.get(f"{W}id"): (comment.get(f"{W}author"), text_of(comment))
        for comment in root.iter(f"{W}comment")
    }


def commented(document):
    """Returns the text between the beginning and the end of each comment's range."""
    root = ElementTree.fromstring(members_of(document)["word/document.xml"])
    found, around = {}, []
    for element in root.iter():
        if element.tag == f"{W}commentRangeStart":
            around.append(element.get(f"{W}id"))
        elif element.tag == f"{W}commentRangeEnd":
            around.remove(element.get(f"{W}id"))
        elif element.tag == f"{W}t":
            for number in around:
                found[number] = found.get(number, "") + element.text
    references = [element.get(f"{W}id") for element in root.iter(f"{W}commentReference")]
    assert sorted(references) == sorted(found)
    return found


def test_doubtful_paragraphs_of_a_document_have_comments():
    content = f"{paragraph('c31')}<w:tbl><w:tr><w:tc>{paragraph('c40')}</w:tc></w:tr></w:tbl>"
    header = f"<w:hdr xmlns:w='{NAMESPACES['w']}'>{paragraph('c20')}</w:hdr>"
    document = word(content + paragraph("c50"), word__header1_xml=header)
    written = reviewed(document, "docx")
    assert comments_in(written) == {
        "0": (AUTHOR, "Please check: 31% likely to be good."),
        "1": (AUTHOR, "Please check: 40% likely to be good."),
    }
    assert commented(written) == {"0": "C31", "1": "C40"}
    members = members_of(written)
    assert 'PartName="/word/comments.xml"' in members["[Content_Types].xml"]
    relations = ElementTree.fromstring(members["word/_rels/document.xml.rels"])
    (relation,) = relations
    assert relation.get("Target") == "comments.xml"
    assert relation.get("Type") == (
        "http://schemas.openxmlformats.org/officeDocument/2006/relationships/comments"
    )
    assert "comment" not in members["word/header1.xml"], "Word allows none there"
    again = reviewed(document, "docx")
    assert members_of(again) == members, "each translation has its own comments"


def test_a_document_without_doubts_stays_as_without_a_review():
    document = word(paragraph("c50") + paragraph("12"))
    assert reviewed(document, "docx") == reviewed(document, "docx", review_below=0.0)


def test_a_comment_has_no_probability_of_zero():
    ((_, text),) = comments_in(reviewed(word(paragraph("c00")), "docx")).values()
    assert text == "Please check: less than 1% likely to be good."


def test_comments_that_are_there_are_kept():
    comment = f"<w:comment w:id='7' w:author='Ada'>{paragraph('why')}</w:comment>"
    comments = f"<w:comments xmlns:w='{NAMESPACES['w']}'>{comment}</w:comments>"
    content = (
        "<w:p><w:commentRangeStart w:id='7'/><w:r><w:t>c31 x</w:t></w:r><w:commentRangeEnd "
        "w:id='7'/><w:r><w:commentReference w:id='7'/></w:r></w:p>"
    )
    written = reviewed(word(content, word__comments_xml=comments), "docx")
    assert comments_in(written) == {
        "7": ("Ada", "WHY"),
        "8": (AUTHOR, "Please check: 31% likely to be good."),
    }
    assert commented(written) == {"7": "C31 X", "8": "C31 X"}
    assert "word/_rels/document.xml.rels" not in members_of(written)


def test_relations_that_are_there_are_kept():
    namespace = "http://schemas.openxmlformats.org/package/2006/relationships"
    document = io.BytesIO(word(paragraph("c31")))
    with zipfile.ZipFile(document, "a") as changed:
        relation = '<r:Relationship Id="rId1" Type="x" Target="y"/>'
        content = f'<r:Relationships xmlns:r="{namespace}">{relation}</r:Relationships>'
        changed.writestr("word/_rels/document.xml.rels", content)
    written = reviewed(document.getvalue(), "docx")
    relations = ElementTree.fromstring(members_of(written)["word/_rels/document.xml.rels"])
    assert [each.tag for each in relations] == [f"{{{namespace}}}Relationship"] * 2
    assert [each.get("Target") for each in relations] == ["y", "comments.xml"]


def test_a_doubt_about_a_text_box_is_a_comment_on_its_paragraph():
    box = (
        "<w:r><w:pict><v:textbox><w:txbxContent>"
        f"{paragraph('c31')}</w:txbxContent></v:textbox></w:pict></w:r>"
    )
    around = f"<w:p>{box}<w:r><w:t>c90</w:t></w:r></w:p>"
    written = reviewed(word(around + f"<w:p>{box}</w:p>"), "docx")
    assert commented(written) == {"0": "C31C90"}


def test_doubtful_paragraphs_of_a_text_of_libreoffice_have_comments():
    note = "<text:note><text:note-body><text:p>c20</text:p></text:note-body></text:note>"
    content = (
        f"<text:p>c80{note}</text:p><text:list><text:list-item><text:p>c40</text:p>"
        "</text:list-item></text:list><text:h>c50</text:h><text:p/>"
    )
    styles = f"<x {declared('text')}><text:p>c10</text:p></x>"
    written = reviewed(archive("odt", content, styles_xml=styles), "odt")
    prefix = {name: f"{{{uri}}}" for name, uri in NAMESPACES.items()}
    root = ElementTree.fromstring(members_of(written)["content.xml"])
    found = []
    for paragraph in root.iter(f"{prefix['text']}p"):
        for comment in paragraph.findall(f"{prefix['office']}annotation"):
            author, text = comment
            assert (author.tag, author.text) == (f"{prefix['dc']}creator", AUTHOR)
            found.append((text.text, comment.tail))
    assert found == [
        ("Please check: 20% likely to be good.", "C80"),
        ("Please check: 40% likely to be good.", "C40"),
    ]
    assert "annotation" not in members_of(written)["styles.xml"]
    assert "annotation" not in content_of("odp", reviewed(archive("odp", content), "odp"))


def test_a_document_of_another_namespace_has_no_paragraphs():
    text = "<document><p>c31</p></document>"
    written = reviewed(word("", word__document_xml=text), "docx")
    assert members_of(written)["word/document.xml"] == text


def test_strict_documents_have_strict_comments():
    strict = "http://purl.oclc.org/ooxml/wordprocessingml/main"
    text = f"<w:document xmlns:w='{strict}'>{paragraph('c31')}</w:document>"
    members = members_of(reviewed(word("", word__document_xml=text), "docx"))
    assert f'xmlns:w="{strict}"' in members["word/comments.xml"]
    relations = members["word/_rels/document.xml.rels"]
    assert "http://purl.oclc.org/ooxml/officeDocument/relationships/comments" in relations


def test_formats_without_marks_are_read_as_without_a_review():
    assert [name for name, format in FORMATS.items() if format.review_mark] == [
        *("po", "xliff", "tsv", "csv", "jsonl", "docx", "odt")
    ]
    assert reviewed("# c31\n", "markdown") == "# C31\n"
