"""The programs as functions of the package: keras_transformer.prepare, train, evaluate."""

import json
import math
import shutil

import keras
import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.core.training import loop
from pipelines.batches.data_set import DataSet
from tests.refusals import refused

PAIRS = [
    ("the cat sat.", "die Katze saß."),
    ("a dog ran.", "ein Hund lief."),
    ("the dog sat.", "der Hund saß."),
    ("a big cat ran.", "eine große Katze lief."),
] * 5
SMALL = {"num_layers": 1, "d_model": 16, "d_ff": 16, "num_heads": 2, "tokens_per_batch": 256}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """The prefix of two text files."""
    folder = tmp_path_factory.mktemp("texts")
    for side, lines in zip(("en", "de"), zip(*PAIRS, strict=True), strict=True):
        (folder / f"a.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"{folder}/a"


def test_options_of_training_reach_it(prepared, tmp_path, monkeypatch):
    found = []

    def train(model, training, data, model_dir, loop, *_, describe, **__):
        found.append((model.d_ff, training.tokens_per_batch, loop.train_steps))
        describe()
        return {"step": 2}

    monkeypatch.setattr(loop, "train", train)
    assert kt.train(prepared, tmp_path, preset="tiny", train_steps=2, **SMALL) == {"step": 2}
    assert found == [(16, 256, 2)]
    assert json.loads((tmp_path / "config.json").read_text())["preset"] == "tiny"


def test_a_model_is_scored(untrained, prepared, tmp_path):
    model_dir = shutil.copytree(untrained, tmp_path / "model")
    scores = kt.evaluate(model_dir, prepared, limit=3, beam_size=1, extra_length=2)
    assert (scores["sentences"], scores["split"], scores["beam_size"]) == (3, "test", 1)
    assert (scores["extra_length"], scores["step"]) == (2, 20)
    assert math.isfinite(scores["perplexity"]) and 0 <= scores["bleu"] <= 100


def test_the_keras_model_is_ready_for_fit(untrained, prepared, tmp_path):
    translator = kt.load(untrained, beam_size=1)
    model = translator.model
    assert isinstance(model, kt.Transformer) and translator.model is model
    assert model.config.vocab_size == 310
    model.run_eagerly = True  # to make a graph takes seconds
    batches = DataSet.open(prepared).training_batches(256, seed=1).map(kt.teacher_forcing)
    before = [variable.numpy() for variable in model.trainable_variables]
    history = model.fit(batches, steps_per_epoch=1, verbose=0).history
    assert sorted(history) == ["loss", "masked_accuracy", "masked_perplexity"]
    changed = [
        np.any(variable.numpy() != value)
        for variable, value in zip(model.trainable_variables, before, strict=True)
    ]
    assert all(changed)
    model.save(tmp_path / "model.keras")
    loss = keras.models.load_model(tmp_path / "model.keras").loss
    assert isinstance(loss, kt.LabelSmoothedCrossEntropy) and loss.label_smoothing == 0.1


def test_a_model_needs_a_single_one(untrained):
    translator = kt.load([untrained, untrained], beam_size=1)
    with refused("model", "2 models"):
        _ = translator.model


@pytest.mark.parametrize(
    ("call", "argument", "received"),
    [
        (lambda en, de, new: kt.prepare(None, en, de), "data_dir", "None"),
        (lambda en, de, new: kt.prepare(new, None, de), "train_source", "None"),
        (lambda en, de, new: kt.prepare(new, en, de, test_source=en), "test_target", "none"),
        (lambda en, de, new: kt.prepare(new, en, de, vocabsize=3), "options", "'vocabsize'"),
        (
            lambda en, de, new: kt.prepare(new, en, de, source_language=5, target_language="de"),
            "source_language",
            "(5, 'de')",
        ),
        (lambda en, de, new: kt.prepare(new, parallel={5: en, "de": de}), "parallel", "{5: "),
        (lambda en, de, new: kt.train(new, 3), "model_dir", "3"),
        (lambda en, de, new: kt.train(new, new, steps=3), "options", "'steps'"),
        (lambda en, de, new: kt.train(new, new, train_steps="3"), "train_steps", '"3"'),
        (lambda en, de, new: kt.evaluate(new, new, beams=3), "options", "'beams'"),
        (lambda en, de, new: kt.evaluate(new, new, choose_alpha=True, alpha=1), "alpha", "1"),
        (lambda en, de, new: kt.evaluate(new, new), "data_dir", "no metadata.json"),
    ],
)
def test_wrong_arguments_are_refused(call, argument, received, texts, tmp_path):
    with refused(argument, received) as error:
        call(f"{texts}.en", f"{texts}.de", tmp_path / "new")
    assert "\n" not in str(error.value)
