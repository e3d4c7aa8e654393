"""What a fork or a retry of an execution runs, worked out from the state of that execution.

Pure: which results are reused is found by the run of the fork, by their keys (see
``executor/reuse``); here is what the caller wants to be different.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from typing_extensions import TypedDict

from planwave.errors import Conflict, InputError, InvalidChanges
from planwave.events import ENDED_NODE, ExecutionState
from planwave.events.paths import ancestor_paths, outermost_path
from planwave.executor.inputs import declarations, validate_inputs
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.graph.checking.checker import check
from planwave.graph.diagnostics import Diagnostic, short_repr
from planwave.graph.editing.merge_patch import apply_merge_patch
from planwave.graph.json_values import JsonLimits, checked_copy, json_findings, pointer_of_name
from planwave.graph.model import FLOW, Graph, Json, Node
from planwave.graph.plan import graph_hash
from planwave.graph.protocols import NodeTypes
from planwave.graph.suggestions import closest_match
from planwave.service.executions.plan_approval import approval_of_fork
from planwave.service.executions.run_spec import RunSpec, parent_data, require_known_types
from planwave.service.plans.documents import raise_for_run
from planwave.service.plans.policies import json_limits
from planwave.settings import Limits
from planwave.storage.records import is_interrupted

if TYPE_CHECKING:
    from planwave.service.plans.documents import CheckedPlan

NodeChanges = Mapping[str, Mapping[str, Json]]
"""``{node_id: {"description"?: text, "data"?: merge patch} | {"outputs": {handle: value}}}``."""
ByNode = Mapping[str, Mapping[str, Json]]
"""Values by node id and output handle."""

CHANGES: Final = "/changes"
_RERUN: Final = "/rerun"
"""Where pointers to what is wrong begin."""

_DATA: Final = "data"
_DESCRIPTION: Final = "description"
_OUTPUTS: Final = "outputs"
_READ: Final = {
    _DATA: "its data are never read",
    _DESCRIPTION: "its description is never read",
}
_NODES_SHOWN: Final = 8
_FAILED: Final = frozenset({"failed", "cancelled"})
"""The ends of a node that a retry runs again."""


class ForkChanges(TypedDict, total=False):
    """What a caller wants to be different in a fork; nothing by default."""

    rerun: Sequence[str]
    """Ids of nodes that run in any case, with all that runs inside them."""
    changes: NodeChanges | None
    """New tasks, data or results of nodes."""
    graph: Mapping[str, Json] | None
    """The graph to run, or a plan with it, which the other changes are of; None for that of the execution.
    Nodes are the same by their ids."""
    options: RunOptions | None
    """How to run; None for as before. The limits of the service apply in any case, as they are now."""


class NewGraph(NamedTuple):
    """The graph that a fork runs in place of that of its parent, read and without errors.

    Attributes:
        graph: The graph.
        goal: The goal of the plan that it is from; "" for that of the parent.
        title: The title of that plan; "" for that of the parent.
        written_by: ``model`` if a model wrote that plan.
        plan_id: The id of that plan, where it is stored and the graph is its newest revision.
        revision: The number of that revision.
    """

    graph: Graph
    goal: str = ""
    title: str = ""
    written_by: Literal["model"] | None = None
    plan_id: str | None = None
    revision: int | None = None


def new_graph_of(checked: CheckedPlan) -> NewGraph:
    """Return the graph of a plan that was read just now."""
    plan, envelope = checked.plan, checked.report.envelope
    goal, title = (
        text if isinstance(text := envelope.get(name), str) else ""
        for name in ("user_prompt", "title")
    )
    if plan.plan_id != envelope.get("plan_id"):  # it is not stored, or has been changed
        return NewGraph(plan.graph, goal.strip(), title.strip())
    named = plan.author, plan.plan_id, plan.revision
    return NewGraph(plan.graph, goal.strip(), title.strip(), *named)


class ForkRequest(NamedTuple):
    """The request for a fork of an execution.

    Attributes:
        rerun: Ids of nodes that must run again.
        changes: By node id, ``description``: the node's task, and ``data``: an RFC 7396 merge patch
            for its data; or ``outputs``: the results that are set instead of running the node.
        options: How to run; None for as before.
        is_retry: The nodes of ``rerun`` keep the valid results of their nested runs; otherwise
            they start from the beginning.
        new: The graph to run, which the other changes are of; None for that of the execution.
    """

    rerun: Sequence[str] = ()
    changes: NodeChanges | None = None
    options: RunOptions | None = None
    is_retry: bool = False
    new: NewGraph | None = None


class Fork(NamedTuple):
    """What a fork runs.

    Attributes:
        graph: The graph of the execution before it, or the new one, with the changed nodes; to be
            checked.
        inputs: The inputs of the execution before it, with the outputs changed of those nodes; without
            those that the new graph has no place for.
        preset: ``{node_id: {handle: value}}``: other nodes that are settled with changed outputs.
            Not inputs: these would say where the graph is entered.
        rerun: Ids of nodes that run again even if their results could be reused.
    """

    graph: Graph
    inputs: dict[str, dict[str, Json]]
    preset: dict[str, dict[str, Json]]
    rerun: tuple[str, ...]


def changes_of_fields(
    changes: NodeChanges, fields: Mapping[str, Json], ids: Sequence[str]
) -> dict[str, dict[str, Json]]:
    """Return changes with new values of single fields merged into them.

    Args:
        changes: The other changes.
        fields: ``{"NODE.FIELD": value}``, or deeper: ``NODE.a.b``. A field is one of the node's data;
            ``NODE.description`` is its task.
        ids: The ids of the nodes; an id may contain dots.

    Raises:
        InputError: ``usage``: a name is not a field of a node.
    """
    # A change that is no object stays as it is: `build_fork` reports it with all others.
    merged: dict[str, Any] = {
        node_id: {**change} if _is_mapping(change) else change
        for node_id, change in changes.items()
    }
    for name, value in fields.items():
        node_id = max((i for i in ids if name.startswith(f"{i}.")), key=len, default="")
        path = name.removeprefix(f"{node_id}.").split(".")
        if not (node_id and all(path)):
            raise _no_field(name, node_id, ids)
        inner = merged.setdefault(node_id, {})
        if not _is_mapping(inner):
            continue
        for key in [] if path == [_DESCRIPTION] else [_DATA, *path[:-1]]:
            outer, deeper = inner, inner.get(key)
            inner = dict(cast("Mapping[str, Json]", deeper)) if isinstance(deeper, Mapping) else {}
            outer[key] = inner
        inner[path[-1]] = value
    return merged


def _no_field(name: str, node_id: str, ids: Sequence[str]) -> InputError:
    """Return the error of a name that is no field of a node: because there is no such node, or no field in it."""
    head, dot, _ = name.partition(".")
    more = ", …" if len(ids) > _NODES_SHOWN else ""
    steps = f"the steps are {', '.join(ids[:_NODES_SHOWN])}{more}"
    if node_id or head in ids or not (head and dot):
        message = f"{short_repr(name)} is not a field of a step"
        return InputError(message, code="usage", hint=f"write NODE.FIELD; {steps}")
    near = closest_match(head, ids)
    meant = "" if near is None else f"did you mean {near!r}? "
    message = f"{short_repr(name)}: there is no step {short_repr(head)}"
    return InputError(message, code="usage", hint=f"{meant}{steps}")


def build_fork(
    parent: ExecutionState,
    parent_graph: Graph,
    request: ForkRequest,
    *,
    limits: Limits | None = None,
    linked: Collection[str] | None = None,
) -> Fork:
    """Return the graph, the inputs and the nodes that a fork runs.

    Whether the graph can still run, and whether types have changed outputs, is for others to check.

    Args:
        parent: The execution; it has ended or is paused.
        parent_graph: Its graph, read.
        request: The requested changes.
        limits: What values may not pass.
        linked: Ids of nodes that are never run by themselves; None for those that the execution had.

    Raises:
        Conflict: ``still-running``.
        ChangesInvalid: ``invalid-changes``, with every finding; pointers are below ``/changes`` and
            ``/rerun``.
    """
    require_settled(parent)
    rerun = request.rerun
    changes: NodeChanges = {} if request.changes is None else request.changes
    inputs: dict[str, dict[str, Json]] = dict(parent.inputs or {})
    base = parent_graph
    if request.new is not None:
        base = request.new.graph
        inputs = {e: inputs[e] for e in inputs if _is_still_input(e, parent_graph, base)}
    if linked is None:
        linked = {each for each, node in parent.nodes.items() if node.status == "linked"}
    reading = _ChangeReader(linked, base, inputs.keys(), json_limits(limits))
    errors = [error for n, each in enumerate(rerun) for error in reading.rerun_errors(n, each)]
    errors += json_findings(changes, CHANGES, json_limits(limits)) or [
        error for node_id, change in changes.items() for error in reading.add(node_id, change)
    ]
    if errors:
        raise InvalidChanges(errors)
    inputs |= {each: values for each, values in reading.preset.items() if each in inputs}
    preset = {each: values for each, values in reading.preset.items() if each not in inputs}
    if request.is_retry:  # results that the parent was to set, and perhaps did not reach
        lineage = cast("Mapping[str, Any]", parent.parent or {})
        preset = {**lineage.get("given", {}), **preset}
    nodes = tuple(reading.changed.get(node.id, node) for node in base.nodes)
    graph = Graph(nodes, base.edges) if reading.changed else base
    return Fork(graph, inputs, preset, tuple(dict.fromkeys(rerun)))


def _is_still_input(node_id: str, before: Graph, after: Graph) -> bool:
    """Return whether the inputs of an execution for a node mean the same in a new graph.

    A node of another type is another node; one that was an entry, and that edges lead into now, runs.
    """
    node = after.by_id.get(node_id)
    if node is None or node.type != before.by_id[node_id].type:
        return False
    return _has_sources(node_id, before) or not _has_sources(node_id, after)


def _has_sources(node_id: str, graph: Graph) -> bool:
    return any(edge.channel == FLOW for edge in graph.incoming.get(node_id, ()))


def fork_spec(
    before: RunSpec,
    parent: ExecutionState,
    request: ForkRequest,
    catalogue: NodeTypes,
    *,
    limits: Limits | None = None,
    require_approval: bool = False,
) -> tuple[RunSpec, Program]:
    """Return what a fork is to run, and its graph bound to its node types.

    Args:
        before: What the execution was to run.
        parent: Its state; it has ended or is paused.
        request: The requested changes.
        catalogue: The node types.
        limits: What values and graphs may not pass.
        require_approval: Every execution here needs an approval.

    Raises:
        Conflict: ``still-running``.
        GraphInvalid: ``invalid-changes``, or the changed graph cannot run.
        InputError: ``unknown-node-type``; the inputs do not fit it any more.
    """
    linked = None if request.new is None else _linked(Program(request.new.graph, catalogue))
    fork = build_fork(parent, before.graph, request, limits=limits, linked=linked)
    if request.new is None:
        require_known_types(before.graph, catalogue)
    raise_for_run(check(fork.graph, catalogue, limits))
    program = Program(fork.graph, catalogue)
    (given, preset), new_hash = _declared(program, fork), graph_hash(fork.graph)
    spec = replace(
        before,
        graph=fork.graph,
        inputs=given,
        goal=before.goal_template or before.goal,
        options=_options(before, parent, request),
        parent=parent_data(parent.execution_id, fork.rerun, preset, is_retry=request.is_retry),
        approval=approval_of_fork(parent, new_hash, required=require_approval),
        supersedes=None,
        trace_context={},
        trace_id=None,
        wave_floors={},
    )
    if fork.graph is not before.graph or before.plan_hash is None:
        # A changed graph is not the flow, so that access tokens do not see it.
        spec = replace(spec, plan_hash=new_hash, revision=None, flow=None)
    if request.new is not None:
        spec = _with_plan_of(spec, request.new)
    return spec, program


def _linked(program: Program) -> set[str]:
    topology = program.topology
    return {i for i, is_linked in zip(topology.ids, topology.linked, strict=True) if is_linked}


def _options(before: RunSpec, parent: ExecutionState, request: ForkRequest) -> RunOptions:
    """Return how a fork runs: as its parent did, with the budget as a person may have raised it."""
    options = before.options if request.options is None else request.options
    if request.options is not None and options.budget is not None:
        return options
    raised = {} if parent.budget is None else parent.budget.limits
    return replace(options, budget={**(before.options.budget or {}), **raised} or None)


def _with_plan_of(spec: RunSpec, new: NewGraph) -> RunSpec:
    """Return what a fork of a new graph is to run, with what that graph says of its plan.

    The policies of the request before were for the graph before: the new one says its own.
    """
    is_revision = new.plan_id is not None and new.plan_id == spec.plan_id
    judged = new.plan_id if new.written_by else spec.judged_plan_id
    return replace(
        spec,
        goal=new.goal or spec.goal,
        title=new.title or spec.title,
        revision=new.revision if is_revision else None,
        written_by=spec.written_by or new.written_by,
        model_plan_id=None if judged == spec.plan_id else judged,
        policies=None,
    )


def _declared(program: Program, fork: Fork) -> tuple[ByNode, ByNode]:
    """Return the inputs of a fork, and the other outputs that nodes are settled with.

    The changed output of a node that declares inputs of the flow is an input: tasks read it before the
    run begins.

    Raises:
        InputError: They do not fit the graph.
    """
    givers = declarations(program) if len(program.entry_nodes) > 1 else program.entry_nodes
    ids = {program.topology.ids[n] for n in givers} & program.inputs.fields.keys()
    given = {node_id: own for node_id, own in fork.preset.items() if node_id in ids}
    others = {node_id: own for node_id, own in fork.preset.items() if node_id not in ids}
    return validate_inputs(program, {**fork.inputs, **given}), validate_inputs(program, others)


def failed_nodes(parent: ExecutionState) -> tuple[str, ...]:
    """Return the nodes that a retry runs again: all that failed or were cancelled.

    A node that completed without what failed inside it is one of them, such as a loop that skips failed items.

    Nodes that were blocked or never started have no result and run in any case. If there are only
    such nodes, the result is empty.

    Raises:
        Conflict: ``still-running``; ``nothing-to-retry`` if no node can be retried.
    """
    require_settled(parent)
    own = [node["id"] for node in (parent.graph or {}).get("nodes", ())]
    statuses = {node_id: parent.nodes[node_id].status for node_id in own}
    around = _completed_around_failures(parent)
    again = tuple(
        node_id for node_id, status in statuses.items() if status in _FAILED or node_id in around
    )
    is_unfinished = parent.is_over and any(s not in ENDED_NODE for s in statuses.values())
    if not (again or is_unfinished):
        completed = parent.status == "completed"
        why = "it completed" if completed else "no step of it failed or was cancelled"
        raise Conflict(
            f"nothing to retry: {why}",
            code="nothing-to-retry",
            hint="to run steps again, fork it and name them in `rerun`",
        )
    return again


def _completed_around_failures(parent: ExecutionState) -> set[str]:
    """Return the nodes of the graph that completed, or contain a node that did, despite a failure inside.

    The nodes inside a reused result belong to the execution that it was taken from.
    """
    around = {
        outermost_path(path)
        for path, node in parent.nodes.items()
        if (node.reused or {}).get("failed_inside")
    }
    for path, node in parent.nodes.items():
        outer = ancestor_paths(path)
        if node.status in _FAILED and not node.handled and outer:
            container = parent.nodes.get(outer[-1])
            if container is not None and container.status == "completed":
                around.add(outer[0])
    return around


def require_settled(parent: ExecutionState) -> None:
    """Refuse to fork or retry an execution whose nodes may still be at work.

    Raises:
        Conflict: ``still-running``.
    """
    if not parent.is_over and parent.status != "paused":
        raise Conflict(
            f"execution {parent.execution_id} is {parent.status}: what it gives is not settled yet",
            code="still-running",
            hint="wait for its end, or cancel or pause it first",
        )


def require_owned(parent: ExecutionState, *, is_owned: bool) -> None:
    """Refuse to fork or retry an execution whose process ended before it: its end would never come.

    Raises:
        Conflict: ``execution-interrupted``.
    """
    if is_interrupted(parent.status, is_owned=is_owned, was_accepted=parent.started_at is not None):
        raise Conflict(
            f"execution {parent.execution_id} was interrupted: its process ended",
            code="execution-interrupted",
            hint="resume it, so that it goes on where it was cut off, or cancel it first",
        )


class _ChangeReader:
    """Takes in the changes one by one.

    Attributes:
        changed: Nodes with their new task and data.
        preset: Outputs nodes are settled with.
    """

    def __init__(
        self, linked: Collection[str], graph: Graph, inputs: Collection[str], room: JsonLimits
    ) -> None:
        self._linked, self._graph, self._room = linked, graph, room
        self._inputs = inputs
        self.changed: dict[str, Node] = {}
        self.preset: dict[str, dict[str, Json]] = {}

    def rerun_errors(self, number: int, node_id: str) -> list[Diagnostic]:
        """Find what is wrong with running a node again."""
        pointer = f"{_RERUN}/{number}"
        if node_id not in self._graph.by_id:
            return [self._unknown_node(node_id, pointer)]
        return self._never_run_errors(node_id, pointer, "run again")

    def add(self, node_id: str, change: Json) -> list[Diagnostic]:
        """Take in the change of one node, or give what is wrong with it."""
        pointer = CHANGES + pointer_of_name(node_id)
        node = self._graph.by_id.get(node_id)
        if node is None:
            return [self._unknown_node(node_id, pointer)]
        fields, errors = _change_fields(change, pointer, node_id)
        for name, value in fields.items():
            add = self._add_text if name == _DESCRIPTION else self._add_object
            errors += add(node, name, value, f"{pointer}/{name}")
        return errors

    def _add_text(self, node: Node, name: str, value: Json, pointer: str) -> list[Diagnostic]:
        if not isinstance(value, str):
            message = f"{name} of node {node.id!r} must be text, got {short_repr(value)}"
            return [Diagnostic("invalid-field", "error", message, pointer, node.id)]
        return self._add_fields(node, pointer, description=value)

    def _add_object(self, node: Node, name: str, value: Json, pointer: str) -> list[Diagnostic]:
        own = checked_copy(cast("dict[str, Any]", value), self._room) if _is_object(value) else None
        if own is None:
            message = f"{name} of node {node.id!r} must be an object, got {short_repr(value)}"
            return [Diagnostic("invalid-field", "error", message, pointer, node.id)]
        if name == _DATA:
            return self._add_fields(node, pointer, data=apply_merge_patch(node.data, own))
        self.preset[node.id] = own
        return self._never_run_errors(node.id, pointer, "settled")

    def _add_fields(self, node: Node, pointer: str, **fields: Any) -> list[Diagnostic]:
        if node.id in self._inputs:
            message = f"node {node.id!r} is settled by the inputs, so {_READ[next(iter(fields))]}"
            hint = "change its outputs instead"
            return [Diagnostic("invalid-field", "error", message, pointer, node.id, hint=hint)]
        self.changed[node.id] = self.changed.get(node.id, node)._replace(**fields)
        return []

    def _never_run_errors(self, node_id: str, pointer: str, what: str) -> list[Diagnostic]:
        if node_id not in self._linked:
            return []
        message = f"node {node_id!r} is never run by itself, so it cannot be {what}"
        hint = "change its data, or name the nodes that use it"
        return [Diagnostic("never-run", "error", message, pointer, node_id, hint=hint)]

    def _unknown_node(self, node_id: str, pointer: str) -> Diagnostic:
        ids = list(self._graph.by_id)
        more = ", …" if len(ids) > _NODES_SHOWN else ""
        return Diagnostic(
            "unknown-node",
            "error",
            f"the execution has no node {short_repr(node_id)}",
            pointer,
            hint=f"its nodes are {', '.join(ids[:_NODES_SHOWN])}{more}",
        )


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_object(value: Json) -> bool:
    return type(value) is dict


def _change_fields(
    change: Json, pointer: str, node_id: str
) -> tuple[Mapping[str, Json], list[Diagnostic]]:
    """Return the fields of a node's change, or diagnostics of its form."""
    hint = (
        'write {"description": "the task"}, {"data": {…}} or both, or {"outputs": {handle: value}}'
    )
    if not isinstance(change, Mapping):
        message = f"the change of node {node_id!r} is {short_repr(change)}, must be an object"
        return {}, [Diagnostic("invalid-field", "error", message, pointer, node_id, hint=hint)]
    fields = cast("Mapping[str, Json]", change)
    unknown = [
        Diagnostic(
            "unknown-field",
            "error",
            f"the change of node {node_id!r} has the unknown field {short_repr(name)}",
            pointer + pointer_of_name(name),
            node_id,
            hint=hint,
        )
        for name in fields
        if name not in (_DATA, _DESCRIPTION, _OUTPUTS)
    ]
    if unknown:
        return {}, unknown
    if fields and (_OUTPUTS not in fields or len(fields) == 1):
        return fields, []
    names = " and ".join(name for name in fields if name != _OUTPUTS)
    what = f"both {names} and outputs: one makes the other pointless" if fields else "nothing"
    message = f"the change of node {node_id!r} says {what}"
    return {}, [Diagnostic("invalid-field", "error", message, pointer, node_id, hint=hint)]
