"""The ``Retry-After`` headers of responses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import cast


def parse_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds of ``retry-after-ms`` or ``Retry-After``; None if absent or invalid.

    Args:
        headers: Lower-cased names. Seconds (whole or not) or an HTTP date.
        now: The current time, for HTTP dates.
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
    """Return the seconds of the ``Retry-After`` header, or None without headers."""
    if not isinstance(headers, Mapping):
        return None
    return parse_retry_after(cast("Mapping[str, str]", headers), now)
