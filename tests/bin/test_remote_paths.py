"""The programs on files of a file system that only TensorFlow has."""

import pytest
import tensorflow as tf

from tests.program_fixtures import PAIRS
from tests.refusals import check_line


@pytest.fixture
def folder(any_folder):
    for side in (0, 1):
        lines = "".join(f"{pair[side]}\n" for pair in PAIRS * 5)
        (any_folder / f"text.{side}").write_text(lines)
    return any_folder


@pytest.mark.slow  # runs all programs
@pytest.mark.parametrize("any_folder", ["remote"], indirect=True)
def test_every_program_takes_remote_paths(call_program, folder):
    def call(name, *arguments):
        done = call_program(name, *arguments)
        assert done.code == 0, done.errors
        return done.result

    data, model = f"--data_dir={folder}/data", f"--model_dir={folder}/model"
    texts = [f"--{name}={folder}/text.{side}" for side, name in enumerate(("source", "target"))]
    files = [text.replace("--", f"--{split}_") for split in ("train", "test") for text in texts]
    prepare = ["prepare_data", "--dataset=files", data, "--vocab_size=310", *files]
    assert call(*prepare)["pairs"] == {"train": 15, "test": 15}
    assert call(*prepare)["up_to_date"]

    settings = ["num_layers=1", "d_model=8", "d_ff=8", "num_heads=2"]
    train = ["train", data, model, "--preset=tiny", "--tokens_per_batch=200"]
    train += [f"--config={setting}" for setting in settings] + ["--checkpoint_steps=1"]
    assert call(*train, "--train_steps=2")["step"] == 2
    assert call("average_checkpoints", model)["averaged"] == 2
    assert "bleu" in call("evaluate", data, model, "--beam_size=1", "--split=test")
    assert (folder / "model" / "evaluation-test.json").is_file()

    export = f"{folder}/export"
    of_export = [model, f"--export_dir={export}", "--checkpoint=average:2", "--beam_size=1"]
    signatures = "--signatures=greedy_ids"  # what translating needs
    assert call("export", *of_export, signatures)["saved_model"] == export
    streams = [f"--input={folder}/text.0", f"--output={folder}/answers.txt"]
    assert call("translate", f"--saved_model={export}", *streams)["lines"] == 15
    assert (folder / "answers.txt").read_bytes().count(b"\n") == 15


@pytest.mark.parametrize(
    ("program", "subject", "received"),
    [
        ("average_checkpoints", "File system scheme 'none'", None),
        ("sweep --data_dir=d", "--model_dir", "none://b/m"),
        ("import_model --path=ram://m", "--path", "ram://m"),
    ],
)
def test_what_cannot_be_remote_is_one_line(call_program, program, subject, received, tmp_path):
    if program.startswith("import"):
        done = call_program(*program.split(), f"--model_dir={tmp_path / 'new'}")
    else:
        done = call_program(*program.split(), "--model_dir=none://b/m")
    assert done.code == 1
    assert done.errors.count("\n") == 1
    check_line(done.errors, subject, received)


def test_what_tensorflow_cannot_read_is_one_line(load_program):
    load_program("average_checkpoints", "--model_dir=any")
    from command.errors import remote_errors

    with pytest.raises(OSError, match=r"^no network, reading gs://b/shard$"), remote_errors():
        raise tf.errors.UnavailableError(None, None, "no network, reading gs://b/shard\nat all")
    with pytest.raises(tf.errors.UnavailableError), remote_errors():
        raise tf.errors.UnavailableError(None, None, "an error of the program")
