"""JSON values as YAML that people read: prompts as literal blocks, short lists on one line, keys in their order.

What is written reads back as the same value, with planwave's reader (``graph/reading/yaml_text.py``) and with those
that follow YAML 1.1: text that any of them takes for a number, a date or a truth value stands in quotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from planwave.graph.model import Json

_STEP: Final = "  "
_MAX_LINE: Final = 72
"""Characters of a list or an object that stands on one line."""
_MAX_KEY: Final = 120
"""Characters of a key before a colon; YAML allows 1024."""
_PLAIN: Final = re.compile(r"[^\W\d_](?:[\w ./()+,;'\"!?&%@*=~^$|<>{}\[\]-]|:(?=[\w/]))*", re.ASCII)
_PLAIN_IN_LINE: Final = re.compile(r"[A-Za-z][\w./+-]*", re.ASCII)
_MEANT_OTHERWISE: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_CONSTANTS: Final[Mapping[Json, str]] = {None: "null", True: "true", False: "false"}


def write_yaml(value: Json) -> str:
    """Return a JSON value as a YAML document."""
    return "\n".join(_block(value, "")) + "\n"


def _block(value: Json, indent: str) -> Iterator[str]:
    """Yield the lines of a value that stands on lines of its own."""
    if not value or not isinstance(value, dict | list):
        yield indent + _scalar(value)
    elif isinstance(value, dict):
        for key, member in cast("dict[str, Json]", value).items():
            yield from _member(_text(key), member, indent)
    else:
        for item in cast("list[Json]", value):
            yield from _item(item, indent)


def _member(key: str, value: Json, indent: str) -> Iterator[str]:
    inner = indent + _STEP
    if len(key) > _MAX_KEY:
        yield f"{indent}? {key}"
        first, *rest = _after(value, inner)
        yield f"{indent}: {first.strip()}" if first else f"{indent}:"
        yield from rest
        return
    first, *rest = _after(value, inner)
    yield f"{indent}{key}: {first}" if first else f"{indent}{key}:"
    yield from rest


def _after(value: Json, indent: str) -> Iterator[str]:
    """Yield what follows a colon: the rest of its line, which may be empty, and the lines below."""
    if (short := _in_line(value)) is not None:
        yield short
    elif isinstance(value, str) and _is_block_text(value):
        yield from _text_block(value, indent)
    elif isinstance(value, dict | list) and value:
        yield ""
        yield from _block(value, indent)
    else:
        yield _scalar(value)


def _item(value: Json, indent: str) -> Iterator[str]:
    inner = indent + _STEP
    if isinstance(value, dict | list) and value and _in_line(value) is None:
        first, *rest = _block(value, inner)
        yield f"{indent}- {first[len(inner) :]}"
        yield from rest
        return
    first, *rest = _after(value, inner)
    yield f"{indent}- {first}"
    yield from rest


def _in_line(value: Json) -> str | None:
    """Return an object or a list of short values on one line; None if it is none, or too long."""
    if isinstance(value, dict):
        members = cast("dict[str, Json]", value)
        pairs = [(_short(key), _short(member)) for key, member in members.items()]
        listed = [f"{key}: {member}" for key, member in pairs if key and member]
        text = f"{{{', '.join(listed)}}}"
    elif isinstance(value, list):
        items = cast("list[Json]", value)
        listed = [short for item in items if (short := _short(item))]
        text = f"[{', '.join(listed)}]"
    else:
        return None
    complete = len(listed) == len(cast("Sequence[Json]", value))
    return text if complete and len(text) <= _MAX_LINE else None


def _short(value: Json) -> str:
    """Return a value as part of a line; "" if it is not short enough."""
    if isinstance(value, dict | list):
        return "" if value else _scalar(value)
    if isinstance(value, str):
        is_word = _PLAIN_IN_LINE.fullmatch(value) and value.lower() not in _MEANT_OTHERWISE
        return value if is_word else "" if "\n" in value else _quoted(value)
    return _scalar(value)


def _scalar(value: Json) -> str:
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return _CONSTANTS[value]
    if isinstance(value, float):
        written = repr(value)
        mantissa, exponent, power = written.partition("e")
        return f"{mantissa}.0e{power}" if exponent and "." not in mantissa else written
    return "[]" if value == [] else "{}" if value == {} else str(value)


def _text(text: str) -> str:
    is_plain = _PLAIN.fullmatch(text) and not text.endswith(" ")
    return text if is_plain and text.lower() not in _MEANT_OTHERWISE else _quoted(text)


def _quoted(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)
    return written if written.isprintable() else "".join(map(_escape, written))


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _is_block_text(text: str) -> bool:
    """Return whether a text is read better as lines: it has several, and nothing that a line cannot hold."""
    lines = text.split("\n")
    is_whole = all((line.isprintable() and line == line.rstrip()) for line in lines)
    return len(lines) > 1 and is_whole and text.strip() != ""


def _text_block(text: str, indent: str) -> Iterator[str]:
    """Yield a literal block; its indentation is written where the text begins with a space or an empty line."""
    lines = text.split("\n")
    keeps = "+" if text.endswith("\n\n") else "" if text.endswith("\n") else "-"
    yield "|" + (str(len(_STEP)) if lines[0][:1] in ("", " ") else "") + keeps
    if lines[-1] == "":
        lines.pop()
    for line in lines:
        yield indent + line if line else ""
