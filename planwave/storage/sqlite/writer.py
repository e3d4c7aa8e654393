"""Group commit: one thread owns the connection for writing and commits queued jobs together.

A write is a job with a future. Jobs of one iteration of the event loop are queued together, and while
one commit waits for the disk the next batch collects, so many writers share one fsync; a single writer
never waits for others. One call into the event loop completes the futures of a batch. Cancelling a
caller cancels its future, never the job.

A batch is one transaction. If a job fails, the batch is rolled back and repeated job by job under
savepoints, so that only the failing job fails.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from sqlalchemy import Connection

from planwave.errors import StoreError
from planwave.storage.errors import store_closed
from planwave.storage.files import (
    Artifact,
    FileIdentity,
    delete_artifact,
    delete_document,
    free_bytes,
    write_artifact,
)
from planwave.storage.records import DISK_FULL, StoreStats
from planwave.storage.sqlite.appends import AppendOp, ExecutionPositions
from planwave.storage.sqlite.connection import DATABASE_NAME
from planwave.storage.sqlite.errors import (
    as_transient,
    cause_of,
    is_fatal,
    is_store_failure,
    store_read_only,
    to_store_error,
)
from planwave.storage.sqlite.migrations import SCHEMA_VERSION


class WriteJob:
    """One write and the future of its result.

    ``change`` is an ``AppendOp``, or a function of the connection. ``artifacts`` are written to
    files first.
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
    """Complete the futures, with one call for each event loop."""
    loops: dict[asyncio.AbstractEventLoop, list[WriteJob]] = {}
    for job in jobs:
        loops.setdefault(job.loop, []).append(job)
    for loop, own in loops.items():
        with suppress(RuntimeError):  # the loop is closed: no caller waits
            loop.call_soon_threadsafe(_complete, own)


def _complete(jobs: Sequence[WriteJob]) -> None:
    for job in jobs:
        if job.future.done():
            continue  # its awaiter was cancelled; the write stands
        if job.error is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.error)


_SIZES: Final = 13
_IS_USED: Final = "SELECT 1 FROM artifact_uses WHERE digest = ? LIMIT 1"
_ADD_USE: Final = (
    "INSERT OR IGNORE INTO artifact_uses (digest, execution) "
    "SELECT ?, key FROM executions WHERE execution_id = ?"
)
_PROBE_INTERVAL_S: Final = 1.0
"""The interval of probes whether writes are possible again, if no write shows it."""
_MIN_FREE_BYTES: Final = 1024 * 1024
"""Free bytes after which a full disk counts as writable again."""
_PROBE_SQL: Final = f"PRAGMA user_version = {SCHEMA_VERSION}"
"""Writes one page without a change."""


class GroupCommitWriter:
    """The writer thread and its queue.

    ``commits`` counts finished transactions.

    A write fails if the disk is full or the database busy, and nothing of it is stored; later writes
    are tried again. After any other disk error no write is tried any more, because after a failed
    fsync the content of the disk is unknown. The same holds if the files are missing.

    Raises:
        OSError: The files of the database are not there.
    """

    def __init__(self, connection: Connection, raw: sqlite3.Connection, directory: Path) -> None:
        self._connection = connection
        self._raw = raw
        self._directory = directory
        self._gathered: list[WriteJob] = []
        self._queue: SimpleQueue[list[WriteJob] | None] = SimpleQueue()
        self._positions = ExecutionPositions(raw)
        self.outbox = self._positions.outbox
        self._deleted_executions: set[str] = set()
        self._released_digests: set[str] = set()
        path = directory / DATABASE_NAME
        self._file_identity = FileIdentity(path, path.with_name(f"{path.name}-wal"))
        self._fatal_error: BaseException | None = None
        self._transient_error: StoreError | None = None
        self._closed = False
        self.commits = 0
        self._writes = 0
        self._sizes = [0] * _SIZES
        # Daemon: a process that ends without close() must not hang; commits are durable.
        self._thread = threading.Thread(target=self._run, name="planwave-writer", daemon=True)
        self._thread.start()

    def submit(self, job: WriteJob) -> asyncio.Future[Any]:
        """Queue a job; await the future for its result.

        Raises:
            StoreError: The store was closed, or a disk error made it read-only.
        """
        if self._fatal_error is not None:
            raise store_read_only(self._fatal_error)
        if self._closed:
            raise store_closed()
        gathered = self._gathered
        if not gathered or gathered[-1].loop is not job.loop:
            job.loop.call_soon(self._flush_gathered)
        gathered.append(job)
        return job.future

    def _flush_gathered(self) -> None:
        """Queue the jobs of one iteration of the event loop for the thread."""
        if self._gathered:
            gathered, self._gathered = self._gathered, []
            self._queue.put(gathered)

    def stop_accepting(self) -> None:
        """Reject further jobs; call it on the event loop that submits them."""
        self._closed = True
        self._flush_gathered()

    def stop(self) -> None:
        """Finish queued jobs and end the thread; blocking. Call ``stop_accepting`` first."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        stopping = False
        while not stopping:
            batch: list[WriteJob] = []
            jobs: list[WriteJob] | None = []
            with suppress(Empty):
                jobs = self._queue.get(timeout=_PROBE_INTERVAL_S if self._transient_error else None)
                while jobs is not None:
                    batch += jobs
                    jobs = self._queue.get_nowait()
            stopping = jobs is None
            if not batch and not stopping:
                self._probe()
            if batch:
                self._commit_batch(batch)
                if all(job.error is None for job in batch) and not self._disk_is_full():
                    self._transient_error = None
                complete_jobs(batch)

    def _commit_batch(self, batch: list[WriteJob]) -> None:
        """Commit a batch; afterwards each job has its result or its error."""
        if self._fatal_error is not None:
            for job in batch:
                job.error = store_read_only(self._fatal_error)
            return
        jobs = [job for job in batch if self._write_artifacts(job)]
        try:
            self._raw.execute("BEGIN IMMEDIATE")
            self._apply(jobs)
            self._commit()
            self._count_commit(len(jobs))
        except Exception as error:  # noqa: BLE001 - the thread's boundary: every job gets an answer
            self._roll_back()
            if is_store_failure(error):
                self._record_failure(jobs, error)
            else:
                self._commit_individually(jobs)

    def _record_failure(self, jobs: Sequence[WriteJob], error: Exception) -> None:
        cause = cause_of(error)
        self._transient_error = as_transient(cause)
        if self._transient_error is None:
            self._fatal_error = cause
        for job in jobs:
            job.error = to_store_error(cause)

    def _probe(self) -> None:
        """Check whether writes are possible again."""
        try:
            if self._disk_is_full():
                return
            self._raw.execute("BEGIN IMMEDIATE")
            self._raw.execute(_PROBE_SQL)
            self._commit()
            self._transient_error = None
        except Exception as error:  # noqa: BLE001 - the thread's boundary
            self._roll_back()
            self._record_failure([], error)

    def _disk_is_full(self) -> bool:
        """Whether the disk that filled up still is: a small write succeeds where a large one fails."""
        error = self._transient_error
        if error is None or error.code != DISK_FULL:
            return False
        return free_bytes(self._directory) < _MIN_FREE_BYTES

    def _roll_back(self) -> None:
        self._positions.clear()  # they had run ahead of the database
        self._deleted_executions.clear()
        self._released_digests.clear()
        with suppress(sqlite3.Error):
            if self._raw.in_transaction:
                self._raw.execute("ROLLBACK")

    def _commit_individually(self, jobs: list[WriteJob]) -> None:
        """Commit the jobs that succeed, each under its savepoint, in one transaction."""
        try:
            self._raw.execute("BEGIN IMMEDIATE")
            for job in jobs:
                self._raw.execute("SAVEPOINT job")
                try:
                    self._apply([job])
                except Exception as error:
                    if is_store_failure(error):
                        raise
                    self._positions.clear()
                    self._raw.execute("ROLLBACK TO job")
                    job.error = to_store_error(cause_of(error))
                self._raw.execute("RELEASE job")
            self._commit()
            self._count_commit(sum(job.error is None for job in jobs))
        except Exception as error:  # noqa: BLE001 - the thread's boundary: every job gets an answer
            self._roll_back()
            self._record_failure([job for job in jobs if job.error is None], error)

    def _commit(self) -> None:
        self._raw.execute("COMMIT")
        self._file_identity.check()
        self.commits += 1
        if self._deleted_executions or self._released_digests:
            self._delete_unreferenced_files()

    def _count_commit(self, writes: int) -> None:
        self._writes += writes
        self._sizes[min(max(writes - 1, 0).bit_length(), _SIZES - 1)] += 1

    @property
    def stats(self) -> StoreStats:
        """The number of writes, and whether more are possible."""
        return StoreStats(
            self._fatal_error, self._writes, tuple(self._sizes), self._transient_error
        )

    def _delete_unreferenced_files(self) -> None:
        """Remove unreferenced files, after the whole batch is applied."""
        while self._deleted_executions:
            delete_document(self._directory, self._deleted_executions.pop())
        while self._released_digests:
            digest = self._released_digests.pop()
            if self._raw.execute(_IS_USED, (digest,)).fetchone() is None:
                delete_artifact(self._directory, digest)

    def _write_artifacts(self, job: WriteJob) -> bool:
        try:
            for artifact in job.artifacts:
                write_artifact(self._directory, artifact)
        except Exception as error:  # noqa: BLE001 - the thread's boundary: every job gets an answer
            if is_fatal(error):
                self._fatal_error, self._transient_error = error, None
            else:
                self._transient_error = as_transient(error) or self._transient_error
            job.error = to_store_error(error)
            return False
        return True

    def _apply(self, jobs: Sequence[WriteJob]) -> None:
        """Apply the jobs in order; consecutive appends share statements."""
        steps: list[AppendOp] = []
        uses: list[tuple[str, str]] = []
        for job in jobs:
            change = job.change
            if isinstance(change, AppendOp):
                steps.append(change)
                uses += [(digest, change.execution_id) for digest, _ in job.artifacts]
                continue
            self._positions.append(steps)
            steps = []
            job.result = change(self._connection)
        self._positions.append(steps)
        if uses:
            self._raw.executemany(_ADD_USE, uses)

    def mark_deleted(self, execution_ids: Iterable[str]) -> None:
        """Forget deleted executions and remove their documents after the commit.

        Only a job may call this, and ``release_artifacts``.
        """
        for execution_id in execution_ids:
            self.forget_position(execution_id)
            self._deleted_executions.add(execution_id)

    def release_artifacts(self, digests: Iterable[str]) -> None:
        """Remove those of the large values that are unused after the commit."""
        self._released_digests.update(digests)

    def forget_position(self, execution_id: str) -> None:
        """Drop the cached position of an execution; only a job may call this."""
        self._positions.forget(execution_id)
