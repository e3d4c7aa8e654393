"""Takes a graph up where its stored events leave it: what was cut off is entered again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from planwave.events import Event
from planwave.events.reading import reading
from planwave.executor.commands import Commands
from planwave.executor.flight import Flight, Scope
from planwave.executor.past import Past
from planwave.executor.publisher import Publisher
from planwave.executor.replay import again, replay
from planwave.executor.requests import Requests, request_of
from planwave.executor.slots import Slots
from planwave.graph.capabilities import Suspension


class Driver(Protocol):
    """What taking up needs of the execution."""

    execution_id: str
    publisher: Publisher
    slots: Slots


class Settler(Protocol):
    """What taking up needs of those who settle outcomes."""

    requests: Requests
    commands: Commands

    def touch(self, scope: Scope) -> None: ...
    def wait_to_retry(self, flight: Flight, delay_s: float) -> None: ...
    def wait(self, flight: Flight, asked: Suspension, *, is_interrupted: bool = False) -> None: ...


def take_up_all(driver: Driver, settler: Settler, scope: Scope, past: Past) -> None:
    """Take up an execution: its own graph, and what is asked in nested runs.

    Those run on once the nodes they are inside of ask for them.
    """
    take_up(driver, settler, scope, past.take_facts())
    with reading(driver.execution_id):
        for request_id, event in past.dormant.requests():
            request = request_of(event)
            settler.requests.add(request_id, request)
            settler.commands.watch_request(request_id, request)


def take_up(driver: Driver, settler: Settler, scope: Scope, facts: Sequence[Event]) -> None:
    """Take up one graph.

    Args:
        driver: Whose it is.
        settler: Settles what follows.
        scope: The graph, nothing of which has been started.
        facts: Its own events, in order.
    """
    watched = {request_id for request_id, _ in settler.requests}
    with reading(driver.execution_id):
        left = replay(scope, facts, settler.requests, driver.publisher.time())
        for request_id, request in settler.requests:
            if request_id not in watched:
                settler.commands.watch_request(request_id, request)
    for flight in left.cut_off:
        _enter_again(driver, settler, flight)
    for flight in left.ready:
        if flight.decided is not None:
            settler.commands.decided(flight, flight.decided)
        else:
            driver.slots.enqueue(flight)
    for flight, wait_s in left.retries:
        settler.wait_to_retry(flight, wait_s)
    settler.touch(scope)


def _enter_again(driver: Driver, settler: Settler, flight: Flight) -> None:
    """Make an attempt that was cut off once more; ask first where it may act but once."""
    scope, node = flight.scope, flight.node
    if not flight.acts_once:
        following = scope.flights[node] = again(flight)
        driver.slots.enqueue(following)
        return
    del scope.flights[node]
    message = (
        f"Node {flight.path!r} was cut off while it ran. It may act only once, and nobody knows "
        "whether it did. Run it again, give its result, or let it fail?"
    )
    actions: list[Any] = ["run_again", "give_result", "fail"]
    request = {"kind": "interrupted", "message": message, "actions": actions}
    settler.wait(flight, Suspension(request), is_interrupted=True)
