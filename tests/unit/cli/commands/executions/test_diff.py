from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from planwave.cli.app import app
from planwave.cli.commands.executions.diff import show_difference
from planwave.cli.console import CommandConsole
from planwave.events import Event
from planwave.service.queries.history import History
from planwave.storage.records import ExecutionRecord, PlanRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.cli.fake_factories import fake_factories
from tests.support.graph.builders import make_graph, make_plan, text_node

A, B = (f"0191111{n}-0000-7000-8000-000000000001" for n in (1, 2))
PLAN = "01900000-0000-7000-8000-0000000000aa"
AT = "2026-01-01T00:00:00+00:00"
GRAPH = make_graph(text_node("t"), text_node("n"), text_node("v"))
USED = {"provider": "p", "model": "m", "input_tokens": 1200, "output_tokens": 5, "cost_usd": 0.5}


def story(execution_id: str, said: str, value: Any, ends: bool) -> list[Event]:
    """What happened: ``n`` is skipped or gives a number; only a finished one paid for something."""
    gave = {"output": {"type": "text", "value": said}}
    number = {"output": {"type": "json", "value": value}}
    events: list[tuple[str, str | None, dict[str, Any]]] = [
        ("execution.created", None, {"graph": GRAPH.to_document()}),
        ("execution.started", None, {"waves": 1}),
        ("node.completed", "t", {"outputs": gave, "duration_s": 1.5}),
        ("node.completed", "v", {"outputs": number, "duration_s": 1.0}),
    ]
    if ends:
        events += [
            ("usage", "n", USED),
            ("node.completed", "n", {"outputs": {}, "duration_s": 1.0}),
            ("execution.completed", None, {}),
        ]
    else:
        error = {"code": "boom", "message": "it \x1b[2Jbroke"}
        failed = {"error": error, "handled": False, "duration_s": 2.0}
        events.append(("node.failed", "n", failed))
    return [
        Event(execution_id, seq, f"2026-01-01T00:00:{seq:02}+00:00", kind, path, None, data)
        for seq, (kind, path, data) in enumerate(events, 1)
    ]


def filled_store() -> MemoryStore:
    async def fill() -> MemoryStore:
        store = MemoryStore()
        plan = make_plan(GRAPH, PLAN).as_json()
        await store.save_plan(PlanRecord(PLAN, AT, "a goal", "A plan", "h", plan))
        stories = (
            story(A, "same\nold \x1b[2Jwords", [1], ends=True),
            story(B, "same\nnew words", ["x" * 500], ends=False),
        )
        for events in stories:
            record = ExecutionRecord(events[0].execution_id, None, "T", "g", "starting", AT)
            await store.create_execution(record, events[:1])
            await store.append(record.execution_id, 1, events[1:])
        return store

    return asyncio.run(fill())


def planwave(*args: str) -> Result:
    store = filled_store()
    return CliRunner().invoke(
        app, list(args), obj=fake_factories(history=lambda _: History(store, None))
    )


def test_diff_shows_executions_side_by_side() -> None:
    done = planwave("diff", A, B)
    assert done.exit_code == 0, done.output
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert [line.split() for line in lines[:6]] == [
        ["A", "B"],
        ["Execution", A, B],
        ["Status", "✓", "completed", "●", "executing"],
        ["Time", "5.0", "s", "-"],
        ["Tokens", "1,200", "in,", "5", "out", "0", "in,", "0", "out"],
        ["Cost", "$0.50", "$0"],
    ]
    assert lines[7:] == [
        "0 steps the same, 3 differ",
        "",
        "t  ✓ completed  1.5 s  tokens 0 in, 0 out",
        "  @@ -1,2 +1,2 @@",
        "   same",
        "  -old [2Jwords",
        "  +new words",
        "",
        "n  ✓ completed → ✗ failed  1.0 s → 2.0 s  tokens 1,200 in, 5 out → 0 in, 0 out",
        "  + it [2Jbroke",
        "",
        "v  ✓ completed  1.0 s  tokens 0 in, 0 out",
        "  - output: [ 1 ]",
        lines[-1],
    ]
    assert lines[-1].startswith('  + output: ["xxx')
    assert len(lines[-1]) < 300


def test_diff_json_is_the_difference() -> None:
    received = json.loads(planwave("diff", A[:8], "last", "--json").stdout)
    assert {received["a"], received["b"]} <= {A, B}
    assert received["a"] == A


def test_an_execution_is_not_compared_with_itself() -> None:
    for names in ((A, A), (A, A[:8])):
        done = planwave("diff", *names)
        assert (done.exit_code, "are one execution" in done.output) == (2, True), done.output


def test_diff_rejects_other_ids() -> None:
    for names in ((A, "nothing"), (A, PLAN), (A,)):
        assert planwave("diff", *names).exit_code == 2


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_diff_shows_nodes_of_one_side_and_omitted_nodes(encoding: str) -> None:
    usage = {"calls": 1, "input_tokens": 1, "output_tokens": 0, "cost_usd": None}
    received: dict[str, Any] = {
        "a": A,
        "b": B,
        "status": ["failed", "failed"],
        "duration_s": [1.0, None],
        "usage": [usage, usage],
        "counts": {"same": 1, "changed": 0, "only_a": 201, "only_b": 0},
        "nodes": [
            {
                "path": "x",
                "change": "only_a",
                "status": ["pending", None],
                "duration_s": [None, None],
                "usage": [usage, None],
                "written": ["data.text", "type"],
            }
        ],
        "left_off": 200,
    }
    console = CommandConsole()
    with open("/dev/null", "w", encoding=encoding) as nowhere:
        console.out = Console(file=nowhere, width=100, record=True)
        show_difference(console, received)
        text = console.out.export_text()
    assert "1 step the same, 201 only in A" in text
    assert "price unknown" in text
    assert "changed in the graph: data.text, type" in text
    assert "200 more steps that differ" in text
    assert ("→" in text) is (encoding == "utf-8")
