"""Events as parts: what each part is about, what is void, how the answer ends."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.events.stream.parts import (
    End,
    Part,
    PartReader,
    RequestedCall,
    Retraction,
    Status,
    Text,
)
from tests.unit.events.stream.test_visibility import document
from tests.unit.events.test_chat_chunks import Story

CALL = {"id": "c1", "name": "weather", "arguments": "{}"}


def parts_of(story: Story) -> list[Part]:
    reader = PartReader()
    return [part for event in story.events for part in reader.read(event)]


def end_of(story: Story) -> End:
    end = parts_of(story("execution.completed"))[-1]
    assert isinstance(end, End)
    return end


def calls() -> dict[str, Any]:
    return {"event_type": "caller_tool_calls", "data": {"calls": [CALL]}}


def test_text_is_about_its_node_and_void_text_about_what_made_it_void() -> None:
    story = Story(document("a")).delta("a", "Hel")("node.failed", "a", error={}, handled=True)
    _, _, text, void = parts_of(story)
    assert isinstance(text, Text)
    assert (text.kind, text.text, text.about["meta"]["path"]) == ("text", "Hel", "a")
    assert isinstance(void, Retraction)
    assert (void.chars, void.about["meta"]["status"], void.about["handled"]) == (3, "failed", True)


def test_an_attempt_that_said_nothing_makes_nothing_void() -> None:
    story = Story(document("a"))("node.failed", "a", error={}, handled=True)
    assert [type(part) for part in parts_of(story)] == [Status, Status, Status]


@pytest.mark.parametrize(("path", "expected"), [("b", (RequestedCall(**CALL),)), ("a", ())])
def test_calls_of_a_node_that_people_see_are_for_the_client(path: str, expected: Any) -> None:
    story = Story(document("a b", "a>b"))("node.event", path, **calls())
    assert end_of(story).calls == expected


@pytest.mark.parametrize(("path", "is_cut"), [("b", True), ("a", False)])
def test_a_cut_reply_of_a_node_that_people_see_cuts_the_answer(path: str, is_cut: bool) -> None:
    story = Story(document("a b", "a>b"))("node.log", path, kind="reply_cut", message="cut")
    assert end_of(story).is_cut is is_cut


def test_a_reply_that_is_void_cuts_nothing() -> None:
    story = Story(document("a")).delta("a", "Hel")("node.log", "a", kind="reply_cut", message="cut")
    story("node.retrying", "a", error={}, delay_s=0, next_attempt=2)
    assert not end_of(story("node.started", "a", 2)).is_cut
