"""The formats that a graph is exported in: one table, for the command line and the API."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from planwave.graph.model import Graph, Json
from planwave.graph.protocols import NodeTypes
from planwave.interop.exporting.dot import dot
from planwave.interop.exporting.drawing import HandleLabels, draw
from planwave.interop.exporting.graph_schema import graph_schema
from planwave.interop.exporting.mermaid import mermaid
from planwave.interop.exporting.python_code import python_code
from planwave.interop.exporting.yaml_text import write_yaml
from planwave.shapes.common import ExportFormat


@dataclass(frozen=True)
class Export:
    """What is exported, and what is known about it.

    Attributes:
        graph: The graph; an empty one for the schema alone.
        types: The node types.
        node_types: The types as ``GET /api/node-types`` shows them.
        node_ports: Returns the ports of nodes as ``POST /api/check`` shows them.
        title: Its title; "" for none.
        statuses: The status of each node of an execution by its path.
    """

    graph: Graph
    types: NodeTypes
    node_types: Callable[[], Sequence[Mapping[str, Any]]]
    node_ports: Callable[[Graph], Mapping[str, Mapping[str, Any]]]
    title: str = ""
    statuses: Mapping[str, str] = field(default_factory=dict[str, str])


class _Format(NamedTuple):
    """One format: its media type, and what writes it."""

    media_type: str
    write: Callable[[Export], str]


def export(to: ExportFormat, what: Export) -> str:
    """Return a graph as text of a format."""
    return _FORMATS[to].write(what)


def media_type_of(to: ExportFormat) -> str:
    """Return the media type of a format, without a charset."""
    return _FORMATS[to].media_type


def _mermaid(what: Export) -> str:
    drawing = draw(what.graph, what.types, _labels(what))
    return mermaid(drawing, what.title, what.statuses)


def _dot(what: Export) -> str:
    return dot(draw(what.graph, what.types, _labels(what)), what.title, what.statuses)


def _labels(what: Export) -> HandleLabels:
    ports = what.node_ports(what.graph)
    return {
        node_id: {port["name"]: port["label"] for port in sides.get("outputs", ())}
        for node_id, sides in ports.items()
    }


def _yaml(what: Export) -> str:
    title: dict[str, Json] = {"title": what.title} if what.title else {}
    return write_yaml(title | what.graph.to_document())


def _json_schema(what: Export) -> str:
    return json.dumps(graph_schema(what.node_types()), ensure_ascii=False, indent=2) + "\n"


def _python(what: Export) -> str:
    return python_code(what.graph, what.types, what.title)


_FORMATS: Final[Mapping[ExportFormat, _Format]] = {
    "mermaid": _Format("text/plain", _mermaid),
    "dot": _Format("text/plain", _dot),
    "yaml": _Format("application/yaml", _yaml),
    "json-schema": _Format("application/schema+json", _json_schema),
    "python": _Format("text/plain", _python),
}
FORMATS: Final = tuple(_FORMATS)
"""The names of the formats."""
