"""Loads what a fork may take over from the execution before it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from planwave.errors import PlanwaveError, StoreError
from planwave.events import Event
from planwave.events.reading import reading
from planwave.graph.model import Json
from planwave.service.documents import order_of
from planwave.service.orders import Order
from planwave.service.rooms import Rooms

if TYPE_CHECKING:
    from planwave.executor.reuse import Before, Reuse

_ID: Final = "execution_id"
_RETRY: Final = "retry"
_GENERATIONS: Final = 8
"""So many executions before a fork are read for what it may take over."""


def parent_facts(
    execution_id: str,
    rerun: Sequence[str],
    given: Mapping[str, Mapping[str, Json]],
    *,
    is_retry: bool = False,
) -> dict[str, Any]:
    """Give what the first event of a fork says of the execution before it."""
    facts: dict[str, Any] = {_ID: execution_id}
    if is_retry:
        facts[_RETRY] = True
    if rerun:
        facts["rerun"] = list(rerun)
    if given:
        facts["given"] = given
    return facts


async def reuse_of(rooms: Rooms, execution_id: str, order: Order) -> Reuse | None:
    """Give what an execution takes over; None where it is no fork.

    An execution that is gone, or that cannot be read any more, leaves nothing to be taken over:
    all of the fork runs.

    Raises:
        StoreError: It cannot be read just now; what it has paid for is not to be paid again for that.
    """
    from planwave.executor.reuse import Reuse

    parent: Mapping[str, Any] | None = order.parent
    if parent is None:
        return None
    before = [each async for each in _generations(rooms, parent)]
    rerun, given = parent.get("rerun", ()), parent.get("given", {})
    reuse = Reuse(parent[_ID], before, rerun, given, is_retry=parent.get(_RETRY, False))
    if rooms.lending is not None:
        rooms.lending.lend(execution_id, reuse)
    return reuse


async def _generations(rooms: Rooms, parent: Mapping[str, Any]) -> AsyncGenerator[Before]:
    """Give the execution before a fork, that before it where it was one too, and so on."""
    facts: Mapping[str, Any] | None = parent
    passed_over = frozenset[str]()
    for _ in range(_GENERATIONS):
        if facts is None:
            return
        try:
            with reading(facts[_ID]):
                events = await rooms.store.events(facts[_ID])
                if not events:
                    return
                before = _before(rooms, events, passed_over)
                facts = order_of(events[0], rooms.limits).parent
        except StoreError:
            raise
        except PlanwaveError:
            return
        yield before
        if facts is not None:
            anew = () if facts.get(_RETRY) else facts.get("rerun", ())
            passed_over = passed_over.union(anew, facts.get("given", ()))


def _before(rooms: Rooms, events: Sequence[Event], passed_over: frozenset[str]) -> Before:
    from planwave.executor.earlier import Earlier
    from planwave.executor.host import NodeHost
    from planwave.executor.program import Program
    from planwave.executor.reuse import Before

    order = order_of(events[0], rooms.limits)
    variables = {"goal": order.goal, "trigger": order.trigger}
    services = rooms.node_services(order.goal)
    execution_id = events[0].execution_id
    host = NodeHost(execution_id, variables, services, None, None, rooms.renderer)
    program = Program(order.graph, rooms.catalogue)
    return Before(
        execution_id, program, Earlier(events), host, order.options, order.inputs, passed_over
    )
