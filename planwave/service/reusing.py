"""Loads what a fork may take over from the execution before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from planwave.errors import Conflict, PlanwaveError
from planwave.events import Event
from planwave.events.reading import reading
from planwave.graph.model import Json
from planwave.service.documents import order_of
from planwave.service.live import Order
from planwave.service.rooms import Rooms

if TYPE_CHECKING:
    from planwave.executor.flight import Scope
    from planwave.executor.host import NodeHost
    from planwave.executor.reuse import Reuse

_ID: Final = "execution_id"


def parent_facts(
    execution_id: str, rerun: Sequence[str], given: Mapping[str, Mapping[str, Json]]
) -> dict[str, Any]:
    """Give what the first event of a fork says of the execution before it."""
    facts: dict[str, Any] = {_ID: execution_id}
    if rerun:
        facts["rerun"] = list(rerun)
    if given:
        facts["given"] = given
    return facts


async def reuse_of(rooms: Rooms, order: Order) -> Reuse | None:
    """Give what an execution takes over; None where it is no fork.

    An execution that is gone, or that cannot be read any more, leaves nothing to be taken over:
    all of the fork runs.
    """
    from planwave.executor.reuse import Reuse

    parent: Mapping[str, Any] | None = order.parent
    if parent is None:
        return None
    events: Sequence[Event] = ()
    with suppress(Conflict), reading(parent[_ID]):
        events = await rooms.store.events(parent[_ID])
    before, host = _before(rooms, parent[_ID], events)
    return Reuse(parent[_ID], before, host, parent.get("rerun", ()), parent.get("given", {}))


def _before(
    rooms: Rooms, execution_id: str, events: Sequence[Event]
) -> tuple[Scope | None, NodeHost]:
    from planwave.executor.host import NodeHost
    from planwave.executor.past import Past
    from planwave.executor.program import Program
    from planwave.executor.replay import replay
    from planwave.executor.requests import Requests
    from planwave.executor.scope import open_scope

    host = NodeHost(execution_id, None, None, None, None, rooms.renderer)
    if not events:
        return None, host
    try:
        with reading(execution_id):
            order = order_of(events[0], rooms.limits)
            variables = {"goal": order.goal, "trigger": order.trigger}
            host = NodeHost(execution_id, variables, None, None, None, rooms.renderer)
            program = Program(order.graph, rooms.catalogue)
            scope = open_scope(program, host, order.options, order.inputs)
            replay(scope, Past(events).take_facts(), Requests(), rooms.time())
    except PlanwaveError:
        return None, host
    return scope, host
