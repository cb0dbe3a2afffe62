"""Model cards: from a model directory to checked JSON, and back."""

import dataclasses
import json

import pytest

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.evaluation.results import write_results
from keras_transformer.model_card import (
    ModelCard,
    ModelOrigin,
    card_from_json,
    require_unset,
)
from keras_transformer.restoring import origin_of
from keras_transformer.search.config import DecodingConfig, SamplingConfig
from keras_transformer.training.checkpoint_files import CheckpointInfo
from keras_transformer.training.model_directory import ModelDescription, create_or_check
from tests.refusals import refused

CHECKPOINT = CheckpointInfo("average:5", step=70)
DESCRIPTION = ModelDescription(
    "tiny",
    TransformerConfig(100),
    TrainingConfig(warmup_steps=7),
    vocabulary="vocabulary.model",
    vocabulary_fingerprint="0123",
    max_length=64,
    task="parsing",
    task_options={"words": "tags"},
    languages=["words", "brackets"],
)
FOUND = {"bleu": 39.1, "signature": "nrefs:1|case:mixed", "checkpoint": "average:5", "step": 70}
SMALL = ModelCard(TransformerConfig(100), DecodingConfig(), "0123", parameters=7)
FULL = ModelCard(
    config=TransformerConfig(100, num_layers=2, source_vocab_size=90),
    decoding=DecodingConfig(
        3, 0.0, n_best=2, sampling=SamplingConfig(top_k=5), forbidden_phrases=("a", "b c")
    ),
    vocabulary_fingerprint="0123",
    parameters=7,
    origin=ModelOrigin("parsing", {"words": "tags"}, "tiny", {"seed": 1}, {"max_length": 9}, FOUND),
    checkpoint=CheckpointInfo("average:5", 70, 5, 1.5),
    ensemble=(CheckpointInfo("a"), CheckpointInfo("b", 3)),
    source_vocabulary_fingerprint="4567",
    weights="bfloat16",
    date="2017-06-12",
    tensorflow="2.21.0",
    ctranslate2="4.8.0",
    max_positions=512,
)


@pytest.fixture
def model_dir(any_folder):
    (any_folder / "vocabulary.model").write_bytes(b"pieces")
    create_or_check(any_folder / "model", DESCRIPTION, any_folder)
    return any_folder / "model"


def test_what_the_model_directory_knows(model_dir):
    origin = origin_of(model_dir, DESCRIPTION, CHECKPOINT)
    assert (origin.task, origin.task_options) == ("parsing", {"words": "tags"})
    assert (origin.preset, origin.evaluation, origin.max_length) == ("tiny", None, 64)
    assert origin.training["warmup_steps"] == 7
    assert origin.data == {
        "vocabulary": "vocabulary.model",
        "vocabulary_fingerprint": "0123",
        "source_vocabulary": None,
        "source_vocabulary_fingerprint": None,
        "max_length": 64,
        "languages": ["words", "brackets"],
    }


def test_evaluation_is_of_the_same_checkpoint(model_dir):
    write_results(model_dir, "test", FOUND)
    assert origin_of(model_dir, DESCRIPTION, CHECKPOINT).evaluation == FOUND
    for other in (CheckpointInfo("average:5", 71), CheckpointInfo("latest", 70)):
        assert origin_of(model_dir, DESCRIPTION, other).evaluation is None


@pytest.mark.parametrize("card", [SMALL, FULL], ids=["small", "full"])
def test_json_and_back(card):
    content = json.loads(json.dumps(card.to_json()))
    assert card_from_json(content, "card") == card
    # Those who read the card of an export find these at the top, null where there is none.
    for name in ("beam_size", "alpha", "task", "preset", "config"):
        assert name in content
    assert content["source_vocabulary_fingerprint"] == card.source_vocabulary_fingerprint


def test_fields_of_other_cards_may_be_left_out():
    content = SMALL.to_json()
    assert "ensemble" not in content and "ctranslate2" not in content and "step" not in content
    assert FULL.to_json()["step"] == 70


@pytest.mark.parametrize(
    ("changes", "argument", "received"),
    [
        ({"forbidden_phrases": ["a", 3]}, "forbidden_phrases[1]", "3"),
        ({"beam_size": 0}, "beam_size", "0"),
        ({"weights": "int4"}, "weights", '"int4"'),
        ({"parameters": "many"}, "parameters", '"many"'),
        ({"config": {"vocab_size": 0}}, "config.vocab_size", "0"),
        ({"config_fingerprint": None}, "config_fingerprint", "null"),
        ({"config_fingerprint": "0"}, "config", "another config"),
        ({"config": {"vocab_size": 100, "activation": "gelu"}}, "config", "another config"),
        ({"config": {"vocab_size": 2**30}}, "config.d_model", "549,799,915,520"),
        ({"vocabulary_fingerprint": None}, "vocabulary_fingerprint", "null"),
    ],
)
def test_wrong_fields(changes, argument, received):
    with refused(argument, received, "card") as error:
        card_from_json({**json.loads(json.dumps(SMALL.to_json())), **changes}, "card")
    assert "\n" not in str(error.value)


def test_a_missing_field():
    content = SMALL.to_json()
    del content["parameters"]
    with refused("parameters", "none", place="card"):
        card_from_json(content, "card")


def test_options_that_an_export_has_fixed():
    require_unset({"alpha": None, "n_best": 2}, ["n_best"])
    with refused("alpha", "0.5"):
        require_unset({"alpha": 0.5, "n_best": 2}, ["n_best"])


def test_a_card_is_no_place_to_write():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SMALL.parameters = 8
