"""Group commit: one thread owns the writing connection and commits whatever has queued up.

A write is a job with a future. While one commit waits for the disk the next batch gathers, so many
writers share one fsync; a lone writer never waits for company. Awaiters of a batch are woken by one
call into their event loop. Cancelling an awaiter touches its future only, never the job.

A batch is one transaction. If a job in it is at fault, the batch is rolled back and done again job
by job under savepoints, so that the faulty one fails alone.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from planwave.errors import StoreError
from planwave.storage.faults import ITEM_ERRORS, cause_of, is_recoverable, read_only, store_error
from planwave.storage.files import Artifact, write_artifact
from planwave.storage.rows import (
    UNCHANGED,
    EventRows,
    closed,
    late_writer,
    unknown_execution,
    wrong_seq,
)

_ROWS_A_STATEMENT: Final = 64
_COLUMNS: Final = 7
_PLACES: Final = "(" + ",".join("?" * _COLUMNS) + ")"
_INSERT: Final = tuple(
    "INSERT INTO events (execution, seq, at, type, path, attempt, data) VALUES "  # noqa: S608 - constants
    + ",".join([_PLACES] * count)
    for count in range(_ROWS_A_STATEMENT + 1)
)
"""One statement for many rows: the driver gives up the interpreter lock once a statement, and with
``executemany`` a busy event loop would take it between any two rows."""

_ADVANCE: Final = "UPDATE executions SET last_seq = ? WHERE key = ? AND epoch <= ? AND last_seq = ?"
_ADVANCE_WITH_STATUS: Final = (
    "UPDATE executions SET last_seq = ?, status = coalesce(?, status), "
    "started_at = coalesce(started_at, ?), completed_at = coalesce(?, completed_at) "
    "WHERE key = ? AND epoch <= ? AND last_seq = ?"
)


class Step(NamedTuple):
    """Events that take one execution from ``events.first - 1`` to ``events.last``."""

    execution_id: str
    epoch: int
    events: EventRows


class Job:
    """One write and the future of its result.

    ``change`` is a :class:`Step`, or for all but appends a function of the connection.
    ``artifacts`` go to disk before it.
    """

    __slots__ = ("artifacts", "change", "error", "future", "loop", "result")

    def __init__(
        self, change: Step | Callable[[Connection], Any], artifacts: Sequence[Artifact] = ()
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.change = change
        self.artifacts = artifacts
        self.result: Any = None
        self.error: BaseException | None = None


class GroupCommit:
    """The writer thread and its queue.

    ``commits`` counts finished transactions.
    """

    def __init__(self, connection: Connection, raw: sqlite3.Connection, directory: Path) -> None:
        self._connection = connection
        self._raw = raw
        self._directory = directory
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._keys: dict[str, int] = {}
        self._broken: BaseException | None = None
        self._closed = False
        self.commits = 0
        # Daemon: a process that ends without close() must not hang; what is committed is safe.
        self._thread = threading.Thread(target=self._run, name="planwave-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> asyncio.Future[Any]:
        """Queue a job; await the future for its result.

        Raises:
            StoreError: The store was closed, or a disk error made it read-only.
        """
        if self._broken is not None:
            raise read_only(self._broken)
        if self._closed:
            raise closed()
        self._queue.put(job)
        return job.future

    def stop(self) -> None:
        """Finish what is queued and end the thread; blocks until then."""
        self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        stopping = False
        while not stopping:
            batch: list[Job] = []
            job = self._queue.get()
            with suppress(Empty):
                while job is not None:
                    batch.append(job)
                    job = self._queue.get_nowait()
            stopping = job is None
            if batch:
                self._keep(batch)
                _wake(batch)

    def _keep(self, batch: list[Job]) -> None:
        """Keep a batch; afterwards each job has its result or its error."""
        if self._broken is not None:
            for job in batch:
                job.error = read_only(self._broken)
            return
        jobs = [job for job in batch if self._put_artifacts(job)]
        try:
            self._raw.execute("BEGIN IMMEDIATE")
            self._apply(jobs)
            self._commit()
        except (*ITEM_ERRORS, DBAPIError) as error:
            self._give_up(jobs, error, again=isinstance(cause_of(error), ITEM_ERRORS))
        except Exception as error:  # noqa: BLE001 - the thread's boundary: every job gets an answer
            self._give_up(jobs, error, again=False)

    def _give_up(self, jobs: list[Job], error: BaseException, *, again: bool) -> None:
        cause = cause_of(error)
        self._roll_back()
        if again:
            self._keep_each(jobs)
            return
        if not is_recoverable(cause):
            self._broken = cause
        for job in jobs:
            job.error = store_error(cause)

    def _roll_back(self) -> None:
        self._keys.clear()  # keys of executions that were not created after all
        with suppress(sqlite3.Error):
            if self._raw.in_transaction:
                self._raw.execute("ROLLBACK")

    def _keep_each(self, jobs: list[Job]) -> None:
        """Keep what can be kept, each job under its own savepoint, all in one transaction."""
        try:
            self._raw.execute("BEGIN IMMEDIATE")
            for job in jobs:
                self._raw.execute("SAVEPOINT job")
                try:
                    self._apply([job])
                except (*ITEM_ERRORS, DBAPIError) as error:
                    if not isinstance(cause_of(error), ITEM_ERRORS):
                        raise
                    self._keys.clear()
                    self._raw.execute("ROLLBACK TO job")
                    job.error = store_error(cause_of(error))
                self._raw.execute("RELEASE job")
            self._commit()
        except Exception as error:  # noqa: BLE001 - the thread's boundary: every job gets an answer
            self._give_up([job for job in jobs if job.error is None], error, again=False)

    def _commit(self) -> None:
        self._raw.execute("COMMIT")
        self.commits += 1

    def _put_artifacts(self, job: Job) -> bool:
        try:
            for artifact in job.artifacts:
                write_artifact(self._directory, artifact)
        except OSError as error:
            if not is_recoverable(error):
                self._broken = error
            job.error = store_error(error)
            return False
        return True

    def _apply(self, jobs: Sequence[Job]) -> None:
        """Do the jobs in their order; neighbouring appends go together."""
        steps: list[Step] = []
        for job in jobs:
            change = job.change
            if isinstance(change, Step):
                steps.append(change)
                continue
            self.append_now(steps)
            steps = []
            job.result = change(self._connection)
        self.append_now(steps)

    def append_now(self, steps: Sequence[Step]) -> None:
        """Insert events within the transaction that is open; only a job may call this.

        Raises:
            StoreError, LateWriter: A step does not fit its execution.
        """
        values: list[Any] = []
        advances: dict[str, Step] = {}
        for step in steps:
            key = self._key_of(step.execution_id)
            for row in step.events.rows:
                values.append(key)
                values += row
            before = advances.get(step.execution_id)
            advances[step.execution_id] = step if before is None else _joined(before, step)
        for step in advances.values():
            self._advance(step)
        size = _COLUMNS * _ROWS_A_STATEMENT
        for start in range(0, len(values), size):
            chunk = values[start : start + size]
            self._raw.execute(_INSERT[len(chunk) // _COLUMNS], chunk)

    def _advance(self, step: Step) -> None:
        """Move an execution's row on, if the step's owner and numbers are right."""
        key = self._keys[step.execution_id]
        _, first, last, progress, _ = step.events
        if progress is UNCHANGED:
            done = self._raw.execute(_ADVANCE, (last, key, step.epoch, first - 1))
        else:
            done = self._raw.execute(
                _ADVANCE_WITH_STATUS, (last, *progress, key, step.epoch, first - 1)
            )
        if done.rowcount != 1:
            raise self._refusal(step, key)
        if progress.completed_at is not None:
            del self._keys[step.execution_id]

    def _refusal(self, step: Step, key: int) -> StoreError:
        epoch, last_seq = self._raw.execute(
            "SELECT epoch, last_seq FROM executions WHERE key = ?", (key,)
        ).fetchone()
        if step.epoch < epoch:
            return late_writer(step.execution_id, step.epoch, epoch)
        return wrong_seq(step.execution_id, step.events.first, last_seq)

    def _key_of(self, execution_id: str) -> int:
        key = self._keys.get(execution_id)
        if key is None:
            row = self._raw.execute(
                "SELECT key FROM executions WHERE execution_id = ?", (execution_id,)
            ).fetchone()
            if row is None:
                raise unknown_execution(execution_id)
            key = self._keys[execution_id] = row[0]
        return key


def _joined(before: Step, step: Step) -> Step:
    """Give two steps of one execution as one."""
    a, b = before.events, step.events
    if b.first != a.last + 1 or step.epoch != before.epoch:
        raise wrong_seq(step.execution_id, b.first, a.last)
    progress = a.progress
    if b.progress is not UNCHANGED:
        progress = b.progress._replace(started_at=progress.started_at or b.progress.started_at)
    return Step(step.execution_id, step.epoch, EventRows([], a.first, b.last, progress, 0))


def _wake(jobs: Sequence[Job]) -> None:
    """Tell the awaiters, with one call for each event loop."""
    loops: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        loops.setdefault(job.loop, []).append(job)
    for loop, own in loops.items():
        with suppress(RuntimeError):  # the loop was closed: nobody is left to be told
            loop.call_soon_threadsafe(_settle, own)


def _settle(jobs: Sequence[Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue  # its awaiter was cancelled; the write stands
        if job.error is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.error)
