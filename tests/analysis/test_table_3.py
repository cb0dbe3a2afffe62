import pytest

from keras_transformer.analysis.paper import TABLE_3
from keras_transformer.analysis.trained_rows import reduced_settings, select_rows
from keras_transformer.config import with_settings
from keras_transformer.errors import InputError
from keras_transformer.presets import preset


def test_rows_and_groups():
    assert select_rows(["A"]) == ["A1", "A2", "A3", "A4"]
    assert select_rows(["C2", "base", "E", "C2"]) == ["base", "C2", "E"]
    assert select_rows(["D", "D3", "big"]) == ["D1", "D2", "D3", "D4", "big"]
    assert select_rows(["base", "A", "B", "C", "D", "E", "big"]) == list(TABLE_3)


@pytest.mark.parametrize("name", ["F", "A5", "tiny", "a", ""])
def test_unknown_rows(name):
    with pytest.raises(InputError, match=rf"--rows must be of Table 3's base, A1, .*: '{name}'"):
        select_rows(["base", name])


def test_no_rows():
    with pytest.raises(InputError, match="--rows must be of"):
        select_rows([])


def test_sizes_by_hand():
    assert reduced_settings("base", 2, 8) == {
        **{"num_layers": 3, "d_model": 64, "d_ff": 256, "d_k": 8, "d_v": 8},
    }
    assert reduced_settings("C5", 2, 8)["d_model"] == 128
    assert reduced_settings("A4", 1, 16)["d_k"] == 1


@pytest.mark.parametrize("row", TABLE_3)
def test_ratios_stay(row):
    full, training = preset(row, 100)
    settings = [f"{name}={value}" for name, value in reduced_settings(row, 2, 8).items()]
    small, same = with_settings(full, training, settings)
    assert same == training
    assert small.num_layers * 2 == full.num_layers
    for name in ("d_model", "d_ff", "d_k", "d_v"):
        assert getattr(small, name) * 8 == getattr(full, name)
    for name in ("num_heads", "dropout", "positions"):
        assert getattr(small, name) == getattr(full, name)


def test_remainders_are_refused():
    rule = r"--divide_layers must divide num_layers=2 of row C1. Received: 3"
    with pytest.raises(InputError, match=rule):
        reduced_settings("C1", 3, 8)
    with pytest.raises(InputError, match=r"--divide_widths must divide d_k=16 .*A4. Received: 32"):
        reduced_settings("A4", 2, 32)
