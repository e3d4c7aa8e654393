"""Lines about calls of tools, from the events of agents that the golden logs have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from planwave.cli.views.log_lines import ExecutionLog
from planwave.events import Event
from planwave.events.logs.call_lines import (
    CallEvents,
    model_call_text,
    question_text,
    recorded_lines,
)
from planwave.events.logs.typed_log import execution_log_entries
from tests.support.paths import ROOT

AGENTS = ROOT / "tests" / "contract" / "engine" / "golden_logs" / "logs" / "agents.json"


def events() -> Iterator[Event]:
    """Yield the events of a run of agents with approvals; numbers of seconds are left out there."""
    stored = json.loads(AGENTS.read_text().replace('"<seconds>"', "0.2"))
    for seq, (event_type, path, attempt, data) in enumerate(stored["events"], start=1):
        yield Event("e1", seq, "2026-01-01T00:00:00+00:00", event_type, path, attempt, data)


def test_each_call_and_each_answer_has_a_line() -> None:
    calls = CallEvents()
    lines = [line for event in events() if (line := calls.read(event)) is not None]
    assert lines[:5] == [
        "call look {} in 0.2 s → {}",
        "call lock failed in 0.2 s: there is no tool 'lock'. Did you mean 'look'?",
        'asks about send {"to": "Ada"}',
        'asks about send {"to": "Bob"}',
        "call look {} in 0.2 s → {}",
    ]
    assert 'approved send {"to": "Ada Lovelace"}' in lines
    assert 'rejected send {"to": "Bob"}: Not him.' in lines
    assert any(line.startswith('call send {"to": "Ada Lovelace"} in 0.2 s → ') for line in lines)
    assert not [*calls.unfinished()]


def test_a_call_that_was_cut_off_is_said_at_the_end() -> None:
    calls, before = CallEvents(), list(events())
    end = next(
        each.seq
        for each in before
        if each.data.get("event_type") == "tool_call_end" and each.data["data"]["name"] == "send"
    )
    for event in before[: end - 1]:
        calls.read(event)
    assert ("lead", 'call send {"to": "Ada Lovelace"} has begun and not ended') in [
        *calls.unfinished()
    ]


def test_the_log_of_an_execution_never_shows_an_approval_as_a_call() -> None:
    log = ExecutionLog()
    lines = [line for event in events() if (line := log.line_of(event)) is not None]
    about = [(line.node, line.text) for line in lines if "send" in line.text]
    assert about[0] == ("lead", 'asks about send {"to": "Ada"}')
    assert not [each for each in lines if "approve-" in f"{each.node} {each.text}"]
    assert not [text for _, text in about if text.startswith(("completed", "started"))]


def test_the_typed_log_has_the_same_lines_about_calls_with_their_levels() -> None:
    """But for calls of agents, which have a form of their own there."""
    log, calls = ExecutionLog(), CallEvents()
    read = [(event, calls.read(event), log.line_of(event)) for event in events()]
    lines = [
        (line.node, line.text, line.level)
        for event, call, line in read
        if call is not None
        and line is not None
        and not str(event.data.get("event_type")).startswith("subagent")
    ]
    entries = [
        (each.node_id, each.content, each.level)
        for each in execution_log_entries(events())
        if each.type.startswith("tool_call") or each.type in ("wait_input", "input_received")
    ]
    assert entries == lines
    assert ("lead", 'asks about send {"to": "Ada"}', "info") in entries
    assert not [each for each in execution_log_entries(events()) if "approve-" in each.node_id]


def test_failures_and_retries_have_level_and_traceback_in_the_typed_log() -> None:
    error = {"code": "node-failed", "message": "KeyError: x"}
    for event_type, level, content in (
        ("node.failed", "error", "KeyError: x"),
        ("node.retrying", "warning", "KeyError: x; tries again"),
    ):
        at, data = "2026-01-01T00:00:00+00:00", {"error": error, "traceback": "in a"}
        (entry,) = execution_log_entries([Event("e1", 2, at, event_type, "a", 1, data)])
        assert (entry.level, entry.content, entry.traceback) == (level, content, "in a")
        assert entry.as_json()["traceback"] == "in a"


CALL = {
    "ordinal": 3, "attempt": 1, "kind": "tool", "name": "charge", "duration_s": 0.2,
    "request": {"arguments": {"order": "1"}}, "result": {"cents": 100},
}  # fmt: skip
MODEL_CALL = {
    "kind": "model", "name": "box/box-1", "duration_s": 7.0,
    "usage": {"input_tokens": 1_200, "output_tokens": 30}, "result": {"text": "hi"},
}  # fmt: skip
AGENT = {
    "path": "clerk",
    "id": "clerk",
    "type": "agent",
    "calls": [MODEL_CALL, CALL],
}


def test_recorded_calls_of_a_document_are_lines() -> None:
    assert shown_of(AGENT) == [
        "model box/box-1 in 7.0 s → tokens 1,200 in, 30 out",
        'call charge {"order": "1"} in 0.2 s → {"cents": 100}',
    ]
    failed = {**CALL, "error": {"code": "x", "message": "no\nmoney"}, "traceback": "in charge"}
    assert [*recorded_lines({"calls": [failed]})] == [
        ('call charge {"order": "1"} failed in 0.2 s: no⏎money', failed)
    ]
    large = {"kind": "tool", "name": "read", "request_bytes": 9_000, "result_bytes": 8_000}
    assert shown_of({"calls": [large]}) == ['call read "9,000 bytes" → 8,000 bytes']
    down = {"kind": "model", "name": "box/box-1", "error": {"code": "refused", "message": "no"}}
    assert shown_of({"calls": [down]}) == ["model box/box-1 failed: no"]


def shown_of(node: dict[str, Any]) -> list[str]:
    """Return the lines of the recorded calls of a node."""
    return [line for line, _ in recorded_lines(node)]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "model box/box-1 in 7.0 s → tokens 1,200 in, 30 out"),
        ({"attempts": 3}, "model box/box-1 in 7.0 s, 3 attempts → tokens 1,200 in, 30 out"),
        (
            {"recorded": True},
            "model box/box-1 in 7.0 s, served from its record → tokens 1,200 in, 30 out",
        ),
    ],
)
def test_a_call_of_a_model_says_how_long_it_took_and_how_often_it_was_tried(
    more: dict[str, Any], text: str
) -> None:
    usage = {"input_tokens": 1_200, "output_tokens": 30, "duration_s": 7.0, **more}
    assert model_call_text("box/box-1", usage, usage) == text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"decision": "approve"}, 'approved charge {"order": "1"}'),
        ({"decision": "approve", "value": {"order": "2"}}, 'approved charge {"order": "2"}'),
        ({"decision": "reject", "note": "no"}, 'rejected charge {"order": "1"}: no'),
        ({"decision": "run_again"}, 'to be run again: charge {"order": "1"}'),
        (None, 'asks about charge {"order": "1"}'),
    ],
)
@pytest.mark.parametrize("key", ["approve-1-3", "interrupted-1-3-0", "repeat-1-3"])
def test_a_question_of_a_document_is_what_a_person_decided(
    answer: dict[str, Any] | None, text: str, key: str
) -> None:
    path = f"clerk[{key}]/charge"
    answers = [] if answer is None else [{"answer": answer}]
    node = {
        "path": path,
        "id": "charge",
        "type": "tool_approval",
        "status": "completed",
        "answers": answers,
    }
    assert question_text(node, {"clerk": AGENT, path: node}) == text
    assert question_text(AGENT, {}) is None
