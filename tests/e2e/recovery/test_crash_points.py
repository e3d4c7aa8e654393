"""What ends at a chosen place goes on as promised: one test for each row of the fault matrix."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import count, product
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.events import Event
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite.store import SqliteStore
from tests.support.recovery.crash_history import CrashHistory
from tests.support.recovery.crash_points import KILLED
from tests.support.recovery.crash_server import crash_server, planned_goals
from tests.support.server.server_process import ServerProcess
from tests.support.storage.either_database import Place

pytestmark = pytest.mark.slow

KEY = {"Idempotency-Key": "b0f3"}
TEXTS: dict[str, Any] = {
    "nodes": [{"id": "a", "type": "text", "data": {"text": "one"}}],
    "edges": [],
}
EXECUTE = "/api/execute", {"graph": TEXTS, "start": True}
RUN = "/api/run", {"prompt": "texts"}


def node(node_id: str, kind: str = "job", policy: Any = None, **data: Any) -> dict[str, Any]:
    made = {"id": node_id, "type": kind, "name": node_id, "data": data}
    return made if policy is None else {**made, "policy": policy}


def graph(*nodes: dict[str, Any], edges: str = "") -> dict[str, Any]:
    """Make a graph; edges are written ``a>b c.reject>d``."""
    made: list[dict[str, Any]] = []
    for pair in edges.split():
        source, target = pair.split(">")
        source, _, handle = source.partition(".")
        made.append(
            {
                "id": pair.replace(">", "-"),
                "source": source,
                "sourceHandle": handle or "output",
                "target": target,
                "targetHandle": "input",
                "data": {"channel": "flow"},
            }
        )
    return {"nodes": list(nodes), "edges": made}


# -- over HTTP


def sent(server: ServerProcess, path: str, body: Any, headers: Any = KEY) -> httpx2.Response:
    return httpx2.post(server.url + path, json=body, headers=headers, timeout=60, trust_env=False)


def crashes(directory: Path, point: str, path: str, body: Any, headers: Any = KEY) -> None:
    """Send a request to a server that ends at a point, and gives no answer."""
    with crash_server(directory, point) as server:
        with pytest.raises(httpx2.TransportError):
            sent(server, path, body, headers)
        assert server.wait_for_exit() == KILLED


def ended(server: ServerProcess, execution_id: str) -> str:
    """Wait for the end of an execution; give its status."""
    url = f"{server.url}/api/executions/{execution_id}"
    with httpx2.stream("GET", f"{url}/events", timeout=60, trust_env=False) as told:
        assert told.status_code == 200
        told.read()
    status: str = httpx2.get(url, trust_env=False).json()["status"]
    return status


def stored(directory: Path) -> dict[str, tuple[ExecutionRecord, list[Event]]]:
    async def read() -> dict[str, tuple[ExecutionRecord, list[Event]]]:
        store = SqliteStore.open(directory / "storage", read_only=True)
        records = await store.executions()
        found = {r.execution_id: (r, await store.events(r.execution_id)) for r in records}
        for record, _ in found.values():
            assert record.plan_id is not None
            assert await store.plan(record.plan_id) is not None, "it runs without a stored plan"
        assert len(await store.plans()) == len(found)
        await store.close()
        return found

    return asyncio.run(read())


def goes_on(directory: Path, path: str, body: Any) -> httpx2.Response:
    """Start anew and send the request again: there is one execution then, and it ends well."""
    with crash_server(directory) as server:
        answer = sent(server, path, body)
        assert answer.status_code == 202, answer.text
        own = answer.json()["execution_id"]
        assert ended(server, own) == "completed"
        assert sent(server, path, body).content == answer.content
    assert list(stored(directory)) == [own]
    return answer


def test_f01_what_was_not_durable_was_not_accepted_and_leaves_nothing(tmp_path: Path) -> None:
    path, body = EXECUTE
    crashes(tmp_path, "before:create_execution:1", path, body, None)
    crashes(tmp_path, "before:create_execution:1", path, body)
    with crash_server(tmp_path) as server:
        answer = httpx2.get(f"{server.url}/api/executions", trust_env=False)
        assert answer.json()["executions"] == []
        first = sent(server, path, body)
        assert first.status_code == 202
        again = sent(server, path, body)
        assert again.content == first.content
        answer = httpx2.get(f"{server.url}/api/executions", trust_env=False)
        assert len(answer.json()["executions"]) == 1
        assert ended(server, first.json()["execution_id"]) == "completed"


@pytest.mark.parametrize(
    "point", ["after:create_execution:1", "before:store_response:1", "after:store_response:1"]
)
def test_f02_what_was_durable_before_its_answer_is_the_one_that_runs(
    tmp_path: Path, point: str
) -> None:
    path, body = EXECUTE
    crashes(tmp_path, point, path, body)
    (made,) = stored(tmp_path)
    answer = goes_on(tmp_path, path, body)
    assert answer.json()["execution_id"] == made
    assert (answer.headers.get("idempotency-replayed") == "true") == (
        point == "after:store_response:1"
    )


@pytest.mark.parametrize("point", ["before:record_request:1", "after:record_request:1"])
def test_f03_what_was_cut_off_while_it_was_planned_is_planned_anew(
    tmp_path: Path, point: str
) -> None:
    crashes(tmp_path, point, *RUN)
    assert stored(tmp_path) == {}
    goes_on(tmp_path, *RUN)
    assert planned_goals(tmp_path) == ["texts"] * (2 if point == "after:record_request:1" else 1)


@pytest.mark.parametrize(
    ("point", "plannings"), [("before:save_plan:1", 2), ("after:save_plan:1", 1)]
)
def test_f04_what_runs_has_a_stored_plan_which_is_paid_for_once_it_is_kept(
    tmp_path: Path, point: str, plannings: int
) -> None:
    crashes(tmp_path, point, *RUN)
    goes_on(tmp_path, *RUN)
    assert planned_goals(tmp_path) == ["texts"] * plannings


# -- in a node


@pytest.fixture
def lives(place: Place) -> CrashHistory:
    return CrashHistory(place)


ASKS_MODEL = graph(node("a", "llm", prompt="one"), node("b", "llm", prompt="two"), edges="a>b")


@pytest.mark.parametrize(
    ("point", "calls", "cut_off"),
    [
        pytest.param("before:record_call:1", 1, "a", id="f05_before_the_call"),
        pytest.param("before:record:1", 2, "a", id="f06_before_the_reply_is_recorded"),
        pytest.param("after:record:1", 1, "a", id="f06_after_the_reply_is_recorded"),
        pytest.param("before:append:1:node.completed", 1, "a", id="f06_before_the_result_is_kept"),
        pytest.param("after:append:1:node.completed", 1, "b", id="f06_after_the_result_is_kept"),
    ],
)
def test_f05_f06_a_call_is_made_again_only_where_nobody_knows_its_reply(
    lives: CrashHistory, point: str, calls: int, cut_off: str
) -> None:
    assert lives.run(graphs=[ASKS_MODEL], point=point).exit_code == KILLED
    lives.run(ends=True)
    lives.check()
    ((record, events),) = lives.stored().values()
    assert record.status == "completed"
    made = Counter(tuple(call[3:]) for call in lives.external_records("call"))
    assert made == {("a", 1, 0): calls, ("b", 1, 0): 1}
    again = [e for e in events if e.type == "node.started" and e.data.get("reentry")]
    assert [(e.path, e.attempt, e.data["reentry"]) for e in again] == [(cut_off, 1, 1)]


@pytest.mark.parametrize("seed", range(4))
def test_f06_what_may_act_but_once_is_not_run_again_unless_a_person_says_so(
    lives: CrashHistory, seed: int
) -> None:
    once = graph(node("a", policy={"effect": "once"}))
    lives.run(graphs=[once], point="before:append:1:node.completed")
    lives.run(ends=True, seed=seed)
    lives.check()
    ((_, events),) = lives.stored().values()
    (waiting,) = [e for e in events if e.type == "node.waiting"]
    assert waiting.data["request"]["kind"] == "interrupted"
    ((_, _, decision),) = lives.runs[1].facts_of("answered")
    assert len(lives.external_records("run")) == (2 if decision == "run_again" else 1)
    assert events[-1].type == f"execution.{'failed' if decision == 'fail' else 'completed'}"


EVERYTHING = graph(
    node("a", calls=1),
    node("b", "llm", prompt="b"),
    node("c", fails=1, calls=1, policy={"retry": {"attempts": 2, "backoffS": 0.01}}),
    node("d", "approval", prompt="Shall it?"),
    node("e", "text", text="e"),
    node("f", ms=5, policy={"join": "any"}),
    node("g", breaks=True),
    node("h", "text", text="h"),
    node("i", ms=5, policy={"effect": "once"}),
    edges="a>b a>c b>d c>d d.approve>e d.reject>f b>f a>g g>h c>i",
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("when", ["before", "after"])
def test_f12_whichever_commit_is_the_last_everything_ends_as_promised(
    lives: CrashHistory, when: str
) -> None:
    for number in count(1):
        point = f"{when}:append:{number}"
        if lives.run(graphs=[EVERYTHING], point=point, seed=number).exit_code == 0:
            break
        assert lives.run(ends=True, seed=number).exit_code == 0
    lives.run(ends=True)
    lives.check()
    assert number > 8
    assert {r.status for r, _ in lives.stored().values()} == {"failed"}


# -- with graphs inside nodes, inside nodes

INSIDE = graph(
    node("a", calls=1, keeps=1, body="loop", items=2, parallel=2), node("b", ms=1), edges="a>b"
)


QUICK = {
    ("after", "run_graph", 1),
    ("before", "once", 1),  # the only crash after which a value is made again
    ("after", "node.parked", 1),
    ("before", "node.answered", 1),
}


@pytest.mark.parametrize(
    ("when", "what", "number"),
    [
        pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow)
        for case in product(
            ("before", "after"),
            ("run_graph", "once", "node.parked", "node.answered", "node.unparked"),
            (1, 2),
        )
        if case[1] == "run_graph" or case[2] == 1
    ],
)
def test_f12_what_is_told_of_graphs_inside_nodes_is_told_or_was_not(
    lives: CrashHistory, when: str, what: str, number: int
) -> None:
    point = f"{when}:append:{number}:{what}"
    life = lives.run(graphs=[INSIDE], point=point, seed=number, patient=True)
    assert life.exit_code == KILLED
    lives.run(ends=True, seed=number)
    lives.check()
    ((record, events),) = lives.stored().values()
    assert record.status == "completed"
    calls = Counter(tuple(call[3:]) for call in lives.external_records("call"))
    assert calls["a", 1, 0] == 1, "it was paid for"
    kept = [e for e in events if e.type == "node.event" and e.data["event_type"] == "once"]
    assert Counter(e.path for e in kept) == {"a": 1, "a[i0]/inner": 1, "a[i1]/inner": 1}
    made = Counter(path for _, _, _, path, *_ in lives.external_records("once"))
    is_made_again = (when, what, number) == ("before", "once", 1)
    assert made["a"] == (2 if is_made_again else 1)
    assert len(_answered(events)) == 4, "each question is asked, and answered, once"


def _answered(events: list[Event]) -> list[Any]:
    return [e.data for e in events if e.type == "node.answered"]


# -- while it recovers


@pytest.mark.parametrize(
    "point",
    [
        "before:claim:1",
        pytest.param("after:claim:1", marks=pytest.mark.slow),
        pytest.param("before:append:1", marks=pytest.mark.slow),
    ],
)
def test_f13_ten_ends_of_the_process_while_it_recovers_count_as_no_attempt(
    lives: CrashHistory, point: str
) -> None:
    lives.run(graphs=[ASKS_MODEL], point="before:record:1")
    for _ in range(10):
        assert lives.run(point=point).exit_code == KILLED
    lives.run(ends=True)
    lives.check()
    ((record, events),) = lives.stored().values()
    assert record.status == "completed"
    starts = [e for e in events if e.type == "node.started" and e.path == "a"]
    assert [(e.attempt, e.data.get("reentry", 0)) for e in starts] == [(1, 0), (1, 1)]
    assert Counter(call[3] for call in lives.external_records("call")) == {"a": 2, "b": 1}


def test_f13_what_ends_its_process_again_and_again_is_set_aside_and_others_go_on(
    tmp_path: Path,
    lives: CrashHistory,
) -> None:
    # No step of the others comes on before they are taken up one by one: all count as fruitless.
    go_on = tmp_path / "go on"
    good = graph(node("a", until=str(go_on)), node("b", ms=30), node("c"), edges="a>b b>c")
    poison = graph(node("a", ms=2_000), node("b", ms=10, dies=True), edges="a>b")
    lives.run(graphs=[good, good, poison, good])
    codes = [lives.run(recoveries=5).exit_code for _ in range(3)]
    go_on.touch()
    codes += [lives.run(recoveries=5).exit_code for _ in range(7)]
    assert codes == [KILLED] * 5 + [0] * 5
    lives.check(is_over=False)
    statuses = Counter(record.status for record, _ in lives.stored().values())
    assert statuses == {"completed": 3, "paused": 1}
    ((aside, events),) = [kept for kept in lives.stored().values() if kept[0].status == "paused"]
    assert events[-1].data["reason"].startswith("set aside: ")
    assert max(event.attempt or 0 for event in events) == 1
    ran = Counter(
        path for _, _, own, path, _ in lives.external_records("run") if own == aside.execution_id
    )
    assert ran == {"a": 1, "b": 6}
