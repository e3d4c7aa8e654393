"""Plain paths such as ``input.items[0].name | upper``, evaluated in process.

The walk follows only dicts with text keys, and lists: attributes, methods and properties of Python
objects cannot be reached.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from planwave.errors import TemplateError
from planwave.expressions.errors import UNDEFINED
from planwave.expressions.filters import UNDEFINED_VALUE, FilterCall, apply_filters
from planwave.expressions.json_text import Json

PathStep = str | int


class ValuePath(NamedTuple):
    """A plain path, or a text literal (``root`` is None), and the filters applied to it."""

    source: str
    root: str | None
    steps: tuple[PathStep, ...]
    filters: tuple[FilterCall, ...] = ()
    literal: str = ""


def evaluate_path(path: ValuePath, root: Json) -> Json:
    """Return the value of a plain path.

    Args:
        path: The path.
        root: The value of the path's root, or ``UNDEFINED_VALUE``.

    Raises:
        TemplateError: ``template-undefined``: a step does not exist and there is no ``default``
            filter; ``template-error``: a filter does not accept its value; ``template-too-large``.
    """
    value, walked = (path.literal, 0) if path.root is None else _walk(path, root)
    if value is UNDEFINED_VALUE and not (path.filters and path.filters[0].handles_undefined):
        raise _undefined(path, root, walked)
    result = apply_filters(value, path.filters)
    if result is UNDEFINED_VALUE:
        raise TemplateError(
            f"{{{{ {path.source} }}}} is undefined: the value is empty",
            code=UNDEFINED,
            hint='add | default("…") at the end',
        )
    return result


def _walk(path: ValuePath, root: Json) -> tuple[Json, int]:
    """Follow the steps; return the value and the number of steps that exist."""
    value = root
    for walked, step in enumerate(path.steps):
        if value is UNDEFINED_VALUE:
            return value, walked
        value = _child(value, step)
        if value is UNDEFINED_VALUE:
            return value, walked
    return value, len(path.steps)


def _child(value: Json, step: PathStep) -> Json:
    if isinstance(value, dict):
        children = cast(dict[str, Json], value)
        return children.get(step if isinstance(step, str) else str(step), UNDEFINED_VALUE)
    if isinstance(value, list) and isinstance(step, int):
        items = cast(list[Json], value)
        return items[step] if -len(items) <= step < len(items) else UNDEFINED_VALUE
    return UNDEFINED_VALUE


def _undefined(path: ValuePath, root: Json, walked: int) -> TemplateError:
    """Return the error that names the first missing step and describes the value before it."""
    prefix = path.root or ""
    if root is UNDEFINED_VALUE:
        return TemplateError(
            f"{prefix!r} is undefined in {{{{ {path.source} }}}}",
            code=UNDEFINED,
            hint='use input, inputs.<handle>, nodes["id"].output, trigger, goal or default(…)',
        )
    value = root
    for step in path.steps[:walked]:
        value = _child(value, step)
        prefix += _step_text(step)
    missing = _step_text(path.steps[walked])
    return TemplateError(
        f"{prefix}{missing} is undefined in {{{{ {path.source} }}}}: {prefix} {_describe(value)}",
        code=UNDEFINED,
        hint='correct the path, or add | default("…")',
    )


def _step_text(step: PathStep) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() else f"[{step!r}]"


def _describe(value: Json) -> str:
    if isinstance(value, dict):
        keys = [str(key)[:40] for key in cast(dict[str, Json], value)]
        more = ", …" if len(keys) > 8 else ""
        return f"has {', '.join(keys[:8])}{more}" if keys else "is an empty object"
    if isinstance(value, list):
        return f"is a list of {len(cast(list[Json], value))}"
    if value is None:
        return "is null"
    return "is text" if isinstance(value, str) else "is not an object"
