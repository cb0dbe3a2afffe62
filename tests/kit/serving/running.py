"""Runs a service on a socket, with a client for it, and files for its corrections."""

import contextlib

import aiohttp

from keras_transformer.core.vocabulary.language_codes import Direction
from keras_transformer.kit.documents.memory.corrections import Corrections
from keras_transformer.kit.serving.server import answering, listening_socket
from keras_transformer.use.store.languages import ModelLanguages


def corrections_in(path, *directions):
    """Opens a file of corrections for a model with these directions, or from English to German."""
    directions = directions or (Direction("en", "de"),)
    targets = tuple(dict.fromkeys(direction.target for direction in directions))
    return Corrections(path, ModelLanguages(directions, targets, len(directions) > 1))


@contextlib.asynccontextmanager
async def client_of(service):
    """Runs a service; yields a client whose URLs are paths."""
    listening = listening_socket("127.0.0.1", 0)
    url = "http://127.0.0.1:{1}".format(*listening.getsockname())
    async with answering(service, listening), aiohttp.ClientSession(url) as client:
        yield client
