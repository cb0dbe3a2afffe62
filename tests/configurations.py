"""Configurations with settings as they are typed, which only tests put in at once."""

from keras_transformer.config import parse_settings, replace_settings


def with_settings(model, training, settings):
    """Both configurations with each "KEY=VALUE" put in."""
    return replace_settings(model, training, parse_settings(settings))
