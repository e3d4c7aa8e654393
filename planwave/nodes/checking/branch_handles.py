"""Handles of types that send their input one way of several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from planwave.graph.diagnostics import short_repr
from planwave.graph.model import ERROR_HANDLE, FLOW, Edge, Json, Port
from planwave.graph.suggestions import Correction, closest_match
from planwave.nodes.authoring.node_type import NodeFinding
from planwave.nodes.checking.node_view import NodeView

_MAX_HANDLES_SHOWN = 12


def ports_named(labels: Iterable[tuple[str, str]]) -> tuple[Port, ...]:
    """Return a port for each handle, given with its label; only the first of one name."""
    unique: dict[str, str] = {}
    for name, label in labels:
        unique.setdefault(name, label)
    return tuple(Port(name, label=label) for name, label in unique.items())


def texts_in(value: Json) -> list[str]:
    """Return the texts of a list in data as written, [] if they are not a list."""
    items = cast("list[Json]", value) if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str) and item]


def branch_count(branches: Json, prefix: str, leaving: Iterable[str]) -> int:
    """Return the number of branches of a node: those in its data as written, or of its edges."""
    if isinstance(branches, list) and branches:
        return len(cast("list[Json]", branches))
    numbers = [handle.removeprefix(prefix) for handle in leaving if handle.startswith(prefix)]
    used = [int(number) for number in numbers if number.isdecimal() and len(number) <= 2]
    return max(used, default=0) + 1


def check_numbered_handles(
    prefix: str, count: int, otherwise: str, view: NodeView
) -> Iterator[NodeFinding]:
    """Yield edges that leave through a numbered branch that does not exist.

    Args:
        prefix: Prefix of the branches' handles (``case-``).
        count: Number of branches.
        otherwise: The handle for values that match no branch.
        view: The node.
    """
    handles = [f"{prefix}{i}" for i in range(count)]
    branches = "branch" if count == 1 else "branches"
    for edge in view.outgoing:
        handle = edge.source_handle
        if edge.channel == FLOW and handle.startswith(prefix) and handle not in handles:
            why = f"it has only {count} {branches}"
            hint = f"use one of {', '.join([*handles[:_MAX_HANDLES_SHOWN], otherwise])}"
            yield _unknown_handle(edge, view, why, hint)


def check_named_handles(names: Sequence[str], view: NodeView) -> Iterator[NodeFinding]:
    """Yield edges that leave through an undeclared handle.

    Args:
        names: The declared handles, without the reserved ``error``.
        view: The node.
    """
    for edge in view.outgoing:
        handle = edge.source_handle
        if edge.channel == FLOW and handle not in (*names, ERROR_HANDLE):
            hint = f'write "sourceHandle": "{names[0]}"; in Python, connect node["{names[0]}"]'
            near = closest_match(handle, names)
            if near is not None:
                hint = f"did you mean {near!r}?"
            why = f"its outputs are {', '.join(names)}"
            yield _unknown_handle(edge, view, why, hint, near)


def _unknown_handle(
    edge: Edge, view: NodeView, why: str, hint: str, near: str | None = None
) -> NodeFinding:
    message = f"{view.node.id!r} has no output {short_repr(edge.source_handle)}; {why}"
    correction = Correction(f"Use output {near}", {"sourceHandle": near}) if near else None
    return NodeFinding(
        "unknown-handle", message, "/sourceHandle", hint, edge=edge.id, correction=correction
    )
