"""The host of triggers: adapters of others listen, are restarted, and follow their flows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from planwave.errors import InputError, QueueFull
from planwave.log_records import FIELDS, words_of
from planwave.nodes.authoring.node_type import NodeData, NodeType
from planwave.service.dependencies import Observer
from planwave.service.service import Service
from planwave.service.triggers.trigger_service import Trigger
from planwave.settings import Settings
from planwave.triggers.adapter import Deliveries, TriggerAdapter
from planwave.triggers.host import TriggerHost
from tests.support.service.dependencies import dependencies
from tests.support.virtual_loop import virtual_time


class BellData(NodeData):
    tone: str = "c"


class Bell(NodeType):
    node_type = "bell"
    Data = BellData
    entry = True
    inputs = ()

    async def run(self, data: BellData, inputs: Any, context: Any) -> str:
        return data.tone


class Bells(TriggerAdapter):
    """Rings when a test puts something into ``pushes``."""

    node_type = "bell"
    listens = True

    def __init__(self, service: Service, settings: Settings) -> None:
        super().__init__(service, settings)
        self.tones: list[str] = []
        self.pushes: asyncio.Queue[tuple[str, str] | Exception] = asyncio.Queue()
        self.answers: asyncio.Queue[Any] = asyncio.Queue()

    async def listen(self, trigger: Trigger, deliveries: Deliveries) -> None:
        self.tones.append(trigger.data.tone)
        while True:
            push = await self.pushes.get()
            if isinstance(push, Exception):
                raise push
            key, value = push
            self.answers.put_nowait(await deliveries.start(key, {"output": value}))


def bell_flow(tone: str = "c") -> Mapping[str, Any]:
    echo = {"id": "echo", "type": "text", "data": {"text": "heard {{ input }}"}}
    return {
        "nodes": [{"id": "bell", "type": "bell", "data": {"tone": tone}}, echo],
        "edges": [{"source": "bell", "target": "echo", "data": {"channel": "flow"}}],
    }


@asynccontextmanager
async def hosted() -> AsyncIterator[tuple[Service, TriggerHost, Bells]]:
    async with (
        Service(dependencies(types=[Bell])) as service,
        TriggerHost(service, Settings(), [Bells]) as host,
    ):
        adapter = host.adapter("bell")
        assert isinstance(adapter, Bells)
        yield service, host, adapter


async def settled() -> None:
    """Let tasks that are ready run."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_adapter_starts_one_execution_for_each_delivery() -> None:
    async with hosted() as (service, host, bells):
        flow = await service.flows.create("F", graph=bell_flow())
        made = await host.create(flow.plan_id)
        bells.pushes.put_nowait(("k", "ding"))
        record = await bells.answers.get()
        await service.executions.wait(record.execution_id)
        document = await service.executions.document(record.execution_id)
        assert document["node_results"]["echo"] == "heard ding"
        assert document["trigger"] == {"id": made.trigger_id, "kind": "bell", "delivery": "k"}
        bells.pushes.put_nowait(("k", "dong"))
        assert await bells.answers.get() is None
        assert len(await service.executions.list()) == 1


async def test_listener_follows_the_changes_of_its_flow() -> None:
    async with hosted() as (service, host, bells):
        flow = await service.flows.create("F", graph=bell_flow("c"))
        await host.create(flow.plan_id)
        await settled()
        await service.flows.update(flow.plan_id, graph=bell_flow("d"))
        await settled()
        assert bells.tones == ["c", "d"]
        plain = {"nodes": [{"id": "a", "type": "text", "data": {"text": "x"}}], "edges": []}
        await service.flows.update(flow.plan_id, graph=plain)
        await settled()
        (shown,) = await host.page()
        assert shown.problem == "the flow has no node 'bell' any more"
        bells.pushes.put_nowait(("k", "ding"))
        await settled()
        assert await service.executions.list() == []
        await service.flows.delete(flow.plan_id, force=True)
        await settled()
        assert await host.page() == []


async def test_disabled_trigger_does_not_listen() -> None:
    async with hosted() as (service, host, bells):
        flow = await service.flows.create("F", graph=bell_flow())
        made = await host.create(flow.plan_id)
        await settled()
        await host.set_enabled(made.trigger_id, enabled=False)
        await settled()
        bells.pushes.put_nowait(("k", "ding"))
        await settled()
        assert await service.executions.list() == []
        await host.set_enabled(made.trigger_id, enabled=True)
        assert await bells.answers.get() is not None
        await host.delete(made.trigger_id)
        await settled()
        bells.pushes.put_nowait(("l", "ding"))
        await settled()
        assert len(await service.executions.list()) == 1


@virtual_time
async def test_failed_listener_is_started_again() -> None:
    async with hosted() as (service, host, bells):
        flow = await service.flows.create("F", graph=bell_flow())
        await host.create(flow.plan_id)
        bells.pushes.put_nowait(OSError("the line is dead"))
        bells.pushes.put_nowait(("k", "ding"))
        assert await bells.answers.get() is not None
        assert bells.tones == ["c", "c"]


async def test_delivery_that_could_not_start_may_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with hosted() as (service, host, _):
        flow = await service.flows.create("F", graph=bell_flow())
        made = await host.create(flow.plan_id)
        trigger = await service.triggers.get(made.trigger_id)
        tasks: set[asyncio.Task[Any]] = set()

        def spawn(work: Any) -> asyncio.Task[Any]:
            task = asyncio.get_running_loop().create_task(work)
            tasks.add(task)
            return task

        async def full(*_: Any) -> None:
            raise QueueFull("full", retry_after_s=1.0)

        told: list[tuple[str, str, str]] = []

        class Told(Observer):
            def trigger_delivered(
                self, trigger: Trigger, outcome: str, note: str, execution_id: str | None
            ) -> None:
                told.append((trigger.kind, outcome, note))

        service.observe(Told())
        deliveries = Deliveries(service, trigger, spawn)
        with monkeypatch.context() as patched:
            patched.setattr(service.triggers, "start", full)
            with pytest.raises(QueueFull):
                await deliveries.start("k", {"output": 1})
        assert await deliveries.start("k", {"output": 1}) is not None
        assert await deliveries.record("k", "skipped") is False
        assert await deliveries.record("l", "skipped", "why") is True
        assert told == [
            ("bell", "failed", "full"),
            ("bell", "started", ""),
            ("bell", "duplicate", ""),
            ("bell", "skipped", "why"),
        ]


async def test_trigger_without_an_adapter_is_listed_and_starts_nothing() -> None:
    parts = dependencies(types=[Bell])
    async with Service(parts) as service:
        flow = await service.flows.create("F", graph=bell_flow())
        made = await TriggerHost(service, Settings(), [Bells]).create(flow.plan_id)
        other = TriggerHost(service, Settings(), [])
        (shown,) = await other.page()
        assert shown.problem == "nothing listens for 'bell' here"
        (document,) = await other.as_json([shown])
        assert document["details"] == {}
        with pytest.raises(InputError, match="nothing listens"):
            await other.fire(made.trigger_id)


class DeafBells(Bells):
    """Cannot receive anything while it has a reason."""

    reason: str | None = "its secret has no value"

    def problem(self, trigger: Trigger) -> str | None:
        return self.reason


async def test_a_trigger_that_receives_nothing_is_in_the_log_once_from_the_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Service(dependencies(types=[Bell])) as service:
        flow = await service.flows.create("F", graph=bell_flow())
        made = await TriggerHost(service, Settings(), [Bells]).create(flow.plan_id)
        async with TriggerHost(service, Settings(), [DeafBells]):
            (line,) = [each for each in caplog.records if each.name == "planwave.trigger"]
            await service.flows.update(flow.plan_id, graph=bell_flow("d"))
            await settled()
        about = {"kind": "bell", "flow": "F", "trigger": made.trigger_id}
        assert (line.levelname, words_of(line)) == ("WARNING", "receives nothing")
        assert getattr(line, FIELDS) == {**about, "reason": "its secret has no value"}
        assert [each.name for each in caplog.records].count("planwave.trigger") == 1
