"""The search options of a model: its task's, those chosen for it, and a caller's."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from keras_transformer.core.search.config import TASKS, DecodingConfig, SearchSettings
from keras_transformer.core.training.model_directory import ModelDescription
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.support.errors import require
from keras_transformer.support.fields import Amount, Size, shown


@dataclasses.dataclass(frozen=True)
class ChosenDecoding:
    """The search options chosen for a model, which it decodes with unless a caller changes them.

    For a model from an export, the choice is known, but not its reasons.
    """

    alpha: Amount  # for the length penalty, with this number of beams
    beam_size: Size
    bleu: Amount | None = None  # that it had
    split: str | None = None  # on which it was chosen
    checkpoint: str | None = None  # of which weights
    bleu_by_alpha: dict[str, Amount] | None = None

    @classmethod
    def of(cls, decoding: DecodingConfig) -> "ChosenDecoding":
        """Returns the choice of a model that decodes in this way."""
        return cls(decoding.alpha, decoding.beam_size)


def default_decoding(
    description: ModelDescription, chosen: ChosenDecoding | None
) -> DecodingConfig:
    """Returns how a model decodes unless a caller changes it.

    Sources are truncated as in training.

    Args:
        description: the model.
        chosen: the options chosen for it (evaluate/length_penalty.py); None for its task's.
    """
    task_config = TASKS[description.task]
    trained_length = description.max_length or DecodingConfig.max_source_length
    longest = max(trained_length, task_config.max_source_length)
    decoding = dataclasses.replace(task_config, max_source_length=longest)
    if chosen is None:
        return decoding
    return dataclasses.replace(decoding, alpha=chosen.alpha, beam_size=chosen.beam_size)


def with_options(decoding: DecodingConfig, options: Mapping[str, Any]) -> DecodingConfig:
    """Returns `decoding` with options replaced; those that are None are ignored.

    Raises:
        InputError: for an invalid option value.
    """
    changed = {name: value for name, value in options.items() if value is not None}
    phrases = changed.get("forbidden_phrases", ())
    is_many = isinstance(phrases, Iterable) and not isinstance(phrases, str | bytes)
    rule = 'must be a list of strings; for one phrase write ["..."]'
    require(is_many, "forbidden_phrases", rule, shown(phrases))
    if "forbidden_phrases" in changed:
        changed["forbidden_phrases"] = tuple(phrases)
    return dataclasses.replace(decoding, **changed)


def check_options(options: Mapping[str, Any]) -> None:
    """Raises an InputError for an option that is not a field of DecodingConfig."""
    names = [field.name for field in dataclasses.fields(DecodingConfig)]
    for name in options:
        rule = f"must be {', '.join(names[:-1])} and {names[-1]}"
        require(name in names, "options", rule, repr(name))


def search_settings(options: DecodingConfig, vocabulary: Subwords) -> SearchSettings:
    """Returns the search settings, with the ids of forbidden phrases.

    Raises:
        InputError: if a forbidden phrase has no subwords.
    """
    if not options.forbidden_phrases:
        return SearchSettings(options)
    phrases = vocabulary.encode(options.forbidden_phrases)
    rule = "must have at least one subword in each phrase"
    require(all(phrases), "forbidden_phrases", rule, options.forbidden_phrases)
    return SearchSettings(options, tuple(tuple(phrase) for phrase in phrases))
