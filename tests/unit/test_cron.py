"""Cron expressions and intervals: what is accepted, and the times they mean across changes of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from planwave.cron import due_times, next_times, read_schedule
from planwave.errors import InputError
from tests.support.graph.bad_inputs import bad_inputs, expanded

BERLIN = "Europe/Berlin"
NOW = datetime(2026, 10, 24, 12, 0, tzinfo=UTC)


def local_times(cron: str, start: str, count: int, zone: str = BERLIN) -> list[str]:
    now = datetime.fromisoformat(start).replace(tzinfo=ZoneInfo(zone))
    return next_times(read_schedule(cron, None, zone, now), now, count)


def test_time_that_summer_time_leaves_out_comes_once_right_after_it() -> None:
    assert local_times("30 2 * * *", "2027-03-27T03:00", 2) == [
        "2027-03-28T03:00:00+02:00",
        "2027-03-29T02:30:00+02:00",
    ]


def test_time_that_the_change_back_repeats_comes_once() -> None:
    assert local_times("30 2 * * *", "2026-10-24T03:00", 2) == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-26T02:30:00+01:00",
    ]


def test_every_hour_comes_in_each_real_hour() -> None:
    assert local_times("0 * * * *", "2026-10-25T01:30", 4) == [
        "2026-10-25T02:00:00+02:00",
        "2026-10-25T02:00:00+01:00",
        "2026-10-25T03:00:00+01:00",
        "2026-10-25T04:00:00+01:00",
    ]


@pytest.mark.parametrize("zone", [BERLIN, "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize("cron", ["30 2 * * *", "*/30 * * * *", "15 1-3 * * *", "0 2 * * 0"])
@pytest.mark.parametrize(
    "day", ["2026-10-24", "2026-10-31", "2027-03-13", "2027-03-27", "2027-04-03"]
)
def test_next_time_is_never_in_the_past(zone: str, cron: str, day: str) -> None:
    moment = datetime.fromisoformat(day).replace(tzinfo=UTC)
    schedule = read_schedule(cron, None, zone, moment)
    for _ in range(0, 48 * 60, 20):
        moment += timedelta(minutes=20)
        found = list(islice(schedule.after(moment), 3))
        assert moment < found[0] < found[1] < found[2]


@pytest.mark.parametrize(
    ("written", "same"),
    [("@daily", "0 0 * * *"), ("@hourly", "0 * * * *"), ("@weekly", "0 0 * * 0"),
     ("@monthly", "0 0 1 * *"), ("@yearly", "0 0 1 1 *"), (" 0  7 * * MON ", "0 7 * * 1")],
)  # fmt: skip
def test_names_stand_for_expressions(written: str, same: str) -> None:
    found, expected = (read_schedule(each, None, "UTC", NOW) for each in (written, same))
    assert next_times(found, NOW, 3) == next_times(expected, NOW, 3)


def test_interval_is_counted_from_1970() -> None:
    schedule = read_schedule(None, 900, "UTC", NOW)
    assert next_times(schedule, NOW + timedelta(seconds=1), 2) == [
        "2026-10-24T12:15:00+00:00",
        "2026-10-24T12:30:00+00:00",
    ]
    assert schedule.smallest_gap_s(NOW) == 900


def test_smallest_gap_of_an_expression_is_found() -> None:
    assert read_schedule("0,20,25 * * * *", None, "UTC", NOW).smallest_gap_s(NOW) == 300


def test_due_times_are_counted_up_to_a_number() -> None:
    schedule = read_schedule("* * * * *", None, "UTC", NOW)
    later = NOW + timedelta(minutes=5, seconds=1)
    assert due_times(schedule, NOW, later, 100) == (5, NOW + timedelta(minutes=5))
    assert due_times(schedule, NOW, later, 3) == (3, NOW + timedelta(minutes=3))
    assert due_times(schedule, later, later, 3) == (0, None)


@pytest.mark.parametrize(
    ("cron", "every_s"), [(None, None), ("* * * * *", 60)], ids=["neither", "both"]
)
def test_schedule_is_one_of_both(cron: str | None, every_s: float | None) -> None:
    with pytest.raises(InputError, match="either"):
        read_schedule(cron, every_s, "UTC", NOW)


@pytest.mark.parametrize(
    "zone", ["", "Mars/Phobos", "../etc/passwd", "/etc/localtime", "a\0b", "é"]
)
def test_unknown_time_zone_is_rejected(zone: str) -> None:
    with pytest.raises(InputError, match="time zone"):
        read_schedule("* * * * *", None, zone, NOW)


@pytest.mark.parametrize(
    "cron", ["* * * * *\n0 0 1 1 *", "0\u00a00 * * *", "\uff11 * * * *", "* " * 500]
)
def test_text_that_is_no_expression_is_rejected(cron: str) -> None:
    with pytest.raises(InputError) as refused:
        read_schedule(cron, None, "UTC", NOW)
    assert refused.value.code == "invalid-schedule"


def lines(area: str) -> list[Any]:
    skipped = pytest.mark.skip(reason="no ../shared/bad_inputs.jsonl")
    found = [pytest.param(each, id=each["id"]) for each in bad_inputs() if each["area"] == area]
    return found or [pytest.param({}, id="collection", marks=skipped)]


@pytest.mark.parametrize("line", lines("cron"))
def test_line_of_the_collection_is_rejected(line: dict[str, Any]) -> None:
    assert line["expect"].startswith("reject")
    with pytest.raises(InputError) as refused:
        read_schedule(expanded(line["input"]), None, "UTC", NOW)
    assert refused.value.code == "invalid-schedule"
    assert refused.value.hint


TRIED = {
    "CRN-414": test_time_that_summer_time_leaves_out_comes_once_right_after_it.__name__,
    "CRN-415": test_time_that_the_change_back_repeats_comes_once.__name__,
    "CRN-416": test_unknown_time_zone_is_rejected.__name__,
    "CRN-417": "test_times_missed_while_down_give_one_execution",
    "CRN-418": "test_time_is_skipped_while_the_execution_before_runs",
    "CRN-420": "test_clock_that_jumps_ahead_gives_one_execution",
}
"""Lines about behaviour and the tests that try them, here and in ``triggers/test_schedules.py``."""


@pytest.mark.parametrize("line", lines("cron-behaviour"))
def test_collection_has_no_untried_line(line: dict[str, Any]) -> None:
    assert line["id"] in TRIED


@pytest.mark.parametrize(
    "name", ["localtime", "posixrules", "Factory", "LocalTime", "right/UTC", "posix/UTC"]
)
def test_a_zone_that_is_another_one_on_each_machine_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="no time zone"):
        read_schedule("0 7 * * *", None, name, datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("cron", "times"),
    [("30 2 * * *", 1), ("*/15 2 * * *", 8), ("0 * * * *", 25), ("30 */2 * * *", 13)],
)
def test_the_day_of_the_change_back_is_as_the_documentation_says(cron: str, times: int) -> None:
    start = datetime(2026, 10, 24, 22, tzinfo=UTC)  # midnight in Berlin
    schedule = read_schedule(cron, None, "Europe/Berlin", start)
    found = schedule.after(start - timedelta(seconds=1))
    assert sum(1 for _ in takewhile(lambda at: at < start + timedelta(hours=25), found)) == times
