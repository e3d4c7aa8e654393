"""Results and arrivals of upstream nodes as text."""

from __future__ import annotations

from collections.abc import Mapping

from planwave.expressions.json_text import to_text
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Arrival, DataValue


def result_text(outputs: Mapping[str, DataValue]) -> str:
    """Return a node's result as text: its ``output`` handle, else its first port with a value."""
    chosen = outputs.get(DEFAULT_SOURCE_HANDLE) or next(iter(outputs.values()), None)
    return "" if chosen is None else to_text(chosen.value)


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
