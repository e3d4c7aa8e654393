"""Handles of types that send their input one way of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planwave.graph.gaps import UNREAD
from planwave.graph.json_values import shown
from planwave.graph.model import ERROR_HANDLE, FLOW
from planwave.graph.names import nearest
from planwave.nodes.node_type import Finding
from planwave.nodes.wiring import Wiring

_SHOWN = 12


def numbered_handle_faults(
    prefix: str, count: int, otherwise: str, pointer: str, wiring: Wiring
) -> Iterator[Finding]:
    """Find edges that leave through a branch beyond the last.

    Args:
        prefix: What the handles of branches begin with (``case-``).
        count: How many branches there are.
        otherwise: The handle for what takes none of them.
        pointer: Where in the node the branches are declared.
        wiring: The node.
    """
    handles = [f"{prefix}{i}" for i in range(count)]
    for edge in wiring.outgoing:
        left = edge.source_handle
        if edge.channel != FLOW or not left.startswith(prefix) or left in handles:
            continue
        yield Finding(
            "unknown-handle",
            f"edge {edge.id!r} leaves through {left!r}, but there "
            + ("is only 1 branch" if count == 1 else f"are only {count} branches"),
            pointer,
            hint=f"use one of {', '.join([*handles[:_SHOWN], otherwise])}",
        )


def named_handle_faults(names: Sequence[str], pointer: str, wiring: Wiring) -> Iterator[Finding]:
    """Find edges that leave through none of the declared names.

    Args:
        names: The handles there are, besides the reserved one for errors.
        pointer: Where in the node they are declared.
        wiring: The node.
    """
    for edge in wiring.outgoing:
        left = edge.source_handle
        if edge.channel != FLOW or left in (*names, ERROR_HANDLE, UNREAD):
            continue
        near = nearest(left, names)
        yield Finding(
            "unknown-handle",
            f"edge {edge.id!r} leaves through {shown(left)}, which is none of the handles "
            f"{', '.join(names)}",
            pointer,
            hint=f"did you mean {near!r}?"
            if near
            else f'give the edge a "sourceHandle" of {", ".join(names)}',
        )
