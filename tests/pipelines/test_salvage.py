import itertools
import shutil
from collections import Counter
from pathlib import Path

import pytest
import tensorflow as tf

from keras_transformer import InputError
from keras_transformer.vocabulary.subwords import Subwords
from pipelines import sharding
from pipelines.preparation import PreparationConfig, prepare
from pipelines.records import read_metadata
from pipelines.salvage import damage_named, records_lost, without_bad_records
from pipelines.sources import FileSource
from pipelines.tfrecords import frames
from pipelines.translation import evaluation_batches, training_batches

PAIRS = 120
TEXT = [("dog " * (1 + n % 8) + f"{n}", "Hund " * (1 + n % 7) + f"{n}") for n in range(PAIRS)]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Three shards of about 40 pairs, and a validation split."""
    folder = tmp_path_factory.mktemp("sound")
    return prepared(folder / "data", folder)


@pytest.fixture
def data_dir(sound, tmp_path):
    return Path(shutil.copytree(sound, tmp_path / "data"))


def prepared(data_dir, folder, vocab_size=300):
    paths = [folder / "text.en", folder / "text.de"]
    for path, lines in zip(paths, zip(*TEXT, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines))
    files = tuple([str(path)] for path in paths)
    source = FileSource({"train": files, "validation": files})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharding, "_PAIRS_PER_SHARD", 40)
        prepare(source, data_dir, PreparationConfig(vocab_size=vocab_size, max_length=60))
    return data_dir


def shards(data_dir, split="train"):
    return [data_dir / name for name in read_metadata(data_dir).splits[split].shards]


def flip(path, *places):
    content = bytearray(path.read_bytes())
    for place in places:
        content[place] ^= 4
    path.write_bytes(content)


def texts(data_dir):
    """The source sentences of an epoch, counted."""
    subwords, pairs = Subwords.load(data_dir), read_metadata(data_dir).splits["train"].pairs
    sentences = []
    for source, _ in training_batches(data_dir, 500, seed=1):
        sentences += [text.decode() for text in subwords.decode_tensor(source).numpy()]
        if len(sentences) >= pairs:
            return Counter(sentences)


def test_damage_is_named_in_training_and_evaluation(data_dir):
    for split in ("train", "validation"):
        shard = shards(data_dir, split)[-1]
        begin, end = frames(shard.read_bytes())[-1]
        prepared_so = shard.read_bytes()
        message = rf"{shard.name} must hold sound records: .* --skip_bad_records\. .* byte {begin}$"
        iterators = {
            "train": iter(training_batches(data_dir, 500, seed=1)),
            "validation": iter(evaluation_batches(data_dir, "validation", 500)),
        }
        flip(shard, end - 6)  # while they are read, for the beginning is looked at before
        with pytest.raises(InputError, match=message), damage_named(data_dir):
            for _ in itertools.islice(iterators[split], 500):
                pass
        with pytest.raises(InputError, match=message):
            training_batches(data_dir, 500, seed=1)
        shard.write_bytes(prepared_so)


def test_a_shard_lost_while_training_is_named(data_dir):
    shard = shards(data_dir)[1]
    iterator = iter(training_batches(data_dir, 500, seed=1))
    shard.unlink()
    with (
        pytest.raises(InputError, match=rf"{shard.name} must have .* no such file"),
        damage_named(data_dir),
    ):
        for _ in itertools.islice(iterator, 500):
            pass


def test_other_errors_pass(data_dir):
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"), damage_named(data_dir):
        tf.io.read_file("nowhere")


def test_sound_data_stay_where_they_are(data_dir):
    assert without_bad_records(data_dir) == data_dir
    assert records_lost(data_dir) == 0


def test_bad_records_are_left_out_and_counted(data_dir):
    expected = texts(data_dir)
    spans = [frames(shard.read_bytes()) for shard in shards(data_dir)]
    subwords = Subwords.load(data_dir)
    first, second, third = shards(data_dir)
    flip(first, spans[0][0][0] + 3, spans[0][7][1] - 20)  # a length; the content of another
    second.unlink()
    third.write_bytes(third.read_bytes()[: spans[2][-3][0] + 20])
    folder = without_bad_records(data_dir)
    lost = 2 + len(spans[1]) + 3
    info = read_metadata(folder).splits["train"]
    assert info.pairs == PAIRS - lost and info.dropped["bad_record"] == lost == records_lost(folder)
    assert records_lost(folder, "validation") == 0
    found = texts(folder)
    assert found < expected and found.total() == PAIRS - lost
    assert Subwords.load(folder).fingerprint == subwords.fingerprint
    assert len(list(evaluation_batches(folder, "validation", 500))) > 1
    # The same every time: each worker makes its own, and a resumed run another.
    again = without_bad_records(data_dir)
    assert again != folder and [path.read_bytes() for path in shards(again)] == [
        path.read_bytes() for path in shards(folder)
    ]


def test_shards_of_two_vocabularies_are_not_mixed(data_dir, tmp_path):
    other = prepared(tmp_path / "other", tmp_path, vocab_size=310)
    mixed = shards(data_dir)[2]
    mixed.write_bytes((other / mixed.name).read_bytes())
    with pytest.raises(InputError, match=rf"{mixed.name} must be the shard that was prepared"):
        without_bad_records(data_dir)
    with pytest.raises(InputError, match=rf"{mixed.name} must (have \d+ bytes|be the shard that)"):
        training_batches(data_dir, 500, seed=1)


def test_empty_shards_and_lost_splits(data_dir):
    first = shards(data_dir)[0]
    lost = len(frames(first.read_bytes()))
    validation = shards(data_dir, "validation")
    first.write_bytes(b"")
    for shard in validation:
        shard.unlink()
    folder = without_bad_records(data_dir)
    assert records_lost(folder) == lost and records_lost(folder, "validation") == PAIRS
    assert texts(folder).total() == PAIRS - lost
    assert list(evaluation_batches(folder, "validation", 500)) == []


def test_something_must_be_left(data_dir):
    for shard in shards(data_dir):
        shard.unlink()
    with pytest.raises(InputError, match=r"must hold sound training records. Received: none"):
        without_bad_records(data_dir)
