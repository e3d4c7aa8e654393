"""Nodes that only wait for answers inside them give up their task, and go on when one comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, Protocol

from planwave.executor.dormant import askers_of, prefix_of
from planwave.executor.flight import FLYING, NESTED, PARKED, QUEUED, Flight, Scope
from planwave.executor.past import Past
from planwave.executor.publisher import Publisher
from planwave.executor.slots import Slots

_PATIENCE: Final = 12
"""Rounds of the event loop in which a node can do something with what it got last.

What it got reaches its code through some tasks and locks of its own, a round for each.
"""


class Driver(Protocol):
    """What parking needs of the execution."""

    publisher: Publisher
    slots: Slots
    root: Scope
    past: Past | None

    def time(self) -> float: ...
    def post(self, take: Any, about: Any, what: Any) -> None: ...
    def abort(self, flight: Flight) -> None: ...


class Settler(Protocol):
    """What parking needs of those who settle outcomes."""

    emit: Any

    def touch(self, scope: Scope) -> None: ...
    def scope_at(self, prefix: str) -> Scope | None: ...


class Parking:
    """Parks the nodes of one execution; what is public runs inside a turn of the driver."""

    def __init__(self, driver: Driver, settler: Settler) -> None:
        self._driver, self._settler = driver, settler

    # -- parking -----------------------------------------------------------------------------------

    def note(self, scope: Scope, rests: bool) -> None:
        """Note whether a nested run can only wait for answers; perhaps so can its node now."""
        run = scope.run
        if run is None or scope.rests == rests or run.scope is not scope:
            return
        scope.rests = rests
        run.inside.resting += 1 if rests else -1
        if rests:
            self.consider(run.inside.flight)

    def wake(self, scope: Scope) -> None:
        """Note that something goes on in a graph again, or that it has ended."""
        if scope.rests and scope.run is not None:
            scope.rests = False
            scope.run.inside.resting -= 1

    def consider(self, flight: Flight, _: object = None) -> None:
        """Free a node's slot, or park it, if it still only waits once its code had time to go on."""
        if flight.only_nests or _can_only_wait(flight):
            self._wait_for_more(flight, flight.stirs, _PATIENCE)

    def _wait_for_more(self, flight: Flight, stirs: int, rounds: int) -> None:
        if flight.stirs != stirs or flight.phase not in (FLYING, NESTED):
            return
        if rounds:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._wait_for_more, flight, stirs, rounds - 1)
        else:
            self._driver.post(self._rest, flight, stirs)

    def _rest(self, flight: Flight, stirs: int) -> None:
        if flight.stirs != stirs:
            return
        if flight.only_nests:
            self.free_slot(flight)
        if _can_only_wait(flight):
            self._park(flight)

    def free_slot(self, flight: Flight) -> None:
        """Free the slot of a node that only waits for nested runs; its own time stands still."""
        flight.stop_own_clock(self._driver.time())
        self._driver.slots.enter_nested(flight)

    def _park(self, flight: Flight) -> None:
        scope, node, inside = flight.scope, flight.node, flight.inside
        if inside is not None:
            inside.let_go()
        self._driver.slots.leave(flight)
        self._driver.abort(flight)
        resting = Flight(scope, node, flight.attempt, flight.resume, flight.answers, flight.reentry)
        data = flight.rest(self._driver.time())
        scope.flights[node] = flight.followed_by(resting)
        resting.phase = PARKED
        resting.begun = True
        self._settler.emit("node.parked", data, flight.path, flight.attempt)
        scope.schedule.waits(node)
        self._settler.touch(scope)

    # -- going on ----------------------------------------------------------------------------------

    def unpark(self, path: str) -> None:
        """Have every node go on that was parked for what is inside it, outermost first.

        Args:
            path: The node inside them about which there is news.
        """
        for asker in askers_of(path):
            prefix = prefix_of(asker)
            scope = self._settler.scope_at(prefix)
            if scope is None:
                self._unpark_stored(asker)
                continue
            flight = scope.flights.get(scope.program.topology.index[asker[len(prefix) :]])
            if flight is not None and flight.phase is PARKED:
                self._settler.emit("node.unparked", {}, asker, flight.attempt)
                scope.schedule.answered(flight.node)
                self.wake(scope)
                flight.phase = QUEUED
                self._driver.slots.enqueue(flight)

    def _unpark_stored(self, asker: str) -> None:
        past = self._driver.past
        attempt = None if past is None else past.dormant.parked(asker)
        if attempt is not None:
            self.tell_stored("node.unparked", {}, asker, attempt)

    def tell_stored(self, kind: str, data: dict[str, Any], path: str, attempt: int | None) -> None:
        """Tell what becomes of a node in a nested run that nobody has asked for again yet.

        Once its node asks, the run goes on from that.
        """
        self._settler.emit(kind, data, path, attempt)
        if self._driver.past is not None:
            told = self._driver.publisher.pending[-1]
            self._driver.past.dormant.tell(prefix_of(path), told)


def _can_only_wait(flight: Flight) -> bool:
    inside = flight.inside
    return (
        flight.phase is NESTED
        and inside is not None
        and not flight.busy
        and 0 < inside.open == inside.resting
        and flight.nesting > 0
    )


calls_around: ContextVar[int] = ContextVar("calls_around", default=0)
"""How many calls of its own (:class:`Busy`) a node's code is inside of where it is now."""


class Busy:
    """A call of its own that a node makes beside its nested runs; it is not parked meanwhile."""

    __slots__ = ("_flight", "_stirred")

    def __init__(self, flight: Flight, stirred: Callable[[Flight], None]) -> None:
        self._flight, self._stirred = flight, stirred

    def __enter__(self) -> None:
        self._flight.busy += 1
        calls_around.set(calls_around.get() + 1)

    def __exit__(self, *_: object) -> None:
        # Not by a token: a generator may be closed in another context than it was started in.
        calls_around.set(max(calls_around.get() - 1, 0))
        self._flight.busy -= 1
        self._flight.stirs += 1
        if self._flight.nesting:
            self._stirred(self._flight)
