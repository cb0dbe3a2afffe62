import pytest

from pipelines.sample_text import sample_pairs

SIZES = {"train": 80_000, "validation": 1000, "test": 1000, "test_compositional": 1000}


@pytest.fixture(scope="module")
def splits():
    return {split: sample_pairs(split) for split in SIZES}


def test_a_pair_is_a_sentence_and_its_translation(splits):
    source = "Every thief repaired my broken machine in the gardens."
    target = "Jeder Dieb reparierte meine kaputte Maschine in den Gärten."
    assert (source, target) in splits["train"]
    source = "All guests who close our boxes have cooked meat."
    target = "Alle Gäste, die unsere Schachteln schließen, haben Fleisch gekocht."
    assert (source, target) in splits["test_compositional"]


def test_the_splits_have_distinct_pairs_and_share_no_sentence(splits):
    assert {split: len(set(pairs)) for split, pairs in splits.items()} == SIZES
    for side in (0, 1):
        sentences = [{pair[side] for pair in pairs} for pairs in splits.values()]
        assert len(set.union(*sentences)) == sum(map(len, sentences))


def test_only_the_compositional_split_combines_some_words_and_constructions(splits):
    forms = {"gekocht", "geputzt", "getanzt", "gedankt"}  # participles; "kochte" is trained
    words = {split: {word.strip(".,?") for pair in splits[split] for word in pair[1].split()}
             for split in splits}  # fmt: skip
    assert forms <= words["test_compositional"]
    for split in ("train", "validation", "test"):
        assert not forms & words[split]
    assert {"kochte", "putzte", "tanzte", "dankte"} <= words["train"]
