"""Compact and exact JSON encoding on top of orjson, shared by stores and API."""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

MAX_JSON_DEPTH: Final = 64
"""The maximum nesting; the document itself is level 1."""
_OBJECT: Final[type] = dict
_CONTAINER_TYPES: Final[frozenset[type]] = frozenset({dict, list, tuple})
SCALAR_TYPES: Final[frozenset[type]] = frozenset({str, int, bool, type(None)})


def is_plain(value: object, depth: int = MAX_JSON_DEPTH) -> bool:
    """Return whether JSON nests at most ``depth`` levels and every encoder writes its numbers alike.

    Plain floats are finite and have no exponent: Python's ``repr`` uses one below 1e-4 and from 1e16
    on, and other encoders differ. Values of other types are not plain, because encoders differ in
    whether they accept them.
    """
    item: Any
    level: list[Any] = [(value,)]
    for _ in range(depth + 1):
        inside: list[Any] = []
        for box in level:
            for item in box.values() if type(box) is _OBJECT else box:
                kind = type(item)  # pyright: ignore[reportUnknownVariableType] - any object
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
    """Encode a value as compact JSON that decodes to the same value (NUL, lone surrogates).

    orjson is twenty times as fast as the standard library, but rejects integers over 64 bits and lone
    surrogates, and writes NaN as ``null``. Values that orjson rejects, or whose JSON has a ``null`` that
    may be a NaN, are encoded by the standard library.

    Args:
        value: The value to encode.
        plain: Whether ``is_plain`` is known to be true, so that no ``null`` is a NaN.

    Raises:
        TypeError, ValueError, RecursionError: The value is not JSON.
    """
    try:
        text = orjson.dumps(value, None, _STRICT)
    except orjson.JSONEncodeError:
        return _exact(value)
    is_exact = plain or b"null" not in text or is_plain(value)
    return text.decode() if is_exact else _exact(value)


def dumps_trusted(value: Any) -> bytes:
    """Encode a value that was decoded from JSON; faster than ``dumps_exact``.

    Such a value has no NaN, so a ``null`` needs no check.
    """
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # integers over 64 bits, lone surrogates
        return _exact(value).encode()
