"""Which sockets a type's ``data`` fields make, and what came in through them.

Every data field is also a socket: a wire on the handle named like the field (as written in JSON)
beats the value written in ``data``. The wire may be a flow edge or a link edge.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any, Final, Literal, NamedTuple, Union, cast, get_args, get_origin

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo

from planwave.errors import NodeError
from planwave.graph.capabilities import FlowContext
from planwave.graph.model import FLOW, LINK, Json, Port
from planwave.graph.values import Inputs, text_of

FIELD_SIDE: Final = "bottom"
"""``Port.side`` of sockets that come from data fields, so that editors and prompts can tell them."""

_SCALARS: Final[Mapping[Any, str]] = {
    str: "text",
    bool: "boolean",
    int: "integer",
    float: "number",
    Any: "any",
}
_CONTAINERS: Final = (dict, list, tuple, set, frozenset, Mapping)


class DataField(NamedTuple):
    """One field of a ``Data`` model: its name in JSON, socket type, and how it is treated.

    ``marks`` is what its schema says besides; see ``node_type.template`` and ``nested.graph_field``.
    """

    wire: str
    socket: str
    required: bool
    template: bool
    nullable: bool = False
    marks: Mapping[str, Json] = {}


def socket_type(annotation: Any) -> str:
    """Give the socket type of values of a Python type: ``text``, ``integer``, …, ``any``."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        found = {socket_type(a) for a in get_args(annotation) if a is not NoneType}
        return found.pop() if len(found) == 1 else "any"
    if origin is Literal:
        found = {socket_type(type(choice)) for choice in get_args(annotation)}
        return found.pop() if len(found) == 1 else "any"
    kind: Any = origin or annotation
    if isinstance(kind, type) and issubclass(kind, (*_CONTAINERS, BaseModel)):
        return "json"
    return "any"


def value_type(value: Json) -> str:
    """Give the socket type of a JSON value; null, lists and objects are ``json``."""
    return _SCALARS.get(value.__class__, "json")


def fields_of(model: type[BaseModel] | None) -> tuple[DataField, ...]:
    """Give the fields of a ``Data`` model in the order they are declared."""
    if model is None:
        return ()
    return tuple(
        DataField(
            _wire_name(name, info),
            socket_type(info.annotation),
            info.is_required(),
            _marks(info).get("template") is True,
            NoneType in get_args(info.annotation),
            _marks(info),
        )
        for name, info in model.model_fields.items()
    )


def _marks(info: FieldInfo) -> Mapping[str, Json]:
    extra: Any = info.json_schema_extra
    return cast("dict[str, Any]", extra) if isinstance(extra, dict) else {}


def _wire_name(name: str, info: FieldInfo) -> str:
    alias = info.validation_alias
    if isinstance(alias, AliasChoices):
        alias = next((choice for choice in alias.choices if isinstance(choice, str)), None)
    return alias if isinstance(alias, str) else info.alias or name


def is_open(port: Port) -> bool:
    """Say whether a port's name is a pattern or open, so that many handles fit it."""
    return "{" in port.name


def with_field_ports(declared: Iterable[Port], fields: Iterable[DataField]) -> tuple[Port, ...]:
    """Add the sockets of data fields to declared input ports.

    Order: fixed names, field sockets (one for each channel), then patterns and open names, so that
    the first port that fits a handle is the most precise one.
    """
    declared = tuple(declared)
    taken = {port.name for port in declared}
    sockets = [
        Port(field.wire, field.socket, channel=channel, side=FIELD_SIDE)
        for channel in (FLOW, LINK)
        for field in fields
        if field.wire not in taken
    ]
    return (
        *(port for port in declared if not is_open(port)),
        *sockets,
        *(port for port in declared if is_open(port)),
    )


async def side_values(
    sockets: Mapping[str, str], inputs: Inputs, context: FlowContext
) -> dict[str, Json]:
    """Give what wires brought to data fields, by field.

    Args:
        sockets: Socket type by handle, for the fields that are sockets.
        inputs: All that arrived at the node.
        context: Where the node runs; its links are resolved here.

    Raises:
        NodeError: More than one link leads into a field.
    """
    found: dict[str, Json] = {}
    for arrival in inputs.arrivals:
        socket = sockets.get(arrival.target_handle)
        if socket is not None:
            found[arrival.target_handle] = _fitted(socket, arrival.value.value)
    found.update(await linked_values(sockets, context))
    return found


async def linked_values(sockets: Mapping[str, str], context: FlowContext) -> dict[str, Json]:
    """Give what link edges brought to data fields; see :func:`side_values`."""
    found: dict[str, Json] = {}
    for edge in context.runtime.incoming_edges(context.node_id, channel=LINK):
        handle = edge.target_handle
        if handle not in sockets or handle in found:
            continue
        artefacts = await context.runtime.resolve_links(context.node_id, handle)
        if len(artefacts) != 1:
            raise NodeError(
                f"data field {handle!r} takes one link, {len(artefacts)} lead into it",
                code="too-many-inputs",
            )
        found[handle] = _fitted(sockets[handle], getattr(artefacts[0], "value", artefacts[0]))
    return found


def _fitted(socket: str, value: Json) -> Json:
    """Turn a value into text where a text socket is fed something else (the coercion table)."""
    return text_of(value) if socket == "text" and not isinstance(value, str) else value
