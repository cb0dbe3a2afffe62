import numpy as np

from keras_transformer.core.config import EOS_ID
from pipelines.prepare import ibm_model_1
from pipelines.prepare.ibm_model_1 import translation_table

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
    for _ in range(ibm_model_1._ITERATIONS):
        counts = np.zeros_like(table)
        for source, target in pairs:
            for token in target:
                shares = np.array([table[word, token] for word in sorted(set(source))])
                for word, share in zip(sorted(set(source)), shares / shares.sum(), strict=True):
                    counts[word, token] += share
        table = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-30)
    return table


def test_the_table_is_that_of_the_textbook():
    pairs = list(sentences(60))
    sources, targets = map(list, zip(*pairs, strict=True))
    found = translation_table(sources, targets, 32, 32)
    table = plain_model_1(pairs, 32)
    assert sorted(found) == sorted({EOS_ID, *DICTIONARY}), "the ids that occur"
    for source, row in found.items():
        probabilities = np.zeros(32)
        probabilities[row.target_ids] = row.probabilities
        np.testing.assert_allclose(probabilities, table[source], atol=1e-9)
        assert np.all(np.diff(row.probabilities) <= 1e-9), "most probable first"
    for source, target in DICTIONARY.items():
        assert found[source].target_ids[0] == target
    assert 30 in found[EOS_ID].target_ids, "EOS takes the part of the empty word"


def test_few_candidates_are_the_best_ones(monkeypatch):
    monkeypatch.setattr(ibm_model_1, "_CANDIDATES", 2)
    sources, targets = map(list, zip(*sentences(200), strict=True))
    table = translation_table(sources, targets, 32, 32)
    assert max(len(row.target_ids) for row in table.values()) == 2
    assert all(table[source].target_ids[0] == target for source, target in DICTIONARY.items())


def test_two_vocabularies():
    sources, targets = map(list, zip(*sentences(60), strict=True))
    shared = translation_table(sources, targets, 32, 32)
    table = translation_table(sources, targets, 20, 40)
    assert sorted(table) == sorted(shared)
    for source, row in table.items():
        np.testing.assert_array_equal(row.target_ids, shared[source].target_ids)
