"""AgentFlow: workflows in which one step follows another, with approvals, conditions and sub-agents.

Its engine walks from the start along the connections: a step runs once for each way that reaches it, only
``{{PREVIOUS_OUTPUT}}`` is replaced in prompts, and a sub-agent is connected to the agent that may call it.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, cast

from planwave.graph.json_values import pointer_part
from planwave.interop.importing.conversion import Conversion, SourceEdge, SourceNode
from planwave.interop.importing.drafts import GraphDraft
from planwave.interop.importing.importer import Source
from planwave.interop.importing.loops import Step, Way, place_steps
from planwave.interop.importing.reading import (
    list_of,
    object_of,
    objects_in,
    position_of,
    text_of,
)
from planwave.interop.importing.regions import back_edges
from planwave.interop.importing.templates import literal

_PROVIDER: Final = "openai"
"""The only one that its engine calls."""
_DEFAULT_SYSTEM: Final = "You are a helpful assistant."
_DEFAULT_MODEL: Final = "gpt-5"
_DEFAULT_EFFORT: Final = "low"
_EFFORTS: Final = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max"})
_DEFAULT_QUESTION: Final = "Review and approve this step."
_SUBAGENT: Final = "subagent"
"""The handle by which an agent is connected to those that it may call."""
_PREVIOUS: Final = re.compile(r"\{\{\s*PREVIOUS_OUTPUT\s*\}\}")
_OUTPUT: Final = ("output",)
_LEGACY_TYPES: Final = {"input": "approval"}
_LEGACY_HANDLES: Final = {"if": {"true": "condition-0"}}


class _Task(NamedTuple):
    """A node of the workflow."""

    id: str
    kind: str
    data: Mapping[str, Any]
    node: SourceNode


class _Workflow:
    """The nodes and connections of one file, while they are converted."""

    def __init__(self, conversion: Conversion) -> None:
        self.conversion = conversion
        self.tasks: dict[str, _Task] = {}
        self.ways: list[Way] = []
        self.known_ways: set[tuple[str, str, str]] = set()
        self.delegations: list[tuple[str, str, SourceEdge]] = []
        """Agent, sub-agent, connection."""
        self.graphs: dict[str, GraphDraft] = {}
        self.called: dict[str, list[str]] = {}
        """The sub-agents of each agent that are no stages."""

    def find_called(self) -> None:
        stages = _stages(self)
        for agent, sub, _ in self.delegations:
            if sub not in stages:
                self.called.setdefault(agent, []).append(sub)


def convert(source: Source) -> Conversion:
    """Make a node of each step, an edge of each connection, a link of each sub-agent, a loop of each cycle."""
    document, at = cast("Mapping[str, Any]", source.value), source.pointer
    conversion = Conversion("agentflow", title=text_of(document, "title"))
    workflow = _Workflow(conversion)
    for number, fields in objects_in(document, "nodes"):
        _read_node(workflow, f"{at}/nodes/{number}", fields)
    for number, fields in objects_in(document, "connections"):
        _read_connection(workflow, f"{at}/connections/{number}", fields)
    _check_subagents(workflow)
    _drop_what_never_ran(workflow, at)
    workflow.find_called()
    called = {sub for subs in workflow.called.values() for sub in subs}
    steps = {
        key: Step(task.node, _handles(task), partial(_place, workflow, key))
        for key, task in workflow.tasks.items()
        if key not in called
    }
    place_steps(steps, workflow.ways, conversion.graph)
    for key in sorted(called):
        _place(workflow, key, conversion.graph)
    for agent, sub, edge in workflow.delegations:
        _link(workflow, workflow.tasks[sub], workflow.tasks[agent], edge)
    _note_joins(workflow)
    if any(task.kind == "approval" for task in workflow.tasks.values()):
        message = (
            "an answer that is neither approve nor reject is refused here; there each that does not say "
            "reject approved"
        )
        conversion.note("import-changed", message, at)
    return conversion


def _read_node(workflow: _Workflow, pointer: str, fields: Mapping[str, Any]) -> None:
    written = text_of(fields, "type")
    kind, data = _LEGACY_TYPES.get(written, written), object_of(fields, "data")
    task_id = text_of(fields, "id")
    name = text_of(data, "agentName") if kind == "agent" else ""
    node = workflow.conversion.source_node(
        pointer,
        written,
        name or ("Agent" if kind == "agent" else task_id),
        parameters=data,
        position=position_of(fields),
    )
    if task_id in workflow.tasks:
        message = f"two steps have the id {task_id!r}: which one the connections mean is not known"
        node.lose(message, task_id, f"{pointer}/id", code="import-renamed")
    else:
        workflow.tasks[task_id] = _Task(task_id, kind, data, node)


def _read_connection(workflow: _Workflow, pointer: str, fields: Mapping[str, Any]) -> None:
    source, target = (workflow.tasks.get(text_of(fields, end)) for end in ("source", "target"))
    ends = [task and task.node for task in (source, target)]
    edge = workflow.conversion.source_edge(pointer, *ends)
    if source is None or target is None:
        return
    handle = text_of(fields, "sourceHandle")
    into = text_of(fields, "targetHandle") or "input"
    if handle == _SUBAGENT:
        workflow.delegations.append((source.id, target.id, edge))
        if into != "input":
            message = f"an agent is its sub-agent by the handle {into!r}, which runs nothing there"
            target.node.lose(message, into, f"{pointer}/targetHandle")
        return
    handle = _LEGACY_HANDLES.get(source.kind, {}).get(handle, handle) or "output"
    if handle not in _handles(source):
        message = f"{source.kind} has no output {handle!r}"
        edge.drop("import-dangling", f"{message}: nothing leaves there")
        if len(_handles(source)) == 1:  # a step that does not choose may take any way
            target.node.lose(message, handle, f"{pointer}/sourceHandle", code="import-dangling")
    elif target.kind == "start":
        edge.drop("import-cycle", "it leads back to the start")
        target.node.lose("a step leads back to the start", source.id, pointer, code="import-cycle")
    elif (source.id, handle, target.id) in workflow.known_ways:
        edge.drop("import-changed", "the step after it runs once here, twice there")
    else:
        workflow.known_ways.add((source.id, handle, target.id))
        workflow.ways.append(Way(source.id, handle, target.id, edge))


def _handles(task: _Task) -> tuple[str, ...]:
    """Return the outputs of a step, of which it takes one."""
    match task.kind:
        case "if":
            count = len(_conditions(task.data))
            return (*(f"condition-{i}" for i in range(count)), "false")
        case "approval":
            return ("approve", "reject")
        case _:
            return _OUTPUT


def _stages(workflow: _Workflow) -> set[str]:
    """Return the steps that follow each other; a sub-agent is none, unless its engine refuses it."""
    return {key for way in workflow.ways for key in (way.source, way.target)}


def _check_subagents(workflow: _Workflow) -> None:
    """Find what its engine refuses of sub-agents, before it calls a model."""
    parents, staged = defaultdict[str, list[str]](list), _stages(workflow)
    for agent, sub, edge in list(workflow.delegations):
        source, target = workflow.tasks[agent], workflow.tasks[sub]
        for task, role in ((source, "has sub-agents"), (target, "is a sub-agent")):
            if task.kind != "agent":
                task.node.lose(f"it {role}, and is no agent", task.kind, edge.pointer)
        if agent == sub:
            workflow.delegations.remove((agent, sub, edge))
            edge.drop("import-cycle", "an agent cannot be a sub-agent of itself")
            source.node.lose("it is its own sub-agent", agent, edge.pointer, code="import-cycle")
            continue
        if object_of(source.data, "tools").get("subagents") is not True:
            source.node.lose(
                "it has sub-agents, and its tool Subagents is off", agent, edge.pointer
            )
        parents[sub].append(agent)
        if len(parents[sub]) > 1:
            names = " and ".join(parents[sub])
            target.node.lose(f"it is a sub-agent of several agents: {names}", names, edge.pointer)
        if sub in staged:
            message = "it is a sub-agent, and a step of the workflow too"
            target.node.lose(message, sub, edge.pointer)
    ends = [(agent, sub) for agent, sub, _ in workflow.delegations]
    for back in back_edges(list(workflow.tasks), ends):
        agent, sub, edge = workflow.delegations[back.number]
        circle = " → ".join(back.path)
        edge.drop("import-cycle", f"agents are sub-agents of each other: {circle}")
        for key in {agent, sub}:
            message = f"agents are sub-agents of each other: {circle}"
            workflow.tasks[key].node.lose(message, circle, edge.pointer, code="import-cycle")
    workflow.delegations = [each for each in workflow.delegations if each[2].outcome is None]


def _drop_what_never_ran(workflow: _Workflow, at: str) -> None:
    """Leave out the steps that no way from the start reaches, which never ran there."""
    starts = [task for task in workflow.tasks.values() if task.kind == "start"]
    if not starts:
        message = "it has no start, so it does not run there; here its first steps begin"
        workflow.conversion.note("import-changed", message, at)
        return
    following = defaultdict[str, list[str]](list)
    for source, _, target, _ in workflow.ways:
        following[source].append(target)
    for agent, sub, _ in workflow.delegations:
        following[agent].append(sub)
    reached, waiting = {starts[0].id}, [starts[0].id]
    while waiting:
        new = [key for key in following[waiting.pop()] if key not in reached]
        reached.update(new)
        waiting += new
    for task in list(workflow.tasks.values()):
        if task.id in reached or task.node.is_lost:
            continue
        is_start = task.kind == "start"
        why = (
            "only the first start begins there" if is_start else "no way from the start leads to it"
        )
        task.node.drop("import-ignored", f"it never runs: {why}")
        del workflow.tasks[task.id]
    _drop_edges_without_ends(workflow)


def _drop_edges_without_ends(workflow: _Workflow) -> None:
    message = "it leads from or to a step that never runs"
    for way in workflow.ways:
        if not {way.source, way.target} <= workflow.tasks.keys():
            way.edge.drop("import-ignored", message)
    for agent, sub, edge in workflow.delegations:
        if not {agent, sub} <= workflow.tasks.keys():
            edge.drop("import-ignored", message)
    workflow.ways = [way for way in workflow.ways if way.edge.outcome is None]
    workflow.delegations = [each for each in workflow.delegations if each[2].outcome is None]


def _note_joins(workflow: _Workflow) -> None:
    made = (each for way in workflow.ways for each in way.edge.edges)
    arriving = Counter((id(graph), edge["target"]) for graph, edge in made)
    for task in workflow.tasks.values():
        count = max((arriving[id(each.graph), each.id] for each in task.node.targets), default=0)
        if count > 1:
            task.node.change(
                f"{count} ways lead to it: it runs once here, when all of them are decided; there once for "
                "each that is taken"
            )


def _place(workflow: _Workflow, key: str, graph: GraphDraft) -> None:
    """Put a step into a graph, and the agents that it may call, which are not there yet."""
    if key in workflow.graphs or key not in workflow.tasks:
        return
    workflow.graphs[key] = graph
    task = workflow.tasks[key]
    made = _KINDS.get(task.kind)
    if made is None:
        task.node.becomes("placeholder", node_id=task.id, graph=graph)
        task.node.becomes_placeholder(f"steps of the type {task.kind!r} are skipped there")
    else:
        made(workflow, task, graph)
    for sub in workflow.called.get(key, ()):
        _place(workflow, sub, graph)


def _link(workflow: _Workflow, sub: _Task, agent: _Task, edge: SourceEdge) -> None:
    if workflow.graphs[sub.id] is not workflow.graphs[agent.id]:
        edge.drop("import-dangling", "the two agents are in different loops here")
        return
    edge.becomes(sub.node.target, agent.node.target, "tools-out", "tools", channel="link")


_AGENT_FIELDS: Final = frozenset(
    {"agentName", "systemPrompt", "userPrompt", "model", "reasoningEffort", "tools", "collapsed"}
)
"""What its engine reads of an agent, and how the editor shows it."""


def _start(workflow: _Workflow, task: _Task, graph: GraphDraft) -> None:
    given = task.data.get("initialInput")
    data = {"initialInput": given} if given not in (None, "") else {}
    task.node.becomes("start", data, node_id=task.id, graph=graph)
    if not any(way.source == task.id for way in workflow.ways):
        task.node.note("import-ignored", "nothing follows the start")


def _agent(workflow: _Workflow, task: _Task, graph: GraphDraft) -> None:
    given, node = task.data, task.node
    data: dict[str, Any] = {
        "provider": _PROVIDER,
        "model": text_of(given, "model") or _DEFAULT_MODEL,
        "systemPrompt": literal(_text(given.get("systemPrompt", _DEFAULT_SYSTEM))),
        "reasoningEffort": text_of(given, "reasoningEffort") or _DEFAULT_EFFORT,
    }
    if data["reasoningEffort"] not in _EFFORTS:
        effort = data.pop("reasoningEffort")
        pointer = f"{node.pointer}/data/reasoningEffort"
        node.change(f"models here have no effort {effort!r}", pointer)
    tools = {
        name: True
        for name in ("web_search", "subagents")
        if object_of(given, "tools").get(name) is True
    }
    for name in sorted(given.keys() - _AGENT_FIELDS):
        pointer = f"{node.pointer}/data/{pointer_part(name)}"
        node.change(f"its field {name!r} is not known here", pointer, code="import-ignored")
    if tools:
        data["tools"] = tools
    for name, is_on in object_of(given, "tools").items():
        if is_on and name not in ("web_search", "subagents"):
            pointer = f"{node.pointer}/data/tools/{pointer_part(name)}"
            node.change(f"its tool {name!r} is not known here", pointer, code="import-ignored")
    prompt = _text(given.get("userPrompt"))
    if any(sub == task.id for _, sub, _ in workflow.delegations):
        data["delegate"] = "exclusive"
        if _PREVIOUS.sub("", prompt).strip():
            message = "its prompt is not used: a sub-agent gets the task that its agent writes"
            node.note("import-ignored", message, f"{node.pointer}/data/userPrompt")
    elif prompt.strip():
        data["userPrompt"] = _template(prompt)
    else:
        node.change("its prompt is empty: what arrives is its prompt here")
        if all(way.target != task.id for way in workflow.ways):
            node.lose("its prompt is empty, and no step leads to it", "", node.pointer)
    target = node.becomes("agent", data, node_id=task.id, graph=graph)
    workflow.conversion.needs("provider", _PROVIDER, target)


def _if(workflow: _Workflow, task: _Task, graph: GraphDraft) -> None:
    conditions = [
        {"operator": operator, "value": literal(value)}
        for operator, value in _conditions(task.data)
    ]
    task.node.becomes("if", {"conditions": conditions}, node_id=task.id, graph=graph)


def _conditions(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return operator and value of each condition; of older files the one text that is contained."""
    written = list_of(data, "conditions")
    if not written:
        return [("contains", _text(data.get("condition")))]
    conditions: list[tuple[str, str]] = []
    for each in written:
        fields: Mapping[str, Any] = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        operator = "contains" if fields.get("operator") == "contains" else "equal"
        conditions.append((operator, _text(fields.get("value"))))
    return conditions


def _approval(workflow: _Workflow, task: _Task, graph: GraphDraft) -> None:
    question = _text(task.data.get("prompt"))
    data = {"prompt": literal(question if question.strip() else _DEFAULT_QUESTION)}
    task.node.becomes("approval", data | {"editable": False}, node_id=task.id, graph=graph)


def _end(workflow: _Workflow, task: _Task, graph: GraphDraft) -> None:
    task.node.becomes("end", node_id=task.id, graph=graph)
    if any(way.source == task.id for way in workflow.ways):
        task.node.lose("steps follow the end, which get an empty text there", task.id)


_KINDS: Final[Mapping[str, Callable[[_Workflow, _Task, GraphDraft], None]]] = {
    "start": _start,
    "agent": _agent,
    "if": _if,
    "approval": _approval,
    "end": _end,
}


def _template(prompt: str) -> str:
    """Return a prompt as a template in which the previous output is the only thing that is replaced."""
    pieces: Iterable[str] = _PREVIOUS.split(prompt)
    return "{{ PREVIOUS_OUTPUT }}".join(map(literal, pieces))


def _text(value: Any) -> str:
    """Return a value as its engine writes it into a text."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
