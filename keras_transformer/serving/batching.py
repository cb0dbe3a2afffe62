"""Gathers what concurrent requests ask for into few calls of a slow function."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

# Requests that come together are to share a call: the first waits so long for the others.
GATHER_SECONDS = 0.003


class QueueFullError(Exception):
    """Too many requests wait already."""


class Job(NamedTuple):
    """What one request asks for, and where its answers go."""

    items: list[Any]
    answers: asyncio.Future


class Batcher:
    """Calls `function` in a thread of its own, with the items of all requests that wait.

    While a call runs, requests gather for the next one. They are taken in the order of their
    coming and never divided. If a call fails, so do the requests in it, and no others.

    Args:
        function: takes a list of items, gives as many answers.
        batch_items: most items of a call, unless a single request has more.
        waiting: most requests that may wait for their call.

    Attributes:
        calls, items: how many there were so far.
    """

    def __init__(
        self, function: Callable[[list[Any]], Sequence[Any]], batch_items: int, waiting: int
    ):
        self._function = function
        self._batch_items = batch_items
        self._waiting = waiting
        self._jobs: deque[Job] = deque()
        self._arrival = asyncio.Event()
        self.calls = 0
        self.items = 0

    async def submit(self, items: list[Any]) -> list[Any]:
        """Returns the answers to `items`; a caller that is cancelled gives up its place.

        Raises:
            QueueFullError: where `waiting` requests wait already.
            Exception: whatever the call raised.
        """
        if not items:
            return []
        if len(self._jobs) >= self._waiting:
            raise QueueFullError
        job = Job(items, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._arrival.set()
        try:
            return await job.answers
        finally:
            with contextlib.suppress(ValueError):  # taken into a call, as most are
                self._jobs.remove(job)

    async def run(self) -> None:
        """Answers requests until it is cancelled; a call that runs then is left to itself."""
        thread = ThreadPoolExecutor(max_workers=1)
        try:
            while True:
                await self._arrival.wait()
                await asyncio.sleep(GATHER_SECONDS)
                if jobs := self._take():
                    await self._call(thread, jobs)
        finally:
            thread.shutdown(wait=False, cancel_futures=True)

    def _take(self) -> list[Job]:
        """Takes the requests of the next call from those that wait."""
        jobs: list[Job] = []
        room = self._batch_items
        while self._jobs and (not jobs or len(self._jobs[0].items) <= room):
            jobs.append(self._jobs.popleft())
            room -= len(jobs[-1].items)
        if not self._jobs:
            self._arrival.clear()
        return jobs

    async def _call(self, thread: ThreadPoolExecutor, jobs: list[Job]) -> None:
        items = [item for job in jobs for item in job.items]
        self.calls += 1
        self.items += len(items)
        try:
            answers = await asyncio.get_running_loop().run_in_executor(
                thread, self._function, items
            )
            start = 0
            for job in jobs:
                if not job.answers.done():  # given up by its request
                    job.answers.set_result(list(answers[start : start + len(job.items)]))
                start += len(job.items)
        except Exception as error:
            for job in jobs:
                if not job.answers.done():
                    job.answers.set_exception(error)
