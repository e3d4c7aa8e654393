"""Which openings of one database have clients of an execution."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from planwave.storage.postgres.store import PostgresStore
from tests.support.storage.postgres_server import PostgresServer


@pytest.fixture
async def two(database_url: str) -> AsyncIterator[list[PostgresStore]]:
    async with AsyncExitStack() as opened:
        yield [
            await opened.enter_async_context(PostgresStore.open(database_url, is_carried=True))
            for _ in range(2)
        ]


async def test_the_last_opening_that_leaves_is_told_so(two: list[PostgresStore]) -> None:
    one, other = (store.owners.followers for store in two if store.owners is not None)
    for each in (one, one, other):
        await each.add("x")
    assert not await one.remove("x")
    assert await other.remove("x")
    assert await one.remove("x"), "nobody follows it"


async def test_of_openings_that_leave_at_once_one_is_the_last(two: list[PostgresStore]) -> None:
    openings = [store.owners.followers for store in two if store.owners is not None]
    for number in range(20):
        for each in openings:
            await each.add(f"x{number}")
        async with asyncio.TaskGroup() as tasks:
            left = [tasks.create_task(each.remove(f"x{number}")) for each in openings]
        assert sorted(each.result() for each in left) == [False, True]


async def test_what_only_openings_followed_that_are_gone_is_left(
    two: list[PostgresStore], postgres: PostgresServer, database_url: str
) -> None:
    one, other = (store.owners.followers for store in two if store.owners is not None)
    for each, execution_id in ((one, "lost"), (one, "kept"), (other, "kept")):
        await each.add(execution_id)
    assert await other.left() == []
    name = database_url.rpartition("/")[2]
    expired = (
        "UPDATE holders SET expires_at = clock_timestamp() - interval '1 s' WHERE holder_id = '{}'"
    )
    postgres.execute(expired.format(two[0]._instance_id), name)
    assert await other.left() == ["lost"]
    assert await other.remove("kept"), "an opening that is gone follows no longer"


async def test_an_opening_that_goes_down_leaves_nothing(two: list[PostgresStore]) -> None:
    one, other = (store.owners.followers for store in two if store.owners is not None)
    await one.add("x")
    await two[0].close()
    assert await other.left() == []
