"""Gathers what concurrent requests ask for into few calls of a slow function."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

# Requests that come together are to share a call: the first waits this long for the others.
GATHER_SECONDS = 0.003


class Job(NamedTuple):
    """What one request asks for, and where its answers go."""

    items: list[Any]
    answers: asyncio.Future


class Batcher:
    """Calls `function` in a thread of its own, with the items of all requests that wait.

    While a call runs, requests gather for the next one. They are taken in the order in which they
    came and are never divided. If a call fails, so do the requests in it, and no others.

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
        self._function, self._batch_items, self._waiting = function, batch_items, waiting
        self._jobs: deque[Job] = deque()
        self._work: asyncio.Task | None = None
        self._thread = ThreadPoolExecutor(max_workers=1)
        self.calls = self.items = 0

    async def submit(self, items: list[Any]) -> list[Any]:
        """Returns the answers to `items`; a caller that is cancelled gives up its place.

        Raises:
            asyncio.QueueFull: where `waiting` requests wait already.
            Exception: whatever the call raised.
        """
        if not items:
            return []
        if len(self._jobs) >= self._waiting:
            raise asyncio.QueueFull
        job = Job(items, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._answer_all())
        try:
            return await job.answers
        finally:
            with contextlib.suppress(ValueError):  # taken into a call, as most are
                self._jobs.remove(job)

    async def _answer_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._jobs:
            await asyncio.sleep(GATHER_SECONDS)
            jobs, items = [], []
            while self._jobs:
                more = self._jobs[0].items
                if jobs and len(items) + len(more) > self._batch_items:
                    break
                jobs.append(self._jobs.popleft())
                items += more
            if not jobs:  # all were given up meanwhile
                return
            self.calls += 1
            self.items += len(items)
            try:
                answers = iter(await loop.run_in_executor(self._thread, self._function, items))
                for job in jobs:
                    own = list(islice(answers, len(job.items)))
                    if not job.answers.done():  # given up by its request
                        job.answers.set_result(own)
            except Exception as error:
                for job in jobs:
                    if not job.answers.done():
                        job.answers.set_exception(error)
