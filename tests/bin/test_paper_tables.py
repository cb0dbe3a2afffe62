import json
import shutil

import pytest

from keras_transformer.analysis.paper import TABLE_3


def test_all_tables(call_program, tmp_path):
    done = call_program("paper_tables")
    assert done.code == 0, done.errors
    assert done.result.keys() == {"table1", "table2", "table3", "table4"}
    rows = {row["row"]: row for row in done.result["table3"]}
    assert list(rows)[: len(TABLE_3)] == list(TABLE_3)
    assert rows["base"]["parameters"] == 63_045_632
    assert rows["base"]["paper_parameters_millions"] == 65
    assert rows["E"]["paper_parameters_millions"] is None
    lines = done.output.splitlines()
    assert [line for line in lines if line.startswith("Table ")] == [
        f"Table {number}" for number in range(1, 5)
    ]
    for row in done.result["table3"]:
        assert f"  {row['row']:5} {row['command']}" in lines
    assert "not run here" in done.output


def test_a_trained_model(call_program, prepared, untrained, tmp_path):
    model_dir = shutil.copytree(untrained, tmp_path / "model")  # scores are written to it
    arguments = [f"--model_dir={model_dir}", f"--data_dir={prepared}", "--beam_size=1"]
    scored = call_program("evaluate", *arguments).result
    kept = tmp_path / "measured.json"
    nothing = tmp_path / "nothing.json"
    nothing.write_text("[]")
    trained = [f"--model_dirs={model_dir}", f"--measured={nothing}", f"--write_measured={kept}"]
    done = call_program("paper_tables", "--table=2,3", *trained)
    assert done.result.keys() == {"table2", "table3"}
    (row,) = done.result["table3"][-1]["measured"]
    assert (row["row"], row["steps"], row["full_size"]) == ("tiny", 20, False)
    assert row["test"] == scored
    (measured,) = done.result["table2"]["measured"]
    assert measured["paper_bleu"] == scored["paper_bleu"]
    assert measured["command"] in done.output
    again = call_program("paper_tables", "--table=2,3", f"--measured={kept}")
    assert again.result == done.result
    assert len(json.loads(kept.read_text())) == 1


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--table=5", "--table must be of 1, 2, 3, 4. Received: '5'"),
        ("--table=3,C", "--table must be of 1, 2, 3, 4. Received: 'C'"),
        ("--table=", "--table must be of 1, 2, 3, 4. Received: ''"),
        ("--model_dirs=nowhere", "--model_dirs must name directories that bin/train.py"),
        ("--measured=nowhere", "--measured must be a table.json of bin/sweep.py"),
        ("--layers=nowhere", "--layers must be the output of benchmarks/layers.py"),
        ("--write_measured=/nowhere/x", "--write_measured must be a file that can be written"),
    ],
)
def test_bad_flags(call_program, flag, message):
    done = call_program("paper_tables", flag)
    assert done.code == 1
    assert message in done.errors.strip().splitlines()[-1]
