import asyncio
import json
from typing import Any

from typer.testing import CliRunner, Result

from planwave.cli.app import app
from planwave.events import Event
from planwave.service.history import History
from planwave.storage.memory import MemoryStore
from planwave.storage.records import ExecutionRecord, PlanRecord
from tests.fakes.composition import composed
from tests.fakes.service import graph_of, plan_with, text_node

ID, PLAN = "01911111-0000-7000-8000-000000000001", "01900000-0000-7000-8000-0000000000aa"
AT = "2026-01-01T00:00:00+00:00"
GRAPH = graph_of(text_node("a", name="First"), text_node("b"), edges=[("a", "b")])


def event(seq: int, event_type: str, path: str | None = None, **data: Any) -> Event:
    return Event(
        ID, seq, f"2026-01-01T00:00:0{seq}+00:00", event_type, path, 1 if path else None, data
    )


def kept() -> MemoryStore:
    async def fill() -> MemoryStore:
        store = MemoryStore()
        plan = plan_with(GRAPH, PLAN).as_json()
        await store.save_plan(PlanRecord(PLAN, AT, "a \x1b[2Jgoal", "A plan", "h", plan))
        record = ExecutionRecord(ID, None, "A run", "a goal", "starting", AT)
        created = event(
            1, "execution.created", goal="a goal", title="A run", graph=GRAPH.to_document()
        )
        await store.create_execution(record, [created])
        outputs = {"output": {"type": "text", "value": "# hello"}}
        story = [
            event(2, "execution.started", waves=2),
            event(3, "node.started", "a", wave=1),
            event(4, "node.completed", "a", outputs=outputs, duration_s=1.0),
            event(5, "node.started", "b", wave=2),
            event(6, "node.failed", "b", error={"message": "no"}, handled=False, duration_s=0.5),
            event(7, "execution.failed", error={"message": "b failed"}, failures=["b"]),
        ]
        await store.append(ID, 1, story)
        return store

    return asyncio.run(fill())


def planwave(*args: str) -> Result:
    store = kept()
    obj = composed(history=lambda _: History(store, None))
    return CliRunner().invoke(app, list(args), obj=obj)


def test_a_list_has_executions_with_status_and_time_and_plans_that_did_not_run() -> None:
    lines = planwave("ls").stdout.splitlines()
    assert lines[0].startswith(ID)
    assert "✗ failed" in lines[0]
    assert "5.0 s  A run" in lines[0]
    assert lines[-1].startswith(PLAN)
    assert "2 steps  A plan" in lines[-1]


def test_a_list_as_json_has_the_same() -> None:
    listed = json.loads(planwave("ls", "--json").stdout)
    assert [each["status"] for each in listed["executions"]] == ["failed"]
    assert [each["plan_id"] for each in listed["plans"]] == [PLAN]


def test_a_list_can_be_narrowed_and_says_so_when_nothing_is_left() -> None:
    assert ID in planwave("ls", "--status", "failed").stdout
    assert "No paused execution" in planwave("ls", "--status", "paused").stdout


def test_an_execution_shows_its_steps_failures_and_how_to_read_one() -> None:
    shown = planwave("show", "last").stdout
    assert "Goal      a goal" in shown
    assert "✓ completed          1.0 s  First" in shown
    assert "✗ failed             0.5 s  b  no" in shown
    assert f"planwave show {ID} --node a" in shown


def test_one_step_shows_its_text_or_why_there_is_none() -> None:
    for name in ("a", "First"):
        assert planwave("show", "last", "--node", name).stdout == "# hello\n"
    assert planwave("show", "last", "--node", "b").stdout == "b is failed: no\n"
    assert json.loads(planwave("show", "last", "--node", "a", "--json").stdout)["id"] == "a"


def test_an_unknown_step_is_refused_naming_the_steps() -> None:
    done = planwave("show", "last", "--node", "zz")
    assert done.exit_code == 2
    assert "its steps are a, b" in done.stderr


def test_a_plan_is_shown_with_its_goal_made_safe() -> None:
    done = planwave("show", PLAN[:13])
    assert done.exit_code == 0, done.output
    assert "Goal      a [2Jgoal" in done.stdout
    assert "Wave 2" in done.stdout
    assert json.loads(planwave("show", PLAN, "--json").stdout)["status"] == "draft"
