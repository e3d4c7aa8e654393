"""The log of an execution as lines: one for each thing that people look for, in one style.

A line says what happened to a step, or to the execution itself: ``started``, ``completed in 2.0 s``,
``failed: KeyError: 'x'``. ``WORDS`` has the words of each type of event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from planwave.cli.formatting import (
    clock_time,
    error_text,
    json_object,
    one_line,
    status_reason,
)
from planwave.events import Event
from planwave.events.logs.call_lines import CallEvents, call_level, model_call_text, seconds_text
from planwave.events.logs.text_log import Level, level_of
from planwave.events.paths import path_prefix
from planwave.events.plan_payloads import change_text, request_of_change_text
from planwave.events.request_text import (
    TIMEOUT,
    answer_text,
    end_of_timer,
    is_budget_request,
    is_change_request,
    is_timer,
    request_text,
)
from planwave.events.types import MESSAGE, WAITING, error_message, message_text, pause_kind
from planwave.principals import Principal


class LogLine(NamedTuple):
    """One line of the log of an execution; ``node`` is a path, None for the execution itself."""

    at: str
    level: Level
    node: str | None
    text: str
    traceback: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the line as JSON, without what it has not."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class ExecutionLog:
    """Makes a line of each event that people look for in a log.

    Attributes:
        calls: The calls of tools so far.
    """

    def __init__(self) -> None:
        self.calls = CallEvents()
        self._timers = set[str]()

    def line_of(self, event: Event) -> LogLine | None:
        """Return the line of an event, None for one that has none."""
        trace = event.data.get("traceback")
        call = self.calls.read(event)
        if call is not None:
            agent = self.calls.agent_of(event.path or "")
            return LogLine(event.at, call_level(event, call), agent, one_line(call), trace)
        if self.calls.is_question(event.path):
            return None
        is_time = self._is_about_time(event)
        words_of = _TIMER_WORDS[event.type] if is_time else WORDS.get(event.type)
        if words_of is None or (words := words_of(event)) is None:
            return None
        return LogLine(event.at, level_of(event), event.path, one_line(words), trace)

    def _is_about_time(self, event: Event) -> bool:
        """Return whether an event begins or ends the wait of a step for a time."""
        if event.type == "node.waiting" and is_timer(event.data.get("request")):
            self._timers.add(str(event.data.get("request_id")))
        is_request = event.type in _TIMER_WORDS
        return is_request and str(event.data.get("request_id")) in self._timers


def _created(event: Event) -> str:
    return f"created: {event.data.get('title') or event.data.get('goal') or 'no title'}"


def _failed(event: Event) -> str:
    return f"failed: {error_text(event.data.get('error'))}"


def _cancelled(event: Event) -> str:
    return _with_reason("cancelled", event.data.get("cause"))


def _paused(event: Event) -> str:
    data = event.data
    if is_budget_request(request := data.get("request")):
        return f"asks for a higher budget: {request_text(request)}"
    if is_change_request(request):
        return f"asks for an approval of a change of the plan: {request_text(request)}"
    if data.get("request_id") is not None:
        return "asks for an approval of the plan"
    if pause_kind(data) == WAITING:  # the line of the step says for what
        return "paused: nothing is left to do but wait"
    return _with_reason("paused", data.get("reason"))


def _resumed(event: Event) -> str:
    data = event.data
    if "answer" in data:
        return f"answered{_by(data)}: {answer_text(data['answer'])}"
    match reason := data.get("reason"):
        case "recovery":
            return "goes on in another process: the one before had ended or was cut off"
        case "answered":  # the line of the step says what
            return "goes on"
        case _:
            return _with_reason("goes on", reason)


def _warned(event: Event) -> str:
    return str(event.data.get("message"))


def _wave_started(event: Event) -> str:
    inside = path_prefix(event.path) if event.path else ""
    names = ", ".join(f"{inside}{node}" for node in event.data.get("nodes") or ())
    return f"can start: {names}"


def _node_started(event: Event) -> str:
    if event.data.get("reentry"):
        return "started again: it was cut off"
    return "started" if (event.attempt or 1) == 1 else f"attempt {event.attempt} started"


def _node_completed(event: Event) -> str:
    data = event.data
    if reused := json_object(data.get("reused")):
        return f"reused from {reused.get('execution_id')}"
    if data.get("given"):
        return "given with the inputs"
    if data.get("changed"):
        return "given by the fork"
    took = data.get("duration_s")
    return "completed" if took is None else f"completed in {seconds_text(float(took))}"


def _node_failed(event: Event) -> str:
    return f"failed: {status_reason('failed', event.data)}"


def _node_retrying(event: Event) -> str:
    return f"attempt {event.attempt} failed: {status_reason('retrying', event.data)}"


def _node_skipped(event: Event) -> str:
    return _with_reason("skipped", event.data.get("reason"))


def _node_blocked(event: Event) -> str:
    return f"did not run {status_reason('blocked', event.data)}"


def _node_cancelled(event: Event) -> str | None:
    return None if event.attempt is None else _cancelled(event)  # else it never ran


def _node_waiting(event: Event) -> str:
    request = event.data.get("request")
    if event.data.get("interrupted"):
        return "was cut off and may have acted: asks what to do"
    return f"asks: {request_text(request)}"


def _node_answered(event: Event) -> str:
    answer = answer_text(event.data.get("answer"))
    if event.data.get("by") == TIMEOUT:
        return f"nobody answered in time: goes on with {answer}"
    return f"answered{_by(event.data)}: {answer}"


def _timer_set(event: Event) -> str:
    return f"waits until {clock_time(end_of_timer(event.data.get('request')))}"


def _timer_ended(event: Event) -> str:
    if event.data.get("by") == TIMEOUT:
        return "goes on: the time has come"
    return f"goes on before its time{_by(event.data)}"


def _node_log(event: Event) -> str:
    return str(event.data.get("message"))


def _node_event(event: Event) -> str | None:
    if event.data.get("event_type") != MESSAGE:
        return None
    return f"message: {message_text(event.data.get('data'))}"


def _usage(event: Event) -> str:
    data = event.data
    name = f"{data.get('provider') or 'unknown'}/{data.get('model') or 'unknown'}"
    return model_call_text(name, data, data)


def _with_reason(words: str, reason: object) -> str:
    return f"{words}: {reason}" if reason else words


def _by(data: Mapping[str, Any]) -> str:
    who = Principal.from_json(data.get("answered_by"))
    return "" if who is None else f" by {who}"


WORDS: Final[Mapping[str, Callable[[Event], str | None]]] = {
    "execution.created": _created,
    "execution.started": lambda _: "started",
    "execution.paused": _paused,
    "execution.resumed": _resumed,
    "execution.warned": _warned,
    "execution.completed": lambda _: "completed",
    "execution.failed": _failed,
    "execution.cancelled": _cancelled,
    "plan.requested": lambda event: f"a change of the plan {request_of_change_text(event.data)}",
    "plan.refused": lambda event: f"plan not changed: {error_message(event.data['error'])}",
    "plan.revised": lambda event: f"plan changed: {change_text(event.data)}",
    "wave.started": _wave_started,
    "node.started": _node_started,
    "node.retrying": _node_retrying,
    "node.waiting": _node_waiting,
    "node.answered": _node_answered,
    "node.completed": _node_completed,
    "node.failed": _node_failed,
    "node.skipped": _node_skipped,
    "node.blocked": _node_blocked,
    "node.cancelled": _node_cancelled,
    "node.log": _node_log,
    "node.event": _node_event,
    "usage": _usage,
}
"""The words of events, by type; calls of tools have those of ``CallEvents``."""
WITHOUT_WORDS: Final = frozenset(
    {
        "wave.completed", "node.parked", "node.unparked", "node.delta", "nested_run.opened",
        "nested_run.abandoned", "once.stored",
    }
)  # fmt: skip
"""Types that have no line: the lines of steps say the same. A test compares both with the types there are."""
_TIMER_WORDS: Final[Mapping[str, Callable[[Event], str]]] = {
    "node.waiting": _timer_set,
    "node.answered": _timer_ended,
}
