import pytest


@pytest.fixture
def length_buckets(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    from positions import length_buckets

    return length_buckets


def test_a_bucket_ends_where_training_did(length_buckets):
    lengths = [3, 4, 5, 9, 10, 11, 12, 13]
    assert length_buckets(lengths, trained=10, width=4, least=1) == [
        {"from": 1, "to": 4, "sentences": 2},
        {"from": 5, "to": 8, "sentences": 1},
        {"from": 9, "to": 10, "sentences": 2},
        {"from": 11, "to": 13, "sentences": 3},
    ]


def test_few_sentences_share_a_bucket(length_buckets):
    lengths = [1, 6, 7, 8, 14, 20, 30]
    assert length_buckets(lengths, trained=8, width=2, least=2) == [
        {"from": 1, "to": 6, "sentences": 2},
        {"from": 7, "to": 8, "sentences": 2},
        {"from": 9, "to": 30, "sentences": 3},  # 9 to 20, and a rest of one sentence
    ]


def test_no_sentence_as_long_as_those_of_training(length_buckets):
    assert length_buckets([15, 16], trained=8, width=4, least=9) == [
        {"from": 9, "to": 16, "sentences": 2}
    ]
