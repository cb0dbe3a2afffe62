"""Calls of the model: in threads, one after another, within the time limit."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from keras_transformer.errors import InputError
from keras_transformer.serving.batching import Batcher
from keras_transformer.serving.errors import RequestError
from keras_transformer.serving.limits import Limits

BATCH_SENTENCES = 64  # in one model call

Answer = TypeVar("Answer")


class ModelCalls:
    """The queues of a server's calls, each of which has a thread while it has work.

    Args:
        translate: translates sentences.
        limits: the limits on requests.

    Attributes:
        sentences: translates sentences of several requests at once, and counts them.
        single: calls functions for one request at a time, so that an error concerns only that one;
            translations with options, and documents.
        attentions, detections, memory: the same, for work that need not wait for translations.
    """

    def __init__(self, translate: Callable[[list[str]], Sequence[Any]], limits: Limits):
        self._limits = limits
        self.sentences = Batcher(translate, BATCH_SENTENCES, limits.max_waiting)
        self.single = Batcher(call_all, 1, limits.max_waiting)
        self.attentions = Batcher(call_all, 1, limits.max_waiting)
        self.detections = Batcher(call_all, 1, limits.max_waiting)
        self.memory = Batcher(call_all, 1, limits.max_waiting)

    async def call(
        self, queue: Batcher, work: Callable[[], Answer], error_status: int = 500
    ) -> Answer:
        """Returns the result of a function, which is called in a queue; see `submit`."""
        (answer,) = await self.submit(queue, [work], error_status)
        return answer

    async def submit(self, queue: Batcher, items: list[Any], error_status: int = 500) -> list[Any]:
        """Returns the answers to `items`, within the time limit.

        Args:
            queue: calls the model.
            items: the input of the queue's function.
            error_status: the HTTP status for an InputError from the model.
        """
        try:
            async with asyncio.timeout(self._limits.timeout):
                return await queue.submit(items)
        except InputError as error:
            raise RequestError(error_status, str(error)) from None
        except TimeoutError:
            message = f"the model took more than {self._limits.time}"
            raise RequestError(504, message) from None
        except asyncio.QueueFull:
            message = f"{self._limits.max_waiting} requests are already waiting: try again"
            raise RequestError(503, message, {"Retry-After": "1"}) from None


def call_all(works: list[Callable[[], Any]]) -> list[Any]:
    """Calls each function, and returns the results."""
    return [work() for work in works]
