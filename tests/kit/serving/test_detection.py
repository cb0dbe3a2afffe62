import sys

import pytest

from keras_transformer.kit.serving import detection
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
        (found,) = detection.detect(text)  # the Go client takes no more
        assert found.language == language and 90 < found.confidence <= 100
    several = [each.language for each in detection.detect("A la casa")]
    assert len(several) == detection.BEST and several[0] == "ca"
    assert len(detection.detect("")) == 1, "nothing is likely, and nothing fails"


@pytest.mark.parametrize(
    ("text", "language"),
    [("A man.", "en"), ("Yes", "en"), ("Ein Mann.", "de"), ("OK", "en"), ("", "en")],
)
def test_languages_of_short_texts_are_those_of_the_model(text, language):
    pytest.importorskip("py3langid", reason="install: pip install '.[detect]'")
    (found,) = detection.detect(text, ["en", "de"])
    assert found.language == language and 0 < found.confidence < 20


def test_codes_are_those_of_the_model():
    pytest.importorskip("py3langid", reason="install: pip install '.[detect]'")
    assert detection.detect("Two dogs run.", ["xx", "eng_Latn"]) == [("eng_Latn", 12.0)]
    assert detection.detect("Two dogs run.", ["xx"]) == [("xx", 0.0)], "it does not know this one"
