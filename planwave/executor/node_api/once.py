"""Values that a node has to find again whenever it is entered again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from planwave.errors import ResultNotJson
from planwave.events.types import ONCE
from planwave.executor.driver.futures import resolve_future
from planwave.executor.limits import RunLimits
from planwave.executor.node_api.own_work import OwnWork
from planwave.executor.reuse.reuse import ResultKeyHost, Reuse
from planwave.executor.state import DONE, Attempt, NodeRun, current_attempt
from planwave.expressions.json_text import copy_json
from planwave.graph.json_values import NotJson, to_json
from planwave.graph.model import DataValue, Json


class _Driver(Protocol):
    """What keeping needs of the execution."""

    @property
    def host(self) -> ResultKeyHost: ...

    reuse: Reuse | None

    def post(self, callback: Any, subject: Any, payload: Any) -> None: ...
    def after_commit(self, call: Callable[[], None]) -> None: ...
    def note_activity(self, attempt: Attempt) -> None: ...


class _Reducer(Protocol):
    """What keeping needs of those who settle outcomes."""

    emit: Any
    limits: RunLimits | None

    def node_run_of(self, attempt: Attempt) -> NodeRun: ...


class _OnceValueMade(NamedTuple):
    """A value that was made, and where it is waited for until it is durable."""

    key: str
    value: Json
    stored: asyncio.Future[None]


class OnceValues:
    """The values of one execution's nodes."""

    def __init__(self, driver: _Driver, reducer: _Reducer) -> None:
        self._driver, self._reducer = driver, reducer

    async def once(self, key: str, fn: Callable[[], Awaitable[Json]]) -> Json:
        """Give the value a node has under a key; see ``RuntimeApi.once``."""
        attempt = current_attempt.get()
        if attempt.phase is DONE:
            raise attempt.ended_error()
        node_run = self._reducer.node_run_of(attempt)
        if key not in node_run.once_values:
            async with node_run.once_locks.setdefault(key, asyncio.Lock()):
                if key not in node_run.once_values:
                    with OwnWork(attempt, self._driver.note_activity):
                        await self._compute(attempt, key, fn)
            node_run.once_locks.pop(key, None)
        return copy_json(node_run.once_values[key])  # the node may go on to change what it has

    async def _compute(self, attempt: Attempt, key: str, fn: Callable[[], Awaitable[Json]]) -> None:
        reuse, host = self._driver.reuse, self._driver.host
        had = None if reuse is None else await reuse.once_value(attempt, key, host)
        made = await fn() if had is None else had.value
        try:
            as_stored = copy_json(to_json(made))
        except NotJson as fault:
            raise ResultNotJson(
                f"node {attempt.path!r} was to keep, as {key!r}, a value that is {fault}",
                hint="keep text, numbers, booleans, null, lists and objects with text keys",
            ) from fault
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._driver.post(self._store, attempt, _OnceValueMade(key, as_stored, kept))
        await kept

    def _store(self, attempt: Attempt, made: _OnceValueMade) -> None:
        """Tell a value; it is the node's once that is durable."""
        node_run = attempt.node_run
        if attempt.phase is DONE or node_run is None:
            return resolve_future(made.stored, attempt.ended_error())
        bounds = self._reducer.limits
        if bounds is not None:
            refused = bounds.add_result(attempt.path, {made.key: DataValue("any", made.value)})
            if refused is not None:
                return resolve_future(made.stored, refused)
        data = {"event_type": ONCE, "data": {"key": made.key, "value": made.value}}
        self._reducer.emit("node.event", data, attempt.path, attempt.number)

        def durable() -> None:
            node_run.once_values[made.key] = made.value
            resolve_future(made.stored, None)

        self._driver.after_commit(durable)
        return None
