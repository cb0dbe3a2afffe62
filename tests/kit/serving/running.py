"""Runs a service on a socket, asks it, and opens files for its corrections."""

import asyncio
import contextlib
import json
import threading

import aiohttp

from keras_transformer.core.vocabulary.language_codes import Direction
from keras_transformer.kit.documents.memory.corrections import Corrections
from keras_transformer.kit.serving.application import Service
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.kit.serving.server import answering, listening_socket
from keras_transformer.use.store.languages import ModelLanguages
from tests.refusals import check_message

NAMES = frozenset({"localhost", "127.0.0.1"})


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


def served(translator, scenario, limits=None, **settings):
    """Runs `scenario(client, service)` against a server, and returns its result.

    Args:
        settings: further arguments of the service.
    """

    async def run():
        service = Service(translator, limits or Limits(), NAMES, **settings)
        async with client_of(service) as client:
            return await asyncio.wait_for(scenario(client, service), timeout=120)

    return asyncio.run(run())


def answer_to(translator, method, path, limits=None, terminologies=None, **request):
    """Returns status, headers and body of the answer to one request."""

    async def scenario(client, service):
        answer = await client.request(method, path, **request)
        return answer.status, answer.headers, await answer.read()

    return served(translator, scenario, limits, terminologies=terminologies)


def got(translator, path, **settings):
    """Returns the content of the answer to a GET."""
    status, _, body = answer_to(translator, "GET", path, **settings)
    assert status == 200, body
    return json.loads(body)


def posted(translator, path, **request):
    """Returns the content of the answer to a POST."""
    status, _, body = answer_to(translator, "POST", path, **request)
    assert status == 200, body
    return json.loads(body)


def refusal_of(translator, path, status=400, **request):
    """Returns the message for a POST that is refused before the model is called."""
    found, _, body = answer_to(translator, "POST", path, **request)
    content = json.loads(body)
    assert (found, set(content)) == (status, {"error"}), content
    assert translator.calls == []
    return content["error"]


def check_refused(translator, path, about, received, **request):
    """Checks that a POST is refused, and its message; see `check_message`."""
    check_message(refusal_of(translator, path, **request), about, received)


@contextlib.contextmanager
def held(translator):
    """Holds up calls of a translator; yields the events that one has begun, and that they go on."""
    begun, go_on = threading.Event(), threading.Event()

    def wait():
        begun.set()
        assert go_on.wait(timeout=60)

    translator.before_call = wait
    try:
        yield begun, go_on
    finally:
        go_on.set()
