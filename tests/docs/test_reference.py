"""docs/reference says what the code says now; `make reference` writes it again."""

import dataclasses
import re

import pytest

from bin.__main__ import PROGRAM_FILES
from docs.site import fields, reference, results, signatures
from keras_transformer.core.config import TransformerConfig
from keras_transformer.support.fields import Rule

PAGES = reference.pages()
COMPOSED = {"up_to_40_words", "table1", "table2", "table3", "table4"}  # of a word and a number
SOURCES = [
    path.read_text(encoding="utf-8")
    for folder in ("keras_transformer", "pipelines", "bin")
    for path in sorted((reference.ROOT / folder).rglob("*.py"))
]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_is_made_of_the_code(name):
    kept = (reference.FOLDER / name).read_text(encoding="utf-8")
    assert kept == PAGES[name], "run make reference"


def test_every_field_is_described():
    for line in PAGES["configuration.md"].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `") and len(cells) == 5:
            assert cells[4], line


def test_every_program_has_its_result():
    assert set(results.RESULTS) == set(PROGRAM_FILES)
    words = set(re.findall(r"\w+", "".join(SOURCES)))
    for program, described in results.RESULTS.items():
        for field in set(described) - COMPOSED:
            assert field.removeprefix("validation_") in words, (program, field)


@dataclasses.dataclass
class Example:
    """A class with each kind of comment."""

    one: int = 1  # at the end of the line
    # In the lines
    # above it.
    two: str | None = None

    three: float = 0.5


def test_comments_of_fields():
    assert fields.comments(Example) == {
        "one": "at the end of the line",
        "two": "In the lines above it.",
        "three": "",
    }


def test_types_rules_and_defaults():
    assert fields.type_and_rule(int | None) == ("whole number or `None`", "")
    assert fields.type_and_rule(dict[str, int]) == ("`dict[str, int]`", "")
    kinds = TransformerConfig.__annotations__
    assert fields.type_and_rule(kinds["norm"]) == ("`post`, `pre`", "")
    assert fields.type_and_rule(kinds["d_k"]) == ("whole number or `None`", "at least 1")
    assert fields.default_of(dataclasses.fields(Example)[1]) == "`None`"
    assert isinstance(kinds["norm"].__metadata__[0], Rule)


def test_a_cell_ends_nowhere_else_and_begins_no_tag():
    assert fields.table(["a"], [["x | <s> `<s>`"]]) == "| a |\n| --- |\n| x \\| &lt;s> `<s>` |\n"


def test_a_signature_of_other_axes_is_refused():
    tensor = signatures.Tensor("score", "float32", (None, 3, 4))
    with pytest.raises(ValueError, match=r"score .*\bB\b.*\(None, 3, 4\)"):
        signatures.row(tensor, signatures.PER_TRANSLATION["score"], "output")
