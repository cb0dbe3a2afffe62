"""Runs a service on a socket, with a client for it."""

import contextlib

import aiohttp

from keras_transformer.serving.server import answering, listening_socket


@contextlib.asynccontextmanager
async def client_of(service):
    """Runs a service; yields a client whose URLs are paths."""
    listening = listening_socket("127.0.0.1", 0)
    url = "http://127.0.0.1:{1}".format(*listening.getsockname())
    async with answering(service, listening), aiohttp.ClientSession(url) as client:
        yield client
