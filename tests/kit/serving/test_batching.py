import asyncio
import threading
import time

import pytest

from keras_transformer.kit.serving.batching import Batcher

NOTHING = 99


class Doubler:
    """Doubles numbers; waits in the first call until it is let go; fails at a negative number.

    Gives no list of answers at all if there is a NOTHING among them.
    """

    def __init__(self):
        self.calls = []
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, numbers):
        self.calls.append(numbers)
        self.begun.set()
        assert self.go_on.wait(timeout=60)
        if min(numbers) < 0:
            raise ValueError(f"negative: {min(numbers)}")
        if NOTHING in numbers:
            return None
        return [2 * number for number in numbers]


def run(scenario, batch_size=10, waiting=10, size_of=lambda item: 1):
    """Runs `scenario(batcher, doubler)` in an event loop of its own."""
    doubler = Doubler()
    batcher = Batcher(doubler, batch_size, waiting, size_of)
    try:
        return asyncio.run(asyncio.wait_for(scenario(batcher, doubler), timeout=120))
    finally:
        doubler.go_on.set()


async def submitted(batcher, *requests):
    """Submits all of them, and gives their tasks once they wait for a call."""
    tasks = [asyncio.create_task(batcher.submit(items)) for items in requests]
    await asyncio.sleep(0)
    return tasks


async def in_call(batcher, doubler):
    """Submits [0], and gives its task once the function runs with it."""
    (task,) = await submitted(batcher, [0])
    assert await asyncio.to_thread(doubler.begun.wait, 60)
    return task


def test_requests_that_come_together_share_a_call():
    async def scenario(batcher, doubler):
        doubler.go_on.set()
        answers = await asyncio.gather(*await submitted(batcher, [1], [2, 3], [4]))
        assert answers == [[2], [4, 6], [8]]
        assert doubler.calls == [[1, 2, 3, 4]]
        assert batcher.calls == 1

    run(scenario)


def test_requests_gather_while_a_call_runs():
    async def scenario(batcher, doubler):
        first = await in_call(batcher, doubler)
        others = await submitted(batcher, [1], [2])
        doubler.go_on.set()
        assert await asyncio.gather(first, *others) == [[0], [2], [4]]
        assert doubler.calls == [[0], [1, 2]]

    run(scenario)


def test_requests_are_not_divided_and_keep_their_order():
    async def scenario(batcher, doubler):
        doubler.go_on.set()
        requests = [[1, 2], [3, 4], [5], [6, 7, 8, 9], [10]]
        answers = await asyncio.gather(*await submitted(batcher, *requests))
        assert answers == [[2 * number for number in request] for request in requests]
        assert doubler.calls == [[1, 2], [3, 4, 5], [6, 7, 8, 9], [10]]

    run(scenario, batch_size=3)


def test_items_count_by_their_size():
    async def scenario(batcher, doubler):
        doubler.go_on.set()
        requests = [[1, 2], [7], [3], [4]]
        await asyncio.gather(*await submitted(batcher, *requests))
        assert doubler.calls == [[1, 2], [7], [3, 4]]

    run(scenario, batch_size=7, size_of=lambda number: number)


def test_an_error_concerns_its_own_request_only():
    async def scenario(batcher, doubler):
        first = await in_call(batcher, doubler)
        others = await submitted(batcher, [-1], [2], [3, 4])
        doubler.go_on.set()
        answers = await asyncio.gather(first, *others, return_exceptions=True)
        assert [str(answer) for answer in answers] == ["[0]", "negative: -1", "[4]", "[6, 8]"]
        assert doubler.calls == [[0], [-1, 2], [-1], [2], [3, 4]]

    run(scenario, batch_size=2)


def test_answers_that_cannot_be_handed_out_fail_their_requests_only():
    async def scenario(batcher, doubler):
        doubler.go_on.set()
        answers = await asyncio.gather(
            *await submitted(batcher, [NOTHING], [1]), return_exceptions=True
        )
        assert [type(answer) for answer in answers] == [TypeError, list]
        assert await batcher.submit([2]) == [4]

    run(scenario, batch_size=1)


def test_full_queue():
    async def scenario(batcher, doubler):
        first = await in_call(batcher, doubler)
        second, third = await submitted(batcher, [1], [2])
        with pytest.raises(asyncio.QueueFull):
            await third
        doubler.go_on.set()
        assert await asyncio.gather(first, second) == [[0], [2]]

    run(scenario, waiting=1)


def test_request_that_gives_up_leaves_its_place():
    async def scenario(batcher, doubler):
        first = await in_call(batcher, doubler)
        second, third = await submitted(batcher, [1], [2])
        second.cancel()
        await asyncio.sleep(0)
        (fourth,) = await submitted(batcher, [3])
        first.cancel()  # in the call already: its answer goes nowhere
        doubler.go_on.set()
        assert await asyncio.gather(third, fourth) == [[4], [6]]
        assert doubler.calls == [[0], [2, 3]]

    run(scenario, waiting=2)


def test_no_items_need_no_call():
    async def scenario(batcher, doubler):
        assert await batcher.submit([]) == []
        assert doubler.calls == []

    run(scenario)


def test_lone_request_is_not_kept_waiting():
    async def scenario(batcher, doubler):
        doubler.go_on.set()
        seconds, end = [], time.perf_counter() + 60
        # A busy machine holds up many of them, a batcher that waits all of them.
        while min(seconds, default=1) >= 0.015 and time.perf_counter() < end:
            start = time.perf_counter()
            await batcher.submit([1])
            seconds.append(time.perf_counter() - start)
        return min(seconds)

    assert run(scenario) < 0.015
