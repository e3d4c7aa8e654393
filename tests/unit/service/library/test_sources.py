"""Stored executions: listed and looked at, whoever owns their directory."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

import planwave
from tests.support.processes.forked_process import ForkedProcess

TEXT = {"nodes": [{"id": "t", "type": "text", "data": {"text": "{{ goal }}"}}], "edges": []}
ASK = {"nodes": [{"id": "a", "type": "approval", "data": {"prompt": "Go on?"}}], "edges": []}
SLOW = """
import sys, time, planwave

@planwave.node()
def slow(input: str) -> str:
    print("started", flush=True)
    time.sleep(int(sys.argv[2]))
    return input

g = planwave.GraphBuilder()
g.node(slow, input=g.node("start"))
planwave.run_sync(g, "hi", store=sys.argv[1])
"""


@pytest.fixture(params=["directory", "store", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "directory":
        yield tmp_path
    elif request.param == "memory":
        yield planwave.MemoryStore()
    else:
        with planwave.SqliteStore.open(tmp_path) as opened:
            yield opened


def test_executions_are_listed_newest_first_by_status_text_and_number(store: Any) -> None:
    first = planwave.run_sync(TEXT, goal="one", store=store)
    second = planwave.run_sync(ASK, goal="two", store=store)
    listed = planwave.executions(store)
    assert [(each.execution_id, each.title, each.status) for each in listed] == [
        (second.execution_id, "two", "paused"),
        (first.execution_id, "one", "completed"),
    ]
    assert listed[0].completed_at is None
    assert listed[1].completed_at is not None
    for chosen, found in (
        ({"status": "paused"}, "two"),
        ({"status": "completed"}, "one"),
        ({"text": "on"}, "one"),
        ({"limit": 1}, "two"),
    ):
        assert [each.title for each in planwave.executions(store, **chosen)] == [found]
    assert planwave.executions(store, status="interrupted") == []
    assert planwave.executions(store, since="2999-01-01T00:00:00Z") == []
    assert planwave.executions(store, limit=0) == []
    assert len(planwave.executions(store, since="2020-01-01T02:00:00+02:00")) == 2


@pytest.mark.parametrize(
    ("chosen", "error", "message"),
    [
        ({"status": "done"}, ValueError, "status is 'starting', .* or 'interrupted', not 'done'"),
        ({"since": "yesterday"}, planwave.InputError, "'yesterday' is not a time"),
        ({"limit": -1}, TypeError, "limit is a whole number from 0 up, not -1"),
        ({"limit": "3"}, TypeError, "limit is a whole number from 0 up, not '3'"),
    ],
)
def test_an_invalid_filter_is_refused(
    store: Any, chosen: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        planwave.executions(store, **chosen)


async def test_stored_runs_are_looked_at_in_an_event_loop(store: Any) -> None:
    if isinstance(store, planwave.SqliteStore):
        pytest.skip("it was opened without an event loop")
    run = planwave.run(TEXT, goal="one", store=store)
    await run
    assert [each.title for each in planwave.executions(store)] == ["one"]
    assert planwave.open(store, "last").result().text == "one"


def test_a_run_is_looked_at_while_another_owner_writes(tmp_path: Path) -> None:
    paused = planwave.run_sync(ASK, store=tmp_path)
    looked = planwave.open(tmp_path, "last")
    with planwave.SqliteStore.open(tmp_path) as owner:
        assert looked.result().requests == paused.requests
        assert looked.wait().status == "paused"
        answered = planwave.open(owner, "last")
        answered.answer(paused.requests[0].request_id, decision="approve").wait()
        assert looked.result().status == "completed"
        assert [each.status for each in planwave.executions(tmp_path)] == ["completed"]


def test_a_fork_that_has_not_begun_has_a_graph(tmp_path: Path) -> None:
    done = planwave.run_sync(TEXT, goal="one", store=tmp_path)
    fork = done.run.fork(set={"t.text": "two"})
    assert fork.graph.nodes[0].data == {"text": "two"}
    assert fork.wait().execution_id == fork.execution_id
    assert done.run.graph.nodes[0].data == {"text": "{{ goal }}"}


def test_an_execution_whose_process_was_killed_is_interrupted(tmp_path: Path) -> None:
    script, runs = tmp_path / "slow_run.py", tmp_path / "runs"
    script.write_text(SLOW, "utf-8")
    with ForkedProcess(str(script), str(runs), "60", cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        run = planwave.open(runs, "last")
        assert (run.result().status, run.result().interrupted) == ("executing", False)
        assert planwave.executions(runs, status="interrupted") == []
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (run.result().status, run.result().interrupted) == ("executing", True)
    (item,) = planwave.executions(runs, status="interrupted")
    assert (item.status, item.interrupted) == ("executing", True)
    for again in (run.retry(), run.fork(rerun=["slow"])):
        with pytest.raises(planwave.PlanwaveError, match="its process ended") as refused:
            again.wait()
        assert refused.value.code == "execution-interrupted"
    with planwave.SqliteStore.open(runs) as store:  # this process owns it now, and does not run it
        assert planwave.open(store, "last").result().interrupted
        assert planwave.executions(store, status="interrupted")


def test_a_result_without_a_value_says_why() -> None:
    result = planwave.run_sync(ASK)
    for key, message in (
        ("a", "node 'a' has no result: the node is waiting"),
        ("aa", "there is no node 'aa'"),
    ):
        with pytest.raises(KeyError, match=message):
            result[key]


def test_a_handle_is_read_by_itself_and_an_error_is_no_result() -> None:
    g = planwave.GraphBuilder()
    parsed = g.node("transform", expression="{{ 1 / 0 }}", policy={"onError": "continue"})
    said = g.node("text", id="said", text="failed", input=parsed["error"])
    result = planwave.run_sync(g)
    assert result[parsed["error"]]["code"]
    with pytest.raises(KeyError, match="node 'transform' has no result: the node is failed"):
        result[parsed]
    assert (result["said"], result[said], result.output) == ("failed", "failed", "failed")
    with pytest.raises(KeyError, match="the handle 'left' of node 'said' has no result"):
        result[said["left"]]
