"""What was spent on calls of models: by day, flow or model, with the planning; and the warning of a day."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from planwave.errors import InputError
from planwave.storage.sql.stores.spend import SpendGrouping, SpendSum

if TYPE_CHECKING:
    from planwave.shapes.spend import SpendAmounts, SpendResponse, SpendWarning
    from planwave.storage.sql.store import Store

_log = logging.getLogger("planwave.spend")
_DAYS: Final = 30
"""Days that are summed where nobody says from when."""
MAX_DAYS: Final = 3_660
_GROUPS: Final = 1_000
"""Groups of one answer; of days there are fewer in two years."""


class Spending:
    """What was spent, as far as executions have paused or ended.

    Args:
        store: Where it is stored.
        now: UTC time.
        warn_usd: What may be spent on a day before there is a warning; None for any amount.
    """

    def __init__(
        self, store: Store, now: Callable[[], datetime], warn_usd: float | None = None
    ) -> None:
        self._store = store
        self._now = now
        self._warn_usd = warn_usd
        self._warned = ""

    async def report(
        self, by: SpendGrouping = "day", since: str | None = None, until: str | None = None
    ) -> SpendResponse:
        """Return the sums of some days, both included; of the last 30 days where ``since`` and ``until`` are None.

        Args:
            by: What the groups are.
            since: ``2026-01-31``, UTC.
            until: See ``since``.

        Raises:
            InputError: ``invalid-time``.
        """
        last = self._today() if until is None else _day("until", until)
        first = last - timedelta(days=_DAYS - 1) if since is None else _day("since", since)
        if not 0 <= (last - first).days < MAX_DAYS:
            raise InputError(
                f"from {first} to {last} are no days to sum up",
                code="invalid-time",
                hint=f"name a first and a last day, with {MAX_DAYS} days at most",
            )
        days = first.isoformat(), last.isoformat()
        groups = await self._store.spend.sums(by, *days, _GROUPS)
        total = await self._store.spend.sums(None, *days, 1)
        return {
            "since": days[0],
            "until": days[1],
            "by": by,
            "groups": [{"key": each.key, "name": each.name, **_amounts(each)} for each in groups],
            "total": _amounts(total[0] if total else _NOTHING),
            "warning": await self.warning(),
        }

    async def warning(self) -> SpendWarning | None:
        """Return what was spent today, if that is as much as the operator wants to be warned of."""
        if self._warn_usd is None:
            return None
        today = self._today().isoformat()
        sums = await self._store.spend.sums(None, today, today, 1)
        spent = (sums[0].cost_usd if sums else None) or 0.0
        if spent < self._warn_usd:
            return None
        return {"day": today, "cost_usd": spent, "warn_usd": self._warn_usd}

    async def warn(self) -> None:
        """Log the warning of today, once a day, after something was spent."""
        if self._warn_usd is None or self._warned == self._today().isoformat():
            return
        warning = await self.warning()
        if warning is not None:
            self._warned = warning["day"]
            _log.warning(
                "$%.2f spent today (%s), which is more than spend_warn_usd_per_day = %g; nothing is stopped",
                warning["cost_usd"], warning["day"], warning["warn_usd"],
            )  # fmt: skip

    def _today(self) -> date:
        return self._now().astimezone(UTC).date()


_NOTHING: Final = SpendSum("", None, 0, 0, 0, None, 0, None, 0, 0)


def _amounts(group: SpendSum) -> SpendAmounts:
    return {
        "calls": group.calls,
        "input_tokens": group.input_tokens,
        "output_tokens": group.output_tokens,
        "cost_usd": group.cost_usd,
        "unpriced_calls": group.unpriced,
        "planning_tokens": group.planning_tokens,
        "planning_cost_usd": group.planning_cost_usd,
        "runs": group.subjects,
    }


def _day(name: str, text: str) -> date:
    """Return a day.

    Raises:
        InputError: ``invalid-time``.
    """
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise InputError(
            f"{name} = {text!r} is no day", code="invalid-time", hint="write it like 2026-01-31"
        ) from error
