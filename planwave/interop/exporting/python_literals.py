"""JSON values as Python source: short ones on a line, texts of several lines in triple quotes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, cast

from planwave.graph.model import Json

MAX_LINE: Final = 96
_STEP: Final = "    "
_CONSTANTS: Final[dict[object, str]] = {None: "None", True: "True", False: "False"}


def literal(value: Json, indent: str = "", taken: int = 0) -> str:
    """Return the source of a value.

    Args:
        value: A JSON value.
        indent: The indentation of the line that it begins on.
        taken: The characters of that line beside it.
    """
    short = _flat(value)
    if short is not None and len(indent) + taken + len(short) <= MAX_LINE:
        return short
    if isinstance(value, str):
        return _text(value)
    if not value or not isinstance(value, dict | list):
        return short or repr(value)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    inner = indent + _STEP
    lines = "".join(f"{inner}{member},\n" for member in _members(value, inner))
    return f"{opening}\n{lines}{indent}{closing}"


def _members(value: Json, indent: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, member in cast("dict[str, Json]", value).items():
            name = text_literal(key)
            yield f"{name}: {literal(member, indent, len(name) + 3)}"
    else:
        for item in cast("list[Json]", value):
            yield literal(item, indent, 1)


def _flat(value: Json) -> str | None:
    """Return the source on one line; None where a text of several lines is better read as lines."""
    if isinstance(value, str):
        return None if _has_lines(value) else text_literal(value)
    if value is None or isinstance(value, bool):
        return _CONSTANTS[value]
    if isinstance(value, dict):
        members = cast("dict[str, Json]", value)
        pairs = [(text_literal(key), _flat(member)) for key, member in members.items()]
        if any(member is None for _, member in pairs):
            return None
        return f"{{{', '.join(f'{key}: {member}' for key, member in pairs)}}}"
    if isinstance(value, list):
        items = [_flat(item) for item in cast("list[Json]", value)]
        return None if None in items else f"[{', '.join(map(str, items))}]"
    return repr(value)


def text_literal(text: str) -> str:
    """Return the source of a text on one line, with escapes for all that cannot be seen."""
    if '"' in text and text.isprintable() and not {"'", "\\"}.intersection(text):
        return f"'{text}'"
    written = json.dumps(text, ensure_ascii=False)
    return written if written.isprintable() else "".join(map(_escape, written))


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _has_lines(text: str) -> bool:
    return "\n" in text.strip("\n") and all(line.isprintable() for line in text.split("\n"))


def _text(text: str) -> str:
    if not _has_lines(text):
        return text_literal(text)
    body = text.rstrip('"')
    escaped = body.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    escaped += '\\"' * (len(text) - len(body))
    return f'"""\\\n{escaped}"""'
