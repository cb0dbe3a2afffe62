"""The rows of lexicon.csv, with error messages that name the line of a cell."""

import csv
from collections.abc import Iterator
from pathlib import Path

from keras_transformer.errors import InputError

COLUMNS = "class,english,english_forms,german,german_forms,kind,features,subjects,objects,manners"


class Row(dict[str, str]):
    """The cells of one line, by column."""

    def __init__(self, where: str, cells: list[str]) -> None:
        columns = COLUMNS.split(",")
        if len(cells) > len(columns):
            raise InputError(None, f"must have at most {len(columns)} cells", len(cells), where)
        padded = cells + [""] * (len(columns) - len(cells))
        super().__init__(zip(columns, (cell.strip() for cell in padded), strict=True))
        self.where = where

    def require(self, condition: object, column: str, rule: str) -> None:
        """Raises an InputError about the column unless the condition holds."""
        if not condition:
            raise InputError(column, f"must {rule}", repr(self[column]), self.where)

    def require_words(self, column: str, allowed: str) -> None:
        """Raises an InputError unless the cell contains only allowed words, if any."""
        rule = f"hold only these words: {allowed}" if allowed else "be empty"
        self.require(set(self[column].split()) <= set(allowed.split()), column, rule)

    def forms(self, column: str, least: int, most: int) -> list[str]:
        """Returns the forms in the cell; "" stands for "-" and for omitted forms."""
        forms = self[column].split("/") if self[column] else []
        count = str(most) if least == most else f"{least} to {most}"
        rule = f"hold {count} forms, separated by slashes" if most else "be empty"
        self.require(least <= len(forms) <= most, column, rule)
        return [form.strip().removeprefix("-") for form in forms] + [""] * (most - len(forms))

    def one_of(self, column: str, words: str) -> str:
        """Returns the only one of the words that is in the cell."""
        chosen = set(words.split()) & set(self[column].split())
        self.require(len(chosen) == 1, column, f"hold one of these words: {words}")
        return chosen.pop()


def read_rows(path: Path) -> Iterator[Row]:
    """Yields the rows of the table, without comments, empty lines and the row of column names."""
    header = ""
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        where = f"{path}:{number}"
        try:
            cells = next(csv.reader([line.decode("utf-8-sig")]), [])
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(None, "must be UTF-8 CSV", repr(line), where) from error
        if not any(cells) or cells[0].startswith("#"):
            continue
        if header:
            yield Row(where, cells)
            continue
        header = ",".join(cells)
        if header != COLUMNS:
            raise InputError(None, f"must be the first row, {COLUMNS}", repr(header), where)
