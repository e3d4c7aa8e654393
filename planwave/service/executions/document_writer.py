"""Projects executions: keeps the JSON documents beside the store, and what lists show of them, up to date."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from planwave.errors import StoreError
from planwave.events import Event, fold
from planwave.storage.documents import build_document, document_text, write_documents
from planwave.storage.execution_facts import ExecutionFacts, facts_of
from planwave.storage.files import delete_document
from planwave.storage.records import ExecutionRecord, StoredCall
from planwave.storage.sql.errors import is_store_failure

if TYPE_CHECKING:
    from planwave.storage.sql.store import Store


_log = logging.getLogger(__name__)

_WRITE_INTERVAL_S: Final = 1.0
"""How long documents may be behind while there is other work: what a thread does takes the
interpreter from executions, and what is done for many at once costs each of them less."""
_AT_ONCE: Final = 16
"""Documents that are in memory at the same time."""
_MAX_RELEASED: Final = 256
"""What is left of so many executions may wait to be let go of; that of others does not."""


class _Projection(NamedTuple):
    """A document as text, the facts of its execution, and the last event that they show; or why they cannot be made."""

    text: bytes
    seq: int
    facts: ExecutionFacts | None = None
    error: Exception | None = None


class DocumentWriter:
    """Writes ``{execution_id}.json`` and the facts of an execution at every pause and end, from what is stored.

    An async context manager; leaving it writes what is due. With an exception that is left to the
    next start, as is what is to be kept afterwards.

    Args:
        store: Where the events are.
        directory: Where the documents go; None writes none, only facts.

    Attributes:
        on_spent: Called after facts were stored.
    """

    def __init__(self, store: Store, directory: Path | None) -> None:
        self._store = store
        self._directory = directory
        self.on_spent: Callable[[], Awaitable[None]] | None = None
        self._due: dict[str, asyncio.Future[None]] = {}
        self._in_progress: dict[str, asyncio.Future[None]] = {}
        self._failed: dict[str, None] = {}
        self._released_after_write: dict[str, object] = {}
        self._tasks = asyncio.TaskGroup()
        self._writer: asyncio.Task[None] | None = None
        self._is_leaving = False
        self._flush_requested = asyncio.Event()
        self._apart_s = _WRITE_INTERVAL_S
        self._next_at = 0.0

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._is_leaving, self._apart_s = True, 0.0
        if kind is None:
            self.flush()
        elif self._writer is not None:
            self._writer.cancel()
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            self._release_waiters()  # also if the writer never started

    async def catch_up(self) -> None:
        """Write what an earlier process did not get to."""
        for execution_id in await self._store.lagging_documents():
            self.schedule(execution_id)
        self.flush()
        if self._due:
            await asyncio.wait(list(self._due.values()))

    def schedule(self, execution_id: str, release_after: object = None) -> None:
        """Have the document of an execution written that was paused or has ended.

        It is written within a second, or at once after ``flush``. What fails is tried again as soon as
        another one could be written, or by the next start; what cannot be shown, by the next start only.

        Args:
            execution_id: Which.
            release_after: An object to be released from memory afterwards: freeing thousands of
                objects apart is work that others need not wait for either. It should not be large.
        """
        if self._is_leaving and self._writer is None:
            return
        may_hold = self._directory is not None and len(self._released_after_write) < _MAX_RELEASED
        if release_after is not None and may_hold:
            self._released_after_write[execution_id] = release_after
        loop = asyncio.get_running_loop()
        if execution_id not in self._due:
            self._due[execution_id] = loop.create_future()
        if self._writer is None:
            self._flush_requested.clear()
            self._next_at = loop.time() + self._apart_s
            self._writer = self._tasks.create_task(self._write_all())

    def flush(self) -> None:
        """Have what is due written now."""
        if self._writer is not None:
            self._flush_requested.set()

    async def wait_written(self, execution_id: str) -> None:
        """Wait until the document of an execution is written, if it is about to be."""
        under_way = [
            of[execution_id] for of in (self._in_progress, self._due) if execution_id in of
        ]
        if under_way:
            self.flush()
            await asyncio.wait(under_way)

    async def _write_all(self) -> None:
        try:
            await self._write_due()
        finally:
            self._release_waiters()

    def _release_waiters(self) -> None:
        """Release the callers that wait for documents that will not be written."""
        self._writer = None
        self._released_after_write.clear()
        for waiter in (*self._in_progress.values(), *self._due.values()):
            if not waiter.done():
                waiter.set_result(None)
        self._in_progress, self._due = {}, {}

    async def _write_due(self) -> None:
        now = asyncio.get_running_loop().time
        while self._due:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._next_at):
                    await self._flush_requested.wait()
            self._flush_requested.clear()
            self._in_progress, self._due = self._due, {}
            ids, failed, odd = iter(self._in_progress), set[str](), set[str]()
            while some := list(islice(ids, _AT_ONCE)):
                missed, unshown = await self._write(some)
                failed, odd = failed | missed, odd | unshown
                for each in some:
                    self._in_progress[each].set_result(None)
                    self._released_after_write.pop(each, None)
            self._reschedule_failed(self._in_progress.keys() - failed - odd, failed)
            self._in_progress = {}
            self._next_at = now() + self._apart_s

    def _reschedule_failed(self, written: Set[str], failed: Set[str]) -> None:
        """Take note of what failed; once anything could be written, all of that is due again."""
        for each in written:
            self._failed.pop(each, None)
        again = [each for each in self._failed if written and each not in failed]
        self._failed = {each: None for each in (*self._failed, *failed) if each not in again}
        for each in again:
            self.schedule(each)
            self.flush()

    async def _write(self, execution_ids: Sequence[str]) -> tuple[set[str], set[str]]:
        """Write some documents; give those that could not be, and those that can never be."""
        failed: dict[str, Exception]
        directory, odd = self._directory, set[str]()
        try:
            project = _facts_alone
            if directory is not None:
                project = partial(_project, await self._store.calls(execution_ids))
            projections = await self._store.project_each(execution_ids, project)
            whole = {of: each for of, each in projections.items() if each.error is None}
            failed = {of: each.error for of, each in projections.items() if each.error is not None}
            odd = {of for of, error in failed.items() if not _is_transient(error)}
            if directory is not None:
                failed |= await write_documents(directory, {of: whole[of].text for of in whole})
            done = {of: each for of, each in whole.items() if of not in failed}
            for deleted in await self._store.set_document_seqs(
                {of: each.seq for of, each in done.items()},
                {of: each.facts for of, each in done.items() if each.facts is not None},
            ):
                if directory is not None:
                    delete_document(directory, deleted)
            if self.on_spent is not None:
                await self.on_spent()
        except Exception as error:  # noqa: BLE001 - a task boundary: runs go on without documents
            failed = dict.fromkeys(execution_ids, error)
        for execution_id, error in failed.items():
            _log.warning("document of %s not written: %s", execution_id, error)
        return failed.keys() - odd, odd


def _is_transient(error: Exception) -> bool:
    """Return whether to try again: the store or the disk failed, not the execution."""
    return isinstance(error, StoreError) or is_store_failure(error)


def _project(
    calls: Mapping[str, Sequence[StoredCall]] | None,
    record: ExecutionRecord,
    read: Callable[[], list[Event]],
) -> _Projection:
    """Project an execution; without ``calls`` only its facts."""
    try:
        events = read()
        state = fold(events)
        facts, text = facts_of(events, state, record), b""
        if calls is not None:
            of_calls = calls.get(record.execution_id, ())
            text = document_text(build_document(events, record, of_calls, state))
        return _Projection(text, events[-1].seq, facts)
    except Exception as error:  # noqa: BLE001 - of one execution; others have theirs written
        return _Projection(b"", 0, error=error)


_facts_alone: Final = partial(_project, None)
