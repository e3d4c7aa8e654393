"""Executions left, told, forked and taken up in odd moments."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import Conflict, Gone, PlanwaveError, StoreError
from planwave.events import TERMINAL
from planwave.executor.options import RunOptions
from planwave.graph.model import DataValue, Graph, Node
from planwave.graph.protocols import ExecutionResult
from planwave.service.executions.store_retry import FIRST_WAIT_S
from planwave.service.service import Service
from planwave.settings import Limits
from planwave.storage.records import DISK_FULL
from tests.support.graph.builders import make_graph, text_node
from tests.support.polling import until
from tests.support.service.dependencies import dependencies, execute_goal
from tests.unit.service.executions.test_commands import (
    QUESTION,
    WORK,
    Asks,
    Counts,
    executed,
    opened,
    outputs_of,
    reached,
)

BESIDE = make_graph(Node("q", "asks", "Q"), Node("b", "counts", "B", data={"hold": True}))
INSIDE = make_graph(Node("n", "nests", "N"))


class Nests:
    """A node type that runs a question inside itself, and gives what was answered."""

    node_type = "nests"
    inner = Graph((Node("q", "asks", "Q"),), ())

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        given = await context.runtime.run_graph("k", self.inner, {})
        return ExecutionResult({"output": DataValue("json", given["q"]["output"].value)})


async def wait_for_end(service: Service, execution_id: str) -> str:
    """Wait for the end of an execution, and give how it came."""
    async with asyncio.timeout(120):
        return (await reached(service, execution_id, lambda e: e.type in TERMINAL)).type


async def wait_for_request(service: Service, execution_id: str) -> str:
    """Wait until an execution waits for an answer, and give the id of its first request."""
    await reached(service, execution_id, lambda e: e.type == "node.waiting")
    return (await service.executions.requests(execution_id))[0].request_id


def in_an_hour() -> datetime:
    """Give the time of a process that is started an hour later."""
    return datetime.now(UTC) + timedelta(hours=1)


# -- forks


async def test_fork_keeps_its_own_answer(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, QUESTION, Asks()) as service:
        first = await executed(service)
        await service.executions.wait(first)
        fork = (await service.executions.fork(first)).execution_id
        await service.executions.wait(fork)
        await service.executions.answer(first, await wait_for_request(service, first), "yes")
        await service.executions.wait(first)
        await service.executions.answer(fork, await wait_for_request(service, fork), "no")
        await service.executions.wait(fork)
        assert (await outputs_of(service, fork))["q"]["output"][1] == "no"


# -- requests


async def test_deadline_runs_beside_recovered_nodes(
    tmp_path: Path,
) -> None:
    counts = Counts()
    async with opened(tmp_path, BESIDE, Asks(timeout_s=0.3), counts) as service:
        execution_id = await executed(service)
        await reached(service, execution_id, lambda e: e.type == "node.waiting")
    async with opened(tmp_path, BESIDE, Asks(timeout_s=0.3), counts) as service:
        await service.recover()
        async with asyncio.timeout(120):
            answered = await reached(service, execution_id, lambda e: e.type == "node.answered")
        assert answered.data["by"] == "timeout"
        assert (await service.executions.state(execution_id)).nodes["b"].status == "running"


async def test_nested_deadline_runs_on_after_restart(tmp_path: Path) -> None:
    async with opened(tmp_path, INSIDE, Asks(timeout_s=0.3), Nests()) as service:
        execution_id = await executed(service)
        await reached(service, execution_id, lambda e: e.type == "node.waiting")
    async with opened(tmp_path, INSIDE, Asks(timeout_s=0.3), Nests()) as service:
        await service.recover()
        assert await wait_for_end(service, execution_id) == "execution.completed"


async def test_nested_request_can_be_answered_during_a_pause(tmp_path: Path) -> None:
    async with opened(tmp_path, INSIDE, Asks(), Nests()) as service:
        execution_id = await executed(service)
        request_id = await wait_for_request(service, execution_id)
        await service.executions.pause(execution_id)
        await service.executions.answer(execution_id, request_id, "yes")
        await service.executions.resume(execution_id)
        assert await wait_for_end(service, execution_id) == "execution.completed"
        started = [
            e.path
            for e in await service.executions.events(execution_id)
            if e.type == "node.started"
        ]
        assert started == ["n", "n[k]/q"]


async def test_nested_request_of_paused_execution_expires_before_resume(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, INSIDE, Asks(timeout_s=600), Nests()) as service:
        execution_id = await executed(service)
        request_id = await wait_for_request(service, execution_id)
        await service.executions.pause(execution_id)
    async with opened(tmp_path, INSIDE, Asks(), Nests(), now=in_an_hour) as service:
        await service.recover()  # nothing runs, and its time is over
        async with asyncio.timeout(30):
            answered = await reached(service, execution_id, lambda e: e.type == "node.answered")
        assert (answered.path, answered.data["by"]) == ("n[k]/q", "timeout")
        with pytest.raises(Gone):
            await service.executions.answer(execution_id, request_id, "yes")
        assert (await service.executions.get(execution_id)).status == "paused"
        await service.executions.resume(execution_id)
        assert await wait_for_end(service, execution_id) == "execution.completed"


# -- what is left


async def test_broken_execution_continues_with_the_next_command(tmp_path: Path) -> None:
    counts = Counts()
    graph = make_graph(*BESIDE.nodes, text_node("c"), edges=[("b", "c")])
    async with opened(tmp_path, graph, Asks(), counts) as service:
        execution_id = await executed(service)
        request_id = await wait_for_request(service, execution_id)
        await counts.started.wait()
        keep = service._store.append

        async def refuse(*_: object) -> None:
            raise StoreError("it cannot be kept")

        service._store.append = refuse  # type: ignore[method-assign]
        counts.held.set()
        with pytest.raises(StoreError):
            await service.executions.wait(execution_id)
        service._store.append = keep  # type: ignore[method-assign]
        await service.executions.answer(execution_id, request_id, "yes")
        assert await wait_for_end(service, execution_id) == "execution.completed"


async def test_queued_commands_do_not_count_as_failed_recoveries(tmp_path: Path) -> None:
    counts = Counts()
    async with opened(tmp_path, WORK, counts) as service:
        ids = [await executed(service) for _ in range(2)]
        for each in ids:
            await reached(service, each, lambda e: e.type == "node.started" and e.path == "b")
    counts.started.clear()
    few = Limits(concurrent_executions=1, recoveries=1, recoveries_per_s=1000)
    async with opened(tmp_path, WORK, counts, limits=few) as service:
        await service.recover()
        await counts.started.wait()
        while service.load.queued < 1:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
        for _ in range(4):
            with suppress(Conflict):
                await service.executions.resume(ids[1])
        counts.held.set()
        assert [await wait_for_end(service, each) for each in ids] == ["execution.completed"] * 2


async def test_recovery_continues_when_disk_has_room_again(tmp_path: Path) -> None:
    counts = Counts()
    async with opened(tmp_path, WORK, counts) as service:
        execution_id = await executed(service)
        await counts.started.wait()
    counts.held.set()
    async with opened(tmp_path, WORK, counts) as service:
        claim, refused = service._store.claim, list[str]()

        async def refuse(own: str, **more: Any) -> int:
            if len(refused) < 2:
                refused.append(own)
                raise StoreError("the disk is full", code=DISK_FULL)
            return await claim(own, **more)

        service._store.claim = refuse  # type: ignore[method-assign]
        await service.recover()
        assert await wait_for_end(service, execution_id) == "execution.completed"
        assert refused == [execution_id] * 2


async def test_preset_inputs_do_not_count_as_state_after_restart(
    tmp_path: Path,
) -> None:
    graph = make_graph(
        Node("s", "start", "S"), Node("b", "counts", "B", data={"hold": True}), edges=[("s", "b")]
    )
    counts = Counts()
    async with opened(tmp_path, graph, counts) as service:
        plan = await service.plans.create("do it")
        created = await service.executions.execute(
            plan.plan_id,
            inputs={"s": {"output": "x" * 5000}},
            options=RunOptions(max_state_bytes=1000),
        )
        await counts.started.wait()
    counts.held.set()
    async with opened(tmp_path, graph, counts) as service:
        await service.recover()
        assert await wait_for_end(service, created.execution_id) == "execution.completed"


# -- what somebody else has written


def changed(directory: Path, kind: str, change: Callable[[list[Any]], Any]) -> None:
    """Change what is stored of all events of a type: ``[at, type, data, path, attempt]``."""
    with closing(sqlite3.connect(directory / "planwave.db")) as database:
        for row, text in database.execute("SELECT rowid, events FROM batches").fetchall():
            events = json.loads(text)
            for event in events:
                if event[1] == kind:
                    change(event)
            database.execute(
                "UPDATE batches SET events = ? WHERE rowid = ?", (json.dumps(events), row)
            )
        database.commit()


@pytest.mark.parametrize(
    ("kind", "change", "is_seen"),
    [
        ("node.started", lambda e: e.__setitem__(3, "nobody"), True),
        ("node.started", lambda e: e.clear(), False),
        ("node.started", lambda e: e.__setitem__(2, None), False),
        ("node.completed", lambda e: e[2].update(outputs=[1]), False),
        ("node.waiting", lambda e: e[2].clear(), False),
        ("node.waiting", lambda e: e[2].update(timeout_s="soon"), False),
        ("execution.started", lambda e: e.__setitem__(0, "yesterday"), True),
        ("execution.created", lambda e: e[2].update(graph=3), False),
        ("execution.created", lambda e: e[2].update(options={"nobody": 1}), True),
        ("execution.created", lambda e: e[2].update(parent=3), False),
    ],
)
async def test_unreadable_execution_is_set_aside_and_others_continue(
    tmp_path: Path, kind: str, change: Callable[[list[Any]], Any], is_seen: bool
) -> None:
    graph = make_graph(Node("a", "counts", "A"), *BESIDE.nodes, edges=[("a", "q"), ("a", "b")])
    async with opened(tmp_path, graph, Asks(), Counts()) as service:
        odd = await executed(service)
        request_id = await wait_for_request(service, odd)
    changed(tmp_path, kind, change)
    counts = Counts()
    counts.held.set()
    async with opened(tmp_path, graph, Asks(), counts) as service:
        await service.recover()
        sound = await executed(service)
        await service.executions.answer(sound, await wait_for_request(service, sound), "yes")
        assert await wait_for_end(service, sound) == "execution.completed"
        if is_seen:
            set_aside = await reached(service, odd, lambda e: e.type == "execution.paused")
            assert set_aside.data["reason"].startswith("set aside: what is stored of")
        else:
            with pytest.raises(Conflict, match=r"what is stored of .* cannot be read"):
                await service.executions.events(odd)
            assert (await service.executions.get(odd)).status == "paused"
        for ask in (
            service.executions.answer(odd, request_id, "yes"),
            service.executions.resume(odd),
            service.executions.cancel(odd, node="b"),
            service.executions.document(odd),
            service.executions.explain(odd, "q"),
        ):
            with suppress(PlanwaveError):
                await ask
        # However little can be read of it: that is the way out.
        assert (await service.executions.cancel(odd)).status == "cancelled"
        with pytest.raises(Conflict, match="already cancelled"):
            await service.executions.cancel(odd)
        await service.maintenance.delete_execution(odd)
        assert odd not in {each.execution_id for each in await service.executions.list()}


def without_events(directory: Path) -> None:
    """Lose all events."""
    with closing(sqlite3.connect(directory / "planwave.db")) as database:
        database.execute("DELETE FROM batches")
        database.commit()


def without_large_results(directory: Path) -> None:
    """Lose what is kept in files of its own."""
    (large,) = (directory / "artifacts").iterdir()
    large.unlink()


@pytest.mark.parametrize("lose", [without_events, without_large_results])
async def test_execution_with_lost_data_can_be_cancelled_and_deleted(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    graph = make_graph(Node("s", "start", "S"), Node("q", "asks", "Q"), edges=[("s", "q")])
    async with opened(tmp_path, graph, Asks()) as service:
        plan = await service.plans.create("do it")
        large = {"s": {"output": "x" * 1_100_000}}
        odd = (await service.executions.execute(plan.plan_id, inputs=large)).execution_id
        await wait_for_request(service, odd)
    lose(tmp_path)
    async with opened(tmp_path, graph, Asks()) as service:
        await service.recover()

        async def cancel() -> str:
            try:
                return (await service.executions.cancel(odd)).status
            except Conflict:
                return "refused"

        async with asyncio.TaskGroup() as tasks:
            requested = [tasks.create_task(cancel()) for _ in range(4)]
        assert sorted(each.result() for each in requested) == ["cancelled", *["refused"] * 3]
        await service.maintenance.delete_execution(odd)
        assert await service.executions.list() == []


async def test_unreadable_parent_is_not_reused(tmp_path: Path) -> None:
    graph = make_graph(Node("a", "counts", "A"), text_node("t", "{{ input }}"), edges=[("a", "t")])
    counts = Counts()
    async with opened(tmp_path, graph, counts) as service:
        first = await executed(service)
        await service.executions.wait(first)
        fork = (await service.executions.fork(first, start=False)).execution_id
        changed(tmp_path, "node.completed", lambda e: e.__setitem__(3, "nobody"))
        await service.executions.start(fork)
        assert await wait_for_end(service, fork) == "execution.completed"
        assert counts.runs == {"a": 2}


async def test_temporarily_unreadable_parent_fails_the_fork(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = Counts()
    async with opened(tmp_path, WORK, counts) as service:
        counts.held.set()
        first = await executed(service)
        await service.executions.wait(first)
        done = dict(counts.runs)
        fork = (await service.executions.fork(first, start=False)).execution_id
        read = service._store.events

        async def refused(execution_id: str, **more: Any) -> Any:
            if execution_id == first:
                raise StoreError("it cannot be read", code="store-unreadable")
            return await read(execution_id, **more)

        with monkeypatch.context() as broken:
            broken.setattr(service._store, "events", refused)
            await service.executions.start(fork)
            assert await wait_for_end(service, fork) == "execution.failed"
        again = (await service.executions.retry(fork)).execution_id
        assert await wait_for_end(service, again) == "execution.completed"
        assert counts.runs == done


async def test_request_of_ended_execution_does_not_expire(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asks = Asks(timeout_s=0.05)
    received: list[str] = []
    async with Service(
        dependencies(make_graph(Node("q", asks.node_type, "Q")), types=[asks])
    ) as service:
        tell = service.executions.send_command

        async def refused_once(execution_id: str, ask: Any) -> Any:
            received.append(execution_id)
            if len(received) == 1:
                raise StoreError("busy", code="store-busy")
            return await tell(execution_id, ask)

        monkeypatch.setattr(service.executions, "send_command", refused_once)
        execution_id = (await execute_goal(service, "x")).execution_id
        await until(lambda: received == [execution_id])
        await service.executions.cancel(execution_id)
        await asyncio.sleep(2 * FIRST_WAIT_S)
    assert received == [execution_id], "it is over: there is nothing to run out"
    assert "cannot run out" not in caplog.text
