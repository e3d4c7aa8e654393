from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.client.sse import EventStreamParser, ServerSentEvent, StreamPosition
from planwave.errors import NotFound
from planwave.events import Event

ID = "01900000-0000-7000-8000-000000000001"


def read(text: str) -> list[ServerSentEvent]:
    return list(EventStreamParser().feed(text.encode()))


def test_lines_become_events_without_comments() -> None:
    assert read(': ping\n\nid: 3\nevent: node.log\ndata: {"a":\ndata: 1}\n\ndata:x\n\n') == [
        ServerSentEvent("node.log", '{"a":\n1}'),
        ServerSentEvent("message", "x"),
    ]


@given(st.text(max_size=20), st.lists(st.integers(0, 80), max_size=6))
def test_parsing_does_not_depend_on_chunk_boundaries(text: str, cuts: Sequence[int]) -> None:
    data = json.dumps({"text": text}, ensure_ascii=False)
    sent = f"event: node.log\ndata: {data}\n\ndata: é\u2028\r\n\n".encode()
    places = [0, *sorted(min(cut, len(sent)) for cut in cuts), len(sent)]
    reader = EventStreamParser()
    found = [m for a, b in pairwise(places) for m in reader.feed(sent[a:b])]
    assert found == [ServerSentEvent("node.log", data), ServerSentEvent("message", "é\u2028")]


def test_incomplete_event_is_dropped() -> None:
    assert read("event: node.log\ndata: 1") == []


def stored(seq: int, kind: str = "node.log") -> Event:
    return Event(ID, seq, "t", kind, "a", 1, {})


def piece(offset: int, text: str, attempt: int = 1) -> Event:
    return Event(
        ID, 0, "t", "node.delta", "a", attempt, {"kind": "text", "text": text, "offset": offset}
    )


def new_events(progress: StreamPosition, events: Iterable[Event]) -> list[Event]:
    messages = [ServerSentEvent(event.type, json.dumps(event.as_json())) for event in events]
    return [event for message in messages for event in progress.new_events(message)]


def test_repeated_events_are_dropped() -> None:
    progress = StreamPosition()
    first = new_events(progress, [stored(1), piece(0, "ab"), stored(2)])
    assert first == [stored(1), piece(0, "ab"), stored(2)]
    again = new_events(progress, [stored(2), piece(0, "abcd"), stored(3, "execution.completed")])
    assert again == [piece(2, "cd"), stored(3, "execution.completed")]
    assert (progress.cursor, progress.is_over) == (3, True)


def test_text_after_a_gap_is_dropped() -> None:
    progress = StreamPosition()
    assert new_events(progress, [piece(3, "d")]) == []
    assert new_events(progress, [piece(0, "abcd")]) == [piece(0, "abcd")]


def test_attempts_have_separate_text() -> None:
    progress = StreamPosition()
    pieces = [piece(0, "ab"), piece(0, "xyz", attempt=2)]
    assert new_events(progress, pieces) == pieces


def test_discarded_text_is_followed_by_text_from_offset_0() -> None:
    progress = StreamPosition()
    discarded = stored(1, "node.event")._replace(data={"event_type": "text_discarded"})
    events = [piece(0, "abc"), discarded, piece(0, "x")]
    assert new_events(progress, events) == events
    assert new_events(progress, [discarded, piece(0, "xy")]) == [piece(1, "y")]


def test_problem_event_raises() -> None:
    problem = {"status": 404, "code": "not-found", "detail": "gone"}
    with pytest.raises(NotFound, match="gone"):
        list(StreamPosition().new_events(ServerSentEvent("problem", json.dumps(problem))))


@given(st.text(min_size=1, max_size=30), st.lists(st.integers(0, 30), max_size=20), st.data())
def test_reconnects_deliver_every_character_once(
    text: str, breaks: Sequence[int], data: Any
) -> None:
    progress, had = StreamPosition(), ""
    for end in [*breaks, len(text)]:
        known = text[: min(end, len(text))]
        cut = data.draw(st.integers(0, len(known)))
        for event in new_events(progress, [piece(0, known[:cut]), piece(cut, known[cut:])]):
            assert event.data["offset"] == len(had)
            had += event.data["text"]
    assert had == text
