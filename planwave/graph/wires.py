"""Does an edge fit the ports at its two ends? One verdict for each kind of edge, not for each edge.

Two edges with the same node types, handles and channel get the same verdict, so a graph of a
hundred thousand edges asks the catalogue only a handful of times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from planwave.graph.capabilities import Catalogue, NodeFacts
from planwave.graph.fields import CHANNELS
from planwave.graph.gaps import UNREAD
from planwave.graph.model import ERROR_HANDLE, FLOW, Channel, Port, handles_of
from planwave.graph.ports import find_output, find_port


class Fault(NamedTuple):
    """What is wrong with a kind of edge; ``below`` is the pointer inside the edge."""

    code: str
    below: str
    message: str
    hint: str | None = None


class Fit(NamedTuple):
    """What holds for every edge of one kind.

    Attributes:
        faults: What is wrong.
        single: Its target port takes one value only.
        from_error: It leaves the reserved error handle, and the type has no port of that name.
    """

    faults: tuple[Fault, ...] = ()
    single: bool = False
    from_error: bool = False


FITS: Final = Fit()
TO_BE_SEEN: Final = FITS._replace()
"""Nothing is known against it, but an end is missing or it is the handle for errors: each edge of
the kind needs a look. Equal to FITS, not the same object."""


class Wire(NamedTuple):
    """A kind of edge: facts are None where the node's type is unknown.

    Handles and channel are ``UNREAD`` where they could not be read.
    """

    source: NodeFacts | None
    source_handle: str
    target: NodeFacts | None
    target_handle: str
    channel: str


def fit_of(wire: Wire, catalogue: Catalogue) -> Fit:
    """Hold one kind of edge against the ports of its ends.

    Of an edge whose channel could not be read, only what is wrong on either channel is a fault.
    """
    if wire.channel == UNREAD:
        return _fit_on_either(wire, catalogue)
    faults: list[Fault] = []
    if wire.channel not in CHANNELS:
        message = f"unknown channel {wire.channel!r}"
        hint = f"channels are {' and '.join(CHANNELS)}"
        return Fit((Fault("unknown-channel", "/data/channel", message, hint),))
    out, from_error = _output(wire, faults)
    into = _input(wire, faults)
    ports = [port for port in (out, into) if port is not None]
    if not faults and any(port.channel != wire.channel for port in ports):
        faults.append(_wrong_channel(wire, out, into))
    elif not faults and out and into and not catalogue.accepts(into.type, out.type):
        faults.append(_mismatch(wire, out, into))
    single = into is not None and not into.multiple
    return Fit(tuple(faults), single, from_error) if faults or single or from_error else FITS


def open_channels(wire: Wire, catalogue: Catalogue) -> list[Channel]:
    """Give the channels that the ports of an edge's two ends leave open to it."""
    return [
        channel
        for channel in CHANNELS
        if all(
            fault.code != "channel-mismatch"
            for fault in fit_of(wire._replace(channel=channel), catalogue).faults
        )
    ]


def _fit_on_either(wire: Wire, catalogue: Catalogue) -> Fit:
    if not open_channels(wire, catalogue):
        message = "the output it leaves and the input it goes into are for different channels"
        return Fit((Fault("channel-mismatch", "", message, "these two cannot be connected"),))
    fits = [fit_of(wire._replace(channel=channel), catalogue) for channel in CHANNELS]
    return Fit(tuple(fault for fault in fits[0].faults if fault in fits[1].faults))


def _output(wire: Wire, faults: list[Fault]) -> tuple[Port | None, bool]:
    """Find the port an edge leaves, and whether it is the reserved error handle."""
    facts = wire.source
    if facts is None:
        return None, False
    if wire.channel == FLOW and not facts.executes:
        message = f"a {facts.node_type} never runs, so no data can flow out of it"
        hint = "connect it with a link to the node that uses it"
        faults.append(Fault("channel-mismatch", "/data/channel", message, hint))
        return None, False
    if wire.source_handle == UNREAD:
        return None, False
    port = find_output(facts.outputs, wire.source_handle, wire.channel)
    if port is None and wire.source_handle == ERROR_HANDLE and facts.executes:
        if wire.channel != FLOW:
            message = f"the handle {ERROR_HANDLE!r} carries data, not links"
            faults.append(Fault("channel-mismatch", "/data/channel", message))
        return None, True
    if port is None:
        known = handles_of(facts.outputs)
        faults.append(_unknown("sourceHandle", "output", wire.source_handle, facts, known))
    return port, False


def _input(wire: Wire, faults: list[Fault]) -> Port | None:
    facts = wire.target
    if facts is None or wire.target_handle == UNREAD:
        return None
    port = find_port(facts.inputs, wire.target_handle, wire.channel)
    if port is None:
        known = handles_of(facts.inputs)
        faults.append(_unknown("targetHandle", "input", wire.target_handle, facts, known))
    return port


def _unknown(field: str, side: str, handle: str, facts: NodeFacts, known: Sequence[str]) -> Fault:
    listed = f"its {side}s are {', '.join(dict.fromkeys(known))}" if known else f"it has no {side}s"
    message = f"a {facts.node_type} has no {side} {handle!r}; {listed}"
    return Fault("unknown-handle", f"/{field}", message)


def _wrong_channel(wire: Wire, out: Port | None, into: Port | None) -> Fault:
    ends = [f"output {wire.source_handle!r} is for {out.channel}"] if out else []
    ends += [f"input {wire.target_handle!r} is for {into.channel}"] if into else []
    message = f"the channel is {wire.channel}, but {' and '.join(ends)}"
    channels = {port.channel for port in (out, into) if port}
    hint = "these two cannot be connected"
    if len(channels) == 1:
        hint = f'write "channel": "{channels.pop()}"'
    return Fault("channel-mismatch", "/data/channel", message, hint)


def _mismatch(wire: Wire, out: Port, into: Port) -> Fault:
    message = (
        f"output {wire.source_handle!r} gives {out.type}, "
        f"input {wire.target_handle!r} takes {into.type}"
    )
    return Fault("type-mismatch", "", message, "put a node between them that converts the value")
