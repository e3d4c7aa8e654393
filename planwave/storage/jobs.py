"""What the writing thread is given to do, and how it tells that it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from sqlalchemy import Connection

from planwave.storage.files import Artifact
from planwave.storage.records import ExecutionRecord
from planwave.storage.rows import EncodedBatch


class AppendOp(NamedTuple):
    """Events that take one execution from ``batch.first - 1`` to ``batch.last``.

    With ``record`` the execution is new, and this its beginning; ``plan`` is the row of its plan,
    where that is to be kept with it.
    """

    execution_id: str
    epoch: int
    batch: EncodedBatch | None
    record: ExecutionRecord | None = None
    plan: Mapping[str, str] | None = None


class WriteJob:
    """One write and the future of its result.

    ``change`` is a :class:`Step`, or for all but appends a function of the connection.
    ``artifacts`` go to disk before it.
    """

    __slots__ = ("artifacts", "change", "error", "future", "loop", "result")

    def __init__(
        self, change: AppendOp | Callable[[Connection], Any], artifacts: Sequence[Artifact] = ()
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.change = change
        self.artifacts = artifacts
        self.result: Any = None
        self.error: BaseException | None = None


def complete_jobs(jobs: Sequence[WriteJob]) -> None:
    """Tell the awaiters, with one call for each event loop."""
    loops: dict[asyncio.AbstractEventLoop, list[WriteJob]] = {}
    for job in jobs:
        loops.setdefault(job.loop, []).append(job)
    for loop, own in loops.items():
        with suppress(RuntimeError):  # the loop was closed: nobody is left to be told
            loop.call_soon_threadsafe(_complete, own)


def _complete(jobs: Sequence[WriteJob]) -> None:
    for job in jobs:
        if job.future.done():
            continue  # its awaiter was cancelled; the write stands
        if job.error is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.error)
