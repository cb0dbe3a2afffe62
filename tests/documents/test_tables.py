import csv
import io
import json
import random

import pytest

from keras_transformer.documents.formats import format_of, read_document
from keras_transformer.documents.tables import _csv_rows
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
    assert found == "id;text\n1;A, B\n"
    assert filled(read_document("1;a\n", "csv", "de", ["2"]), lambda _: "b;c") == '1;"b;c"\n'


@pytest.mark.parametrize("seed", range(3))
def test_cells_are_those_of_pythons_own_reader(seed):
    rng = random.Random(seed)
    pieces = ["a", '"', '""', ",", "\n", "\r\n", " ", "b c", '"x"', '"x, y"', "é", '"q""r"']
    for _ in range(3000):
        text = "".join(rng.choices(pieces, k=rng.randrange(14)))
        try:
            wanted = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        except csv.Error:
            with pytest.raises(InputError, match=r"^a table must be comma-separated values"):
                list(_csv_rows(text, ","))
        else:
            assert [[cell.text for cell in cells] for _, cells, _ in _csv_rows(text, ",")] == wanted


def test_what_is_not_translated_stays_as_it_is_written():
    table = 'id,"text" \n"1",a  b\n'.replace(" \n", "\n")
    assert filled(read_document(table, "csv", "en", ["text"])) == 'id,"text"\n"1",A  B\n'
    line = ' {"n":1e400,"n" : 2.50,"s":"\\ud83d","t":[ "a\\u00fc" ,"b"] }\n'
    wanted = ' {"n":1e400,"n" : 2.50,"s":"\\ud83d","t":[ "AÜ" ,"B"] }\n'
    assert filled(read_document(line, "jsonl", "en", ["t"])) == wanted
    assert read_document(line, "jsonl", "en", ["t"]).source == line


def test_a_translation_stays_within_its_cell():
    answer = lambda _: 'x\ty\nz "w"'  # noqa: E731
    assert filled(read_document("a\tb", "tsv", "en", ["1"]), answer) == 'x y z "w"\tb'
    assert filled(read_document("a,b", "csv", "en", ["1"]), answer) == '"x\ty\nz ""w""",b'
    assert filled(read_document('{"a": "b"}', "jsonl", "en", ["a"]), answer) == (
        '{"a": "x\\ty\\nz \\"w\\""}'
    )


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
        ("csv", 'a,"b', ["1"], "Received: line 1: a cell without a quote at its end"),
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
