from keras_transformer.kit.serving import file_store
from keras_transformer.kit.serving.file_store import KEPT_SECONDS, MOST_FILES, FileStore


def test_files_are_kept_for_a_while():
    now = [100.0]
    store = FileStore(clock=lambda: now[0])
    first = store.add(b"a", ".md")
    now[0] += KEPT_SECONDS - 1
    second = store.add(b"b", ".md")
    assert (store.get(first), store.get(second)) == (b"a", b"b")
    now[0] += 1
    assert (store.get(first), store.get(second)) == (None, b"b")
    assert store.get("absent") is None


def test_there_are_never_too_many():
    now = [100.0]
    store = FileStore(clock=lambda: now[0])
    names = []
    for number in range(MOST_FILES + 2):
        now[0] += 1
        names.append(store.add(b"%d" % number, ""))
    kept = [store.get(name) for name in names]
    assert kept[:3] == [None, None, b"2"] and None not in kept[2:]


def test_there_are_never_too_many_bytes(monkeypatch):
    monkeypatch.setattr(file_store, "MOST_BYTES", 10)
    store = FileStore(clock=lambda: 100.0)
    names = [store.add(content, "") for content in (b"a" * 4, b"b" * 6, b"c" * 5, b"d" * 11)]
    assert [store.get(name) for name in names] == [None, None, None, b"d" * 11]
    names = [store.add(content, "") for content in (b"e" * 4, b"f" * 6, b"g")]
    assert [store.get(name) for name in names] == [None, b"f" * 6, b"g"]


def test_names_tell_nothing_and_lead_nowhere():
    store = FileStore()
    names = {store.add(b"", ending) for ending in (".md", ".md", "")}
    assert len(names) == 3 and sum(name.endswith(".md") for name in names) == 2
    assert [store.get(name) for name in ("..", "../x", "a" * 32, "/etc/hostname")] == [None] * 4
    assert all(len(name) >= 32 and "/" not in name and ".." not in name for name in names)
