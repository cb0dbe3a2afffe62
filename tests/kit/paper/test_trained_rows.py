import json

import pytest

from keras_transformer.core.presets import preset
from keras_transformer.core.training.model_directory import ModelDescription, create_or_check
from keras_transformer.kit.paper.published import TABLE_3
from keras_transformer.kit.paper.tables import table_1, table_2, table_3, table_4
from keras_transformer.kit.paper.trained_rows import (
    commands_again,
    find_model_dirs,
    measured_table,
    read_measured,
    reduced_settings,
    select_rows,
    trained_row,
)
from keras_transformer.use.store.results import write_results
from tests.configurations import with_settings
from tests.refusals import refused

SIGNATURE = "nrefs:1|tok:13a"
SCORES = {
    **{"bleu": 12.3, "signature": SIGNATURE, "paper_bleu": 13.5, "perplexity": 20.123},
    **{"checkpoint": "step-00000300", "step": 300, "beam_size": 4, "alpha": 0.6},
    **{"data_dir": "runs/data", "dataset": "files", "languages": ["en", "de"]},
}


@pytest.fixture
def make(tmp_path):
    """Makes a model directory of a preset, with settings, a checkpoint's record and results."""

    def make(name, preset_name, settings=(), task="translation", **results):
        (tmp_path / "vocabulary.model").write_bytes(b"v")
        model, training = with_settings(*preset(preset_name, 1000), list(settings))
        description = ModelDescription(
            preset_name, model, training, "vocabulary.model", "f", 256, task=task
        )
        create_or_check(tmp_path / name, description, tmp_path)
        path = tmp_path / name / "checkpoints" / "step-00000400.json"
        path.parent.mkdir()
        record = {"step": 400, "seconds": 60, "validation": {"loss": 0.0}}
        path.write_text(json.dumps({"format_version": 4, "model": "f", **record}))
        for split, found in results.items():
            write_results(tmp_path / name, split, found)
        return tmp_path / name

    return make


def test_a_reduced_row(make):
    settings = ["num_layers=1", "d_model=32", "dropout=0.2", "tokens_per_batch=300", "seed=7"]
    path = make("c1", "C1", settings, validation=SCORES)
    row = trained_row(path)
    model, _ = with_settings(*preset("C1", 1000), settings)
    assert row["row"] == "C1" and row["num_layers"] == 1 and row["d_k"] == 4
    assert row["full_size"] is False
    assert row["parameters"] == model.parameters
    assert (row["steps"], row["perplexity"], row["bleu"]) == (300, 20.123, 12.3)
    assert row["data"] == "runs/data en-de"
    assert row["test"] is None and row["commands"]["test"] is None
    assert commands_again(row, "validation") == (
        f"python bin/train.py --data_dir=runs/data --model_dir={path} --preset=C1 "
        "--config=num_layers=1 --config=d_model=32 --config=d_k=4 --config=d_v=4 "
        "--config=dropout=0.2 --tokens_per_batch=300 --accumulate_steps=1 --precision=float32 "
        f"--seed=7 --train_steps=300 && python bin/evaluate.py --model_dir={path} "
        "--split=validation --data_dir=runs/data --checkpoint=step-00000300 --beam_size=4 "
        "--alpha=0.6"
    )


def test_the_command_gives_the_same_configuration(make):
    settings = ["d_model=32", "norm=pre", "label_smoothing=0.3", "attention_dropout=0.5"]
    row = trained_row(make("b1", "B1", settings))
    flags = [word for word in row["commands"]["train"].split() if word.startswith("--config=")]
    repeated = with_settings(*preset("B1", 1000), [flag.split("=", 1)[1] for flag in flags])
    assert repeated == with_settings(*preset("B1", 1000), settings)


def test_a_row_without_scores(make):
    row = trained_row(make("base", "base"))
    assert row["full_size"] is True
    assert (row["steps"], row["minutes"], row["perplexity"], row["bleu"]) == (400, 1.0, 1.0, None)
    assert row["data"] is None


def test_folders_of_model_directories(make, tmp_path):
    one, two = make("root/A1", "A1"), make("root/A2", "A2")
    (tmp_path / "root" / "table.md").write_text("")
    assert find_model_dirs([str(tmp_path / "root")]) == [one, two]
    assert find_model_dirs([str(two), str(one)]) == [two, one]
    with refused("model_dirs", tmp_path / "no"):
        find_model_dirs([str(tmp_path / "no")])


def test_measured_rows_are_read_back(make, tmp_path):
    row = trained_row(make("A1", "A1", validation=SCORES))
    path = tmp_path / "table.json"
    path.write_text(json.dumps([row]))
    assert read_measured(path) == [row]
    for content in ("[", "[1]", '[{"row": "A1"}]', "5"):
        path.write_text(content)
        with refused("measured", "table.json"):
            read_measured(path)


class TestTable3:
    def test_untrained(self):
        rows, text = table_3([])
        assert [row["row"] for row in rows][:2] == ["base", "A1"]
        base = rows[0]
        assert base["parameters"] == 63_045_632
        assert base["paper_parameters_millions"] == 65
        assert rows[1]["paper_parameters_millions"] is None
        assert text.count("not run here") == 20
        assert "What was measured" not in text
        for row in rows:
            assert row["command"] in text and f"--preset={row['row']} " in row["command"]
        assert "--train_steps=300000" in rows[-1]["command"]
        assert _cells(text.splitlines()[2]) == [
            *("base", "6", "512", "2048", "8", "64", "64", "0.1", "0.1", "4.92", "25.8", "65"),
            *("63,045,632", "65,093,632", "41,000", "not run here"),
        ]

    def test_trained(self, make):
        found = [
            trained_row(make("one", "A2", ["num_layers=2"], validation=SCORES)),
            trained_row(make("two", "A2")),
            trained_row(make("three", "tiny", validation=SCORES)),
        ]
        rows, text = table_3(found)
        assert [row["row"] for row in rows][-1] == "tiny"
        assert rows[-1]["paper_bleu"] is None
        assert [len(row["measured"]) for row in rows if row["measured"]] == [2, 1]
        lines = text.splitlines()
        assert sum("not run here" in line for line in lines) == 19
        in_table, first, second = (_cells(line) for line in lines if line.startswith("| A2 "))
        assert in_table[-1] == "below"
        settings = ["512", "2048", "4", "128", "128", "0.1", "0.1"]
        assert first[:12] == ["A2", "2", *settings, "300", "20.12", "12.3"]
        assert first[-4:] == ["5.00", "25.5", "", "runs/data en-de"]
        assert second[:12] == ["A2", "6", *settings, "400", "1.00", ""]
        assert commands_again(found[0], "validation") in text

    def test_sweep(self, make):
        rows = [trained_row(make("D2", "D2", ["d_model=32"], validation=SCORES))]
        assert _cells(measured_table(rows).splitlines()[-1]) == [
            *("D2", "6", "32", "2048", "8", "4", "4", "0.2", "0.1"),
            *("300", "20.12", "12.3", f"{rows[0]['parameters']:,}", "4.95", "25.5", ""),
            "runs/data en-de",
        ]


class TestOtherTables:
    def test_1(self):
        rows, text = table_1()
        # n - 1 steps of the recurrence after the input; (k - 1) / 2 = 1 and r / 2 = 8 a layer.
        assert [row["maximum_path"] for row in rows] == [1, 128, 127, 16]
        assert rows[1]["measured"]["GRU"] == {"n": 0.96, "d": 1.75}
        assert "| self-attention: n^1.94, d^1.32 " in text

    def test_2(self, make):
        _, text = table_2([])
        assert text.count("not run here") == 2
        lines = text.splitlines()
        assert _cells(lines[2]) == ["ByteNet", "23.75", "", "", "", "23.57", "", ""]
        base = ["27.30", "38.10", "3.3e+18", "3.3e+18", "", "", "not run here"]
        assert _cells(lines[10]) == ["Transformer (base model)", *base]
        assert "Measured here, test split: nothing" in text
        small = trained_row(make("small", "base", ["num_layers=1"], test=SCORES))
        _, text = table_2([small])
        assert text.count("not run here") == 2  # another model than the paper's
        assert "13.50 |     12.30 | nrefs:1|tok:13a | runs/data en-de" in text
        _, text = table_2([trained_row(make("other", "base", test=SCORES))])
        assert text.count("not run here") == 2  # other data than the paper's
        wmt = {**SCORES, "dataset": "tfds:wmt14_translate/de-en"}
        full = trained_row(make("full", "base", test=wmt))
        _, text = table_2([full])
        assert "| 13.50 on tfds:wmt14_translate/de-en en-de |" in text
        assert text.count("not run here") == 1
        assert commands_again(full, "test") in text
        without = {name: value for name, value in wmt.items() if name != "paper_bleu"}
        unscored = trained_row(make("unscored", "base", test=without))
        assert table_2([unscored])[1].count("not run here") == 2

    def test_4(self, make):
        _, text = table_4([])
        assert text.count("not run here") == 2
        scores = {"f1": 80.456, "data_dir": "runs/craft", "dataset": "treebank", "step": 9}
        row = trained_row(make("craft", "parsing_wsj", task="parsing", test=scores))
        _, text = table_4([row])
        assert "| parsing_wsj   | True      |   400 |   80.46 |" in text
        assert "| 80.46 on runs/craft |" in text and text.count("not run here") == 1
        assert commands_again(row, "test") in text
        assert not table_2([row])[0]["measured"]

    def test_parsers_are_not_in_table_3(self, make):
        parser = trained_row(make("parser", "tiny", task="parsing", test={"f1": 80.0}))
        assert "tiny" not in [row["row"] for row in table_3([parser])[0]]
        translator = trained_row(make("translator", "tiny"))
        rows, _ = table_3([parser, translator])
        assert [row["model_dir"] for row in rows[-1]["measured"]] == [translator["model_dir"]]


def _cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_preset_that_is_none_of_ours(make):
    path = make("odd", "base") / "config.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "preset": "mine"}))
    row = trained_row(path.parent)
    assert row["full_size"] is False and row["commands"]["train"] is None
    assert "mine" not in [each["row"] for each in table_3([row])[0]]


def test_rows_and_groups():
    assert select_rows(["A"]) == ["A1", "A2", "A3", "A4"]
    assert select_rows(["C2", "base", "E", "C2"]) == ["base", "C2", "E"]
    assert select_rows(["D", "D3", "big"]) == ["D1", "D2", "D3", "D4", "big"]
    assert select_rows(["base", "A", "B", "C", "D", "E", "big"]) == list(TABLE_3)


@pytest.mark.parametrize("name", ["F", "A5", "tiny", "a", ""])
def test_unknown_rows(name):
    with refused("rows", repr(name)):
        select_rows(["base", name])


def test_no_rows():
    with refused("rows", "''"):
        select_rows([])


def test_sizes_by_hand():
    assert reduced_settings("base", 2, 8) == {
        **{"num_layers": 3, "d_model": 64, "d_ff": 256, "d_k": 8, "d_v": 8}
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
    with refused("divide_layers", "3", about="num_layers=2 of row C1"):
        reduced_settings("C1", 3, 8)
    with refused("divide_widths", "32", about="d_k=16 of row A4"):
        reduced_settings("A4", 2, 32)
