"""Event times."""

from __future__ import annotations

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from planwave.executor.driver.clock import event_clock, utc_now


@given(st.lists(st.integers(0, 4_000_000_000 * 10**9), min_size=1, max_size=5))
def test_times_are_utc_with_microseconds(moments: list[int]) -> None:
    left = iter(moments)
    now = event_clock(lambda: next(left))
    for moment in moments:
        text = now()
        assert len(text) == len("2026-01-31T12:00:00.000000+00:00")
        read = datetime.fromisoformat(text)
        assert read.utcoffset() is not None
        seconds, rest = divmod(moment, 10**9)
        assert (int(read.timestamp()), read.microsecond) == (seconds, rest // 1000)


def test_the_clock_runs() -> None:
    assert utc_now() <= utc_now()
