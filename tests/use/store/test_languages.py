import pytest

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.vocabulary.language_codes import Direction, options_of
from keras_transformer.use.store.languages import ModelLanguages, find_language, is_same, name_of
from tests.given_answers import card_of


def described(**facts):
    return card_of(TransformerConfig(100), DecodingConfig(), **facts)


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        ({"languages": ["en", "de"]}, ("en", "de")),
        ({"languages": ["pt_BR", "xx"]}, ("pt_BR", "xx")),
        ({"evaluation": {"languages": ["hsb", "en"]}}, ("hsb", "en")),
        ({"languages": ["", "txt"]}, None),
        ({"languages": ["src", "tgt"]}, None),
        ({"evaluation": {}}, None),
        ({}, None),
        ({"task": "parsing", "languages": ["en", "de"]}, None),
    ],
)
def test_languages_of_a_model(facts, wanted):
    languages = described(**facts).languages
    assert languages == (wanted and ModelLanguages((wanted,), (wanted[1],)))


def test_several_directions():
    directions = (Direction("en", "de"), Direction("en", "cs"), Direction("de", "en"))
    options = options_of(directions)
    languages = described(task_options=options, languages=["en", "de", "cs"]).languages
    assert languages == ModelLanguages(directions, ("de", "cs", "en"), has_codes=True)
    assert languages.sources == ["en", "de"] and languages.targets_of("en") == ["de", "cs"]
    imported = described(task_options={"target_languages": ["fra", "spa"]})
    assert imported.languages == ModelLanguages((), ("fra", "spa"), has_codes=True)


def test_names():
    names = {
        "de": "German",
        "pt-BR": "Brazilian Portuguese",
        "xx": "xx",
        "deu_Latn": "German",
        "zho_Hans": "Chinese",
        "zho_Hant": "Traditional Chinese",
        "ace_Latn": "Acehnese",
        "ace_Arab": "Acehnese (Arab)",
    }
    assert {code: name_of(code) for code in names} == names


def test_short_names_of_languages():
    codes = ("deu_Latn", "zho_Hans", "zho_Hant", "arb_Arab", "arb_Latn", "sr", "kas_Arab")
    found = {"de": "deu_Latn", "zh": "zho_Hans", "zh-Hant": "zho_Hant", "ar": "arb_Arab"}
    for name, code in {**found, "deu_Latn": "deu_Latn", "sr": "sr"}.items():
        assert find_language(codes, name) == code
    for name in ("ks", "deu_Cyrl", "fr", ""):
        assert find_language(codes[:-1], name) is None
    assert find_language(("de", "en"), "en-US") is None
    assert find_language(("cmn_Hans", "zho_Hans"), "zh") is None  # two of them


def test_codes_with_regions():
    assert is_same("en", "en") and is_same("en", "EN-us") and is_same("pt_BR", "pt_br")
    assert not is_same("pt-BR", "pt") and not is_same("en", "de") and not is_same("en", "")
