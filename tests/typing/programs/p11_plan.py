"""A plan: ``plan`` in an event loop, ``plan_sync`` without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import planwave


async def in_an_event_loop() -> planwave.Plan:
    """Plan a goal."""
    return await planwave.plan("Compare tea and coffee", model="nobody:some-model")


def without_one() -> planwave.Plan:
    """Plan a goal."""
    return planwave.plan_sync("Compare tea and coffee", model="nobody:some-model")


def planned_and_run() -> planwave.RunResult:
    """Plan a goal and run the plan."""
    return planwave.run_goal_sync("Compare tea and coffee", model="nobody:some-model", check=False)


calls: list[Callable[[], object]] = [
    lambda: asyncio.run(in_an_event_loop()), without_one, planned_and_run,
]  # fmt: skip
for call in calls:
    try:
        call()
    except planwave.InputError as error:
        assert error.code == "unknown-provider", error  # noqa: PT017
    else:
        raise AssertionError("there is no such provider")
