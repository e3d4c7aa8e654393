"""Python's names of data fields and inputs: keywords in snake_case for the camelCase of JSON.

A type that is known decides by its own names: ``user_prompt`` is its field ``userPrompt``, or its field
``user_prompt`` if it has one of that name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from keyword import iskeyword
from typing import Final

from planwave.graph.model import fixed_handles
from planwave.graph.ports import find_port
from planwave.graph.protocols import NodeTypeInfo
from planwave.graph.reading.policy import POLICY_FIELDS
from planwave.graph.suggestions import closest_match

_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def python_name(name: str) -> str:
    """Return the keyword for a name of JSON: ``user_prompt`` for ``userPrompt``."""
    words = _WORD_START.sub("_", name).lower()
    return f"{words}_" if iskeyword(words) else words


def data_name(keyword: str, node_type: str, facts: NodeTypeInfo | None) -> str:
    """Return the data field that a keyword means.

    Args:
        keyword: The keyword.
        node_type: The type of the node.
        facts: The type; None if it is not known.

    Raises:
        TypeError: The type has no such field; the message says which is meant.
    """
    if facts is None or not facts.declares_data:
        return _camel_case(keyword, node_type)
    names = _by_keyword(facts.data_fields.values())
    if keyword in names:
        return names[keyword]
    inputs = _by_keyword(fixed_handles(facts.inputs))
    if keyword in inputs:
        raise TypeError(
            f"{keyword!r} is an input of {node_type!r}, not a field: give it a node, such as "
            f'{keyword}=g.node("json", value=…)'
        )
    policy = {python_name(each): each for each in POLICY_FIELDS}
    if keyword in policy:
        way_out = f"it is a part of the policy: policy={{{policy[keyword]!r}: …}}"
    else:
        way_out = _way_out(keyword, [*names])
    raise TypeError(f"{node_type!r} has no field {keyword!r}; {way_out}")


def handle_name(keyword: str, node_type: str, facts: NodeTypeInfo | None) -> str:
    """Return the input handle that a keyword means; arguments as for ``data_name``.

    Raises:
        TypeError: The type has no such input; the message says which is meant.
    """
    if facts is None:
        return _camel_case(keyword, node_type)
    names = _by_keyword(fixed_handles(facts.inputs))
    if keyword in names:
        return names[keyword]
    if find_port(facts.inputs, keyword) is not None:
        return keyword
    raise TypeError(f"{node_type!r} has no input {keyword!r}; {_way_out(keyword, [*names])}")


def _by_keyword(names: Iterable[str]) -> dict[str, str]:
    """Return names of JSON by their keywords; a name that is a keyword itself comes first."""
    listed = list(names)
    by_keyword = {python_name(name): name for name in listed}
    exact = {name: name for name in listed if python_name(name) == name}
    return {
        keyword: name for keyword, name in (by_keyword | exact).items() if keyword.isidentifier()
    }


def _camel_case(keyword: str, node_type: str) -> str:
    if keyword != python_name(keyword):
        raise TypeError(
            f"keywords are in snake_case: write {python_name(keyword)}=…, or "
            f"data={{{keyword!r}: …}} for the field as {node_type!r} spells it"
        )
    head, *rest = keyword.strip("_").split("_")
    return head + "".join(word.capitalize() for word in rest)


def _way_out(keyword: str, known: list[str]) -> str:
    if near := closest_match(keyword, known):
        return f"did you mean {near!r}?"
    return f"it has {', '.join(sorted(known))}" if known else "it has none"
