import gzip
import itertools
import os
import pickle
import random
import unicodedata
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.vocabulary.pair import VocabularyPair
from pipelines.batches.data_set import DataSet
from pipelines.prepare import selection, sharding
from pipelines.prepare.metadata import read_metadata
from pipelines.prepare.preparation import PreparationConfig, prepare
from pipelines.prepare.selection import SelectionConfig, first_occurrences, select
from pipelines.sources import files
from pipelines.sources.files import FileSource
from tests.refusals import refused

WORDS = ["Dog", "dog", "ΣΚΎΛΟΣ", "собака", "犬", "12", "1,000", "٣", "!", "Straße", "ー", "µ"]
SETTINGS = {"vocab_size": 330, "max_length": 40}


def messy(count, seed=1):
    """Random pairs of few words, so that every rule is broken often, and often by one word."""
    generator = random.Random(seed)
    side = lambda: " ".join(generator.choices(WORDS, k=generator.randint(0, 5)))  # noqa: E731
    pairs = [(side(), side()) for _ in range(count // 2)]
    return [*pairs, *[(text.lower(), text) for text, _ in pairs]]


def source_of(folder, *files, **splits):
    """A FileSource of training files with such pairs, and of other splits."""
    folder.mkdir(exist_ok=True)
    named = {"train": files, **{split: [pairs] for split, pairs in splits.items()}}
    paths = {split: ([], []) for split in named}
    for split, parts in named.items():
        for number, part in enumerate(parts):
            for side in (0, 1):
                path = folder / f"{split}{number}.{side}.gz"
                path.write_bytes(gzip.compress("".join(f"{p[side]}\n" for p in part).encode()))
                paths[split][side].append(str(path))
    return FileSource(paths)


def is_letter(character):
    return unicodedata.category(character).startswith("L")


def share_of(prefixes, text):
    """By the names of characters; those of `WORDS` that many scripts share are in any."""
    letters = [character for character in text if is_letter(character)]
    named = [unicodedata.name(c).startswith(prefixes) or c in "ーµ" for c in letters]
    return sum(named) / len(letters) if letters else 1


def numbers_of(text):
    """The numbers of `WORDS`, whose digits are of two scripts."""
    found = {"12": [12], "1,000": [1, 0], "٣": [3]}
    return [number for word in text.split() for number in found.get(word, [])]


def overlap(source, target):
    left, both = numbers_of(target), 0
    for number in numbers_of(source):
        if number in left:
            left.remove(number)
            both += 1
    total = len(numbers_of(source)) + len(numbers_of(target))
    return 2 * both / total if total else 1


def lengths(pair, unit):
    return [len(side.split()) if unit == "words" else len(side.strip()) for side in pair]


@pytest.mark.parametrize(
    ("rule", "settings", "stays"),
    [
        ("drop_identical", {"drop_identical": True}, lambda s, t: s.casefold() != t.casefold()),
        (
            "length_limits",
            {"length_limits": [2, 3]},
            lambda *pair: all(2 <= n <= 3 for n in lengths(pair, "words")),
        ),
        (
            "length_ratio",
            {"length_ratio": 1.5},
            lambda *pair: max(lengths(pair, "words")) <= 1.5 * min(lengths(pair, "words")),
        ),
        (
            "length_ratio",
            {"length_ratio": 2, "length_unit": "characters"},
            lambda *pair: max(lengths(pair, "")) <= 2 * min(lengths(pair, "")),
        ),
        (
            "scripts",
            {"scripts": ["Latin+Han", "Cyrillic"]},
            lambda s, t: share_of(("LATIN", "CJK"), s) >= 0.5 and share_of("CYRILLIC", t) >= 0.5,
        ),
        (
            "scripts",
            {"scripts": ["Greek", "Latin"], "script_share": 0.8},
            lambda s, t: share_of("GREEK", s) >= 0.8 and share_of("LATIN", t) >= 0.8,
        ),
        ("number_overlap", {"number_overlap": 0.6}, lambda *pair: overlap(*pair) >= 0.6),
        ("number_overlap", {"number_overlap": 1.0}, lambda *pair: overlap(*pair) == 1),
    ],
)
def test_a_rule_leaves_out_what_a_plain_reference_does(tmp_path, rule, settings, stays):
    pairs = messy(1000)
    chosen, survey, dropped, examples = select(
        source_of(tmp_path, pairs), SelectionConfig(**settings)
    )
    expected = [pair for pair in pairs if stays(*pair)]
    assert 20 < len(expected) < 980  # the rule is put to the test
    assert list(chosen.pairs("train")) == expected and survey.counts == {"train": len(expected)}
    assert dropped == {rule: len(pairs) - len(expected)}
    left_out = [list(pair) for pair in pairs if not stays(*pair)]
    assert examples == {rule: left_out[:3]}


def test_the_first_of_equal_pairs_stays(tmp_path):
    pairs = messy(3000, seed=2)
    seen, expected = set(), []
    for pair in pairs:
        if pair not in seen:
            expected.append(pair)
        seen.add(pair)
    assert len(expected) < len(pairs) - 100
    source = source_of(tmp_path, pairs[:700], pairs[700:])  # also among files
    chosen, _, dropped, _ = select(source, SelectionConfig(dedupe=True))
    assert list(chosen.pairs("train")) == expected
    assert dropped == {"dedupe": len(pairs) - len(expected)}


def test_first_occurrences_of_hashes():
    hashes = np.random.default_rng(3).integers(0, 700, size=2000).astype(np.uint64)
    hashes[::3] += np.uint64(1 << 40)  # their lowest bytes are those of others
    positions = {value: place for place, value in reversed(list(enumerate(hashes.tolist())))}
    assert np.flatnonzero(first_occurrences(hashes)).tolist() == sorted(positions.values())


def test_a_pair_is_counted_under_the_first_rule_that_it_breaks(tmp_path):
    pairs = [("a b", "A  b"), ("a b", "A  b"), ("a", "b c 7"), ("d e", "f g"), ("d e", "f g")]
    config = SelectionConfig(
        drop_identical=True, length_ratio=2, number_overlap=0.5, dedupe=True, scripts=["Latin"] * 2
    )
    _, _, dropped, examples = select(source_of(tmp_path, [*pairs, ("x" * 300, "y")]), config)
    broken = {"length_ratio": 1, "scripts": 0, "number_overlap": 0, "dedupe": 2}
    assert dropped == {"drop_identical": 0, **broken}
    assert examples["length_ratio"] == [["a", "b c 7"]]
    _, _, _, examples = select(
        source_of(tmp_path, [("x" * 300, "y"), *pairs]),
        SelectionConfig(length_ratio=2, length_unit="characters"),
    )
    assert examples["length_ratio"][0] == ["x" * 100, "y"]


def test_examples_of_duplicates_are_of_the_first_pairs(tmp_path, monkeypatch):
    pairs = [("a", "b"), ("c", "d"), ("e", "f"), ("a", "b"), ("e", "f")]
    monkeypatch.setattr(selection, "_SEARCHED_PAIRS", 2)
    _, _, dropped, examples = select(source_of(tmp_path, pairs), SelectionConfig(dedupe=True))
    assert (dropped, examples) == ({"dedupe": 2}, {"dedupe": [["a", "b"]]})


def test_the_text_is_read_once(tmp_path, monkeypatch):
    source = source_of(tmp_path, messy(50), messy(50), test=messy(5))
    opened, read = [], files.read_lines
    monkeypatch.setattr(files, "read_lines", lambda path, _: opened.append(path) or read(path, _))
    select(source, SelectionConfig(**RULES, temperature=2))
    assert sorted(opened) == sorted(source.files())


RULES = {"dedupe": True, "length_limits": [1, 4], "number_overlap": 0.5}


def cleaned(pairs):
    """Applies `RULES`, in independent code."""
    left = [p for p in pairs if all(1 <= n <= 4 for n in lengths(p, "words"))]
    return list(dict.fromkeys(pair for pair in left if overlap(*pair) >= 0.5))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(sharding, "BLOCK_PAIRS", 60)
    monkeypatch.setattr(sharding, "_PAIRS_PER_SHARD", 75)


def data_of(folder):
    """The files of a data set but metadata.json, and what that says of its training split."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    del files["metadata.json"]
    return files, read_metadata(folder).splits["train"]


def test_the_data_set_is_that_of_the_cleaned_text(tmp_path, small_blocks, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    pairs, test = messy(600), messy(20, seed=4)
    source = source_of(tmp_path / "messy", pairs[:200], pairs[200:], test=test)
    result = prepare(source, tmp_path / "data", PreparationConfig(**SETTINGS, **RULES))
    by_hand = source_of(tmp_path / "clean", cleaned(pairs), test=test)
    prepare(by_hand, tmp_path / "by_hand", PreparationConfig(**SETTINGS))
    files, info = data_of(tmp_path / "data")
    expected_files, expected = data_of(tmp_path / "by_hand")
    assert files == expected_files and len(info.shards) > 1  # vocabulary, shards, text of test
    assert info.pairs == expected.pairs == result["pairs"]["train"] > 100
    assert sum(info.dropped.values()) + info.pairs == 600
    assert set(info.dropped) == {"blank", "too_long", *RULES} == set(result["dropped"]["train"])
    assert set(info.examples) == set(RULES) and len(info.examples["dedupe"]) == 3
    assert set(result["dropped"]["test"]) == {"blank", "too_long"}
    again = prepare(source, tmp_path / "data", PreparationConfig(**SETTINGS, **RULES))
    assert again["up_to_date"]
    with refused("data_dir", "None, there: [1, 4]", about="length_limits"):
        prepare(source, tmp_path / "data", PreparationConfig(**SETTINGS))


def test_an_epoch_has_each_pair_as_often_as_its_weight_says(tmp_path):
    large, small = [(f"a {n}", f"b {n}") for n in range(40)], [("c d", "e f"), ("g", "h")]
    third = [(f"i {n}", "j") for n in range(8)]
    source = source_of(tmp_path, large, [*small, large[0]], third)
    config = PreparationConfig(vocab_size=300, dedupe=True, weights=[1, 5, 1.25])
    prepare(source, tmp_path / "data", config)
    expected = Counter(large)
    expected.update(small * 5)
    expected.update([*third, third[3], third[7]])  # every fourth one a second time
    info = read_metadata(tmp_path / "data").splits["train"]
    assert info.pairs == expected.total() and info.dropped["dedupe"] == 1
    subwords, seen = VocabularyPair.load(tmp_path / "data").target, Counter()
    batches = iter(DataSet.open(tmp_path / "data").training_batches(100, seed=1))
    for epoch in (1, 2):
        while seen.total() < epoch * info.pairs:
            texts = [subwords.decode(side.numpy().tolist()) for side in next(batches)]
            seen.update(zip(*texts, strict=True))
        assert seen == Counter({pair: epoch * times for pair, times in expected.items()})
    saved = tf.train.Checkpoint(batches=batches).write(str(tmp_path / "iterator"))
    following = [next(batches) for _ in range(20)]
    restored = iter(DataSet.open(tmp_path / "data").training_batches(100, seed=1))
    tf.train.Checkpoint(batches=restored).read(saved)
    for expected_batch in following:
        for side, expected_side in zip(next(restored), expected_batch, strict=True):
            np.testing.assert_array_equal(side, expected_side)


def test_parts_can_be_read_elsewhere(tmp_path):
    pairs = messy(300)
    source = source_of(tmp_path, pairs[:100], pairs[100:130], pairs[130:])
    chosen, survey, _, _ = select(source, SelectionConfig(dedupe=True, weights=[1, 3, 0.5]))
    parts = [pickle.loads(pickle.dumps(part)) for part in chosen.parts("train")]
    texts = [list(part.pairs("train")) for part in parts]
    assert list(itertools.chain(*texts)) == list(chosen.pairs("train"))
    assert survey.part_sizes == list(map(len, texts))


def test_weights_of_another_number_of_files_are_refused_before_they_are_read(tmp_path, monkeypatch):
    source = source_of(tmp_path, messy(10), messy(10))
    monkeypatch.setattr(type(source), "survey", lambda *_: pytest.fail("it reads all files"))
    with refused("weights", "[1.0]", about="2 numbers"):
        prepare(source, tmp_path / "data", PreparationConfig(**SETTINGS, weights=[1.0]))


def test_the_largest_weight_is_accepted():
    assert SelectionConfig(weights=[0, 1000]).weights == [0, 1000]


@pytest.mark.parametrize(
    ("settings", "argument", "received"),
    [
        ({"length_ratio": 0.0}, "length_ratio", "0.0"),
        ({"length_limits": [3]}, "length_limits", "[3]"),
        ({"length_limits": [3, -1]}, "length_limits[1]", "-1"),
        ({"length_unit": "bytes"}, "length_unit", "bytes"),
        ({"script_share": 1.5}, "script_share", "1.5"),
        ({"script_share": 0.9}, "script_share", "0.9"),
        ({"length_unit": "characters"}, "length_unit", "characters"),
        ({"length_unit": "characters", "scripts": ["Latin"] * 2}, "length_unit", "characters"),
        ({"weights": [0, 1000.5]}, "weights[1]", "1000.5"),
        ({"weights": [0.0, 0.0]}, "weights", "[0.0, 0.0]"),
        ({"length_limits": [9, 3]}, "length_limits", "[9, 3]"),
        ({"scripts": ["Latin", "Greek}|."]}, "scripts[1]", "Greek}|."),
        ({"scripts": ["Latin", "inf"]}, "scripts[1]", "inf"),
        ({"scripts": ["Latin", "nan"]}, "scripts[1]", "nan"),
        ({"scripts": ["Latin", "Han+Klingon"]}, "scripts[1]", "Han+Klingon"),
        (
            {"dedupe": True, "length_limits": [40, 50]},
            "length_limits",
            "{'length_limits': 20, 'dedupe': 0}",
        ),
    ],
)
def test_impossible_settings_are_named(tmp_path, settings, argument, received):
    source = source_of(tmp_path, messy(10), messy(10))
    with refused(argument, received):
        prepare(source, tmp_path / "data", PreparationConfig(**SETTINGS, **settings))
    assert not (tmp_path / "data" / "metadata.json").exists()
