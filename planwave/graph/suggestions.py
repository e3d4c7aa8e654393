"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Final

LOAD_OWN_TYPE: Final = (
    "a type of your own is loaded with planwave --import MODULE, or node_modules in planwave.toml"
)
"""The rest of a hint about an unknown node type."""
_MAX_CHARS: Final = 64
_MAX_CANDIDATES: Final = 300


def closest_match(name: str, known: Collection[str]) -> str | None:
    """Return the known name closest to a misspelt one, or None if none is close.

    Names over 64 characters and more than 300 known names are not compared: it takes too long.
    """
    if len(name) > _MAX_CHARS or len(known) > _MAX_CANDIDATES:
        return None
    plain = normalized(name)
    for candidate in known:
        if normalized(candidate) == plain:
            return candidate
    close = get_close_matches(name, known, n=1)
    return close[0] if close else None


def normalized(name: str) -> str:
    """Return a name without case and separators, so that "Research X" matches "research_x"."""
    return "".join(c for c in name.casefold() if c.isalnum())
