from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from planwave.cli.views.progress import RunProgress, event_line
from planwave.events import Event
from tests.support.graph.builders import make_edge, make_graph, text_node

GRAPH = make_graph(
    text_node("a", name="First"), text_node("b"), text_node("c"),
    edges=[("a", "b"), make_edge("c", "b", channel="link", target_handle="tools")],
)  # fmt: skip


BEGAN = datetime.fromisoformat("2026-01-01T00:00:00+00:00").timestamp()


class Clock:
    now = BEGAN

    def __call__(self) -> float:
        return self.now


def event(
    event_type: str, path: str | None = None, attempt: int | None = None, **data: Any
) -> Event:
    return Event("x", 1, "2026-01-01T00:00:00+00:00", event_type, path, attempt, data)


def progress(*events: Event, clock: Clock | None = None) -> RunProgress:
    created = RunProgress(GRAPH, [["a"], ["b"]], clock or Clock())
    for each in events:
        created.apply(each)
    return created


def test_node_status_and_time_follow_events() -> None:
    clock = Clock()
    seen = progress(clock=clock)
    node = seen.nodes["a"]
    assert (node.status, seen.running_for(node)) == ("pending", None)
    seen.apply(event("node.started", "a", 1, wave=1))
    clock.now += 2.5
    assert (node.status, seen.running_for(node)) == ("running", 2.5)
    seen.apply(event("node.completed", "a", 1, outputs={}, duration_s=2.0))
    assert (node.status, seen.running_for(node)) == ("completed", 2.0)
    assert [wave.is_settled for wave in seen.waves] == [True, False]


def test_streamed_text_keeps_its_end_and_is_reset_by_a_new_attempt() -> None:
    seen = progress(event("node.started", "a", 1))
    for piece in ("x" * 5000, "the end"):
        seen.apply(event("node.delta", "a", 1, kind="text", text=piece, offset=0))
    seen.apply(event("node.delta", "a", 1, kind="reasoning", text="secret", offset=0))
    node = seen.nodes["a"]
    assert node.tail.endswith("the end")
    assert len(node.tail) < 1000
    discarded = event("node.event", "a", 1)._replace(data={"event_type": "text_discarded"})
    seen.apply(discarded)
    assert node.tail == ""
    seen.apply(event("node.retrying", "a", 1, error={"message": "busy"}, delay_s=3, next_attempt=2))
    assert node.note == "busy; tries again in 3.0 s"
    seen.apply(event("node.started", "a", 2))
    seen.apply(event("node.delta", "a", 1, kind="text", text="late", offset=9))
    assert (node.tail, node.note) == ("", "")


def test_linked_and_unreached_nodes_have_status_from_the_start() -> None:
    seen = progress(event("execution.started", linked=["c"], not_reached=["b"], waves=1))
    assert (seen.nodes["c"].status, seen.nodes["b"].status) == ("linked", "not_reached")
    assert (seen.status, [wave.number for wave in seen.waves]) == ("executing", [1])


def test_a_changed_plan_shows_its_new_steps_beside_those_that_have_begun() -> None:
    change = {
        "nodes": [{"id": "costs", "type": "text", "name": "Costs"}],
        "edges": [],
        "dropped_nodes": ["c"],
        "dropped_edges": [],
    }
    seen = progress(
        event("node.started", "a", 1),
        event("node.completed", "a", 1, outputs={}, duration_s=1.0),
        event("node.skipped", "b"),
        event("plan.revised", graph_change=change, waves=2),
        event("node.started", "costs", 1),
    )
    assert {node.id: node.status for node in seen.nodes.values()} == {
        "a": "completed", "b": "pending", "costs": "running",
    }  # fmt: skip
    assert seen.planned_steps == 3


def test_recorded_usage_is_counted_once() -> None:
    received = event("usage", "a", 1, input_tokens=10, output_tokens=5, cost_usd=0.5)
    seen = progress(
        event("node.started", "a", 1),
        received,
        event("execution.resumed", reason="recovery", epoch=2),
        event("node.started", "a", 1, reentry=1),
        received._replace(data={**received.data, "recorded": True}),
    )
    assert (seen.usage.input_tokens, seen.usage.output_tokens, seen.usage.cost_usd) == (10, 5, 0.5)


def test_usage_is_summed_and_unknown_prices_add_nothing() -> None:
    seen = progress(
        event("usage", "a", input_tokens=10, output_tokens=5, cost_usd=0.5),
        event("usage", "b", input_tokens=1, output_tokens=1, cost_usd=None),
    )
    assert (seen.usage.input_tokens, seen.usage.output_tokens, seen.usage.cost_usd) == (11, 6, 0.5)


def test_unknown_nodes_and_events_are_ignored() -> None:
    seen = progress(
        event("node.started", "loop[1]/x", 1), event("node.novel", "a"), event("novel.event")
    )
    assert {node.status for node in seen.nodes.values()} == {"pending"}
    assert event_line(event("node.started", "loop[1]/x", 1), seen) is None


def test_nested_events_are_shown_at_their_node() -> None:
    seen = progress(event("node.started", "a", 1))

    def told(each: Event) -> str | None:
        seen.apply(each)
        return event_line(each, seen)

    assert told(event("wave.started", "a[1]", wave=1, nodes=["x"])) is None, "a wave of its own"
    assert told(event("node.started", "a[1]/x", 1, name="Look")) == "started    a[1]/x  Look"
    assert told(event("node.started", "a[1]/x", 1)) == "started    a[1]/x"
    assert (seen.nodes["a"].status, seen.nodes["a"].tail) == ("running", "[1]/x started")
    asks = event("node.waiting", "a[1]/x", 1, request_id="r1", request={"prompt": "Go?"})
    assert told(asks) == "waiting    a[1]/x: for an answer to r1: Go?"
    answer = {"decision": "yes", "note": ""}
    answered = event("node.answered", "a[1]/x", 1, request_id="r1", answer=answer)
    assert told(answered) == "answered   a[1]/x: yes"
    assert told(event("node.completed", "a[1]/x", 1, duration_s=2)) == "completed  a[1]/x (2.0 s)"
    error = {"message": "no way"}
    failed = event("node.failed", "a[2]/b[0]/x", 1, error=error, duration_s=0)
    assert told(failed) == "failed     a[2]/b[0]/x (0.0 s): no way"
    assert seen.nodes["a"].tail == "[2]/b[0]/x failed"
    assert told(event("node.completed", "a", 1, duration_s=3)) == "completed  a  First (3.0 s)"
    assert seen.nodes["a"].tail == ""


def test_progress_has_final_status_and_error() -> None:
    seen = progress(event("execution.failed", error={"code": "c", "message": "m"}, failures=["a"]))
    assert (seen.status, seen.error) == ("failed", "m")
    assert progress(event("execution.cancelled", cause="stop")).error == "stop"


def test_event_lines_have_node_time_and_reason() -> None:
    seen = progress()

    def told(each: Event) -> str | None:
        seen.apply(each)
        return event_line(each, seen)

    assert told(event("execution.created")) is None
    assert told(event("execution.started", waves=2)) == "running 2 steps in 2 waves"
    assert told(event("wave.started", wave=1, nodes=["a"])) == "wave 1 of 2: a"
    assert told(event("node.started", "a", 1)) == "started    a  First"
    assert told(event("node.delta", "a", 1, kind="text", text="x")) is None
    assert told(event("node.completed", "a", 1, duration_s=1.25)) == "completed  a  First (1.2 s)"
    gave = told(event("node.completed", "a", 1, duration_s=0, outputs={"output": {}, "more": {}}))
    assert gave == "completed  a  First (0.0 s)"
    chose = told(event("node.completed", "a", 1, duration_s=0, outputs={"condition-1": {}}))
    assert chose == "completed  a  First (0.0 s): condition-1"
    failed = told(event("node.failed", "b", 1, error={"message": "no\nway"}, duration_s=0))
    assert failed == "failed     b (0.0 s): no way"
    assert told(event("execution.paused", reason="waits")) == "paused: waits"
    assert told(event("execution.completed")) is None


def test_run_counts_steps_and_waves_as_its_plan_does() -> None:
    started = event("execution.started", waves=1)  # the input settled the node of the first wave
    seen = progress(started)
    assert event_line(started, seen) == "running 2 steps in 2 waves"
    assert event_line(event("wave.started", wave=1, nodes=["b"]), seen) == "wave 2 of 2: b"
    both = event("wave.started", wave=1, nodes=["a", "b"])
    assert event_line(both, seen) == "waves 1 and 2 of 2: a, b"


def test_wave_does_not_name_what_was_skipped() -> None:
    seen = progress(event("execution.started"), event("node.skipped", "b", reason="not taken"))
    both = event("wave.started", wave=1, nodes=["a", "b"])
    assert event_line(both, seen) == "wave 1 of 2: a"
    assert event_line(event("wave.started", wave=2, nodes=["b"]), seen) is None


def test_run_of_a_part_says_how_many_steps_run() -> None:
    started = event("execution.started", waves=1, not_reached=["b"])
    assert event_line(started, progress(started)) == "running 1 of 2 steps in 1 wave"


def test_the_waves_of_a_part_are_those_of_its_run() -> None:
    started = event("execution.started", waves=1, not_reached=["a"])
    seen = progress(started)
    assert event_line(started, seen) == "running 1 of 2 steps in 1 wave"
    assert event_line(event("wave.started", wave=1, nodes=["b"]), seen) == "wave 1 of 1: b"
    assert [node.id for node in seen.counted_nodes] == ["b"]


def test_linked_nodes_belong_to_no_wave() -> None:
    started = event("execution.started", waves=1, linked=["a"])
    assert event_line(started, progress(started)) == "running 1 step in 1 wave"


def test_reused_and_given_results_are_no_runs() -> None:
    seen = progress()

    def told(each: Event) -> str | None:
        seen.apply(each)
        return event_line(each, seen)

    taken = {"duration_s": 0.0, "reused": {"execution_id": "x0"}}
    assert told(event("node.completed", "a", 1, **taken)) == "reused     a  First: from x0"
    assert (seen.nodes["a"].status, seen.nodes["a"].seconds) == ("reused", None)
    assert told(event("node.completed", "b", 1, given=True, outputs={})) == "given      b"
    assert [wave.is_settled for wave in seen.waves] == [True, True]
    nested = event("node.completed", "a[1]/x", 1, **taken)
    assert told(nested) == "reused     a[1]/x: from x0"


def test_warning_is_shown_with_completion_and_reset_by_a_new_attempt() -> None:
    cut = event("node.log", "a", 1, message="the reply was cut at 440 tokens", level="warning")
    done = event("node.completed", "a", 1, outputs={}, duration_s=2.0)
    seen = progress(event("node.started", "a", 1), cut, event("node.log", "a", 1, message="hm"))
    seen.apply(done)
    assert event_line(done, seen) == "completed  a  First (2.0 s): the reply was cut at 440 tokens"
    seen.apply(event("node.started", "a", 2))
    seen.apply(done)
    assert seen.nodes["a"].note == ""


def test_a_warning_that_is_said_again_is_shown_once() -> None:
    said = event("node.log", "a", 1, message="the price is not known", level="warning")
    other = event("node.log", "a", 1, message="cut", level="warning")
    done = event("node.completed", "a", 1, outputs={}, duration_s=2.0)
    seen = progress(event("node.started", "a", 1), said, other, said, done)
    assert seen.nodes["a"].note == "the price is not known; cut"


def waiting(path: str = "a", request_id: str = "r4") -> Event:
    return event("node.waiting", path, 1, request_id=request_id, request={"prompt": "May I?"})


TIMER = {"kind": "timer", "message": "Waits until noon.", "until": "noon", "actions": ["continue"]}


def timed(path: str, request_id: str, seconds: float | None) -> Event:
    return event("node.waiting", path, 1, request_id=request_id, request=TIMER, timeout_s=seconds)


def test_timer_is_no_question_and_short_timer_is_not_idle() -> None:
    paused = event("execution.paused", reason="waiting for an answer")
    seen = progress(event("node.started", "a", 1), timed("a", "r4", 60.0))
    assert event_line(timed("a", "r4", 60.0), seen) == "waiting    a  First: until noon"
    seen.apply(paused)
    assert (list(seen.requests), seen.questions, seen.is_idle) == (["r4"], [], False)
    goes_on = event(
        "node.answered", "a", 1, request_id="r4", answer={"decision": "continue"}, by="timeout"
    )
    seen.apply(goes_on)
    assert (seen.nodes["a"].status, seen.nodes["a"].note) == ("running", "")
    assert event_line(goes_on, seen) == "continued  a  First"
    seen = progress(event("node.started", "a", 1), timed("a", "r4", 3_601.0), paused)
    assert seen.is_idle


def test_questions_beside_a_timer_are_open() -> None:
    seen = progress(
        event("node.started", "a", 1), timed("a", "r4", 60.0),
        event("node.started", "b", 1), waiting("b", "r6"),
    )  # fmt: skip
    assert [each.request_id for each in seen.questions] == ["r6"]


def test_paused_execution_is_idle_despite_a_timer() -> None:
    held = event("execution.paused", reason="paused by request")
    assert progress(event("node.started", "a", 1), timed("a", "r4", 60.0), held).is_idle


def test_message_line_has_its_node() -> None:
    def message(path: str) -> Event:
        received = {"event_type": "message", "data": {"text": "Half\nway."}}
        return event("node.event", path, 1)._replace(data=received)

    assert event_line(message("a"), progress()) == "First: Half way."
    assert event_line(message("a[1]/x"), progress()) == "a[1]/x: Half way."
    prompt = message("a")._replace(data={"event_type": "prompt", "data": {"text": "x"}})
    assert event_line(prompt, progress()) is None


def test_planning_events_have_lines() -> None:
    def planning(kind: str, path: str = "a", **data: Any) -> Event:
        received = {"event_type": "planning", "data": {"kind": kind, **data}}
        return event("node.event", path, 1)._replace(data=received)

    step = planning("node", id="s", name="Say\nit")
    assert event_line(planning("title", title="T"), progress()) == "planning   a: title: T"
    assert event_line(step, progress()) == "planning   a: step: Say it"
    assert (
        event_line(planning("node", "a[1]/x", id="s"), progress()) == "planning   a[1]/x: step: s"
    )
    again = planning("repair", diagnostics=[{}])
    assert "a: the plan has 1 error" in str(event_line(again, progress()))
    assert event_line(planning("edge", source="s", target="t"), progress()) is None
    seen = progress(event("node.started", "a", 1), step)
    assert seen.nodes["a"].tail == "step: Say it"


def test_question_is_open_until_answered_or_node_ended() -> None:
    seen = progress(event("node.started", "a", 1), waiting(), waiting("loop[1]/x", "r5"))
    assert [(each.path, each.request_id) for each in seen.requests.values()] == [
        ("a", "r4"), ("loop[1]/x", "r5"),
    ]  # fmt: skip
    assert seen.nodes["a"].note == "for an answer to r4: May I?"
    seen.apply(event("node.answered", "a", 1, request_id="r4", answer={"decision": "ok"}))
    assert (list(seen.requests), seen.nodes["a"].note) == (["r5"], "ok")
    seen.apply(event("node.cancelled", "loop[1]/x", 1, cause="stop"))
    assert not seen.requests
    assert not progress(waiting(), event("execution.cancelled", cause="stop")).requests


def test_idle_when_only_an_answer_helps_or_ended() -> None:
    seen = progress(event("execution.started", waves=2), event("node.started", "a", 1), waiting())
    assert not seen.is_idle
    seen.apply(event("execution.paused", reason="waiting for an answer"))
    assert seen.is_idle
    seen.apply(event("node.answered", "a", 1, request_id="r4", answer=1))
    seen.apply(event("execution.resumed", reason="answered"))
    assert not seen.is_idle
    seen.apply(event("execution.completed"))
    assert seen.is_idle


def test_paused_by_request_is_idle_when_no_node_runs() -> None:
    held = event("execution.paused", reason="paused by request")
    seen = progress(event("node.started", "a", 1), waiting("b"), held)
    assert not seen.is_idle
    seen.apply(event("node.completed", "a", 1, outputs={}))
    assert seen.is_idle
    seen.apply(event("node.answered", "b", 1, request_id="r4", answer=1))
    assert seen.is_idle, "the answer is taken, but starts nothing"


def test_set_aside_execution_is_idle() -> None:
    seen = progress(event("node.started", "a", 1))
    seen.apply(event("execution.paused", reason="set aside after 3 recoveries"))
    assert seen.is_idle


def test_request_answer_and_pause_lines() -> None:
    seen = progress()
    output: list[str | None] = []
    for each in (
        waiting(),
        event("execution.paused", reason="waiting for an answer"),
        event("node.answered", "a", 1, request_id="r4", answer={"decision": "ok", "note": "fine"}),
        event("execution.resumed", reason="answered"),
    ):
        seen.apply(each)
        output.append(event_line(each, seen))
    assert output == [
        "waiting    a  First: for an answer to r4: May I?",
        "paused: waiting for an answer to r4",
        "answered   a  First: ok: fine",
        "resumed: answered",
    ]


def test_times_of_lines_and_of_steps_are_of_one_clock() -> None:
    """The clock of this process may be behind or ahead: what is shown of events does not depend on it."""

    def at(seconds: float, event_type: str, path: str | None = None, **data: Any) -> Event:
        when = datetime.fromtimestamp(BEGAN, UTC) + timedelta(seconds=seconds)
        return event(event_type, path, 1 if path else None, **data)._replace(at=when.isoformat())

    for ahead in (-60.0, 0.0, 60.0):
        clock = Clock()
        clock.now += ahead
        seen = RunProgress(GRAPH, [["a"], ["b"]], clock, began=BEGAN)
        seen.apply(at(0.2, "execution.started", waves=2))
        seen.apply(at(0.5, "node.started", "a", wave=1))
        assert seen.event_elapsed == pytest.approx(0.5)
        seen.apply(at(3.2, "node.completed", "a", outputs={}, duration_s=2.7))
        assert seen.event_elapsed == pytest.approx(3.2)
        assert seen.event_elapsed >= (seen.nodes["a"].seconds or 0.0)
        assert seen.elapsed == pytest.approx(max(3.2, ahead))
        seen.apply(at(3.4, "node.started", "b", wave=2))
        seen.apply(at(4.4, "node.cancelled", "b", cause="stop"))
        assert seen.nodes["b"].seconds == pytest.approx(1.0)
        seen.apply(at(4.5, "execution.cancelled", cause="stop"))
        assert seen.elapsed == pytest.approx(4.5)
