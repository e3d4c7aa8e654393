"""Timeline of a node: the events that changed its status, in order.

The state of a node shows only its present status. The timeline lists every start, every failed
attempt, every request and every answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from planwave.events.request_text import PERSON, field_of
from planwave.events.types import (
    TOOL_CALL_ENDS,
    TOOL_CALL_STARTS,
    CancelledData,
    Event,
    NodeAnsweredData,
    NodeBlockedData,
    NodeCompletedData,
    NodeEventData,
    NodeFailedData,
    NodeLogData,
    NodeRetryingData,
    NodeSkippedData,
    NodeStartedData,
    NodeWaitingData,
)


class TimelineEntry(NamedTuple):
    """One entry of a node's timeline.

    Attributes:
        seq: Number of the event that the entry was made from.
        at: Time of the event, UTC.
        what: ``started entered-again tried-again asked answered called warned completed failed skipped
            blocked cancelled``; ``called`` is the end of a call of a tool, ``warned`` a warning that the
            node logged; ``given reused changed`` for a result without a run: preset by
            the client, reused from the parent of the fork, or changed by the client in the fork.
        attempt: Number of the attempt, None where there was none.
        details: More fields of the entry, as JSON.
    """

    seq: int
    at: str
    what: str
    attempt: int | None
    details: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return ``{"seq", "at", "what", "attempt"?}`` and the details."""
        document: dict[str, Any] = {"seq": self.seq, "at": self.at, "what": self.what}
        if self.attempt is not None:
            document["attempt"] = self.attempt
        return document | self.details


def timelines(events: Iterable[Event]) -> dict[str, list[TimelineEntry]]:
    """Return the timelines of all nodes that have entries, by path."""
    entries: dict[str, list[TimelineEntry]] = {}
    arguments: dict[tuple[str | None, object], Any] = {}
    ended: set[tuple[str, int | None, object]] = set()
    for event in events:
        if event.type == "node.event" and event.data.get("event_type") in TOOL_CALL_STARTS:
            call = event.data.get("data")
            arguments[event.path, field_of(call, "call_id")] = field_of(call, "arguments")
        tell = _CONVERTERS.get(event.type)
        if tell is not None and event.path is not None and (parts := tell(event.data)):
            what, facts = parts
            if what == "called":
                call_id = facts.pop("call_id", None)
                if (key := (event.path, event.attempt, call_id)) in ended:
                    continue  # an attempt that is entered again tells the ends of its calls once more
                ended.add(key)
                given = arguments.get((event.path, call_id))
                facts = {"arguments": given, **facts} if given is not None else facts
            step = TimelineEntry(event.seq, event.at, what, event.attempt, facts)
            entries.setdefault(event.path, []).append(step)
    return entries


def reentries(timeline: Iterable[TimelineEntry]) -> int:
    """Return how often a node was entered again after its process had ended."""
    return sum(step.what == "entered-again" for step in timeline)


def answers(timeline: Iterable[TimelineEntry]) -> list[dict[str, Any]]:
    """Return the answers to a node's requests: ``[{"request_id", "at", "by", "answered_by"?, "answer", …}]``."""
    return [{"at": step.at, **step.details} for step in timeline if step.what == "answered"]


_EntryParts = tuple[str, dict[str, Any]]


def _started(data: NodeStartedData) -> _EntryParts:
    reentry = data.get("reentry")
    return ("entered-again", {"reentry": reentry}) if reentry else ("started", {})


def _retrying(data: NodeRetryingData) -> _EntryParts:
    named = ("error", "delay_s", "next_attempt")
    return "tried-again", {**{name: data.get(name) for name in named}, **_traceback(data)}


def _waiting(data: NodeWaitingData) -> _EntryParts:
    facts = {"request_id": data["request_id"], "request": data.get("request")}
    if (timeout_s := data.get("timeout_s")) is not None:
        facts |= {"timeout_s": timeout_s, "timeout_answer": data.get("timeout_answer")}
    return "asked", facts


def _answered(data: NodeAnsweredData) -> _EntryParts:
    answer = data.get("answer")
    facts = {"request_id": data["request_id"], "by": data.get("by") or PERSON, "answer": answer}
    if (who := data.get("answered_by")) is not None:
        facts["answered_by"] = who
    for name in ("decision", "note"):
        if (value := field_of(answer, name)) is not None:
            facts[name] = value
    return "answered", facts


def _called(data: NodeEventData) -> _EntryParts | None:
    if data["event_type"] not in TOOL_CALL_ENDS:
        return None
    named = ("call_id", "name", "result", "error", "duration_s", "ordinal")
    values = {name: field_of(data.get("data"), name) for name in named}
    present = {name: value for name, value in values.items() if value is not None}
    return "called", {**present, **_traceback(data)}


def _logged(data: NodeLogData) -> _EntryParts | None:
    if data.get("level") != "warning":
        return None
    return "warned", {"message": data.get("message")}


def _completed(data: NodeCompletedData) -> _EntryParts:
    if reused := data.get("reused"):
        return "reused", {"reused": reused}
    for what in ("given", "changed"):
        if data.get(what):
            return what, {}
    return "completed", {"duration_s": data.get("duration_s")}


def _failed(data: NodeFailedData) -> _EntryParts:
    handled = bool(data.get("handled"))
    return "failed", {"error": data.get("error"), "handled": handled, **_traceback(data)}


def _traceback(data: NodeFailedData | NodeRetryingData | NodeEventData) -> dict[str, str]:
    return {"traceback": data["traceback"]} if "traceback" in data else {}


def _skipped(data: NodeSkippedData) -> _EntryParts:
    return "skipped", {"reason": data.get("reason")}


def _blocked(data: NodeBlockedData) -> _EntryParts:
    return "blocked", {"cause": data.get("cause")}


def _cancelled(data: CancelledData) -> _EntryParts:
    return "cancelled", {"cause": data.get("cause")}


_CONVERTERS: Final[Mapping[str, Callable[[Any], _EntryParts | None]]] = {
    "node.started": _started,
    "node.retrying": _retrying,
    "node.waiting": _waiting,
    "node.answered": _answered,
    "node.event": _called,
    "node.log": _logged,
    "node.completed": _completed,
    "node.failed": _failed,
    "node.skipped": _skipped,
    "node.blocked": _blocked,
    "node.cancelled": _cancelled,
}
