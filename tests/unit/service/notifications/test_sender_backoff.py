"""The times of the attempts of a notification."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from planwave.service.notifications.sender import next_attempt

START = datetime(2026, 1, 1, tzinfo=UTC)
END = START + timedelta(hours=24)


def attempts_of(own_id: str, retry_after_s: float | None = None) -> list[float]:
    """Return the seconds after which each attempt is made, if all fail at once."""
    now: datetime | None = START
    found: list[float] = []
    while now is not None:
        found.append((now - START).total_seconds())
        now = next_attempt(own_id, len(found), now, END, retry_after_s)
    return found


def test_attempts_begin_soon_become_rare_and_end_after_a_day() -> None:
    found = attempts_of("m")
    assert found[0] == 0
    assert 5 <= found[1] <= 6
    assert found[-1] == 24 * 3_600
    assert 9 <= len(found) <= 13
    gaps = [later - sooner for sooner, later in pairwise(found[:7])]
    assert gaps == sorted(gaps)


def test_messages_that_fail_together_come_apart_and_each_always_at_its_times() -> None:
    assert attempts_of("m") == attempts_of("m")
    assert attempts_of("m")[1] != attempts_of("other")[1]


def test_receiver_decides_how_long_to_wait_at_least_but_not_beyond_the_end() -> None:
    assert next_attempt("m", 1, START, END, 600.0) == START + timedelta(seconds=600)
    assert next_attempt("m", 1, START, END, 1e300) == END
    later = next_attempt("m", 3, START, END, 1.0)
    assert later is not None
    assert later > START + timedelta(seconds=299)
