"""Planwave templates as text: what a converter writes in place of the templates of another program."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

_OPENINGS: Final = re.compile(r"\{(?=[{%#]|\Z)")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def literal(text: str) -> str:
    """Return a template that renders to a text as it is, also where another template follows it.

    ``{{``, ``{%``, ``{#`` and a brace at the end are escaped.
    """
    return _OPENINGS.sub("{{ '{' }}", text)


def quoted(text: str) -> str:
    """Return a text as a literal of an expression."""
    return json.dumps(text, ensure_ascii=False)


def path(root: str, fields: Sequence[str | int]) -> str:
    """Return an expression that reads a field of a field: ``root.a[0]["a b"]``."""
    parts = (
        f".{field}" if isinstance(field, str) and _NAME.match(field) else f"[{json.dumps(field)}]"
        for field in fields
    )
    return root + "".join(parts)


def output_of(node_id: str, handle: str = "output", fields: Sequence[str | int] = ()) -> str:
    """Return an expression that reads an output of a node: ``nodes["id"].output.field``."""
    return path(f"nodes[{quoted(node_id)}]", [handle, *fields])


def inserted(expression: str) -> str:
    """Return ``{{ expression }}``."""
    return f"{{{{ {expression} }}}}"


def json_expression(value: object) -> str | None:
    """Return a literal of an expression for JSON; None for what is no JSON."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return quoted(value)
        case list():
            return _list_expression(cast("list[object]", value))
        case dict():
            return _object_expression(cast("Mapping[object, object]", value))
        case _:
            return None


def _list_expression(values: Sequence[object]) -> str | None:
    items = [json_expression(value) for value in values]
    return None if None in items else f"[{', '.join(filter(None, items))}]"


def _object_expression(fields: Mapping[object, object]) -> str | None:
    items = [(quoted(str(name)), json_expression(value)) for name, value in fields.items()]
    if any(text is None for _, text in items):
        return None
    return f"{{{', '.join(f'{name}: {text}' for name, text in items)}}}"
