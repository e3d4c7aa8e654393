"""Shares of the limits of a provider, as several openings of one database lease them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from planwave.providers.resilience.concurrency_limiter import FairConcurrencyLimiter
from planwave.providers.resilience.shares import LeasedShare, Share
from planwave.storage.postgres.provider_shares import PostgresProviderShares, part_of
from planwave.storage.postgres.store import PostgresStore
from tests.support.polling import until
from tests.support.storage.postgres_server import PostgresServer

WHOLE = Share(12, 120)


@pytest.fixture
async def three(database_url: str) -> AsyncIterator[list[PostgresProviderShares]]:
    async with AsyncExitStack() as opened:
        shares: list[PostgresProviderShares] = []
        for _ in range(3):
            store = PostgresStore.open(database_url, is_carried=True)
            await opened.enter_async_context(store)
            assert store.owners is not None
            shares.append(store.owners.provider_shares)
        yield shares


async def test_one_process_has_the_whole_limit(three: list[PostgresProviderShares]) -> None:
    assert await three[0].lease("p", 1, WHOLE, 10) == WHOLE
    assert await three[0].lease("p", 0, WHOLE, 10) == WHOLE
    assert await three[1].lease("another", 5, WHOLE, 10) == WHOLE


async def test_shares_follow_demand_and_never_exceed_the_limit(
    three: list[PostgresProviderShares],
) -> None:
    """A process that comes later has one call at first: the others leave it its part when they renew theirs."""
    demands = (6, 3, 3)
    assert await three[0].lease("p", demands[0], WHOLE, 10) == WHOLE
    assert await three[1].lease("p", demands[1], WHOLE, 10) == Share(1, 1)
    for _ in range(3):
        shares = [
            await each.lease("p", demand, WHOLE, 10)
            for each, demand in zip(three, demands, strict=True)
        ]
    assert shares == [Share(6, 60), Share(3, 30), Share(3, 30)]
    for turn in range(12):  # demand moves about: the sum is never more than the limit
        demands = ((turn * 7) % 5, (turn * 3) % 11, turn % 4)
        for index, demand in enumerate(demands):
            shares[index] = await three[index].lease("p", demand, WHOLE, 10)
            assert sum(each.concurrency for each in shares) <= WHOLE.concurrency


async def test_all_at_once_stay_within_the_limit(three: list[PostgresProviderShares]) -> None:
    for _ in range(10):
        async with asyncio.TaskGroup() as tasks:
            leases = [tasks.create_task(each.lease("p", 5, WHOLE, 10)) for each in three]
    assert sum(each.result().concurrency for each in leases) <= WHOLE.concurrency


async def test_more_processes_than_calls_have_one_each(three: list[PostgresProviderShares]) -> None:
    for _ in range(2):
        shares = [await each.lease("p", 9, Share(2, None), 10) for each in three]
    assert [each.concurrency for each in shares] == [1, 1, 1]
    assert {each.per_minute for each in shares} == {None}


async def test_the_share_of_a_process_that_is_gone_is_free_after_its_lease(
    three: list[PostgresProviderShares],
) -> None:
    await three[0].lease("p", 5, WHOLE, 0.3)
    assert await three[1].lease("p", 5, WHOLE, 10) == Share(1, 1)
    await asyncio.sleep(0.5)
    assert await three[1].lease("p", 5, WHOLE, 10) == WHOLE


@pytest.mark.parametrize(
    ("limit", "weight", "others", "taken", "expected"),
    [(10, 1, 0, 0, 10), (10, 1, 1, 0, 5), (10, 1, 2, 0, 4), (10, 1, 2, 8, 2), (1, 1, 9, 1, 1)],
)
def test_a_part_is_by_weight_of_what_is_left(
    limit: int, weight: int, others: int, taken: int, expected: int
) -> None:
    assert part_of(limit, weight, others, taken) == expected


async def test_two_processes_with_many_calls_share_the_limit(
    three: list[PostgresProviderShares], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty calls in each of two processes: both get on, and together never more than the limit at a time."""
    monkeypatch.setattr("planwave.providers.resilience.shares._RENEW_S", 0.05)
    running, most, done = [0, 0], 0, [0, 0]
    clock = asyncio.get_running_loop().time
    whole = Share(6, None)

    async def call(index: int, limiter: FairConcurrencyLimiter, share: LeasedShare) -> None:
        nonlocal most
        await share.wait()
        async with limiter.acquire("x"):
            running[index] += 1
            most = max(most, sum(running))
            await asyncio.sleep(0.02)
            running[index] -= 1
            done[index] += 1

    limiters = [FairConcurrencyLimiter(6, None, clock=clock, sleep=asyncio.sleep) for _ in "ab"]
    shares = [
        LeasedShare("p", whole, limiter, lease, clock=clock, sleep=asyncio.sleep)
        for limiter, lease in zip(limiters, three, strict=False)
    ]
    async with asyncio.TaskGroup() as tasks:
        for index in (0, 1):
            for _ in range(60):
                tasks.create_task(call(index, limiters[index], shares[index]))
    assert done == [60, 60]
    assert most <= 6 + 1, "the second one has one call before the first one leaves it its part"
    for share in shares:
        await share.close()


async def test_a_process_without_the_database_keeps_one_call(
    three: list[PostgresProviderShares],
    database_url: str,
    postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("planwave.providers.resilience.shares._RENEW_S", 0.02)
    monkeypatch.setattr("planwave.providers.resilience.shares.LEASE_S", 0.3)
    clock = asyncio.get_running_loop().time
    store = PostgresStore.open(database_url, is_carried=True)
    assert store.owners is not None
    limiter = FairConcurrencyLimiter(12, 120, clock=clock, sleep=asyncio.sleep)
    share = LeasedShare(
        "p", WHOLE, limiter, store.owners.provider_shares, clock=clock, sleep=asyncio.sleep
    )
    await share.wait()
    assert (limiter._concurrency, limiter._per_minute) == (12, 120)
    async with limiter.acquire("x"):  # a call: the share is renewed
        await store.close()
        await until(lambda: limiter._concurrency == 1)
        assert limiter._per_minute == 1
    await share.close()
