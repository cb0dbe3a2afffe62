import pytest

from keras_transformer.serving.languages import is_same, language_pair, name_of


@pytest.mark.parametrize(
    ("card", "wanted"),
    [
        ({"data": {"languages": ["en", "de"]}}, ("en", "de")),
        ({"data": {"languages": ["pt_BR", "xx"]}}, ("pt_BR", "xx")),
        ({"data": None, "evaluation": {"languages": ["hsb", "en"]}}, ("hsb", "en")),
        ({"data": {"languages": ["", "txt"]}}, None),
        ({"data": {"languages": ["src", "tgt"]}}, None),
        ({"data": {}, "evaluation": None}, None),
        ({}, None),
        ({"task": "parsing", "data": {"languages": ["en", "de"]}}, None),
    ],
)
def test_languages_of_a_model(card, wanted):
    assert language_pair({"task": "translation", **card}) == wanted


def test_names():
    assert [name_of(code) for code in ("de", "pt-BR", "xx")] == ["German", "Portuguese", "xx"]


def test_codes_with_regions():
    assert is_same("en", "en") and is_same("en", "EN-us") and is_same("pt_BR", "pt_br")
    assert not is_same("pt-BR", "pt") and not is_same("en", "de") and not is_same("en", "")
