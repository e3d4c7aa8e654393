"""What steps write into the state of a flow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from planwave.interop.importing.flowise.references import fields_of, parts_of, text_at
from planwave.interop.importing.flowise.steps import Expression, Part, Step, expression_of
from planwave.interop.importing.reading import list_of, objects_in, text_of
from planwave.interop.importing.templates import output_of, path

_FIELD_OF_OUTPUT: Final = re.compile(r"\{\{\s*output\.([\w.]+)\s*\}\}")
_OUTPUT: Final = "{{ output }}"
_MAX_CHARS: Final = 8_000
"""Characters of an expression: what writes a value made of the one before, twice, doubles it at each step."""


def write_state(step: Step, name: str) -> None:
    """Work out what a step that has become something writes into the state."""
    if step.inputs.get(name) and not list_of(step.inputs, name):
        step.lose("what it writes into the state cannot be read", step.inputs[name], f"/{name}")
    for number, each in objects_in(step.inputs, name):
        key, pointer = text_of(each, "key"), f"/{name}/{number}/value"
        value = _written(step, each, pointer)
        if value is not None and len(value) > _MAX_CHARS:
            step.lose(
                "what it writes into the state is put together of too many values", "", pointer
            )
            value = None
        step.writes[key] = value


def _written(step: Step, fields: Mapping[str, Any], pointer: str) -> str | None:
    text = text_at(step, "value", fields)
    if (match := _FIELD_OF_OUTPUT.search(text)) is not None:
        wanted = list(fields_of(match[1]))
        known = step.fields.get(str(wanted[0])) if wanted else None
        if known is None:
            step.lose("this field of its output is not known", match[0], pointer)
            return None
        return path(known, wanted[1:])
    content = step.content if step.content is not None else output_of(step.main.id)
    parts: list[Part] = []
    for count, piece in enumerate(text.replace("{{output}}", _OUTPUT).split(_OUTPUT)):
        parts += [Expression(content)] if count else []
        parts += parts_of(step, piece, pointer) if piece else []
    if any(isinstance(each, str) and "{{" in each for each in parts):
        return None  # a reference that cannot be read
    only = parts[0] if len(parts) == 1 else None
    return only.text if isinstance(only, Expression) else expression_of(parts)
