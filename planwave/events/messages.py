"""What nodes tell the caller while the execution goes on."""

from __future__ import annotations

from typing import Any, Final, cast

from planwave.graph.values import to_text

MESSAGE: Final = "message"
"""``event_type`` of such a ``node.event``; its data are ``{"text", "extras"}``."""

PLANNING: Final = "planning"
"""``event_type`` of what happens while a node writes a plan: ``{"kind", …}``, as the planner tells it
(``title``, ``node``, ``edge``, ``fix``; ``repair``: it is written anew)."""


def message_text(data: Any) -> str:
    """Give the text of a message, "" where it has none; data of another shape are the text."""
    text: Any = cast("dict[str, Any]", data).get("text", "") if isinstance(data, dict) else data
    return to_text(text)
