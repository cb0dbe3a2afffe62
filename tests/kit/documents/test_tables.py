import csv
import io
import json
import re

import pytest

from keras_transformer.kit.documents.formats import read_document
from tests.kit.documents.doubles import capitals, documents
from tests.kit.documents.filling import filled
from tests.refusals import refused


@pytest.mark.parametrize(
    ("format", "columns", "table", "wanted"),
    [
        (
            *("tsv", ["text"], "id\ttext\n1\thello  you \r\n\n2\tbye"),
            "id\ttext\n1\tHELLO  YOU \r\n\n2\tBYE",
        ),
        ("tsv", ["2"], "id\ttext\n1\thello", "id\tTEXT\n1\tHELLO"),
        # Rows may have more columns where none is named.
        ("tsv", ["2"], "a\ta\nb\tc\td\n", "a\tA\nb\tC\td\n"),
        ("csv", ["2"], "a,a\nb,c,d\n", "a,A\nb,C,d\n"),
        ("csv", ["text"], "id;text\n1;a, b\n", "id;text\n1;A, B\n"),
        (
            *("jsonl", ["t", "l"]),
            '{"a": 1.5, "t": "x \\"y\\"\\nz", "l": ["p", "q"]}\n\n {"a":null, "t": "ü", "l": "s"}',
            '{"a": 1.5, "t": "X \\"Y\\"\\nZ", "l": ["P", "Q"]}\n\n {"a": null, "t": "Ü", "l": "S"}',
        ),
    ],
)
def test_columns_and_keys(format, columns, table, wanted):
    document = read_document(table, format, "en", columns)
    assert filled(document) == wanted
    assert format == "jsonl" or filled(document, str) == table


def test_columns_of_comma_separated_values():
    table = 'id,text,more\r\n1,"he ""x"", a\nb","c,d"\r\n2,bye,\r\n'
    found = filled(read_document(table, "csv", "en", ["text"]))
    assert list(csv.reader(io.StringIO(found, newline=""))) == [
        ["id", "text", "more"],
        ["1", 'HE "X", A\nB', "c,d"],
        ["2", "BYE", ""],
    ]
    assert found.count("\r\n") == 3


def with_translation(text, format, columns, translation):
    """Translates the texts in a table's columns, in the same way as a document."""
    parts = read_document(text, format, "en", columns).parts
    return "".join(documents(translation).translate(parts))


def test_a_translation_stays_within_its_cell():
    def translation(text):
        return f'{text}\t"b",\n;'

    table = "id\ttext\n1\ta cat\n"
    assert with_translation(table, "tsv", ["2"], translation) == (
        'id\ttext "b", ;\n1\ta cat "b", ;\n'
    )
    for separator in ",;\t":
        table = f'id{separator}text\r\n1{separator} a cat \r\n"2"{separator}"a ""dog"""\r'
        found = with_translation(table, "csv", ["text"], translation)
        assert found == (
            f'id{separator}text\r\n1{separator}" a cat\t""b"", ; "\r\n'
            f'2{separator}"a ""dog""\t""b"", ;"\r'
        )
    (found,) = json.loads(with_translation('{"t": ["a"]}', "jsonl", ["t"], translation))["t"]
    assert found == 'a\t"b", ;'


@pytest.mark.parametrize(
    "line",
    [
        '{"n": 1e400, "t": "", "m": 1.50, "o": -0, "p": [1E+2, {"t": "a"}], "q": NaN}',
        '{"t": "12", "t": [ "", "\\u0020"],"n": 1, "n": 2} ',
        '\u3000 { "n":1 ,\t"t" :[ ] , "m":{ } } \r\n',
    ],
)
def test_a_line_of_json_without_text_to_translate_stays_as_it_is(line):
    assert "".join(read_document(line, "jsonl", "en", ["t"]).parts) == line


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ('{"t":"a","n":"ä", "m":[1.50,{"t":"a"}]}', '{"t": "A", "n": "ä", "m": [1.5, {"t": "a"}]}'),
        ('{"t":"\\u00e4","n":"\\/"}', '{"t": "\\u00c4", "n": "/"}'),
        ('{"t": "ä \\"", "n": "b"}\r\n', '{"t": "Ä \\"", "n": "b"}\r\n'),
        ('{"t": "a", "n": "ä\\ud800"}', '{"t": "A", "n": "\\u00e4\\ud800"}'),
    ],
)
def test_a_line_of_json_is_written_anew_with_the_escapes_that_it_has(line, wanted):
    document = read_document(line, "jsonl", "en", ["t"])
    found = with_translation(line, "jsonl", ["t"], capitals)
    assert found == wanted
    assert json.loads(document.source) == json.loads(line)


@pytest.mark.parametrize(
    "table",
    [
        'a,"t"\r\n"1", x \n\n"2","x ""y"" "\r"3\n4",\r\n5,"6\n7\r\n8"',
        *["t", "t\n", "a,t\n,", "a,t\n,\n", "a,t\n1,\u3000", 'a,t\n1,""', 'a,t\n1,x "y"'],
        *['t\n""\n\n"x\n\ny"\n', 'a;t\n", ";"; x"\n"\r";y\r'],
    ],
)
def test_cells_and_line_ends_stay_where_nothing_is_translated(table):
    separator = ";" if ";" in table else ","
    found = with_translation(table, "csv", ["t"], str)
    rows, found_rows = (
        list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
        for text in (table, found)
    )
    assert found_rows == rows
    assert re.findall("[\r\n]+", found) == re.findall("[\r\n]+", table)


@pytest.mark.parametrize(
    ("format", "text", "columns", "place", "received", "about"),
    [
        ("tsv", "a\tb", ["3"], "line 1", "2", "at least 3"),
        ("tsv", "a\tb\nc", ["b"], "line 2", "1", "at least 2"),
        ("tsv", "a\tb\n\n1\tx\ty", ["b"], "line 3", "3, the next one 'y'", "at most 2"),
        (
            "csv",
            'a,b\n"1\n",x\n2,"y,",z, w',
            ["a"],
            "line 4",
            "4, the next one 'z'",
            "at most 2",
        ),
        ("csv", "a;b;a\n", ["b", "a"], "line 1", "a, b, a", "'a'"),
        ("tsv", "a\ta", ["a"], "line 1", "a, a", "'a'"),
        ("csv", '"a\n",b\r\nc,"d', ["1"], "line 3", "unexpected end of data", "comma"),
        ("csv", 'a,"b" c', ["1"], "line 1", "',' expected after '\"'", "comma"),
        ("jsonl", "[1]", ["a"], "line 1", "[1]", "object"),
        ("jsonl", "{}\n{", ["a"], "line 1", "[]", "key 'a'"),
        ("jsonl", "[" * 100_000, ["a"], "line 1", "recursion", "JSON"),
    ],
)
def test_what_cannot_be_in_a_table_ends_in_one_line(format, text, columns, place, received, about):
    with refused(None, received, place, about):
        read_document(text, format, "en", columns)


def test_what_cannot_be_in_a_key_ends_in_one_line():
    with refused("a", "1", place="line 1"):
        read_document('{"a": 1}', "jsonl", "en", ["a"])


@pytest.mark.parametrize(
    ("format", "columns", "received", "about"),
    [
        ("tsv", ["x"], "'x'", "first line, a"),
        ("tsv", ["0"], '["0"]', "numbers"),
        ("csv", ["9" * 5000], '["999', "numbers"),
        ("tsv", [], "none", "must name the columns"),
        ("jsonl", [], "none", "must name the keys"),
        ("tsv", None, "none with format=tsv", "for a table"),
        ("text", ["1"], "['1'] with format=text", "for a table"),
    ],
)
def test_columns_that_cannot_be_end_in_one_line(format, columns, received, about):
    with refused("columns", received, about=about):
        read_document("a", format, "en", columns)
