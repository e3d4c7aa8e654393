"""Loads what a fork may take over from the execution before it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from planwave.errors import PlanwaveError, StoreError
from planwave.events import Event
from planwave.events.reading import guard_stored
from planwave.graph.model import Json
from planwave.service.documents import run_spec_from_event
from planwave.service.orders import RunSpec
from planwave.service.rooms import ServiceDependencies

if TYPE_CHECKING:
    from planwave.executor.reuse import ParentExecution, Reuse

_ID: Final = "execution_id"
_RETRY: Final = "retry"
_MAX_ANCESTORS: Final = 8
"""So many executions before a fork are read for what it may take over."""


def parent_data(
    execution_id: str,
    rerun: Sequence[str],
    preset: Mapping[str, Mapping[str, Json]],
    *,
    is_retry: bool = False,
) -> dict[str, Any]:
    """Give what the first event of a fork says of the execution before it."""
    facts: dict[str, Any] = {_ID: execution_id}
    if is_retry:
        facts[_RETRY] = True
    if rerun:
        facts["rerun"] = list(rerun)
    if preset:
        facts["given"] = preset
    return facts


async def load_reuse(dependencies: ServiceDependencies, execution_id: str, spec: RunSpec) -> Reuse | None:
    """Give what an execution takes over; None where it is no fork.

    An execution that is gone, or that cannot be read any more, leaves nothing to be taken over:
    all of the fork runs.

    Raises:
        StoreError: It cannot be read just now; what it has paid for is not to be paid again for that.
    """
    from planwave.executor.reuse import Reuse

    parent: Mapping[str, Any] | None = spec.parent
    if parent is None:
        return None
    before = [each async for each in _load_ancestors(dependencies, parent)]
    rerun, given = parent.get("rerun", ()), parent.get("given", {})
    reuse = Reuse(parent[_ID], before, rerun, given, is_retry=parent.get(_RETRY, False))
    if dependencies.parent_calls is not None:
        dependencies.parent_calls.share(execution_id, reuse)
    return reuse


async def _load_ancestors(dependencies: ServiceDependencies, parent: Mapping[str, Any]) -> AsyncGenerator[ParentExecution]:
    """Give the execution before a fork, that before it where it was one too, and so on."""
    facts: Mapping[str, Any] | None = parent
    passed_over = frozenset[str]()
    for _ in range(_MAX_ANCESTORS):
        if facts is None:
            return
        try:
            with guard_stored(facts[_ID]):
                events = await dependencies.store.events(facts[_ID])
                if not events:
                    return
                before = _load_ancestor(dependencies, events, passed_over)
                facts = run_spec_from_event(events[0], dependencies.limits).parent
        except StoreError:
            raise
        except PlanwaveError:
            return
        yield before
        if facts is not None:
            anew = () if facts.get(_RETRY) else facts.get("rerun", ())
            passed_over = passed_over.union(anew, facts.get("given", ()))


def _load_ancestor(dependencies: ServiceDependencies, events: Sequence[Event], excluded: frozenset[str]) -> ParentExecution:
    from planwave.executor.earlier import ParentHistory
    from planwave.executor.host import NodeHost
    from planwave.executor.program import Program
    from planwave.executor.reuse import ParentExecution

    order = run_spec_from_event(events[0], dependencies.limits)
    variables = {"goal": order.goal, "trigger": order.trigger}
    services = dependencies.node_services(order.goal)
    execution_id = events[0].execution_id
    host = NodeHost(execution_id, variables, services, None, None, dependencies.renderer)
    program = Program(order.graph, dependencies.catalogue)
    return ParentExecution(
        execution_id, program, ParentHistory(events), host, order.options, order.inputs, excluded
    )
