"""Which wires fed a node's parameters, and what they beat: told by the node itself as it started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from planwave.events import Event
from planwave.nodes.feeding import INLINE, WIRED

_OVERRIDDEN_TEXT: Final = {INLINE: "what is written in it"}


def wired_parameters(events: Sequence[Event], path: str) -> dict[str, dict[str, Any]]:
    """Give the wired parameters of a node, as its last attempt met them.

    Returns:
        ``{name: {"channel", "edge", "source", "handle"?, "over"}}``. ``handle`` is where the wire
        leads, where that is not the parameter's own. ``over`` is what lost: ``reply_edge``, ``link``,
        ``inline``.
    """
    for event in reversed(events):
        if event.path == path and event.type in ("node.event", "node.started"):
            if event.type == "node.started":
                return {}
            if event.data.get("event_type") == WIRED:
                return dict(event.data["data"]["fields"])
    return {}


def describe_sources(wired: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Tell each wired parameter in a sentence."""
    for name, each in wired.items():
        into = f" into {each['handle']!r}" if "handle" in each else ""
        beaten = list(_overridden(each["over"]))
        over = f", which beats {' and '.join(beaten)}" if beaten else ""
        yield f"Its {name!r} came by the {each['channel']} from {each['source']!r}{into}{over}."


def _overridden(over: Iterable[str]) -> Iterator[str]:
    for each in over:
        yield _OVERRIDDEN_TEXT.get(each, f"the {each}")
