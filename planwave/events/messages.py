"""What nodes tell the caller while the execution goes on."""

from __future__ import annotations

from typing import Any, Final, cast

from planwave.graph.values import text_of

MESSAGE: Final = "message"
"""``event_type`` of such a ``node.event``; its data are ``{"text", "extras"}``."""


def message_of(data: Any) -> str:
    """Give the text of a message; all of it as text where it has none."""
    text = cast("dict[str, Any]", data).get("text") if isinstance(data, dict) else None
    return text if isinstance(text, str) else text_of(data)
