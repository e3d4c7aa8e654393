"""Values that move along edges, and how each of them reads as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from planwave.expressions.text import to_text
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Json



class DataValue(NamedTuple):
    """A JSON value and its socket type (``text``, ``json``, ``number`` … opaque to the kernel)."""

    type: str
    value: Json


class Arrival(NamedTuple):
    """One value that reached one node along one flow edge."""

    edge_id: str
    source_id: str
    source_name: str
    source_handle: str
    target_handle: str
    value: DataValue


def result_text(outputs: Mapping[str, DataValue]) -> str:
    """Give a node's result as text: its ``output`` handle, else its first port with a value."""
    chosen = outputs.get(DEFAULT_SOURCE_HANDLE) or next(iter(outputs.values()), None)
    return "" if chosen is None else to_text(chosen.value)


def arrivals_text(arrivals: tuple[Arrival, ...]) -> str:
    """Give arrivals as text: one as itself, several as blocks that say where each came from.

    Each block is exactly ``From {name} ({id}):`` and the result on the next line; blocks are joined
    by a blank line, in edge order.
    """
    if len(arrivals) == 1:
        return to_text(arrivals[0].value.value)
    return labelled_arrivals(arrivals)


def labelled_arrivals(arrivals: tuple[Arrival, ...]) -> str:
    """Give every arrival as a ``From {name} ({id}):`` block, a single one too."""
    return "\n\n".join(
        f"From {a.source_name} ({a.source_id}):\n{to_text(a.value.value)}" for a in arrivals
    )


class Inputs(Mapping[str, DataValue]):
    """What a node was given, by handle; a handle with several arrivals holds a list.

    Iteration follows the order in which handles first appear among the arrivals (edge order).
    """

    __slots__ = ("arrivals",)

    def __init__(self, arrivals: tuple[Arrival, ...] = ()) -> None:
        self.arrivals = arrivals

    def __getitem__(self, handle: str) -> DataValue:
        values = self.all(handle)
        if not values:
            raise KeyError(handle)
        if len(values) == 1:
            return values[0]
        return DataValue("list", [v.value for v in values])

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(a.target_handle for a in self.arrivals))

    def __len__(self) -> int:
        return len({a.target_handle for a in self.arrivals})

    def all(self, handle: str) -> list[DataValue]:
        """Give every value that arrived at a handle, in edge order."""
        return [a.value for a in self.arrivals if a.target_handle == handle]

    def one(self, handle: str) -> DataValue | None:
        """Give the first value that arrived at a handle, or None."""
        return next((a.value for a in self.arrivals if a.target_handle == handle), None)

    def text(self, handle: str | None = None) -> str:
        """Give what arrived (at one handle, or at all) as text; see :func:`arrivals_text`."""
        chosen = self.arrivals
        if handle is not None:
            chosen = tuple(a for a in chosen if a.target_handle == handle)
        return arrivals_text(chosen) if chosen else ""
