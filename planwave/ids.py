"""Identifiers that sort by creation time: UUID version 7 (RFC 9562)."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterable
from typing import Final

from planwave.errors import InputError, NotFound

UUID_PATTERN: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII
)
"""The form of an id; an execution id must match it before it becomes a file name."""

LEAST_CHARS: Final = 4
"""Characters of the start or end of an id that name its record."""
_MAX_EXAMPLES: Final = 4
_MAX_SHOWN: Final = 64
_COUNTER_BITS: Final = 12
_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """Return a new id; ids of one process ascend even if the clock goes back.

    The 12 bits after the millisecond are a counter (RFC 9562 §6.2, method 1, which may run into the
    next millisecond); the last 62 bits are random.
    """
    global _last
    now = (time.time_ns() // 1_000_000) << _COUNTER_BITS
    random = int.from_bytes(os.urandom(8), "big")
    with _lock:
        _last = max(now, _last + 1)
        stamp = _last
    millis, counter = stamp >> _COUNTER_BITS, stamp & ((1 << _COUNTER_BITS) - 1)
    value = (millis << 80) | (0x7 << 76) | (counter << 64) | (0b10 << 62) | (random >> 2)
    text = f"{value:032x}"  # four times as fast as str(UUID(int=value))
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def find_id(
    ids: Iterable[str], name: str, what: str, where: str, *, least: int = LEAST_CHARS
) -> str:
    """Return the id that a name is, or begins or ends.

    Args:
        ids: The ids to choose from.
        name: The id, or its start or end; lists write ``…09a2fd``.
        what: What has these ids, such as ``token``.
        where: What lists them.
        least: The fewest characters of a start or an end.

    Raises:
        NotFound: No id matches.
        InputError: ``usage``: the name is empty or too short. ``ambiguous-id``: several ids match; the
            hint lists some of them.
    """
    all_ids = list(ids)
    if name in all_ids:
        return name
    part = id_part(name, least)
    matches = [each for each in all_ids if begins_or_ends(part, each)]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise NotFound(
            f"no {what} has an id that begins or ends with {_shown(name)}",
            hint=f"{where} lists them",
        )
    examples = ", ".join(matches[:_MAX_EXAMPLES]) + (", …" if len(matches) > _MAX_EXAMPLES else "")
    raise InputError(
        f"{len(matches)} ids begin or end with {_shown(name)}",
        code="ambiguous-id",
        hint=f"write more of the id: {examples}",
    )


def id_part(name: str, least: int = LEAST_CHARS) -> str:
    """Return the start or end of an id that a short name is.

    Raises:
        InputError: ``usage``: it is empty or too short.
    """
    part = bare_id(name)
    if len(part) >= least:
        return part
    raise InputError(
        f"{_shown(name)} is too short for an id" if part else "the id is empty",
        code="usage",
        hint=f"write at least {least} characters of its start or end, as lists show it",
    )


def bare_id(name: str) -> str:
    """Return a name without the ellipsis of lists, which write ``…09a2fd``."""
    return name.strip().lower().lstrip(".…")


def begins_or_ends(part: str, record_id: str) -> bool:
    """Return whether a part is the start or the end of an id."""
    return record_id.startswith(part) or record_id.endswith(part)


def _shown(name: str) -> str:
    return repr(name) if len(name) <= _MAX_SHOWN else f"{name[:_MAX_SHOWN]!r}…"
