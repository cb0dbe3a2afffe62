"""Calls of the model: in threads, one after another, within the time limit."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from keras_transformer.kit.serving.batching import Batcher
from keras_transformer.kit.serving.errors import RequestError
from keras_transformer.kit.serving.joint_translation import size_of
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.support.errors import InputError

BATCH_SENTENCES = 64  # in one model call, about

Answer = TypeVar("Answer")


class ModelCalls:
    """The queues of a server's calls, each of which has a thread while it has work.

    Args:
        translate: translates sentences and short documents; see joint_translation.py.
        limits: the limits on requests.

    Attributes:
        joint: translates the sentences and short documents of several requests at once.
        single: calls functions for one request at a time, so that an error concerns only that one;
            translations with options, and long documents.
        attentions, detections, memory: the same, for work that need not wait for translations.
    """

    def __init__(self, translate: Callable[[list[Any]], Sequence[Any]], limits: Limits):
        self._limits = limits
        self.joint = Batcher(translate, BATCH_SENTENCES, limits.max_waiting, size_of)
        self.single = Batcher(call_all, 1, limits.max_waiting)
        self.attentions = Batcher(call_all, 1, limits.max_waiting)
        self.detections = Batcher(call_all, 1, limits.max_waiting)
        self.memory = Batcher(call_all, 1, limits.max_waiting)
        self._running = 0
        self._last_end = time.monotonic()

    def waiting(self) -> dict[str, int]:
        """Returns the number of requests that wait in each queue."""
        queues = {name: value for name, value in vars(self).items() if isinstance(value, Batcher)}
        return {name: queue.waiting for name, queue in queues.items()}

    def idle_seconds(self) -> float:
        """Returns the time since the last call ended; 0 while calls run. Any thread may ask."""
        return 0.0 if self._running > 0 else time.monotonic() - self._last_end

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
        self._running += 1
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
        finally:
            self._last_end = time.monotonic()
            self._running -= 1


def call_all(works: list[Callable[[], Any]]) -> list[Any]:
    """Calls each function, and returns the results."""
    return [work() for work in works]
