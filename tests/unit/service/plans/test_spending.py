from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from planwave.errors import InputError
from planwave.events.usage import UsageTotal
from planwave.service.plans.spending import Spending
from planwave.storage.execution_facts import Spend
from planwave.storage.sqlite.memory import MemoryStore


def now() -> datetime:
    return datetime(2026, 1, 31, 12, tzinfo=UTC)


def spent(subject: str, cost: float | None, day: str = "2026-01-31") -> Spend:
    usage = UsageTotal(1, 10, 5, cost)
    return Spend("run", subject, day, None, "p", "m", usage, int(cost is None))


async def test_the_last_thirty_days_are_summed() -> None:
    store = MemoryStore()
    await store.spend.add(
        [spent("x1", 1.0), spent("x2", 2.0, "2026-01-02"), spent("x3", 4.0, "2026-01-01")]
    )
    report = await Spending(store, now).report()
    assert (report["since"], report["until"]) == ("2026-01-02", "2026-01-31")
    assert [each["key"] for each in report["groups"]] == ["2026-01-31", "2026-01-02"]
    assert (report["total"]["cost_usd"], report["total"]["runs"]) == (3.0, 2)
    assert report["warning"] is None


async def test_an_unknown_cost_is_no_zero() -> None:
    store = MemoryStore()
    await store.spend.add([spent("x1", None)])
    total = (await Spending(store, now).report())["total"]
    assert (total["cost_usd"], total["unpriced_calls"]) == (None, 1)


@pytest.mark.parametrize(
    ("since", "until"), [("yesterday", None), ("2026-02-01", "2026-01-01"), (None, "9")]
)
async def test_days_that_cannot_be_summed_are_refused(since: str | None, until: str | None) -> None:
    with pytest.raises(InputError) as caught:
        await Spending(MemoryStore(), now).report("day", since, until)
    assert caught.value.code == "invalid-time"


async def test_the_warning_comes_once_a_day_and_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    spending = Spending(store, now, warn_usd=1.0)
    await store.spend.add([spent("x1", 0.9)])
    with caplog.at_level(logging.WARNING, "planwave.spend"):
        await spending.warn()
        assert (caplog.messages, await spending.warning()) == ([], None)
        await store.spend.add([spent("x2", 0.2)])
        await spending.warn()
        await spending.warn()
    [message] = caplog.messages
    assert message.startswith("$1.10 spent today (2026-01-31)")
    assert await spending.warning() == {"day": "2026-01-31", "cost_usd": 1.1, "warn_usd": 1.0}
