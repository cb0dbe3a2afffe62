import dataclasses
import hashlib
import json

import pytest

import keras_transformer as kt
from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.errors import InputError
from keras_transformer.fields import from_json
from keras_transformer.presets import preset
from tests.configurations import with_settings


def test_defaults_are_the_base_model():
    config = TransformerConfig()
    assert (config.num_layers, config.d_model, config.d_ff, config.num_heads) == (6, 512, 2048, 8)
    assert (config.d_k, config.d_v, config.dropout) == (64, 64, 0.1)
    training = TrainingConfig()
    assert (training.adam_beta_1, training.adam_beta_2, training.adam_epsilon) == (0.9, 0.98, 1e-9)
    assert (training.warmup_steps, training.label_smoothing) == (4000, 0.1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"d_model": 0}, "d_model must be at least 1. Received: 0"),
        ({"d_model": 6, "num_heads": 4}, "d_k must be given, .* d_model. Received: 4 and 6"),
        ({"d_model": 7, "num_heads": 7}, "d_model must be even for sinusoids. Received: 7"),
        (
            {"positions": "marian", "d_model": 7, "num_heads": 7},
            "d_model must be even for sinusoids. Received: 7",
        ),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\). Received: 1.0"),
        ({"vocab_size": 4.5}, "vocab_size must be of type int. Received: 4.5"),
        ({"vocab_size": 3}, r"vocab_size must exceed the 4 special ids, .*\. Received: 3"),
        (
            {"source_vocab_size": 3},
            r"source_vocab_size must exceed the 4 special ids, .*\. Received: 3",
        ),
        ({"num_layers": True}, "num_layers must be of type int. Received: true"),
        ({"norm": "both"}, 'norm must be one of post, pre. Received: "both"'),
        ({"positions": ""}, 'positions must be one of .*, rotary. Received: ""'),
        ({"positions": "rotary", "d_k": 3}, "d_k must be even for rotary positions. Received: 3"),
        ({"d_k": -1}, "d_k must be at least 1. Received: -1"),
        ({"attention_window": 0}, "attention_window must be from 1 to 1073741824. Rec"),
        ({"attention_window": 2.5}, "attention_window must be of type int. Received: 2.5"),
        ({"num_layers": 1001}, "num_layers must be from 1 to 1000. Received: 1001"),
        ({"d_ff": 2**33}, "d_model and the other .* at most 68,719,476,736 weights. Received: 10"),
        ({"dropout": float("nan")}, r"dropout must be in \[0, 1\). Received: NaN"),
    ],
)
def test_impossible_models(settings, message):
    with pytest.raises(InputError, match=message):
        TransformerConfig(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"warmup_steps": 0}, "warmup_steps must be at least 1. Received: 0"),
        ({"label_smoothing": -0.1}, "label_smoothing must be in"),
        ({"learning_rate_scale": 0.0}, "learning_rate_scale must be positive"),
        ({"precision": "int8"}, "precision must be one of float32, bfloat16, float16"),
    ],
)
def test_impossible_training(settings, message):
    with pytest.raises(InputError, match=message):
        TrainingConfig(**settings)


def test_settings_go_where_their_keys_belong():
    model, training = with_settings(
        TransformerConfig(),
        TrainingConfig(),
        ["dropout=0.3", "num_heads=4", "tie_embeddings=false", "warmup_steps=10", "norm=pre"],
    )
    assert (model.dropout, model.num_heads, model.d_k) == (0.3, 4, 128)
    assert (model.tie_embeddings, model.norm, training.warmup_steps) == (False, "pre", 10)


def test_settings_keep_head_widths_that_were_chosen():
    model, training = preset("B1", 100)  # d_k = 16, d_v = 64
    changed, _ = with_settings(model, training, ["d_model=256"])
    assert (changed.d_k, changed.d_v) == (16, 64)
    changed, _ = with_settings(*preset("base", 100), ["num_heads=4", "d_k=7"])
    assert (changed.d_k, changed.d_v) == (7, 128)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("dropout", "^config must be KEY=VALUE. Received: 'dropout'"),
        ("droput=0.1", "^config key must be one of .*dropout.*. Received: 'droput'"),
        ("vocab_size=9", "Received: 'vocab_size'"),
        ("source_vocab_size=9", "Received: 'source_vocab_size'"),
        ("d_model=large", "^config d_model must be a whole number. Received: 'large'"),
        ("dropout=x", "^config dropout must be a number. Received: 'x'"),
        ("tie_embeddings=1", "^config tie_embeddings must be true or false. Received: '1'"),
    ],
)
def test_wrong_settings(setting, message):
    with pytest.raises(InputError, match=message):
        with_settings(TransformerConfig(), TrainingConfig(), [setting])


def test_unknown_preset_names_those_there_are():
    with pytest.raises(InputError, match=r"^preset must be one of tiny, base, .*Received: 'huge'"):
        preset("huge", 100)
    with pytest.raises(InputError, match=r"^name must be of type str\. Received: \[\"tiny\"\]$"):
        preset(["tiny"], 100)


def test_presets_change_training_too():
    assert preset("own_text", 100)[1].tokens_per_batch == 3000
    assert preset("D4", 100)[1].label_smoothing == 0.2
    assert preset("big", 100)[0].dropout == 0.3
    model, _ = preset("tiny", 100)
    assert (model.num_layers, model.d_model, model.d_ff, model.num_heads) == (4, 128, 256, 4)


def test_a_fingerprint_is_that_of_what_a_model_computes():
    """SHA-256 of '{"activation": "relu", ...}': all fields but three, in the order of names."""
    config = TransformerConfig(vocab_size=100)
    fields = dataclasses.asdict(config) | {"norm_type": "layer"}  # of an earlier version
    rates = {"dropout": 0.5, "attention_dropout": 0.5, "activation_dropout": 0.5}
    text = ", ".join(
        f'"{name}": {json.dumps(fields[name])}' for name in sorted(set(fields) - set(rates))
    )
    assert config.fingerprint == hashlib.sha256(f"{{{text}}}".encode()).hexdigest()
    assert dataclasses.replace(config, **rates).fingerprint == config.fingerprint
    others = {
        **{"vocab_size": 101, "num_layers": 5, "d_model": 256, "d_ff": 7, "num_heads": 4},
        **{"d_k": 9, "d_v": 9, "positions": "learned", "max_positions": 9, "norm": "pre"},
        **{"attention_window": 5, "tie_embeddings": False, "source_vocab_size": 7},
        **{"decoder_layers": 3, "activation": "gelu", "attention_bias": True},
        **{"logits_bias": True, "scale_embeddings": False, "norm_epsilon": 1e-5},
    }
    assert set(others) | set(rates) | {"norm_type"} == set(fields)
    found = {dataclasses.replace(config, **{name: others[name]}).fingerprint for name in others}
    assert len({*found, config.fingerprint}) == len(others) + 1


def test_a_configuration_of_an_earlier_version_is_read():
    config = TransformerConfig(vocab_size=100)
    fields = dataclasses.asdict(config)
    assert from_json(TransformerConfig, {**fields, "norm_type": "layer"}, "config.json") == config
    rule = r'^config.json: norm_type must be a field that this version knows. Received: "rms"$'
    with pytest.raises(InputError, match=rule):
        from_json(TransformerConfig, {**fields, "norm_type": "rms"}, "config.json")
    model = kt.Transformer({**fields, "d_model": 8, "num_heads": 2, "norm_type": "layer"})
    assert model.config.d_model == 8
