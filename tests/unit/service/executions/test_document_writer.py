from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from weakref import ref

import pytest

from planwave.events import Event
from planwave.graph.model import Node
from planwave.ids import new_id
from planwave.service.executions import document_writer
from planwave.service.executions.document_writer import DocumentWriter
from planwave.service.service import Service
from planwave.storage.records import ExecutionRecord, PlanRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.graph.builders import make_edge, make_graph, text_node
from tests.support.nodes.held_nodes import HeldNode
from tests.support.polling import until
from tests.support.service.dependencies import dependencies, execute_goal

ASK = Node("ask", "approval", "Ask", data={"prompt": "ok?"})
HELD = Node("h", "held", "H")
GRAPH = make_graph(
    HELD, ASK, text_node("after"),
    edges=[("h", "ask"), make_edge("ask", "after", source_handle="approve")],
)  # fmt: skip


async def written(service: Service, execution_id: str, directory: Path) -> dict[str, Any]:
    """The document of an execution at rest."""
    await service.executions.wait(execution_id)
    path = directory / f"{execution_id}.json"
    return json.loads(await asyncio.to_thread(path.read_bytes))


async def test_document_is_written_at_pauses_and_at_the_end(tmp_path: Path) -> None:
    held = HeldNode()
    async with Service(dependencies(GRAPH, types=[held], directory=tmp_path)) as service:
        execution_id = (await execute_goal(service)).execution_id
        await held.started.wait()
        await service.executions.pause(execution_id)
        held.release.set()
        paused = await written(service, execution_id, tmp_path)
        assert (paused["status"], paused["reason"]) == ("paused", "paused by request")

        await service.executions.resume(execution_id)
        asks = await written(service, execution_id, tmp_path)
        assert (asks["status"], asks["waitingForInput"]) == ("paused", True)
        assert (asks["currentNodeId"], asks["last_seq"] > paused["last_seq"]) == ("ask", True)
        (request,) = asks["requests"]
        assert (request["path"], request["request"]["prompt"]) == ("ask", "ok?")

        answer = {"decision": "approve", "note": "fine"}
        await service.executions.answer(execution_id, request["request_id"], answer)
        ended = await written(service, execution_id, tmp_path)
        assert (ended["status"], ended["requests"]) == ("completed", [])
        node = next(each for each in ended["nodes"] if each["id"] == "ask")
        assert [(each["decision"], each["note"]) for each in node["answers"]] == [
            ("approve", "fine")
        ]
        events = await service.executions.events(execution_id)
        assert ended["last_seq"] == len(events)


async def test_answer_during_pause_is_in_the_document(tmp_path: Path) -> None:
    graph = make_graph(ASK, text_node("t"), edges=[make_edge("ask", "t", source_handle="approve")])
    async with Service(dependencies(graph, directory=tmp_path)) as service:
        execution_id = (await execute_goal(service)).execution_id
        (request,) = (await written(service, execution_id, tmp_path))["requests"]
        await service.executions.pause(execution_id)
        assert len((await written(service, execution_id, tmp_path))["requests"]) == 1
        await service.executions.answer(
            execution_id, request["request_id"], {"decision": "approve"}
        )
        shown = await written(service, execution_id, tmp_path)
        assert (shown["status"], shown["reason"]) == ("paused", "paused by request")
        assert (shown["requests"], shown["last_seq"]) == (
            [], len(await service.executions.events(execution_id))
        )  # fmt: skip


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_last_status_update_comes_after_the_document(
    tmp_path: Path, is_cancelled: bool
) -> None:
    held, statuses = HeldNode(), list[str]()
    graph, other = make_graph(ASK if is_cancelled else HELD), make_graph(HELD)
    async with Service(dependencies(graph, types=[held], directory=tmp_path)) as service:
        await service.executions.execute(await service.plans.read(other.to_document()))
        await held.started.wait()  # while another one runs, documents are written late
        execution_id = (await execute_goal(service)).execution_id
        async for update in service.executions.status_updates(execution_id, 0.1):
            statuses.append(json.loads(update)["status"])
            if len(statuses) == 2 and is_cancelled:
                await service.executions.cancel(execution_id)
            elif len(statuses) == 2:
                held.release.set()
        text = await asyncio.to_thread((tmp_path / f"{execution_id}.json").read_text)
        held.release.set()
    assert json.loads(text)["status"] == statuses[-1]
    assert statuses[-1] == ("cancelled" if is_cancelled else "completed")


def names_in(directory: Path) -> list[str]:
    return sorted(path.stem for path in directory.glob("*.json"))


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The ids of the documents that were written together."""
    created: list[list[str]] = []
    write = document_writer.write_documents

    async def noted(directory: Path, texts: dict[str, bytes]) -> dict[str, Exception]:
        created.append(list(texts))
        return await write(directory, texts)

    monkeypatch.setattr(document_writer, "write_documents", noted)
    return created


async def run_to_end(service: Service, plan: str) -> str:
    """An execution that was watched to its end."""
    execution_id = (await service.executions.execute(plan)).execution_id
    async for _ in service.executions.watch(execution_id):
        pass
    return execution_id


async def test_documents_are_written_in_groups_while_others_run(
    tmp_path: Path, groups: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_writer, "_WRITE_INTERVAL_S", 1_000.0)
    held = HeldNode()
    quick, slow = make_graph(text_node("a")), make_graph(HELD)
    async with Service(dependencies(quick, types=[held], directory=tmp_path)) as service:
        plan = (await service.plans.create("do it")).plan_id
        slow_plan = await service.plans.read(slow.to_document())
        running = (await service.executions.execute(slow_plan)).execution_id
        await held.started.wait()
        ids = [await run_to_end(service, plan) for _ in range(4)]
        await until(lambda: service.load.running == 1)
        assert groups == []
        await service.executions.wait(ids[2])
        assert groups == [ids], "who waits for one has what is due written"
        ids += [await run_to_end(service, plan) for _ in range(3)]
        await until(lambda: service.load.running == 1)
        assert len(groups) == 1
        held.release.set()
        await service.executions.wait(running)
        assert set(groups[-1]) == {*ids[4:], running}, "and so does the end of the last one"
    assert names_in(tmp_path) == sorted([*ids, running])


async def ended_in(store: MemoryStore, count: int) -> list[str]:
    """Executions that ended in an earlier process, which wrote no documents."""
    ids = [new_id() for _ in range(count)]
    for each in ids:
        at = "2026-01-01T00:00:00.000000Z"
        kinds = ("execution.created", "execution.started", "execution.completed")
        events = [Event(each, n, at, kind, None, None, {}) for n, kind in enumerate(kinds, 1)]
        await store.create_execution(ExecutionRecord(each, None, "T", "g", "starting", at), events)
    return ids


async def test_scheduled_documents_are_written_on_exit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_writer, "_WRITE_INTERVAL_S", 1_000.0)
    store = MemoryStore()
    ids = await ended_in(store, 3)
    async with DocumentWriter(store, tmp_path) as documents:
        for each in ids:
            documents.schedule(each)
    assert names_in(tmp_path) == sorted(ids)


class _Remains:
    pass


async def test_released_objects_are_freed_with_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_writer, "_WRITE_INTERVAL_S", 1_000.0)
    monkeypatch.setattr(document_writer, "_MAX_RELEASED", 3)
    store = MemoryStore()
    ids = await ended_in(store, 5)
    left: list[ref[_Remains]] = []
    async with DocumentWriter(store, tmp_path) as documents:
        for each in ids:
            remains = _Remains()
            left.append(ref(remains))
            documents.schedule(each, release_after=remains)
        del remains
        documents.schedule(ids[0])
        assert [each() is not None for each in left] == [True, True, True, False, False]
        await documents.wait_written(ids[0])
        await until(lambda: not any(each() for each in left))
        documents.schedule(ids[0], release_after=(last := _Remains()))
        left = [ref(last)]
        del last
        assert left[0]() is not None
    assert left[0]() is None


@pytest.mark.parametrize(("size", "waits"), [(1_000, True), (40_000, False)])
async def test_only_small_graphs_are_held_until_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, waits: bool
) -> None:
    held: list[object] = []
    schedule = DocumentWriter.schedule

    def schedule_and_record(
        documents: DocumentWriter, execution_id: str, release_after: object = None
    ) -> None:
        held.append(release_after)
        schedule(documents, execution_id, release_after)

    monkeypatch.setattr(DocumentWriter, "schedule", schedule_and_record)
    data = {"text": "x" * size}
    graph = make_graph(Node("a", "text", "A", data=data), Node("b", "text", "B", data=data))
    async with Service(dependencies(graph, directory=tmp_path)) as service:
        execution_id = (await execute_goal(service)).execution_id
        assert await written(service, execution_id, tmp_path)
    assert any(each is not None for each in held) is waits


async def test_nothing_is_held_without_directory() -> None:
    async with DocumentWriter(MemoryStore(), None) as documents:
        remains = _Remains()
        left = ref(remains)
        documents.schedule(new_id(), release_after=remains)
        del remains
        assert left() is None


async def test_flush_does_not_affect_later_documents(
    tmp_path: Path, groups: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_writer, "_WRITE_INTERVAL_S", 1_000.0)
    store = MemoryStore()
    ids = await ended_in(store, 3)
    async with DocumentWriter(store, tmp_path) as documents:
        documents.schedule(ids[0])
        documents.flush()
        await until(lambda: groups)
        documents.flush()  # too late for those, and there are no others
        await documents.wait_written(ids[0])
        await until(lambda: documents._writer is None)
        documents.schedule(ids[1])
        for _ in range(20):
            await asyncio.sleep(0)
        documents.schedule(ids[2])
    assert groups == [ids[:1], ids[1:]]


class _SlowToClaim(MemoryStore):
    """Has a caller leave while it keeps an execution, and takes long to claim that."""

    async def create_execution(
        self, record: ExecutionRecord, events: Sequence[Event], plan: PlanRecord | None = None
    ) -> None:
        await super().create_execution(record, events, plan)
        raise asyncio.CancelledError

    async def claim(self, execution_id: str, *, queued: bool | None = None) -> int:
        for _ in range(50):
            await asyncio.sleep(0)
        return await super().claim(execution_id, queued=queued)


async def test_execution_cancelled_at_exit_has_its_document(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    created = dependencies(make_graph(text_node("a")), store=_SlowToClaim(), directory=tmp_path)
    async with Service(created) as service:
        plan = await service.plans.read(make_graph(text_node("a")).to_document())
        with pytest.raises(asyncio.CancelledError):
            await service.executions.execute(plan)
    (name,) = names_in(tmp_path)
    text = await asyncio.to_thread((tmp_path / f"{name}.json").read_bytes)
    assert json.loads(text)["status"] == "cancelled"
    assert caplog.messages == []


async def test_documents_scheduled_after_exit_are_written_at_next_start(tmp_path: Path) -> None:
    store = MemoryStore()
    (execution_id,) = await ended_in(store, 1)
    async with DocumentWriter(store, tmp_path) as documents:
        pass
    documents.schedule(execution_id)
    await documents.wait_written(execution_id)
    assert await store.lagging_documents() == [execution_id]
    async with DocumentWriter(store, tmp_path) as documents:
        await documents.catch_up()
    assert names_in(tmp_path) == [execution_id]


@pytest.mark.parametrize("has_begun", [True, False])
async def test_exit_with_error_does_not_block_waiters(tmp_path: Path, has_begun: bool) -> None:
    store = MemoryStore()
    (execution_id,) = await ended_in(store, 1)
    documents = await DocumentWriter(store, tmp_path).__aenter__()
    documents.schedule(execution_id)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(documents.wait_written(execution_id))
        if has_begun:
            await asyncio.sleep(0)
        await documents.__aexit__(ValueError)
    assert (names_in(tmp_path), await store.lagging_documents()) == ([], [execution_id])


async def test_one_failing_document_does_not_affect_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store, project = MemoryStore(), document_writer.build_document
    ids = await ended_in(store, 20)

    def broken(
        events: list[Event], record: ExecutionRecord, calls: Any, state: Any
    ) -> dict[str, Any]:
        if record.execution_id == ids[3]:
            raise ValueError("odd")
        return project(events, record, calls, state)

    monkeypatch.setattr(document_writer, "build_document", broken)
    async with DocumentWriter(store, tmp_path) as documents:
        await documents.catch_up()
        assert await store.lagging_documents() == [ids[3]]
        (later,) = await ended_in(store, 1)
        documents.schedule(later)
        await documents.wait_written(later)
        await documents.wait_written(ids[3])
        assert caplog.messages == [f"document of {ids[3]} not written: odd"], "and that once"
        monkeypatch.undo()
        await documents.catch_up()
        assert await store.lagging_documents() == []


async def test_failed_group_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    *ids, last = await ended_in(store, 4)

    async def broken(*_: object) -> Any:
        raise RuntimeError("can't start new thread")

    async with DocumentWriter(store, tmp_path) as documents:
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(store, "project_each", broken)
            for each in ids:
                documents.schedule(each)
            await documents.wait_written(ids[0])
        documents.schedule(last)
        await documents.wait_written(last)
        for each in ids:
            await documents.wait_written(each)
        assert await store.lagging_documents() == []


async def test_facts_are_stored_without_a_directory_too() -> None:
    store, spent = MemoryStore(), list[bool]()

    async def on_spent() -> None:
        spent.append(True)

    (own,) = await ended_in(store, 1)
    async with DocumentWriter(store, None) as documents:
        documents.on_spent = on_spent
        documents.schedule(own)
        await documents.wait_written(own)
    record = await store.execution(own)
    assert record is not None
    assert (record.tokens, record.is_behind, spent) == (0, False, [True])
