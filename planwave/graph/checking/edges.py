"""Check edges against the ports at their two ends, once for each kind of edge.

Edges with the same node types, handles and channel are of one kind and share the result, so the
catalogue is queried once for each kind, however many edges there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from planwave.graph.checking.schemas import schema_mismatch
from planwave.graph.keywords import python_name
from planwave.graph.model import ERROR_HANDLE, FLOW, LINK, Port, fixed_handles
from planwave.graph.ports import find_output, find_port
from planwave.graph.protocols import NodeTypeInfo, NodeTypes
from planwave.graph.reading.fields import CHANNELS
from planwave.graph.reading.unreadable import UNREADABLE
from planwave.graph.suggestions import Correction, closest_match


class EdgeFinding(NamedTuple):
    """An error of a kind of edge; ``pointer`` and ``correction`` are relative to the edge."""

    code: str
    pointer: str
    message: str
    hint: str | None = None
    correction: Correction | None = None


class EdgeCheck(NamedTuple):
    """The result of checking one kind of edge.

    Attributes:
        findings: The errors.
        single_value: The target port takes one value only.
        is_error_output: The edge leaves the reserved error handle, and the type has no such port.
    """

    findings: tuple[EdgeFinding, ...] = ()
    single_value: bool = False
    is_error_output: bool = False


COMPATIBLE: Final = EdgeCheck()
CHECK_EACH: Final = COMPATIBLE._replace()
"""No error, but an end is missing or it is the error handle, so each edge of the kind is checked.
Equal to COMPATIBLE, but another object."""


class EdgeKind(NamedTuple):
    """A kind of edge; an end is None if the node's type is unknown."""

    source: NodeTypeInfo | None
    source_handle: str
    target: NodeTypeInfo | None
    target_handle: str
    channel: str


def check_edge_kind(kind: EdgeKind, catalogue: NodeTypes) -> EdgeCheck:
    """Check one kind of edge against the ports of its ends."""
    if kind.channel == UNREADABLE:
        return COMPATIBLE
    errors: list[EdgeFinding] = []
    if kind.channel not in CHANNELS:
        message = f"unknown channel {kind.channel!r}"
        hint = f"channels are {' and '.join(CHANNELS)}"
        return EdgeCheck((EdgeFinding("unknown-channel", "/data/channel", message, hint),))
    out, from_error = _source_port(kind, errors)
    into = _target_port(kind, errors)
    ports = [port for port in (out, into) if port is not None]
    if not errors and any(port.channel != kind.channel for port in ports):
        errors.append(_wrong_channel(kind, out, into))
    elif not errors and out and into and not catalogue.accepts(into.type, out.type):
        errors.append(_type_mismatch(kind, out, into, catalogue))
    elif not errors and out and into:
        errors += _schema_mismatch(kind, out, into)
    single = into is not None and not into.multiple
    return (
        EdgeCheck(tuple(errors), single, from_error)
        if errors or single or from_error
        else COMPATIBLE
    )


def _source_port(kind: EdgeKind, findings: list[EdgeFinding]) -> tuple[Port | None, bool]:
    """Return the port that an edge leaves, and whether it is the reserved error handle."""
    facts = kind.source
    if facts is None:
        return None, False
    if kind.channel == FLOW and not facts.executes:
        message = f"a {facts.node_type} never runs, so no data can flow out of it"
        hint = f"connect it with a link to the node that uses it{_link_in_python(kind)}"
        link = _use_channel(LINK)
        findings.append(EdgeFinding("channel-mismatch", "/data/channel", message, hint, link))
        return None, False
    if kind.source_handle == UNREADABLE:
        return None, False
    port = find_output(facts.outputs, kind.source_handle, kind.channel)
    if port is None and kind.source_handle == ERROR_HANDLE and facts.executes:
        if kind.channel != FLOW:
            message = f"the handle {ERROR_HANDLE!r} carries data, not links"
            findings.append(EdgeFinding("channel-mismatch", "/data/channel", message))
        return None, True
    if port is None:
        handles = fixed_handles(facts.outputs)
        findings.append(
            _unknown_handle("sourceHandle", "output", kind.source_handle, facts, handles)
        )
    return port, False


def _link_in_python(kind: EdgeKind) -> str:
    """Return how the link is written with the builder, as the rest of a hint."""
    outputs = [] if kind.source is None else [p for p in kind.source.outputs if p.channel == LINK]
    inputs = [] if kind.target is None else [p for p in kind.target.inputs if p.channel == LINK]
    for out in outputs:
        for into in inputs:
            if into.type == out.type:
                return f"; in Python, pass the node as a keyword: {python_name(into.name)}=node"
    return ""


def _target_port(kind: EdgeKind, findings: list[EdgeFinding]) -> Port | None:
    facts = kind.target
    if facts is None or kind.target_handle == UNREADABLE:
        return None
    port = find_port(facts.inputs, kind.target_handle, kind.channel)
    if kind.target_handle in facts.policy_fields and kind.target_handle != (port and port.name):
        findings.append(_into_policy(kind.target_handle, facts))
        return None
    if port is None:
        handles = fixed_handles(facts.inputs)
        findings.append(
            _unknown_handle("targetHandle", "input", kind.target_handle, facts, handles)
        )
    return port


def _into_policy(handle: str, facts: NodeTypeInfo) -> EdgeFinding:
    message = (
        f"no edge may lead into {handle!r} of type {facts.node_type!r}: it decides what is allowed"
    )
    hint = f"remove the edge, and write the value into data.{handle}"
    return EdgeFinding("policy-field", "/targetHandle", message, hint)


def _unknown_handle(
    field: str, side: str, handle: str, facts: NodeTypeInfo, handles: Sequence[str]
) -> EdgeFinding:
    listed = (
        f"its {side}s are {', '.join(dict.fromkeys(handles))}" if handles else f"it has no {side}s"
    )
    message = f"type {facts.node_type!r} has no {side} {handle!r}; {listed}"
    hint, fixed = None, [name for name in dict.fromkeys(handles) if "{" not in name]
    meant = fixed[0] if len(fixed) == len(handles) == 1 else None
    if near := closest_match(handle, handles):
        hint, meant = f"did you mean {near!r}?", near if near in fixed else None
    elif handles and "{" not in (first := handles[0].replace("{i}", "0")):
        hint = f'write "{field}": "{first}"; in Python, connect node["{first}"]'
    correction = Correction(f"Use {side} {meant}", {field: meant}) if meant else None
    return EdgeFinding("unknown-handle", f"/{field}", message, hint, correction)


def _wrong_channel(kind: EdgeKind, out: Port | None, into: Port | None) -> EdgeFinding:
    ends = [f"output {kind.source_handle!r} is for {out.channel}"] if out else []
    ends += [f"input {kind.target_handle!r} is for {into.channel}"] if into else []
    message = f"the channel is {kind.channel}, but {' and '.join(ends)}"
    channels = {port.channel for port in (out, into) if port}
    if len(channels) > 1:
        hint = "these two cannot be connected"
        return EdgeFinding("channel-mismatch", "/data/channel", message, hint)
    (channel,) = channels
    hint = f'write "channel": "{channel}"'
    use = _use_channel(channel)
    return EdgeFinding("channel-mismatch", "/data/channel", message, hint, use)


def _use_channel(channel: str) -> Correction:
    return Correction(f"Make it a {channel}", {"data": {"channel": channel}})


def _type_mismatch(kind: EdgeKind, out: Port, into: Port, catalogue: NodeTypes) -> EdgeFinding:
    message = (
        f"output {kind.source_handle!r} is of type {out.type}, "
        f"input {kind.target_handle!r} accepts {into.type}"
    )
    others = kind.source.outputs if kind.source else ()
    fitting = [
        port.name
        for port in others
        if port.channel == kind.channel
        and "{" not in port.name
        and catalogue.accepts(into.type, port.type)
        and not _schema_mismatch(kind, port, into)
    ]
    hint = "put a node between them that converts the value"
    by = kind.source.schema_output if kind.source else None
    is_open = by is not None and by.port.name == out.name and not by.named
    if by is not None and is_open and catalogue.accepts(into.type, by.port.type):
        hint = (
            f"write a JSON Schema into data.{by.field}: the output is of type {by.port.type} then"
        )
    elif fitting:
        hint = f"use the output {fitting[0]!r} of the same node"
    correction = None
    if len(fitting) == 1:
        correction = Correction(f"Use output {fitting[0]}", {"sourceHandle": fitting[0]})
    return EdgeFinding("type-mismatch", "", message, hint, correction)


def _schema_mismatch(kind: EdgeKind, out: Port, into: Port) -> list[EdgeFinding]:
    if out.schema is None or into.schema is None:
        return []
    if (reason := schema_mismatch(out.schema, into.schema)) is None:
        return []
    ends = f"what leaves {kind.source_handle!r} never fits {kind.target_handle!r}"
    hint = "put a node between them that converts the value, or correct the types"
    return [EdgeFinding("type-mismatch", "", f"{ends}: {reason}", hint)]
