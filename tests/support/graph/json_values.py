"""Values at the edges of what JSON can hold."""

from __future__ import annotations

from typing import Any


def nested_lists(depth: int) -> Any:
    """Put the number 1 into so many lists."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value
