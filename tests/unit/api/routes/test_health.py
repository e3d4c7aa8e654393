from __future__ import annotations

import logging
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.api.app import create_app
from planwave.errors import StoreError
from planwave.events import Event
from planwave.graph.model import Node
from planwave.service.service import Service
from planwave.settings import Settings
from planwave.storage.records import TRANSIENT_CODES, ExecutionRecord, StoreStats
from planwave.storage.sqlite.memory import MemoryStore
from planwave.storage.sqlite.store import SqliteStore
from tests.support.graph.builders import make_graph, text_node
from tests.support.nodes.held_nodes import HeldNode
from tests.support.polling import until
from tests.support.server.in_process_client import asgi_client
from tests.support.service.dependencies import dependencies, execute_goal

TOKEN = "correct horse"


def over(service: Service, *, is_worker: bool = False, **settings: Any) -> Any:
    return create_app(Settings(**settings), lambda _: service, is_worker=is_worker)


def texts() -> Service:
    return Service(dependencies(make_graph(text_node("a"))))


async def test_health_needs_no_token_and_metrics_need_one() -> None:
    async with asgi_client(over(texts(), token=TOKEN)) as client:
        for path in ("/healthz", "/readyz"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        assert (await client.get("/metrics")).status_code == 401
        bearer = {"authorization": f"Bearer {TOKEN}"}
        answer = await client.get("/metrics", headers=bearer)
        assert (answer.status_code, TOKEN in answer.text) == (200, False)


async def test_service_that_is_starting_is_alive_and_not_ready() -> None:
    transport = httpx2.ASGITransport(over(texts()))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        assert (await client.get("/healthz")).status_code == 200
        answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "starting")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["retry-after"]


async def test_draining_service_is_alive_and_not_ready() -> None:
    held = HeldNode()
    service = Service(dependencies(make_graph(Node("h", "held", "h")), types=[held]))
    async with asgi_client(over(service)) as client:
        record = await execute_goal(service)
        await held.started.wait()
        service.close_streams()
        assert (await client.get("/healthz")).status_code == 200
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()["code"]) == (503, "server-draining")
        held.release.set()
        await service.executions.wait(record.execution_id)


async def test_failed_disk_makes_service_unready_without_details(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore.open(tmp_path)
    service = Service(dependencies(make_graph(text_node("a")), store=store))
    async with asgi_client(over(service)) as client:
        assert (await client.get("/readyz")).status_code == 200

        def fail() -> None:
            raise sqlite3.OperationalError(f"disk I/O error at {tmp_path}")

        with monkeypatch.context() as patched:
            patched.setattr(store._writer._transactions, "commit", fail)
            with pytest.raises(StoreError):
                await service.plans.create("do it")
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()["code"]) == (503, "store-read-only")
        assert str(tmp_path) not in answer.text
        alive = await client.get("/healthz")
        assert (alive.status_code, alive.json()) == (200, {"status": "store-read-only"})


class Troubled(MemoryStore):
    """A store that cannot write for now, and says so."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self.trouble: StoreError | None = StoreError("no room at /secret/place", code=code)

    @property
    def stats(self) -> StoreStats:
        return StoreStats(transient_error=self.trouble)


@pytest.mark.parametrize("code", sorted(TRANSIENT_CODES))
async def test_transient_store_error_is_reported_until_it_ends(code: str) -> None:
    store = Troubled(code)
    service = Service(dependencies(make_graph(text_node("a")), store=store))
    async with asgi_client(over(service)) as client:
        alive = await client.get("/healthz")
        assert (alive.status_code, alive.json()) == (200, {"status": code})
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["code"]) == (503, code)
        assert "by itself" in ready.json()["hint"]
        assert ready.headers["retry-after"]
        assert "secret" not in ready.text
        store.trouble = None
        for path in ("/healthz", "/readyz"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def ended_execution(name: str, at: str) -> tuple[ExecutionRecord, list[Event]]:
    record = ExecutionRecord(name, None, "t", "g", "starting", at)
    kinds = ("execution.created", "execution.cancelled")
    return record, [Event(name, n, at, kind, None, None, {}) for n, kind in enumerate(kinds, 1)]


async def test_expired_executions_are_removed_at_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, now = MemoryStore(), datetime.now(UTC)
    for name, days in (("old", 31), ("young", 29)):
        await store.create_execution(
            *ended_execution(name, (now - timedelta(days=days)).isoformat())
        )
    caplog.set_level(logging.INFO)
    service = Service(dependencies(make_graph(text_node("a")), store=store))
    async with asgi_client(over(service, retention_days=30)):
        await until(lambda: "retention: 1 execution removed" in caplog.messages)
        assert await store.execution("old") is None
        assert await store.execution("young") is not None


async def test_a_worker_is_not_ready_before_anything_can_be_handed_to_it() -> None:
    pytest.importorskip("temporalio", reason="the SDK of Temporal is not installed")
    from planwave.service.carriers.temporal import TemporalCarrier
    from planwave.service.carriers.watchdog import Watchdog
    from planwave.setting_tables import TemporalSettings

    parts = dependencies(make_graph(text_node("a")))
    watchdog = Watchdog(2.0, lambda: parts.store.stats, lambda _: None)
    nowhere = TemporalSettings(address="127.0.0.1:9")
    for drives, is_worker, status in (
        (True, True, 503), (True, False, 200), (False, False, 200)
    ):  # fmt: skip
        carrier = TemporalCarrier(nowhere, watchdog, 0.0, parts.now)
        service = Service(replace(parts, carrier=carrier, drives=drives))
        async with asgi_client(over(service, is_worker=is_worker)) as client:
            answer = await client.get("/readyz")
            assert answer.status_code == status, "who only serves takes work: it is stored"
            assert status == 200 or answer.json()["code"] == "carrier-unavailable"


async def test_nothing_is_accepted_that_the_store_could_not_keep_for_a_minute() -> None:
    class Unreachable(MemoryStore):
        @property
        def stats(self) -> StoreStats:
            return StoreStats(transient_error=StoreError("no answer", code="store-unreachable"))

    parts = dependencies(make_graph(text_node("a")), store=Unreachable())
    async with asgi_client(over(Service(parts))) as client:
        graph = {"nodes": [{"id": "a", "type": "text", "data": {"text": "x"}}], "edges": []}
        answer = await client.post("/api/execute", json={"graph": graph, "start": True})
        assert (answer.status_code, answer.json()["code"]) == (503, "store-unreachable")
