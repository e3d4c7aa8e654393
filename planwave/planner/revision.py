"""The change of a plan in words: the request to the model, and its reply read as operations.

A reply has operations in the spelling of a plan (``revision.j2``). They are applied to the plan one
after the other and the result is checked, so that the model gets all errors at once. What plans may never
contain holds for all that a reply adds or changes; what people wrote before is theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planwave.errors import InvalidOperation
from planwave.expressions import escape_templates, has_template
from planwave.graph.checking.checker import check, read_and_check
from planwave.graph.diagnostics import Diagnostic, errors_in, limit_exceeded, sorted_by_location
from planwave.graph.editing import revision as running
from planwave.graph.editing.editor import apply_operations
from planwave.graph.json_values import pointer_part
from planwave.graph.model import Edge, Graph, Json, Node
from planwave.graph.operations import (
    AddEdge,
    AddNode,
    Operation,
    RemoveEdge,
    RemoveNode,
    Rename,
    SetTitle,
    UpdateNode,
)
from planwave.graph.plan import graph_hash
from planwave.graph.subgraphs import all_nodes, subgraphs_of
from planwave.planner.graph_builder import build_graph
from planwave.planner.plan_check import FIELD_CODE, PlanCheck
from planwave.planner.reply_parser import ParseContext, read_document
from planwave.planner.reply_schema import ReplyEdge, ReplyNode, ReplyPlan, pointer_of
from planwave.planner.revised_plan import RevisedPlan, RevisionReading
from planwave.prompts.render import revise_prompt
from planwave.settings import Limits
from planwave.validation import describe_error

_SHOWN_CHARS: Final = 2_000
"""The characters of a text of the plan that the model is shown."""


def revision_prompt(plan: RevisedPlan, words: str) -> str:
    """Return the user prompt of a change."""
    shown = {
        "title": plan.content.title,
        "nodes": [
            {**_shown_node(node), **_shown_progress(plan, node.id)} for node in plan.graph.nodes
        ],
        "edges": [_shown_edge(edge) for edge in plan.graph.edges],
    }
    text = json.dumps(shown, ensure_ascii=False)
    progress = plan.progress if not plan.has_ended else None
    return revise_prompt(
        plan.goal,
        text,
        words,
        is_running=progress is not None,
        has_ended=plan.has_ended,
        used_ids=() if progress is None else progress.used,
    )


def _shown_node(node: Node) -> dict[str, Json]:
    fields = {"id": node.id, "name": node.name, "type": node.type}
    return {**fields, "description": _shown(node.description), "data": _shown(dict(node.data))}


def _shown_progress(plan: RevisedPlan, node_id: str) -> dict[str, Json]:
    """Return how far a node has come and the begin of what it gave, where the plan is being run."""
    if plan.progress is None:
        return {}
    status = plan.progress.begun.get(node_id)
    shown: dict[str, Json] = {"state": "not begun" if status is None else status}
    if node_id in plan.results:
        shown["result"] = plan.results[node_id]
    return shown


def _shown_edge(edge: Edge) -> dict[str, Json]:
    return {
        "source": edge.source, "source_handle": edge.source_handle, "target": edge.target,
        "target_handle": edge.target_handle, "channel": edge.channel,
    }  # fmt: skip


def _shown(value: Json) -> Json:
    """Return a value with its long texts cut."""
    if isinstance(value, str):
        return value if len(value) <= _SHOWN_CHARS else f"{value[:_SHOWN_CHARS]}…"
    if isinstance(value, list):
        return [_shown(each) for each in cast("list[Json]", value)]
    if isinstance(value, dict):
        return {name: _shown(each) for name, each in cast("dict[str, Json]", value).items()}
    return value


# -- the shape of a reply ---------------------------------------------------------------------------


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _AddNode(_Model):
    op: Literal["add_node"]
    node: ReplyNode


class _NodeFields(_Model):
    name: str | None = None
    description: str | None = None
    type: str | None = None
    provider: str | None = None
    model: str | None = None
    data: dict[str, Any] | None = None


class _UpdateNode(_Model):
    op: Literal["update_node"]
    id: str
    set: _NodeFields


class _RemoveNode(_Model):
    op: Literal["remove_node"]
    id: str


class _AddEdge(_Model):
    op: Literal["add_edge"]
    edge: ReplyEdge


class _RemoveEdge(_Model):
    op: Literal["remove_edge"]
    source: str
    target: str
    source_handle: str | None = None
    target_handle: str | None = None


class _Rename(_Model):
    op: Literal["rename"]
    id: str
    to: str


class _SetTitle(_Model):
    op: Literal["set_title"]
    title: str


_Written = _AddNode | _UpdateNode | _RemoveNode | _AddEdge | _RemoveEdge | _Rename | _SetTitle


class _Operation(BaseModel):
    """Reads one operation by its name."""

    model_config = ConfigDict(extra="forbid")
    written: _Written = Field(discriminator="op")


def read_revision(
    plan: RevisedPlan, context: ParseContext, reply: str, finish_reason: str = "stop"
) -> RevisionReading:
    """Read one reply; see ``RevisionReading``.

    Args:
        plan: The plan that it changes.
        context: The node types and providers that it may name, and the limits.
        reply: What the model wrote.
        finish_reason: ``length`` where the model was cut off.
    """
    document = read_document(reply, context.limits, finish_reason)
    if document.error is not None:
        return RevisionReading(document.reply, diagnostics=document.findings)
    written, findings = _parse(document.value, context.limits)
    if findings or document.findings:
        return RevisionReading(document.reply, diagnostics=[*document.findings, *findings])
    reading = _Reviser(plan, context).read(written.operations)
    return reading._replace(reply=document.reply, answer=written.answer.strip())


class _WrittenReply(NamedTuple):
    answer: str
    operations: Sequence[_Written]


def _parse(value: Json, limits: Limits | None) -> tuple[_WrittenReply, list[Diagnostic]]:
    """Return the operations of a reply, with a diagnostic for each difference from their shape."""
    fields = cast("dict[str, Json]", value) if isinstance(value, dict) else {}
    listed = fields.get("operations")
    if not isinstance(listed, list) or fields.keys() - {"answer", "operations"}:
        message = "the reply must be an object with answer and operations, and nothing else"
        return _WrittenReply("", ()), [Diagnostic("invalid-field", "error", message)]
    listed = cast("list[Json]", listed)
    if limits is not None and len(listed) > limits.plan_operations:
        finding = limit_exceeded(
            "plan_operations", limits.plan_operations, len(listed), "the operations",
            "/operations", hint="write fewer operations",
        )  # fmt: skip
        return _WrittenReply("", ()), [finding]
    answer = fields.get("answer")
    read: list[_Written] = []
    findings: list[Diagnostic] = []
    for number, each in enumerate(listed):
        try:
            read.append(_Operation.model_validate({"written": each}).written)
        except ValidationError as error:
            findings += _shape_errors(error, number)
    return _WrittenReply(answer if isinstance(answer, str) else "", read), findings


def _shape_errors(error: ValidationError, number: int) -> Iterator[Diagnostic]:
    for each in error.errors(include_url=False):
        # The location begins with the field that holds the operation, and its name.
        pointer = f"/operations/{number}" + pointer_of(each["loc"][2:])
        yield Diagnostic(
            "invalid-field", "error", describe_error(pointer, cast("Any", each)), pointer
        )


# -- operations -------------------------------------------------------------------------------------


class _Reviser:
    """Applies the operations of one reply to a plan."""

    def __init__(self, plan: RevisedPlan, context: ParseContext) -> None:
        self._before, self._context = plan, context
        self._content = plan.content
        self._operations: list[Operation] = []
        self._findings: list[Diagnostic] = []
        self._renaming = _Renaming(plan.graph)

    def read(self, written: Sequence[_Written]) -> RevisionReading:
        """Return the operations with the graph that they make."""
        for number, each in enumerate(written):
            self._apply(each, f"/operations/{number}")
        if not self._operations or errors_in(self._findings):
            return RevisionReading("", operations=(), diagnostics=self._findings)
        context, content = self._context, self._content
        graph, findings = read_and_check(dict(content.graph), context.catalogue, context.limits)
        found = [*self._findings, *findings]
        if graph is not None:
            before = self._with_present_ids(graph)
            if errors_in(findings):
                known = check(before, context.catalogue, context.limits)
                found = [*self._findings, *_new_findings(findings, known, before, graph)]
            may = PlanCheck(context.catalogue, context.rules, context.node_types)
            found += revision_findings(may, before, graph)
            found += self._too_large(graph)
            found += self._begun_findings(graph)
        found = sorted_by_location(found)
        if errors_in(found) or graph is None:
            return RevisionReading("", diagnostics=found)
        if (graph_hash(graph), content.title) == (
            graph_hash(self._before.graph),
            self._before.content.title,
        ):
            return RevisionReading("")
        return RevisionReading("", "", self._operations, content, graph, found)

    def _begun_findings(self, graph: Graph) -> list[Diagnostic]:
        """Return what of a plan that is being run would change although it has begun."""
        progress = self._before.progress
        if progress is None or self._before.has_ended:
            return []
        before, catalogue = self._before.graph, self._context.catalogue
        found = running.revision_findings(before, graph, progress, catalogue)
        return [each for each in found if each.code != running.NOTHING_CHANGED]

    def _with_present_ids(self, after: Graph) -> Graph:
        """Return the graph before with the ids that its nodes have now."""
        renames = self._renaming.renames(after)
        if not renames:
            return self._before.graph
        catalogue = self._context.catalogue
        content = apply_operations(self._before.content, renames, catalogue)
        return read_and_check(dict(content.graph), catalogue)[0] or self._before.graph

    def _too_large(self, graph: Graph) -> list[Diagnostic]:
        limits = self._context.limits
        if limits is None:
            return []
        counts = [
            sum(1 for _ in all_nodes(each, self._context.catalogue))
            for each in (self._before.graph, graph)
        ]
        if counts[1] <= max(limits.plan_nodes, counts[0]):
            return []
        what, hint = "the nodes, with those in graphs inside nodes", "add fewer nodes"
        return [
            limit_exceeded("plan_nodes", limits.plan_nodes, counts[1], what, "/nodes", hint=hint)
        ]

    def _apply(self, written: _Written, pointer: str) -> None:
        for operation in self._operations_of(written, pointer):
            try:
                self._content = apply_operations(
                    self._content, [operation], self._context.catalogue
                )
            except InvalidOperation as error:
                self._findings += [
                    replace(each, pointer=pointer + each.pointer.removeprefix("/operations/0"))
                    for each in cast("Sequence[Diagnostic]", error.diagnostics)
                ]
            else:
                self._operations.append(operation)
                if isinstance(operation, Rename):
                    self._renaming.follow(operation)

    def _operations_of(self, written: _Written, pointer: str) -> Sequence[Operation]:
        match written:
            case _AddNode(node=node):
                document = self._drafted(ReplyPlan(nodes=[node], edges=[]), pointer)
                edges = map(AddEdge, document["edges"])
                return [*map(AddNode, document["nodes"]), *edges]
            case _UpdateNode(id=node_id, set=fields):
                return self._update(node_id, fields, pointer)
            case _RemoveNode(id=node_id):
                return [RemoveNode(node_id)]
            case _AddEdge(edge=edge):
                document = self._drafted(ReplyPlan(nodes=[], edges=[edge]), pointer)
                return [*map(AddEdge, document["edges"])]
            case _RemoveEdge():
                return self._remove_edge(written, pointer)
            case _Rename(id=node_id, to=new_id):
                return [Rename(node_id, new_id)]
            case _SetTitle(title=title):
                # A run keeps its title, whatever becomes of its graph.
                return [SetTitle(title)] if self._before.progress is None else ()

    def _drafted(self, plan: ReplyPlan, pointer: str) -> dict[str, Any]:
        """Return the document of the one node, with its edges, or of the one edge; without errors."""
        context = self._context
        nodes = self._content.graph["nodes"]
        present = {str(each.get("id")): str(each.get("type")) for each in nodes}
        draft = build_graph(
            plan,
            context.catalogue,
            context.providers,
            context.defaults,
            context.node_types,
            present,
        )
        self._findings += [
            replace(each, pointer=pointer + each.pointer) for each in draft.diagnostics
        ]
        return {"nodes": [], "edges": []} if errors_in(draft.diagnostics) else draft.document

    def _update(self, node_id: str, fields: _NodeFields, pointer: str) -> Sequence[Operation]:
        """Return the change of a node: only of what the reply names, spelt as in a plan."""
        present = next((n for n in self._content.graph["nodes"] if n.get("id") == node_id), None)
        if present is None:
            return [UpdateNode(node_id, {})]  # refused where it is applied
        given = fields.model_dump(exclude_none=True)
        node = ReplyNode.model_validate({"id": node_id, "type": present["type"], **given})
        drafted = self._drafted(ReplyPlan(nodes=[node], edges=[]), pointer)["nodes"]
        if not drafted:
            return ()
        (document,) = drafted
        changes = {name: document[name] for name in ("name", "type") if name in given}
        if "description" in given:
            task = given["description"]
            is_template = has_template(str(present.get("description") or ""))
            changes["description"] = task if is_template else escape_templates(task)
        named = {*given.get("data", {}), *({"provider", "model"} & given.keys())}
        if given.get("type", present["type"]) != present["type"]:
            named |= document["data"].keys()
        if data := {name: document["data"].get(name) for name in named}:
            changes["data"] = data
        return [UpdateNode(node_id, changes)]

    def _remove_edge(self, written: _RemoveEdge, pointer: str) -> Sequence[Operation]:
        for edge in self._content.graph["edges"]:
            if (edge.get("source"), edge.get("target")) == (written.source, written.target) and (
                written.source_handle in (None, edge.get("sourceHandle"))
                and written.target_handle in (None, edge.get("targetHandle"))
            ):
                return [RemoveEdge(edge["id"])]
        message = f"there is no edge {written.source!r} -> {written.target!r}"
        self._findings.append(Diagnostic("unknown-edge", "error", message, pointer))
        return ()


class _Renaming:
    """The renames of a reply, so that they can be made in the graph before, too."""

    def __init__(self, before: Graph) -> None:
        self._operations: list[Operation] = []
        self._first = {node_id: node_id for node_id in before.by_id}
        """The ids of before, by the ids that the nodes have with the operations."""

    def follow(self, rename: Rename) -> None:
        if rename.id not in self._first or rename.id == rename.to:
            return
        if rename.to in self._first:  # the reply removed that node
            self._operations.append(RemoveNode(rename.to))
        self._operations.append(rename)
        self._first[rename.to] = self._first.pop(rename.id)

    def renames(self, after: Graph) -> list[Operation]:
        """Return the operations; a node that is gone stands for a new one that has its first id."""
        back = [
            Rename(now, first)
            for now, first in self._first.items()
            if now not in after.by_id and first in after.by_id and first not in self._first
        ]
        return [*self._operations, *back]


def revision_findings(may: PlanCheck, before: Graph, after: Graph) -> list[Diagnostic]:
    """Return what a change by a model may not contain; what it leaves as it was is not judged.

    What people set and no plan may set can be neither changed nor taken away.

    Args:
        may: What plans may contain.
        before: The graph that was changed; a node of it is the one of the same id afterwards.
        after: The changed graph.
    """
    edges = {each.id: each for each in after.edges}
    ends = {_ends(each) for each in before.edges}
    found: list[Diagnostic] = []
    for each in may.findings(after):
        edge = edges.get(each.edge or "")
        if (edge is None or _ends(edge) in ends) and _is_kept(each, before, after):
            continue
        found.append(each)
    found += _closed_edges_taken_away(may, before, after)
    places = {(each.node, each.pointer) for each in found}
    for number, node in enumerate(after.nodes):
        then = before.by_id.get(node.id)
        for each in () if then is None else _taken_away(may, then, node):
            pointer = f"/nodes/{number}{each.pointer}"
            if (node.id, pointer) not in places:
                found.append(replace(each, pointer=pointer, node=node.id))
    return found


def _new_findings(
    found: Sequence[Diagnostic], known: Sequence[Diagnostic], before: Graph, after: Graph
) -> Iterator[Diagnostic]:
    """Yield the findings without the errors that the graph had before and the change does not touch."""
    messages: dict[tuple[str | None, ...], set[str]] = {}
    for each in known:
        messages.setdefault(_place(each), set()).add(each.message)
    for each in found:
        at = messages.get(_place(each))
        is_same = at is not None and (each.edge is None and _is_kept(each, before, after))
        if at is not None and not (each.edge is None and "/data/" in each.pointer):
            is_same = is_same or each.message in at
        if each.severity != "error" or not is_same:
            yield each


def _place(finding: Diagnostic) -> tuple[str | None, ...]:
    return finding.code, finding.node, finding.edge, *finding.pointer.split("/", 3)[3:]


def _is_kept(finding: Diagnostic, before: Graph, after: Graph) -> bool:
    """Return whether a finding is about a node, or a field of its data, that was not changed."""
    then, now = before.by_id.get(finding.node or ""), after.by_id.get(finding.node or "")
    if then is None or now is None or then.type != now.type:
        return False
    if then.data == now.data:
        return True
    _, _, field = finding.pointer.partition("/data/")
    name = field.split("/")[0].replace("~1", "/").replace("~0", "~")
    return bool(name) and name in then.data and then.data[name] == now.data.get(name)


def _ends(edge: Edge) -> tuple[str, ...]:
    return edge.source, edge.source_handle, edge.target, edge.target_handle, edge.channel


def _taken_away(may: PlanCheck, then: Node, now: Node) -> Iterator[Diagnostic]:
    """Yield what people set of a node and it has no longer, also in the graphs inside it."""
    before, after = may.set_by_people(then), may.set_by_people(now)
    gone = [name for name in before if name not in after or after[name] != before[name]]
    if before and then.type != now.type:
        yield _kept_by_people(then, f"has data.{next(iter(before))} and keeps its type", "/type")
    for name in gone:
        yield _kept_by_people(
            then, f"keeps data.{name}", f"/data/{pointer_part(name.split('.')[0])}"
        )
    if then.policy != now.policy:
        yield _kept_by_people(then, "keeps its policy", "/policy")
    inside = {each.id: each for graph in subgraphs_of(now, may.catalogue) for each in graph.nodes}
    for graph in subgraphs_of(then, may.catalogue):
        for node in graph.nodes:
            if node.id in inside:
                for each in _taken_away(may, node, inside[node.id]):
                    message = f"in node {then.id!r}: {each.message}"
                    yield replace(each, message=message, pointer="/data")


def _closed_edges_taken_away(may: PlanCheck, before: Graph, after: Graph) -> Iterator[Diagnostic]:
    """Yield the edges of people into closed sockets that are gone from nodes that are still there."""
    present = {_ends(each) for each in after.edges}
    for edge in before.edges:
        node = before.by_id[edge.target] if edge.target in after.by_id else None
        facts = None if node is None else may.catalogue.type_info(node.type)
        if node is None or facts is None or _ends(edge) in present:
            continue
        if (edge.channel, edge.target_handle) in facts.closed_sockets:
            yield _kept_by_people(node, f"keeps the edge into {edge.target_handle!r}", "/edges")


def _kept_by_people(node: Node, what: str, pointer: str) -> Diagnostic:
    message = f"node {node.id!r} {what}: people set that, and no plan may take it away"
    hint = "leave it as it is; change it by update_node, with the fields that a plan may set alone"
    return Diagnostic(FIELD_CODE, "error", message, pointer, node.id, hint=hint)
