"""A graph as a Python program with ``planwave.GraphBuilder`` that makes the same graph, hash included.

A part that the builder would write in another way, such as a graph inside a node that leaves out fields, is
written as it stands in the document: the same graph comes before a pretty program.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from planwave.graph.keywords import data_name, handle_name, python_name
from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    FLOW,
    Graph,
    Json,
    is_id,
)
from planwave.graph.ports import connection, find_port
from planwave.graph.protocols import NodeTypeInfo, NodeTypes
from planwave.graph.reading.policy import read_policy
from planwave.interop.exporting.drawing import one_line
from planwave.interop.exporting.python_literals import MAX_LINE, literal, text_literal

_RESERVED: Final = frozenset({"planwave", "graph", "print", "self"})
_PARAMETERS: Final = frozenset({"id", "name", "description", "data", "policy", "ui", "edges"})
"""Names of ``GraphBuilder.node`` that cannot be keywords for data fields or inputs."""
_NODE_FIELDS: Final = frozenset({"id", "type", "name", "description", "data", "policy", "ui"})
_EDGE_FIELDS: Final = frozenset(
    {"id", "source", "sourceHandle", "target", "targetHandle", "data", "type"}
)
_STEP: Final = "    "
_Document = Mapping[str, Any]


def python_code(graph: Graph, types: NodeTypes, title: str = "") -> str:
    """Return a program that makes a graph, and runs it where it is started as a script.

    Its variable ``graph`` is a ``GraphBuilder``, or the document where no builder makes it.

    Args:
        graph: The graph.
        types: The node types.
        title: What runs of the graph are called; "" for none.
    """
    document = graph.to_document()
    heading = one_line(title) or "A graph"
    lines = [f'"""{_docstring(heading)}"""', "", "import planwave", ""]
    writer = _Writer(types)
    if _is_buildable(document, types):
        lines += writer.builder("graph", document, title)
    else:
        lines.append(f"graph = {literal(document, taken=8)}")
    lines += ["", 'if __name__ == "__main__":', f"{_STEP}print(planwave.run_sync(graph).text)", ""]
    return "\n".join(lines)


def _docstring(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f"{escaped}, made with planwave."


def _is_buildable(document: _Document, types: NodeTypes) -> bool:
    """Return whether the calls of a builder make exactly this document."""
    nodes, edges = _objects(document.get("nodes")), _objects(document.get("edges"))
    if nodes is None or edges is None or len(document) > len(("nodes", "edges")):
        return False
    ids = [node.get("id") for node in nodes]
    return (
        len(set(map(str, ids))) == len(ids)
        and all(_is_buildable_node(node, types) for node in nodes)
        and all(_is_buildable_edge(edge, ids) for edge in edges)
        and _are_unique([edge["id"] for edge in edges])
        and _are_unique([_ends(edge) for edge in edges])
    )


def _objects(value: Json) -> Sequence[_Document] | None:
    if not isinstance(value, list):
        return None
    items = cast("list[Json]", value)
    return items if all(isinstance(each, dict) for each in items) else None


def _are_unique(values: Sequence[object]) -> bool:
    return len(set(values)) == len(values)


def _is_buildable_node(node: _Document, types: NodeTypes) -> bool:
    if not node.keys() <= _NODE_FIELDS or None in node.values():
        return False
    node_id, node_type = node.get("id"), node.get("type")
    if not isinstance(node_id, str) or not is_id(node_id) or not isinstance(node_type, str):
        return False
    if not all(isinstance(node.get(field, ""), str) for field in ("name", "description")):
        return False
    if not all(isinstance(node.get(field, {}), dict) for field in ("data", "policy", "ui")):
        return False
    facts = types.type_info(node_type)
    if "policy" not in node:
        return facts is None or not facts.policy
    return not read_policy(node["policy"], "")[1]


def _is_buildable_edge(edge: _Document, ids: Sequence[Json]) -> bool:
    named = [edge.get(field) for field in ("id", "sourceHandle", "targetHandle")]
    data = edge.get("data")
    return (
        edge.keys() <= _EDGE_FIELDS
        and all(isinstance(each, str) and each for each in named)
        and is_id(str(edge["id"])) is not None
        and edge.get("source") in ids
        and edge.get("target") in ids
        and isinstance(edge.get("type", ""), str)
        and isinstance(data, dict)
        and cast("_Document", data).get("channel") in ("flow", "link")
    )


def _ends(edge: _Document) -> tuple[str, ...]:
    ends = tuple(edge[each] for each in ("source", "sourceHandle", "target", "targetHandle"))
    return (*ends, edge["data"]["channel"])


@dataclass(frozen=True)
class _Input:
    """The edges into one input of a node, as the source of the nodes that they come from."""

    handle: str
    keyword: str | None
    sources: list[str]

    @property
    def value(self) -> str:
        return self.sources[0] if len(self.sources) == 1 else f"[{', '.join(self.sources)}]"


class _Writer:
    """Writes the calls of builders, with names that are unique in the program."""

    def __init__(self, types: NodeTypes) -> None:
        self._types = types
        self._used = set(_RESERVED)

    def builder(
        self, name: str, document: _Document, title: str = "", *, is_inner: bool = False
    ) -> Iterator[str]:
        """Yield the lines that make one graph; ``name`` is the variable of its builder."""
        given = f"title={text_literal(title)}" if title else ""
        yield f"{name} = planwave.GraphBuilder({given})"
        nodes: list[_Document] = document["nodes"]
        edges: list[_Document] = document["edges"]
        variables = {node["id"]: self._variable(node["id"]) for node in nodes}
        inputs = self._inputs(nodes, edges, variables)
        used = {edge["source"] for edge in edges}
        if inputs is None:
            used |= {edge["target"] for edge in edges}
        for node in nodes:
            own = [] if inputs is None else inputs[node["id"]]
            variable = variables[node["id"]] if node["id"] in used else None
            yield from self._node(name, node, own, variable, is_inner=is_inner)
        for edge in edges if inputs is None else ():
            yield _edge_call(name, edge, variables)

    def _variable(self, node_id: str) -> str:
        stem = re.sub(r"\W", "_", node_id, flags=re.ASCII).strip("_") or "node"
        if stem[0].isdigit() or keyword.iskeyword(stem) or keyword.issoftkeyword(stem):
            stem = f"node_{stem}"
        candidate, number = stem, 1
        while candidate in self._used:
            number += 1
            candidate = f"{stem}_{number}"
        self._used.add(candidate)
        return candidate

    def _node(
        self,
        builder: str,
        node: _Document,
        inputs: Sequence[_Input],
        variable: str | None,
        *,
        is_inner: bool,
    ) -> Iterator[str]:
        arguments = [text_literal(node["type"]), f"id={text_literal(node['id'])}"]
        if is_inner or node["name"] != node["id"]:
            arguments += _argument("name", node)
        arguments += _argument("description", node)
        rest: dict[str, Json] = {}
        named = {each.keyword for each in inputs}
        facts = self._types.type_info(node["type"])
        for field, value in node.get("data", {}).items():
            word = _data_keyword(field, node, facts)
            if word is None or word in named:
                rest[field] = value
            elif (inside := self._inside(field, value, facts)) is not None:
                body = self._variable(f"{variable or node['id']}_{word}")
                yield from self.builder(body, inside, is_inner=True)
                arguments.append(f"{word}={body}")
            else:
                arguments += _argument(word, {word: value})
        if rest or (is_inner and "data" in node and not node["data"]):
            arguments += _argument("data", {"data": rest})
        arguments += [*_argument("policy", node), *_argument("ui", node)]
        arguments += [f"{each.keyword}={each.value}" for each in inputs if each.keyword is not None]
        others = [each for each in inputs if each.keyword is None]
        if others:
            pairs = ", ".join(f"{text_literal(each.handle)}: {each.value}" for each in others)
            arguments.append(f"edges={{{pairs}}}")
        yield _call(f"{variable} = {builder}" if variable else builder, "node", arguments)

    def _inside(self, field: str, value: Json, facts: NodeTypeInfo | None) -> _Document | None:
        """Return the graph in a data field, if a builder can make it."""
        if facts is None or field not in facts.graph_fields or not isinstance(value, dict):
            return None
        document = cast("_Document", value)
        return document if _is_buildable(document, self._types) else None

    def _inputs(
        self, nodes: Sequence[_Document], edges: Sequence[_Document], variables: Mapping[str, str]
    ) -> dict[str, list[_Input]] | None:
        """Return the inputs of each node, if keywords give exactly these edges; else None."""
        positions = {node["id"]: number for number, node in enumerate(nodes)}
        types = {node["id"]: node for node in nodes}
        found: dict[str, list[_Input]] = {node["id"]: [] for node in nodes}
        previous: tuple[int, str] | None = None
        for number, edge in enumerate(edges, 1):
            place = positions[edge["target"]], edge["targetHandle"]
            is_simple = (
                edge["id"] == f"e{number}"
                and edge["data"].keys() == {"channel"}
                and "type" not in edge
                and positions[edge["source"]] < place[0]
                and (previous is None or previous[0] <= place[0])
            )
            source = self._source(edge, types, variables) if is_simple else None
            if source is None:
                return None
            inputs = found[edge["target"]]
            if previous != place:
                if any(each.handle == place[1] for each in inputs):
                    return None
                inputs.append(self._input(types[edge["target"]], place[1], inputs))
            inputs[-1].sources.append(source)
            if len(inputs[-1].sources) > 1 and not self._takes_several(types[edge["target"]], edge):
                return None
            previous = place
        return found

    def _source(
        self, edge: _Document, nodes: Mapping[str, _Document], variables: Mapping[str, str]
    ) -> str | None:
        """Return the source of an edge as an argument, if the builder infers the same edge from it."""
        source = self._types.type_info(nodes[edge["source"]]["type"])
        target = self._types.type_info(nodes[edge["target"]]["type"])
        wanted = edge["sourceHandle"], edge["data"]["channel"]
        variable = variables[edge["source"]]
        if connection(source, None, target, edge["targetHandle"]) == wanted:
            return variable
        named = connection(source, wanted[0], target, edge["targetHandle"])
        return f"{variable}[{text_literal(wanted[0])}]" if named == wanted else None

    def _takes_several(self, node: _Document, edge: _Document) -> bool:
        facts = self._types.type_info(node["type"])
        port = facts and find_port(facts.inputs, edge["targetHandle"], edge["data"]["channel"])
        return port is None or port.multiple

    def _input(self, node: _Document, handle: str, before: Sequence[_Input]) -> _Input:
        """Return an input without sources; it is no keyword where the builder would read another one.

        Behind one that is no keyword all others are none, so that the edges keep their order.
        """
        word = python_name(handle)
        facts = self._types.type_info(node["type"])
        is_keyword = (
            _is_name(word)
            and all(each.keyword is not None for each in before)
            and _means(handle_name, word, node, facts, handle)
            and not any(python_name(field) == word for field in node.get("data", {}))
        )
        return _Input(handle, word if is_keyword else None, [])


def _data_keyword(field: str, node: _Document, facts: NodeTypeInfo | None) -> str | None:
    """Return the keyword of a data field; None where the builder would read another field, or change the value."""
    word = python_name(field)
    if not _is_name(word) or word in ("model", "provider"):
        return None
    return word if _means(data_name, word, node, facts, field) else None


def _is_name(word: str) -> bool:
    is_identifier = word.isidentifier() and word.isascii() and not keyword.iskeyword(word)
    return is_identifier and word not in _PARAMETERS


def _means(
    lookup: Callable[[str, str, NodeTypeInfo | None], str],
    word: str,
    node: _Document,
    facts: NodeTypeInfo | None,
    name: str,
) -> bool:
    """Return whether a keyword means a name, whether or not the program knows the type."""
    try:
        return all(lookup(word, node["type"], known) == name for known in (facts, None))
    except TypeError:
        return False


def _argument(name: str, values: Mapping[str, Json]) -> list[str]:
    """Return a value as an argument; nothing where there is no value of the name."""
    if name not in values:
        return []
    return [f"{name}={literal(values[name], _STEP, len(name) + 2)}"]


def _call(target: str, method: str, arguments: Sequence[str]) -> str:
    line = f"{target}.{method}({', '.join(arguments)})"
    if len(line) <= MAX_LINE and "\n" not in line:
        return line
    listed = "".join(f"{_STEP}{each},\n" for each in arguments)
    return f"{target}.{method}(\n{listed})"


def _edge_call(builder: str, edge: _Document, variables: Mapping[str, str]) -> str:
    ends: list[str] = []
    for node, handle, default in (
        ("source", "sourceHandle", DEFAULT_SOURCE_HANDLE),
        ("target", "targetHandle", DEFAULT_TARGET_HANDLE),
    ):
        variable = variables[edge[node]]
        is_default = edge[handle] == default
        ends.append(variable if is_default else f"{variable}[{text_literal(edge[handle])}]")
    arguments = [*ends, f"id={text_literal(edge['id'])}"]
    data = {name: value for name, value in edge["data"].items() if name != "channel"}
    if edge["data"]["channel"] != FLOW:
        arguments.append(f"channel={text_literal(edge['data']['channel'])}")
    arguments += [*(_argument("data", {"data": data}) if data else ()), *_argument("type", edge)]
    return _call(builder, "edge", arguments)
