"""The lines of the log of an execution: every type of event, one style, levels and tracebacks."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from planwave.cli.views.log_lines import WITHOUT_WORDS, WORDS, ExecutionLog, LogLine
from planwave.events import Event
from planwave.events.types import TypedEvent
from tests.support.engine.golden_events import NAMES, golden_documents, golden_events

AT = "2026-01-01T00:00:00+00:00"
TIMER = {"kind": "timer", "until": "2026-01-01T00:00:05+00:00"}


def line_of(event_type: str, /, path: str | None = "a", **data: Any) -> Any:
    """Return the line of one event, of a step unless told otherwise."""
    return ExecutionLog().line_of(Event("e1", 2, AT, event_type, path, 1, data))


def test_every_event_type_has_words_or_is_said_by_others() -> None:
    types = {get_args(get_args(kind)[0])[0] for kind in get_args(TypedEvent)}
    assert WORDS.keys().isdisjoint(WITHOUT_WORDS)
    assert {*WORDS, *WITHOUT_WORDS} == types


@pytest.mark.parametrize("name", NAMES)
def test_all_lines_have_one_style(name: str) -> None:
    """No sentence with a capital, and no name of the step, with which the line begins anyhow."""
    logs = {
        document["state"]["execution_id"]: ExecutionLog() for document in golden_documents(name)
    }
    for event in (each for document in golden_documents(name) for each in golden_events(document)):
        log = logs[event.execution_id]
        if (line := log.line_of(event)) is None or event.type in ("node.log", "node.event"):
            continue
        assert not line.text[:1].isupper(), line
        assert not line.text.startswith(f"{line.node} "), line


EXAMPLES: list[tuple[str, dict[str, Any], str, str]] = [
    ("node.completed", {"duration_s": 0.05}, "info", "completed in 0.1 s"),
    ("node.completed", {"reused": {"execution_id": "e0"}, "duration_s": 0.0}, "info", "reused from e0"),
    ("node.completed", {"given": True}, "info", "given with the inputs"),
    ("node.completed", {"changed": True}, "info", "given by the fork"),
    ("node.started", {}, "info", "started"),
    ("node.started", {"reentry": 1}, "info", "started again: it was cut off"),
    ("node.skipped", {"reason": "not taken"}, "info", "skipped: not taken"),
    ("node.blocked", {"cause": {"node": "b"}}, "warning", "did not run because b failed"),
    ("node.waiting", {"request_id": "r1", "request": {"prompt": "Pay?"}}, "info", "asks: Pay?"),
    (
        "node.waiting", {"request_id": "r1", "request": {"kind": "interrupted"}, "interrupted": True},
        "warning", "was cut off and may have acted: asks what to do",
    ),
    ("node.answered", {"request_id": "r1", "answer": "yes"}, "info", "answered: yes"),
    (
        "node.answered", {"request_id": "r1", "answer": "yes", "answered_by": {"kind": "local"}},
        "info", "answered by local user: yes",
    ),
    (
        "node.answered", {"request_id": "r1", "answer": "no", "by": "timeout"},
        "info", "nobody answered in time: goes on with no",
    ),
    (
        "usage",
        {"provider": "box", "model": "b1", "input_tokens": 9, "output_tokens": 1, "duration_s": 7.0},
        "info", "model box/b1 in 7.0 s → tokens 9 in, 1 out",
    ),
    (
        "execution.resumed",
        {"reason": "recovery"},
        "info",
        "goes on in another process: the one before had ended or was cut off",
    ),
    ("execution.resumed", {"reason": "answered"}, "debug", "goes on"),
    ("execution.paused", {"kind": "waiting"}, "debug", "paused: nothing is left to do but wait"),
    ("execution.paused", {"kind": "requested", "reason": "paused by request"}, "info", "paused: paused by request"),
    ("execution.paused", {"request_id": "r1", "request": {}}, "info", "asks for an approval of the plan"),
    ("execution.cancelled", {"cause": "by request"}, "info", "cancelled: by request"),
]  # fmt: skip


@pytest.mark.parametrize(("event_type", "data", "level", "text"), EXAMPLES)
def test_the_words_of_events(event_type: str, data: dict[str, Any], level: str, text: str) -> None:
    line = line_of(event_type, **data)
    assert (line.level, line.text) == (level, text)


def test_a_wait_for_a_time_is_no_question() -> None:
    log = ExecutionLog()

    def text(event_type: str, **data: Any) -> str:
        line = log.line_of(Event("e1", 2, AT, event_type, "a", 1, {"request_id": "r1", **data}))
        assert line is not None
        return line.text

    assert text("node.waiting", request=TIMER).startswith("waits until 20")
    assert text("node.answered", by="timeout", answer=None) == "goes on: the time has come"
    assert text("node.answered", answer=None) == "goes on before its time"


def test_a_failed_call_of_a_tool_has_its_traceback() -> None:
    error = {"code": "tool-failed", "message": "KeyError: '1042'"}
    call = {"call_id": "c1", "name": "look_up", "error": error, "duration_s": 0.1}
    line = line_of("node.event", event_type="tool_call_error", data=call, traceback="in shop.py")
    assert line == LogLine(
        AT, "warning", "a", "call look_up failed in 0.1 s: KeyError: '1042'", "in shop.py"
    )


def test_levels_and_tracebacks_of_failures_and_retries() -> None:
    error = {"code": "node-failed", "message": "KeyError: x"}
    failed = line_of("node.failed", error=error, traceback="in a")
    assert (failed.level, failed.text, failed.traceback) == ("error", "failed: KeyError: x", "in a")
    handled = line_of("node.failed", error=error, handled=True)
    assert handled.level == "warning"
    retrying = line_of("node.retrying", error=error, delay_s=2.0, next_attempt=2, traceback="in a")
    assert retrying.level == "warning"
    assert retrying.text == "attempt 1 failed: KeyError: x; tries again in 2.0 s"
    assert line_of("node.log", level="debug", message="x").level == "debug"
