"""Names of tools: in a form that models accept, and unique among the tools of a node."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

MAX_NAME_CHARS: Final = 64
"""The longest name of a tool that the providers accept."""
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


class LinkedName(NamedTuple):
    """The name of a tool, and the node that gives it."""

    name: str
    node_id: str


def tool_name(text: str) -> str:
    """Return a text as the name of a tool: letters, digits, ``_`` and ``-``, at most 64."""
    return _NOT_IN_NAMES.sub("_", text)[:MAX_NAME_CHARS]


def unique_names(names: Sequence[LinkedName]) -> list[LinkedName]:
    """Return the names; those that occur several times get the id of their node as ending."""
    count = Counter(each.name for each in names)
    return [
        each._replace(name=_with_node(*each)) if count[each.name] > 1 else each for each in names
    ]


def first_duplicate(names: Sequence[LinkedName]) -> tuple[LinkedName, LinkedName] | None:
    """Return the first two of one name; None if all are unique."""
    first_by_name: dict[str, LinkedName] = {}
    for each in names:
        if each.name in first_by_name:
            return first_by_name[each.name], each
        first_by_name[each.name] = each
    return None


def _with_node(name: str, node_id: str) -> str:
    ending = f"_{tool_name(node_id)}"[: MAX_NAME_CHARS - 1]
    return name[: MAX_NAME_CHARS - len(ending)] + ending
