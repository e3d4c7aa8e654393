"""JSON text: compact, exact, and as fast as orjson allows; the same for every store and every client."""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

MAX_JSON_DEPTH: Final = 64
"""Nesting that is always enforced; the document itself is level 1."""
_OBJECT: Final[type] = dict
_CONTAINER_TYPES: Final[frozenset[type]] = frozenset({dict, list, tuple})
SCALAR_TYPES: Final[frozenset[type]] = frozenset({str, int, bool, type(None)})


def is_plain(value: object, depth: int = MAX_JSON_DEPTH) -> bool:
    """Say whether JSON nests at most ``depth`` deep, and everybody writes its numbers alike.

    That is, all are finite, and of a size that is written without an exponent (Python's ``repr``
    has one below 1e-4 and from 1e16 on, where other writers differ); a reader that has no integers
    over 64 bits makes such numbers of them. Values of other types are not plain: some writers make
    JSON of them, others refuse.
    """
    item: Any
    level: list[Any] = [(value,)]
    for _ in range(depth + 1):
        inside: list[Any] = []
        for box in level:
            for item in box.values() if type(box) is _OBJECT else box:
                kind = type(item)  # pyright: ignore[reportUnknownVariableType] - of whatever there is
                if kind in SCALAR_TYPES:
                    continue
                if kind in _CONTAINER_TYPES:
                    inside.append(item)
                elif kind is not float or (item and not 1e-4 <= abs(item) < 1e16):
                    return False
        if not inside:
            return True
        level = inside
    return False


_exact: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_STRICT: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


def dumps_exact(value: Any, *, plain: bool = False) -> str:
    """Give compact JSON; whatever a text holds (NUL, lone surrogates), it comes back the same.

    orjson is twenty times as fast as the standard library, but knows no integers over 64 bits and
    no lone surrogates, and writes NaN as ``null``. What it refuses, and what holds a ``null`` and
    may hold a NaN, is left to the standard library.

    Args:
        value: JSON.
        plain: :func:`is_plain` was found to hold of it, so that a ``null`` in it is one.

    Raises:
        TypeError, ValueError, RecursionError: It is not JSON.
    """
    try:
        text = orjson.dumps(value, None, _STRICT)
    except orjson.JSONEncodeError:
        return _exact(value)
    is_clear = plain or b"null" not in text or is_plain(value)
    return text.decode() if is_clear else _exact(value)


def dumps_trusted(value: Any) -> bytes:
    """Give compact JSON of what is known to be JSON: what was stored, or folded from that.

    Unlike :func:`dumps_exact` it need not look for NaN, so it never takes the slow way for a ``null``.
    """
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # integers over 64 bits, lone surrogates
        return _exact(value).encode()
