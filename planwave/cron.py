"""Times of schedules: cron expressions and intervals, in a time zone, as moments in UTC.

Cron expressions have the meaning of Debian's cron. A time that the change to summer time leaves out comes
at the first moment after it; one that the change back repeats comes once, unless the minute or the hour
begins with ``*``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import islice, pairwise
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from planwave.errors import InputError

_NAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS: Final = (
    ("minute", 60),
    ("hour", 24),
    ("day of month", 31),
    ("month", 12),
    ("day of week", 7),
)
_EXPRESSION: Final = re.compile(r"[0-9A-Za-z*,/#@ -]{1,200}", re.ASCII)
_STEP: Final = re.compile(r"/([0-9]+)")
_OF_THE_MACHINE: Final = re.compile(
    r"(localtime|posixrules|factory|(posix|right)/.*)", re.IGNORECASE
)
"""Files of the time zone database that mean another zone on each machine, or are no zone for people."""
FINEST_CRON_S: Final = 60.0
"""No times of a cron expression are nearer to each other."""
_GAPS_COMPARED: Final = 200
"""Times of a cron expression that are looked at for the smallest gap."""
_HINT: Final = 'write five fields, as in "30 7 * * 1-5" (at 7:30 from Monday to Friday)'
_CODE: Final = "invalid-schedule"


@dataclass(frozen=True, slots=True)
class Schedule:
    """When something is to happen: a cron expression, or an interval.

    Attributes:
        zone: The time zone of the expression.
        cron: Five fields; None for an interval.
        every_s: Seconds between two times, counted from 1970 in UTC; None for an expression.
    """

    zone: tzinfo
    cron: str | None = None
    every_s: float | None = None

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the times after a moment, in UTC, ascending, without end."""
        moment = moment.astimezone(UTC)
        if self.every_s is not None:
            number = int(moment.timestamp() // self.every_s)
            while True:
                number += 1
                yield datetime.fromtimestamp(number * self.every_s, UTC)
        # Inside a repeated hour the library can return a time in the past, and times of one zone
        # compare by what the clock on the wall shows.
        for local in CronSim(self.cron or "", moment.astimezone(self.zone)):
            if (at := local.astimezone(UTC)) > moment:
                moment = at
                yield at

    def next_after(self, moment: datetime) -> datetime:
        """Return the first time after a moment, in UTC."""
        return next(self.after(moment))

    def smallest_gap_s(self, moment: datetime) -> float:
        """Return the seconds between the two nearest of the next times."""
        if self.every_s is not None:
            return self.every_s
        times = islice(self.after(moment), _GAPS_COMPARED)
        return min((b - a).total_seconds() for a, b in pairwise(times))


def read_schedule(
    cron: str | None, every_s: float | None, zone_name: str, now: datetime
) -> Schedule:
    """Read a schedule; one of expression and interval is given.

    Args:
        cron: Five fields, or a name such as ``@daily``.
        every_s: Seconds.
        zone_name: A name of the time zone database, such as ``Europe/Berlin``.
        now: The present time, for the search of the next one.

    Raises:
        InputError: ``invalid-schedule``.
    """
    zone = _zone(zone_name)
    if (cron is None) == (every_s is None):
        raise _invalid("a schedule has either a cron expression or an interval", _HINT)
    if cron is None:
        return Schedule(zone, every_s=every_s)
    expression = _NAMES.get(cron.strip(), cron.strip())
    schedule = Schedule(zone, cron=_checked(expression, cron))
    try:
        schedule.next_after(now)
    except (CronSimError, StopIteration, OverflowError) as error:
        raise _invalid(f"{cron!r} never comes", "name a day that exists") from error
    return schedule


def _zone(name: str) -> tzinfo:
    try:
        if _OF_THE_MACHINE.fullmatch(name):
            raise LookupError(name)
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:  # of a bad name, or of a directory
        raise _invalid(
            f"there is no time zone {name[:100]!r}", "write a name such as Europe/Berlin or UTC"
        ) from error


def _checked(expression: str, written: str) -> str:
    fields = expression.split()
    quoted = repr(written[:100])
    if _EXPRESSION.fullmatch(expression) is None or len(fields) != len(_FIELDS):
        raise _invalid(f"{quoted} is no cron expression of five fields", _HINT)
    for field, (name, span) in zip(fields, _FIELDS, strict=True):
        if any(int(step) > span for step in _STEP.findall(field)):
            raise _invalid(f"{quoted}: the step of the {name} is larger than its range", _HINT)
    try:
        CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC))
    except (CronSimError, ValueError) as error:
        reason = str(error)
        raise _invalid(
            f"{quoted} is no cron expression: {reason[:1].lower()}{reason[1:]}", _HINT
        ) from error
    return expression


def next_times(schedule: Schedule, now: datetime, count: int) -> list[str]:
    """Return the next times in the zone of the schedule, ISO 8601."""
    times = islice(schedule.after(now), count)
    return [each.astimezone(schedule.zone).isoformat(timespec="seconds") for each in times]


def due_times(
    schedule: Schedule, after: datetime, now: datetime, most: int
) -> tuple[int, datetime | None]:
    """Return how many times have come since a moment, and the last of the first ``most`` of them."""
    count, last = 0, None
    for each in islice(schedule.after(after), most):
        if each > now:
            break
        count, last = count + 1, each
    return count, last


def _invalid(message: str, hint: str) -> InputError:
    return InputError(message, code=_CODE, hint=hint)
