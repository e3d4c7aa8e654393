"""How editors show ports: labels, sides, and one colour and shape for each socket type.

A handle is one socket, whatever its channels: a flow and a link port of one name share its side and
label. Flow inputs are on the left, flow outputs on the right, handles for links alone at the bottom
(inputs) and on top (outputs). Sockets of data fields are at the bottom.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, cast

from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    ERROR_HANDLE,
    FLOW,
    Graph,
    Node,
    Port,
)
from planwave.graph.ports import find_port, outputs_of
from planwave.graph.protocols import NodeTypeInfo
from planwave.nodes.authoring.data_fields import accepts, is_open
from planwave.nodes.authoring.node_type import NodePorts

Shape = Literal["circle", "square", "diamond", "tab"]
Direction = Literal["input", "output"]

_FLOW_SIDES: Final[Mapping[Direction, str]] = {"input": "left", "output": "right"}
_LINK_SIDES: Final[Mapping[Direction, str]] = {"input": "bottom", "output": "top"}
_DATA_LABEL: Final = "Data"
_ERROR_PORT: Final = Port(ERROR_HANDLE, "json")
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-_]+")


class SocketStyle(NamedTuple):
    """How sockets of one type are drawn; colours are ``#rrggbb`` for light and dark pages."""

    label: str
    color: str
    dark_color: str
    shape: Shape | str


_OTHER: Final = SocketStyle("", "#5c6874", "#98a5b2", "circle")
_NUMBER: Final = SocketStyle("Number", "#14703f", "#62cc90", "circle")
SOCKET_STYLES: Final[Mapping[str, SocketStyle]] = {
    "any": _OTHER._replace(label=_DATA_LABEL),
    "text": SocketStyle("Text", "#2457d0", "#8fb1ff", "circle"),
    "boolean": SocketStyle("True or false", "#875000", "#efb65c", "diamond"),
    "integer": _NUMBER._replace(label="Whole number"),
    "number": _NUMBER,
    "json": SocketStyle("JSON", "#96400e", "#f3a070", "circle"),
    "model": SocketStyle("Model", "#7d3b76", "#dc9fd4", "square"),
    "tool": SocketStyle("Tool", "#0b6b74", "#5fc6d1", "tab"),
}
"""The one table of colours and shapes. Other types look as the first port that declares them."""


def socket_styles(ports: Iterable[Port]) -> dict[str, SocketStyle]:
    """Return the style of every socket type of the table and of these ports."""
    styles = dict(SOCKET_STYLES)
    for port in ports:
        if port.type not in styles:
            styles[port.type] = _own_style(port)
    return styles


def _own_style(port: Port) -> SocketStyle:
    return SocketStyle(
        _readable(port.type),
        port.color or _OTHER.color,
        port.color or _OTHER.dark_color,
        port.shape or _OTHER.shape,
    )


def socket_documents(styles: Mapping[str, SocketStyle]) -> list[dict[str, Any]]:
    """Return the socket types as JSON, each with the other types whose values it takes."""
    return [
        {
            "type": name,
            **style._asdict(),
            "accepts": [other for other in styles if other != name and accepts(name, other)],
        }
        for name, style in styles.items()
    ]


def port_documents(
    ports: Sequence[Port], direction: Direction, styles: Mapping[str, SocketStyle]
) -> list[dict[str, Any]]:
    """Return ports as JSON, complete with label, side, colour and shape."""
    flow_ports = {port.name: port for port in ports if port.channel == FLOW}
    documents: list[dict[str, Any]] = []
    for port in ports:
        style = styles.get(port.type) or _own_style(port)
        flow_port = flow_ports.get(port.name, port)
        sides = _FLOW_SIDES if flow_port.channel == FLOW else _LINK_SIDES
        document = port._asdict()
        if port.schema is None:
            del document["schema"]
        documents.append(
            document
            | {
                "label": flow_port.label or _label(flow_port, style),
                "side": flow_port.side or sides[direction],
                "color": style.color,
                "shape": style.shape,
            }
        )
    return documents


def _label(port: Port, style: SocketStyle) -> str:
    if port.name not in (DEFAULT_TARGET_HANDLE, DEFAULT_SOURCE_HANDLE):
        return _readable(port.name)
    return _DATA_LABEL if port.channel == FLOW else style.label


def _readable(name: str) -> str:
    """Return a name as words: ``chatId`` as "Chat id", ``case-{i}`` as "Case {i}"."""
    first, *others = _WORD_START.sub(" ", name).strip().split(" ")
    return " ".join([first[:1].upper() + first[1:], *(word.lower() for word in others)])


def ports_of_node(
    node: Node, graph: Graph, info: NodeTypeInfo, implementation: Any
) -> NodePorts | None:
    """Return the ports of a configured node; None if they are just those of its type.

    They have no patterns: numbered and open ports are replaced by the handles that the node's data
    declare or, where they declare none, by those of its edges. With ``onError: continue`` the node has
    the output ``error``.
    """
    sends_error = node.policy.on_error == "continue"
    declared_outputs = outputs_of(node, info)
    is_plain = not any(map(is_open, (*info.inputs, *info.outputs)))
    if is_plain and not sends_error and declared_outputs is info.outputs:
        return None
    entering = [(edge.target_handle, edge.channel) for edge in graph.incoming.get(node.id, ())]
    leaving = [(edge.source_handle, edge.channel) for edge in graph.outgoing.get(node.id, ())]
    configured = getattr(implementation, "configured_ports", None)
    handles = [handle for handle, _ in leaving]
    own = NodePorts() if configured is None else configured(node.data, handles)
    inputs = _without_patterns(info.inputs, entering) if own.inputs is None else own.inputs
    outputs = _without_patterns(declared_outputs, leaving) if own.outputs is None else own.outputs
    if own.inputs is not None:
        declared = cast("Sequence[Port]", getattr(implementation, "inputs", ()))
        inputs = (*inputs, *(port for port in info.inputs if port not in declared))
    if sends_error and find_port(outputs, ERROR_HANDLE) is None:
        outputs = (*outputs, _ERROR_PORT)
    return NodePorts(inputs, outputs)


def _without_patterns(ports: Sequence[Port], used: Iterable[tuple[str, str]]) -> Sequence[Port]:
    """Return the ports with fixed names, and those that these handles name in the others.

    A handle is one port, unless there are patterns for both channels.
    """
    fixed = {(port.name, port.channel): port for port in ports if not is_open(port)}
    for handle, channel in dict.fromkeys(used):
        port = None if handle == ERROR_HANDLE else find_port(ports, handle, channel)
        if port is not None and is_open(port):
            fixed.setdefault((handle, port.channel), port._replace(name=handle, label=""))
    return [*fixed.values()]
