import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from planwave.cli.app import app
from planwave.cli.formatting import local_time, local_times
from planwave.events import Event
from planwave.executor.options import RunOptions
from planwave.graph.plan import title_of_steps
from planwave.service.executions.run_spec import RunSpec, new_execution
from planwave.service.queries.history import ExecutionQueries, History
from planwave.shapes.executions import WaitsForResponse
from planwave.storage.records import ExecutionRecord, PlanRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.cli.fake_factories import fake_factories
from tests.support.graph.builders import make_graph, make_plan, text_node

ID, PLAN = "01911111-0000-7000-8000-000000000001", "01900000-0000-7000-8000-0000000000aa"
OTHER = "01911111-0000-7000-8000-000000000002"
AT = "2026-01-01T00:00:00+00:00"
GRAPH = make_graph(text_node("a", name="First"), text_node("b"), edges=[("a", "b")])


def event(seq: int, event_type: str, path: str | None = None, **data: Any) -> Event:
    return Event(
        ID, seq, f"2026-01-01T00:00:0{seq}+00:00", event_type, path, 1 if path else None, data
    )


def filled_store() -> MemoryStore:
    async def fill() -> MemoryStore:
        store = MemoryStore()
        plan = make_plan(GRAPH, PLAN).as_json()
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
            event(
                6,
                "node.failed",
                "b",
                error={"code": "boom", "message": "no"},
                handled=False,
                duration_s=0.5,
            ),
            event(
                7, "execution.failed", error={"code": "boom", "message": "b failed"}, failures=["b"]
            ),
        ]
        await store.append(ID, 1, story)
        return store

    return asyncio.run(fill())


def planwave(*args: str) -> Result:
    store = filled_store()
    obj = fake_factories(history=lambda _: History(store, None))
    return CliRunner().invoke(app, list(args), obj=obj)


def test_ls_shows_executions_and_plans() -> None:
    lines = planwave("ls").stdout.splitlines()
    assert lines[0].startswith(ID)
    assert "✗ failed" in lines[0]
    assert "5.0 s  A run" in lines[0]
    assert lines[-1].startswith(PLAN)
    assert lines[0].index("5.0 s") + len("5.0 s") == lines[-1].index("2 steps") + len("2 steps")
    assert "2 steps  A plan" in lines[-1]


def test_execution_without_title_and_goal_is_listed_and_shown_by_its_steps() -> None:
    store = filled_store()
    spec = RunSpec(graph=GRAPH, inputs={}, options=RunOptions())
    record, created = new_execution(spec, 2, ID[:-1] + "2", AT)
    asyncio.run(store.create_execution(record, [created]))
    obj = fake_factories(history=lambda _: History(store, None))
    listed, shown = (
        CliRunner().invoke(app, args, obj=obj).stdout
        for args in (["ls"], ["show", record.execution_id])
    )
    title = title_of_steps(GRAPH)
    assert listed.splitlines()[0].endswith(title)
    assert shown.startswith(f"{title}\n")


def test_times_that_would_be_equal_have_seconds() -> None:
    later, next_hour = "2026-01-01T00:00:40+00:00", "2026-01-01T01:00:00+00:00"
    assert local_times([AT, next_hour]) == [local_time(AT), local_time(next_hour)]
    same = local_times([AT, later])
    assert [text.rpartition(":")[2] for text in same] == ["00", "40"]
    assert local_times([]) == []


def test_ls_json_has_executions_and_plans() -> None:
    listed = json.loads(planwave("ls", "--json").stdout)
    assert [each["status"] for each in listed["executions"]] == ["failed"]
    assert [each["plan_id"] for each in listed["plans"]] == [PLAN]


def test_ls_filters_by_status() -> None:
    assert ID in planwave("ls", "--status", "failed").stdout
    done = planwave("ls", "--status", "paused")
    assert done.stdout == "No paused execution in storage.\n"


def test_ls_rejects_unknown_status() -> None:
    done = planwave("ls", "--status", "bogus")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "'bogus' is not one of 'starting', 'executing'" in done.stderr


def test_ls_mentions_older_items_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = filled_store()
    record = ExecutionRecord(ID[:-1] + "2", None, "Another", "a goal", "starting", AT)
    created = event(1, "execution.created")._replace(execution_id=record.execution_id)
    asyncio.run(store.create_execution(record, [created]))
    obj = fake_factories(history=lambda _: History(store, None))

    def listed(*args: str) -> str:
        return CliRunner().invoke(app, ["ls", "--storage", "a b", *args], obj=obj).stdout

    assert "older" not in listed("-n", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "More: planwave ls --limit 10 --storage 'a b'\n" in listed("-n", "1")
    assert "older" not in listed("-n", "2")


def test_show_has_steps_failures_and_next_command() -> None:
    shown = planwave("show", "last").stdout
    assert "Goal      a goal" in shown
    assert "✓ completed         1.0 s  a  First" in shown
    assert "✗ failed            0.5 s  b  no" in shown
    assert f"planwave show {ID} --node a\n" in shown


def test_suggested_commands_keep_the_storage_option() -> None:
    shown = planwave("show", "last", "--storage", "else where").stdout
    assert f"planwave show {ID} --node a --storage 'else where'\n" in shown


def test_show_node_prints_result_or_error() -> None:
    for name in ("a", "First"):
        assert planwave("show", "last", "--node", name).stdout == "# hello\n"
    assert planwave("show", "last", "--node", "b").stdout == "✗ b: no\n"
    assert json.loads(planwave("show", "last", "--node", "a", "--json").stdout)["id"] == "a"


def test_show_unknown_node_lists_the_nodes() -> None:
    done = planwave("show", "last", "--node", "zz")
    assert done.exit_code == 2
    assert "its steps are a, b" in done.stderr


def test_show_ambiguous_node_name_lists_ids() -> None:
    def node(node_id: str, name: str, path: str, result: str | None) -> dict[str, Any]:
        return {"id": node_id, "name": name, "path": path, "status": "completed", "result": result}

    document = {
        "nodes": [
            node("a", "Twin", "a", "first"),
            node("b", "Twin", "b", ""),
            node("x", "X", "loop[1]/x", "one"),
            node("x", "X", "loop[2]/x", "two"),
        ]
    }

    class Told(ExecutionQueries):
        async def document(self, execution_id: str) -> dict[str, Any]:
            return document

    history = History(store := filled_store(), None)
    history.executions = Told(store, None)
    obj = fake_factories(history=lambda _: history)

    def shown(name: str) -> Result:
        return CliRunner().invoke(app, ["show", "last", "--node", name], obj=obj)

    assert shown("a").stdout == "first\n"
    assert shown("b").stdout == "\n"
    assert shown("loop[2]/x").stdout == "two\n"
    for name, which in (("Twin", "a, b"), ("x", "loop[1]/x, loop[2]/x")):
        done = shown(name)
        assert (done.exit_code, done.stdout) == (2, "")
        assert f"2 steps of this execution are called '{name}'" in done.stderr
        assert f"write which: {which}" in done.stderr


def test_show_node_of_plan_is_rejected() -> None:
    done = planwave("show", PLAN, "--node", "a")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "is a plan: its steps have no results yet" in done.stderr


def test_show_json_prints_only_the_document() -> None:
    done = planwave("show", "last", "--json")
    assert json.loads(done.stdout)["execution_id"] == ID
    assert done.stderr == ""


def test_show_plan_escapes_control_characters() -> None:
    done = planwave("show", PLAN[:13])
    assert done.exit_code == 0, done.output
    assert "Goal      a [2Jgoal" in done.stdout
    assert done.stdout.startswith("A plan\n")
    assert ", draft\n" in done.stdout
    assert "Wave 2" in done.stdout
    assert json.loads(planwave("show", PLAN, "--json").stdout)["status"] == "draft"


class WaitingStore(MemoryStore):
    """A store of several processes, none of which can do what an execution needs."""

    async def waits_for(self, execution_ids: Sequence[str]) -> dict[str, WaitsForResponse]:
        return {each: {"capability": "local", "processes": 0} for each in execution_ids}


def test_ls_and_show_say_what_an_execution_waits_for() -> None:
    async def fill() -> WaitingStore:
        store = WaitingStore()
        for own, needs in ((ID, "local"), (OTHER, None)):
            record = ExecutionRecord(
                own, None, "A run", "goal", "starting", AT, queued=True, needs=needs
            )
            created = {"goal": "goal", "title": "A run", "graph": GRAPH.to_document()}
            await store.create_execution(
                record, [Event(own, 1, AT, "execution.created", None, None, created)]
            )
        return store

    store = asyncio.run(fill())
    obj = fake_factories(history=lambda _: History(store, None))

    def stdout(*args: str) -> str:
        return CliRunner().invoke(app, list(args), obj=obj).stdout

    words = "waits for a worker that has a local model; there is none now"
    (line,) = [each for each in stdout("ls").splitlines() if words in each]
    assert line.startswith(ID)
    shown = {
        each["execution_id"]: each for each in json.loads(stdout("ls", "--json"))["executions"]
    }
    assert shown[ID]["waits_for"] == {"capability": "local", "processes": 0}
    assert "waits_for" not in shown[OTHER]
    assert words in stdout("show", ID)
    assert words not in stdout("show", OTHER)
    assert json.loads(stdout("show", ID, "--json"))["waits_for"]["capability"] == "local"
