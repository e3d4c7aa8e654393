"""Calls as lines: what an agent called with which arguments, what came of it, what a person said; and of models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from planwave.events.logs.text_log import Level, one_line
from planwave.events.paths import nested_prefix, path_prefix
from planwave.events.request_text import TIMEOUT, field_of
from planwave.events.types import (
    TOOL_CALL_ENDS,
    TOOL_CALL_STARTS,
    Event,
    UsageData,
    error_message,
    typed_event,
)
from planwave.events.usage import NO_USAGE

_VALUE_CHARS: Final = 200
QUESTION_TYPE: Final = "tool_approval"
"""The type of the node with which an agent asks about a call; see docs/architecture.md."""
_DECISIONS: Final = {
    "approve": "approved",
    "reject": "rejected",
    "run_again": "to be run again:",
    "give_result": "given a result:",
    "fail": "to fail:",
}
_QUESTION_KEY: Final = re.compile(r"\[[a-z]+-(\d+)-(\d+)[^\]]*\]/[^/]*$")
"""The end of the path of a question: its key has the attempt and the number of the call."""
_NO_CALLS: Final = ("fetch", "http")
"""Kinds of recorded calls that neither ask a model nor are made by name."""


class CallEvents:
    """Follows the calls of an execution, event by event.

    An approval of a call is a graph of one node inside the agent. Its events are lines about the call: its
    completion reads as if the call had been made.
    """

    def __init__(self) -> None:
        self._question_graphs = set[str]()
        self._questions = set[str]()
        self._asked: dict[str, Any] = {}
        self._open: dict[tuple[str, str], str] = {}
        self._ended = set[tuple[str, int | None, str]]()

    def is_question(self, path: str | None) -> bool:
        """Return whether a node only asks about a call."""
        # A wave is of the whole graph: its path has no node.
        return path is not None and not self._questions.isdisjoint((path_prefix(path), f"{path}/"))

    def agent_of(self, path: str) -> str:
        """Return the agent of a node that only asks about a call of it; any other node is itself."""
        return path.rpartition("[")[0] if self.is_question(path) else path

    def read(self, event: Event) -> str | None:
        """Return the line of an event about a call, None for any other event."""
        typed, path = typed_event(event), event.path or ""
        if typed.type == "nested_run.opened":
            self._note_run(path, typed.data)
        elif typed.type == "node.event":
            return self._call_line(path, event.attempt, event.data)
        elif self.is_question(path):
            return self._question_line(path, event)
        return None

    def unfinished(self) -> Iterator[tuple[str, str]]:
        """Yield the agent and the line of each call that has begun and not ended."""
        for (path, _), call in self._open.items():
            yield path, f"call {call} has begun and not ended"

    def _note_run(self, path: str, data: Mapping[str, Any]) -> None:
        nodes: list[Mapping[str, Any]] = _object(data.get("document")).get("nodes") or []
        if [node.get("type") for node in nodes] == [QUESTION_TYPE]:
            self._question_graphs.add(data["graph"])
        if data["graph"] in self._question_graphs:
            self._questions.add(nested_prefix(path, data["key"]))

    def _call_line(self, path: str, attempt: int | None, data: Mapping[str, Any]) -> str | None:
        """Return the line of a call that has ended; an agent that is entered again repeats its events."""
        kind, call = data.get("event_type"), _object(data.get("data"))
        key = path, str(call.get("call_id"))
        if (path, attempt, key[1]) in self._ended:
            return None
        if kind in TOOL_CALL_STARTS:
            self._open[key] = call_text(call.get("name"), call.get("arguments"))
            return None
        if kind not in TOOL_CALL_ENDS:
            return None
        self._ended.add((path, attempt, key[1]))
        begun = self._open.pop(key, None) or call_text(call.get("name"), call.get("arguments"))
        return f"call {begun}{outcome_text(call)}"

    def _question_line(self, path: str, event: Event) -> str | None:
        name = path.rpartition("/")[2]
        if event.type == "node.waiting":
            self._asked[path] = field_of(event.data.get("request"), "value")
            return f"asks about {call_text(name, self._asked[path])}"
        if event.type == "node.answered":
            by = " (nobody answered in time)" if event.data.get("by") == TIMEOUT else ""
            return f"{decision_text(name, event.data.get('answer'), self._asked.get(path))}{by}"
        return None


def call_text(name: object, arguments: Any) -> str:
    """Return a call with its arguments: ``look_up {"order": "1"}``."""
    given = "" if arguments is None else f" {value_text(arguments)}"
    return f"{one_line(str(name))}{given}"


def value_text(value: Any) -> str:
    """Return a value as JSON on one line, cut where it is long."""
    return _shortened(json.dumps(value, ensure_ascii=False, default=str))


def _shortened(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _VALUE_CHARS else f"{line[: _VALUE_CHARS - 1]}…"


def _object(value: Any) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def outcome_text(call: Mapping[str, Any]) -> str:
    """Return what came of a call and how long it took: `` in 0.2 s → {"cents": 100}``."""
    took = _took(call)
    if call.get("error") is not None:
        return f" failed{took}: {_shortened(error_message(call['error']))}"
    if "result_bytes" in call:
        return f"{took} → {call['result_bytes']:,} bytes"
    return f"{took} → {value_text(call.get('result'))}"


def model_call_text(name: object, usage: Mapping[str, Any], call: Mapping[str, Any]) -> str:
    """Return a call of a model: ``model openai/gpt-5 in 7.0 s, 3 attempts → tokens 1,439 in, 821 out``.

    Args:
        name: The provider and the model.
        usage: Its tokens.
        call: How long it took, ``attempts`` where there was more than one, or its ``error``.
    """
    if call.get("error") is not None:
        return f"model {one_line(str(name))}{outcome_text(call)}"
    attempts = call.get("attempts")
    more = f", {attempts} attempts" if isinstance(attempts, int) and attempts > 1 else ""
    recorded = ", served from its record" if usage.get("recorded") else ""
    tokens = NO_USAGE.plus(cast("UsageData", usage))
    sums = f"tokens {tokens.input_tokens:,} in, {tokens.output_tokens:,} out"
    return f"model {one_line(str(name))}{_took(call)}{more}{recorded} → {sums}"


def _took(call: Mapping[str, Any]) -> str:
    took = call.get("duration_s")
    return f" in {seconds_text(took)}" if isinstance(took, int | float) else ""


def seconds_text(seconds: float) -> str:
    """Return a duration as the log has it: ``0.2 s``."""
    return f"{seconds:,.1f} s"


def call_level(event: Event, line: str) -> Level:
    """Return the level of the line of an event about a call."""
    has_failed = field_of(event.data.get("data"), "error") is not None
    return "warning" if has_failed or line.startswith("rejected") else "info"


def decision_text(name: object, answer: Any, asked: Any) -> str:
    """Return what a person decided about a call: ``approved charge {"order": "1"}``."""
    decision = field_of(answer, "decision")
    word = _DECISIONS.get(str(decision), one_line(str(decision)))
    changed = field_of(answer, "value")
    is_changed = decision == "approve" and "value" in _object(answer)
    arguments = _object(changed) if is_changed else asked
    note = field_of(answer, "note")
    return f"{word} {call_text(name, arguments)}" + (f": {one_line(str(note))}" if note else "")


def recorded_lines(node: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a line for each recorded call of a model or a tool by a node of a document, and the call."""
    for call in map(_object, node.get("calls") or ()):
        if call.get("kind") == "model":
            yield model_call_text(call.get("name"), _object(call.get("usage")), call), call
        elif call.get("kind") not in _NO_CALLS:
            request = _object(call.get("request")).get("arguments", call.get("request"))
            if (size := call.get("request_bytes")) is not None:
                request = f"{size:,} bytes"
            yield f"call {call_text(call.get('name'), request)}{outcome_text(call)}", call


def question_text(node: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return what became of a question about a call, for a node of a document; None for other nodes.

    Args:
        node: The node.
        nodes: All nodes of the document, by path: the agent has the arguments of the call.
    """
    if node.get("type") != QUESTION_TYPE:
        return None
    path, answers = str(node.get("path")), [*map(_object, node.get("answers") or ())]
    name, arguments = path.rpartition("/")[2], _arguments_at(path, nodes)
    if not answers:
        return f"asks about {call_text(name, arguments)}"
    return decision_text(name, answers[-1].get("answer"), arguments)


def _arguments_at(path: str, nodes: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the arguments of the call that a question is about, where it was recorded."""
    if (key := _QUESTION_KEY.search(path)) is None:
        return None
    agent, (attempt, ordinal) = nodes.get(path[: key.start()], {}), map(int, key.groups())
    for call in map(_object, agent.get("calls") or ()):
        if (call.get("attempt"), call.get("ordinal")) == (attempt, ordinal):
            return _object(call.get("request")).get("arguments")
    return None
