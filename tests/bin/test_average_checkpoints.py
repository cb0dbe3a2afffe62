import shutil

from tests.refusals import check_line
from tests.restoring import restore


def test_the_average_is_used_from_then_on(call_program, untrained, tmp_path):
    model_dir = shutil.copytree(untrained, tmp_path / "model")
    done = call_program("average_checkpoints", f"--model_dir={model_dir}", "--last=2")
    assert done.code == 0, done.errors
    assert (done.result["averaged"], done.result["step"]) == (2, 20)
    info = restore(model_dir).card.checkpoint
    assert (info.checkpoint, info.step, info.averaged) == ("average:2", 20, 2)


def test_wrong_input(call_program, untrained, tmp_path):
    done = call_program("average_checkpoints", f"--model_dir={tmp_path}")
    assert done.code == 1
    check_line(done.errors, "--model_dir", tmp_path, "training")
    done = call_program("average_checkpoints", "--model_dir=")
    assert done.code == 1
    check_line(done.errors, "--model_dir", "''", "given")
    done = call_program("average_checkpoints", f"--model_dir={untrained}", "--last=0")
    assert done.code == 1
    check_line(done.errors, "--last", "0")
