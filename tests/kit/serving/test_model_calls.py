"""How long a server has been idle, by a clock that the test sets."""

import asyncio
import threading

import pytest

from keras_transformer.kit.serving import model_calls
from keras_transformer.kit.serving.errors import RequestError
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.kit.serving.model_calls import ModelCalls
from keras_transformer.support.errors import InputError


class Clock:
    """Replaces the module `time`."""

    now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(model_calls, "time", clock)
    return clock


def test_idle_since_the_last_call_ended(clock):
    begun, go_on = [threading.Event(), threading.Event()], [threading.Event(), threading.Event()]

    def wait(place):
        begun[place].set()
        assert go_on[place].wait(timeout=60)

    async def scenario():
        calls = ModelCalls(list, Limits())
        clock.now += 3
        assert calls.idle_seconds() == 3
        queues = calls.single, calls.memory
        tasks = [
            asyncio.create_task(calls.call(queue, lambda place=place: wait(place)))
            for place, queue in enumerate(queues)
        ]
        for event in begun:
            await asyncio.to_thread(event.wait, 60)
        for place, task in enumerate(tasks):
            clock.now += 5
            assert calls.idle_seconds() == 0
            go_on[place].set()
            await task
        assert calls.idle_seconds() == 0
        clock.now += 2
        assert calls.idle_seconds() == 2

    asyncio.run(asyncio.wait_for(scenario(), timeout=120))


def test_a_call_that_failed_has_ended(clock):
    def fail():
        raise InputError("text", "must be short", "a long one")

    async def scenario():
        calls = ModelCalls(list, Limits())
        with pytest.raises(RequestError, match="a long one"):
            await calls.call(calls.single, fail)
        clock.now += 2
        assert calls.idle_seconds() == 2

    asyncio.run(asyncio.wait_for(scenario(), timeout=120))
