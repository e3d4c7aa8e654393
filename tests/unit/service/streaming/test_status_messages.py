"""A snapshot is the whole state as JSON, however it is put together."""

from __future__ import annotations

import json
from typing import Any
from weakref import ref

import pytest

from planwave.events import Event, ExecutionState
from planwave.events.node_state import NodeState
from planwave.service.streaming.live_execution import LiveExecution
from planwave.service.streaming.status_messages import snapshot_of
from planwave.service.streaming.subscriber_queue import BacklogLimits
from planwave.service.streaming.subscriptions import LiveExecutions
from planwave.storage.sqlite.memory import MemoryStore

CREATED = {"graph": {"nodes": [{"id": each, "type": "t"} for each in "abcd"], "edges": []}}
USED = {"input_tokens": 3, "output_tokens": 4, "provider": "p", "model": "m"}
HISTORY: list[tuple[str, str | None, int | None, dict[str, Any]]] = [
    ("execution.created", None, None, CREATED),
    ("execution.started", None, None, {"waves": 4, "linked": ["d"]}),
    ("wave.started", None, None, {"wave": 1, "nodes": ["a"]}),
    ("node.started", "a", 1, {"wave": 1}),
    ("node.delta", "a", 1, {"kind": "text", "text": "half a s", "offset": 0}),
    ("node.started", "a/own/ä", 1, {"wave": 1, "name": "Nested"}),
    ("node.event", "a", 1, {"event_type": "prompt", "data": {"messages": []}}),
    ("usage", "a", 1, USED),
    ("node.retrying", "a", 1, {"error": {"code": "c", "message": "m"}, "next_attempt": 2}),
    ("node.started", "a", 2, {"wave": 1}),
    ("node.completed", "a", 2, {"outputs": {"output": {"type": "text", "value": "\ud800 \0"}}}),
    ("node.skipped", "b", None, {"reason": "no input", "handle": "input"}),
    ("node.completed", "c", 1, {"outputs": {"output": {"type": "integer", "value": 2**70}}}),
    ("execution.completed", None, None, {}),
]


def events() -> list[Event]:
    received, seq = [], 0
    for kind, path, attempt, data in HISTORY:
        seq += kind != "node.delta"
        number = 0 if kind == "node.delta" else seq
        received.append(Event("x", number, f"t{seq}", kind, path, attempt, data))
    return received


def test_snapshot_is_the_whole_state_after_every_event() -> None:
    state = ExecutionState()
    for event in events():
        state.apply(event)
        received = json.loads(snapshot_of(state, ["said"]))
        whole = {"type": "snapshot", **state.as_json(), "logs": ["said"]}
        assert received == json.loads(json.dumps(whole)), event.type
    assert received["nodes"][3]["status"] == "linked"


@pytest.mark.parametrize("path", ["ä", '"', "a/b", "\ud800", "/", ""])
def test_untouched_node_is_serialized_under_any_path(path: str) -> None:
    state = ExecutionState()
    assert state.node(path).is_untouched
    assert json.loads(snapshot_of(state, []))["nodes"] == [NodeState(path).as_json()]


@pytest.mark.parametrize(
    "known",
    [
        {"status": "running"}, {"attempt": 1}, {"name": "n"}, {"wave": 1}, {"handled": True},
        {"outputs": {}}, {"prompt": {}}, {"answer": 0}, {"provider": "p"},
    ],
)  # fmt: skip
def test_node_with_any_fact_is_not_untouched(known: dict[str, Any]) -> None:
    assert not NodeState("a", **known).is_untouched


def test_node_with_streamed_text_is_not_untouched() -> None:
    node = NodeState("a")
    node.stream("text", 0, "x")
    assert not node.is_untouched


class _Marked(bytes):
    """Bytes that can be watched being freed."""

    mark: object


class _Mark:
    pass


async def test_snapshot_is_freed_after_it_was_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    marks: list[ref[_Mark]] = []

    def marked(live: LiveExecution, **_: object) -> bytes:
        snapshot = _Marked(b"{}")
        snapshot.mark = mark = _Mark()
        marks.append(ref(mark))
        return snapshot

    monkeypatch.setattr(LiveExecution, "snapshot", marked)
    lives = LiveExecutions(MemoryStore())
    live = lives.create(events()[0])
    live.holders += 1
    async with lives.subscribe("x", None, BacklogLimits(), with_snapshot=True) as following:
        assert following.snapshot == b"{}"
        assert marks[0]() is not None
        following.snapshot = None
        assert marks[0]() is None
