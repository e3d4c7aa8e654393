"""The wall clock as event times: UTC, ISO 8601, microseconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime


def event_clock(now_ns: Callable[[], int] = time.time_ns) -> Callable[[], str]:
    """Give a clock whose readings look like ``2026-01-31T12:00:00.000000+00:00``.

    The text of the second is kept between readings: formatting it anew would cost a run of small
    nodes more than deciding what starts next.
    """
    second = -1
    text = ""

    def now() -> str:
        nonlocal second, text
        seconds, rest = divmod(now_ns(), 1_000_000_000)
        if seconds != second:
            second = seconds
            text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{text}.{rest // 1000:06d}+00:00"

    return now


utc_now = event_clock()
