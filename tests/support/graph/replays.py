"""Graph documents written again as calls of ``planwave.GraphBuilder``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import planwave
from planwave.graph.keywords import python_name


def replay(document: Mapping[str, Any], registry: planwave.Registry) -> planwave.GraphBuilder:
    """Build a graph as its document has it: ids, order, handles, channels and data of edges too."""
    g = planwave.GraphBuilder(registry)
    refs = {node["id"]: _node(g, node, registry) for node in document["nodes"]}
    for edge in document["edges"]:
        data = {name: value for name, value in edge["data"].items() if name != "channel"}
        g.edge(
            refs[edge["source"]][edge["sourceHandle"]],
            refs[edge["target"]][edge["targetHandle"]],
            id=edge["id"],
            channel=edge["data"]["channel"],
            data=data,
            type=edge.get("type"),
        )
    return g


def replay_by_keywords(
    document: Mapping[str, Any], registry: planwave.Registry
) -> planwave.GraphBuilder:
    """Build a graph with every edge at the node that it enters, sources first.

    Ids and data of edges, and the order of nodes and edges, are not those of the document.
    """
    g = planwave.GraphBuilder(registry)
    refs: dict[str, planwave.NodeRef[Any]] = {}
    waiting = list(document["nodes"])
    for node in (each for _ in document["nodes"] for each in list(waiting)):
        into = [edge for edge in document["edges"] if edge["target"] == node["id"]]
        if node in waiting and all(edge["source"] in refs for edge in into):
            edges: dict[str, list[Any]] = {}
            for edge in into:
                source = refs[edge["source"]][edge["sourceHandle"]]
                edges.setdefault(edge["targetHandle"], []).append(source)
            refs[node["id"]] = _node(g, node, registry, edges)
            waiting.remove(node)
    return g


def _node(
    g: planwave.GraphBuilder,
    node: Mapping[str, Any],
    registry: planwave.Registry,
    edges: Mapping[str, list[Any]] | None = None,
) -> planwave.NodeRef[Any]:
    """Add a node, with all of its data that a keyword can name as keywords."""
    facts = registry.type_info(node["type"])
    fields = (
        {} if facts is None else {python_name(name): name for name in facts.data_fields.values()}
    )
    data = dict(node["data"])
    keywords = {
        keyword: data.pop(name)
        for keyword, name in fields.items()
        if name in data and keyword.isidentifier() and keyword not in _RESERVED
    }
    if ":" in str(keywords.get("model")) and "provider" not in keywords | data:
        data["model"] = keywords.pop("model")  # the name of a model, not "provider:model"
    return g.node(
        node["type"],
        id=node["id"],
        name=node["name"],
        description=node.get("description"),
        data=data,
        policy=node.get("policy"),
        ui=node.get("ui"),
        edges=edges,
        **keywords,
    )


_RESERVED = ("id", "name", "description", "data", "policy", "ui", "edges")
