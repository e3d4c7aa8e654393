"""Group commit: one thread owns the writing connection and commits whatever has queued up.

A write is a job with a future. Jobs of one turn of the event loop are handed over together, and
while one commit waits for the disk the next batch gathers, so many writers share one fsync; a lone
writer never waits for company. Awaiters of a batch are woken by one call into their event loop.
Cancelling an awaiter touches its future only, never the job.

A batch is one transaction. If a job in it is at fault, the batch is rolled back and done again job
by job under savepoints, so that the faulty one fails alone.

The thread remembers where each running execution stands (owner's epoch, last ``seq``). It may: the
directory lock makes it the only writer, all changes pass through it in order, and it forgets what
it knows whenever a transaction is undone. So an append is one insert and touches no other row.
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

from planwave.storage.faults import (
    blames_store,
    breaks_disk,
    cause_of,
    is_recoverable,
    read_only,
    store_error,
)
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

_SET_STATUS: Final = (
    "UPDATE executions SET status = coalesce(?, status), started_at = coalesce(started_at, ?), "
    "completed_at = coalesce(?, completed_at) WHERE key = ?"
)
_LOOK_UP: Final = (
    "SELECT key, epoch, (SELECT max(seq) FROM events WHERE execution = key) "
    "FROM executions WHERE execution_id = ?"
)


class Step(NamedTuple):
    """Events that take one execution from ``events.first - 1`` to ``events.last``."""

    execution_id: str
    epoch: int
    events: EventRows


class _Place:
    """Where an execution stands: its row's key, its owner's epoch, its last event."""

    __slots__ = ("epoch", "key", "last")

    def __init__(self, key: int, epoch: int, last: int) -> None:
        self.key = key
        self.epoch = epoch
        self.last = last


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
        self._gathered: list[Job] = []
        self._queue: SimpleQueue[list[Job] | None] = SimpleQueue()
        self._places: dict[str, _Place] = {}
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
        gathered = self._gathered
        if not gathered or gathered[-1].loop is not job.loop:
            job.loop.call_soon(self._hand_over)
        gathered.append(job)
        return job.future

    def _hand_over(self) -> None:
        """Give the thread what came within one turn of the event loop."""
        if self._gathered:
            gathered, self._gathered = self._gathered, []
            self._queue.put(gathered)

    def refuse(self) -> None:
        """Take no more jobs; to be called where jobs are submitted, so that none slips behind."""
        self._closed = True
        self._hand_over()

    def stop(self) -> None:
        """Finish what is queued and end the thread; blocks until then. Call :meth:`refuse` first."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        stopping = False
        while not stopping:
            batch: list[Job] = []
            jobs = self._queue.get()
            with suppress(Empty):
                while jobs is not None:
                    batch += jobs
                    jobs = self._queue.get_nowait()
            stopping = jobs is None
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
        except Exception as error:  # noqa: BLE001 - the thread's boundary: every job gets an answer
            self._roll_back()
            if blames_store(error):
                self._fail(jobs, error)
            else:
                self._keep_each(jobs)

    def _fail(self, jobs: Sequence[Job], error: Exception) -> None:
        cause = cause_of(error)
        if not is_recoverable(cause):
            self._broken = cause
        for job in jobs:
            job.error = store_error(cause)

    def _roll_back(self) -> None:
        self._places.clear()  # they had run ahead of the database
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
                except Exception as error:
                    if blames_store(error):
                        raise
                    self._places.clear()
                    self._raw.execute("ROLLBACK TO job")
                    job.error = store_error(cause_of(error))
                self._raw.execute("RELEASE job")
            self._commit()
        except Exception as error:  # noqa: BLE001 - the thread's boundary: every job gets an answer
            self._roll_back()
            self._fail([job for job in jobs if job.error is None], error)

    def _commit(self) -> None:
        self._raw.execute("COMMIT")
        self.commits += 1

    def _put_artifacts(self, job: Job) -> bool:
        try:
            for artifact in job.artifacts:
                write_artifact(self._directory, artifact)
        except Exception as error:  # noqa: BLE001 - the thread's boundary: every job gets an answer
            if breaks_disk(error):
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
        for execution_id, epoch, events in steps:
            rows, first, last, progress, _ = events
            place = self._places.get(execution_id) or self._look_up(execution_id)
            if epoch < place.epoch:
                raise late_writer(execution_id, epoch, place.epoch)
            if first != place.last + 1:
                raise wrong_seq(execution_id, first, place.last)
            place.last = last
            key = place.key
            for row in rows:
                values.append(key)
                values += row
            if progress is not UNCHANGED:
                self._raw.execute(_SET_STATUS, (*progress, key))
                if progress.completed_at is not None:
                    del self._places[execution_id]
        size = _COLUMNS * _ROWS_A_STATEMENT
        for start in range(0, len(values), size):
            chunk = values[start : start + size]
            self._raw.execute(_INSERT[len(chunk) // _COLUMNS], chunk)

    def forget(self, execution_id: str) -> None:
        """Look an execution's row up again before its next append; only a job may call this."""
        self._places.pop(execution_id, None)

    def _look_up(self, execution_id: str) -> _Place:
        row = self._raw.execute(_LOOK_UP, (execution_id,)).fetchone()
        if row is None:
            raise unknown_execution(execution_id)
        key, epoch, last = row
        place = self._places[execution_id] = _Place(key, epoch, last or 0)
        return place


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
