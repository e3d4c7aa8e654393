"""A strict JSON parser: only values that RFC 8259 and a UTF-8 store both allow.

The standard parser accepts NaN, takes the last of two equal keys, turns 1e400 into infinity, accepts
half a surrogate pair and recurses with the nesting. This parser rejects all of this and reports where.
Documents without any of these take a fast path: orjson parses them and one walk checks the values.
For all others the nesting of brackets is measured before parsing, and the parsed values are searched
only if the text can contain an error.
"""

from __future__ import annotations

import json
import re
from array import array
from itertools import accumulate
from typing import Any, Final

import orjson

from planwave.errors import GraphInvalid
from planwave.graph.diagnostics import Diagnostic, limit_exceeded
from planwave.graph.json_values import NO_LIMIT, RepeatedKeys, json_findings
from planwave.graph.model import Json
from planwave.jsonio import MAX_JSON_DEPTH, is_plain

_BRACKETS: Final = b"[]{}"
_OTHERS: Final = bytes(set(range(256)) - set(_BRACKETS))
_STEPS: Final = bytes.maketrans(_BRACKETS, b"\x01\xff\x01\xff")
"""As signed bytes: one level down, one level up."""
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


class ParseHooks:
    """Hooks for the standard parser; they record whether the values must be checked afterwards."""

    __slots__ = ("needs_check",)

    def __init__(self) -> None:
        self.needs_check = False

    def parse_object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) == len(pairs):
            return members
        self.needs_check = True
        names = [name for name, _ in pairs]
        repeated = RepeatedKeys(members)
        repeated.names = tuple(dict.fromkeys(n for n in names if names.count(n) > 1))
        return repeated

    def parse_float(self, text: str) -> float:
        number = float(text)
        if number - number != 0:
            self.needs_check = True
        return number

    def parse_int(self, text: str) -> float:
        if len(text) <= 300:
            return int(text)
        self.needs_check = True
        return float("inf")


def parse_strict_json(
    text: str | bytes, *, max_bytes: int | None = None, max_depth: int | None = None
) -> Json:
    """Parse JSON, rejecting everything that another parser might read differently.

    Args:
        text: JSON text; bytes must be UTF-8. A leading byte order mark is ignored.
        max_bytes: The limit in bytes of UTF-8, or None.
        max_depth: The limit on nesting; never more than 64.

    Raises:
        GraphInvalid: ``limit-exceeded`` (size, nesting), ``invalid-json`` (with line and column),
            ``duplicate-key``, ``invalid-number`` (NaN, infinity, out of range) or ``invalid-text``
            (lone surrogates, NUL), the latter three with JSON pointers and all at once.
    """
    depth = MAX_JSON_DEPTH if max_depth is None else min(max_depth, MAX_JSON_DEPTH)
    raw, text = both_forms(text, max_bytes)
    try:
        return _read_plainly(raw, depth)
    except ValueError:
        pass  # invalid, or in need of the slower parser
    if raw.count(b"[") + raw.count(b"{") > depth and _nesting_exceeds(raw, depth):
        raise GraphInvalid([limit_exceeded("json_depth", depth, f"more than {depth}", "nesting")])
    hooks = ParseHooks()
    try:
        value = json.loads(
            text,
            object_pairs_hook=hooks.parse_object,
            parse_float=hooks.parse_float,
            parse_int=hooks.parse_int,
            parse_constant=hooks.parse_float,
        )
    except json.JSONDecodeError as error:
        raise _not_json(error) from error
    if (hooks.needs_check or "\\u" in text) and (errors := json_findings(value)):
        raise GraphInvalid(errors)
    return value


def _read_plainly(raw: bytes, depth: int) -> Json:
    """Parse JSON that is certainly valid, four times as fast as the standard parser.

    In a text without unicode escapes, serializing the value gives as many quotation marks as the
    source has, unless orjson dropped a repeated key.

    Raises:
        ValueError: The text is invalid, or needs a closer look.
    """
    if b"\\u" not in raw:
        value = orjson.loads(raw)
        # Check the depth first: orjson parses deeper nesting than it writes.
        if is_plain(value, depth) and orjson.dumps(value).count(b'"') == raw.count(b'"'):
            return value
    raise ValueError


def both_forms(
    text: str | bytes, max_bytes: int | None, *, code: str = "invalid-json"
) -> tuple[bytes, str]:
    """Return the text as UTF-8 and as characters, the latter without a byte order mark.

    Raises:
        GraphInvalid: ``limit-exceeded``, ``invalid-text``, or ``code`` where bytes are not UTF-8.
    """
    limit = NO_LIMIT if max_bytes is None else max_bytes
    if len(text) > limit:
        raise GraphInvalid([limit_exceeded("plan_bytes", limit, len(text), "the document")])
    try:
        raw = text.encode("utf-8") if isinstance(text, str) else text
        characters = text if isinstance(text, str) else text.decode("utf-8")
    except UnicodeEncodeError as error:
        message = f"half a surrogate pair at character {error.start} cannot be stored as UTF-8"
        raise GraphInvalid([Diagnostic("invalid-text", "error", message)]) from error
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte {error.start} is {error.object[error.start]:#04x}"
        raise GraphInvalid([Diagnostic(code, "error", message)]) from error
    if len(raw) > limit:
        raise GraphInvalid([limit_exceeded("plan_bytes", limit, len(raw), "the document")])
    return raw, characters.removeprefix("\ufeff")


def _nesting_exceeds(raw: bytes, depth: int) -> bool:
    """Return whether brackets nest deeper than ``depth``, without recursion and without parsing.

    Text that is not JSON is measured too, so that the recursion of the parser stays bounded.
    """
    steps = array("b", _STRING.sub(b"", raw).translate(_STEPS, _OTHERS))
    return max(accumulate(steps), default=0) > depth


def _not_json(error: json.JSONDecodeError) -> GraphInvalid:
    what = "text after the document" if error.msg == "Extra data" else error.msg
    if not error.doc.strip():
        return GraphInvalid(
            [Diagnostic("invalid-json", "error", "not JSON: the document is empty")]
        )
    message = f"not JSON: {what} at line {error.lineno}, column {error.colno}"
    return GraphInvalid([Diagnostic("invalid-json", "error", f"{message} (character {error.pos})")])
