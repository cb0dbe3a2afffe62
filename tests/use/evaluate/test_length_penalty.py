from types import SimpleNamespace

import pytest

from keras_transformer.use.evaluate import length_penalty

REFERENCE = "the cat sat on the mat today"


class Translator:
    """Leaves out more words of a source, the further alpha is from 1.2."""

    def __init__(self, alpha=0.6):
        self.alpha = alpha

    def with_alpha(self, alpha):
        return Translator(alpha)

    def translate(self, texts, progress):
        words = 7 - round(5 * abs(self.alpha - 1.2))
        return [[SimpleNamespace(text=" ".join(text.split()[:words]))] for text in texts]


def test_each_alpha_has_the_score_of_its_own_translations():
    scores = length_penalty.bleu_by_alpha(Translator(), [REFERENCE] * 2, [REFERENCE] * 2)
    assert tuple(scores) == length_penalty.ALPHAS
    assert scores[1.2] == pytest.approx(100)
    assert max(score for alpha, score in scores.items() if alpha != 1.2) < 100
    assert scores[1.0] == pytest.approx(scores[1.4]) and scores[1.0] > scores[0.8]


def test_the_time_that_is_left_is_shown(monkeypatch, caplog):
    caplog.set_level("INFO", logger="absl")
    clock = iter(range(0, 1000, 30))  # 30 seconds an alpha
    monkeypatch.setattr(length_penalty.time, "monotonic", lambda: next(clock))
    length_penalty.bleu_by_alpha(Translator(), [REFERENCE] * 2, [REFERENCE] * 2)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "choosing alpha: 2 sentences are translated 11 times"
    assert lines[1].endswith("(1 of 11, about 5 minutes left)")
    assert [line.partition("about ")[2] for line in lines[8:]] == [
        "2 minutes left)",
        "1 minute left)",
        "30 seconds left)",
        "0 seconds left)",
    ]


@pytest.mark.parametrize(
    ("bleu", "expected"),
    [
        ([30.0, 31.0, 32.0, 31.5], 2),
        ([36.0, 37.0, 38.0, 38.3, 38.6, 30.0], 3),  # 38.6 is beside the fall
        ([36.0, 37.0, 38.0, 38.3, 38.6], 4),
        ([36.0, 38.51, 38.52, 38.55, 38.6, 38.58], 1),  # 0.05 to 0.07 better is as good
        ([36.0, 38.3, 38.45, 38.6], 3),
        ([20.0, 30.0, 10.0], 0),  # the best is beside the fall
        ([1.0, 2.0], 1),
        ([5.0], 0),
    ],
)
def test_the_chosen_alpha_is_not_beside_a_fall(bleu, expected):
    scores = dict(zip(length_penalty.ALPHAS, bleu, strict=False))
    assert length_penalty.safest_alpha(scores) == length_penalty.ALPHAS[expected]
