import pytest

from keras_transformer.language_codes import Direction, options_of
from keras_transformer.languages import ModelLanguages, is_same, model_languages, name_of


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
    found = model_languages({"task": "translation", **card})
    assert found == (wanted and ModelLanguages((wanted,), (wanted[1],)))


def test_several_directions():
    directions = (Direction("en", "de"), Direction("en", "cs"), Direction("de", "en"))
    card = {"task": "translation", "task_options": options_of(directions)}
    found = model_languages(card | {"data": {"languages": ["en", "de", "cs"]}})
    assert found == ModelLanguages(directions, ("de", "cs", "en"), has_codes=True)
    assert found.sources == ["en", "de"] and found.targets_of("en") == ["de", "cs"]
    imported = {"task": "translation", "task_options": {"target_languages": ["fra", "spa"]}}
    assert model_languages(imported) == ModelLanguages((), ("fra", "spa"), has_codes=True)


def test_names():
    assert [name_of(code) for code in ("de", "pt-BR", "xx")] == ["German", "Portuguese", "xx"]


def test_codes_with_regions():
    assert is_same("en", "en") and is_same("en", "EN-us") and is_same("pt_BR", "pt_br")
    assert not is_same("pt-BR", "pt") and not is_same("en", "de") and not is_same("en", "")
