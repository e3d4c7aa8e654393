"""What a graph may do or reach outside of itself: effects, types that run code, tools, servers, hosts, models, flows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple, cast

from planwave.graph.model import Graph, Json, Node
from planwave.graph.protocols import NodeTypes, effect_of
from planwave.graph.subgraphs import subgraphs_of
from planwave.planner.capabilities import SERVER_TYPE, calls_model

_HOST: Final = re.compile(r"\b(?:https?|wss?)://([^\s/?#\"'\\]+)", re.IGNORECASE)
_NAMED: Final = {"tool": ("tool", "name"), SERVER_TYPE: ("server", "server")}
"""By type of node: what a field of its data names."""
_LOUD: Final = ("write", "once")


class Access(NamedTuple):
    """One thing outside of a graph, and the node of the graph that reaches it.

    ``kind`` is ``effect`` (its name is the effect and the type: ``write http_tool``), ``tool``, ``server``,
    ``host``, ``provider``, ``model`` or ``flow``. ``node`` is the node of the graph itself around it.
    """

    kind: str
    name: str
    node: str


def new_access(before: Graph, after: Graph, catalogue: NodeTypes) -> list[Access]:
    """Return what a graph reaches that another one does not, each once, in graph order."""
    known = {each[:2] for each in _access_of(before, catalogue)}
    new: dict[tuple[str, str], Access] = {}
    for each in _access_of(after, catalogue):
        if each[:2] not in known:
            new.setdefault(each[:2], each)
    return list(new.values())


def _access_of(graph: Graph, catalogue: NodeTypes) -> Iterator[Access]:
    for top in graph.nodes:
        stack: list[tuple[Node, Graph]] = [(top, graph)]
        while stack:
            node, around = stack.pop()
            for kind, name in _of_node(node, around, catalogue):
                yield Access(kind, name, top.id)
            stack += [(e, inner) for inner in subgraphs_of(node, catalogue) for e in inner.nodes]


def _of_node(node: Node, graph: Graph, catalogue: NodeTypes) -> Iterator[tuple[str, str]]:
    facts = catalogue.type_info(node.type)
    if facts is not None and (effect := effect_of(node, facts, graph)) in _LOUD:
        yield "effect", f"{effect} {node.type}"
    if node.type in _NAMED:
        kind, field = _NAMED[node.type]
        yield kind, _text(node.data.get(field))
    if calls_model(catalogue, node.type):
        provider, model = (_text(node.data.get(name)) for name in ("provider", "model"))
        if provider:
            yield "provider", provider
        if model:
            yield "model", f"{provider}/{model}"
    if "flow" in node.data:
        yield "flow", _text(node.data["flow"])
    texts = json.dumps(dict(node.data), ensure_ascii=False)
    for host in _HOST.findall(texts):
        yield "host", host.rpartition("@")[2].lower()


def _text(value: Json) -> str:
    if isinstance(value, dict):
        fields = cast("dict[str, Json]", value)
        value = fields.get("name") or fields.get("id") or json.dumps(fields, sort_keys=True)
    return value if isinstance(value, str) else json.dumps(value)
