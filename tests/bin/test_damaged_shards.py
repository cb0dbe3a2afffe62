"""bin/train.py and bin/evaluate.py on data that is no longer what it was."""

import json
import shutil

import pytest

from pipelines.metadata import read_metadata
from pipelines.sharding import frames
from tests.refusals import check_line, refused

TINY = ["num_layers=1", "d_model=16", "d_ff=16", "num_heads=2"]


@pytest.fixture
def damage(prepared, tmp_path):
    """Makes a copy of the data; flips a bit of a split's last record."""
    data_dir = tmp_path / "data"
    shutil.copytree(prepared, data_dir)

    def damage(split):
        (shard,) = (data_dir / name for name in read_metadata(data_dir).splits[split].shards)
        content = bytearray(shard.read_bytes())
        _, end = frames(content)[-1]
        content[end - 6] ^= 1
        shard.write_bytes(content)
        return data_dir

    return damage


def train_flags(data_dir, model_dir):
    settings = [f"--config={setting}" for setting in TINY]
    limits = ["--tokens_per_batch=200", "--train_steps=2", "--preset=tiny"]
    return [f"--data_dir={data_dir}", f"--model_dir={model_dir}", *settings, *limits]


def test_training_names_the_shard_in_one_line(call_program, damage, tmp_path):
    data_dir = damage("train")
    done = call_program("train", *train_flags(data_dir, tmp_path / "model"))
    assert done.code == 1 and not done.output
    check_line(done.errors, f"{data_dir}/train-00000-of-00001.tfrecord", "a damaged record")


def test_evaluation_names_the_shard(load_program, damage, untrained):
    data_dir = damage("test")
    flags = [f"--data_dir={data_dir}", f"--model_dir={untrained}", "--beam_size=1", "--limit=1"]
    with refused(None, "a damaged record", "test-00000"):
        load_program("evaluate", *flags).main()


@pytest.fixture
def change_metadata(prepared, tmp_path):
    """Makes a copy of the data whose metadata.json says something else of the training split."""
    data_dir = tmp_path / "data"
    shutil.copytree(prepared, data_dir)

    def change(**fields):
        content = json.loads((data_dir / "metadata.json").read_text())
        content["splits"]["train"].update(fields)
        (data_dir / "metadata.json").write_text(json.dumps(content))
        return data_dir

    return change


@pytest.mark.parametrize(
    "fields",
    [
        {"shards": {}},
        {"pairs": 0, "length_histogram": {}},
        {"longest_source": 2, "longest_target": 2},
        {"longest_source": 2**40},
    ],
)
def test_training_refuses_changed_metadata(call_program, change_metadata, tmp_path, fields):
    data_dir = change_metadata(**fields)
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
