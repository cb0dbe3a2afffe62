import dataclasses
import hashlib
import json

import pytest

from keras_transformer.core.config import (
    TrainingConfig,
    TransformerConfig,
    parse_settings,
    replace_settings,
)
from keras_transformer.core.presets import preset
from keras_transformer.support.errors import InputError
from tests.configurations import with_settings
from tests.refusals import refused


def test_defaults_are_the_base_model():
    config = TransformerConfig()
    assert (config.num_layers, config.d_model, config.d_ff, config.num_heads) == (6, 512, 2048, 8)
    assert (config.d_k, config.d_v, config.dropout) == (64, 64, 0.1)
    training = TrainingConfig()
    assert (training.adam_beta_1, training.adam_beta_2, training.adam_epsilon) == (0.9, 0.98, 1e-9)
    assert (training.warmup_steps, training.label_smoothing) == (4000, 0.1)


@pytest.mark.parametrize(
    ("settings", "argument", "received", "about"),
    [
        ({"d_model": 0}, "d_model", 0, "1"),
        ({"d_model": 6, "num_heads": 4}, "d_k", "4 and 6", "given"),
        ({"d_model": 7, "num_heads": 7}, "d_model", 7, "even"),
        ({"dropout": 1.0}, "dropout", 1.0, "[0, 1)"),
        ({"vocab_size": 4.5}, "vocab_size", 4.5, "int"),
        ({"vocab_size": 3}, "vocab_size", 3, "4"),
        ({"norm": "both"}, "norm", '"both"', "post, pre"),
        ({"positions": ""}, "positions", '""', "rotary"),
        ({"positions": "rotary", "d_k": 3}, "d_k", 3, "even"),
        ({"attention_window": 0}, "attention_window", 0, "1073741824"),
        ({"num_layers": 1001}, "num_layers", 1001, "1000"),
        ({"d_ff": 2**33}, "d_model", "10", "68,719,476,736"),
        ({"dropout": float("nan")}, "dropout", "NaN", "[0, 1)"),
    ],
)
def test_impossible_models(settings, argument, received, about):
    with refused(argument, received, about=about):
        TransformerConfig(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"warmup_steps": 0},
        {"label_smoothing": -0.1},
        {"learning_rate_scale": 0.0},
        {"precision": "int8"},
        {"optimizer": "sgd"},
    ],
)
def test_impossible_training(settings):
    ((argument, received),) = settings.items()
    with refused(argument, received):
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
    ("setting", "argument", "received", "about"),
    [
        ("dropout", "config", "'dropout'", "KEY=VALUE"),
        ("droput=0.1", "config", "'droput' (did you mean dropout?)", "KEY"),
        ("vocab_size=9", "config", "'vocab_size'", "KEY"),
        ("source_vocab_size=9", "config", "'source_vocab_size'", "KEY"),
        ("d_model=large", "config d_model", "'large'", "whole"),
        ("dropout=x", "config dropout", "'x'", "number"),
        ("tie_embeddings=1", "config tie_embeddings", "'1'", "true"),
    ],
)
def test_wrong_settings(setting, argument, received, about):
    with refused(argument, received, about=about):
        with_settings(TransformerConfig(), TrainingConfig(), [setting])


def test_a_setting_like_a_known_one_is_refused_without_the_list_of_all():
    for check in (
        lambda: parse_settings(["dropuot=0.2"]),
        lambda: replace_settings(TransformerConfig(), TrainingConfig(), {"dropuot": 0.2}),
    ):
        with pytest.raises(InputError) as raised:
            check()
        assert str(raised.value).endswith("Received: 'dropuot' (did you mean dropout?)")
        assert len(str(raised.value)) < 100


def test_unknown_preset_names_those_there_are():
    with refused("preset", "'huge'", about="tiny, base, "):
        preset("huge", 100)


def test_presets_change_training_too():
    assert preset("own_text", 100)[1].tokens_per_batch == 3000
    assert preset("D4", 100)[1].label_smoothing == 0.2
    assert preset("big", 100)[0].dropout == 0.3
    model, _ = preset("tiny", 100)
    assert (model.num_layers, model.d_model, model.d_ff, model.num_heads) == (4, 128, 256, 4)


def test_a_fingerprint_is_that_of_what_a_model_computes():
    """SHA-256 of '{"activation": "relu", ...}': all fields but seven, in alphabetical order."""
    config = TransformerConfig(vocab_size=100)
    fields = dataclasses.asdict(config)
    rates = {"dropout": 0.5, "attention_dropout": 0.5, "activation_dropout": 0.5}
    # The last four only with their defaults.
    left_out = {*rates, "decoder_reads_code", "encoder_reads_eos"}
    left_out |= {"decoder_self_attention", "starts_with_zeros"}
    text = ", ".join(
        f'"{name}": {json.dumps(fields[name])}' for name in sorted(set(fields) - left_out)
    )
    assert config.fingerprint == hashlib.sha256(f"{{{text}}}".encode()).hexdigest()
    assert dataclasses.replace(config, **rates).fingerprint == config.fingerprint
    others = {
        **{"vocab_size": 101, "num_layers": 5, "d_model": 256, "d_ff": 7, "num_heads": 4},
        **{"d_k": 9, "d_v": 9, "positions": "learned", "max_positions": 9, "norm": "pre"},
        **{"attention_window": 5, "tie_embeddings": False, "source_vocab_size": 7},
        **{"decoder_layers": 3, "activation": "gelu", "attention_bias": True},
        **{"logits_bias": True, "scale_embeddings": False, "norm_epsilon": 1e-5},
        **{"decoder_reads_code": True, "encoder_reads_eos": False},
        **{"decoder_self_attention": "ssru", "starts_with_zeros": True},
    }
    assert set(others) | set(rates) == set(fields)
    found = {dataclasses.replace(config, **{name: others[name]}).fingerprint for name in others}
    assert len({*found, config.fingerprint}) == len(others) + 1
