"""Match handle names to the ports of a node type, and list its outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, cast

from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    ERROR_HANDLE,
    FLOW,
    LINK,
    Channel,
    Json,
    Node,
    Port,
    fixed_handles,
)
from planwave.graph.protocols import NodeTypeInfo, SchemaOutput

NUMBER_PLACEHOLDER: Final = "i"
"""``{i}`` in a port name stands for a whole number, any other ``{word}`` for any text."""

_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")


def find_port(ports: Iterable[Port], handle: str, channel: str | None = None) -> Port | None:
    """Return the port that a handle names: a fixed name before a numbered pattern before an open one.

    Among ports of the same kind one for ``channel`` comes first (a socket may be declared once for
    each channel), then the one declared first.
    """
    best: tuple[tuple[int, bool], Port] | None = None
    for port in ports:
        rank = _specificity(port.name), port.channel != channel
        matches = port.name == handle or (rank[0] and _pattern(port.name).fullmatch(handle))
        if matches and (best is None or rank < best[0]):
            best = rank, port
    return best[1] if best else None


def find_output(ports: Iterable[Port], handle: str, channel: str | None = None) -> Port | None:
    """Return the output that a handle names; ``error`` only if the type declares it by name."""
    if handle == ERROR_HANDLE:
        ports = [port for port in ports if port.name == handle]
    return find_port(ports, handle, channel)


def is_numbered(port: Port) -> bool:
    """Return whether a port is a numbered family of handles, such as ``case-{i}``."""
    return _specificity(port.name) == 1


def fixed_outputs(facts: NodeTypeInfo) -> frozenset[str]:
    """Return the outputs of a type that have a fixed name: ``output`` if it declares none."""
    if not facts.outputs:
        return frozenset((DEFAULT_SOURCE_HANDLE,))
    return frozenset(port.name for port in facts.outputs if "{" not in port.name)


def has_output(facts: NodeTypeInfo, handle: str) -> bool:
    """Return whether a result may be on a handle; ``error`` must be declared by name."""
    return handle in fixed_outputs(facts) or find_output(facts.outputs, handle) is not None


def outputs_text(facts: NodeTypeInfo) -> str:
    """Return the outputs of a type as text for messages."""
    return ", ".join(dict.fromkeys(fixed_handles(facts.outputs))) or DEFAULT_SOURCE_HANDLE


def connection(
    source: NodeTypeInfo | None, out: str | None, target: NodeTypeInfo | None, into: str
) -> tuple[str, Channel]:
    """Return the output and the channel of an edge of which the two ends are named.

    Args:
        source: The type of the node that it leaves; None if it is not known.
        out: The output; None for the one that fits: ``output``, or else one of the target's type.
        target: The type of the node that it enters; None if it is not known.
        into: The input.
    """
    inputs = () if target is None else [port for port in target.inputs if port.name == into]
    channels = {port.channel for port in inputs} or {FLOW, LINK}
    outputs: tuple[Port, ...] = () if source is None else source.outputs
    name = DEFAULT_SOURCE_HANDLE if out is None else out
    own = {port.channel for port in outputs if port.name == name}
    for channel in (FLOW, LINK):
        if channel in own & channels:
            return name, channel
    if out is None:
        links = {port.type for port in inputs if port.channel == LINK}
        fitting = [port.name for port in outputs if port.channel == LINK and port.type in links]
        if fitting:
            return fitting[0], LINK
        if len(outputs) == 1 and not _specificity(outputs[0].name):
            return outputs[0].name, outputs[0].channel
    known = channels if source is None else own
    return name, LINK if known == {LINK} else FLOW


@lru_cache(maxsize=1024)
def _specificity(name: str) -> int:
    """Return 0 for a fixed name, 1 for a numbered pattern, 2 for an open one."""
    words = _PLACEHOLDER.findall(name)
    if not words:
        return 0
    return 1 if all(word == NUMBER_PLACEHOLDER for word in words) else 2


@lru_cache(maxsize=1024)
def _pattern(name: str) -> re.Pattern[str]:
    parts = _PLACEHOLDER.split(name)
    spelled = [
        re.escape(part)
        if n % 2 == 0
        else r"(?:0|[1-9][0-9]{0,5})"
        if part == NUMBER_PLACEHOLDER
        else r".+"
        for n, part in enumerate(parts)
    ]
    return re.compile("".join(spelled), re.DOTALL)


def outputs_of(node: Node, facts: NodeTypeInfo) -> tuple[Port, ...]:
    """Return the outputs of a node: those of its type, one of them perhaps as its data declare it."""
    by = facts.schema_output
    own = None if by is None or (by.unless and by.unless in node.data) else _declared_port(node, by)
    if own is None:
        return facts.outputs
    return tuple(own if port.name == own.name else port for port in facts.outputs)


def _declared_port(node: Node, by: SchemaOutput) -> Port | None:
    """Return the port that the data of a node declare: by a JSON Schema, or by a name."""
    value = node.data.get(by.field)
    if isinstance(value, Mapping):
        return by.port._replace(schema=cast("Mapping[str, Json]", value))
    return by.named.get(value) if isinstance(value, str) else None
