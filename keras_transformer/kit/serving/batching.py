"""Batches concurrent requests into few calls of a slow function."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

# The first request waits this long for others, so that concurrent ones share a call.
GATHER_SECONDS = 0.003


class Batcher:
    """Calls `function` in a thread, one call at a time, with the items of all waiting requests.

    While a call runs, requests queue for the next one. They are taken in order of arrival and are
    never split. If a call fails, only the requests in it fail.

    Args:
        function: takes a list of items, and returns as many answers.
        batch_items: maximum number of items in a call, unless a single request has more.
        waiting: maximum number of requests that may wait for their call.

    Attributes:
        calls: number of calls so far.
        items: number of items in them.
    """

    def __init__(
        self, function: Callable[[list[Any]], Sequence[Any]], batch_items: int, waiting: int
    ):
        self._function = function
        self._batch_items = batch_items
        self._waiting = waiting
        self._jobs: dict[asyncio.Future, list[Any]] = {}  # answers: items, as they came
        self._work: asyncio.Task | None = None
        self.calls = 0
        self.items = 0

    async def submit(self, items: list[Any]) -> list[Any]:
        """Returns the answers to `items`; cancellation removes the request from the queue.

        Raises:
            asyncio.QueueFull: if `waiting` requests are already waiting.
            Exception: whatever the call raised.
        """
        if not items:
            return []
        if len(self._jobs) >= self._waiting:
            raise asyncio.QueueFull
        answers = asyncio.get_running_loop().create_future()
        self._jobs[answers] = items
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._answer_all())
        try:
            return await answers
        finally:
            self._jobs.pop(answers, None)  # gone if already in a call

    async def _answer_all(self) -> None:
        """Makes calls until no request is waiting."""
        while self._jobs:
            await asyncio.sleep(GATHER_SECONDS)
            jobs = self._take_jobs()
            if jobs:  # empty if all were cancelled meanwhile
                await self._answer(jobs)

    def _take_jobs(self) -> dict[asyncio.Future, list[Any]]:
        """Takes the longest-waiting jobs, as many as fit into a call."""
        taken = {}
        count = 0
        for answers, items in list(self._jobs.items()):
            if taken and count + len(items) > self._batch_items:
                break
            taken[answers] = self._jobs.pop(answers)
            count += len(items)
        return taken

    async def _answer(self, jobs: dict[asyncio.Future, list[Any]]) -> None:
        """Makes one call, and passes each request its own answers, or the call's error."""
        items = [item for own in jobs.values() for item in own]
        self.calls += 1
        self.items += len(items)
        try:
            results = iter(await asyncio.to_thread(self._function, items))
            for answers, own in jobs.items():
                own_results = list(islice(results, len(own)))
                if not answers.done():  # cancelled
                    answers.set_result(own_results)
        except Exception as error:
            for answers in jobs:
                if not answers.done():
                    answers.set_exception(error)
