"""The fault matrix: processes that share a database fail in every way, and nothing is lost or done twice.

``SCALE_FAULTS`` says how often each fault happens, ``SCALE_EXECUTIONS`` how many executions run meanwhile, and
``SCALE_TAKEOVER_S`` how late a takeover may be: 7 s is the target, on a machine with nothing else to do. The output of each
test (``-rP``) says what was measured.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import pytest

from planwave.storage.postgres.holder import LEASE_S
from planwave.storage.postgres.store import PostgresStore
from tests.support.scale.installation import FAULTS, GRAPH, Installation, port_of
from tests.support.scale.logging_nodes import hang_file
from tests.support.scale.role_process import RoleProcess, processes
from tests.support.scale.temporal_server import TemporalServer, running_temporal
from tests.support.storage.next_version import NEXT_PLANWAVE, NEXT_SCHEMA, NextStore
from tests.support.storage.postgres_server import (
    IS_THERE,
    SKIP_REASON,
    PostgresServer,
    running_postgres,
)

pytestmark = pytest.mark.scale

ASKING = {
    "nodes": [{"id": "ask", "type": "approval", "data": {"prompt": "Go on?"}}],
    "edges": [],
}
TAKEOVER_S = float(os.environ.get("SCALE_TAKEOVER_S", "7"))
LONG = 10
"""From so many faults on, a server is away for a minute."""
TWO_FAIL_S = TAKEOVER_S + 5.0
"""Temporal may hand what a dead process drove to one that is frozen, which costs another lease."""
CUT_OFF_S = TAKEOVER_S + 3.0
"""A process that cannot reach the database ends itself first."""


@pytest.fixture(scope="module")
def durable_postgres() -> Iterator[PostgresServer]:
    """A server that loses nothing when it is stopped at once."""
    if not IS_THERE:
        pytest.skip(SKIP_REASON)
    with running_postgres("fsync=on", "full_page_writes=on") as running:
        yield running


@pytest.fixture(scope="module")
def durable_temporal(
    needs_temporal: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TemporalServer]:
    with running_temporal(tmp_path_factory.mktemp("temporal"), keeps_data=True) as running:
        yield running


@pytest.fixture
def installation(
    durable_postgres: PostgresServer,
    durable_temporal: TemporalServer,
    task_queue: str,
    tmp_path: Path,
) -> Iterator[Installation]:
    with durable_postgres.new_database() as url, processes(tmp_path) as group:
        made = Installation(group, url, durable_temporal.address, task_queue)
        yield made
        made.close()


Fault = Callable[[RoleProcess], object]


async def survive(
    installation: Installation,
    api: RoleProcess,
    victims: Mapping[RoleProcess, Fault],
    repair: Fault,
    within_s: float = TAKEOVER_S,
) -> None:
    """Let processes fail again and again while executions run; nothing may be lost, done twice, or late."""
    takeovers: list[float] = []
    for _ in range(FAULTS):
        takeovers += await one_fault(installation, api, victims, repair)
    account = installation.account(await installation.ended(api))
    print(f"{account} takeovers={len(takeovers)} slowest={max(takeovers):.1f} s")  # noqa: T201 - for the closing note
    assert account.faults() == {}, installation.report(())
    assert len(takeovers) >= FAULTS * len(victims), "no fault met a running execution"
    assert max(takeovers) <= within_s


async def one_fault(
    installation: Installation,
    api: RoleProcess,
    victims: Mapping[RoleProcess, Fault],
    repair: Fault,
) -> list[float]:
    """Let processes fail while all of them drive, and repair them once others have taken over; return the takeovers."""
    for each in victims:
        if each.has_ended():
            each.start()
    await installation.until(lambda: all(each.is_ready() for each in victims))
    ids = await installation.begin(api)
    await installation.until(lambda: all(installation.drives(each, ids) for each in victims))
    lost: list[str] = []
    failed: list[tuple[int, float]] = []
    for victim, fail in victims.items():
        lost += installation.drives(victim, ids)
        failed.append((victim.pid, time.time()))
        fail(victim)
    await installation.taken_over(lost, failed[0][1])
    for victim in victims:
        repair(victim)
    histories = await installation.ended(api, ids)
    return [each for one in failed for each in installation.takeover_s(histories, *one)]


@pytest.mark.parametrize("fault", ["kill", "freeze", "kill and freeze", "hang"])
async def test_workers_fail_and_others_take_over(installation: Installation, fault: str) -> None:
    api = installation.start("serve")
    workers = [installation.start("worker") for _ in range(3)]
    first, second, _ = workers

    def hang(victim: RoleProcess) -> None:
        hang_file(installation.group.run_log).write_text(str(victim.pid), "utf-8")

    victims: dict[str, dict[RoleProcess, Fault]] = {
        "kill": {first: RoleProcess.kill},
        "freeze": {first: RoleProcess.freeze},
        "kill and freeze": {first: RoleProcess.kill, second: RoleProcess.freeze},
        "hang": {first: hang},
    }
    within_s = TAKEOVER_S if len(victims[fault]) == 1 else TWO_FAIL_S
    await survive(installation, api, victims[fault], RoleProcess.thaw, within_s)


async def test_a_worker_is_cut_off_from_the_database(installation: Installation) -> None:
    """It ends itself, and starts nothing that another one has completed."""
    api = installation.start("serve")
    relay = installation.relay(port_of(installation.url))
    victim = installation.start("worker", database_port=relay.port)
    for _ in range(2):
        installation.start("worker")
    cut: Fault = lambda _: relay.cut()  # noqa: E731
    restore: Fault = lambda _: relay.restore()  # noqa: E731
    await survive(installation, api, {victim: cut}, restore, CUT_OFF_S)


async def test_a_worker_is_cut_off_from_temporal(
    installation: Installation, durable_temporal: TemporalServer
) -> None:
    """It goes on, or another one takes over; nothing is done by both."""
    api = installation.start("serve")
    relay = installation.relay(port_of(durable_temporal.address))
    victim = installation.start("worker", temporal_port=relay.port)
    for _ in range(2):
        installation.start("worker")
    for _ in range(FAULTS):
        ids = await installation.begin(api)
        await installation.until(lambda: installation.drives(victim, ids))  # noqa: B023
        relay.cut()
        await installation.ended(api, ids)
        relay.restore()
        await installation.until(victim.is_ready)
    account = installation.account(await installation.ended(api))
    assert account.faults() == {}, installation.report(())


async def test_the_database_is_stopped_at_once_and_for_a_while(
    installation: Installation, durable_postgres: PostgresServer
) -> None:
    api = installation.start("serve")
    for _ in range(2):
        installation.start("worker")
    for down_s in (0.5, 2.0, 60.0 if FAULTS >= LONG else 10.0):
        ids = await installation.begin(api)
        durable_postgres.stop()
        await asyncio.sleep(down_s)
        durable_postgres.start()
        await installation.ended(api, ids)
    account = installation.account(await installation.ended(api))
    assert account.faults() == {}, installation.report(())


async def test_temporal_is_killed_and_started_again(
    installation: Installation, durable_temporal: TemporalServer
) -> None:
    api = installation.start("serve")
    for _ in range(2):
        installation.start("worker")
    for down_s in (0.0, 60.0 if FAULTS >= LONG else 8.0):
        ids = await installation.begin(api)
        durable_temporal.kill()
        await asyncio.sleep(down_s)
        durable_temporal.start()
        await installation.ended(api, ids)
    account = installation.account(await installation.ended(api))
    assert account.faults() == {}, installation.report(())


async def test_a_worker_that_is_asked_to_end_hands_over_what_it_drives(
    installation: Installation,
) -> None:
    """Running nodes are completed; the others run elsewhere, and none twice."""
    api = installation.start("serve")
    victim, _ = (installation.start("worker") for _ in range(2))
    for _ in range(FAULTS):
        ids = await installation.begin(api)
        await installation.until(lambda: installation.drives(victim, ids))  # noqa: B023
        assert victim.terminate() == 0
        await installation.ended(api, ids)
        victim.start()
    account = installation.account(await installation.ended(api))
    assert account.faults() == {}, installation.report(())
    assert account.run_again == 0


async def test_answers_of_the_database_that_come_late_take_nothing_away(
    installation: Installation,
) -> None:
    """A slow disk: shorter than the lease, so that nobody takes over."""
    api = installation.start("serve")
    relay = installation.relay(port_of(installation.url))
    for _ in range(2):
        installation.start("worker", database_port=relay.port)
    ids = await installation.begin(api)
    for _ in range(5):
        relay.cut()
        await asyncio.sleep(1.2)
        relay.restore()
        await asyncio.sleep(0.8)
    account = installation.account(await installation.ended(api, ids))
    assert account.faults() == {}, installation.report(())
    assert account.run_again == 0


async def test_a_frozen_process_that_listens_holds_nothing_up(installation: Installation) -> None:
    api, frozen = (installation.start("serve") for _ in range(2))
    installation.start("worker")
    await installation.ended(api, await installation.begin(api))
    frozen.freeze()
    account = installation.account(await installation.ended(api, await installation.begin(api)))
    frozen.thaw()
    assert account.faults() == {}, installation.report(())
    assert account.run_again == 0
    await installation.until(frozen.is_ready)


async def test_a_process_that_serves_is_cut_off_from_the_database(
    installation: Installation,
) -> None:
    """It says that it takes nothing, workers go on, and its streams miss nothing."""
    relay = installation.relay(port_of(installation.url))
    api = installation.start("serve")
    cut_off = installation.start("serve", database_port=relay.port)
    installation.start("worker")
    (followed,) = ids = await installation.begin(cut_off, 1)
    relay.cut()
    await installation.until(lambda: not cut_off.is_ready())
    async with httpx2.AsyncClient(base_url=cut_off.url, timeout=120) as client:
        refused = await client.get("/readyz")
        assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
        histories = await installation.ended(api, ids)
        relay.restore()
        await installation.until(cut_off.is_ready)
        answer = await client.get(f"/api/executions/{followed}/events", params={"format": "json"})
    seqs = [each["seq"] for each in answer.json()["events"]]
    assert seqs == [each.seq for each in histories[followed]]
    assert installation.account(histories).faults() == {}


async def test_a_rolling_upgrade_and_executions_that_change_versions_both_ways(
    installation: Installation,
) -> None:
    """Old and new processes drive together; once the old ones are gone, the new form is written."""
    installation.store_type = NextStore
    api = installation.start("serve")
    old = [installation.start("worker") for _ in range(2)]
    new = [installation.start("worker", program=NEXT_PLANWAVE)]
    for victim in (old[0], new[0], old[0], new[0]):
        ids = await installation.begin(api)
        await installation.until(lambda: installation.drives(victim, ids))  # noqa: B023
        lost, at = installation.drives(victim, ids), time.time()
        victim.kill()
        await installation.taken_over(lost, at)
        victim.start()
        await installation.ended(api, ids)
    assert await installation.newest_form() == 1
    new.append(installation.start("worker", program=NEXT_PLANWAVE))
    next_api = installation.start("serve", program=NEXT_PLANWAVE)
    ids = await installation.begin(api)
    for each in (*old, api):
        each.terminate()
    await installation.ended(next_api, ids)
    await asyncio.sleep(LEASE_S / 2)  # a beat of the new ones
    await installation.ended(next_api, await installation.begin(next_api))
    assert await installation.newest_form() == NEXT_SCHEMA
    with pytest.raises(AssertionError, match="knows up to 1"):
        old[0].start()
    account = installation.account(await installation.ended(next_api))
    assert account.faults() == {}, installation.report(())


async def test_two_processes_that_serve_are_one_service(installation: Installation) -> None:
    """A request that reaches both makes one execution, and both give the same events."""
    both = [installation.start("serve") for _ in range(2)]
    installation.start("worker")
    body = {"graph": GRAPH, "start": True}

    async def request(client: httpx2.AsyncClient, key: str) -> str:
        while True:
            answer = await client.post("/api/execute", json=body, headers={"Idempotency-Key": key})
            if answer.status_code != httpx2.codes.CONFLICT:  # the other one is at it
                assert answer.status_code == httpx2.codes.ACCEPTED, answer.text
                return answer.json()["execution_id"]
            await asyncio.sleep(0.1)

    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(httpx2.AsyncClient(base_url=each.url, timeout=45))
            for each in both
        ]
        for turn in range(5 * FAULTS):
            async with asyncio.TaskGroup() as tasks:
                made = [tasks.create_task(request(each, f"key {turn}")) for each in clients]
            (own,) = {each.result() for each in made}
            installation.ids.append(own)
        histories = await installation.ended(both[0])
        assert installation.account(histories).faults() == {}, installation.report(())
        for execution_id, events in histories.items():
            for client in clients:
                url = f"/api/executions/{execution_id}/events"
                answer = await client.get(url, params={"format": "json"})
                assert [each["seq"] for each in answer.json()["events"]] == [
                    each.seq for each in events
                ]
    async with PostgresStore.open(installation.url, read_only=True) as store:
        assert sum((await store.count_executions()).values()) == len(histories)


async def test_parked_executions_cost_nothing_and_wake_together(installation: Installation) -> None:
    api, worker = installation.start("serve"), installation.start("worker")
    parked = 50 * min(FAULTS, 200)
    body = {"graph": ASKING, "start": True}
    async with httpx2.AsyncClient(base_url=api.url, timeout=60) as client:
        ids = [
            (await client.post("/api/execute", json=body)).json()["execution_id"]
            for _ in range(parked)
        ]
        async with PostgresStore.open(installation.url, read_only=True) as store:
            await settle(store, {"paused": parked})
            before = cpu_s(worker.pid)
            await asyncio.sleep(5)
            assert cpu_s(worker.pid) - before < 1.5
            woken = ids[:: max(parked // 500, 2)]
            async with asyncio.TaskGroup() as tasks:
                for each in woken:
                    tasks.create_task(approve(client, each))
            await settle(store, {"completed": len(woken), "paused": parked - len(woken)})


async def approve(client: httpx2.AsyncClient, execution_id: str) -> None:
    """Answer the one request of an execution."""
    own = f"/api/executions/{execution_id}"
    (request,) = (await client.get(own)).json()["requests"]
    url = f"{own}/requests/{request['request_id']}"
    answer = await client.post(url, json={"decision": "approve"})
    assert answer.is_success, answer.text


async def settle(store: PostgresStore, counts: Mapping[str, int]) -> None:
    """Wait until there are so many executions in each status."""
    async with asyncio.timeout(120):
        while await store.count_executions() != counts:  # noqa: ASYNC110 - other processes do it
            await asyncio.sleep(0.2)


def cpu_s(pid: int) -> float:
    """Return how long a process has computed."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
