"""Translated workbooks compute what their sources compute."""

import re
from xml.sax.saxutils import escape

import pytest

from keras_transformer.kit.documents.formats import read_document
from tests.kit.documents.archives import NAMESPACES, archive
from tests.kit.documents.test_office import by_words, opened

RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def workbook(cells, formulas=(), around="", table="", names=""):
    """Makes a workbook with a sheet "Data".

    Args:
        cells: rows of texts.
        formulas: in the tenth column, one in each row.
        around: XML after the cells.
        table: XML of a table.
        names: pairs of a name and its formula.
    """
    texts = sorted({text for row in cells for text in row})
    strings = "".join(f'<si><t xml:space="preserve">{escape(text)}</t></si>' for text in texts)
    rows = ""
    for number in range(max(len(cells), len(formulas))):
        row = cells[number] if number < len(cells) else ()
        inner = "".join(
            f'<c r="{"ABCDEFG"[column]}{number + 1}" t="s"><v>{texts.index(text)}</v></c>'
            for column, text in enumerate(row)
        )
        if number < len(formulas):
            inner += f'<c r="J{number + 1}"><f>{escape(formulas[number])}</f></c>'
        rows += f'<row r="{number + 1}">{inner}</row>'
    sheet = (
        f'<worksheet xmlns="{NAMESPACES["x"]}"><sheetData>{rows}</sheetData>{around}</worksheet>'
    )
    defined = "".join(
        f'<definedName name="{name}">{escape(formula)}</definedName>' for name, formula in names
    )
    book = (
        f'<workbook xmlns="{NAMESPACES["x"]}" xmlns:r="{RELATIONS}"><sheets>'
        f'<sheet name="Data" sheetId="1" r:id="a"/></sheets><definedNames>{defined}</definedNames>'
        "</workbook>"
    )
    relation = '<Relationships><Relationship Id="a" Target="{}"/></Relationships>'
    members = {
        "xl/workbook.xml": book,
        "xl/_rels/workbook.xml.rels": relation.format("worksheets/worksheet1.xml"),
        "xl/worksheets/worksheet1.xml": sheet,
    }
    if table:
        members["xl/tables/table1.xml"] = table
        members["xl/worksheets/_rels/worksheet1.xml.rels"] = relation.format("../tables/table1.xml")
    return archive("xlsx", strings, **members)


def german(word):
    """Translates words: other letters, of another length."""
    known = {"big": "gross", "large": "gross"}
    return known.get(word, f"{word[::-1]}x") if word.isalpha() else word


def computed(*arguments, change=german, **options):
    """Translates a workbook; returns its texts, formulas, other XML, and counts of what stays."""
    read = read_document(workbook(*arguments, **options), "xlsx", "en")
    (result,) = read.written(by_words(change)(read.parts))
    with opened(result) as found:
        members = {name: found.read(name).decode() for name in found.namelist()[3:]}
    texts = re.findall("<t [^>]*>([^<]*)</t>", members["xl/sharedStrings.xml"])
    sheet = members["xl/worksheets/worksheet1.xml"]
    return texts, re.findall("<f>([^<]*)</f>", sheet), members, +read.left


@pytest.mark.parametrize(
    "formula, followed",
    [
        ('IF(A1="PEAR",1,0)', 'IF(A1="raepx",1,0)'),
        ('VLOOKUP("pear",A:B,2,0)', 'VLOOKUP("raepx",A:B,2,0)'),
        ('COUNTIF(A:A,"&lt;&gt;pear")', 'COUNTIF(A:A,"&lt;&gt;raepx")'),
        ("VLOOKUP(A1,A:B,2,FALSE)", None),
        ("A1=A2", None),
        ("A1&amp;A2", None),
        ("COUNTA(A:A)", None),
        ('"Sum: "&amp;SUM(B:B)', None),
    ],
)
def test_texts_that_are_compared_as_a_whole_are_translated_alike(formula, followed):
    source = formula.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    texts, formulas, _, left = computed([["pear"], ["plum"]], [source])
    assert texts == ["raepx", "mulpx"]
    assert formulas == [followed or formula] and left == {}


@pytest.mark.parametrize(
    "formula",
    [
        'COUNTIF(A1:A2,"*ea*")',
        'COUNTIF(A:A,"<q")',
        'SEARCH("ea",A1)',
        'LEFT(A1,2)="pe"',
        "LEN(A1)",
        'EXACT(A1,"pear")',
        "MATCH(B1,A:A)",
        "VLOOKUP(C1,A:B,2)",
        "A1<A3",
        "SUM(INDIRECT(A1))",
        'IF(A1&"s"=A3,1,0)',
        "UNKNOWN(A1)",
        "LEN(IF(C1=3,A1,A3))",
    ],
)
def test_texts_that_a_formula_looks_inside_of_stay(formula):
    texts, formulas, _, left = computed([["pear", "red"]], [formula])
    assert "pear" in texts and formulas == [escape(formula)]
    assert left == {"formula": 1 + ("B" in formula and "red" in texts)}


def test_a_cell_that_does_not_say_where_it_is_follows_the_one_before():
    cells = '<c t="s"><v>0</v></c><c t="s"><v>1</v></c><c><f>LEN(B1)</f></c>'
    sheet = f'<worksheet xmlns="{NAMESPACES["x"]}"><row>{cells}</row></worksheet>'
    strings = "<si><t>pear</t></si><si><t>plum</t></si>"
    document = read_document(archive("xlsx", strings, xl__worksheet1_xml=sheet), "xlsx", "en")
    assert [segment.text for segment in document.segments] == ["pear"]


def test_texts_of_which_a_seen_text_is_computed_stay():
    formulas = ["A1", "LEN(J1)", 'B1&"."', "COUNTIF(C1:C1,J3)", "D1"]
    texts, _, _, left = computed([["pear", "red", "plum", "fig"]], formulas)
    assert texts == ["gifx", "pear", "plum", "red"] and left == {"formula": 3}


def test_texts_whose_translations_would_be_equal_or_differ_stay_if_something_compares():
    for formulas, wanted in ((["A1=A2"], ["big", "large"]), (["SUM(B:B)"], ["gross", "gross"])):
        texts, _, _, left = computed([["big"], ["large"]], formulas)
        assert texts == wanted
        assert left == ({"formula": 2} if formulas == ["A1=A2"] else {})
    texts, _, _, left = computed([["pear"], ["Pear"]], ["A1=A2"], change=lambda text: f"{text[0]}x")
    assert texts == ["Px", "px"] and left == {}
    texts, _, _, left = computed(
        [["pear"], ["Pear"]], ["A1=A2"], change=lambda text: str(hash(text))
    )
    assert texts == ["Pear", "pear"] and left == {"formula": 2}


def test_a_literal_that_no_cell_has_does_not_equal_a_translation():
    texts, _, _, left = computed([["pear"]], ['COUNTIF(A:A,"raepx")'])
    assert texts == ["pear"] and left == {"formula": 1}


def test_headings_of_a_table_follow_their_cells():
    table = (
        '<table name="Prices" displayName="Prices" ref="A1:B2"><tableColumns>'
        '<tableColumn id="1" name="Article "/><tableColumn id="2" name="Value"/></tableColumns>'
        "</table>"
    )
    formulas = ["SUM(Prices[Value])", 'COUNTIF(Prices[[#Data],[Article ]],"pear")']
    formulas += ['COUNTIF(Prices[Value],"*e*")']
    cells = [["Article ", "Value"], ["pear", "red"]]
    texts, found, members, left = computed(cells, formulas, table=table)
    assert texts == ["elcitrAx ", "eulaVx", "raepx", "red"]
    assert found == [
        "SUM(Prices[eulaVx])",
        'COUNTIF(Prices[[#Data],[elcitrAx ]],"raepx")',
        'COUNTIF(Prices[eulaVx],"*e*")',
    ]
    followed = table.replace("Article ", "elcitrAx ").replace("Value", "eulaVx")
    assert members["xl/tables/table1.xml"] == followed
    assert left == {"formula": 1}


def test_lists_and_filters_follow_their_cells():
    around = (
        '<autoFilter ref="A1:A3"><filterColumn colId="0"><filters><filter val="Pear"/></filters>'
        '</filterColumn></autoFilter><dataValidations><dataValidation type="list" sqref="B1:B9">'
        '<formula1>"pear,none"</formula1></dataValidation></dataValidations>'
    )
    texts, _, members, left = computed([["pear"], ["plum"]], around=around)
    sheet = members["xl/worksheets/worksheet1.xml"]
    assert 'filter val="raepx"' in sheet and '"raepx,none"' in sheet
    assert texts == ["raepx", "mulpx"] and left == {}
    texts, _, members, _ = computed([["pear"]], around=around, change=lambda text: f"{text},")
    assert texts == ["pear"], "a comma would end the value"


def test_conditions_of_formats_and_names_count_as_formulas():
    rule = (
        '<conditionalFormatting sqref="A1:A2"><cfRule type="containsText" text="ea">'
        '<formula>NOT(ISERROR(SEARCH("ea",A1)))</formula></cfRule></conditionalFormatting>'
    )
    texts, _, _, left = computed([["pear"], ["plum"], ["fig"]], around=rule)
    assert texts == ["gifx", "pear", "plum"] and left == {"formula": 2}
    names = [("Fruit", "Data!$A$1"), ("Size", "LEN(Data!$A$2)")]
    texts, _, _, _ = computed([["pear"], ["plum"], ["fig"]], ["LEN(Fruit)"], names=names)
    assert texts == ["gifx", "pear", "plum"]


def test_a_translation_that_is_too_long_for_a_cell_stays():
    texts, _, _, left = computed(
        [["pear"], ["plum"]], change=lambda text: text[::-1] * 8191 + "xyzw"
    )
    assert texts == ["pear", "plum"] and left == {"long": 2}
    texts, _, _, left = computed([["pear"]], change=lambda text: text[::-1] * 8191 + "xyz")
    assert len(texts[0]) == 32_767 and left == {}


def test_hints_stay_and_count_as_left():
    around = (
        '<dataValidations><dataValidation promptTitle="a title" prompt="a prompt" error="12"/>'
        '</dataValidations><hyperlinks><hyperlink tooltip="a tip"/></hyperlinks>'
    )
    _, _, members, left = computed([["pear"]], around=around)
    assert around in members["xl/worksheets/worksheet1.xml"] and left == {"hint": 3}
