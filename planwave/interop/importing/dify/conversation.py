"""Variables of the conversation: which of them steps set, and which they read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from planwave.interop.importing.dify.values import selector_of
from planwave.interop.importing.reading import object_of, objects_in, text_of

CONVERSATION: Final = "conversation"
_READ: Final = re.compile(r"#\s*conversation\.([A-Za-z_]\w*)")
_TARGETS: Final = frozenset({"assigned_variable_selector", "variable_selector"})
"""Fields of an assigner that say what it sets."""


class ConversationUse(NamedTuple):
    """What the steps of an app do with variables of the conversation, by their names.

    Attributes:
        written: Those that a step sets; all others have their first value in every run.
        read: Those that a step reads; of those that only grow or count, also by the step that sets them.
    """

    written: frozenset[str]
    read: frozenset[str]


UNUSED: Final = ConversationUse(frozenset(), frozenset())


def use_in(graph: Mapping[str, Any]) -> ConversationUse:
    """Return what the nodes of an app do with variables of the conversation."""
    written, read = set[str](), set[str]()
    for _, fields in objects_in(graph, "nodes"):
        data = object_of(fields, "data")
        if text_of(data, "type") == "assigner":
            entries = [data, *(each for _, each in objects_in(data, "items"))]
            for each in entries:
                for name in _TARGETS:
                    written.update(_named(each.get(name)))
                read.update(
                    _reads({k: v for k, v in each.items() if k not in (*_TARGETS, "items")})
                )
        else:
            read.update(_reads(data))
    return ConversationUse(frozenset(written), frozenset(read))


def _named(value: object) -> tuple[str, ...]:
    selector = selector_of(value)
    return selector[1:2] if selector[:1] == (CONVERSATION,) else ()


def _reads(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from _READ.findall(value)
    elif isinstance(value, dict):
        for each in cast("Mapping[str, Any]", value).values():
            yield from _reads(each)
    elif isinstance(value, list):
        items = cast("list[object]", value)
        yield from _named(items)
        for each in items:
            yield from _reads(each)
