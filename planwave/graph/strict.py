"""Strict JSON: what RFC 8259 and a UTF-8 store can both hold, and nothing else.

The standard parser accepts NaN, takes the last of two equal keys, turns 1e400 into infinity, lets
half a surrogate pair through and recurses with the nesting. All of it is refused here, with a
place. What is beyond doubt stays in C: it is parsed by orjson and walked over once. For all else
nesting is measured on the bare brackets before parsing, and the parsed values are only searched when
something in the text makes a fault possible.
"""

from __future__ import annotations

import json
import re
from array import array
from itertools import accumulate
from typing import Any, Final, NamedTuple

import orjson

from planwave.errors import GraphInvalid
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Json

DEEPEST: Final = 64
"""Nesting that is always enforced; the document itself is level 1."""
UNBOUNDED: Final = 1 << 62
"""Stands for "no limit" where comparing with a number is cheaper than testing for None."""

_BRACKETS: Final = b"[]{}"
_OTHERS: Final = bytes(set(range(256)) - set(_BRACKETS))
_STEPS: Final = bytes.maketrans(_BRACKETS, b"\x01\xff\x01\xff")
"""As signed bytes: one level down, one level up."""
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_LARGEST: Final = 10**308
_KINDS: Final[dict[type, str]] = {dict: "an object", list: "an array"}
_SHOWN: Final = 60


class Room(NamedTuple):
    """How much a document may hold, and how much of it is used up around the value looked at.

    Attributes:
        depth: Most levels of nesting in the whole document.
        string_bytes: Most bytes in one string.
        above: Levels around the value.
    """

    depth: int = DEEPEST
    string_bytes: int = UNBOUNDED
    above: int = 0


WHOLE: Final = Room()
"""Only the nesting that is always enforced, seen from the document itself."""


class _Repeated(dict[str, Any]):
    """An object that named a key twice; ``names`` says which."""

    names: tuple[str, ...] = ()


_NAMED: Final[tuple[type, ...]] = (dict, _Repeated)
_PLAIN_BOXES: Final[tuple[type, ...]] = (dict, list)
_OBJECT: Final[type] = dict
_HOLDERS: Final[frozenset[type]] = frozenset({dict, list, tuple})
_LEAVES: Final[frozenset[type]] = frozenset({str, int, bool, type(None)})
_BOXES: Final[tuple[type, ...]] = (dict, _Repeated, list)


class _Suspicions:
    """Hooks for the parser that note what makes a walk over the values necessary."""

    __slots__ = ("any",)

    def __init__(self) -> None:
        self.any = False

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) == len(pairs):
            return made
        self.any = True
        names = [name for name, _ in pairs]
        repeated = _Repeated(made)
        repeated.names = tuple(dict.fromkeys(n for n in names if names.count(n) > 1))
        return repeated

    def real(self, text: str) -> float:
        number = float(text)
        if number - number != 0:
            self.any = True
        return number

    def integer(self, text: str) -> float:
        if len(text) <= 300:
            return int(text)
        self.any = True
        return float("inf")


def pointer_part(name: object) -> str:
    """Give one step of a JSON pointer, escaped (RFC 6901)."""
    return str(name).replace("~", "~0").replace("/", "~1")


def pointer_of_name(name: object) -> str:
    """Give ``/name`` for a field name that may be anything, short and printable."""
    spelled = shown(name)
    return f"/{pointer_part(spelled[1:-1] if isinstance(name, str) else spelled)}"


def shown(value: object) -> str:
    """Give a value for a message, short and printable; what holds others only by its kind."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    is_plain = isinstance(value, (str, int, float))
    text = repr(value) if is_plain else _KINDS.get(type(value), type(value).__name__)
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def limit_exceeded(
    limit: str,
    value: float,
    met: float | str,
    what: str,
    pointer: str = "",
    *,
    hint: str | None = None,
) -> Diagnostic:
    """Make the diagnostic for a passed limit: its name, its value and what was met."""
    came = met if isinstance(met, str) else f"{met:.12g}"
    return Diagnostic(
        "limit-exceeded",
        "error",
        f"{what}: limit {limit} is {value:.12g}, met {came}",
        pointer,
        hint=hint or f"make it smaller or raise PLANWAVE_LIMIT_{limit.upper()}",
    )


def strict_json(
    text: str | bytes, *, max_bytes: int | None = None, max_depth: int | None = None
) -> Json:
    """Parse JSON and refuse everything that another reader might read differently.

    Args:
        text: JSON text; bytes must be UTF-8. A leading byte order mark is ignored.
        max_bytes: Most bytes of UTF-8, or None.
        max_depth: Most levels of nesting; never more than 64.

    Raises:
        GraphInvalid: ``limit-exceeded`` (size, nesting), ``invalid-json`` (with line and column),
            ``duplicate-key``, ``invalid-number`` (NaN, infinity, out of range) or ``invalid-text``
            (lone surrogates, NUL), the latter three with JSON pointers and all at once.
    """
    depth = DEEPEST if max_depth is None else min(max_depth, DEEPEST)
    raw, text = _both_forms(text, max_bytes)
    try:
        return _read_plainly(raw, depth)
    except ValueError:
        pass  # it is at fault, or it is looked at more closely than that
    if raw.count(b"[") + raw.count(b"{") > depth and _nesting_exceeds(raw, depth):
        raise GraphInvalid([limit_exceeded("json_depth", depth, f"more than {depth}", "nesting")])
    suspicions = _Suspicions()
    try:
        value = json.loads(
            text,
            object_pairs_hook=suspicions.object,
            parse_float=suspicions.real,
            parse_int=suspicions.integer,
            parse_constant=suspicions.real,
        )
    except json.JSONDecodeError as error:
        raise _not_json(error) from error
    if (suspicions.any or "\\u" in text) and (faults := value_faults(value)):
        raise GraphInvalid(faults)
    return value


def _read_plainly(raw: bytes, depth: int) -> Json:
    """Parse JSON nobody could have a doubt about, four times as fast.

    Written again it has as many quotation marks, unless a repeated key was dropped: none stand for
    themselves where no character is escaped by its number.

    Raises:
        ValueError: It is at fault, or it might be.
    """
    if b"\\u" not in raw:
        value = orjson.loads(raw)
        # Depth first: orjson reads deeper than it writes.
        if is_plain(value, depth) and orjson.dumps(value).count(b'"') == raw.count(b'"'):
            return value
    raise ValueError


def is_plain(value: object, depth: int = DEEPEST) -> bool:
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
                if kind in _LEAVES:
                    continue
                if kind in _HOLDERS:
                    inside.append(item)
                elif kind is not float or (item and not 1e-4 <= abs(item) < 1e16):
                    return False
        if not inside:
            return True
        level = inside
    return False


def _both_forms(text: str | bytes, max_bytes: int | None) -> tuple[bytes, str]:
    """Give the text as UTF-8 and as characters, without a byte order mark."""
    most = UNBOUNDED if max_bytes is None else max_bytes
    if len(text) > most:
        raise GraphInvalid([limit_exceeded("plan_bytes", most, len(text), "the document")])
    try:
        raw = text.encode("utf-8") if isinstance(text, str) else text
        characters = text if isinstance(text, str) else text.decode("utf-8")
    except UnicodeEncodeError as error:
        message = f"half a surrogate pair at character {error.start} cannot be stored as UTF-8"
        raise GraphInvalid([Diagnostic("invalid-text", "error", message)]) from error
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte {error.start} is {error.object[error.start]:#04x}"
        raise GraphInvalid([Diagnostic("invalid-json", "error", message)]) from error
    if len(raw) > most:
        raise GraphInvalid([limit_exceeded("plan_bytes", most, len(raw), "the document")])
    return raw, characters.removeprefix("\ufeff")


def _nesting_exceeds(raw: bytes, depth: int) -> bool:
    """Say whether brackets nest deeper than ``depth``, without recursion and without parsing.

    Text that is not JSON is judged all the same, so that the parser's own recursion stays bounded.
    """
    steps = array("b", _STRING.sub(b"", raw).translate(_STEPS, _OTHERS))
    return max(accumulate(steps), default=0) > depth


def _not_json(error: json.JSONDecodeError) -> GraphInvalid:
    what = "text after the document" if error.msg == "Extra data" else error.msg
    message = f"not JSON: {what} at line {error.lineno}, column {error.colno}"
    return GraphInvalid([Diagnostic("invalid-json", "error", f"{message} (character {error.pos})")])


def is_sound_text(text: str, most: int = UNBOUNDED) -> bool:
    """Say whether a string can be stored: no NUL, no lone surrogate, at most ``most`` bytes."""
    if text.isascii():
        return len(text) <= most and "\0" not in text
    try:
        return len(text.encode("utf-8")) <= most and "\0" not in text
    except UnicodeEncodeError:
        return False


def copied(value: dict[str, Any], room: Room) -> dict[str, Any] | None:
    """Copy a JSON object to its leaves, or give None where :func:`value_faults` has findings."""
    depth, most, above = room
    top = value.copy()
    stack: list[tuple[Any, int]] = [(top, depth - above)]
    while stack:
        box, left = stack.pop()
        named = type(box) in _NAMED
        if left < 1 or (named and not _are_sound_names(box, most)):
            return None
        for key, item in box.items() if named else enumerate(box):
            if type(item) is str:
                if not is_sound_text(item, most):
                    return None
            elif type(item) in _PLAIN_BOXES:
                box[key] = inner = item.copy()
                stack.append((inner, left - 1))
            elif not _is_sound_scalar(item):
                return None
    return top


def _are_sound_names(box: dict[Any, Any], most: int) -> bool:
    try:
        together = "".join(box)
    except TypeError:
        return False
    if len(together) <= most and is_sound_text(together):
        return True
    return all(is_sound_text(name, most) for name in box)


def _is_sound_scalar(item: object) -> bool:
    if item is None or item is True or item is False:
        return True
    if type(item) is int:
        return -_LARGEST < item < _LARGEST
    return type(item) is float and item - item == 0


class _Place(NamedTuple):
    """Where a value stands; the pointer is only spelled out for a finding."""

    above: _Place | None
    name: object

    def pointer(self) -> str:
        parts: list[str] = []
        place: _Place | None = self
        while place is not None:
            parts.append(pointer_part(place.name))
            place = place.above
        return "".join(f"/{part}" for part in reversed(parts))


def value_faults(value: Json, pointer: str = "", room: Room = WHOLE) -> list[Diagnostic]:
    """Find everything in a value that is not JSON or cannot be stored, without recursion.

    Args:
        value: Any Python value.
        pointer: JSON pointer of the value itself.
        room: Levels and bytes; where it nests deeper, that is the only finding.
    """
    faults: list[Diagnostic] = []
    stack: list[tuple[Any, _Place | None, int]] = [(value, None, room.depth - room.above)]
    while stack:
        item, place, left = stack.pop()
        if type(item) not in _BOXES:
            if not _is_sound_leaf(item, room.string_bytes):
                faults.append(_leaf_fault(item, _spelled(pointer, place), room))
            continue
        if left < 1:
            met = f"more than {room.depth}"
            where = _spelled(pointer, place)
            return [limit_exceeded("json_depth", room.depth, met, "nesting", where)]
        named = type(item) in _NAMED
        repeated = type(item) is _Repeated
        if named and (repeated or not _are_sound_names(item, room.string_bytes)):
            faults += _name_faults(item, _spelled(pointer, place), room)
        pairs = item.items() if named else enumerate(item)
        stack += reversed([(inner, _Place(place, name), left - 1) for name, inner in pairs])
    return faults


def _spelled(pointer: str, place: _Place | None) -> str:
    return pointer + place.pointer() if place else pointer


def _is_sound_leaf(item: object, most: int) -> bool:
    return is_sound_text(item, most) if type(item) is str else _is_sound_scalar(item)


def _name_faults(box: dict[Any, Any], where: str, room: Room) -> list[Diagnostic]:
    repeated = box.names if isinstance(box, _Repeated) else ()
    faults = [
        Diagnostic("duplicate-key", "error", f"key {shown(name)} appears twice", where)
        for name in repeated
    ]
    for name in box:
        if type(name) is not str:
            message = f"key {shown(name)} is not text"
            faults.append(Diagnostic("not-json-value", "error", message, where))
        elif not is_sound_text(name, room.string_bytes):
            faults.append(_leaf_fault(name, where, room))
    return faults


def _leaf_fault(item: object, where: str, room: Room) -> Diagnostic:
    if type(item) is str:
        if is_sound_text(item):
            met = len(item.encode("utf-8"))
            return limit_exceeded("string_bytes", room.string_bytes, met, "a string", where)
        what = "a NUL character" if "\0" in item else "half a surrogate pair"
        return Diagnostic("invalid-text", "error", f"text holds {what}: no store keeps it", where)
    if type(item) in (int, float):
        message = "NaN, infinity and numbers beyond 1e308 are not JSON"
        return Diagnostic("invalid-number", "error", message, where)
    message = f"{where or 'the document'} is a Python {type(item).__name__}, not a JSON value"
    hint = "use plain dict, list, str, int, float, bool and None"
    return Diagnostic("not-json-value", "error", message, where, hint=hint)
