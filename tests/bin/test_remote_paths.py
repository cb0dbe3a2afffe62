"""The programs on files of a file system that only TensorFlow has."""

import pytest

from tests.program_fixtures import PAIRS


@pytest.fixture
def folder(any_folder):
    for side in (0, 1):
        lines = "".join(f"{pair[side]}\n" for pair in PAIRS * 5)
        (any_folder / f"text.{side}").write_text(lines)
    return any_folder


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

    settings = ["num_layers=1", "d_model=16", "d_ff=16", "num_heads=2"]
    train = ["train", data, model, "--preset=tiny", "--tokens_per_batch=200"]
    train += [f"--config={setting}" for setting in settings] + ["--checkpoint_steps=2"]
    assert call(*train, "--train_steps=3")["step"] == 3
    assert call("average_checkpoints", model)["averaged"] == 2

    export = f"{folder}/export"
    of_export = [model, f"--export_dir={export}", "--checkpoint=average:2", "--beam_size=1"]
    assert call("export", *of_export)["saved_model"] == export
    streams = [f"--input={folder}/text.0", f"--output={folder}/answers.txt"]
    assert call("translate", f"--saved_model={export}", *streams)["lines"] == 15
    assert (folder / "answers.txt").read_bytes().count(b"\n") == 15
