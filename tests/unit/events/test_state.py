from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.errors import InvalidTransition
from planwave.events import Event, ExecutionState, execution_logs, fold
from tests.support.engine.event_story import EventStory

GRAPH = {
    "nodes": [
        {"id": "a", "type": "x", "name": "First", "data": {}},
        {"id": "b", "type": "x", "name": "Second", "data": {}},
        {"id": "c", "type": "x", "name": "Third", "data": {}},
    ],
    "edges": [],
}


def begun(**started: Any) -> EventStory:
    story = EventStory().add("execution.created", goal="why", title="T", graph=GRAPH, plan_hash="h")
    return story.add("execution.started", **{"waves": 2, **started})


def test_created_makes_every_node_pending_in_graph_order() -> None:
    state = (
        EventStory().add("execution.created", goal="why", title="T", graph=GRAPH, plan_id="p").state
    )
    assert [(n.path, n.status) for n in state.nodes.values()] == [
        ("a", "pending"),
        ("b", "pending"),
        ("c", "pending"),
    ]
    assert (state.status, state.goal, state.title, state.plan_id) == ("starting", "why", "T", "p")


def test_the_start_marks_linked_and_unreached_nodes() -> None:
    state = begun(linked=["b"], not_reached=["c"]).state
    assert [n.status for n in state.nodes.values()] == ["pending", "linked", "not_reached"]
    assert state.status == "executing"
    assert state.started_at == "2026-01-01T00:00:01.000000Z"


def test_a_completed_node_has_its_outputs_and_times() -> None:
    story = begun().add("node.started", "a", 1, wave=1, via="e1")
    outputs = {"output": {"type": "text", "value": "hi"}}
    node = story.add("node.completed", "a", 1, outputs=outputs, duration_s=1.5).state.nodes["a"]
    assert (node.status, node.outputs, node.duration_s) == ("completed", outputs, 1.5)
    assert (node.wave, node.via, node.attempts) == (1, "e1", 1)
    assert node.started_at is not None
    assert node.completed_at is not None
    assert node.started_at < node.completed_at


def test_a_handled_failure_has_error_and_outputs() -> None:
    error = {"code": "boom", "message": "it broke"}
    story = begun().add("node.started", "a", 1, wave=1)
    story.add("node.failed", "a", 1, error=error, handled=True, outputs={"error": {}}, duration_s=1)
    node = story.add("execution.completed", handled_failures=["a"]).state.nodes["a"]
    assert (node.status, node.error, node.handled, node.outputs) == (
        "failed",
        error,
        True,
        {"error": {}},
    )
    assert story.state.handled_failures == ["a"]


def test_a_new_attempt_clears_the_error_and_is_counted() -> None:
    story = begun().add("node.started", "a", 1, wave=1)
    story.add("node.retrying", "a", 1, error={"code": "x"}, delay_s=1, next_attempt=2)
    assert (story.state.nodes["a"].status, story.state.nodes["a"].error) == (
        "retrying",
        {"code": "x"},
    )
    node = story.add("node.started", "a", 2, wave=1).state.nodes["a"]
    assert (node.status, node.attempts, node.error) == ("running", 2, None)
    assert node.started_at == "2026-01-01T00:00:02.000000Z"


@pytest.mark.parametrize(
    ("kind", "data", "shown"),
    [
        ("node.skipped", {"reason": "no branch", "handle": "h"}, ("skipped", "no branch", None)),
        ("node.blocked", {"cause": {"node": "a"}}, ("blocked", None, {"node": "a"})),
        ("node.cancelled", {"cause": "stop"}, ("cancelled", None, "stop")),
    ],
)
def test_a_node_that_did_not_run_has_a_reason_or_cause(
    kind: str, data: dict[str, Any], shown: Any
) -> None:
    node = begun().add(kind, "b", **data).state.nodes["b"]
    assert (node.status, node.reason, node.cause) == shown


@pytest.mark.parametrize(
    ("kind", "data", "status"),
    [
        ("execution.completed", {}, "completed"),
        ("execution.failed", {"error": {"code": "c"}, "failures": ["a"]}, "failed"),
        ("execution.cancelled", {"cause": "user"}, "cancelled"),
    ],
)
def test_an_ended_execution_waits_for_no_input(
    kind: str, data: dict[str, Any], status: str
) -> None:
    story = begun().add("node.waiting", "a", 1, request_id="r", request={})
    state = story.add(kind, **data).state
    assert (state.status, state.is_over, state.waiting_for_input) == (status, True, False)
    assert state.completed_at is not None


def test_a_resumed_execution_is_executing() -> None:
    story = begun().add("execution.paused", reason="waiting")
    assert (story.state.status, story.state.reason) == ("paused", "waiting")
    assert story.add("execution.resumed").state.status == "executing"


@pytest.mark.parametrize("kind", ["execution.completed", "execution.failed", "execution.cancelled"])
def test_an_ended_execution_has_no_pause_reason(kind: str) -> None:
    story = begun().add("execution.paused", reason="waiting").add(kind)
    assert story.state.reason is None


def test_the_current_node_is_that_of_the_oldest_open_request() -> None:
    story = begun().add("node.waiting", "b", 1, request_id="r1", request={"q": 1})
    story.add("node.waiting", "a", 1, request_id="r2", request={"q": 2})
    assert (story.state.waiting_for_input, story.state.current_node_id) == (True, "b")
    story.add("node.answered", "b", 1, request_id="r1", answer="yes")
    assert (story.state.current_node_id, story.state.nodes["b"].status) == ("a", "running")
    story.add("node.cancelled", "a", cause="stop")
    assert (story.state.waiting_for_input, story.state.current_node_id) == (False, None)


def test_a_timer_is_not_a_request_for_input() -> None:
    timer = {"kind": "timer", "until": "2030-01-31T09:00:00+00:00"}
    story = begun().add("node.waiting", "b", 1, request_id="r1", request=timer, timeout_s=5.0)
    assert not story.state.waiting_for_input
    assert story.state.current_node_id is None
    assert story.state.nodes["b"].status == "waiting"
    assert list(story.state.requests) == ["r1"]  # it can be answered all the same
    story.add("node.waiting", "a", 1, request_id="r2", request={"q": 2})
    assert story.state.waiting_for_input
    assert story.state.current_node_id == "a"


def test_the_current_wave_is_the_lowest_unfinished_one() -> None:
    story = begun(waves=3)
    assert story.state.wave_json() == {"current": 1, "total": 3}
    story.add("wave.completed", wave=2)
    assert story.state.wave_json() == {"current": 1, "total": 3}
    story.add("wave.completed", wave=1)
    assert story.state.wave_json() == {"current": 3, "total": 3}
    assert story.add("wave.completed", wave=3).state.wave_json() == {"current": 3, "total": 3}


def test_a_wave_without_started_nodes_does_not_stay_current() -> None:
    story = begun(waves=4).add("wave.started", wave=1, nodes=["a"])
    story.add("wave.completed", wave=1).add("wave.started", wave=3, nodes=["c"])
    assert story.state.wave_json() == {"current": 3, "total": 4}
    assert story.add("wave.completed", wave=3).state.wave_json() == {"current": 4, "total": 4}


def test_a_completed_execution_is_at_its_last_wave() -> None:
    story = begun(waves=3).add("wave.started", wave=1, nodes=["a"]).add("wave.completed", wave=1)
    assert story.add("execution.completed").state.wave_json() == {"current": 3, "total": 3}


def test_the_last_prompt_event_is_the_prompt_of_the_node() -> None:
    story = begun().add("node.event", "a", 1, event_type="prompt", data={"prompt": "old"})
    story.add("node.event", "a", 1, event_type="prompt", data={"prompt": "new", "system": "s"})
    story.add("node.event", "a", 1, event_type="reasoning", data={"text": "hm"})
    assert story.state.nodes["a"].prompt == {"prompt": "new", "system": "s"}


def test_a_closed_request_has_the_reason_why_it_was_closed() -> None:
    story = begun()
    for n in range(3):
        story.add("node.waiting", f"a[{n}]/q", 1, request_id=f"r{n}", request={})
    for n in range(2):
        story.add("node.answered", f"a[{n}]/q", 1, request_id=f"r{n}", answer=1)
        story.add("node.completed", f"a[{n}]/q", 1, outputs={})
    story.add("node.cancelled", "a[2]/q", 1, cause="enough")
    state = story.state
    assert state.closed_requests == {"r0": "answered", "r1": "answered", "r2": "cancelled"}
    assert len(state.requests) == 0


@pytest.mark.parametrize("end", ["execution.cancelled", "execution.failed"])
def test_the_request_of_the_plan_is_closed_with_the_execution(end: str) -> None:
    story = begun()
    story.add("execution.paused", reason="asks", kind="waiting", request_id="r3", request={})
    assert story.add(end).state.closed_requests == {"r3": "ended"}


def test_a_node_waits_as_long_as_any_of_its_requests_is_open() -> None:
    story = begun().add("node.started", "a", 1, wave=1)
    for request_id in ("r1", "r2"):
        story.add("node.waiting", "a", 1, request_id=request_id, request={})
    story.add("node.answered", "a", 1, request_id="r1", answer=1)
    assert story.state.nodes["a"].status == "waiting"
    story.add("node.answered", "a", 1, request_id="r2", answer=1)
    assert story.state.nodes["a"].status == "running"


def test_usage_is_summed_by_node_and_in_total() -> None:
    call = {"provider": "p", "model": "m", "input_tokens": 2, "output_tokens": 3}
    story = begun().add("usage", "a", 1, **call, cost_usd=0.5).add("usage", "a", 2, **call)
    state = story.add("usage", None, **call, estimated=True).state
    node = state.nodes["a"]
    assert (node.provider, node.model) == ("p", "m")
    assert node.usage.as_json() == {
        "calls": 2,
        "input_tokens": 4,
        "output_tokens": 6,
        "cost_usd": 0.5,
        "estimated": False,
    }
    assert (state.usage.calls, state.usage.input_tokens, state.usage.estimated) == (3, 6, True)


@pytest.mark.parametrize("odd", ["many", -5, None, [1], {}, True])
def test_invalid_usage_numbers_count_as_zero(odd: Any) -> None:
    story = begun().add("usage", "a", 1, input_tokens=2, output_tokens=3, cost_usd=0.5)
    story.add("usage", "a", 1, input_tokens=odd, output_tokens=odd, cost_usd=odd)
    usage = story.state.nodes["a"].usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens, usage.cost_usd) == (2, 2, 3, 0.5)


def test_streamed_text_grows_at_its_offset_and_restarts_with_an_attempt() -> None:
    story = begun().add("node.started", "a", 1, wave=1)
    story.add("node.delta", "a", 1, kind="text", text="Hel", offset=0)
    story.add("node.delta", "a", 1, kind="text", text="lo", offset=3)
    story.add("node.delta", "a", 1, kind="reasoning", text="hm", offset=0)
    story.add("node.delta", "a", 1, kind="audio", text="AAAA", offset=0)
    assert (story.state.nodes["a"].text, story.state.nodes["a"].reasoning) == ("Hello", "hm")
    story.add("node.delta", "a", 1, kind="text", text="p!", offset=3)
    assert story.state.nodes["a"].text == "Help!"
    story.add("node.started", "a", 2, wave=1)
    assert story.state.nodes["a"].text == ""
    story.add("node.delta", "a", 1, kind="text", text="late", offset=5)
    story.add("node.delta", "a", 2, kind="text", text="again", offset=0)
    assert story.state.nodes["a"].text == "again"


def test_a_delta_of_a_new_attempt_replaces_the_old_text() -> None:
    story = begun().add("node.started", "a", 1, wave=1)
    story.add("node.delta", "a", 1, kind="text", text="old", offset=0)
    story.add("node.delta", "a", 2, kind="text", text="new", offset=0)
    assert story.state.nodes["a"].text == "new"


def test_a_delta_beyond_the_end_of_the_text_is_ignored() -> None:
    story = begun().add("node.started", "a", 1, wave=1)
    story.add("node.delta", "a", 1, kind="text", text="far", offset=7)
    assert story.state.nodes["a"].text == ""


def test_a_nested_node_gets_its_own_state_under_its_path() -> None:
    state = begun().add("node.started", "a[2]/sub", 1, wave=1).state
    assert list(state.nodes) == ["a", "b", "c", "a[2]/sub"]


def test_a_parked_node_is_waiting_like_its_nested_node() -> None:
    story = begun().add("node.started", "a", 1).add("node.started", "a[k]/n", 1)
    story.add("node.waiting", "a[k]/n", 1, request_id="r", request={}).add("node.parked", "a", 1)
    assert [story.state.nodes[path].status for path in ("a", "a[k]/n")] == ["waiting", "waiting"]
    assert (story.state.waiting_for_input, story.state.current_node_id) == (True, "a[k]/n")
    story.add("node.answered", "a[k]/n", 1, request_id="r", answer=1).add("node.unparked", "a", 1)
    assert [story.state.nodes[path].status for path in ("a", "a[k]/n")] == ["running", "running"]


def test_what_ran_inside_a_step_that_a_change_drops_stays_with_the_change() -> None:
    story = begun().add("node.started", "a", 1).add("node.started", "a[k]/x", 1)
    error = {"code": "gone", "message": "no such page"}
    story.add("node.failed", "a[k]/x", 1, error=error).add("node.failed", "a", 1, error=error)
    change = {"nodes": [], "dropped_nodes": ["a"], "edges": [], "dropped_edges": []}
    state = story.add(
        "plan.revised", change=1, base="h", hash="i", graph_change=change, floor=1
    ).state
    assert list(state.nodes) == ["b", "c"]
    assert [each["path"] for each in state.changes.records[0]["dropped"]] == ["a", "a[k]/x"]


def test_a_node_of_a_restarted_nested_run_is_reset_except_for_its_usage() -> None:
    story = begun().add("node.started", "a[k]/n", 1)
    story.add("usage", "a[k]/n", 1, input_tokens=5).add(
        "node.completed", "a[k]/n", 1, outputs={"o": 1}
    )
    story.add("node.started", "a[k]/n", 3)
    node = story.state.nodes["a[k]/n"]
    assert (node.status, node.attempt, node.outputs, node.completed_at) == (
        "running",
        3,
        None,
        None,
    )
    assert node.usage.input_tokens == 5


def test_a_reused_result_replaces_the_earlier_state_of_a_nested_node() -> None:
    story = begun().add("node.cancelled", "a[k]/n", 1, cause="let go of")
    story.add("node.completed", "a[k]/n", 2, outputs={"o": 1}, reused={"execution_id": "x0"})
    node = story.state.nodes["a[k]/n"]
    assert (node.status, node.outputs, node.cause) == ("completed", {"o": 1}, None)
    assert node.reused == {"execution_id": "x0", "path": "a[k]/n", "failed_inside": False}


def test_unknown_event_types_only_advance_the_sequence() -> None:
    assert begun().add("novel.event", revision=2).state.last_seq == 3


@pytest.mark.parametrize("seq", [0, 1, 2, 4])
def test_an_event_out_of_sequence_is_rejected(seq: int) -> None:
    state = begun().state
    with pytest.raises(InvalidTransition, match="3 must follow"):
        state.apply(Event("x1", seq, "t", "execution.completed", None, None, {}))


def test_a_numbered_transient_event_is_rejected() -> None:
    with pytest.raises(InvalidTransition, match="never stored"):
        begun().state.apply(Event("x1", 3, "t", "node.delta", "a", 1, {}))


def test_an_event_of_another_execution_is_rejected() -> None:
    with pytest.raises(InvalidTransition, match="x2"):
        begun().state.apply(Event("x2", 3, "t", "execution.completed", None, None, {}))


def test_a_node_event_without_a_path_is_rejected() -> None:
    with pytest.raises(InvalidTransition, match="no path"):
        begun().state.apply(Event("x1", 3, "t", "node.started", None, 1, {}))


def test_the_event_vocabulary_is_cheap_to_import() -> None:
    code = (
        "import sys, planwave.events; print([m for m in sys.modules if m.startswith('pydantic')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_event_as_json_omits_path_and_attempt_if_it_has_none() -> None:
    assert Event("x1", 1, "t", "execution.resumed", None, None, {}).as_json() == {
        "execution_id": "x1",
        "seq": 1,
        "at": "t",
        "type": "execution.resumed",
        "data": {},
    }
    shown = Event("x1", 2, "t", "node.started", "a", 1, {"wave": 1}).as_json()
    assert (shown["path"], shown["attempt"], shown["data"]) == ("a", 1, {"wave": 1})


KINDS: dict[str, dict[str, Any]] = {
    "node.started": {"wave": 1},
    "node.completed": {"outputs": {"output": {"type": "text", "value": "v"}}, "duration_s": 0.5},
    "node.failed": {"error": {"code": "c", "message": "m"}, "handled": False},
    "node.retrying": {"error": {"code": "c"}, "next_attempt": 2},
    "node.skipped": {"reason": "r"},
    "node.blocked": {"cause": {"node": "a"}},
    "node.cancelled": {"cause": "c"},
    "node.waiting": {"request_id": "r", "request": 1},
    "node.answered": {"request_id": "r", "answer": 2},
    "node.delta": {"kind": "text", "text": "ab", "offset": 0},
    "usage": {"provider": "p", "model": "m", "input_tokens": 1, "output_tokens": 1},
    "node.log": {"message": "x"},
    "wave.completed": {"wave": 1},
    "execution.paused": {"reason": "r"},
    "execution.resumed": {},
    "execution.completed": {},
}

told = st.lists(
    st.tuples(
        st.sampled_from(sorted(KINDS)), st.sampled_from(["a", "b", "a/x"]), st.integers(1, 3)
    ),
    max_size=40,
)


def story_of(steps: list[tuple[str, str, int]]) -> EventStory:
    story = begun()
    for kind, path, attempt in steps:
        about_node = kind.startswith("node.") or kind == "usage"
        story.add(
            kind, path if about_node else None, attempt if about_node else None, **KINDS[kind]
        )
    return story


@given(told)
def test_folding_equals_applying_one_by_one(steps: list[tuple[str, str, int]]) -> None:
    story = story_of(steps)
    live = ExecutionState()
    for event in story.events:
        live.apply(event)
        live.as_json()  # looking must not change what is seen
    assert live.as_json() == story.state.as_json()
    assert json.loads(json.dumps(live.as_json())) == live.as_json()


@given(told)
def test_state_does_not_depend_on_transient_events_but_for_text(
    steps: list[tuple[str, str, int]],
) -> None:
    stored = [e for e in story_of(steps).events if e.seq]
    state = fold(stored)
    assert state.last_seq == len(stored)
    assert all(node.text == "" for node in state.nodes.values())


@given(told)
def test_the_log_grows_only_at_its_end(steps: list[tuple[str, str, int]]) -> None:
    events = story_of(steps).events
    half = len(events) // 2
    assert execution_logs(events)[: len(execution_logs(events[:half]))] == execution_logs(
        events[:half]
    )


def test_discarded_text_is_dropped_and_the_next_text_begins_at_offset_0() -> None:
    story = begun().add("node.started", "a", 1, wave=1)
    story.add("node.delta", "a", 1, kind="reasoning", text="hm", offset=0)
    story.add("node.delta", "a", 1, kind="text", text="Hello", offset=0)
    story.add("node.event", "a", 1, event_type="text_discarded", data={"message": "down"})
    assert (story.state.nodes["a"].text, story.state.nodes["a"].reasoning) == ("", "")
    story.add("node.delta", "a", 1, kind="text", text="He", offset=0)
    assert story.state.nodes["a"].text == "He"
