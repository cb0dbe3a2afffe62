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
    never split. If a call for several requests fails, each is called alone, so that an error only
    concerns its own request.

    Args:
        function: takes a list of items, and returns as many answers.
        batch_size: maximum size of a call, unless a single request is larger.
        most_waiting: maximum number of requests that may wait for their call.
        size_of: the size of an item.

    Attributes:
        calls: number of calls so far.
    """

    def __init__(
        self,
        function: Callable[[list[Any]], Sequence[Any]],
        batch_size: int,
        most_waiting: int,
        size_of: Callable[[Any], int] = lambda item: 1,
    ):
        self._function = function
        self._batch_size = batch_size
        self._most_waiting = most_waiting
        self._size_of = size_of
        self._jobs: dict[asyncio.Future, list[Any]] = {}  # answers: items, as they came
        self._work: asyncio.Task | None = None
        self.calls = 0

    @property
    def waiting(self) -> int:
        """The number of requests that wait for their call."""
        return len(self._jobs)

    async def submit(self, items: list[Any]) -> list[Any]:
        """Returns the answers to `items`; cancellation removes the request from the queue.

        Raises:
            asyncio.QueueFull: if `most_waiting` requests are already waiting.
            Exception: whatever the call raised.
        """
        if not items:
            return []
        if self.waiting >= self._most_waiting:
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
        size = 0
        for answers, items in list(self._jobs.items()):
            size += sum(map(self._size_of, items))
            if taken and size > self._batch_size:
                break
            taken[answers] = self._jobs.pop(answers)
        return taken

    async def _answer(self, jobs: dict[asyncio.Future, list[Any]]) -> None:
        """Makes one call, and passes each request its own answers; after an error, one for each."""
        items = [item for own in jobs.values() for item in own]
        self.calls += 1
        try:
            results = iter(await asyncio.to_thread(self._function, items))
            for answers, own in jobs.items():
                own_results = list(islice(results, len(own)))
                if not answers.done():  # cancelled
                    answers.set_result(own_results)
        except Exception as error:
            waiting = {answers: own for answers, own in jobs.items() if not answers.done()}
            if len(jobs) == 1:
                for answers in waiting:
                    answers.set_exception(error)
                return
            for answers, own in waiting.items():
                await self._answer({answers: own})
