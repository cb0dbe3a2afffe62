import pytest

from keras_transformer.core.presets import PRESETS, preset
from keras_transformer.kit.paper.published import SETTINGS, TABLE_1, TABLE_2, TABLE_3, TABLE_4
from keras_transformer.kit.paper.tables import FITTING_VOCABULARY

MODEL = ("num_layers", "d_model", "d_ff", "num_heads", "d_k", "d_v", "dropout")


@pytest.mark.parametrize("row", TABLE_3)
def test_presets_are_the_rows_as_printed(row):
    model, training = preset(row, 37_000)
    printed, base = TABLE_3[row], TABLE_3["base"]
    for name in MODEL:
        if row == "big" and name in ("d_k", "d_v"):
            continue  # blank there, but 64 follows from 1024 / 16 as well
        expected = getattr(base, name) if getattr(printed, name) is None else getattr(printed, name)
        assert getattr(model, name) == expected, name
    smoothing = base.label_smoothing if printed.label_smoothing is None else printed.label_smoothing
    assert training.label_smoothing == smoothing
    assert model.positions == ("learned" if row == "E" else "sinusoidal")


@pytest.mark.parametrize("row", [row for row in TABLE_3 if TABLE_3[row].paper_parameters_millions])
def test_parameters_come_out_as_printed(row):
    total = preset(row, FITTING_VOCABULARY[row])[0].parameters
    assert abs(total / 1e6 - TABLE_3[row].paper_parameters_millions) < 0.6


def test_rows_with_one_change_say_so():
    # Every row but base and big sets what its letter is about, and nothing else.
    about = {"A": {"num_heads", "d_k", "d_v"}, "B": {"d_k"}, "D": {"dropout", "label_smoothing"}}
    about["C"] = {"num_layers", "d_model", "d_ff", "d_k", "d_v"}
    for row, printed in TABLE_3.items():
        if row not in ("base", "big"):
            names = SETTINGS.values()
            settings = {name for name in names if getattr(printed, name) is not None}
            assert settings <= about.get(row[0], set())
            assert printed.thousand_steps is None
            assert 4 < printed.paper_perplexity < 7 and 23 < printed.paper_bleu < 27


def test_claims_of_the_text():
    # Section 6.1: "more than 2.0 BLEU" above the best, ensembles included; 6.2: "0.9 BLEU worse".
    best = max(row.bleu_de for row in TABLE_2[:-2] if row.bleu_de)
    assert TABLE_2[-1].bleu_de - best > 2.0
    assert TABLE_3["A3"].paper_bleu - TABLE_3["A1"].paper_bleu == pytest.approx(0.9)
    # Section 6.3: better than the BerkeleyParser (Petrov et al.) on the WSJ alone.
    f1 = {(row.name, row.training): row.f1 for row in TABLE_4}
    ours = f1["Transformer (4 layers)", "WSJ only, discriminative"]
    assert ours > f1["Petrov et al. (2006)", "WSJ only, discriminative"]
    assert [len(table) for table in (TABLE_1, TABLE_2, TABLE_3, TABLE_4)] == [4, 10, 20, 12]


def test_every_row_is_a_preset():
    assert TABLE_3.keys() <= PRESETS.keys()
