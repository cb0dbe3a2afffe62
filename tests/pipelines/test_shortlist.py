import numpy as np
import pytest

from keras_transformer.config import EOS_ID, UNK_ID
from pipelines import shortlist
from pipelines.shortlist import learn_shortlist, likely_targets

# A dictionary of ten words, and target 30, which comes in every sentence; in any order.
DICTIONARY = {source: source + 10 for source in range(10, 20)}


def sentences(count):
    generator = np.random.default_rng(1)
    for _ in range(count):
        words = generator.choice(list(DICTIONARY), generator.integers(1, 6))
        targets = generator.permutation([DICTIONARY[word] for word in words] + [30])
        yield np.append(words, EOS_ID), np.append(targets, EOS_ID)


def plain_model_1(pairs, vocab_size):
    """Brown et al. 1993 as a textbook has it, over the distinct subwords of each source."""
    table = np.ones((vocab_size, vocab_size))
    for _ in range(shortlist._ITERATIONS):
        counts = np.zeros_like(table)
        for source, target in pairs:
            for token in target:
                shares = np.array([table[word, token] for word in sorted(set(source))])
                for word, share in zip(sorted(set(source)), shares / shares.sum(), strict=True):
                    counts[word, token] += share
        table = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-30)
    return table


def test_likely_targets_are_those_of_model_1():
    pairs = list(sentences(60))
    found = likely_targets(*map(list, zip(*pairs, strict=True)), None, 32)
    table = plain_model_1(pairs, 32)
    for source, ids in enumerate(found):
        assert ids[0] == source, "what is copied"
        wanted = np.flatnonzero(table[source] > shortlist.LEAST_PROBABILITY)
        assert sorted(ids[1:]) == [token for token in wanted if token != source]
        probabilities = table[source][ids[1:]]
        assert np.all(np.diff(probabilities) <= 1e-9), "the most probable first"
    for source, target in DICTIONARY.items():
        assert found[source][1] == target
    assert set(found[EOS_ID][1:]) >= {30}, "EOS is the empty word"
    assert found[5].tolist() == [5], "not in the data"


def test_at_most_so_many(monkeypatch):
    monkeypatch.setattr(shortlist, "LIKELY", 2)
    pairs = list(sentences(200))
    found = likely_targets(*map(list, zip(*pairs, strict=True)), None, 32)
    assert max(map(len, found)) == 3
    assert all(found[source][1] == target for source, target in DICTIONARY.items())


@pytest.mark.parametrize("sample", [10**9, 1])
def test_of_a_data_directory(prepared, monkeypatch, sample):
    monkeypatch.setattr(shortlist, "ALWAYS", 5)
    monkeypatch.setattr(shortlist, "_SAMPLE_TOKENS", sample)
    likely, always, vocab_size = learn_shortlist(prepared)
    assert vocab_size == 310
    assert len(likely) == 310
    assert always == sorted(always)
    assert {EOS_ID, UNK_ID} <= set(always)
    assert len(always) in (6, 7)
    assert sum(map(len, likely)) > 310


def test_of_two_vocabularies():
    sources, targets = map(list, zip(*sentences(60), strict=True))
    shared = likely_targets(sources, targets, None, 32)
    found = likely_targets(sources, targets, 20, 40)
    assert len(found) == 20
    for source, row in enumerate(found):
        wanted = shared[source][1:].tolist()
        assert [token for token in row if token != source] == wanted
    assert EOS_ID in found[EOS_ID], "the same, but nothing is put in as a copy"
    assert found[5].tolist() == []
