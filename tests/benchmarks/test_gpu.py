import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Ends in order when it is asked to, as a training does.
PATIENT = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(print('{"steps": 7}')))
print("started", file=sys.stderr, flush=True)
time.sleep(60)
"""


@pytest.fixture
def gpu(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    import gpu

    return gpu


@pytest.fixture
def run_stages(gpu, monkeypatch, capsys, tmp_path):
    """Runs the program with other stages; returns what it prints."""

    def run(stages, *flags):
        monkeypatch.setattr(gpu, "stages_of", lambda *arguments: stages)
        flags = ["--data_dir=data", f"--out={tmp_path}", *flags]
        monkeypatch.setattr(sys, "argv", ["gpu.py", *flags])
        gpu.main()
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def test_stages_end_or_are_stopped_and_the_next_one_runs(run_stages, tmp_path):
    stages = {
        "fails": (60, ["-c", "import sys; print('a'); sys.exit('told')"]),
        "stopped": (5, ["-c", PATIENT]),
        "left out": (60, ["-c", "print()"]),
        "json": (60, ["-c", "print('log'); print('{\"bleu\": 40.5}')"]),
    }
    chosen = ["fails", "stopped", "json"]
    rows = run_stages(stages, "--stages", *chosen)
    assert [row["stage"] for row in rows] == chosen
    assert [row["exit"] for row in rows] == [1, None, 0]
    assert [row["result"] for row in rows] == ["a", {"steps": 7}, {"bleu": 40.5}]
    assert 5 <= rows[1]["seconds"] < 50
    assert (tmp_path / "fails.log").read_text() == "told\n"


def test_stages_without_time_are_left_out(run_stages):
    (row,) = run_stages({"one": (60, ["-c", "print()"])}, "--minutes=0.1")
    assert row["stage"] == "one" and "skipped" in row and "exit" not in row


@pytest.mark.parametrize("small", [True, False])
def test_commands_name_programs_and_flags_that_exist(gpu, small):
    for _, (program, *arguments) in gpu.stages_of(Path("data"), Path("out"), small).values():
        text = (ROOT / program).read_text()
        if program.startswith("bin/"):
            files = [*ROOT.glob("bin/command/*.py"), *ROOT.glob("keras_transformer/**/*config.py")]
            files += [
                ROOT / "keras_transformer/support/fields.py",
                ROOT / "pipelines/evaluation.py",
            ]
            text += "".join(file.read_text() for file in files)
        for argument in arguments:
            if argument.startswith("--"):
                name = argument[2:].partition("=")[0]
                assert re.search(rf"\b{name}\b", text), (program, argument)
