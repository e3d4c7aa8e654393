"""The fault matrix of servers and networks: they are away, slow or cut off, and nothing is lost or done twice."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from tests.support.scale.faults import settle_accounts
from tests.support.scale.installation import FAULTS, Installation, port_of
from tests.support.scale.temporal_server import TemporalServer
from tests.support.storage.postgres_server import PostgresServer

pytestmark = pytest.mark.scale

MINUTE_S = 60.0
SLOW_DISK_S = 2.0
"""As long as the lease: who waits so long for an answer to a write gives no sign of life, and may lose its executions."""
BUSY_DISK_S = 1.2
SHORT_S = 0.8
"""An absence that nobody notices: the lease is 2 s, and a worker gives four signs of life in it."""


async def test_the_database_is_stopped_at_once_and_for_a_minute(
    installation: Installation, durable_postgres: PostgresServer
) -> None:
    api = installation.start("serve")
    workers = [installation.start("worker") for _ in range(2)]
    for turn in range(max(FAULTS, 2) + 1):
        await installation.ready(api, *workers)
        await installation.begin(api, supervised=workers)
        durable_postgres.stop()
        await asyncio.sleep(MINUTE_S if turn == 1 else 0.5)
        durable_postgres.start()
    await settle_accounts(installation, api)


async def test_temporal_is_killed_and_away_for_a_minute(
    installation: Installation, durable_temporal: TemporalServer
) -> None:
    api = installation.start("serve")
    workers = [installation.start("worker") for _ in range(2)]
    for turn in range(FAULTS + 1):
        await installation.ready(api, *workers)
        await installation.begin(api, supervised=workers)
        durable_temporal.kill()
        await asyncio.sleep(MINUTE_S if turn == 1 else 0.0)
        durable_temporal.start()
    await settle_accounts(installation, api)


@pytest.mark.parametrize(
    ("server", "late_s"),
    [("database", BUSY_DISK_S), ("database", SLOW_DISK_S), ("temporal", SHORT_S)],
)
async def test_answers_of_a_server_that_come_late_take_nothing_away(
    installation: Installation, durable_temporal: TemporalServer, server: str, late_s: float
) -> None:
    """A slow disk, or a carrier that is away.

    Up to about half of the lease nobody takes over: a worker whose write waits for less than the lease still gives signs of
    life. A disk that stalls for the whole lease may cost takeovers, but nothing is lost or done twice.
    """
    api = installation.start("serve")
    address = installation.url if server == "database" else durable_temporal.address
    relay = installation.relay(port_of(address))
    workers = [installation.start("worker", **{f"{server}_port": relay.port}) for _ in range(2)]
    supervised = workers if late_s == SLOW_DISK_S else []
    for turn in range(max(FAULTS, 5)):
        if turn % 3 == 0:
            await installation.ready(*supervised)
            await installation.begin(api)
        relay.cut()
        await asyncio.sleep(late_s)
        relay.restore()
        await asyncio.sleep(0.8)
    await installation.ready(*supervised)
    account, _ = await settle_accounts(installation, api)
    assert account.run_again == 0 or late_s == SLOW_DISK_S
    assert late_s == SLOW_DISK_S or not any(each.has_ended() for each in workers)


async def test_a_frozen_process_that_listens_holds_nothing_up(installation: Installation) -> None:
    api, frozen = (installation.start("serve") for _ in range(2))
    installation.start("worker")
    for _ in range(FAULTS):
        await installation.ready(frozen)
        frozen.freeze()
        await installation.ended(api, await installation.begin(api))
        frozen.thaw()
    account, _ = await settle_accounts(installation, api)
    assert account.run_again == 0
    await installation.until(frozen.is_ready)


async def test_a_process_that_serves_is_cut_off_from_the_database(
    installation: Installation,
) -> None:
    """It says that it takes nothing, workers go on, and an open stream goes on afterwards: no gap, nothing twice."""
    relay = installation.relay(port_of(installation.url))
    api = installation.start("serve")
    cut_off = installation.start("serve", database_port=relay.port)
    installation.start("worker")
    async with (
        httpx2.AsyncClient(base_url=cut_off.url, timeout=120) as client,
        asyncio.TaskGroup() as tasks,
    ):
        for _ in range(FAULTS):
            (followed,) = ids = await installation.begin(cut_off, 1)
            seqs: list[int] = []
            stream = tasks.create_task(installation.follow(cut_off, followed, seqs))
            await installation.until(lambda seqs=seqs: seqs)
            relay.cut()
            await installation.until(lambda: not cut_off.is_ready())
            refused = await client.get("/readyz")
            assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
            histories = await installation.ended(api, ids)
            relay.restore()
            await installation.until(cut_off.is_ready)
            url = f"/api/executions/{followed}/events"
            answer = await client.get(url, params={"format": "json"})
            stored = [each.seq for each in histories[followed]]
            assert [each["seq"] for each in answer.json()["events"]] == stored
            assert await stream == stored
    await settle_accounts(installation, api)
