"""Model cards: from a model directory to checked JSON, and back."""

import dataclasses
import json

import pytest

from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.search.config import DecodingConfig, SamplingConfig
from keras_transformer.core.training.checkpoint_files import CheckpointInfo
from keras_transformer.core.training.model_directory import ModelDescription, create_or_check
from keras_transformer.use.store.card import ModelCard, card_from_json
from keras_transformer.use.store.directory import evaluation_of
from keras_transformer.use.store.export import require_unset
from keras_transformer.use.store.results import write_results
from tests.given_answers import card_of
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
SMALL = card_of(TransformerConfig(100), DecodingConfig())
FULL = ModelCard(
    dataclasses.replace(
        DESCRIPTION,
        model=TransformerConfig(100, num_layers=2, source_vocab_size=90),
        source_vocabulary="source_vocabulary.model",
        source_vocabulary_fingerprint="4567",
    ),
    DecodingConfig(
        3, 0.0, n_best=2, sampling=SamplingConfig(top_k=5), forbidden_phrases=("a", "b c")
    ),
    parameters=7,
    checkpoint=CheckpointInfo("average:5", 70, 5, 1.5),
    ensemble=(CheckpointInfo("a"), CheckpointInfo("b", 3)),
    evaluation=FOUND,
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


def test_evaluation_is_of_the_same_checkpoint(model_dir):
    assert evaluation_of(model_dir, CHECKPOINT) is None
    write_results(model_dir, "test", FOUND)
    assert evaluation_of(model_dir, CHECKPOINT) == FOUND
    for other in (CheckpointInfo("average:5", 71), CheckpointInfo("latest", 70)):
        assert evaluation_of(model_dir, other) is None


@pytest.mark.parametrize("card", [SMALL, FULL], ids=["small", "full"])
def test_json_and_back(card):
    content = json.loads(json.dumps(card.to_json()))
    assert card_from_json(content, "card") == card
    assert content["description"]["task"] == card.description.task
    assert content["decoding"]["beam_size"] == card.decoding.beam_size


def test_flat_form():
    """What servers and web pages show: fields of other cards are left out."""
    small, full = SMALL.flat(), FULL.flat()
    assert "ensemble" not in small and "ctranslate2" not in small and "step" not in small
    assert (small["data"], small["training"], small["evaluation"]) == (None, None, None)
    assert small["source_vocabulary_fingerprint"] is None
    assert (full["step"], full["beam_size"], full["alpha"], full["task"]) == (70, 3, 0.0, "parsing")
    assert (full["preset"], full["config"]["num_layers"]) == ("tiny", 2)
    assert full["training"]["warmup_steps"] == 7
    assert full["data"] == {
        "vocabulary": "vocabulary.model",
        "vocabulary_fingerprint": "0123",
        "source_vocabulary": "source_vocabulary.model",
        "source_vocabulary_fingerprint": "4567",
        "max_length": 64,
        "languages": ["words", "brackets"],
    }


@pytest.mark.parametrize(
    ("part", "changes", "argument", "received"),
    [
        ("decoding", {"forbidden_phrases": ["a", 3]}, "decoding.forbidden_phrases[1]", "3"),
        ("decoding", {"beam_size": 0}, "decoding.beam_size", "0"),
        (None, {"weights": "int4"}, "weights", '"int4"'),
        (None, {"config_fingerprint": None}, "config_fingerprint", "null"),
        (None, {"config_fingerprint": "0"}, "description.model", "another configuration"),
        (
            "description",
            {"model": {"vocab_size": 100, "activation": "gelu"}},
            "description.model",
            "another configuration",
        ),
        (
            "description",
            {"model": {"vocab_size": 2**30}},
            "description.model.d_model",
            "549,799,915,520",
        ),
    ],
)
def test_wrong_fields(part, changes, argument, received):
    content = json.loads(json.dumps(SMALL.to_json()))
    (content if part is None else content[part]).update(changes)
    with refused(argument, received, "card") as error:
        card_from_json(content, "card")
    assert "\n" not in str(error.value)


def test_options_that_an_export_has_fixed():
    require_unset({"alpha": None, "n_best": 2}, ["n_best"])
    with refused("alpha", "0.5"):
        require_unset({"alpha": 0.5, "n_best": 2}, ["n_best"])
