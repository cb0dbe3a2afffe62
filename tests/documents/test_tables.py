import csv
import io
import json

import pytest

from keras_transformer.documents.formats import format_of, read_document
from keras_transformer.errors import InputError
from tests.documents.filling import filled


def test_columns_of_a_table_with_tabs():
    table = "id\ttext\n1\thello  you \r\n\n2\tbye"
    wanted = "id\ttext\n1\tHELLO  YOU \r\n\n2\tBYE"
    assert filled(read_document(table, "tsv", "en", ["text"])) == wanted
    assert filled(read_document(table, "tsv", "en", ["2"])) == wanted.replace("\ttext", "\tTEXT")
    assert filled(read_document(table, "tsv", "en", ["text"]), str) == table


def test_columns_of_comma_separated_values():
    table = 'id,text,more\r\n1,"he ""x"", a\nb","c,d"\r\n2,bye,\r\n'
    found = filled(read_document(table, "csv", "en", ["text"]))
    assert list(csv.reader(io.StringIO(found, newline=""))) == [
        ["id", "text", "more"],
        ["1", 'HE "X", A\nB', "c,d"],
        ["2", "BYE", ""],
    ]
    assert found.count("\r\n") == 3


def test_the_separator_is_that_of_the_first_line():
    found = filled(read_document("id;text\n1;a, b\n", "csv", "de", ["text"]))
    assert found == 'id;text\n1;"A, B"\n'


def test_keys_of_json():
    lines = '{"a": 1.50, "t": "x \\"y\\"\\nz", "l": ["p", "q"]}\n\n {"a": null, "t": "ü", "l": "s"}'
    found = filled(read_document(lines, "jsonl", "en", ["t", "l"])).split("\n")
    assert json.loads(found[0]) == {"a": 1.5, "t": 'X "Y"\nZ', "l": ["P", "Q"]}
    assert found[1] == ""
    assert json.loads(found[2]) == {"a": None, "t": "Ü", "l": "S"}


@pytest.mark.parametrize(
    ("format", "text", "columns", "message"),
    [
        ("tsv", "a\tb", ["3"], "line 1 must have at least 3 columns. Received: 2"),
        ("tsv", "a\tb\nc", ["b"], "line 2 must have at least 2 columns. Received: 1"),
        ("tsv", "a", ["x"], "columns must be names of the first line, a. Received: 'x'"),
        ("tsv", "a", ["0"], "columns must be numbers from 1. Received: 0"),
        ("tsv", "a", [], "columns must name the columns"),
        ("csv", 'a,"b', ["1"], "Received: line 1: unexpected end of data"),
        ("jsonl", "[1]", ["a"], "line 1 must be an object of JSON"),
        ("jsonl", "{}\n{", ["a"], "line 1 must have the key 'a'"),
        ("jsonl", '{"a": 1}', ["a"], "line 1: 'a' must be a text or a list of texts. Received: 1"),
        ("jsonl", "[" * 100_000, ["a"], "line 1 must be JSON"),
        (
            "tsv",
            "a",
            None,
            "columns must be given for a table .tsv, csv, jsonl., and for a table only",
        ),
        (
            "text",
            "a",
            ["1"],
            "columns must be given for a table .tsv, csv, jsonl., and for a table only",
        ),
        ("docx", "a", None, "format must be one of text, "),
    ],
)
def test_what_cannot_be_ends_in_one_line(format, text, columns, message):
    with pytest.raises(InputError, match=message):
        read_document(text, format, "en", columns)


def test_formats_by_ending():
    names = ["a.po", "b.XLF", "c.tsv", "d.csv", "e.jsonl", "f.txt", "g", "-"]
    formats = ["po", "xliff", "tsv", "csv", "jsonl", "text", "text", "text"]
    assert [format_of(name) for name in names] == formats
