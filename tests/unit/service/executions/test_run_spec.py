"""What an execution is to run: its first event says all of it, whoever makes it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import planwave
from planwave.executor.options import RunOptions
from planwave.principals import LIBRARY
from planwave.service.executions.run_spec import RunSpec, new_execution, run_spec_from_events
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.graph.builders import make_graph, text_node

AT = "2026-01-01T00:00:00.000000+00:00"
GRAPH = make_graph(text_node("a", "one"))
VALUES: dict[str, Any] = {
    "graph": GRAPH,
    "inputs": {"a": {"output": "x"}},
    "options": RunOptions(max_parallel=3),
    "goal": "a goal",
    "goal_template": "a {{ what }}",
    "title": "A title",
    "plan_id": "p1",
    "revision": 4,
    "plan_hash": "h",
    "flow": "Note",
    "trigger": {},
    "parent": {"execution_id": "x0", "rerun": ["a"]},
    "approval": {"plan_hash": "h"},
    "policies": {"a": {"timeoutS": 5}},
    "supersedes": {"execution_id": "x0", "request_id": "r3"},
    "written_by": "model",
    "model_plan_id": "p0",
    "flows": ["p1"],
    "trace_context": {"traceparent": "00-1-2-01"},
    "trace_id": "0af7651916cd43dd8448eb211c80319c",
    "wave_floors": {},
}


def test_the_first_event_says_all_that_an_execution_is_to_run() -> None:
    assert [each.name for each in fields(RunSpec)] == list(VALUES), "add a value for the new field"
    spec = RunSpec(**VALUES)
    record, created = new_execution(spec, 1, "x1", AT)
    assert run_spec_from_events("x1", [created], None) == spec
    assert (record.title, record.user_prompt, record.parent_id) == ("A title", "a goal", "x0")
    assert (record.plan_id, record.revision, record.flow) == ("p1", 4, "Note")


def test_what_is_not_there_is_not_said() -> None:
    spec = RunSpec(graph=GRAPH, inputs={}, options=RunOptions(), title="a")
    _, created = new_execution(spec, 1, "x1", AT)
    assert run_spec_from_events("x1", [created], None) == spec
    assert list(created.data) == ["goal", "title", "graph", "options", "waves", "created_by"]


async def test_a_program_records_an_execution_as_a_service_does() -> None:
    store = MemoryStore()
    graph = planwave.build(
        {"nodes": [{"id": "t", "type": "text", "data": {"text": "hi"}}], "edges": []}
    )
    first = await planwave.run(graph, store=store, goal="greet")
    second = await first.run.fork(rerun=["t"])
    record = await store.execution(second.execution_id)
    assert record is not None
    assert (record.user_prompt, record.created_by) == ("greet", LIBRARY)
    assert record.parent_id == first.execution_id
