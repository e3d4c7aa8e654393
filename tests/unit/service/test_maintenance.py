import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planwave.errors import Conflict, InputError, NotFound, StoreError
from planwave.graph.model import Node
from planwave.service.executions import document_writer
from planwave.service.maintenance import retention_task
from planwave.service.service import Service
from planwave.settings import Limits
from planwave.storage.sqlite.store import SqliteStore
from tests.support.graph.builders import make_graph, text_node
from tests.support.nodes.held_nodes import HeldNode
from tests.support.service.dependencies import dependencies, execute_goal
from tests.support.virtual_loop import virtual_time

LARGE = text_node("a", "x" * 2_000)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    store = SqliteStore.open(tmp_path, artifact_bytes=1_000)
    async with Service(dependencies(make_graph(LARGE), directory=tmp_path, store=store)) as opened:
        yield opened


async def run_to_end(service: Service) -> str:
    record = await execute_goal(service)
    await service.executions.wait(record.execution_id)
    return record.execution_id


def files(directory: Path) -> list[str]:
    """Name what lies there besides the database and its lock."""
    found = (p.relative_to(directory).as_posix() for p in directory.rglob("*.json"))
    return sorted(found)


async def test_deleted_execution_leaves_no_file(service: Service, tmp_path: Path) -> None:
    first, second = await run_to_end(service), await run_to_end(service)
    assert len(files(tmp_path)) == 3
    await service.maintenance.delete_execution(first)
    assert len(files(tmp_path)) == 2
    assert (await service.executions.document(second))["node_results"] == {"a": "x" * 2_000}
    await service.maintenance.delete_execution(second)
    assert files(tmp_path) == []
    for ask in (
        service.executions.get,
        service.executions.document,
        service.maintenance.delete_execution,
        service.executions.state,
    ):
        with pytest.raises(NotFound):
            await ask(first)


async def test_running_execution_and_its_plan_are_not_deleted(tmp_path: Path) -> None:
    held = HeldNode()
    async with Service(dependencies(make_graph(Node("a", "held", "a")), types=[held])) as service:
        plan = await service.plans.create("do it")
        record = await service.executions.execute(plan.plan_id)
        await held.started.wait()
        with pytest.raises(Conflict) as refused:
            await service.maintenance.delete_execution(record.execution_id)
        assert refused.value.code == "execution-running"
        with pytest.raises(Conflict, match=record.execution_id) as refused:
            await service.plans.delete(plan.plan_id)
        assert refused.value.code == "plan-in-use"
        held.release.set()
        await service.executions.wait(record.execution_id)
        await service.plans.delete(plan.plan_id)
        assert (await service.executions.document(record.execution_id))["graph"]["nodes"][0][
            "id"
        ] == "a"
        await service.maintenance.delete_execution(record.execution_id)


async def test_document_written_during_deletion_is_removed(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = document_writer.write_documents

    async def late(directory: Path, texts: dict[str, bytes]) -> dict[str, Exception]:
        for name in texts:
            await service.maintenance.delete_execution(name)
        return await write(directory, texts)

    monkeypatch.setattr(document_writer, "write_documents", late)
    with pytest.raises(NotFound):
        await run_to_end(service)
    assert files(tmp_path) == []


async def test_prune_removes_executions_ended_before_a_time(
    service: Service, tmp_path: Path
) -> None:
    execution_ids = [await run_to_end(service) for _ in range(3)]
    times = [(await service.executions.get(each)).completed_at or "" for each in execution_ids]
    plan = await service.plans.create("wait")
    waiting = (await service.executions.create(plan.plan_id)).execution_id
    assert await service.maintenance.prune("2000-01-01") == 0
    assert await service.maintenance.prune(times[1].replace("+00:00", "Z")) == 1
    with pytest.raises(NotFound):
        await service.executions.get(execution_ids[0])
    assert await service.maintenance.prune("2999-01-01") == 2
    assert [x.execution_id for x in await service.executions.list()] == [waiting]
    assert files(tmp_path) == []
    assert [p.plan_id for p in await service.plans.list()] == [plan.plan_id]


@pytest.mark.slow
async def test_prune_removes_more_than_one_page(service: Service) -> None:
    for _ in range(45):
        await run_to_end(service)
    assert await service.maintenance.prune("2999-01-01") == 45
    assert await service.executions.list() == []


@pytest.mark.parametrize("time", ["yesterday", "", "2026-13-01"])
async def test_invalid_time_is_rejected(service: Service, time: str) -> None:
    with pytest.raises(InputError) as refused:
        await service.maintenance.prune(time)
    assert refused.value.code == "invalid-time"
    with pytest.raises(InputError):
        await service.executions.list(since=time)


async def test_a_link_says_for_a_month_that_it_has_expired() -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    async with Service(dependencies(now=lambda: now[0])) as service:
        execution_id = await run_to_end(service)
        _, key = await service.links.create(execution_id, "result", lifetime_s=60)
        now[0] += timedelta(days=30, seconds=60)
        await service.maintenance.prune("2000-01-01")
        assert (await service.links.find(key)).ended is None
        now[0] += timedelta(seconds=1)
        await service.maintenance.prune("2000-01-01")
        with pytest.raises(NotFound):
            await service.links.find(key)


async def test_idempotency_key_expires(tmp_path: Path) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    created = dependencies(limits=Limits(idempotency_hours=2), now=lambda: now[0])
    async with Service(replace(created, directory=tmp_path)) as service:
        assert (await service.maintenance.claim_idempotency_key("k", "d")).is_new
        await service.maintenance.store_response("k", 201, "{}")
        assert (await service.maintenance.claim_idempotency_key("k", "d")).body == "{}"
        now[0] += timedelta(hours=2)
        assert not (await service.maintenance.claim_idempotency_key("k", "d")).is_new
        await service.maintenance.prune("2000-01-01")
        assert not (await service.maintenance.claim_idempotency_key("k", "d")).is_new
        now[0] += timedelta(microseconds=1)
        await service.maintenance.prune("2000-01-01")
        assert await service._store.idempotency_record("k") is None
        assert (await service.maintenance.claim_idempotency_key("k", "other")).is_new
        await service.maintenance.release_idempotency_key("k")
        assert (await service.maintenance.claim_idempotency_key("k", "third")).is_new


async def test_backup_of_running_service_is_complete(
    service: Service, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    execution_id = await run_to_end(service)
    file = tmp_path_factory.mktemp("elsewhere") / "b.tar"
    created = await service.backup(file)
    assert (created.executions, created.plans, created.documents, created.artifacts) == (1, 1, 1, 1)
    assert file.is_file()
    written = json.loads((tmp_path / f"{execution_id}.json").read_text())
    assert written["status"] == "completed"


class Pruner:
    """Stands for a service on a clock that jumps."""

    def __init__(self) -> None:
        self.befores: list[datetime] = []

    async def prune(self, before: str) -> int:
        self.befores.append(datetime.fromisoformat(before))
        if len(self.befores) == 2:
            raise RuntimeError("the disk had a bad day")
        return 0


@virtual_time
async def test_retention_runs_daily_despite_errors() -> None:
    pruner = Pruner()
    async with retention_task(pruner.prune, 7):
        await asyncio.sleep(2.5 * 86_400)
    assert len(pruner.befores) == 3
    week_ago = datetime.now(UTC) - timedelta(days=7)
    assert all(week_ago - timedelta(minutes=1) < b <= week_ago for b in pruner.befores)


async def test_error_in_retention_context_is_raised() -> None:
    pruner = Pruner()
    with pytest.raises(StoreError, match="no disk"):
        async with retention_task(pruner.prune, 7):
            raise StoreError("no disk")


@virtual_time
async def test_without_retention_only_expired_keys_are_removed() -> None:
    pruner = Pruner()
    async with retention_task(pruner.prune, None):
        await asyncio.sleep(1)
    assert [before.year for before in pruner.befores] == [1]
