"""An execution as one answer of the OpenAI API: every chunk is one of theirs, and the text is right."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionChunk

import planwave
from planwave.errors import InputError
from planwave.events.chat_chunks.encoder import chunks
from planwave.nodes.library import LIBRARY
from tests.support.engine.event_story import EventStory
from tests.support.engine.random_schedules import ByteChoices
from tests.unit.events.chat_chunks.test_visibility import document, out


class Story(EventStory):
    """The events of one execution; a node's event without an attempt is of its first."""

    def __init__(self, graph: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._offsets: dict[tuple[str, int, str], int] = {}
        if graph is not None:
            self("execution.created", graph=graph)
            self("execution.started", waves=1)

    def __call__(
        self, event: str, path: str | None = None, attempt: int | None = None, /, **data: Any
    ) -> Story:
        return self.add(event, path, 1 if path is not None and attempt is None else attempt, **data)

    def delta(self, path: str, text: str, kind: str = "text", attempt: int = 1) -> Story:
        place = path, attempt, kind
        offset = self._offsets.get(place, 0)
        self._offsets[place] = offset + len(text)
        return self("node.delta", path, attempt, kind=kind, text=text, offset=offset)

    def done(self, path: str, value: Any, attempt: int = 1, **data: Any) -> Story:
        return self("node.completed", path, attempt, outputs=out(output=value), **data)

    def told(self, **options: Any) -> list[dict[str, Any]]:
        return asyncio.run(gathered(self.events, **options))


async def gathered(events: Any, **options: Any) -> list[dict[str, Any]]:
    return [chunk async for chunk in chunks(events, **options)]


def content(told: Iterable[dict[str, Any]], field: str = "content") -> str:
    """What a reader has in the end who drops what does not hold."""
    text = ""
    for chunk in told:
        ChatCompletionChunk.model_validate(chunk, strict=True)
        if lost := chunk["extras"].get("discard"):
            assert lost <= len(text)
            text = text[:-lost]
        text += chunk["choices"][0]["delta"].get(field) or ""
    return text


def pieces(told: Iterable[dict[str, Any]]) -> list[str]:
    """The content, chunk by chunk, without the empty ones."""
    return [said for c in told if (said := c["choices"][0]["delta"].get("content"))]


def about(told: Iterable[dict[str, Any]], name: str) -> list[Any]:
    return [chunk["extras"][name] for chunk in told if name in chunk["extras"]]


# -- the frame


def test_an_answer_has_a_head_a_role_an_end_and_what_was_used() -> None:
    story = Story(document("a"))
    story("usage", "a", provider="p", model="m", input_tokens=3, output_tokens=4, cost_usd=0.5)
    story.done("a", "hi")("execution.completed", handled_failures=[])
    told = story.told(model="my-flow")
    assert {(c["id"], c["created"], c["model"]) for c in told} == {
        ("chatcmpl-x1", 1767225600, "my-flow")
    }
    first, *_, last = told
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [c["choices"][0]["finish_reason"] for c in told] == [None] * (len(told) - 1) + ["stop"]
    assert last["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert last["extras"]["execution"]["usage"]["cost_usd"] == 0.5
    assert [e["status"] for e in about(told, "execution")] == [
        "starting", "executing", "completed",
    ]  # fmt: skip
    assert content(told) == "hi"


def test_a_failure_is_an_error_the_sdk_raises_and_no_reason_to_finish() -> None:
    error = {"code": "node-failed", "message": "it broke"}
    story = Story(document("a"))("node.failed", "a", error=error, handled=False)
    told = story("execution.failed", error=error, failures=["a"]).told()
    assert told[-1]["error"] == {
        "message": "it broke", "type": "execution_failed", "code": "node-failed", "param": "a",
    }  # fmt: skip
    assert told[-1]["choices"][0]["finish_reason"] is None
    assert about(told, "error") == [error]
    assert content(told) == ""


def test_a_cancelled_execution_says_why() -> None:
    told = Story(document("a"))("execution.cancelled", cause="enough").told()
    assert told[-1]["error"] == {
        "message": "enough", "type": "execution_cancelled", "code": "cancelled", "param": None,
    }  # fmt: skip


def test_pauses_and_questions_are_told_beside_the_text() -> None:
    story = Story(document("a"))
    story("node.waiting", "a", request_id="r1", request={"prompt": "ok?"}, state={"secret": 1})
    story("execution.paused", reason="waiting for an answer")
    story("execution.resumed", reason="answered", epoch=2)
    told = story("node.answered", "a", request_id="r1", answer={"decision": "yes"}).told()
    assert about(told, "request") == [{"prompt": "ok?"}]
    assert [m["status"] for m in about(told, "meta")] == ["waiting", "running"]
    assert [e["status"] for e in about(told, "execution")][2:] == ["paused", "executing"]
    assert "secret" not in str(told)


# -- which text, and when


def test_visible_text_is_told_as_it_streams_and_not_again_at_its_end() -> None:
    story = Story(document("a")).delta("a", "Hel").delta("a", "lo")
    assert pieces(story.done("a", "Hello").told()) == ["Hel", "lo"]


def test_a_result_that_was_not_streamed_is_told_whole() -> None:
    assert pieces(Story(document("a")).done("a", {"n": 1}).told()) == ['{"n":1}']


def test_what_a_broken_stream_left_out_is_told_at_the_end() -> None:
    story = Story(document("a")).delta("a", "Hel")
    story("node.delta", "a", 1, kind="text", text="rld", offset=8)
    assert pieces(story.done("a", "Hello world").told()) == ["Hel", "lo world"]


def test_a_result_that_is_another_text_than_was_streamed_is_told_too() -> None:
    story = Story(document("a")).delta("a", "thinking …").done("a", "42")
    assert content(story.told()) == "thinking …\n\n42"
    story = Story(document("a")).delta("a", '{"n": 1}').done("a", {"n": 1})
    assert content(story.told()) == '{"n": 1}'


def test_text_that_others_read_on_is_told_in_extras_alone() -> None:
    story = Story(document("a b", "a>b")).delta("a", "draft").done("a", "draft")
    told = story.done("b", "final").told()
    assert content(told) == "final"
    assert [d["text"] for d in about(told, "delta")] == ["draft"]
    shown = {(m["node_id"], m["visible"]) for m in about(told, "meta")}
    assert shown == {("a", False), ("b", True)}


def test_what_leads_to_the_end_streams_and_the_end_adds_nothing() -> None:
    story = Story(document("a b c:end", "a>c", "b>c")).delta("a", "one").done("a", "one")
    story("node.skipped", "b", reason="all inputs were skipped").done("c", "one")
    told = story.told()
    assert pieces(told) == ["one"]
    assert about(told, "reason") == ["all inputs were skipped"]


def test_the_end_speaks_where_nothing_before_it_did() -> None:
    story = Story(document("a b:end", "a>b")).done("a", "hi", given=True).done("b", "hi")
    assert content(story.told()) == "hi"


def test_the_end_does_not_repeat_what_still_waits_for_its_turn() -> None:
    story = Story(document("x a b:end", "a>b")).delta("x", "long ")
    story.done("a", "short").done("b", "short").delta("x", "story").done("x", "long story")
    assert content(story.told()) == "long story\n\nshort"


def test_reasoning_has_its_own_field() -> None:
    story = Story(document("a")).delta("a", "hm", kind="reasoning").delta("a", "yes")
    told = story.done("a", "yes").told()
    assert (content(told, "reasoning_content"), content(told)) == ("hm", "yes")


def test_other_kinds_of_deltas_are_no_text() -> None:
    told = Story(document("a")).delta("a", "beep", kind="sound").told()
    assert content(told) == ""
    assert about(told, "delta") == [{"kind": "sound", "text": "beep", "offset": 0}]


def test_nested_nodes_are_told_by_their_path_and_never_in_the_text() -> None:
    story = Story(document("a")).delta("a[1]/b", "inner").done("a[1]/b", "inner").done("a", "outer")
    told = story.told()
    assert content(told) == "outer"
    nested = about(told, "meta")[0]
    assert nested == {"node_id": "b", "path": "a[1]/b", "attempt": 1, "visible": False}


def test_nested_nodes_are_named_once_their_graph_is_told() -> None:
    inner = {"nodes": [{"id": "b", "type": "text", "name": "Inner"}], "edges": []}
    opened = {"key": "1", "graph": "h", "inputs": "i", "document": inner}
    story = Story(document("a"))
    story("node.event", "a", event_type="run_graph", data=opened).delta("a[1]/b", "inner")
    (nested,) = about(story.told(), "meta")
    assert (nested["node_type"], nested["name"], nested["visible"]) == ("text", "Inner", False)


def test_who_knows_better_may_choose_what_is_visible() -> None:
    story = Story(document("a b", "a>b")).delta("a", "draft").done("a", "draft").done("b", "final")
    assert content(story.told(visible=["a"])) == "draft"


# -- several at once


def test_two_that_stream_at_once_are_two_paragraphs() -> None:
    story = Story(document("a b")).delta("a", "a1 ").delta("b", "b1 ").delta("a", "a2")
    story.delta("b", "b2").done("a", "a1 a2").delta("b", " b3").done("b", "b1 b2 b3")
    told = story.told()
    assert content(told) == "a1 a2\n\nb1 b2 b3"
    assert pieces(told) == ["a1 ", "a2", "\n\nb1 ", "b2", " b3"]


def test_all_that_still_waits_is_told_at_the_end() -> None:
    story = Story(document("a b")).delta("a", "one").delta("b", "two")
    assert content(story("execution.cancelled", cause="enough").told()) == "one\n\ntwo"


def test_a_node_that_waits_for_an_answer_lets_the_others_speak() -> None:
    story = Story(document("a b")).delta("a", "Shall I? ").delta("b", "meanwhile")
    story("node.waiting", "a", request_id="r", request={}).done("b", "meanwhile")
    story.done("a", "Shall I? Yes.")
    assert content(story.told()) == "Shall I? \n\nmeanwhile\n\nYes."


def test_a_parked_node_lets_the_others_speak_and_may_say_the_same_again() -> None:
    story = Story(document("a b")).delta("a", "Each of these: ").delta("b", "meanwhile")
    story("node.parked", "a").done("b", "meanwhile")("node.unparked", "a")
    story("node.delta", "a", 1, kind="text", text="Each of these: fine.", offset=0)
    told = story.done("a", "Each of these: fine.").told()
    assert content(told) == "Each of these: \n\nmeanwhile\n\nfine."
    statuses = [m["status"] for m in about(told, "meta") if m["node_id"] == "a" and "status" in m]
    assert statuses == ["waiting", "running", "completed"]


def test_a_message_is_text_for_the_caller_whoever_says_it() -> None:
    graph = document("a b", "a>b")
    said = {"text": "Working on it.", "extras": {"step": 1}}
    story = Story(graph)("node.event", "a", event_type="message", data=said).done("a", "x")
    told = story.done("b", "Done.").told()
    assert content(told) == "Working on it.\n\nDone."
    assert about(told, "event") == [{"type": "message", "data": said}]


def test_who_said_a_message_does_not_say_its_result_as_well() -> None:
    story = Story(document("a b:end", "a>b"))
    story("node.event", "a", event_type="message", data={"text": "Hi!"})
    assert content(story.done("a", "raw").done("b", "raw").told()) == "Hi!"


def test_a_message_waits_until_another_has_finished_its_sentence() -> None:
    story = Story(document("a b c", "b>c")).delta("a", "Once upon ")
    story("node.event", "b", event_type="message", data={"text": "News!"})
    story.delta("a", "a time").done("a", "Once upon a time")
    assert content(story.told()) == "Once upon a time\n\nNews!"


def test_a_message_between_a_nodes_own_words_is_a_paragraph_there() -> None:
    story = Story(document("a")).delta("a", "One.")
    story("node.event", "a", event_type="message", data="Two.").delta("a", "Three.")
    assert content(story.told()) == "One.\n\nTwo.\n\nThree."


def test_other_events_and_logs_are_told_but_not_what_is_between_node_and_engine() -> None:
    story = Story(document("a"))
    for kind in ("prompt", "wired", "run_graph", "once"):
        story("node.event", "a", event_type=kind, data={"system": "secret"})
    story("node.event", "a", event_type="progress", data={"done": 3})
    told = story("node.log", "a", message="careful", level="warning").told()
    assert about(told, "event") == [{"type": "progress", "data": {"done": 3}}]
    assert about(told, "log") == [{"message": "careful", "level": "warning"}]
    assert "secret" not in str(told)


# -- attempts


def test_the_text_of_a_failed_attempt_is_taken_back() -> None:
    story = Story(document("b a")).delta("b", "first").done("b", "first").delta("a", "wro")
    story("node.retrying", "a", error={"code": "x", "message": "cut"}, delay_s=1, next_attempt=2)
    story("node.started", "a", 2).delta("a", "right", attempt=2).done("a", "right", attempt=2)
    told = story.told()
    assert content(told) == "first\n\nright"
    assert about(told, "discard") == [len("\n\nwro")]


def test_what_was_not_told_yet_is_not_taken_back() -> None:
    story = Story(document("a b")).delta("a", "one ").delta("b", "wrong")
    story("node.failed", "b", error={"code": "x", "message": "y"}, handled=False)
    told = story.delta("a", "two").done("a", "one two").told()
    assert content(told) == "one two"
    assert about(told, "discard") == []


def test_a_handled_failure_says_its_value_instead_of_what_it_had_streamed() -> None:
    story = Story(document("a")).delta("a", "wro")
    story("node.failed", "a", error={}, handled=True, outputs=out(output="default"))
    assert content(story.told()) == "default"


def test_a_node_that_is_entered_again_begins_anew() -> None:
    story = Story(document("a")).delta("a", "half a sen")("node.started", "a", reentry=1)
    story("node.delta", "a", 1, kind="text", text="whole", offset=0).done("a", "whole")
    assert content(story.told()) == "whole"


def test_text_that_is_streamed_again_the_same_is_told_once() -> None:
    story = Story(document("a")).delta("a", "Hello")
    story("node.delta", "a", 1, kind="text", text="Hel", offset=0)
    story("node.delta", "a", 1, kind="text", text="lo you", offset=3)
    assert pieces(story.done("a", "Hello you").told()) == ["Hello", " you"]


def test_text_that_takes_the_place_of_another_is_told_so() -> None:
    story = Story(document("a")).delta("a", "Hello").delta("a", " Bob")
    story("node.delta", "a", 1, kind="text", text=" you", offset=5)
    assert content(story.done("a", "Hello you").told()) == "Hello you"


@given(st.binary(max_size=60))
def test_whatever_streams_fails_and_ends_in_whatever_order_every_result_is_one_paragraph(
    source: bytes,
) -> None:
    choices = ByteChoices(source)
    story = Story(document("a b c"))
    results: dict[str, str] = {}
    now = dict.fromkeys("abc", "")
    attempts = dict.fromkeys("abc", 1)
    while len(results) < 3:
        left = sorted(set("abc") - results.keys())
        path = left[choices.below(len(left))]
        match choices.below(4):
            case 0:
                results[path] = f"{now[path]}{path}"
                story.done(path, results[path], attempt=attempts[path])
            case 1:
                story("node.retrying", path, attempts[path], error={})
                attempts[path] += 1
                now[path] = ""
            case _:
                word = "xyz "[choices.below(4) :]
                now[path] += word
                story.delta(path, word, attempt=attempts[path])
    told = story("execution.completed").told()
    assert sorted(content(told).split("\n\n")) == sorted(results.values())


# -- where events come from


@pytest.fixture
def registry() -> planwave.Registry:
    registry = planwave.Registry(LIBRARY)

    @planwave.node("typist", registry=registry)
    async def typist(input: str) -> AsyncGenerator[str]:  # pyright: ignore[reportUnusedFunction]
        for word in input.split():
            yield f"{word} "

    @planwave.node("stuck", registry=registry)
    async def stuck(input: str) -> AsyncGenerator[str]:  # pyright: ignore[reportUnusedFunction]
        yield input
        await asyncio.Event().wait()

    return registry


def flow(kind: str) -> planwave.GraphBuilder:
    g = planwave.GraphBuilder()
    g.node("start", id="s", initialInput="one two") >> g.node(kind, id="t") >> g.node("end")
    return g


async def test_a_run_from_python_is_read_as_it_happens(registry: planwave.Registry) -> None:
    told = await gathered(planwave.run(planwave.build(flow("typist"), registry=registry)))
    assert pieces(told) == ["one ", "two "]
    assert told[-1]["choices"][0]["finish_reason"] == "stop"
    kinds = {m["node_id"]: (m["node_type"], m["visible"]) for m in about(told, "meta")}
    assert kinds == {"s": ("start", False), "t": ("typist", True), "end": ("end", True)}
    assert content(told) == "one two "


async def test_an_inner_graph_streams_where_its_node_is_visible(
    registry: planwave.Registry,
) -> None:
    inside = planwave.GraphBuilder()
    inside.node("start") >> inside.node("typist") >> inside.node("end")
    g = planwave.GraphBuilder()
    inner = g.node("inner", graph=inside.document())
    g.node("start", initialInput="one two") >> inner >> g.node("end")
    told = await gathered(planwave.run(planwave.build(g, registry=registry)))
    assert pieces(told) == ["one ", "two "]
    kinds = {m["path"]: m.get("node_type") for m in about(told, "meta")}
    assert kinds["inner[graph]/typist"] == "typist"


async def test_what_a_loop_comes_to_is_told_by_the_loop(registry: planwave.Registry) -> None:
    body = planwave.GraphBuilder()
    body.node("start") >> body.node("typist")
    g = planwave.GraphBuilder()
    loop = g.node("loop", body=body.document())
    g.node("start", initialInput=["one", "two"]) >> loop >> g.node("end")
    told = await gathered(planwave.run(planwave.build(g, registry=registry)))
    assert pieces(told) == ['["one ","two "]']


async def test_what_send_message_says_comes_before_the_result(
    registry: planwave.Registry,
) -> None:
    g = planwave.GraphBuilder()
    tell = g.node("send_message", message="Got {{ input }}.", extras={"step": 1})
    g.node("start", initialInput="one two") >> tell >> g.node("typist") >> g.node("end")
    told = await gathered(planwave.run(planwave.build(g, registry=registry)))
    assert content(told) == "Got one two.\n\none two "
    said = {"type": "message", "data": {"text": "Got one two.", "extras": {"step": 1}}}
    assert about(told, "event") == [said]


async def test_leaving_the_chunks_ends_the_run(registry: planwave.Registry) -> None:
    run = planwave.run(planwave.build(flow("stuck"), registry=registry))
    told = chunks(run)
    async for chunk in told:
        if chunk["choices"][0]["delta"].get("content"):
            break
    await told.aclose()
    assert run.result().status == "cancelled"


async def test_events_that_do_not_say_their_graph_need_it_beside_them(
    registry: planwave.Registry,
) -> None:
    built = planwave.build(flow("typist"), registry=registry)
    events = [event async for event in planwave.run(built)][1:]
    with pytest.raises(InputError, match="which graph") as caught:
        await gathered(events)
    assert caught.value.code == "no-graph"
    for graph in (built.graph, built.graph.to_document()):
        assert content(await gathered(events, graph=graph)) == "one two "


async def test_an_execution_without_nodes_at_work_needs_no_graph() -> None:
    story = Story()("execution.created", goal="x")("execution.cancelled", cause="enough")
    assert (await gathered(story.events))[-1]["error"]["code"] == "cancelled"
