"""Apply operations to the title and the graph of a plan.

They work on documents, because a plan may be edited while parts of its graph cannot be read. An
operation is refused if it cannot be applied (an unknown id), or if what it adds does not have the form
of a node or an edge (a node without a type). Everything else that is wrong, such as a cycle or an
unknown handle, is for the check to report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, assert_never, cast

from planwave.errors import InvalidOperation
from planwave.expressions import has_template
from planwave.expressions.renaming import (
    may_name_any_node,
    rename_in_expression,
    rename_in_template,
)
from planwave.graph.diagnostics import Diagnostic, short_repr
from planwave.graph.editing.forms import EDGES, NODES, check_operations, form_errors, with_channel
from planwave.graph.editing.merge_patch import apply_merge_patch
from planwave.graph.model import Json
from planwave.graph.operations import (
    AddEdge,
    AddNode,
    Operation,
    RemoveEdge,
    RemoveNode,
    Rename,
    ReplaceGraph,
    SetGoal,
    SetTitle,
    UpdateNode,
)
from planwave.graph.protocols import NodeTypeInfo, NodeTypes, SourceKeys
from planwave.graph.reading.documents import unused_edge_ids

_UNKNOWN: Final = {NODES: "unknown-node", EDGES: "unknown-edge"}
_Item: TypeAlias = "dict[str, Json]"
_Renaming: TypeAlias = Callable[[str, Mapping[str, str]], str]

_CHANGES_NODES: Final = (AddNode, UpdateNode, ReplaceGraph)
"""Operations before which the references to renamed nodes have to be changed."""


class PlanContent(NamedTuple):
    """What operations change: the title of a plan and its graph document, with lists of objects.

    ``findings`` are warnings of a change: what a rename could not follow; ``goal`` is the new goal,
    None where it stays.
    """

    title: str
    graph: Mapping[str, Json]
    findings: tuple[Diagnostic, ...] = ()
    goal: str | None = None


def apply_operations(
    content: PlanContent, operations: Sequence[Operation], catalogue: NodeTypes
) -> PlanContent:
    """Return a plan's content with all operations applied, in order; the argument is not changed.

    Args:
        content: The title and the graph.
        operations: The changes; each sees the result of those before it.
        catalogue: The node types, which say where expressions are.

    Raises:
        InvalidOperation: Operations have errors of form, all of which are reported, or one cannot be
            applied; the first such one is reported.
    """
    check_operations(operations)
    editor = _Editor(content, catalogue)
    for number, operation in enumerate(operations):
        if isinstance(operation, _CHANGES_NODES):
            editor.rename_references()
        editor.apply(operation, f"/operations/{number}")
    editor.rename_references()
    graph = {NODES: editor.nodes, EDGES: editor.edges}
    return PlanContent(editor.title, graph, editor.findings(), editor.goal)


def keep_ui(graph: Mapping[str, Json], present: Mapping[str, Json]) -> dict[str, Json]:
    """Return a graph in which nodes without ``ui`` have that of the nodes of the same id."""
    ui_by_id = {node.get("id"): node["ui"] for node in present[NODES] if "ui" in node}
    nodes: list[_Item] = [
        {**node, "ui": ui_by_id[node["id"]]}
        if "ui" not in node and node["id"] in ui_by_id
        else node
        for node in graph[NODES]
    ]
    return {**graph, NODES: nodes}


class _Editor:
    """A title and a graph under change; lists are copied, their objects are replaced.

    Reading templates is slow, so consecutive renames change the expressions together: before an
    operation that changes nodes in another way, and at the end.
    """

    def __init__(self, content: PlanContent, catalogue: NodeTypes) -> None:
        self.title, self.goal = content.title, content.goal
        self.nodes: list[_Item] = [*content.graph[NODES]]
        self.edges: list[_Item] = [*content.graph[EDGES]]
        self._catalogue = catalogue
        self._new_ids: dict[str, str] = {}
        self._renamed: dict[str, str] = {}

    def apply(self, operation: Operation, pointer: str) -> None:
        match operation:
            case AddNode(node):
                self._require_unused(NODES, node["id"], f"{pointer}/node/id")
                self.nodes.append(dict(node))
            case UpdateNode(node_id, changes):
                self._update_node(node_id, changes, pointer)
            case RemoveNode(node_id):
                del self.nodes[self._index(NODES, node_id, f"{pointer}/id")]
                self.edges = [edge for edge in self.edges if node_id not in _ends(edge)]
            case AddEdge(edge):
                self._add_edge(edge, f"{pointer}/edge")
            case RemoveEdge(edge_id):
                del self.edges[self._index(EDGES, edge_id, f"{pointer}/id")]
            case Rename(node_id, new_id):
                self._rename(node_id, new_id, pointer)
            case SetTitle(title):
                self.title = title.strip()
            case SetGoal(goal):
                self.goal = goal
            case ReplaceGraph(graph):
                self.nodes = keep_ui(graph, {NODES: self.nodes})[NODES]
                self.edges = _with_ids(graph[EDGES], [])
            case _:
                assert_never(operation)

    def _update_node(self, node_id: str, changes: Mapping[str, Json], pointer: str) -> None:
        at = self._index(NODES, node_id, f"{pointer}/id")
        node = apply_merge_patch(self.nodes[at], changes)
        if errors := form_errors(NODES, node, f"{pointer}/set"):
            raise InvalidOperation(errors)
        self.nodes[at] = node

    def _add_edge(self, edge: Mapping[str, Json], pointer: str) -> None:
        if edge.get("id") is not None:
            self._require_unused(EDGES, edge["id"], f"{pointer}/id")
        self.edges += _with_ids([with_channel(edge)], self.edges)

    def _rename(self, node_id: str, new_id: str, pointer: str) -> None:
        at = self._index(NODES, node_id, f"{pointer}/id")
        if new_id == node_id:
            return
        self._require_unused(NODES, new_id, f"{pointer}/to")
        self._keep_keys(node_id, new_id)
        self._renamed[node_id] = new_id
        self.edges = [_with_renamed_ends(edge, node_id, new_id) for edge in self.edges]
        self.nodes[at] = {**self.nodes[at], "id": new_id}
        if self.nodes[at].get("name") == node_id:  # the name that a node without one gets
            self.nodes[at]["name"] = new_id
        for old, latest in self._new_ids.items():
            if latest == node_id:
                self._new_ids[old] = new_id
        self._new_ids.setdefault(node_id, new_id)

    def _keep_keys(self, node_id: str, new_id: str) -> None:
        """Let the nodes after a renamed one, whose values have ids as keys, keep the old key."""
        after = {edge.get("target") for edge in self.edges if edge.get("source") == node_id}
        for at, node in enumerate(self.nodes):
            info = _info_of(node, self._catalogue) if node.get("id") in after else None
            keys = None if info is None else info.source_keys
            if keys is not None and self._has_keys(node, keys):
                self.nodes[at] = _with_kept_key(node, keys.field, node_id, new_id)

    def _has_keys(self, node: _Item, keys: SourceKeys) -> bool:
        """Return whether ids are keys in the value of a node, as far as its data tell."""
        data = node.get("data")
        written = cast("_Item", data) if isinstance(data, dict) else {}
        if not keys.when or written.get(keys.when) == keys.equals:
            return True
        wire = node.get("id"), keys.when
        return any((edge.get("target"), edge.get("targetHandle")) == wire for edge in self.edges)

    def findings(self) -> tuple[Diagnostic, ...]:
        """Return warnings of expressions that may name a renamed node in a way that is not followed."""
        if not self._renamed:
            return ()
        return tuple(
            Diagnostic(
                "renamed-node",
                "warning",
                f"data.{field} computes which node it names, and may mean one that is renamed: "
                + ", ".join(f"{old!r} is now {new!r}" for old, new in self._renamed.items()),
                f"/{NODES}/{at}/data/{field}",
                str(node.get("id")),
                hint="see whether it still names the right node",
            )
            for at, node in enumerate(self.nodes)
            for field, value, is_expression in _expressions_of(node, self._catalogue)
            if _may_name_any_node(value, is_expression)
        )

    def rename_references(self) -> None:
        """Change the expressions of all nodes after the renames since the last call."""
        new_ids, self._new_ids = self._new_ids, {}
        if new_ids:
            self.nodes = [
                _with_renamed_references(node, new_ids, self._catalogue) for node in self.nodes
            ]

    def _index(self, kind: str, own_id: str, pointer: str) -> int:
        """Return the position of the node or edge with an id.

        Raises:
            InvalidOperation: There is none, or several have this id.
        """
        items = self.nodes if kind == NODES else self.edges
        positions = [at for at, item in enumerate(items) if item.get("id") == own_id]
        if len(positions) == 1:
            return positions[0]
        what = kind[:-1]
        if positions:
            message = f"{len(positions)} {kind} have the id {short_repr(own_id)}"
            hint = "give each its own id with the operation replace_graph"
            raise _invalid("duplicate-id", message, pointer, hint=hint)
        some = ", ".join(short_repr(item.get("id")) for item in items[:8])
        more = ", …" if len(items) > 8 else ""
        hint = f"its {kind} are {some}{more}" if items else f"the graph has no {kind}"
        raise _invalid(_UNKNOWN[kind], f"there is no {what} {short_repr(own_id)}", pointer,
                       hint=hint)  # fmt: skip

    def _require_unused(self, kind: str, own_id: str, pointer: str) -> None:
        items = self.nodes if kind == NODES else self.edges
        if any(item.get("id") == own_id for item in items):
            message = f"there is a {kind[:-1]} {short_repr(own_id)} already"
            raise _invalid("duplicate-id", message, pointer, hint="choose another id")


def _ends(edge: Mapping[str, Json]) -> tuple[Json, Json]:
    return edge.get("source"), edge.get("target")


def _with_renamed_ends(edge: _Item, old: str, new: str) -> _Item:
    renamed = {end: new for end in ("source", "target") if edge.get(end) == old}
    return {**edge, **renamed} if renamed else edge


def _with_ids(edges: Sequence[Mapping[str, Json]], others: Sequence[_Item]) -> list[_Item]:
    """Return copies of edges; those without an id get one that no edge has."""
    unused = unused_edge_ids({str(edge.get("id")) for edge in (*edges, *others)})
    return [
        {"id": next(unused), **{k: v for k, v in edge.items() if k != "id"}}
        if edge.get("id") is None
        else dict(edge)
        for edge in edges
    ]


def _invalid(code: str, message: str, pointer: str, *, hint: str | None = None) -> InvalidOperation:
    return InvalidOperation([Diagnostic(code, "error", message, pointer, hint=hint)])


def _with_renamed_references(
    node: _Item, new_ids: Mapping[str, str], catalogue: NodeTypes
) -> _Item:
    """Return a node whose expressions name other nodes by their new ids.

    A graph nested in the node is unchanged: its expressions name the nodes of that graph.
    """
    renamed: dict[str, Json] = {}
    for name, value, is_expression in _expressions_of(node, catalogue):
        rename = _rename_in_expression_field if is_expression else rename_in_template
        renamed[name] = _map_texts(value, rename, new_ids)
    return {**node, "data": {**cast("_Item", node["data"]), **renamed}} if renamed else node


def _expressions_of(node: _Item, catalogue: NodeTypes) -> Iterator[tuple[str, Json, bool]]:
    """Yield name and value of the data fields with expressions, and whether they are one without braces."""
    data, info = node.get("data"), _info_of(node, catalogue)
    for name, value in cast("_Item", data).items() if isinstance(data, dict) else ():
        is_expression = info is not None and name in info.expression_fields
        if is_expression or info is None or _has_templates(name, info):
            yield name, value, is_expression


def _info_of(node: _Item, catalogue: NodeTypes) -> NodeTypeInfo | None:
    kind = node.get("type")
    return catalogue.type_info(kind) if isinstance(kind, str) else None


def _with_kept_key(node: _Item, field: str, old: str, new: str) -> _Item:
    """Return a node that gives the value of a renamed source the key that it had."""
    data = cast("_Item", node["data"]) if isinstance(node.get("data"), dict) else {}
    written = data.get(field)
    keys = dict(cast("_Item", written)) if isinstance(written, dict) else {}
    keys[new] = keys.pop(old, old)
    if keys[new] == new:
        del keys[new]
    others = {name: value for name, value in data.items() if name != field}
    return {**node, "data": {**others, field: keys} if keys else others}


def _may_name_any_node(value: Json, is_expression: bool) -> bool:
    if isinstance(value, str):
        is_bare = is_expression and not has_template(value)
        return may_name_any_node(f"{{{{{value}}}}}" if is_bare else value)
    inside: Iterable[Json] = ()
    if isinstance(value, list):
        inside = cast("list[Json]", value)
    elif isinstance(value, dict):
        inside = cast("_Item", value).values()
    return any(_may_name_any_node(each, is_expression) for each in inside)


def _has_templates(field: str, info: NodeTypeInfo) -> bool:
    is_template = info.template_fields is None or field in info.template_fields
    return is_template and field not in info.graph_fields


def _rename_in_expression_field(text: str, new_ids: Mapping[str, str]) -> str:
    rename = rename_in_template if has_template(text) else rename_in_expression
    return rename(text, new_ids)


def _map_texts(value: Json, rename: _Renaming, new_ids: Mapping[str, str]) -> Json:
    """Return a JSON value with every text in it changed; nesting is limited by the reader."""
    if isinstance(value, str):
        return rename(value, new_ids)
    if isinstance(value, list):
        return [_map_texts(each, rename, new_ids) for each in cast("list[Json]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Json]", value)
        return {name: _map_texts(each, rename, new_ids) for name, each in fields.items()}
    return value
