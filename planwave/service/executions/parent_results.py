"""The results and recorded model calls that a fork reuses from its parent executions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from weakref import WeakValueDictionary

from planwave.errors import PlanwaveError, StoreError
from planwave.events import Event
from planwave.executor.driver.execution import Execution
from planwave.executor.node_api.host import NodeHost
from planwave.executor.program import Program
from planwave.executor.reuse.parent_runs import ParentHistory
from planwave.executor.reuse.preview import ReusePreview, preview_of
from planwave.executor.reuse.reuse import ContinuedAttempt, ParentExecution, Reuse
from planwave.graph.json_values import size_of
from planwave.graph.protocols import NodeTypes
from planwave.ids import new_id
from planwave.nodes.services import with_flows
from planwave.providers.protocols import CONTINUES, NO_ATTEMPT, CallKey, Recorder
from planwave.providers.recordings import FAILURE, KIND, USAGE_UNREPORTED
from planwave.service.executions.run_spec import RunSpec, run_spec_from_events
from planwave.service.streaming.stored_execution import ExecutionReader
from planwave.settings import Limits

if TYPE_CHECKING:
    from planwave.shapes.graphs import ForkPreviewResponse

_ID: Final = "execution_id"
_RETRY: Final = "retry"
_DIVERGED: Final = "/diverged"
"""The hash in the key of the note that a node has made another call than its parent."""
_CLAIM: Final = "/usage"
"""What follows the hash of a call in the key of the claim to report its usage."""
_MAX_ANCESTORS: Final = 8
"""The number of ancestors whose results a fork may reuse."""


class ReuseDependencies(Protocol):
    """What the results of parent executions are read with.

    ``node_services`` returns what nodes find as ``context.services``, given the goal; ``parent_calls``
    finds recorded calls of the parents, where calls are recorded; without ``limits`` graphs have none.
    """

    @property
    def store(self) -> ExecutionReader: ...
    @property
    def catalogue(self) -> NodeTypes: ...
    @property
    def renderer(self) -> Any: ...
    @property
    def node_services(self) -> Callable[[str], Any]: ...
    @property
    def parent_calls(self) -> ParentCallRecorder | None: ...
    @property
    def limits(self) -> Limits | None: ...


async def load_reuse(
    dependencies: ReuseDependencies, execution_id: str, parent: Mapping[str, Any] | None
) -> Reuse | None:
    """Return the results that an execution reuses; None if it is not a fork.

    A parent that is deleted or unreadable has no results to reuse:
    all of the fork runs.

    Args:
        dependencies: Where parents are read.
        execution_id: The execution.
        parent: Its ``RunSpec.parent``; None if it is not a fork.

    Raises:
        StoreError: The parent cannot be read now; running all again would pay its calls twice.
    """
    if parent is None:
        return None
    before = [each async for each in _load_ancestors(dependencies, parent)]
    rerun, preset = parent.get("rerun", ()), parent.get("given", {})
    reuse = Reuse(parent[_ID], before, rerun, preset, is_retry=parent.get(_RETRY, False))
    if dependencies.parent_calls is not None:
        dependencies.parent_calls.share(execution_id, reuse)
    return reuse


async def preview_reuse(
    dependencies: ReuseDependencies, spec: RunSpec, program: Program
) -> ReusePreview:
    """Return which nodes of a fork would reuse results, without running any of it.

    Args:
        dependencies: Where parents are read.
        spec: What the fork is to run, with the goal for its inputs.
        program: Its graph bound to its node types.

    Raises:
        StoreError: The parent cannot be read now.
    """
    execution_id = new_id()  # of nothing that is stored
    reuse = await load_reuse(dependencies, execution_id, spec.parent)
    variables = {"goal": spec.goal, "trigger": spec.trigger}
    services = with_flows(dependencies.node_services(spec.goal), spec.flows)
    host = NodeHost(execution_id, variables, services, None, None, dependencies.renderer)
    return await preview_of(program, host, spec.options, spec.inputs, reuse)


def preview_json(preview: ReusePreview) -> ForkPreviewResponse:
    """Return a preview in the JSON form of the API."""
    lists = (list(each) for each in preview)
    return cast("ForkPreviewResponse", dict(zip(preview._fields, lists, strict=True)))


async def _load_ancestors(
    dependencies: ReuseDependencies, parent: Mapping[str, Any]
) -> AsyncGenerator[ParentExecution]:
    """Yield the parent of a fork, then the parent's parent if that is a fork too, and so on."""
    facts: Mapping[str, Any] | None = parent
    passed_over = frozenset[str]()
    for _ in range(_MAX_ANCESTORS):
        if facts is None:
            return
        try:
            events = await dependencies.store.events(facts[_ID])
            spec = run_spec_from_events(facts[_ID], events, dependencies.limits)
            before = _ancestor(dependencies, spec, events, passed_over)
        except StoreError:
            raise
        except PlanwaveError:
            return
        yield before
        facts = spec.parent
        if facts is not None:
            anew = () if facts.get(_RETRY) else facts.get("rerun", ())
            passed_over = passed_over.union(anew, facts.get("given", ()))


def _ancestor(
    dependencies: ReuseDependencies,
    spec: RunSpec,
    events: Sequence[Event],
    excluded: frozenset[str],
) -> ParentExecution:
    variables = {"goal": spec.goal, "trigger": spec.trigger}
    services = dependencies.node_services(spec.goal)
    execution_id = events[0].execution_id
    host = NodeHost(execution_id, variables, services, None, None, dependencies.renderer)
    program = Program(spec.graph, dependencies.catalogue)
    return ParentExecution(
        execution_id,
        program,
        ParentHistory(events),
        host,
        spec.options,
        spec.inputs,
        excluded,
        spec.wave_floors,
    )


class ParentCallRecorder:
    """A recorder that also finds the calls recorded by the parent of a fork, over another recorder.

    A node that the parent left unfinished, as it was cancelled or interrupted, continues in the fork
    as after a restart: it gets the recorded replies of equal requests in the same order, up to the
    first other request. So does a node that runs again because something it depends on has changed:
    it is served the calls before the change. A node that failed starts again without them, as a reply
    may be the reason of the failure.
    If a node was interrupted before the usage of a call was reported, the first fork to get that call
    reports its usage.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._executions = WeakValueDictionary[str, "Execution"]()
        # A running fork keeps its ``Reuse`` alive.
        self._forks = WeakValueDictionary[str, "Reuse"]()

    def share(self, execution_id: str, reuse: Reuse) -> None:
        """Let a fork find the recorded calls of its parent, as far as ``reuse`` allows."""
        self._forks[execution_id] = reuse

    def count_for(self, execution: Execution, recorded_bytes: int) -> Execution:
        """Count what was recorded and will be towards the limits of an execution; return it."""
        self._executions[execution.execution_id] = execution
        execution.count_stored(recorded_bytes)
        return execution

    async def recorded(self, key: CallKey) -> dict[str, Any] | None:
        """Return the recorded reply, or None; a reply of the parent is recorded for the fork too."""
        reuse = self._forks.get(key.execution_id)
        if key.attempt == NO_ATTEMPT and reuse is not None:
            return await self._note(key, reuse)
        reply = await self._recorder.recorded(key)
        if reply is not None or reuse is None:
            return reply
        before = await self._call_of_parent(reuse, key)
        lent = None if before is None else await self._recorder.recorded(before)
        if before is None or lent is None:
            return None
        await self.record(key, lent)
        if FAILURE in lent or KIND in lent:
            return lent  # it has no usage
        continued = ContinuedAttempt(before.execution_id, before.attempt)
        is_reported = reuse.was_recorded(key.path, continued, lent.get("usage") or {})
        if is_reported or not await self._claim_usage(before, key.execution_id):
            return lent
        return {**lent, USAGE_UNREPORTED: True}

    async def _note(self, key: CallKey, reuse: Reuse) -> dict[str, Any] | None:
        """Return a note about all attempts of a node: that of an execution before, else the fork's own.

        ``continues`` is in the note of the attempt that the first one of the fork continues. A note of
        an execution before that one comes first: not all calls of the attempt were made.
        """
        goes_on = await self._call_of_parent(reuse, key._replace(attempt=1))
        continued: dict[str, Any] | None = None
        for execution_id in (*reuse.execution_ids, key.execution_id):
            note = await self._recorder.recorded(key._replace(execution_id=execution_id))
            if note is None:
                continue
            if goes_on is None or note != {
                "execution_id": goes_on.execution_id, "attempt": goes_on.attempt
            }:  # fmt: skip
                return note
            continued = {**note, CONTINUES: True}
        return continued

    async def has_calls(self, key: CallKey) -> bool:
        """Return whether the fork has calls of the attempt, or goes on with one of its parent's."""
        reuse = self._forks.get(key.execution_id)
        goes_on = reuse is not None and reuse.continued_attempt(key.path, key.attempt) is not None
        return goes_on or await self._recorder.has_calls(key)

    async def has_other(self, key: CallKey) -> bool:
        """Return whether the fork, or what it continues, has another request under this number.

        If so, nothing more is lent: the fork's own request may be one that was lent before.
        """
        has_own = await self._recorder.has_other(key)
        reuse = self._forks.get(key.execution_id)
        before = None if reuse is None else await self._call_of_parent(reuse, key)
        if before is None:
            return has_own
        if not has_own and not await self._recorder.has_other(before):
            return False
        await self._recorder.record(_divergence(key), {"ordinal": key.ordinal})
        return True

    async def _call_of_parent(self, reuse: Reuse, key: CallKey) -> CallKey | None:
        """Return the key under which the parent may have recorded a call, if it may be lent.

        Nothing is lent any more after the first other request, nor to a process that goes on later.
        """
        continued = reuse.continued_attempt(key.path, key.attempt)
        if continued is None or await self._recorder.recorded(_divergence(key)) is not None:
            return None
        return key._replace(execution_id=continued.execution_id, attempt=continued.number)

    async def _claim_usage(self, call: CallKey, execution_id: str) -> bool:
        """Return whether this fork is to report the usage of a call: the first that asks is.

        The claim is stored beside the call, because a recorder keeps what was recorded first.
        """
        claim, own = call._replace(request_hash=call.request_hash + _CLAIM), {_ID: execution_id}
        await self._recorder.record(claim, own)
        return await self._recorder.recorded(claim) == own

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        """Record a reply; see ``Recorder``."""
        await self._recorder.record(key, reply)
        execution = self._executions.get(key.execution_id)
        if execution is not None:
            execution.count_stored(size_of(reply))


def _divergence(key: CallKey) -> CallKey:
    """Return the key of the note that a node of a fork has made another call than its parent."""
    return key._replace(attempt=NO_ATTEMPT, ordinal=0, request_hash=_DIVERGED)
