from types import SimpleNamespace

import pytest

from keras_transformer.use.evaluate import length_penalty

REFERENCE = "the cat sat on the mat today"


class Translator:
    """Leaves out more words of a source, the further alpha is from 1.2; counts its searches."""

    searches = 0

    def translate_by_alpha(self, texts, alphas, progress):
        assert progress
        self.searches += 1
        kept = [7 - round(5 * abs(alpha - 1.2)) for alpha in alphas]
        return [
            [SimpleNamespace(text=" ".join(text.split()[:words])) for words in kept]
            for text in texts
        ]


def test_one_search_is_scored_for_all_alphas(caplog):
    """Its progress bar then shows the time that is left for all of them."""
    caplog.set_level("INFO", logger="absl")
    translator = Translator()
    scores = length_penalty.bleu_by_alpha(translator, [REFERENCE] * 2, [REFERENCE] * 2)
    assert tuple(scores) == length_penalty.ALPHAS
    assert scores[1.2] == pytest.approx(100)
    assert max(score for alpha, score in scores.items() if alpha != 1.2) < 100
    assert scores[1.0] == pytest.approx(scores[1.4]) and scores[1.0] > scores[0.8]

    assert translator.searches == 1
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "choosing alpha: one search of 2 sentences, scored for 11 values"
    assert lines[7] == "alpha 1.2: BLEU 100.00"
    assert len(lines) == 12


def test_a_sentence_for_which_nothing_is_allowed_has_one_answer(monkeypatch):
    monkeypatch.setattr(length_penalty, "ALPHAS", (0.0, 1.0))
    answers = [[SimpleNamespace(text=REFERENCE)] * 2, [SimpleNamespace(text="")]]
    translator = SimpleNamespace(translate_by_alpha=lambda *arguments, **options: answers)
    scores = length_penalty.bleu_by_alpha(translator, [REFERENCE] * 2, [REFERENCE] * 2)
    assert scores[0.0] == scores[1.0] < 100


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
