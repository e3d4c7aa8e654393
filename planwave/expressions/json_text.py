"""Convert JSON values to text and copy them; all packages use these functions."""

from __future__ import annotations

import json
from typing import Any, cast

Json = Any
"""Any JSON value."""


def to_text(value: Json) -> str:
    """Return a value as text: text unchanged, null as empty text, else compact JSON.

    Raises:
        TypeError: The value is not JSON.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def copy_json(value: Json) -> Json:
    """Copy every container of a JSON value and share every leaf, without recursion."""
    if not isinstance(value, (dict, list)):
        return value
    source = cast("dict[str, Json] | list[Json]", value)
    top = source.copy()
    stack: list[dict[str, Json] | list[Json]] = [top]
    while stack:
        holder = stack.pop()
        pairs = list(holder.items()) if isinstance(holder, dict) else enumerate(holder)
        for key, child in pairs:
            if isinstance(child, (dict, list)):
                copied = cast("dict[str, Json] | list[Json]", child).copy()
                holder[key] = copied  # type: ignore[index]
                stack.append(copied)
    return top
