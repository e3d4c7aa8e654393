"""Runs used wrongly or from other threads: refused with the way out, and never left hanging."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import planwave
from planwave.errors import StoreError
from planwave.nodes.library import LIBRARY

FLOW = {"channel": "flow"}
TEXT = {"nodes": [{"id": "t", "type": "text", "data": {"text": "hi"}}], "edges": []}
APPROVAL: dict[str, Any] = {
    "nodes": [
        {"id": "s", "type": "start"},
        {"id": "ask", "type": "approval", "data": {"prompt": "Send?", "actions": ["send"]}},
    ],
    "edges": [{"source": "s", "target": "ask", "data": FLOW}],
}


def one_node(registry: planwave.Registry, node_type: str) -> planwave.BuiltGraph:
    graph = {
        "nodes": [{"id": "s", "type": "start"}, {"id": "a", "type": node_type}],
        "edges": [{"source": "s", "target": "a", "data": FLOW}],
    }
    return planwave.build(graph, "x", registry=registry)


@pytest.fixture
def registry() -> planwave.Registry:
    return planwave.Registry(LIBRARY)


async def test_a_sync_function_that_raises_stop_iteration_fails_its_node(
    registry: planwave.Registry,
) -> None:
    @planwave.node("first", registry=registry)
    def first(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        return next(iter(()))

    async with asyncio.timeout(5):
        result = await planwave.run(one_node(registry, "first"), check=False)
    assert [each.message for each in result.failures] == [
        "RuntimeError: function raised StopIteration"
    ]


def test_a_run_that_blocks_a_thread_is_cancelled_from_another(registry: planwave.Registry) -> None:
    started = threading.Event()

    @planwave.node("forever", registry=registry)
    async def forever(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        started.set()
        await asyncio.sleep(20)
        return input

    run = planwave.run(one_node(registry, "forever"))

    def cancel() -> None:
        started.wait(5)
        run.cancel()

    other = threading.Thread(target=cancel)
    other.start()
    assert run.wait().status == "cancelled"
    other.join()


async def test_a_waiting_run_is_answered_from_another_thread() -> None:
    run = planwave.run(planwave.build(APPROVAL, "Dear Ann"))
    async for event in run:
        if event.type == "node.waiting":
            request_id = event.data["request_id"]
            await asyncio.to_thread(run.answer, request_id, {"decision": "send"})
    assert (await run).status == "completed"


@pytest.mark.parametrize("store", [5, b"runs", ["runs"]])
def test_a_store_of_another_type_is_refused_before_anything_runs(store: Any) -> None:
    with pytest.raises(TypeError, match="must be the path of a directory or a store, not"):
        planwave.run(TEXT, store=store)
    with pytest.raises(TypeError, match="must be the path of a directory or a store, not"):
        planwave.open(store, "x")


def test_an_empty_path_is_no_store() -> None:
    with pytest.raises(ValueError, match="the store is an empty path"):
        planwave.run(TEXT, store="")


def test_opening_an_execution_creates_no_directory(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no directory"):
        planwave.open(tmp_path / "typo", "x")
    assert not (tmp_path / "typo").exists()


async def test_a_directory_that_this_process_has_open_says_how_to_share_it(tmp_path: Path) -> None:
    store = planwave.SqliteStore.open(tmp_path)
    try:
        with pytest.raises(StoreError) as refused:
            await planwave.run(TEXT, store=tmp_path)
        assert "open it once and pass that to each" in (refused.value.hint or "")
        assert (await planwave.run(TEXT, store=store)).text == "hi"
    finally:
        await store.close()


def test_options_and_rerun_of_another_type_are_refused() -> None:
    options: Any = {"scheduling": "waves"}
    with pytest.raises(TypeError, match=r"options must be planwave\.RunOptions"):
        planwave.run(TEXT, options=options)
    with pytest.raises(TypeError, match=r"write rerun=\['t'\]"):
        planwave.run_sync(TEXT).run.fork(rerun="t")


@pytest.mark.parametrize("arguments", [{"options": {"scheduling": "waves"}}, {"store": 5}])
def test_arguments_of_another_type_are_refused_before_a_goal_is_planned(
    arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def plan(*_: Any, **__: Any) -> planwave.Plan:
        raise AssertionError("planned")

    monkeypatch.setattr("planwave.library.plan_async", plan)
    with pytest.raises(TypeError, match="must be"):
        planwave.run_goal("Write a poem", **arguments)


def test_a_run_is_shown_by_its_id() -> None:
    run = planwave.run(TEXT)
    assert repr(run) == f"<Run {run.execution_id}>"
    assert "not loaded yet" in repr(run.retry())


def test_a_node_event_needs_no_run_id_and_no_data() -> None:
    event = planwave.NodeEvent("a", "text", "note")
    assert (event.run_id, event.data) == ("", None)
