"""Values that a node has to find again whenever it is entered again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from planwave.errors import ResultNotJson
from planwave.executor.asked import settle
from planwave.executor.bounds import Bounds
from planwave.executor.dormant import ONCE
from planwave.executor.flight import OVER, Flight, Inside, current_flight
from planwave.executor.parking import Busy
from planwave.executor.reuse import KeyHost, Reuse
from planwave.expressions.text import copy_of
from planwave.graph.json_values import NotJson, to_json
from planwave.graph.model import Json
from planwave.graph.values import DataValue


class Driver(Protocol):
    """What keeping needs of the execution."""

    @property
    def host(self) -> KeyHost: ...

    reuse: Reuse | None

    def post(self, take: Any, about: Any, what: Any) -> None: ...
    def after_commit(self, call: Callable[[], None]) -> None: ...
    def stirred(self, flight: Flight) -> None: ...


class Settler(Protocol):
    """What keeping needs of those who settle outcomes."""

    emit: Any
    bounds: Bounds | None

    def inside_of(self, flight: Flight) -> Inside: ...


class _Made(NamedTuple):
    """A value that was made, and where it is waited for until it is durable."""

    key: str
    value: Json
    kept: asyncio.Future[None]


class Keeping:
    """The values of one execution's nodes."""

    def __init__(self, driver: Driver, settler: Settler) -> None:
        self._driver, self._settler = driver, settler

    async def once(self, key: str, fn: Callable[[], Awaitable[Json]]) -> Json:
        """Give the value a node has under a key; see ``RuntimeApi.once``."""
        flight = current_flight.get()
        if flight.phase is OVER:
            raise flight.refusal()
        inside = self._settler.inside_of(flight)
        if key not in inside.kept:
            async with inside.making.setdefault(key, asyncio.Lock()):
                if key not in inside.kept:
                    with Busy(flight, self._driver.stirred):
                        await self._make(flight, key, fn)
            inside.making.pop(key, None)
        return copy_of(inside.kept[key])  # the node may go on to change what it has

    async def _make(self, flight: Flight, key: str, fn: Callable[[], Awaitable[Json]]) -> None:
        reuse, host = self._driver.reuse, self._driver.host
        had = None if reuse is None else await reuse.kept_by(flight, key, host)
        made = await fn() if had is None else had.value
        try:
            as_stored = copy_of(to_json(made))
        except NotJson as fault:
            raise ResultNotJson(
                f"node {flight.path!r} was to keep, as {key!r}, a value that is {fault}",
                hint="keep text, numbers, booleans, null, lists and objects with text keys",
            ) from fault
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._driver.post(self._keep, flight, _Made(key, as_stored, kept))
        await kept

    def _keep(self, flight: Flight, made: _Made) -> None:
        """Tell a value; it is the node's once that is durable."""
        inside = flight.inside
        if flight.phase is OVER or inside is None:
            return settle(made.kept, flight.refusal())
        bounds = self._settler.bounds
        if bounds is not None:
            refused = bounds.take(flight.path, {made.key: DataValue("any", made.value)})
            if refused is not None:
                return settle(made.kept, refused)
        data = {"event_type": ONCE, "data": {"key": made.key, "value": made.value}}
        self._settler.emit("node.event", data, flight.path, flight.attempt)

        def durable() -> None:
            inside.kept[made.key] = made.value
            settle(made.kept, None)

        self._driver.after_commit(durable)
        return None
