import pytest

from keras_transformer.use.evaluate.directions import direction_scores, directions_table
from keras_transformer.use.evaluate.sample import SampleAnswers
from keras_transformer.use.evaluate.translation import translation_scores
from tests.refusals import refused
from tests.use.evaluate.test_sample import GivenSample, translator_of

TRANSLATIONS = ["1 2 3 4", "5 6 7", "1 2 3 4"]
REFERENCES = ["1 2 3 4", "5 6 7 8", "1 2 3 4"]
DIRECTIONS = ["en-de", "de-cs", "en-de"]


def test_each_direction_is_a_corpus_and_counts_the_same():
    scores = direction_scores(TRANSLATIONS, REFERENCES, DIRECTIONS)
    german = translation_scores(["1 2 3 4"] * 2, ["1 2 3 4"] * 2)
    czech = translation_scores(["5 6 7"], ["5 6 7 8"])
    assert list(scores["directions"]) == ["en-de", "de-cs"]
    assert scores["directions"]["en-de"] == {
        "sentences": 2,
        "bleu": 100.0,
        "chrf": 100.0,
        "brevity_penalty": 1.0,
        "length_ratio": 1.0,
    }
    assert scores["directions"]["de-cs"]["bleu"] == czech["bleu"]
    assert scores["bleu"] == round((100 + czech["bleu"]) / 2, 4)
    assert scores["chrf"] == round((100 + czech["chrf"]) / 2, 4)
    assert scores["signature"] == german["signature"]


@pytest.mark.parametrize("counts", [(1, 2, 2), (3, 1, 1), (1, 1, 2), (0, 0, 0)])
def test_unequal_numbers_are_refused(counts):
    rows = (TRANSLATIONS, REFERENCES, DIRECTIONS)
    with refused("translations", counts):
        direction_scores(*(row[:count] for row, count in zip(rows, counts, strict=True)))


def test_table():
    results = {
        "bleu": 20.0,
        "chrf": 35.5,
        "directions": {
            "en-de": {"sentences": 1000, "bleu": 30.0, "chrf": 40.0},
            "de-cs": {"sentences": 9, "bleu": 10.0, "chrf": 31.0},
        },
    }
    assert directions_table(results).splitlines() == [
        "| direction | sentences |  BLEU |  chrF |",
        "| --------- | --------: | ----: | ----: |",
        "| en-de     |      1000 | 30.00 | 40.00 |",
        "| de-cs     |         9 | 10.00 | 31.00 |",
        "| mean      |           | 20.00 | 35.50 |",
    ]


def test_a_sample_has_sentences_of_each_direction_and_their_scores():
    sources = [f"a{number}" for number in range(50)] + ["b"]
    directions = ["en-de"] * 50 + ["de-en"]
    sample = SampleAnswers(None, sources, sources, 10, 64, directions=directions)
    assert sample.directions == ["en-de"] * 5 + ["de-en"]
    assert sample.sources[5] == "b" and sample.sources[:5] == sorted(
        sample.sources[:5], key=sources.index
    )

    sample = GivenSample(None, ["a", "b"], REFERENCES[:2], 5, 64, directions=DIRECTIONS[:2])
    sample.given = translator_of({"a": TRANSLATIONS[0], "b": TRANSLATIONS[1]})
    scores, _ = sample(None)
    czech = translation_scores(["5 6 7"], ["5 6 7 8"])
    assert scores == {
        "bleu": round((100 + czech["bleu"]) / 2, 4),
        "chrf": round((100 + czech["chrf"]) / 2, 4),
        "bleu_en-de": 100.0,
        "chrf_en-de": 100.0,
        "bleu_de-cs": czech["bleu"],
        "chrf_de-cs": czech["chrf"],
    }
