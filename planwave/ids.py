"""Identifiers that sort by creation time: UUID version 7 (RFC 9562)."""

from __future__ import annotations

import os
import re
import threading
import time
from typing import Final

UUID_PATTERN: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII
)
"""The form of an id; an execution id must match it before it becomes a file name."""

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
