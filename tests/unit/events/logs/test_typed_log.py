from __future__ import annotations

from typing import Any

import pytest

from planwave.events import Event
from planwave.events.logs.typed_log import execution_log_entries
from tests.support.engine.event_story import Fact, numbered_events

GRAPH = {
    "nodes": [
        {"id": "a", "type": "agent", "name": "Writer", "data": {}},
        {"id": "b", "type": "if", "name": "b", "data": {}},
    ],
    "edges": [],
}


def entries_of(*facts: Fact) -> list[tuple[str, str, str]]:
    """Return ``(node, type, content)`` of the entries after the creation of an execution."""
    events = numbered_events([("execution.created", None, {"graph": GRAPH}), *facts])
    return [(entry.node_id, entry.type, entry.content) for entry in execution_log_entries(events)]


STARTED = ("node.started", "a", {"wave": 1})
PROMPT = ("node.event", "a", {"event_type": "prompt", "data": {"prompt": "Write.", "model": "m"}})
TEXT = {"outputs": {"output": {"type": "text", "value": "Written."}}, "duration_s": 0.1}
ERROR = {"error": {"code": "provider-error", "message": "no answer"}, "handled": False}


def test_a_model_call_has_entries_for_start_prompt_and_response() -> None:
    assert entries_of(STARTED, PROMPT, ("node.completed", "a", TEXT)) == [
        ("a", "step_start", "Writer agent node"),
        ("a", "start_prompt", "Write."),
        ("a", "llm_response", "Written."),
    ]


def test_an_entry_has_the_time_and_seq_of_its_event() -> None:
    (entry,) = execution_log_entries([Event("x1", 7, "noon", "node.started", "a", 1, {})])
    assert entry.seq == 7
    assert entry.as_json() == {
        "timestamp": "noon", "nodeId": "a", "type": "step_start", "content": "a",
        "level": "info",
    }  # fmt: skip


def test_a_node_without_a_model_call_has_only_a_start_entry() -> None:
    assert entries_of(("node.started", "b", {}), ("node.completed", "b", TEXT)) == [
        ("b", "step_start", "if node")
    ]


def test_the_start_entry_of_a_nested_node_is_its_name() -> None:
    inside = ("node.started", "b[0]/x", {"wave": 1, "name": "Look"})
    assert entries_of(inside) == [("b[0]/x", "step_start", "Look")]


def test_a_name_with_line_breaks_is_one_line_of_the_log() -> None:
    forged = "Look\r\nCompleted node pay\u2028x\x1b[2K\u202e"
    inside = ("node.started", "b[0]/x", {"wave": 1, "name": forged})
    shown = "Look\u23ceCompleted node pay\u23cex\u241b[2K\ufffd"
    assert entries_of(inside) == [("b[0]/x", "step_start", shown)]


@pytest.mark.parametrize(
    ("earlier", "kind"), [([STARTED, PROMPT], "llm_error"), ([STARTED], "error")]
)
def test_a_failure_has_one_entry_whose_type_says_whether_a_model_was_called(
    earlier: list[Any], kind: str
) -> None:
    end = {"error": {**ERROR["error"], "node": "a"}, "failures": ["a"]}
    log = entries_of(*earlier, ("node.failed", "a", ERROR), ("execution.failed", None, end))
    assert log[len(earlier) :] == [("a", kind, "no answer")]


def test_a_failure_of_a_new_attempt_before_its_call_is_a_plain_error() -> None:
    retry = ("node.retrying", "a", {**ERROR, "next_attempt": 2})
    log = entries_of(STARTED, PROMPT, retry, STARTED, ("node.failed", "a", ERROR))
    assert [kind for _, kind, _ in log] == [
        "step_start", "start_prompt", "llm_error", "step_start", "error",
    ]  # fmt: skip


def test_an_end_without_a_failed_node_is_a_system_entry() -> None:
    timeout = {"code": "run-timeout", "message": "took too long"}
    failed = ("execution.failed", None, {"error": timeout, "failures": ["a"]})
    assert entries_of(failed) == [("system", "error", "took too long")]
    cancelled = ("execution.cancelled", None, {"cause": "by request"})
    assert entries_of(cancelled) == [("system", "error", "Cancelled: by request")]


def test_a_logic_check_has_an_entry() -> None:
    data = {"event_type": "logic_check", "data": {"message": "1 holds", "handle": "condition-0"}}
    assert entries_of(("node.event", "b", data)) == [("b", "logic_check", "1 holds")]


def test_a_request_and_its_answer_are_two_entries() -> None:
    request = ("node.waiting", "b", {"request_id": "r", "request": {"prompt": "May I?"}})
    answer = ("node.answered", "b", {"request_id": "r", "answer": {"decision": "approve"}})
    assert entries_of(request, answer) == [
        ("b", "wait_input", "May I?"),
        ("b", "input_received", "approve"),
    ]


def test_a_timer_is_logged_with_its_own_type() -> None:
    timer = {"kind": "timer", "message": "Waits until noon.", "until": "noon"}
    waits = ("node.waiting", "b", {"request_id": "r", "request": timer})
    goes_on = {"request_id": "r", "answer": {"decision": "continue", "note": ""}}
    assert entries_of(waits, ("node.answered", "b", {**goes_on, "by": "timeout"})) == [
        ("b", "timer", "Waits until noon."),
        ("b", "timer", "The time has come."),
    ]
    assert entries_of(waits, ("node.answered", "b", goes_on))[1] == (
        "b",
        "input_received",
        "continue",
    )


def test_a_message_to_the_caller_is_an_entry() -> None:
    data = {"event_type": "message", "data": {"text": "Half way.", "extras": {"step": 1}}}
    assert entries_of(("node.event", "b", data)) == [("b", "message", "Half way.")]


def test_an_answer_entry_has_its_note_or_names_the_timeout() -> None:
    noted = {"request_id": "r", "answer": {"decision": "reject", "note": "too dear", "value": 1}}
    late = {"request_id": "r", "answer": {"decision": "reject", "note": ""}, "by": "timeout"}
    assert entries_of(("node.answered", "b", noted), ("node.answered", "b", late)) == [
        ("b", "input_received", "reject (with a value): too dear"),
        ("b", "input_received", "Nobody answered in time: reject"),
    ]


def test_pauses_and_resumes_by_request_are_system_entries() -> None:
    def reasons(kind: str, *all_of_them: str) -> list[Any]:
        return [(f"execution.{kind}", None, {"reason": reason}) for reason in all_of_them]

    paused = reasons("paused", "paused by request", "waiting for an answer")
    resumed = reasons("resumed", "resumed by request", "answered", "recovery")
    assert entries_of(*paused, *resumed) == [
        ("system", "wait_input", "Execution paused: paused by request"),
        ("system", "input_received", "Execution resumed: resumed by request"),
        (
            "system",
            "step_start",
            "Execution resumed in another process: the one before had ended or was cut off",
        ),
    ]
    waits = {"reason": "no answer yet", "kind": "waiting"}
    request = {"reason": "waiting for an answer", "kind": "requested"}
    assert entries_of(("execution.paused", None, waits), ("execution.paused", None, request)) == [
        ("system", "wait_input", "Execution paused: waiting for an answer"),
    ]


def test_reentered_and_cancelled_nodes_have_entries() -> None:
    log = entries_of(
        ("node.started", "a", {"wave": 1, "reentry": 1}), ("node.cancelled", "a", {"cause": "c"})
    )
    assert log == [
        ("a", "step_start", "Writer agent node, again: it was cut off"),
        ("a", "error", "Cancelled: c"),
    ]
    never_ran = Event("x1", 1, "t1", "node.cancelled", "a", None, {"cause": "c"})
    assert execution_log_entries([never_ran]) == []


@pytest.mark.parametrize(
    "kind", ["subagent_call_start", "subagent_call_end", "subagent_call_error"]
)
def test_subagent_calls_keep_their_own_type(kind: str) -> None:
    call = {"event_type": kind, "data": {"callId": "c1", "message": "look it up"}}
    bare = {"event_type": kind, "data": {"callId": "c1"}}
    assert entries_of(("node.event", "a", call), ("node.event", "a", bare)) == [
        ("a", kind, "look it up"),
        ("a", kind, '{"callId":"c1"}'),
    ]


def test_what_a_node_that_is_entered_again_emits_again_is_logged_once() -> None:
    call = {"call_id": "c1", "path": "a", "depth": 0, "agent": {"id": "m", "name": "M"}}
    started = {**call, "arguments": {"task": "Look."}}
    start = ("node.event", "a", {"event_type": "subagent_call_start", "data": started})
    end = ("node.event", "a", {"event_type": "subagent_call_end", "data": call})
    again = [PROMPT, start]  # after an answer to a question inside the call
    kinds = [kind for _, kind, _ in entries_of(STARTED, PROMPT, start, *again, end, *again, end)]
    assert kinds == ["step_start", "start_prompt", "subagent_call_start", "subagent_call_end"]
    other = (
        "node.event",
        "a",
        {"event_type": "prompt", "data": {"prompt": "Write.", "model": "n"}},
    )
    assert [kind for _, kind, _ in entries_of(PROMPT, other)] == ["start_prompt", "start_prompt"]
    later = [Event("x1", seq, "t", PROMPT[0], "a", seq, PROMPT[2]) for seq in (1, 2)]
    assert [entry.type for entry in execution_log_entries(later)] == ["start_prompt"] * 2


def test_other_events_make_no_entry() -> None:
    others = [
        ("execution.started", None, {"waves": 1}),
        ("wave.started", None, {"wave": 1, "nodes": ["a"]}),
        ("node.event", "a", {"event_type": "reasoning", "data": {}}),
        ("node.event", "a", {"event_type": 5, "data": None}),
        ("node.log", "a", {"message": "hm", "level": "info"}),
        ("node.blocked", "b", {"cause": {"node": "a"}}),
        ("usage", "a", {"input_tokens": 1}),
        ("execution.completed", None, {}),
    ]
    assert entries_of(*others) == []
