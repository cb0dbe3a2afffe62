import dataclasses

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.search.config import TASKS, DecodingConfig
from keras_transformer.core.training.model_directory import describe_unknown_training
from keras_transformer.use.store.decoding import ChosenDecoding, default_decoding
from keras_transformer.use.store.results import (
    DECODING_FILE,
    read_chosen_decoding,
    write_chosen_decoding,
)
from tests.refusals import refused

DESCRIPTION = describe_unknown_training(
    TransformerConfig(100),
    {"vocabulary_fingerprint": "a" * 64, "source_vocabulary_fingerprint": None},
)


def test_a_model_decodes_as_its_task_does_or_as_was_chosen_for_it():
    translation = dataclasses.replace(TASKS["translation"], max_source_length=256)
    assert default_decoding(DESCRIPTION, None) == translation
    chosen = ChosenDecoding(alpha=1.5, beam_size=2, bleu=30.0, split="validation")
    wanted = dataclasses.replace(translation, alpha=1.5, beam_size=2)
    assert default_decoding(DESCRIPTION, chosen) == wanted
    parsing = dataclasses.replace(DESCRIPTION, task="parsing")
    assert default_decoding(parsing, None) == TASKS["parsing"]


def test_a_choice_is_kept_in_a_model_directory(any_folder):
    assert read_chosen_decoding(any_folder) is None
    chosen = ChosenDecoding.of(DecodingConfig(beam_size=3, alpha=1.1, min_length=2))
    assert chosen == ChosenDecoding(alpha=1.1, beam_size=3)
    write_chosen_decoding(any_folder, chosen)
    assert read_chosen_decoding(any_folder) == chosen
    (any_folder / DECODING_FILE).write_text('{"alpha": -1, "beam_size": 2}')
    with refused("alpha", "-1", any_folder / DECODING_FILE):
        read_chosen_decoding(any_folder)
