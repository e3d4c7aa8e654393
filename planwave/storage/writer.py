"""Group commit: one thread owns the writing connection and commits whatever has queued up.

A write is a job with a future. Jobs of one turn of the event loop are handed over together, and
while one commit waits for the disk the next batch gathers, so many writers share one fsync; a lone
writer never waits for company. Awaiters of a batch are woken by one call into their event loop.
Cancelling an awaiter touches its future only, never the job.

A batch is one transaction. If a job in it is at fault, the batch is rolled back and done again job
by job under savepoints, so that the faulty one fails alone.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from sqlalchemy import Connection

from planwave.errors import StoreError
from planwave.storage.faults import (
    blames_store,
    breaks_disk,
    cause_of,
    passing,
    read_only,
    store_error,
)
from planwave.storage.files import (
    Footing,
    drop_artifact,
    drop_document,
    free_bytes,
    write_artifact,
)
from planwave.storage.jobs import Job, Step, wake
from planwave.storage.places import Places
from planwave.storage.records import DISK_FULL, StoreUse
from planwave.storage.rows import closed
from planwave.storage.schema import DATABASE_NAME, SCHEMA_VERSION

_SIZES: Final = 13
_IS_USED: Final = "SELECT 1 FROM artifact_uses WHERE digest = ? LIMIT 1"
_USE: Final = (
    "INSERT OR IGNORE INTO artifact_uses (digest, execution) "
    "SELECT ?, key FROM executions WHERE execution_id = ?"
)
_LOOK_AGAIN_S: Final = 1.0
"""How often it is tried whether writes are possible again, where nobody writes who would find out."""
_LEAST_ROOM: Final = 1024 * 1024
"""Bytes that have to be free before a full disk is taken for one with room again."""
_TRIAL: Final = f"PRAGMA user_version = {SCHEMA_VERSION}"
"""Writes one page, and changes nothing."""


class GroupCommit:
    """The writer thread and its queue.

    ``commits`` counts finished transactions.

    A write that finds the disk full or the database busy is refused, and nothing of it is kept;
    the next one is tried as ever. After any other fault of the disk nothing is tried any more:
    what a failed fsync leaves on disk nobody knows. So it is when the files are no longer there.

    Raises:
        OSError: The files of the database are not there.
    """

    def __init__(self, connection: Connection, raw: sqlite3.Connection, directory: Path) -> None:
        self._connection = connection
        self._raw = raw
        self._directory = directory
        self._gathered: list[Job] = []
        self._queue: SimpleQueue[list[Job] | None] = SimpleQueue()
        self._places = Places(raw)
        self._gone: set[str] = set()
        self._let_go: set[str] = set()
        path = directory / DATABASE_NAME
        self._footing = Footing(path, path.with_name(f"{path.name}-wal"))
        self._broken: BaseException | None = None
        self._trouble: StoreError | None = None
        self._closed = False
        self.commits = 0
        self._writes = 0
        self._sizes = [0] * _SIZES
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
            jobs: list[Job] | None = []
            with suppress(Empty):
                jobs = self._queue.get(timeout=_LOOK_AGAIN_S if self._trouble else None)
                while jobs is not None:
                    batch += jobs
                    jobs = self._queue.get_nowait()
            stopping = jobs is None
            if not batch and not stopping:
                self._look_again()
            if batch:
                self._keep(batch)
                if self._trouble is not None and all(job.error is None for job in batch):
                    self._trouble = None
                wake(batch)

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
            self._note_commit(len(jobs))
        except Exception as error:  # noqa: BLE001 - the thread's boundary: every job gets an answer
            self._roll_back()
            if blames_store(error):
                self._fail(jobs, error)
            else:
                self._keep_each(jobs)

    def _fail(self, jobs: Sequence[Job], error: Exception) -> None:
        cause = cause_of(error)
        self._trouble = passing(cause)
        if self._trouble is None:
            self._broken = cause
        for job in jobs:
            job.error = store_error(cause)

    def _look_again(self) -> None:
        """Find out whether writes are possible again."""
        try:
            is_full = self._trouble is not None and self._trouble.code == DISK_FULL
            if is_full and free_bytes(self._directory) < _LEAST_ROOM:
                return
            self._raw.execute("BEGIN IMMEDIATE")
            self._raw.execute(_TRIAL)
            self._commit()
            self._trouble = None
        except Exception as error:  # noqa: BLE001 - the thread's boundary
            self._roll_back()
            self._fail([], error)

    def _roll_back(self) -> None:
        self._places.clear()  # they had run ahead of the database
        self._gone.clear()
        self._let_go.clear()
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
            self._note_commit(sum(job.error is None for job in jobs))
        except Exception as error:  # noqa: BLE001 - the thread's boundary: every job gets an answer
            self._roll_back()
            self._fail([job for job in jobs if job.error is None], error)

    def _commit(self) -> None:
        self._raw.execute("COMMIT")
        self._footing.check()
        self.commits += 1
        if self._gone or self._let_go:
            self._clear_away()

    def _note_commit(self, writes: int) -> None:
        self._writes += writes
        self._sizes[min(max(writes - 1, 0).bit_length(), _SIZES - 1)] += 1

    @property
    def use(self) -> StoreUse:
        """What was written, and whether anything more can be."""
        return StoreUse(self._broken, self._writes, tuple(self._sizes), self._trouble)

    def _clear_away(self) -> None:
        """Remove files that nothing refers to, now that the whole batch says what it does."""
        while self._gone:
            drop_document(self._directory, self._gone.pop())
        while self._let_go:
            digest = self._let_go.pop()
            if self._raw.execute(_IS_USED, (digest,)).fetchone() is None:
                drop_artifact(self._directory, digest)

    def _put_artifacts(self, job: Job) -> bool:
        try:
            for artifact in job.artifacts:
                write_artifact(self._directory, artifact)
        except Exception as error:  # noqa: BLE001 - the thread's boundary: every job gets an answer
            if breaks_disk(error):
                self._broken, self._trouble = error, None
            else:
                self._trouble = passing(error) or self._trouble
            job.error = store_error(error)
            return False
        return True

    def _apply(self, jobs: Sequence[Job]) -> None:
        """Do the jobs in their order; neighbouring appends go together."""
        steps: list[Step] = []
        uses: list[tuple[str, str]] = []
        for job in jobs:
            change = job.change
            if isinstance(change, Step):
                steps.append(change)
                uses += [(digest, change.execution_id) for digest, _ in job.artifacts]
                continue
            self._places.append(steps)
            steps = []
            job.result = change(self._connection)
        self._places.append(steps)
        if uses:
            self._raw.executemany(_USE, uses)

    def bury(self, execution_ids: Iterable[str]) -> None:
        """Forget deleted executions and, once that is committed, remove their documents.

        Only a job may call this; so with :meth:`let_go`.
        """
        for execution_id in execution_ids:
            self.forget(execution_id)
            self._gone.add(execution_id)

    def let_go(self, digests: Iterable[str]) -> None:
        """Remove those of these large values that nobody refers to once that is committed."""
        self._let_go.update(digests)

    def forget(self, execution_id: str) -> None:
        """Look an execution's row up again before its next append; only a job may call this."""
        self._places.forget(execution_id)
