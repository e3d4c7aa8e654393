"""How a JSON value reads as text; every room that turns a value into text uses this one rule."""

from __future__ import annotations

import json
from typing import Any

Json = Any
"""Anything JSON can hold."""


def text_of(value: Json) -> str:
    """Give a value as text: itself if text, nothing for null, else compact JSON.

    Raises:
        TypeError: The value is not JSON.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
