"""Renaming nodes inside expressions: ``nodes["old"]`` and ``nodes.old``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from planwave.errors import TemplateError
from planwave.expressions.variables import NODES

if TYPE_CHECKING:
    from planwave.expressions.syntax import Token


def may_name_any_node(text: str) -> bool:
    """Return whether a template names nodes in a way that a rename cannot follow.

    It computes an id (``nodes["a" ~ x]``), writes one with escapes, passes ``nodes`` on under another
    name, or gives the name ``nodes`` to something else.
    """
    if NODES not in text:
        return False
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    from planwave.expressions.syntax import binds, parse_template

    try:
        references = parse_template(text).references
        return any(
            variable.name == NODES and variable.key is None for variable in references
        ) or binds(text, NODES)
    except TemplateError:  # the check of the graph reports it
        return False


def rename_in_template(text: str, new_ids: Mapping[str, str]) -> str:
    """Return a template in which references to nodes have their new ids.

    Ids that an expression computes are not found; see ``may_name_any_node``. Text outside of
    expressions, text that is no template, and templates that give the name ``nodes`` to something else
    stay unchanged.

    Args:
        text: The template.
        new_ids: The new ids by the old ones; all are renamed at once.
    """
    if NODES not in text or not any(old in text for old in new_ids):
        return text
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    from planwave.expressions.syntax import binds, expression_tokens

    try:
        if binds(text, NODES):
            return text
        tokens = expression_tokens(text)
    except TemplateError:  # the check of the graph reports it
        return text
    parts: list[str] = []
    done = 0
    for start, end, replacement in _changes(tokens, new_ids):
        parts += text[done:start], replacement
        done = end
    return "".join((*parts, text[done:]))


def rename_in_expression(text: str, new_ids: Mapping[str, str]) -> str:
    """Return an expression without braces, changed as by ``rename_in_template``."""
    renamed = rename_in_template(f"{{{{{text}}}}}", new_ids)
    return renamed.removeprefix("{{").removesuffix("}}")


def _changes(tokens: Sequence[Token], new_ids: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and replacement of each reference to a renamed node, in order."""
    for at, token in enumerate(tokens):
        is_member = at > 0 and tokens[at - 1].value == "."
        if (token.kind, token.value) != ("name", NODES) or is_member:
            continue
        match [(each.kind, each.value) for each in tokens[at + 1 : at + 4]]:
            case [("operator", "."), ("name", name), *_] if name in new_ids:
                dot, old = tokens[at + 1 : at + 3]
                new = new_ids[name]
                if new.isidentifier():
                    yield old.start, old.end, new
                else:
                    yield dot.start, old.end, f"[{json.dumps(new)}]"
            case [("operator", "["), ("string", text), ("operator", "]")] if text[1:-1] in new_ids:
                key = tokens[at + 2]
                yield key.start, key.end, f"{text[0]}{new_ids[text[1:-1]]}{text[-1]}"
            case _:
                pass
