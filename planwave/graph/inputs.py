"""The inputs of one node: the arrived values by input handle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planwave.expressions.json_text import to_text
from planwave.graph.model import Arrival, DataValue


class Inputs(Mapping[str, DataValue]):
    """The values that arrived at a node, by handle; several arrivals at one handle form a list.

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
        """Return every value that arrived at a handle, in edge order."""
        return [a.value for a in self.arrivals if a.target_handle == handle]

    def one(self, handle: str) -> DataValue | None:
        """Return the first value that arrived at a handle, or None."""
        return next((a.value for a in self.arrivals if a.target_handle == handle), None)

    def text(self, handle: str | None = None) -> str:
        """Return the arrivals at one handle, or all arrivals, as text; see ``arrivals_text``."""
        chosen = self.arrivals
        if handle is not None:
            chosen = tuple(a for a in chosen if a.target_handle == handle)
        return arrivals_text(chosen) if chosen else ""


def arrivals_text(arrivals: tuple[Arrival, ...]) -> str:
    """Return arrivals as text: a single one unchanged, several as blocks that name their source.

    Each block is exactly ``From {name} ({id}):`` and the result on the next line; blocks are joined
    by a blank line, in edge order.
    """
    if len(arrivals) == 1:
        return to_text(arrivals[0].value.value)
    return labelled_arrivals(arrivals)


def labelled_arrivals(arrivals: tuple[Arrival, ...]) -> str:
    """Return every arrival, even a single one, as a ``From {name} ({id}):`` block."""
    return "\n\n".join(
        f"From {a.source_name} ({a.source_id}):\n{to_text(a.value.value)}" for a in arrivals
    )
