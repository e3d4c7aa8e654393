"""Handles of types that send their input one way of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planwave.graph.diagnostics import short_repr
from planwave.graph.model import ERROR_HANDLE, FLOW
from planwave.graph.reading.unreadable import UNREADABLE
from planwave.graph.suggestions import closest_match
from planwave.nodes.authoring.node_type import NodeFinding
from planwave.nodes.checking.node_view import NodeView

_MAX_HANDLES_SHOWN = 12


def check_numbered_handles(
    prefix: str, count: int, otherwise: str, pointer: str, view: NodeView
) -> Iterator[NodeFinding]:
    """Find edges that leave through a branch beyond the last.

    Args:
        prefix: What the handles of branches begin with (``case-``).
        count: How many branches there are.
        otherwise: The handle for what takes none of them.
        pointer: Where in the node the branches are declared.
        view: The node.
    """
    handles = [f"{prefix}{i}" for i in range(count)]
    for edge in view.outgoing:
        left = edge.source_handle
        if edge.channel != FLOW or not left.startswith(prefix) or left in handles:
            continue
        yield NodeFinding(
            "unknown-handle",
            f"edge {edge.id!r} leaves through {left!r}, but there "
            + ("is only 1 branch" if count == 1 else f"are only {count} branches"),
            pointer,
            hint=f"use one of {', '.join([*handles[:_MAX_HANDLES_SHOWN], otherwise])}",
        )


def check_named_handles(
    names: Sequence[str], pointer: str, view: NodeView
) -> Iterator[NodeFinding]:
    """Find edges that leave through none of the declared names.

    Args:
        names: The handles there are, besides the reserved one for errors.
        pointer: Where in the node they are declared.
        view: The node.
    """
    for edge in view.outgoing:
        left = edge.source_handle
        if edge.channel != FLOW or left in (*names, ERROR_HANDLE, UNREADABLE):
            continue
        near = closest_match(left, names)
        yield NodeFinding(
            "unknown-handle",
            f"edge {edge.id!r} leaves through {short_repr(left)}, which is none of the handles "
            f"{', '.join(names)}",
            pointer,
            hint=f"did you mean {near!r}?"
            if near
            else f'give the edge a "sourceHandle" of {", ".join(names)}',
        )
