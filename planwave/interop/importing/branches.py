"""Which steps run only on one branch of a choice, and so never together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple


class Wire(NamedTuple):
    """A wire between two steps: ids and the handle that it leaves by."""

    source: str
    handle: str
    target: str


Guard = tuple[str, str]
"""A choosing step and its branch."""


def guards_of(
    steps: Iterable[str], wires: Sequence[Wire], choosing: frozenset[str]
) -> Mapping[str, frozenset[Guard]]:
    """Return, for each step, the branches without which it does not run.

    A step runs where something arrives on one of its wires. Wires from other steps than these always bring
    something. Steps of a cycle have no guards.
    """
    incoming: dict[str, list[Wire]] = {step: [] for step in steps}
    for wire in wires:
        if wire.target in incoming:
            incoming[wire.target].append(wire)
    sorter = TopologicalSorter(
        {
            step: {wire.source for wire in into if wire.source in incoming}
            for step, into in incoming.items()
        }
    )
    try:
        order = list(sorter.static_order())
    except CycleError:
        return dict.fromkeys(incoming, frozenset())
    found: dict[str, frozenset[Guard]] = {}
    for step in order:
        into = [guards_on(wire, found, choosing) for wire in incoming[step]]
        found[step] = into[0].intersection(*into) if into else frozenset()
    return found


def guards_on(
    wire: Wire, guards: Mapping[str, frozenset[Guard]], choosing: frozenset[str]
) -> frozenset[Guard]:
    """Return the branches without which nothing arrives on a wire."""
    own = {(wire.source, wire.handle)} if wire.source in choosing else set[Guard]()
    return guards.get(wire.source, frozenset()) | own


def are_exclusive(wires: Sequence[frozenset[Guard]]) -> bool:
    """Return whether at most one of several wires brings something in one run."""
    for number, one in enumerate(wires):
        for other in wires[number + 1 :]:
            branches = dict(other)
            if not any(branches.get(step, branch) != branch for step, branch in one):
                return False
    return True
