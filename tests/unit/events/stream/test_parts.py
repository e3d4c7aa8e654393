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


def text_of(story: Story) -> str:
    """What a reader has who takes back what is void."""
    text = ""
    for part in parts_of(story):
        if isinstance(part, Text):
            text += part.text
        elif isinstance(part, Retraction):
            assert 0 < part.chars <= len(text)
            text = text[: -part.chars]
    return text


def said(story: Story, path: str, text: str) -> Story:
    return story("node.event", path, event_type="message", data={"text": text})


def waits(story: Story, path: str) -> Story:
    return story("node.waiting", path, request_id="r9", request={}, key="k", index=1)


def test_a_message_stays_when_its_node_fails_with_text_around_it() -> None:
    story = said(Story(document("a")).delta("a", "Hel"), "a", "One moment.").delta("a", "lo")
    assert text_of(story("node.failed", "a", error={}, handled=True)) == "One moment."


def test_a_message_that_waits_for_its_turn_stays_when_its_node_fails() -> None:
    story = said(Story(document("a b")).delta("a", "Hel"), "b", "One moment.").delta("b", "void")
    story("node.failed", "b", error={}, handled=True)
    assert text_of(story.done("a", "Hel")) == "Hel\n\nOne moment."


def test_text_of_others_stays_when_a_node_fails_that_sent_a_message_after_it_waited() -> None:
    story = said(waits(Story(document("a b")).delta("a", "Hel"), "a"), "a", "One moment.")
    story.delta("b", "Other")("node.failed", "a", error={}, handled=True)
    assert text_of(story) == "Hel\n\nOne moment.\n\nOther"


def test_a_change_takes_back_what_a_dropped_node_streamed_and_not_its_message() -> None:
    story = said(Story(document("a b")).delta("a", "Hel"), "a", "One moment.")
    story("node.failed", "a", error={}).delta("b", "Other").change(document("b"))
    assert text_of(story) == "One moment.\n\nOther"
    streamed = said(Story(document("a b")).delta("a", "Hel"), "a", "One moment.")
    assert text_of(streamed.change(document("a b c", "a>c"))) == "One moment."


def test_after_a_change_an_attempt_still_takes_back_only_what_it_streamed_since_it_waited() -> None:
    story = waits(
        Story(document("a b")).delta("a", "void").done("a", "void").delta("b", "Kept"), "b"
    )
    story.delta("b", " not").change(document("a b c", "a>c"))
    assert text_of(story) == "Kept not"
    assert text_of(story("node.failed", "b", error={}, handled=True)) == "Kept"
