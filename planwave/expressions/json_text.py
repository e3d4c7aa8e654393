"""Convert JSON values to text and copy them; all packages use these functions."""

from __future__ import annotations

import json
from typing import Any, Final, cast

Json = Any
"""Any JSON value."""
LARGEST_WHOLE: Final = 2.0**63
"""Larger floats keep their exponent, as in ``1e+22``."""


def to_text(value: Json) -> str:
    """Return a value as text: text unchanged, null as empty text, else compact JSON.

    A number alone has one text: a float that is whole, and no larger than 64 bits, has that of the integer,
    as in the template engine.

    Raises:
        TypeError: The value is not JSON.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST_WHOLE:
        return str(int(value))
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
