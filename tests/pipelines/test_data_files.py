from pipelines.data_files import leftovers, remove_leftovers


def test_only_own_leftovers_are_removed(any_folder):
    data = ["vocabulary.txt", "test.source.txt", "train-00000-of-00002.tfrecord"]
    temporary = [".metadata.json.0a1b.tmp", ".train-00000-of-00002.tfrecord.0a1b.tmp"]
    foreign = ["notes.txt", "my.tfrecord", "vocabulary.txt.bak", "metadata.json", ".notes.0a.tmp"]
    for name in data + temporary + foreign:
        (any_folder / name).write_text("x")
    (any_folder / "unfinished").mkdir()
    (any_folder / "unfinished" / "train-block-00000.json").write_text("x")
    assert len(leftovers(any_folder)) == len(data + temporary) + 1
    remove_leftovers(any_folder, keep_data=True)
    assert sorted(path.name for path in any_folder.iterdir()) == sorted(data + foreign)
    remove_leftovers(any_folder, keep_data=False)
    assert sorted(path.name for path in any_folder.iterdir()) == sorted(foreign)
    assert not leftovers(any_folder)
