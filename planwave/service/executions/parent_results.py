"""What a fork reuses of the executions before it: their results, and their recorded model calls."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from planwave.errors import PlanwaveError, StoreError
from planwave.events import Event
from planwave.events.unreadable import guard_stored
from planwave.graph.model import Json
from planwave.providers.protocols import CallKey, Recorder
from planwave.providers.recordings import USAGE_UNREPORTED
from planwave.service.dependencies import ServiceDependencies
from planwave.service.executions.loading import run_spec_from_event
from planwave.service.executions.queue_entry import RunSpec

if TYPE_CHECKING:
    from planwave.executor.reuse.reuse import ParentExecution, Reuse

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


async def load_reuse(
    dependencies: ServiceDependencies, execution_id: str, spec: RunSpec
) -> Reuse | None:
    """Give what an execution takes over; None where it is no fork.

    An execution that is gone, or that cannot be read any more, leaves nothing to be taken over:
    all of the fork runs.

    Raises:
        StoreError: It cannot be read just now; what it has paid for is not to be paid again for that.
    """
    from planwave.executor.reuse.reuse import Reuse

    parent: Mapping[str, Any] | None = spec.parent
    if parent is None:
        return None
    before = [each async for each in _load_ancestors(dependencies, parent)]
    rerun, given = parent.get("rerun", ()), parent.get("given", {})
    reuse = Reuse(parent[_ID], before, rerun, given, is_retry=parent.get(_RETRY, False))
    if dependencies.parent_calls is not None:
        dependencies.parent_calls.share(execution_id, reuse)
    return reuse


async def _load_ancestors(
    dependencies: ServiceDependencies, parent: Mapping[str, Any]
) -> AsyncGenerator[ParentExecution]:
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


def _load_ancestor(
    dependencies: ServiceDependencies, events: Sequence[Event], excluded: frozenset[str]
) -> ParentExecution:
    from planwave.executor.node_api.host import NodeHost
    from planwave.executor.program import Program
    from planwave.executor.reuse.parent_runs import ParentHistory
    from planwave.executor.reuse.reuse import ParentExecution

    order = run_spec_from_event(events[0], dependencies.limits)
    variables = {"goal": order.goal, "trigger": order.trigger}
    services = dependencies.node_services(order.goal)
    execution_id = events[0].execution_id
    host = NodeHost(execution_id, variables, services, None, None, dependencies.renderer)
    program = Program(order.graph, dependencies.catalogue)
    return ParentExecution(
        execution_id, program, ParentHistory(events), host, order.options, order.inputs, excluded
    )


class ParentCallRecorder:
    """A recorder that also finds what the execution before a fork had recorded; over another one.

    A node that had come to no end there, as it was cancelled or cut off, goes on in the fork as one
    that is entered again does: what it asks the same in the same order, it was answered. One that had
    failed begins anew: what it was answered may be why.
    Where a node was cut off between a call and the word of what that took, who borrows it tells.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        # A fork holds what it takes over for as long as it runs.
        self._forks = WeakValueDictionary[str, "Reuse"]()

    def share(self, execution_id: str, reuse: Reuse) -> None:
        """Let an execution have the calls of the one it is a fork of, as far as that says so."""
        self._forks[execution_id] = reuse

    async def recorded(self, key: CallKey) -> dict[str, Any] | None:
        """Give the recorded reply, or None; one that is lent is recorded for who borrows it too."""
        found = await self._recorder.recorded(key)
        reuse = self._forks.get(key.execution_id)
        if found is not None or reuse is None:
            return found
        attempt = reuse.continued_attempt(key.path, key.attempt)
        if attempt is None:
            return None
        before = key._replace(execution_id=reuse.execution_id, attempt=attempt)
        lent = await self._recorder.recorded(before)
        if lent is None:
            return None
        await self._recorder.record(key, lent)
        is_told = reuse.was_recorded(key.path, attempt, lent.get("usage") or {})
        return lent if is_told else {**lent, USAGE_UNREPORTED: True}

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        """Keep a reply; see ``Recorder``."""
        await self._recorder.record(key, reply)
