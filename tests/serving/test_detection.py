import sys

import pytest

from keras_transformer.serving import detection
from tests.refusals import refused


def test_without_a_detector(monkeypatch):
    monkeypatch.setitem(sys.modules, "py3langid", None)
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    detection._identifier.cache_clear()
    assert not detection.is_available()
    with refused(None, "py3langid", place="/detect", about="[detect]"):
        detection.detect("The cat sleeps.")


def test_languages_are_detected():
    pytest.importorskip("py3langid", reason="install: pip install '.[detect]'")
    for text, language in (
        ("The old woman sees a dog in the street.", "en"),
        ("Die alte Frau sieht einen Hund auf der Straße.", "de"),
        ("La vieille dame voit un chien dans la rue.", "fr"),
    ):
        best, *others = detection.detect(text)
        assert best.language == language
        assert 100 >= best.confidence > others[0].confidence
    assert len(detection.detect("")) == detection.BEST, "nothing is likely, and nothing fails"


@pytest.mark.parametrize(
    ("text", "language"),
    [("A man.", "en"), ("Yes", "en"), ("Ein Mann.", "de"), ("OK", "en"), ("", "en")],
)
def test_languages_of_short_texts_are_those_of_the_model(text, language):
    pytest.importorskip("py3langid", reason="install: pip install '.[detect]'")
    first, last = detection.detect(text, ["en", "de"])
    assert {first.language, last.language} == {"en", "de"}
    assert first.language == language and first.confidence >= last.confidence
    best, unknown = detection.detect("Two dogs run.", ["xx", "eng_Latn"])
    assert (best.language, unknown.confidence) == ("eng_Latn", 0)
