"""Group commit: one thread owns the connection for writing and commits queued jobs together.

A write is a job with a future. Jobs of one iteration of the event loop are queued together, and while
one commit waits for the disk the next batch collects, so many writers share one fsync; a single writer
never waits for others. One call into the event loop completes the futures of a batch. Cancelling a
caller cancels its future, never the job.

A batch is one transaction. If a job fails, the batch is rolled back and repeated job by job under
savepoints, so that only the failing job fails.

Where several processes write, a job may wait for a lock that another one holds. It gives up after some
milliseconds, and is tried again beside the next batches until it has waited for ``_LOCK_WAIT_S``: only that job is
delayed, and what appends to the same execution, or claims it, after it. A second connection for appends is not needed for
that: while one job waits, 20 to 50 executions that append without a pause keep three quarters of their rate or more,
and one in a hundred of their appends takes 30 to 80 ms in place of 25 (PostgreSQL 15 on the same machine).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, Protocol

from sqlalchemy import Connection

from planwave.errors import StoreError
from planwave.storage.artifacts import Artifact
from planwave.storage.errors import store_closed
from planwave.storage.records import StoreStats
from planwave.storage.sql.appends import AppendOp
from planwave.storage.sql.errors import (
    as_transient,
    cause_of,
    is_conflict,
    is_fatal,
    is_store_failure,
    store_read_only,
    to_store_error,
)
from planwave.storage.sql.outbox import Outbox


class WriteJob:
    """One write and the future of its result.

    ``change`` is an ``AppendOp``, or a function of the connection. ``artifacts`` are written to
    files first. ``execution_id`` is the execution whose jobs stay in order, None for other changes.
    ``waits_until`` is when it no longer waits for a lock, None before it does.
    """

    __slots__ = (
        "artifacts", "change", "error", "execution_id", "future", "loop", "result", "waits_until",
    )  # fmt: skip

    def __init__(
        self,
        change: AppendOp | Callable[[Connection], Any],
        artifacts: Sequence[Artifact] = (),
        execution_id: str | None = None,
    ) -> None:
        is_append = isinstance(change, AppendOp)
        self.execution_id = change.execution_id if is_append else execution_id
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.change = change
        self.artifacts = artifacts
        self.result: Any = None
        self.error: BaseException | None = None
        self.waits_until: float | None = None

    def may_wait(self) -> bool:
        """Whether it is tried again, since a lock was not given."""
        if self.waits_until is None:
            self.waits_until = monotonic() + _LOCK_WAIT_S
        return monotonic() < self.waits_until


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
_PROBE_INTERVAL_S: Final = 1.0
"""The interval of probes whether writes are possible again, if no write shows it."""
_LOCK_WAIT_S: Final = 5.0
"""How long a write waits for locks that other processes hold."""
_LOCK_RETRY_S: Final = 0.05
"""The interval in which it is tried again."""
_LOCKS_A_PASS: Final = 2
"""How many locks may not be given before the rest of some jobs is left for later: others wait meanwhile."""


class WriteTransactions(Protocol):
    """The transactions of the connection for writing, which one thread uses.

    Attributes:
        outbox: Where the notifications of events go, in the same transaction.
    """

    outbox: Outbox

    @property
    def connection(self) -> Connection:
        """The connection; another one after it was lost."""
        ...

    def begin(self) -> None: ...

    def commit(self) -> None:
        """Commit, and remove the files that the transaction left unused."""
        ...

    def roll_back(self) -> None:
        """Roll back if a transaction is open, and forget all that was cached of it."""
        ...

    def execute(self, sql: str) -> object:
        """Run a statement without parameters."""
        ...

    def roll_back_to(self, savepoint: str) -> None:
        """Roll back to a savepoint, and forget all that was cached since."""
        ...

    def append(self, steps: Sequence[AppendOp]) -> None:
        """Insert the events of executions.

        Raises:
            StoreError, StaleEpoch: Events do not follow those of their execution.
        """
        ...

    def forget_position(self, execution_id: str) -> None:
        """Drop what is cached of an execution."""
        ...

    def set_document_seqs(self, seqs: Mapping[str, int]) -> int:
        """Set the last event of documents on disk; return how many executions there are of these."""
        ...

    def prepare_artifacts(self, artifacts: Sequence[Artifact]) -> None:
        """Store large values that are not part of a transaction.

        Raises:
            OSError: One cannot be written.
        """
        ...

    def add_artifacts(self, artifacts: Sequence[Artifact], execution_id: str) -> None:
        """Note that an execution uses large values, and store those that are part of a transaction."""
        ...

    def release_artifacts(self, digests: Iterable[str]) -> None:
        """Remove those of the large values that nothing uses once this is committed."""
        ...

    def delete_documents(self, execution_ids: Iterable[str]) -> None:
        """Remove the documents of deleted executions once this is committed."""
        ...

    def probe(self) -> None:
        """Check that something can be written, by a transaction that changes nothing.

        Raises:
            Exception: As a write does.
        """
        ...

    def is_still_full(self, error: StoreError) -> bool:
        """Whether the disk that filled up still is: a small write succeeds where a large one fails."""
        ...


class GroupCommitWriter:
    """The writer thread and its queue.

    ``commits`` counts finished transactions.

    A write fails if the disk is full or the database busy, and nothing of it is stored; later writes
    are tried again. After any other disk error no write is tried any more, because after a failed
    fsync the content of the disk is unknown. The same holds if the files are missing.

    Args:
        transactions: Those of the database; only the writer's thread uses them.
    """

    def __init__(self, transactions: WriteTransactions) -> None:
        self._transactions = transactions
        self.outbox = transactions.outbox
        self._gathered: list[WriteJob] = []
        self._queue: SimpleQueue[list[WriteJob] | None] = SimpleQueue()
        self._fatal_error: BaseException | None = None
        self._transient_error: StoreError | None = None
        self._waiting: list[WriteJob] = []
        self._retry_at = 0.0
        self._busy_since: float | None = None
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

    def fail(self, error: BaseException) -> None:
        """Write nothing more, as after a disk error; any thread may call it."""
        self._fatal_error = error

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
        while not stopping or self._waiting:
            batch: list[WriteJob] = []
            jobs: list[WriteJob] | None = []
            with suppress(Empty):
                jobs = self._queue.get(timeout=self._pause_s())
                while jobs is not None:
                    batch += jobs
                    jobs = self._queue.get_nowait()
            stopping = stopping or jobs is None
            self._busy_since = monotonic()
            if not batch and not self._waiting and not stopping:
                self._probe()
            behind = {job.execution_id for job in self._waiting} - {None}
            self._waiting += [job for job in batch if job.execution_id in behind]
            fresh = [job for job in batch if job.execution_id not in behind]
            self._commit_jobs(fresh, self._commit_batch)
            if self._waiting and monotonic() >= self._retry_at:
                waiting, self._waiting = self._waiting, []
                self._commit_jobs(waiting, self._commit_individually)
                self._retry_at = monotonic() + _LOCK_RETRY_S
            self._busy_since = None

    def _pause_s(self) -> float | None:
        """How long to wait for the next job."""
        if self._waiting:
            return _LOCK_RETRY_S
        return _PROBE_INTERVAL_S if self._transient_error else None

    def _commit_jobs(self, jobs: list[WriteJob], commit: Callable[[list[WriteJob]], None]) -> None:
        """Commit jobs, and complete all but those that wait for a lock."""
        if not jobs:
            return
        before = len(self._waiting)
        self._busy_since = monotonic()
        commit(jobs)
        self._busy_since = None
        if all(job.error is None for job in jobs) and not self._disk_is_full():
            self._transient_error = None
        waiting = self._waiting[before:]
        complete_jobs([job for job in jobs if job not in waiting] if waiting else jobs)

    def _commit_batch(self, batch: list[WriteJob]) -> None:
        """Commit a batch; afterwards each job has its result or its error."""
        if self._fatal_error is not None:
            for job in batch:
                job.error = store_read_only(self._fatal_error)
            return
        jobs = [job for job in batch if self._write_artifacts(job)]
        try:
            self._transactions.begin()
            self._apply(jobs)
            self._transactions.commit()
            self._count_commit(len(jobs))
        except Exception as error:  # noqa: BLE001 - the thread's boundary: every job gets an answer
            self._transactions.roll_back()
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
            self._transactions.probe()
            self._transient_error = None
        except Exception as error:  # noqa: BLE001 - the thread's boundary
            self._transactions.roll_back()
            self._record_failure([], error)

    def _disk_is_full(self) -> bool:
        error = self._transient_error
        return error is not None and self._transactions.is_still_full(error)

    def _commit_individually(self, jobs: list[WriteJob]) -> None:
        """Commit the jobs that succeed, each under its savepoint, in one transaction."""
        waiting: list[WriteJob] = []
        untried: list[WriteJob] = []
        refused: dict[str | None, BaseException | None] = {}
        locks = 0
        try:
            self._transactions.begin()
            for job in jobs:
                if job.execution_id in refused:  # what is appended after it would leave a gap
                    job.error = refused[job.execution_id]
                    waiting += [job] if job.error is None else []
                elif locks == _LOCKS_A_PASS:
                    untried.append(job)
                elif not self._apply_alone(job):
                    locks += 1
                    waiting += [job] if job.error is None else []
                    if job.execution_id is not None:
                        refused[job.execution_id] = job.error
            self._transactions.commit()
            self._waiting += untried + waiting
            self._count_commit(sum(job.error is None for job in jobs) - len(untried) - len(waiting))
        except Exception as error:  # noqa: BLE001 - the thread's boundary: every job gets an answer
            self._transactions.roll_back()
            self._record_failure([job for job in jobs if job.error is None], error)

    def _apply_alone(self, job: WriteJob) -> bool:
        """Apply a job under a savepoint; return whether all locks were given.

        Raises:
            Exception: The store failed.
        """
        locked = False
        self._transactions.execute("SAVEPOINT job")
        try:
            self._apply([job])
        except Exception as error:
            if is_store_failure(error):
                raise
            self._transactions.roll_back_to("job")
            locked = is_conflict(error)
            if not locked or not job.may_wait():
                job.error = to_store_error(cause_of(error))
        self._transactions.execute("RELEASE job")
        return not locked

    def _count_commit(self, writes: int) -> None:
        if not writes:
            return
        self.commits += 1
        self._writes += writes
        self._sizes[min(max(writes - 1, 0).bit_length(), _SIZES - 1)] += 1

    @property
    def busy_s(self) -> float:
        """For how long the thread has been at work on the same jobs."""
        since = self._busy_since
        return 0.0 if since is None else monotonic() - since

    @property
    def stats(self) -> StoreStats:
        """The number of writes, and whether more are possible."""
        return StoreStats(
            self._fatal_error,
            self._writes,
            tuple(self._sizes),
            self._transient_error,
            self._busy_since,
        )

    def _write_artifacts(self, job: WriteJob) -> bool:
        try:
            self._transactions.prepare_artifacts(job.artifacts)
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
        for job in jobs:
            change = job.change
            if isinstance(change, AppendOp):
                steps.append(change)
                continue
            self._transactions.append(steps)
            steps = []
            job.result = change(self._transactions.connection)
        self._transactions.append(steps)
        for job in jobs:
            if job.artifacts and isinstance(job.change, AppendOp):
                self._transactions.add_artifacts(job.artifacts, job.change.execution_id)

    # Only a job may call these.

    def mark_deleted(self, execution_ids: Sequence[str]) -> None:
        """Forget deleted executions and remove their documents after the commit."""
        for execution_id in execution_ids:
            self.forget_position(execution_id)
        self._transactions.delete_documents(execution_ids)

    def release_artifacts(self, digests: Iterable[str]) -> None:
        """Remove those of the large values that are unused after the commit."""
        self._transactions.release_artifacts(digests)

    def forget_position(self, execution_id: str) -> None:
        """Drop the cached position of an execution."""
        self._transactions.forget_position(execution_id)

    def set_document_seqs(self, seqs: Mapping[str, int]) -> int:
        """Set the last event of documents on disk; return how many executions there are of these."""
        return self._transactions.set_document_seqs(seqs)
