"""How long a provider asks clients to wait: the ``Retry-After`` headers of its answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import cast


def parse_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Give the seconds ``retry-after-ms`` or ``Retry-After`` asks to wait; None for junk.

    Args:
        headers: Lower-cased names. Seconds (whole or not) or an HTTP date.
        now: The present.
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * scale
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        wait = (moment - now).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return wait if wait >= 0 else None


def retry_after_from(headers: object, now: datetime) -> float | None:
    """Return the seconds that a reply's ``Retry-After`` header asks for, or None without one."""
    if not isinstance(headers, Mapping):
        return None
    return parse_retry_after(cast("Mapping[str, str]", headers), now)
