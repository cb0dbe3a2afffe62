import json
import shutil

import pytest

from keras_transformer.kit.paper.published import TABLE_3
from keras_transformer.use.store.results import write_results
from tests.kit.paper.test_trained_rows import SCORES
from tests.refusals import check_line


def test_all_tables_as_text(call_program):
    done = call_program("paper_tables")
    assert done.code == 0, done.errors
    lines = done.output.splitlines()
    assert [line for line in lines if line.startswith("Table ")] == [
        f"Table {number}" for number in range(1, 5)
    ]
    for row in TABLE_3:
        command = next(line for line in lines if line.startswith(f"  {row:5} python bin/train.py"))
        assert f"--preset={row} " in command
    assert "not run here" in done.output
    assert "{" not in done.output


def test_all_tables_as_json(call_program):
    done = call_program("paper_tables", "--json")
    assert done.code == 0, done.errors
    (line,) = done.output.splitlines()
    tables = json.loads(line)
    assert tables.keys() == {"table1", "table2", "table3", "table4"}
    rows = {row["row"]: row for row in tables["table3"]}
    assert list(rows)[: len(TABLE_3)] == list(TABLE_3)
    assert rows["base"]["parameters"] == 63_045_632
    assert rows["base"]["paper_parameters_millions"] == 65
    assert rows["E"]["paper_parameters_millions"] is None


@pytest.mark.tensorflow
def test_a_trained_model(call_program, untrained, tmp_path):
    model_dir = shutil.copytree(untrained, tmp_path / "model")
    scored = SCORES | {"checkpoint": "step-00000020", "step": 20}
    write_results(model_dir, "test", scored)
    kept = tmp_path / "measured.json"
    nothing = tmp_path / "nothing.json"
    nothing.write_text("[]")
    trained = [f"--model_dirs={model_dir}", f"--measured={nothing}", f"--write_measured={kept}"]
    done = call_program("paper_tables", "--table=2,3", "--json", *trained)
    assert done.result.keys() == {"table2", "table3"}
    (row,) = done.result["table3"][-1]["measured"]
    assert (row["row"], row["steps"], row["full_size"]) == ("tiny", 20, False)
    assert row["test"] == scored
    (measured,) = done.result["table2"]["measured"]
    assert measured["paper_bleu"] == scored["paper_bleu"]
    again = call_program("paper_tables", "--table=2,3", "--json", f"--measured={kept}")
    assert again.result == done.result
    assert len(json.loads(kept.read_text())) == 1
    config = (model_dir / "config.json").read_bytes()
    into_the_model = f"--write_measured={model_dir}/config.json"
    refused = call_program("paper_tables", f"--model_dirs={model_dir}", into_the_model)
    check_line(refused.errors, "--write_measured", model_dir / "config.json", "outside")
    assert refused.code == 1 and (model_dir / "config.json").read_bytes() == config
    shown = call_program("paper_tables", "--table=2", f"--measured={kept}")
    assert f"  {measured['command']}" in shown.output.splitlines()


@pytest.mark.parametrize(
    ("flag", "received"),
    [
        ("--table=5", "'5'"),
        ("--table=3,C", "'C'"),
        ("--table=", "''"),
        ("--model_dirs=nowhere", "nowhere"),
        ("--measured=nowhere", "nowhere"),
        ("--write_measured=/nowhere/x", "/nowhere/x"),
    ],
)
def test_bad_flags(call_program, flag, received):
    done = call_program("paper_tables", flag)
    assert done.code == 1
    check_line(done.errors, flag.partition("=")[0], received)
