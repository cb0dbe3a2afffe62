import dataclasses
import math

import pytest

from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.training.checkpoint_files import CheckpointInfo
from keras_transformer.core.training.hardly_trained import hardly_trained
from keras_transformer.use.store.card import card_from_json
from tests.given_answers import card_of

ADVICE = "to continue, run train again with more train_minutes or train_steps"
EARLY = CheckpointInfo("step-00000068", 68, validation_loss=math.log(251), epochs=0.41)


def line(info, training=None, vocab_size=8000):
    return hardly_trained(info, vocab_size, training)


def test_a_high_perplexity_after_few_passes():
    reason = "validation perplexity 251 after 0.4 passes over its data"
    assert line(EARLY) == f"this model is hardly trained ({reason}): {ADVICE}"


@pytest.mark.parametrize(
    ("perplexity", "epochs", "vocab_size", "is_hardly"),
    [
        (37, 1.8, 8000, True),  # 8000 ** 0.4 is 36.4
        (36, 1.8, 8000, False),
        (36, 1.8, 4000, True),  # 27.6
        (5, 0.01, 8000, False),  # a large corpus, or a model that began with good weights
        (251, 9.9, 8000, True),
        (251, 10, 8000, False),  # little text, or learned by heart
        (251, None, 8000, True),  # passes unknown, and inside the warm-up
        (36, None, 8000, False),
        (1.1, 18.0, 2000, False),  # the quickstart's model
    ],
)
def test_both_facts_decide(perplexity, epochs, vocab_size, is_hardly):
    info = CheckpointInfo("x", 500, validation_loss=math.log(perplexity), epochs=epochs)
    inside_warm_up = TrainingConfig(warmup_steps=4000)
    assert (line(info, inside_warm_up, vocab_size) is not None) == is_hardly


@pytest.mark.parametrize(
    ("step", "settings", "is_hardly"),
    [
        (199, {}, True),
        (1000, {}, False),
        (0, {}, False),  # an imported model
        (None, {}, False),
        (199, {"decay": "linear"}, False),  # a decay to zero shortens the warm-up
        (199, {"lora_rank": 2}, False),  # an adapter of a trained model
    ],
)
def test_without_validation_the_warm_up_decides(step, settings, is_hardly):
    training = TrainingConfig(warmup_steps=1000, **settings)
    found = line(CheckpointInfo("x", step), training)
    reason = "it ended at step 199, inside its warm-up of 1000 steps"
    assert found == (f"this model is hardly trained ({reason}): {ADVICE}" if is_hardly else None)


def test_a_card_says_it_and_so_does_that_of_an_export():
    card = card_of(TransformerConfig(8000), DecodingConfig())
    assert card.hardly_trained is None and "hardly_trained" not in card.flat()
    early = dataclasses.replace(card, checkpoint=EARLY)
    assert early.hardly_trained == line(EARLY)
    assert early.flat()["hardly_trained"] == line(EARLY)
    assert card_from_json(early.to_json(), "card").hardly_trained == line(EARLY)
    joined = CheckpointInfo("one + other")
    good = CheckpointInfo("one", 9000, validation_loss=1.7, epochs=0.5)
    of_two = dataclasses.replace(card, checkpoint=joined, ensemble=(good, EARLY))
    assert of_two.hardly_trained == line(EARLY)
