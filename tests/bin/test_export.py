import pytest


@pytest.fixture(scope="module")
def exported(run_program, untrained, tmp_path_factory):
    export_dir = tmp_path_factory.mktemp("export") / "model" / "1"
    arguments = [f"--model_dir={untrained}", f"--export_dir={export_dir}", "--beam_size=2"]
    return run_program("export", *arguments, "--checkpoint=average:2"), export_dir


def test_result(exported):
    done, export_dir = exported
    assert done.code == 0
    assert done.result["saved_model"] == str(export_dir)
    assert done.result["checkpoint"] == "average:2"
    size = sum(path.stat().st_size for path in export_dir.rglob("*") if path.is_file())
    assert done.result["bytes"] == size


def test_translate_gives_the_same_from_both(run_program, exported, untrained, tmp_path):
    _, export_dir = exported
    lines = tmp_path / "lines.txt"
    lines.write_text("the cat\n\nbig red dogs\n")
    outputs = []
    for place in (
        [f"--saved_model={export_dir}"],
        [f"--model_dir={untrained}", "--checkpoint=average:2", "--beam_size=2"],
    ):
        output = tmp_path / f"out{len(outputs)}.txt"
        files = [f"--input={lines}", f"--output={output}"]
        done = run_program("translate", *place, *files, "--n_best=2")
        assert done.result["checkpoint"] == "average:2"
        outputs.append(output.read_text())
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 5, "the blank line has one answer"


def test_second_export_needs_overwrite(run_program, exported, untrained):
    _, export_dir = exported
    arguments = [f"--model_dir={untrained}", f"--export_dir={export_dir}"]
    done = run_program("export", *arguments)
    assert done.code == 1
    assert "--export_dir must not exist yet, or be empty, without --overwrite" in done.errors
    done = run_program("export", *arguments, "--overwrite", "--checkpoint=best")
    assert done.result["checkpoint"] == "step-00000020"


def test_unknown_format(run_program):
    done = run_program("export", "--model_dir=m", "--export_dir=e", "--format=onnx")
    assert done.code == 1
    assert "format" in done.errors.splitlines()[-1]
