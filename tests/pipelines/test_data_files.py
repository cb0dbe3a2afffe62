from pathlib import Path

from pipelines.prepare.data_files import named_as_data, text_files


def test_names_of_data_files(any_folder):
    data = ["vocabulary.txt", "test.source.txt", "train-00000-of-00002.tfrecord"]
    others = ["notes.txt", "my.tfrecord", "vocabulary.txt.bak", "metadata.json", ".notes.0a.tmp"]
    for name in data + others:
        (any_folder / name).write_text("x")
    assert sorted(named_as_data(any_folder)) == sorted(data)


def test_text_is_kept_of_all_splits_but_train():
    assert text_files("d", "train", ["source", "trees"]) == []
    assert text_files("d", "test", ["source", "target"]) == [
        Path("d/test.source.txt"),
        Path("d/test.target.txt"),
    ]
    assert text_files("d", "dev", ["source", "target", "trees"])[2] == Path("d/dev.trees.txt")
