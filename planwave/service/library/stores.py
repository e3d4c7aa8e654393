"""Where runs keep their events: a store of the caller, a directory, or memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from planwave.errors import StoreError
from planwave.events import Event
from planwave.providers.protocols import CallKey
from planwave.storage.lock import is_owned
from planwave.storage.records import ExecutionRecord, RecordedCalls, StoredCall


class RunStore(Protocol):
    """The part of the store that runs use; ``EventLog`` has nothing else."""

    async def create_execution(
        self, record: ExecutionRecord, events: Sequence[Event]
    ) -> object: ...
    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None: ...
    async def claim(self, execution_id: str) -> int: ...
    async def events(
        self, execution_id: str, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Event]: ...
    async def execution(self, execution_id: str) -> ExecutionRecord | None: ...
    async def recorded(self, key: CallKey) -> dict[str, Any] | None: ...
    async def has_calls(self, key: CallKey) -> bool: ...
    async def has_other(self, key: CallKey) -> bool: ...
    async def calls(self, execution_ids: Sequence[str]) -> dict[str, list[StoredCall]]: ...
    async def record(self, key: CallKey, reply: dict[str, Any]) -> None: ...


class ListedRuns(Protocol):
    """The part of a store that lists what is in it."""

    async def executions(
        self,
        *,
        status: str | None = None,
        text: str | None = None,
        since: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[ExecutionRecord]: ...


StoreSource = RunStore | str | Path

_OBJECTS: Final = "a store is for example planwave.MemoryStore()"


class EventLog:
    """A ``RunStore`` that holds the event objects themselves, as long as a run refers to it.

    ``MemoryStore`` encodes what it stores as a database does; this does nothing but keep it.
    """

    def __init__(self) -> None:
        self._records: dict[str, ExecutionRecord] = {}
        self._events: dict[str, list[Event]] = {}
        self._calls = RecordedCalls[dict[str, Any]]()

    async def create_execution(self, record: ExecutionRecord, events: Sequence[Event]) -> None:
        """Store a new execution and its first events."""
        self._records[record.execution_id] = record
        self._events[record.execution_id] = list(events)

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        """Store a batch of events."""
        self._events[execution_id].extend(events)

    async def claim(self, execution_id: str) -> int:
        """Return the epoch; a log has one owner only."""
        return 1

    async def events(
        self, execution_id: str, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Event]:
        """Return the events of an execution with ``seq`` above ``after``, none if it is unknown."""
        events = [event for event in self._events.get(execution_id, ()) if event.seq > after]
        return events if limit is None else events[:limit]

    async def execution(self, execution_id: str) -> ExecutionRecord | None:
        """Return the record of an execution, or None."""
        return self._records.get(execution_id)

    async def recorded(self, key: CallKey) -> dict[str, Any] | None:
        """Return the recorded reply of a call, or None."""
        return self._calls.find(key)

    async def has_calls(self, key: CallKey) -> bool:
        """Return whether any call of the attempt of a call is recorded."""
        return self._calls.has_calls(key)

    async def has_other(self, key: CallKey) -> bool:
        """Return whether another request is recorded under the number of a call."""
        return self._calls.has_other(key)

    async def calls(self, execution_ids: Sequence[str]) -> dict[str, list[StoredCall]]:
        """Return what is recorded of the calls of some executions, by id."""
        by_execution: dict[str, list[StoredCall]] = {}
        for key, reply in self._calls.of(execution_ids):
            by_execution.setdefault(key.execution_id, []).append(StoredCall(key, reply))
        return by_execution

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        """Record the reply of a call."""
        self._calls.add(key, reply)


def check_source(source: object) -> None:
    """Check, before anything runs, that a value can be a ``StoreSource``.

    Raises:
        TypeError: It is neither a path nor a store.
        ValueError: The path is empty, which would mean the current directory.
    """
    if source == "":
        raise ValueError('the store is an empty path; write "." for the current directory')
    if isinstance(source, type):
        raise TypeError(f"the store is the class {source.__name__}, not an object; {_OBJECTS}")
    if not isinstance(source, str | Path) and not hasattr(source, "create_execution"):
        raise TypeError(
            f"the store must be the path of a directory or a store, not {source!r}; {_OBJECTS}"
        )


def require_directory(source: StoreSource) -> None:
    """Check that the path of an existing execution is a directory: opening a path creates one.

    Raises:
        StoreError: ``store-unusable``: nothing, or something else, is there.
    """
    if isinstance(source, str | Path) and not _is_directory(source):
        raise StoreError(
            f"there is no directory {str(source)!r}, so no stored execution either",
            code="store-unusable",
            hint="pass the path that planwave.run(…, store=…) got",
        )


def _is_directory(path: str | Path) -> bool:
    try:
        return _directory(path).is_dir()
    except OSError:  # a name that is too long, a directory that cannot be read
        return False


def _directory(path: str | Path) -> Path:
    return Path(path).expanduser()


def is_owned_elsewhere(source: StoreSource) -> bool:
    """Return whether another owner of a store may drive what is in it."""
    if isinstance(source, str | Path):
        return is_owned(_directory(source))
    return bool(getattr(source, "is_owned_elsewhere", False))


@asynccontextmanager
async def open_store(source: StoreSource, *, read_only: bool = False) -> AsyncGenerator[RunStore]:
    """Open the SQLite store of a directory, and close it again; any other store is the caller's.

    Args:
        source: The store, or the directory.
        read_only: Whether the directory stays with the process that owns it.

    Raises:
        StoreError: The directory cannot be used, or another process writes to it.
    """
    if not isinstance(source, str | Path):
        yield source
        return
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    from planwave.storage.sqlite.store import SqliteStore

    try:
        store = SqliteStore.open(_directory(source), read_only)
    except StoreError as error:
        if error.code == "storage-locked":
            error.hint = (
                "for several runs at once in this process, open it once and pass that to each: "
                f"store = planwave.SqliteStore.open({str(source)!r}); "
                "if another process uses it, wait until that ends"
            )
        raise
    try:
        yield store
    finally:
        await store.close()
