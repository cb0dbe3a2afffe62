"""The table of formats, and what is refused before a model is written."""

import dataclasses
import importlib
import inspect
import sys

import pytest

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.kit.exchange.formats import (
    FORMATS,
    check_config,
    check_options,
    check_weights,
    export,
)
from tests.given_answers import card_of
from tests.refusals import refused

CARD = card_of(TransformerConfig(100), DecodingConfig())
SHARED = ["vocabularies", "export_dir", "card", "overwrite"]


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", FORMATS)
def test_a_writer_takes_the_models_and_the_options_of_its_row(name):
    kind = FORMATS[name]
    module = importlib.import_module(f"keras_transformer.kit.exchange.{kind.module}")
    model, *arguments = inspect.signature(getattr(module, kind.writer)).parameters
    assert model == ("models" if kind.ensemble_weights else "model")
    assert arguments == [*SHARED, *kind.options]


@pytest.mark.parametrize(
    ("format", "options", "name", "formats"),
    [
        ("argos", {"beam_size": 3}, "beam_size", "saved_model or ctranslate2 or web"),
        ("web", {"alpha": 1.0, "min_length": 3}, "min_length", "saved_model or ctranslate2"),
        ("ctranslate2", {"alpha": 1.0, "directions": ["en-de"]}, "directions", "argos"),
        ("saved_model", {"runtime": "dist"}, "runtime", "web"),
        ("onnx", {"alpha": 1.0}, "alpha", "saved_model or ctranslate2 or web"),
        ("web", {"signatures": ["score"]}, "signatures", "saved_model"),
    ],
)
def test_options_of_other_formats(format, options, name, formats):
    with refused(name, options[name]) as error:
        check_options(format, options)
    assert error.value.rule == f"must only be given with format={formats}"


def test_weights_that_a_format_cannot_store():
    for format in ("saved_model", "ctranslate2", "argos"):
        check_weights(format, "bfloat16")
    for format in ("onnx", "web", "marian"):
        with refused("weights", "bfloat16", about=format):
            check_weights(format, "bfloat16")


@pytest.mark.parametrize(
    ("format", "weights"),
    [
        ("saved_model", "int8"),
        *((name, FORMATS[name].weights[0]) for name in FORMATS if name != "saved_model"),
    ],
)
def test_ensembles_are_saved_models_of_float_weights(format, weights, tmp_path):
    card = dataclasses.replace(CARD, weights=weights)
    with refused("models", "2 models", about=format):
        export(format, [None, None], None, tmp_path / "export", card)


def test_a_format_that_there_is_not(tmp_path):
    with refused("format", "'tflite'", about=", ".join(FORMATS)):
        export("tflite", [None], None, tmp_path / "export", CARD)


@pytest.mark.parametrize(
    ("format", "settings", "received", "about"),
    [
        ("ctranslate2", {"attention_window": 3}, "attention_window=3", "use saved_model, "),
        ("ctranslate2", {"decoder_self_attention": "ssru"}, "=ssru", "=attention with format=ctr"),
        ("argos", {"decoder_reads_code": True}, "decoder_reads_code=True", "use saved_model, ct"),
        ("onnx", {"decoder_reads_code": True}, "decoder_reads_code=True", "format=onnx"),
        ("web", {"decoder_reads_code": True}, "decoder_reads_code=True", "format=web"),
        ("marian", {"positions": "marian", "d_k": 4}, "d_k=4", "d_model / num_heads"),
        ("marian", {}, "positions=sinusoidal", "positions=marian"),
        ("hugging_face", {"norm_epsilon": 1e-5, "norm": "pre"}, "norm=pre", "norm=post"),
        ("hugging_face", {"activation": "swiglu"}, "activation=swiglu", "relu, swish, gelu"),
    ],
)
def test_a_model_that_a_format_cannot_hold(format, settings, received, about):
    with refused("model", received, about=about):
        check_config(format, TransformerConfig(100, **settings))
    check_config("saved_model", TransformerConfig(100, **settings))


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "saved_model"])
def test_other_kinds_of_positions_are_refused_until_they_are_written(format, monkeypatch):
    config = TransformerConfig(100, norm_epsilon=1e-5)
    object.__setattr__(config, "positions", "new")
    with refused("model", "positions=new", about="positions="):
        check_config(format, config)


def test_packages_are_extras(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with refused("onnx", about="pip install"):
        export("onnx", [None], None, tmp_path / "export", CARD)
