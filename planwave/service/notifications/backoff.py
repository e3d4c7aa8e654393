"""When a notification that was not accepted is sent again."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from zlib import crc32

_DELAYS_S: Final = (5.0, 60.0, 300.0, 1_800.0, 7_200.0, 14_400.0)
"""After the first attempt, the second, …; the last one again and again."""
_JITTER: Final = 0.2
"""Delays are up to this part longer, so that messages that failed together come apart."""


def next_attempt(
    notification_id: str, attempts: int, now: datetime, end: datetime, retry_after_s: float | None
) -> datetime | None:
    """Return the time of the next attempt; None once there is no time left.

    The last attempt is made at ``end``, whatever the delays are.

    Args:
        notification_id: Chooses the jitter.
        attempts: How many attempts have failed, the present one included.
        now: The time after the present one.
        end: When to give up.
        retry_after_s: How long the receiver asks to wait, None if it does not.
    """
    if now >= end:
        return None
    delay_s = _DELAYS_S[min(attempts, len(_DELAYS_S)) - 1]
    jitter = crc32(f"{notification_id} {attempts}".encode()) / 2**32 * _JITTER
    wait_s = max(delay_s * (1 + jitter), retry_after_s or 0.0)
    left_s = (end - now).total_seconds()
    return end if wait_s >= left_s else now + timedelta(seconds=wait_s)
