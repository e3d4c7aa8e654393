"""Wires into data fields: their values, which wire wins, and the values it overrides.

For one field the order is: link, then flow, then what is written in ``data``. A link artefact may be
a ``FieldBundle``, which brings several fields at once; a wire into one of those others beats it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from planwave.errors import PermanentError
from planwave.graph.inputs import Inputs
from planwave.graph.model import FLOW, LINK, Arrival, Channel, DataValue, Json, Port
from planwave.graph.ports import find_port
from planwave.graph.protocols import FlowContext, NodeEvent
from planwave.nodes.authoring.data_fields import (
    DataField,
    accepts,
    coerce,
    is_open,
    sockets_of,
    to_data_value,
)

WIRED: Final = "wired"
"""``event_type`` of what a node says of its fed fields: ``{"fields": {name: {"channel", "edge",
"source", "handle"?, "over": ["flow"?, "inline"?]}}}``. ``handle`` is the one a bundle came in by."""

INLINE: Final = "inline"


class FieldBundle(NamedTuple):
    """A link artefact that brings values for several data fields of its consumer, by field.

    It enters by the link port of one of these fields, and overrides flow wires into that field.
    """

    type: str
    values: Mapping[str, Json]


class WiredValue(NamedTuple):
    """A data field that a wire fed; ``handle`` is where the wire leads, ``over`` what it beat."""

    value: Json
    channel: Channel
    edge: str
    source: str
    handle: str
    overridden: tuple[str, ...] = ()


class FieldWires:
    """The data fields of one type that wires may feed."""

    __slots__ = (
        "_bundle_types",
        "_fields",
        "_flow_fields",
        "_link_fields",
        "_open_ports",
        "_port_types",
        "_read_as_typed",
        "has_typed_inputs",
    )

    def __init__(
        self,
        fields: Iterable[DataField],
        declared: Iterable[Port],
        read_as_typed: Collection[str] = (),
    ) -> None:
        declared = tuple(declared)
        self._read_as_typed = frozenset(read_as_typed)
        self._fields = {field.json_name: field for field in fields}
        self._flow_fields = {
            each.json_name for each in sockets_of(self._fields.values(), declared, FLOW)
        }
        self._link_fields = {
            each.json_name for each in sockets_of(self._fields.values(), declared, LINK)
        }
        self._bundle_types = {
            port.name: port.type
            for port in declared
            if port.channel == LINK and port.name in self._flow_fields
        }
        inputs = [
            port for port in declared if port.channel == FLOW and port.name not in read_as_typed
        ]
        self._port_types = {port.name: port.type for port in inputs if not is_open(port)}
        self._open_ports = [port for port in inputs if is_open(port)]
        self.has_typed_inputs = any(port.type != "any" for port in inputs)

    def has_wires(self, inputs: Inputs, context: FlowContext) -> bool:
        """Return whether a wire leads into a data field."""
        if not self._flow_fields and not self._link_fields:
            return False
        if any(arrival.target_handle in self._flow_fields for arrival in inputs.arrivals):
            return True
        links = context.runtime.incoming_edges(context.node_id, channel=LINK)
        return any(self._accepts_link(edge.target_handle) for edge in links)

    def unwired(self, inputs: Inputs) -> Inputs:
        """Return the inputs without those that feed data fields."""
        return Inputs(tuple(a for a in inputs.arrivals if a.target_handle not in self._flow_fields))

    def coerce(self, inputs: Inputs, context: FlowContext) -> Inputs:
        """Return the inputs converted to the types of the declared ports.

        Raises:
            NodeError: ``type-mismatch`` for a value that does not have its port's type.
        """
        converted: list[Arrival] | None = None
        for number, arrival in enumerate(inputs.arrivals):
            name, value = arrival.target_handle, arrival.value
            socket = self._port_types.get(name) or self._open_port_type(name)
            content, refused = coerce(socket, value)
            if refused is not None:
                raise _type_mismatch(
                    context, f"input {name!r}", repr(arrival.source_id), socket, refused
                )
            if content is not value.value:
                converted = converted or list(inputs.arrivals)
                converted[number] = arrival._replace(value=DataValue(socket, content))
        return Inputs(tuple(converted)) if converted else inputs

    def _open_port_type(self, handle: str) -> str:
        port = find_port(self._open_ports, handle)
        return "any" if port is None else port.type

    async def read(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> dict[str, WiredValue]:
        """Return the values of wired fields by field name; resolves the node's links.

        Args:
            data: The node's ``data``, expressions resolved.
            inputs: All inputs of the node.
            context: The node's context.

        Raises:
            NodeError: ``too-many-inputs`` where several wires of a channel lead into a field,
                ``type-mismatch`` for a value that does not have the field's type.
        """
        flows = self._from_flows(inputs, context)
        bundled, links = await self._from_links(context)
        wired = dict(flows)
        wired.update((n, each) for n, each in bundled.items() if n not in flows or n == each.handle)
        wired.update(links)
        for name, each in wired.items():
            field = self._fields[name]
            there = {
                LINK: name in links or name in bundled,
                FLOW: name in flows,
                INLINE: any(spelling in data for spelling in (name, *field.aliases)),
            }
            overridden = tuple(kind for kind, is_there in there.items() if is_there)
            wired[name] = each._replace(
                overridden=tuple(kind for kind in overridden if kind != each.channel)
            )
        return wired

    def apply(self, data: Mapping[str, Json], wired: Mapping[str, WiredValue]) -> dict[str, Json]:
        """Return data in which wired fields hold the values of their wires, under any alias."""
        overridden = {
            spelling for name in wired for spelling in (name, *self._fields[name].aliases)
        }
        own = {name: value for name, value in data.items() if name not in overridden}
        return own | {name: each.value for name, each in wired.items()}

    def _from_flows(self, inputs: Inputs, context: FlowContext) -> dict[str, WiredValue]:
        wired: dict[str, WiredValue] = {}
        for arrival in inputs.arrivals:
            name = arrival.target_handle
            if name in self._flow_fields:
                if name in wired:
                    raise _too_many_wires(context, name, FLOW, 2)
                value = WiredValue(None, FLOW, arrival.edge_id, arrival.source_id, name)
                wired[name] = self._with_value(value, name, arrival.value, context)
        return wired

    async def _from_links(
        self, context: FlowContext
    ) -> tuple[dict[str, WiredValue], dict[str, WiredValue]]:
        """Return the bundles that links bring, and the values for single fields."""
        bundled: dict[str, WiredValue] = {}
        single_values: dict[str, WiredValue] = {}
        for edge in context.runtime.incoming_edges(context.node_id, channel=LINK):
            handle = edge.target_handle
            if not self._accepts_link(handle):
                continue
            artefacts = await context.runtime.resolve_links(context.node_id, handle)
            if len(artefacts) != 1:
                raise _too_many_wires(context, handle, LINK, len(artefacts))
            (artefact,) = artefacts
            fed = WiredValue(None, LINK, edge.id, edge.source, handle)
            if isinstance(artefact, FieldBundle):
                bundled |= self._unpack(fed, artefact, context)
            else:
                value = artefact if isinstance(artefact, DataValue) else to_data_value(artefact)
                single_values[handle] = self._with_value(fed, handle, value, context)
        return bundled, single_values

    def _unpack(
        self, wired: WiredValue, bundle: FieldBundle, context: FlowContext
    ) -> dict[str, WiredValue]:
        socket = self._bundle_types.get(wired.handle, self._fields[wired.handle].socket)
        if wired.handle not in self._bundle_types or not accepts(socket, bundle.type):
            raise _wire_mismatch(context, wired, wired.handle, socket, bundle.type)
        strangers = [name for name in bundle.values if name not in self._flow_fields]
        if strangers:
            raise PermanentError(
                f"node {context.node_id!r}: the {bundle.type} that {wired.source!r} gives sets "
                f"{', '.join(strangers)}, which this type of node does not have",
                code="type-mismatch",
                hint=f"take {', '.join(strangers)} out of {wired.source!r}",
            )
        return {
            name: self._with_value(wired, name, to_data_value(value), context)
            for name, value in bundle.values.items()
        }

    def _with_value(
        self, wired: WiredValue, name: str, value: DataValue, context: FlowContext
    ) -> WiredValue:
        field = self._fields[name]
        if name in self._read_as_typed:
            return wired._replace(value=value.value)
        content, refused = coerce(field.socket, value, nullable=field.nullable)
        if refused is not None:
            raise _wire_mismatch(context, wired, name, field.socket, refused)
        return wired._replace(value=content)

    def _accepts_link(self, handle: str) -> bool:
        return handle in self._link_fields or handle in self._bundle_types


def wired_event(wired: Mapping[str, WiredValue], node_type: str, context: FlowContext) -> NodeEvent:
    """Build the event that names the wire of each wired field, without values (a link may bring any object)."""
    fields: dict[str, Json] = {}
    for name, each in wired.items():
        fields[name] = {"channel": each.channel, "edge": each.edge, "source": each.source}
        if each.handle != name:
            fields[name]["handle"] = each.handle
        fields[name]["over"] = list(each.overridden)
    return NodeEvent(context.node_id, node_type, WIRED, context.run_id, {"fields": fields})


def _too_many_wires(
    context: FlowContext, name: str, channel: Channel, count: int
) -> PermanentError:
    what = "link" if channel == LINK else "value"
    return PermanentError(
        f"node {context.node_id!r}: data field {name!r} takes one {what}, {count} lead into it",
        code="too-many-inputs",
        hint="remove all but one of them",
    )


def _wire_mismatch(
    context: FlowContext, wired: WiredValue, name: str, expected: str, actual: str
) -> PermanentError:
    into = "" if wired.handle == name else f" into {wired.handle!r}"
    source = f"{wired.source!r}{into}"
    return _type_mismatch(context, f"data.{name}", source, expected, actual, wired.channel)


def _type_mismatch(
    context: FlowContext,
    into: str,
    source: str,
    expected: str,
    actual: str,
    channel: Channel = FLOW,
) -> PermanentError:
    return PermanentError(
        f"node {context.node_id!r}: {into} takes {expected}, but the {channel} edge from {source} "
        f"brings {actual}",
        code="type-mismatch",
        hint="put a node between them that converts the value",
    )
