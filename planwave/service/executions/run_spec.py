"""What an execution is to run, and its first event, which says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from planwave.errors import GraphInvalid, InputError
from planwave.events import Event, fold
from planwave.events.types import PLAN_REVISED, typed_event
from planwave.events.unreadable import unreadable_error
from planwave.executor.inputs import (
    goal_errors,
    plan_inputs,
    render_task,
    require_tasks,
    wave_count,
)
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.expressions import compile_task, has_template
from planwave.graph.model import Graph, Json
from planwave.graph.plan import title_of_steps
from planwave.graph.protocols import NodeTypes
from planwave.graph.reading.documents import read_graph
from planwave.graph.subgraphs import all_nodes
from planwave.principals import Principal, current_principal
from planwave.settings import Limits
from planwave.storage.records import ExecutionRecord

if TYPE_CHECKING:
    from planwave.events.types import SupersededDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """What an execution is to run.

    Attributes:
        graph: Its graph.
        inputs: ``{node_id: {handle: value}}``: nodes settled with these values, not executed.
        options: How to run it.
        goal: The goal in the user's words, with the inputs in place of their names.
        goal_template: The goal as it was written, where it names inputs; a fork renders it again.
        title: The title of its plan.
        plan_id: The plan, where it is stored.
        revision: The revision of the plan; None where the graph is that of no revision.
        plan_hash: The hash of the plan's graph; None where nobody has computed it.
        flow: The name of the flow, where it is started as one.
        trigger: What expressions see as ``trigger``.
        parent: The relation to the parent of a fork; see ``executions/parent_results.py``.
        approval: The approval that its plan needs; see ``executions/plan_approval.py``.
        policies: The node policies of the request, which ``graph`` has already.
        supersedes: The request that its edited plan answers; see ``executions/plan_edits.py``.
        written_by: ``model`` for a plan that a model wrote; None for the graph of a person.
        model_plan_id: The plan that the model wrote, where that is not ``plan_id``.
        flows: The ids of the only stored flows that may run in it; None for any.
        trace_context: The headers of the caller's trace; empty without one.
        trace_id: The id of the trace that its spans are in; None where they are in none.
        wave_floors: The waves of nodes of a graph that was changed while it ran; see ``WaveProgress``.
    """

    graph: Graph
    inputs: Mapping[str, Mapping[str, Json]]
    options: RunOptions
    goal: str = ""
    goal_template: str | None = None
    title: str = ""
    plan_id: str | None = None
    revision: int | None = None
    plan_hash: str | None = None
    flow: str | None = None
    trigger: Json = None
    parent: Mapping[str, Any] | None = None
    approval: Mapping[str, Json] | None = None
    policies: Mapping[str, Mapping[str, Json]] | None = None
    supersedes: SupersededDocument | None = None
    written_by: Literal["model"] | None = None
    model_plan_id: str | None = None
    flows: Sequence[str] | None = None
    trace_context: Mapping[str, str] = field(default_factory=dict[str, str])
    trace_id: str | None = None
    wave_floors: Mapping[str, tuple[int, bool]] = field(default_factory=dict[str, tuple[int, bool]])

    @property
    def judged_plan_id(self) -> str | None:
        """The plan whose first revision tells what a model wrote from what people changed."""
        return self.model_plan_id or self.plan_id


def rendered_spec(spec: RunSpec, program: Program) -> tuple[RunSpec, int]:
    """Return a specification with the goal for its inputs, and how many waves it will have.

    Raises:
        GraphInvalid: The goal has something else than inputs in braces.
        InputError: ``invalid-inputs``: the goal or a task names an input without a value; the options
            leave nothing to run.
    """
    entry = plan_inputs(program, spec.inputs, spec.options)
    inputs = require_tasks(program, entry)
    names, written = program.inputs.goal_names, spec.goal_template or spec.goal
    goal, template = written, None
    if names is not None and has_template(written):
        if errors := goal_errors(written, program.inputs):
            raise GraphInvalid(errors)
        if (compiled := compile_task(written)) is not None:
            goal, template = render_task(compiled, inputs, "the goal"), written
    return replace(spec, goal=goal, goal_template=template), wave_count(program, entry)


def require_inputs_for(spec: RunSpec, graph: Graph, catalogue: NodeTypes) -> None:
    """Check that what an execution was given is enough for a graph that it is to go on with.

    Raises:
        InvalidInputs: An entry node of the graph declares what has no default, and nothing gives it.
        InputError: ``invalid-inputs``: a task names an input without a value.
    """
    program = Program(graph, catalogue)
    inputs = {node_id: given for node_id, given in spec.inputs.items() if node_id in graph.by_id}
    require_tasks(program, plan_inputs(program, inputs, spec.options))


class ReplacedExecution(NamedTuple):
    """An execution whose plan a person edited, so that another execution takes its place.

    Attributes:
        spec: What it was to run; its plan, who wrote that, and the flows that it may run, hold on.
        request: The request for approval that the edit answers.
    """

    spec: RunSpec
    request: SupersededDocument


def new_execution(
    spec: RunSpec,
    waves: int,
    execution_id: str,
    at: str,
    *,
    queued: bool = False,
    needs: str | None = None,
    by: Principal | None = None,
) -> tuple[ExecutionRecord, Event]:
    """Return the record and the first event of a new execution.

    Args:
        spec: What it is to run.
        waves: How many waves it will have.
        execution_id: Its id.
        at: When it is made, UTC, ISO 8601.
        queued: Its start is accepted with it.
        needs: The capability without which no process can drive it.
        by: Who makes it; the current principal by default.
    """
    by = by or current_principal()
    if not (spec.title or spec.goal):
        spec = replace(spec, title=title_of_steps(spec.graph))
    facts = {**_facts(spec, waves), "created_by": by.as_json()}
    record = ExecutionRecord(
        execution_id,
        spec.plan_id,
        spec.title,
        spec.goal,
        "starting",
        at,
        last_seq=1,
        queued=queued,
        revision=spec.revision,
        flow=spec.flow,
        created_by=by,
        parent_id=None if spec.parent is None else spec.parent["execution_id"],
        needs=needs,
    )
    return record, Event(execution_id, 1, at, "execution.created", None, None, facts)


def _facts(spec: RunSpec, waves: int) -> dict[str, Any]:
    facts: dict[str, Any] = {"goal": spec.goal, "title": spec.title}
    if spec.plan_hash is not None:
        facts |= {"plan_id": spec.plan_id, "revision": spec.revision, "plan_hash": spec.plan_hash}
    facts |= {"graph": spec.graph.document, "options": spec.options.as_json(), "waves": waves}
    others = {
        "goal_template": spec.goal_template,
        "inputs": spec.inputs or None,
        "trigger": spec.trigger,
        "parent": spec.parent,
        "approval": spec.approval,
        "supersedes": spec.supersedes,
        "policies": spec.policies or None,
        "written_by": spec.written_by,
        "model_plan_id": spec.model_plan_id,
        "flows": None if spec.flows is None else list(spec.flows),
        "trace_context": spec.trace_context or None,
        "trace_id": spec.trace_id,
        "flow": spec.flow,
    }
    return facts | {name: value for name, value in others.items() if value is not None}


def require_known_types(graph: Graph, catalogue: NodeTypes) -> None:
    """Check that there are all node types of a stored graph, before anything is done with its execution.

    Raises:
        InputError: ``unknown-node-type``, with each missing type once.
    """
    types = dict.fromkeys(each.node.type for each in all_nodes(graph, catalogue))
    missing = [name for name in types if catalogue.type_info(name) is None]
    if missing:
        raise InputError(
            f"it uses the types {', '.join(missing)}, which no module here has",
            code="unknown-node-type",
            hint="import the module that has them, or name it in node_modules of planwave.toml",
        )


def parent_data(
    execution_id: str,
    rerun: Sequence[str],
    preset: Mapping[str, Mapping[str, Json]],
    *,
    is_retry: bool = False,
) -> dict[str, Any]:
    """Return the ``parent`` field of a fork's first event."""
    facts: dict[str, Any] = {"execution_id": execution_id}
    if is_retry:
        facts["retry"] = True
    if rerun:
        facts["rerun"] = list(rerun)
    if preset:
        facts["given"] = preset
    return facts


def run_spec_from_events(
    execution_id: str, events: Sequence[Event], limits: Limits | None
) -> RunSpec:
    """Return what an execution is to run, read from the first of its events and the changes of its graph.

    Args:
        execution_id: Its id.
        events: All of its events; the first one alone where its graph cannot have changed.
        limits: What graphs may not pass.

    Raises:
        GraphInvalid: The graph was changed from outside, or passes limits that were lowered since.
        Conflict: ``unreadable``.
    """
    created = typed_event(events[0]) if events else None
    if created is None or created.type != "execution.created":
        raise unreadable_error(execution_id, "its first event is missing")
    facts = created.data
    is_changed = any(event.type == PLAN_REVISED.name for event in events)
    now = fold(events) if is_changed else None  # only where its graph is another one by now
    document = facts.get("graph") if now is None else now.graph
    graph, _ = read_graph(document or {}, limits=limits)
    options = cast("Mapping[str, Any]", facts.get("options") or {})
    try:
        run_options = RunOptions(**options)
    except (InputError, TypeError) as error:  # of another version, or changed from outside
        raise unreadable_error(execution_id, str(error)) from error
    return RunSpec(
        graph=graph,
        inputs=facts.get("inputs") or {},
        options=run_options,
        goal=facts.get("goal") or "",
        goal_template=facts.get("goal_template"),
        title=facts.get("title") or "",
        plan_id=facts.get("plan_id"),
        revision=None if is_changed else facts.get("revision"),
        plan_hash=facts.get("plan_hash") if now is None else now.plan_hash,
        flow=None if is_changed else facts.get("flow"),
        trigger=facts.get("trigger"),
        parent=cast("Mapping[str, Any] | None", facts.get("parent")),
        approval=cast("Mapping[str, Json] | None", facts.get("approval")),
        policies=facts.get("policies"),
        supersedes=facts.get("supersedes"),
        written_by=facts.get("written_by"),
        model_plan_id=facts.get("model_plan_id"),
        flows=facts.get("flows"),
        trace_context=facts.get("trace_context") or {},
        trace_id=facts.get("trace_id"),
        wave_floors={} if now is None else now.waves.floors,
    )
