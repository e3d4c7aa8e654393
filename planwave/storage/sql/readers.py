"""Reader threads of a database, concurrent with its writer."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from planwave.storage.sql.errors import no_answer, unreadable

_T = TypeVar("_T")

_THREADS: Final = 4
"""Several, so that one long query does not block the others."""
_SHARED: Final = 8


class Read(Protocol):
    """Runs a query in a reader thread."""

    def __call__(self, query: Callable[[Connection], _T]) -> Coroutine[Any, Any, _T]: ...


Write: TypeAlias = Callable[[Callable[[Connection], Any]], Coroutine[Any, Any, Any]]
"""Commits a change in the writer's thread; it is durable on return where there is a disk."""


class _SharedResult(NamedTuple):
    version: int
    future: asyncio.Future[Any]


class ReaderPool:
    """Threads that run queries; a query sees all commits before its start.

    Args:
        engine: Opens connections for reading.
        version: Returns the number of commits; None if other processes write too.
        timeout_s: How long a query may take; None for a database without a server, which always answers.
    """

    def __init__(
        self,
        engine: Engine,
        version: Callable[[], int] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self._engine = engine
        self._version = version
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="planwave-reader")
        self._shared_results: OrderedDict[Hashable, _SharedResult] = OrderedDict()

    async def read(self, query: Callable[[Connection], _T]) -> _T:
        """Run a query.

        Raises:
            StoreError: ``store-unreadable``, ``store-unreachable``.
        """
        if self._timeout_s is None:
            return await self._submit(query)
        timeout = asyncio.timeout(self._timeout_s)
        try:
            async with timeout:
                return await self._submit(query)
        except TimeoutError:
            if not timeout.expired():
                raise
            raise no_answer(self._timeout_s) from None

    async def read_shared(
        self, key: Hashable, query: Callable[[Connection], _T], *, keep_result: bool = True
    ) -> _T:
        """Run a query, or share the result of the same query since the last commit.

        A list with many readers so costs one query for each change. Callers must not change the
        result.

        Args:
            key: Identifies the query with its arguments.
            query: The query.
            keep_result: Whether to cache the result; else only concurrent callers share it.

        Raises:
            StoreError: ``store-unreadable``, ``store-unreachable``.
        """
        if self._version is None:
            return await self.read(query)
        version = self._version()
        result = self._shared_results.get(key)
        if result is None or result.version != version or not _is_reusable(result.future):
            result = self._shared_results[key] = _SharedResult(version, self._submit(query))
            if not keep_result:
                result.future.add_done_callback(lambda _: self._drop(key, result))
            if len(self._shared_results) > _SHARED:
                self._shared_results.popitem(last=False)
        self._shared_results.move_to_end(key)
        return await asyncio.shield(result.future)

    def _drop(self, key: Hashable, result: _SharedResult) -> None:
        if self._shared_results.get(key) is result:
            del self._shared_results[key]

    def run(self, work: Callable[[], _T]) -> asyncio.Future[_T]:
        """Run other work in one of the threads."""
        return asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Close the connections; call it last, in one of the threads."""
        self._engine.dispose()

    def shutdown(self) -> None:
        """End the threads."""
        self._threads.shutdown()

    def _submit(self, query: Callable[[Connection], _T]) -> asyncio.Future[_T]:
        def read() -> _T:
            try:
                return self._run_query(query)
            except DBAPIError as error:
                raise unreadable(error) from error

        return self.run(read)

    def _run_query(self, query: Callable[[Connection], _T]) -> _T:
        """Run a query, and once more where its connection was lost: the server may have been restarted meanwhile.

        To ask before each query whether its connection is alive would cost a third of a query.
        """
        try:
            with self._engine.connect() as connection:
                return query(connection)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
        with self._engine.connect() as connection:  # all of the pool that are older are opened anew
            return query(connection)


def _is_reusable(future: asyncio.Future[Any]) -> bool:
    """Return whether a result belongs to the running loop and is not a failure."""
    if future.get_loop() is not asyncio.get_running_loop():
        return False
    return not future.done() or (not future.cancelled() and future.exception() is None)
