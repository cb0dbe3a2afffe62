from keras_transformer.support.text_table import table_of, text_table


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


def test_rows_with_names_are_formatted():
    rows = [{"bleu": 4.916, "steps": 12345, "of": "a"}, {"bleu": None, "steps": 5, "of": None}]
    assert table_of({"BLEU": "bleu:.2f", "10^0": "steps:,", "data": "of"}, rows).splitlines() == [
        "| BLEU |   10^0 | data |",
        "| ---: | -----: | ---- |",
        "| 4.92 | 12,345 | a    |",
        "|      |      5 |      |",
    ]
