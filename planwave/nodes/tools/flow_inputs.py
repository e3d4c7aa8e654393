"""The inputs of a flow as the arguments of a tool: their JSON Schema, and the entry nodes they settle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from planwave.errors import InputError
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Json, Node, Port
from planwave.graph.protocols import Catalogue, InputAdapter
from planwave.nodes.agents.tool import ToolError
from planwave.nodes.subgraphs import Subgraph

_ONE_INPUT: Final = "input"
"""The argument for the one entry node of a flow that has one output."""
_JSON_TYPES: Final = {
    "text": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}


def input_schema(flow: Subgraph, catalogue: Catalogue) -> dict[str, Any]:
    """Return the JSON Schema of a flow's inputs.

    A flow with one entry node takes ``input``, or an argument for each of its outputs besides
    ``output``; a flow with several takes one for each of these nodes, by id. An input is required
    where the node has no data of its own.
    """
    nodes = [flow.graph.by_id[node_id] for node_id, _ in flow.entries]
    properties: dict[str, Any] = {}
    required: list[str] = []
    if len(nodes) == 1:
        (node,) = nodes
        ports = _named_ports(node, catalogue)
        for port in ports:
            properties[port.name] = _port_schema(port, "")
        if not ports:
            properties[_ONE_INPUT] = _port_schema(Port(""), node.description or node.name)
        if not node.data:
            required = list(properties)[:1]
    else:
        for node in nodes:
            properties[node.id] = _port_schema(Port(""), node.description or node.name)
        required = [node.id for node in nodes if not node.data]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def entry_inputs(
    flow: Subgraph, arguments: Mapping[str, Json], catalogue: Catalogue, *, as_object: bool
) -> dict[str, dict[str, Json]]:
    """Return the values that entry nodes are settled with, ``{node id: {handle: value}}``.

    Args:
        flow: The flow.
        arguments: Arguments that fit :func:`input_schema`, or any with ``as_object``.
        catalogue: The node types.
        as_object: Whether each entry node gets all arguments as one object.

    Raises:
        ToolError: ``invalid-arguments``: an entry node does not take its values.
    """
    inputs: dict[str, dict[str, Json]] = {}
    for node_id, first in flow.entries:
        node = flow.graph.by_id[node_id]
        if as_object:
            values: dict[str, Json] = {first: dict(arguments)}
        elif len(flow.entries) > 1:
            values = {first: arguments[node_id]} if node_id in arguments else {}
        elif _named_ports(node, catalogue):
            values = dict(arguments)
        else:
            values = {first: arguments[_ONE_INPUT]} if _ONE_INPUT in arguments else {}
        if values:
            _check_values(node, values, catalogue)
            inputs[node_id] = values
    return inputs


def _named_ports(node: Node, catalogue: Catalogue) -> list[Port]:
    """Return the outputs of an entry node that are parts of its ``output``."""
    facts = catalogue.type_info(node.type)
    ports = () if facts is None else facts.outputs
    return [port for port in ports if port.name != DEFAULT_SOURCE_HANDLE]


def _port_schema(port: Port, description: str) -> dict[str, Any]:
    kind = _JSON_TYPES.get(port.type)
    schema = {} if kind is None else {"type": kind}
    return {**schema, "description": description} if description else schema


def _check_values(node: Node, values: dict[str, Json], catalogue: Catalogue) -> None:
    """Refuse values that the type does not take; the run of the flow completes them."""
    implementation = catalogue.implementation(node.type)
    if not isinstance(implementation, InputAdapter):
        return
    try:
        implementation.adapt_inputs(values)
    except InputError as error:
        raise ToolError(error.message, code="invalid-arguments", hint=error.hint) from error
