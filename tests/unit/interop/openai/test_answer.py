"""Executions as answers: text up to a stop, what is retracted, calls, ends."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.events import Event
from planwave.events.chat_chunks import AnswerHead
from planwave.events.stream.parts import End, RequestedCall, Retraction
from planwave.interop.openai.answer import StopTexts, answer_parts, whole_answer
from planwave.interop.openai.chat_format import ChatChunks, finish_reason
from tests.unit.events.stream.test_visibility import document
from tests.unit.events.test_chat_chunks import Story, collected, content

GRAPH = {"nodes": [{"id": "a", "type": "agent", "name": "A"}], "edges": []}
AT = "2026-01-01T00:00:00.000000+00:00"


def history(*steps: tuple[str, dict[str, Any]], end: str = "execution.completed") -> list[Event]:
    """Return the events of a run of one agent; deltas have no number."""
    kinds = [
        ("execution.created", {"goal": "", "title": "", "graph": GRAPH}),
        ("execution.started", {}),
        *steps,
        (end, {"cause": "no"} if end.endswith("cancelled") else {}),
    ]
    made: list[Event] = []
    seq = 0
    for kind, data in kinds:
        seq += kind != "node.delta"
        of_node = kind.startswith("node.")
        path, attempt = ("a", data.pop("attempt", 1)) if of_node else (None, None)
        made.append(Event("e", 0 if kind == "node.delta" else seq, AT, kind, path, attempt, data))
    return made


def started(attempt: int = 1) -> tuple[str, dict[str, Any]]:
    return "node.started", {"inputs": {}, "attempt": attempt}


def delta(text: str, offset: int = 0, attempt: int = 1) -> tuple[str, dict[str, Any]]:
    return "node.delta", {"kind": "text", "text": text, "offset": offset, "attempt": attempt}


def completed(text: str, attempt: int = 1) -> tuple[str, dict[str, Any]]:
    outputs = {"output": {"type": "text", "value": text}}
    return "node.completed", {"outputs": outputs, "duration_s": 0.1, "attempt": attempt}


async def as_stream(events: Iterable[Event]) -> AsyncIterator[Event]:
    for event in events:
        yield event


async def parts_of(events: Iterable[Event], stops: Sequence[str] = ()) -> list[Any]:
    return [part async for part in answer_parts(as_stream(events), stops)]


def shown(parts: Iterable[Any]) -> list[str | int]:
    """The text of each part, or how much of the text before it is void."""
    return [
        part.chars if isinstance(part, Retraction) else part.text
        for part in parts
        if not isinstance(part, End)
    ]


async def test_text_of_a_failed_attempt_is_retracted() -> None:
    retrying = "node.retrying", {"error": {"code": "x", "message": "m"}, "delay_s": 0, "attempt": 1}
    events = history(
        started(),
        delta("one tw"),
        retrying,
        started(2),
        delta("three", 0, 2),
        completed("three", 2),
    )
    parts = await parts_of(events)
    assert shown(parts) == ["one tw", 6, "three"]
    answer = await whole_answer(answer_parts(as_stream(events)))
    assert (answer.text, answer.end.error) == ("three", None)


async def test_calls_for_the_client_end_the_answer() -> None:
    call = {"id": "c1", "name": "weather", "arguments": "{}"}
    events = history(
        started(),
        ("node.event", {"event_type": "caller_tool_calls", "data": {"calls": [call]}}),
        completed(""),
    )
    (end,) = await parts_of(events)
    assert (end.calls, finish_reason(end)) == (
        (RequestedCall("c1", "weather", "{}"),),
        "tool_calls",
    )


async def test_cancelled_execution_is_a_failure() -> None:
    (end,) = await parts_of(history(end="execution.cancelled"))
    assert (end.error["message"], end.error["code"]) == ("no", "cancelled")


async def test_stop_may_come_in_pieces() -> None:
    events = history(
        started(), delta("one E"), delta("N", 5), delta("D two", 6), completed("one END two")
    )
    parts = await parts_of(events, ["END"])
    assert shown(parts[:-1]) == ["one "]


@given(
    st.lists(st.text(alphabet="ab.", max_size=4), max_size=8),
    st.lists(st.text(alphabet="ab", min_size=1, max_size=3), min_size=1, max_size=3),
)
def test_stopped_text_is_what_comes_before_the_first_stop(
    pieces: list[str], stops: list[str]
) -> None:
    reader = StopTexts(stops)
    passed = "".join(map(reader.push, pieces)) + reader.flush()
    whole = "".join(pieces)
    # Of stops that overlap, the one that is complete first ends the text.
    ends = [at + len(stop) for stop in stops if (at := whole.find(stop)) >= 0]
    if not ends:
        assert passed == whole
        return
    assert whole.startswith(passed)
    assert not any(stop in passed for stop in stops)
    assert any(whole[len(passed) :].startswith(stop) for stop in stops)


@pytest.mark.parametrize(("chars", "passed"), [(2, 0), (3, 1)])
def test_held_text_is_retracted_first(chars: int, passed: int) -> None:
    reader = StopTexts(["END"])
    assert reader.push("one EN") == "one "
    assert reader.retract(chars) == passed
    assert reader.flush() == ""


async def test_stop_of_a_failed_attempt_does_not_end_the_next_one() -> None:
    retrying = "node.retrying", {"error": {"code": "x", "message": "m"}, "delay_s": 0, "attempt": 1}
    events = history(
        started(),
        delta("one END more"),
        delta(" and more", 12),
        retrying,
        started(2),
        delta("three EN", 0, 2),
        delta("D four", 8, 2),
        completed("three END four", 2),
    )
    answer = await whole_answer(answer_parts(as_stream(events), ["END"]))
    assert answer.text == "three "


async def test_the_whole_answer_is_that_of_the_changed_graph() -> None:
    story = Story(document("a b")).delta("a", "Hel").done("a", "Hello").done("b", "World")
    story.change(document("a b c", "a>c")).done("c", "Bye")("execution.completed")
    answer = await whole_answer(answer_parts(as_stream(story.events)))
    assert answer.text == "World\n\nBye"
    stopped = await whole_answer(answer_parts(as_stream(story.events), ["ello"]))
    assert stopped.text == "World\n\nBye", "the stop was in text that is void"


async def test_a_stream_that_can_take_nothing_back_says_nothing_twice() -> None:
    story = Story(document("a b")).delta("a", "Hel").done("a", "Hello").done("b", "World")
    story.change(document("a b c", "a>c")).done("c", "Bye")("execution.completed")
    parts = [each async for each in answer_parts(as_stream(story.events))]
    chat = ChatChunks(AnswerHead("x", 0, "m"), includes_usage=False)
    sent = b"".join(map(chat.encode, parts))
    assert re.findall(rb'"content":"([^"]+)"', sent) == [b"Hel", b"lo", rb"\n\nWorld", rb"\n\nBye"]


@pytest.mark.parametrize("steps", ["stream", "retry", "message", "reasoning", "rewritten"])
async def test_an_answer_has_the_text_that_chunks_have(steps: str) -> None:
    story = Story(document("a b c:end", "b>c"))
    match steps:
        case "stream":
            story.delta("a", "one ").delta("b", "two").delta("a", "more").done("b", "two")
        case "retry":
            story.delta("a", "wrong")("node.retrying", "a", error={}, delay_s=0, next_attempt=2)
            story("node.started", "a", 2).delta("a", "right", attempt=2)
        case "message":
            story.delta("a", "one ")
            story("node.event", "b", event_type="message", data={"text": "Hi."}).done("b", "two")
        case "reasoning":
            story.delta("a", "hm", kind="reasoning").delta("a", "one")
        case _:
            story.delta("a", "Hello")
            story("node.delta", "a", 1, kind="text", text="p!", offset=3)
    story.done("a", "last").done("c", "end")("execution.completed")
    sent = await collected(story.events)
    answer = await whole_answer(answer_parts(as_stream(story.events)))
    assert answer.text == content(sent)
    deltas = [chunk["choices"][0]["delta"] for chunk in sent]
    assert answer.reasoning == "".join(each.get("reasoning_content") or "" for each in deltas)
