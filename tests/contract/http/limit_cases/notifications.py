"""Limits of outgoing notifications."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

from planwave.settings import Limits
from planwave.storage.notifications import DEAD
from tests.contract.http.limit_cases.registry import Refusal, case
from tests.support.outbound.fake_network import PUBLIC
from tests.support.service.notified import FAILING, Clock, hosted, notified
from tests.support.triggers.hook_sender import text

_GRAPH: dict[str, Any] = {"nodes": [text("a", "done")], "edges": []}
_HOUR_S = 3_600.0


@case("notification_targets", 2)
async def _(limits: Limits, amount: int) -> Refusal | None:
    async with notified(limits=limits, secrets=hosted("a.test")) as on:
        flow = await on.service.flows.create("F", graph=_GRAPH)
        for number in range(amount):
            url = f"https://a.test/{number}"
            await on.service.notifications.create_target(flow.plan_id, url, ["hosted"])
    return None


@case(
    "notification_hours", 2, at=1.9, past=2.1, code="dead", mentions=["503"], virtual=True,
)  # fmt: skip
async def _(limits: Limits, amount: float) -> Refusal | None:
    """Nobody accepts a message for so many hours."""
    async with notified(FAILING, limits=limits) as on:
        await on.run(_GRAPH)
        await asyncio.sleep(amount * _HOUR_S)
        (record,) = await on.outbox()
        return Refusal("dead", record.error) if record.status == DEAD else None


@case("notification_bytes", 12, code="left-out")
async def _(limits: Limits, amount: int) -> Refusal | None:
    """The results are ``{"a":"…"}``: eight bytes and a text."""
    async with notified(limits=limits) as on:
        await on.run({"nodes": [text("a", "x" * (amount - 8))], "edges": []})
        await asyncio.sleep(0)
        while not on.received:  # noqa: ASYNC110
            await asyncio.sleep(0)
        is_left_out = on.received[0].message["data"]["outputs_left_out"]
        return Refusal("left-out", "notification_bytes 12 13") if is_left_out else None


@case("dead_letter_days", 30, at=29.9, past=30.1, code="deleted", mentions=[], virtual=True)
async def _(limits: Limits, amount: float) -> Refusal | None:
    """A dead message is that old when the service cleans up."""
    clock = Clock()
    async with notified(limits=limits, now=clock, names={"ops.test": [PUBLIC]}) as on:
        await on.run(_GRAPH)
        await asyncio.sleep(1)
        store = on.service._store.notifications  # pyright: ignore[reportPrivateUsage]
        (record,) = await on.outbox()
        await store.resend(record.notification_id, record.since)
        await store.update(replace(record, status=DEAD))
        clock.ahead = timedelta(days=amount)
        await on.service.maintenance.prune("2000-01-01")
        return None if await on.outbox() else Refusal("deleted", "")
