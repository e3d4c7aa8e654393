"""What an execution needs to run, from when it is made until it has come to rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from planwave.events import Event
from planwave.graph.model import Graph, Json
from planwave.graph.plan import Plan
from planwave.principals import current_principal
from planwave.storage.records import ExecutionRecord

if TYPE_CHECKING:
    from planwave.events.types import SupersededDocument
    from planwave.executor.options import RunOptions
    from planwave.executor.program import Program
    from planwave.executor.recovery.history import History


@dataclass(slots=True, kw_only=True)
class QueuedExecution:
    """An execution's entry in the queue; its run spec is read from the stored events later.

    Attributes:
        epoch: Its owner's; None where it has yet to be claimed.
        is_recovery: Whether the stored events show it running in a process that has ended.
        accepted_at: When it was queued, event loop time.
        cancel_cause: Why it is to be cancelled as soon as it runs, or None.
    """

    epoch: int | None = None
    is_recovery: bool = False
    accepted_at: float = 0.0
    cancel_cause: str | None = None


@dataclass(slots=True, kw_only=True)
class RunSpec(QueuedExecution):
    """What an execution needs to run.

    Attributes:
        last_seq: The last event that is stored.
        history: All that is stored, where it was started before.
        stored_bytes: The size of its recorded calls, where a limit needs it.
        parent: The relation to the parent of a fork; see ``executions/parent_results.py``.
        approval: The approval that its plan needs; see ``executions/plan_approval.py``.
        policies: The node policies of the request, which ``graph`` has already.
        supersedes: The request that its edited plan answers; see ``executions/plan_edits.py``.
        written_by: ``model`` for a plan that a model wrote; None for the graph of a person.
        flows: The ids of the only stored flows that may run in it; None for any.
        trace_context: The headers of the caller's trace; empty without one.
        program: The graph made ready to run, where it was just now.
        is_checked: The graph was checked against the providers there are just now.
    """

    graph: Graph
    goal: str
    inputs: Mapping[str, Mapping[str, Json]]
    options: RunOptions
    trigger: Json = None
    last_seq: int = 1
    history: History | None = None
    stored_bytes: int = 0
    parent: Json = None
    approval: Mapping[str, Json] | None = None
    policies: Mapping[str, Mapping[str, Json]] | None = None
    supersedes: SupersededDocument | None = None
    written_by: Literal["model"] | None = None
    flows: Sequence[str] | None = None
    trace_context: Mapping[str, str] = field(default_factory=dict[str, str])
    program: Program | None = None
    is_checked: bool = True


class ReplacedExecution(NamedTuple):
    """An execution whose plan a person edited, so that another execution takes its place.

    Attributes:
        spec: What it was to run; who wrote its plan, and the flows that it may run, hold on.
        plan_id: The plan that it was to run.
        request: The request for approval that the edit answers.
    """

    spec: RunSpec
    plan_id: str | None
    request: SupersededDocument


def new_execution(
    plan: Plan,
    spec: RunSpec,
    waves: int,
    execution_id: str,
    at: str,
    *,
    queued: bool = False,
    flow: str | None = None,
) -> tuple[ExecutionRecord, Event]:
    """Return the record and the first event of a new execution of a plan or a flow.

    Args:
        plan: The plan.
        spec: With what it is to be run.
        waves: How many waves it will have.
        execution_id: Its id.
        at: When it is made, UTC, ISO 8601.
        queued: Its start is accepted with it.
        flow: The name of the flow, where it is started as one.
    """
    facts = _created_data(plan, spec, waves)
    if flow is not None:
        facts["flow"] = flow
    by = current_principal()
    facts["created_by"] = by.as_json()
    record = ExecutionRecord(
        execution_id,
        plan.plan_id or None,
        plan.title,
        plan.user_prompt,
        "starting",
        at,
        last_seq=1,
        queued=queued,
        revision=facts["revision"],
        flow=flow,
        created_by=by,
        parent_id=None if spec.parent is None else spec.parent["execution_id"],
    )
    return record, Event(execution_id, 1, at, "execution.created", None, None, facts)


def _created_data(plan: Plan, spec: RunSpec, waves: int) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "goal": plan.user_prompt,
        "title": plan.title,
        "plan_id": plan.plan_id or None,
        "revision": (plan.revision or None) if plan.plan_id else None,
        "plan_hash": plan.hash,
        "graph": plan.graph.document,
        "options": spec.options.as_json(),
        "waves": waves,
    }
    if spec.inputs:
        facts["inputs"] = spec.inputs
    if spec.trigger is not None:
        facts["trigger"] = spec.trigger
    if spec.parent is not None:
        facts["parent"] = spec.parent
    for name, value in (("approval", spec.approval), ("supersedes", spec.supersedes)):
        if value is not None:
            facts[name] = value
    if spec.policies:
        facts["policies"] = spec.policies
    if spec.written_by is not None:
        facts["written_by"] = spec.written_by
    if spec.flows is not None:
        facts["flows"] = list(spec.flows)
    if spec.trace_context:
        facts["trace_context"] = spec.trace_context
    return facts
