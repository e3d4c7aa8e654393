"""The log of a service: a line for each thing that an operator acts on, made of what observers are told.

No line has the text of a prompt or of a result. Error texts hold no secrets: they are stored without
them, and whoever writes the log redacts it once more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from planwave.events import TERMINAL, Event, ExecutionState
from planwave.events.budget import Spending
from planwave.events.request_text import field_of, is_budget_request
from planwave.events.types import SET_ASIDE, TOOL_CALL_ENDS, pause_kind, typed_event
from planwave.events.usage import UsageTotal
from planwave.log_records import service_logger, write_record
from planwave.principals import Principal
from planwave.service.dependencies import Observer, Tracer
from planwave.settings import SLOW_CALL_S

if TYPE_CHECKING:
    from planwave.providers.protocols import CallReport
    from planwave.service.triggers.trigger_service import Trigger
    from planwave.storage.records import ExecutionRecord

EXECUTION_LOG: Final = service_logger("planwave.execution")
PROVIDER_LOG: Final = service_logger("planwave.provider")
TRIGGER_LOG: Final = service_logger("planwave.trigger")

Fields = dict[str, Any]
_Line = tuple[int, str, Fields]
_LINES_A_MINUTE: Final = 10
_OF_ONE_LINE: Final = frozenset({"reason", "execution", "request_id", "ms"})
"""Fields of a line that say nothing of those like it."""
_MINUTE_S: Final = 60.0
_PAID: Final = frozenset({"completed", "recorded", "cancelled"})
"""Outcomes of model calls that are no trouble."""
_TRIGGER_LEVELS: Final = {
    "started": logging.INFO,
    "duplicate": logging.INFO,
    "skipped": logging.INFO,
}
_TRIGGER_WORDS: Final = {"started": "fired"}


@dataclass(slots=True)
class _Running:
    """What the lines of a running execution say of it.

    Attributes:
        since: When it started first, UTC.
        before: What earlier processes used.
        spending: What this one used.
    """

    since: str | None
    before: UsageTotal
    spending: Spending = field(default_factory=Spending)


class ServiceLog(Observer):
    """Writes the log of executions, providers and triggers.

    Args:
        tracer: Names the spans of lines, where executions are traced.
        lines: ``all``, or only the ``failures`` of executions.
        slow_call_s: From how many seconds on a model call has a warning.
    """

    def __init__(
        self,
        tracer: Tracer | None = None,
        lines: Literal["all", "failures"] = "all",
        slow_call_s: float = SLOW_CALL_S,
    ) -> None:
        self._tracer, self._slow_call_s = tracer, slow_call_s
        self._lowest = logging.INFO if lines == "all" else logging.WARNING
        self._running: dict[str, _Running] = {}
        self._strangers = BoundedLines(TRIGGER_LOG)

    # -- executions --------------------------------------------------------------------------------

    def created(self, record: ExecutionRecord) -> None:
        fields = {"flow": record.flow, "plan": record.plan_id, "by": _who(record.created_by)}
        self._write(record.execution_id, logging.INFO, "created (not started)", fields)

    def started(self, state: ExecutionState, waited_s: float) -> None:
        self._running[state.execution_id] = _Running(state.started_at, state.usage)
        fields: Fields = {
            "flow": state.flow,
            "plan": state.plan_id,
            "trigger": field_of(state.trigger, "kind"),
            "trigger_id": field_of(state.trigger, "id"),
            "by": _who(Principal.from_json(state.created_by)),
            "nodes": len((state.graph or {}).get("nodes", ())),
            "queued_s": round(waited_s, 3),
        }
        words = "started" if state.started_at is None else "goes on"
        self._write(state.execution_id, logging.INFO, words, fields)

    def published(self, events: Sequence[Event]) -> None:
        for event in events:
            running = self._running.get(event.execution_id)
            if running is not None and event.seq:  # streamed text has no number, and costs nothing
                running.spending.observe(typed_event(event))
                if event.type == "execution.started" and running.since is None:
                    running.since = event.at
            if (line_of := LINES.get(event.type)) is None or (line := line_of(event)) is None:
                continue
            level, message, fields = line
            if event.path is not None:
                fields = {"node": event.path, "attempt": event.attempt, **fields}
            if event.type in TERMINAL:
                fields |= _totals(event, running)
            self._write(event.execution_id, level, message, fields, event.path)

    def execution_left(self, execution_id: str) -> None:
        self._running.pop(execution_id, None)

    def subscriber_dropped(self) -> None:
        EXECUTION_LOG.warning("subscriber dropped: it fell too far behind")

    # -- providers and triggers --------------------------------------------------------------------

    def model_called(self, call: CallReport) -> None:
        level, words = self._words_of(call)
        if not PROVIDER_LOG.isEnabledFor(level):
            return
        usage = None if call.reply is None else call.reply.usage
        write_record(
            PROVIDER_LOG,
            level,
            words,
            {
                "execution": call.execution_id,
                "node": call.path,
                "provider": call.provider,
                "model": call.model,
                "attempt": call.number if call.number > 1 or call.will_retry else None,
                "code": None if call.outcome == "completed" else call.outcome,
                "duration_s": round(call.duration_s, 3),
                "first_token_s": call.first_token_s and round(call.first_token_s, 3),
                "tokens": usage and usage.input_tokens + usage.output_tokens,
                "retry_after_s": call.retry_after_s,
                "server": call.server,
                **self._spans(call.execution_id, call.path),
            },
        )

    def _words_of(self, call: CallReport) -> tuple[int, str]:
        if call.outcome in _PAID:
            is_slow = call.duration_s > self._slow_call_s
            return (
                (logging.WARNING, "slow call")
                if is_slow
                else (logging.DEBUG, f"call {call.outcome}")
            )
        if call.will_retry:
            return logging.WARNING, "call failed, tried again"
        return logging.ERROR, "call failed"

    def trigger_delivered(
        self, trigger: Trigger, outcome: str, note: str, execution_id: str | None
    ) -> None:
        fields: Fields = {
            "kind": trigger.kind,
            "flow": trigger.flow,
            "trigger": trigger.trigger_id,
            "execution": execution_id,
            "reason": note or None,
        }
        level = _TRIGGER_LEVELS.get(outcome, logging.WARNING)
        words = _TRIGGER_WORDS.get(outcome, outcome)
        self._strangers.log(trigger.trigger_id, level, words, fields)

    # -- lines -------------------------------------------------------------------------------------

    def _write(
        self, execution_id: str, level: int, message: str, fields: Fields, path: str | None = None
    ) -> None:
        if level < self._lowest or not EXECUTION_LOG.isEnabledFor(level):
            return
        trace = fields.pop("traceback", None)
        about = {"execution": execution_id, **fields, **self._spans(execution_id, path)}
        write_record(EXECUTION_LOG, level, message, about, trace)

    def _spans(self, execution_id: str | None, path: str | None) -> Mapping[str, str]:
        if self._tracer is None or execution_id is None:
            return {}
        return self._tracer.span_ids(execution_id, path)


class BoundedLines:
    """Lines about what strangers do: at most some in a minute of each source, then their number.

    Args:
        log: Where they are written.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._counts: dict[str, int] = {}

    def log(self, source: str, level: int, message: str, fields: Fields) -> None:
        """Write a line, unless its source has had its lines of this minute."""
        if level == logging.INFO:
            write_record(self._log, level, message, fields)
            return
        if source not in self._counts:
            loop = asyncio.get_running_loop()
            loop.call_later(_MINUTE_S, self._end_minute, source, level, message, fields)
        self._counts[source] = self._counts.get(source, 0) + 1
        if self._counts[source] <= _LINES_A_MINUTE:
            write_record(self._log, level, message, fields)

    def _end_minute(self, source: str, level: int, message: str, fields: Fields) -> None:
        if (more := self._counts.pop(source) - _LINES_A_MINUTE) > 0:
            named = {name: fields[name] for name in fields if name not in _OF_ONE_LINE}
            words = "more of these in the last minute"
            about = {**named, "count": more}
            write_record(self._log, level, f"{message}: {words}", about)


def _who(principal: Principal | None) -> str | None:
    return None if principal is None else str(principal)


def _totals(event: Event, running: _Running | None) -> Fields:
    """Return the duration and the usage of an execution that has ended."""
    if running is None:
        return {}
    usage = running.spending.total
    tokens = sum(each.input_tokens + each.output_tokens for each in (running.before, usage))
    costs = [each.cost_usd for each in (running.before, usage) if each.cost_usd]
    fields: Fields = {"tokens": tokens or None, "cost_usd": round(sum(costs), 6) if costs else None}
    if running.since is not None:
        since = datetime.fromisoformat(running.since)
        fields["duration_s"] = round((datetime.fromisoformat(event.at) - since).total_seconds(), 3)
    return fields


# -- the line of each event ------------------------------------------------------------------------


def _error_fields(event: Event) -> Fields:
    error: Mapping[str, Any] = event.data.get("error") or {}
    return {
        name: error.get(key)
        for name, key in (("code", "code"), ("error", "message"), ("hint", "hint"))
    }


def _failed(event: Event) -> _Line:
    return logging.ERROR, "failed", _error_fields(event)


def _cancelled(event: Event) -> _Line:
    return logging.INFO, "cancelled", {"cause": event.data.get("cause")}


def _paused(event: Event) -> _Line:
    data, kind = event.data, pause_kind(event.data)
    fields = {"kind": kind, "request": data.get("request_id")}
    if is_budget_request(data.get("request")):
        return logging.WARNING, "paused: its budget is used up", fields
    if kind == SET_ASIDE:
        return logging.WARNING, "set aside", {"reason": data.get("reason")}
    return logging.INFO, "paused", fields


def _resumed(event: Event) -> _Line | None:
    data = event.data
    by = Principal.from_json(data.get("answered_by"))
    fields = {"reason": data.get("reason"), "request": data.get("request_id"), "by": _who(by)}
    return logging.INFO, "resumed", fields


def _warned(event: Event) -> _Line:
    return logging.WARNING, "warned", {"warning": event.data.get("message")}


def _node_failed(event: Event) -> _Line:
    handled = bool(event.data.get("handled"))
    fields = {**_error_fields(event), "traceback": event.data.get("traceback")}
    if handled:
        return logging.WARNING, "node failed, handled", fields
    return logging.ERROR, "node failed", fields


def _node_retrying(event: Event) -> _Line:
    data = event.data
    more = {name: data.get(name) for name in ("delay_s", "next_attempt", "traceback")}
    return logging.WARNING, "node retries", {**_error_fields(event), **more}


def _node_waiting(event: Event) -> _Line:
    data = event.data
    fields = {"request": data.get("request_id")}
    if data.get("interrupted"):
        return logging.WARNING, "cut off, asks what to do", fields
    return logging.INFO, "asks", fields


def _node_answered(event: Event) -> _Line:
    data = event.data
    by = _who(Principal.from_json(data.get("answered_by"))) or data.get("by")
    return logging.INFO, "answered", {"request": data.get("request_id"), "by": by}


def _tool_failed(event: Event) -> _Line | None:
    """Return the line of a call of a tool that failed; a call that a person rejected has failed nowhere."""
    call, error = event.data.get("data"), field_of(event.data.get("data"), "error")
    if event.data.get("event_type") not in TOOL_CALL_ENDS or error is None:
        return None
    if (code := field_of(error, "code")) == "rejected":
        return None
    fields = {
        "tool": field_of(call, "name"),
        "code": code,
        "error": field_of(error, "message"),
        "duration_s": field_of(call, "duration_s"),
        "traceback": event.data.get("traceback"),
    }
    return logging.WARNING, "tool failed", fields


def _plan_revised(event: Event) -> _Line:
    change = event.data["graph_change"]
    fields = {
        "change": event.data["change"],
        "changed": [each["id"] for each in change["nodes"]],
        "dropped": change["dropped_nodes"],
    }
    return logging.INFO, "plan changed", fields


def _plan_refused(event: Event) -> _Line:
    error = event.data["error"]
    fields = {"change": event.data["change"], "code": error["code"], "error": error["message"]}
    return logging.WARNING, "plan not changed", fields


LINES: Final[Mapping[str, Callable[[Event], _Line | None]]] = {
    "execution.completed": lambda _: (logging.INFO, "completed", {}),
    "execution.failed": _failed,
    "execution.cancelled": _cancelled,
    "execution.paused": _paused,
    "execution.resumed": _resumed,
    "execution.warned": _warned,
    "plan.requested": lambda event: (
        logging.INFO,
        "change of the plan requested",
        {"change": event.data["change"], "by": event.data["by"], "node": event.data.get("path")},
    ),
    "plan.revised": _plan_revised,
    "plan.refused": _plan_refused,
    "node.failed": _node_failed,
    "node.retrying": _node_retrying,
    "node.waiting": _node_waiting,
    "node.answered": _node_answered,
    "node.event": _tool_failed,
}
"""The lines of events, by type."""
WITHOUT_LINE: Final[Mapping[str, str]] = {
    "execution.created": "it has one where it is not started: see created()",
    "execution.started": "started() has the line, with how long it was queued",
    "wave.started": "nothing to act on, and one for each wave",
    "wave.completed": "nothing to act on, and one for each wave",
    "node.started": "nothing to act on, and one for each node; `planwave logs` has them",
    "node.completed": "nothing to act on, and one for each node; `planwave logs` has them",
    "node.skipped": "nothing to act on",
    "node.blocked": "the node that failed has a line",
    "node.parked": "the nested node that waits has a line",
    "node.unparked": "the nested node that waits has a line",
    "node.cancelled": "the execution that is cancelled has a line",
    "node.log": "what nodes say is in `planwave logs`",
    "node.delta": "text of a model",
    "usage": "the last line has the sum",
    "nested_run.opened": "nothing to act on",
    "nested_run.abandoned": "nothing to act on",
    "once.stored": "nothing to act on",
}
"""Why the other types have none; a test compares both with the events that there are."""
