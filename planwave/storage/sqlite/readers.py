"""Threads that read a database beside its writer."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from planwave.errors import StoreError
from planwave.storage.sqlite.errors import cause_of

_T = TypeVar("_T")

_THREADS: Final = 4
"""So that a search or a large execution does not hold up everything else."""
_SHARED: Final = 8


class _SharedResult(NamedTuple):
    version: int
    future: asyncio.Future[Any]


class ReaderPool:
    """Reads in threads; a query sees all that was committed when it began.

    Args:
        engine: Opens connections for reading.
        version: Counts commits, where this process makes all of them; None where it does not.
    """

    def __init__(self, engine: Engine, version: Callable[[], int] | None = None) -> None:
        self._engine = engine
        self._version = version
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="planwave-reader")
        self._shared_results: OrderedDict[Hashable, _SharedResult] = OrderedDict()

    async def read(self, query: Callable[[Connection], _T]) -> _T:
        """Run a query.

        Raises:
            StoreError: ``store-unreadable``.
        """
        return await self._submit(query)

    async def read_shared(
        self, key: Hashable, query: Callable[[Connection], _T], *, keep_result: bool = True
    ) -> _T:
        """Run a query whose answer nobody changes.

        All who ask the same before the next commit get the same answer, for it could be no other:
        a list that many look at costs one query for each change.

        Args:
            key: Names the query and everything it depends on.
            query: The query.
            keep_result: Keep the answer for those who ask later; else only who asks meanwhile shares it.

        Raises:
            StoreError: ``store-unreadable``.
        """
        if self._version is None:
            return await self._submit(query)
        version = self._version()
        answer = self._shared_results.get(key)
        if answer is None or answer.version != version or not _is_reusable(answer.future):
            answer = self._shared_results[key] = _SharedResult(version, self._submit(query))
            if not keep_result:
                answer.future.add_done_callback(lambda _: self._drop(key, answer))
            if len(self._shared_results) > _SHARED:
                self._shared_results.popitem(last=False)
        self._shared_results.move_to_end(key)
        return await asyncio.shield(answer.future)

    def _drop(self, question: Hashable, answer: _SharedResult) -> None:
        if self._shared_results.get(question) is answer:
            del self._shared_results[question]

    def run(self, work: Callable[[], _T]) -> asyncio.Future[_T]:
        """Run something else in one of the threads."""
        return asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Close the connections; to be called in one of the threads, as the last thing."""
        self._engine.dispose()

    def shutdown(self) -> None:
        """End the threads."""
        self._threads.shutdown()

    def _submit(self, query: Callable[[Connection], _T]) -> asyncio.Future[_T]:
        def read() -> _T:
            try:
                with self._engine.connect() as connection:
                    return query(connection)
            except DBAPIError as error:
                cause = cause_of(error)
                raise StoreError(
                    f"the store cannot be read: {cause}", code="store-unreadable"
                ) from error

        return self.run(read)


def _is_reusable(future: asyncio.Future[Any]) -> bool:
    """Say whether an answer may be waited for here, and was no failure."""
    if future.get_loop() is not asyncio.get_running_loop():
        return False
    return not future.done() or (not future.cancelled() and future.exception() is None)
