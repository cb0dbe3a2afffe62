"""The search options of a model: its task's, those chosen for it, and a caller's."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from keras_transformer.errors import require
from keras_transformer.fields import shown
from keras_transformer.search.config import TASKS, DecodingConfig, SearchSettings
from keras_transformer.training.model_directory import ModelDescription
from keras_transformer.vocabulary.subwords import Subwords


def default_decoding(description: ModelDescription, chosen: Mapping[str, Any]) -> DecodingConfig:
    """Returns how a model decodes unless a caller changes it.

    Sources are truncated as in training.

    Args:
        description: the model.
        chosen: the options chosen for it (evaluation/length_penalty.py).
    """
    task_config = TASKS[description.task]
    trained_length = description.max_length or DecodingConfig.max_source_length
    longest = max(trained_length, task_config.max_source_length)
    return dataclasses.replace(task_config, **{"max_source_length": longest, **chosen})


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
