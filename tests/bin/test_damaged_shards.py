"""bin/train.py and bin/evaluate.py on data that is no longer what it was."""

import json
import shutil

from pipelines.metadata import read_metadata
from pipelines.sharding import frames
from tests.refusals import check_line

TINY = ["num_layers=1", "d_model=16", "d_ff=16", "num_heads=2"]


def train_flags(data_dir, model_dir):
    settings = [f"--config={setting}" for setting in TINY]
    limits = ["--tokens_per_batch=200", "--train_steps=2", "--preset=tiny"]
    return [f"--data_dir={data_dir}", f"--model_dir={model_dir}", *settings, *limits]


def test_training_names_the_shard_in_one_line(call_program, prepared, tmp_path):
    data_dir = shutil.copytree(prepared, tmp_path / "data")
    (shard,) = (data_dir / name for name in read_metadata(data_dir).splits["train"].shards)
    content = bytearray(shard.read_bytes())
    _, end = frames(content)[-1]
    content[end - 6] ^= 1  # a bit of the last record
    shard.write_bytes(content)
    done = call_program("train", *train_flags(data_dir, tmp_path / "model"))
    assert done.code == 1 and not done.output
    check_line(done.errors, shard, "a damaged record")


def test_training_refuses_changed_metadata(call_program, prepared, tmp_path):
    data_dir = shutil.copytree(prepared, tmp_path / "data")
    content = json.loads((data_dir / "metadata.json").read_text())
    content["splits"]["train"]["longest_source"] = 2**40
    (data_dir / "metadata.json").write_text(json.dumps(content))
    done = call_program("train", *train_flags(data_dir, tmp_path / "model"))
    assert done.code == 1 and not done.output
    check_line(done.errors, data_dir / "metadata.json", about="unchanged")
    assert not (tmp_path / "model").exists()


def test_evaluation_refuses_a_changed_test_set(call_program, prepared, untrained, tmp_path):
    data_dir = shutil.copytree(prepared, tmp_path / "data")
    text = data_dir / "test.target.txt"
    text.write_text(text.read_text().replace("hund", "Hund"))
    done = call_program("evaluate", f"--data_dir={data_dir}", f"--model_dir={untrained}")
    assert done.code == 1 and not done.output
    check_line(done.errors, text, "changed")
