"""Expressions without the template around them."""

from __future__ import annotations

from planwave.expressions.paths import ValuePath
from planwave.expressions.syntax import parse_template


def plain_path(source: str) -> ValuePath | None:
    """Parse an expression; return None if it is more than a plain path."""
    parts = parse_template(f"{{{{ {source} }}}}").parts
    if parts is None:
        return None
    (path,) = parts
    assert isinstance(path, ValuePath)
    return path
