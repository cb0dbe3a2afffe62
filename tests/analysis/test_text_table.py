import pytest

from keras_transformer.analysis.text_table import fixed, text_table


def test_columns_are_aligned_and_numbers_to_the_right():
    rows = [("base", 6, "4.92", None), ("C10", None, "12.00", "n/a"), ("", -1, None, 3)]
    assert text_table(("row", "N", "PPL", "what"), rows).splitlines() == [
        "| row  |   N |   PPL | what |",
        "| ---- | --: | ----: | ---- |",
        "| base |   6 |  4.92 |      |",
        "| C10  |     | 12.00 | n/a  |",
        "|      |  -1 |       | 3    |",
    ]


def test_a_table_without_rows():
    assert text_table(("a", "bcde"), []).splitlines()[0] == "|   a | bcde |"


@pytest.mark.parametrize(("value", "text"), [(5, "5.00"), (4.916, "4.92"), (None, None)])
def test_fixed(value, text):
    assert fixed(value, 2) == text
