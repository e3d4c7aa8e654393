"""Handles of types that send their input one way of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planwave.graph.diagnostics import short_repr
from planwave.graph.model import ERROR_HANDLE, FLOW
from planwave.graph.suggestions import closest_match
from planwave.nodes.authoring.node_type import NodeFinding
from planwave.nodes.checking.node_view import NodeView

_MAX_HANDLES_SHOWN = 12


def check_numbered_handles(
    prefix: str, count: int, otherwise: str, pointer: str, view: NodeView
) -> Iterator[NodeFinding]:
    """Yield edges that leave through a numbered branch that does not exist.

    Args:
        prefix: Prefix of the branches' handles (``case-``).
        count: Number of branches.
        otherwise: The handle for values that match no branch.
        pointer: JSON pointer to the declaration of the branches in the node.
        view: The node.
    """
    handles = [f"{prefix}{i}" for i in range(count)]
    for edge in view.outgoing:
        handle = edge.source_handle
        if edge.channel != FLOW or not handle.startswith(prefix) or handle in handles:
            continue
        yield NodeFinding(
            "unknown-handle",
            f"edge {edge.id!r} leaves through {handle!r}, but there "
            + ("is only 1 branch" if count == 1 else f"are only {count} branches"),
            pointer,
            hint=f"use one of {', '.join([*handles[:_MAX_HANDLES_SHOWN], otherwise])}",
        )


def check_named_handles(
    names: Sequence[str], pointer: str, view: NodeView
) -> Iterator[NodeFinding]:
    """Yield edges that leave through an undeclared handle.

    Args:
        names: The declared handles, without the reserved ``error``.
        pointer: JSON pointer to their declaration in the node.
        view: The node.
    """
    for edge in view.outgoing:
        handle = edge.source_handle
        if edge.channel != FLOW or handle in (*names, ERROR_HANDLE):
            continue
        near = closest_match(handle, names)
        yield NodeFinding(
            "unknown-handle",
            f"edge {edge.id!r} leaves through {short_repr(handle)}, which is none of the handles "
            f"{', '.join(names)}",
            pointer,
            hint=f"did you mean {near!r}?"
            if near
            else f'give the edge a "sourceHandle" of {", ".join(names)}',
        )
