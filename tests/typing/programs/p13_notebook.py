"""A cell of a notebook runs in an event loop, where ``run`` is awaited and stored runs are looked at."""

from __future__ import annotations

import asyncio
from tempfile import TemporaryDirectory

import planwave

g = planwave.GraphBuilder()
letter = g.node("text", text="Dear {{ input }}", input=g.node("start"))


async def cell() -> None:
    """Do what a cell does."""
    with TemporaryDirectory() as store:
        result = await planwave.run(g, "Ann", store=store)
        assert result[letter] == "Dear Ann"
        assert [each.status for each in planwave.executions(store)] == ["completed"]
        assert planwave.open(store, "last").result()[letter] == "Dear Ann"
    try:
        planwave.run_sync(g, "Ann")
    except RuntimeError as error:
        assert "await planwave.run(…)" in str(error)  # noqa: PT017
    else:
        raise AssertionError("it blocked the event loop")


asyncio.run(cell())
