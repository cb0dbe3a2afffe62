"""Configurations with settings written as users type them."""

from keras_transformer.core.config import parse_settings, replace_settings


def with_settings(model, training, settings):
    """Returns both configurations with each "KEY=VALUE" applied."""
    return replace_settings(model, training, parse_settings(settings))
