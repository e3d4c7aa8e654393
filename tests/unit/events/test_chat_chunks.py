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
from planwave.events.chat_chunks import chunks
from planwave.graph.editing.revision import graph_change
from planwave.nodes.library import LIBRARY
from tests.support.engine.event_story import EventStory
from tests.support.engine.random_schedules import ByteChoices
from tests.unit.events.stream.test_visibility import document, out


class Story(EventStory):
    """The events of one execution; a node's event without an attempt is of its first."""

    def __init__(self, graph: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._offsets: dict[tuple[str, int, str], int] = {}
        self._graph, self._changes = graph or {}, 0
        if graph is not None:
            self("execution.created", graph=_with_ids(graph))
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

    def change(self, graph: dict[str, Any]) -> Story:
        """Change the graph that is run."""
        self._changes += 1
        change = graph_change(_with_ids(self._graph), _with_ids(graph))
        self._graph = graph
        return self("plan.revised", change=self._changes, graph_change=change)

    def encoded(self, **options: Any) -> list[dict[str, Any]]:
        return asyncio.run(collected(self.events, **options))


def _with_ids(graph: dict[str, Any]) -> dict[str, Any]:
    """The graph with ids of its edges, as a run has them."""
    edges = [
        {"id": "{source}.{sourceHandle}>{target}".format(**{"sourceHandle": "", **each}), **each}
        for each in graph["edges"]
    ]
    return {**graph, "edges": edges}


async def collected(events: Any, **options: Any) -> list[dict[str, Any]]:
    return [chunk async for chunk in chunks(events, **options)]


def content(sent: Iterable[dict[str, Any]], field: str = "content") -> str:
    """The text of a reader that applies the discards."""
    text = ""
    for chunk in sent:
        ChatCompletionChunk.model_validate(chunk, strict=True)
        if lost := chunk["extras"].get("discard"):
            assert lost <= len(text)
            text = text[:-lost]
        text += chunk["choices"][0]["delta"].get(field) or ""
    return text


def pieces(sent: Iterable[dict[str, Any]]) -> list[str]:
    """The content, chunk by chunk, without the empty ones."""
    return [message for c in sent if (message := c["choices"][0]["delta"].get("content"))]


def about(sent: Iterable[dict[str, Any]], name: str) -> list[Any]:
    return [chunk["extras"][name] for chunk in sent if name in chunk["extras"]]


# -- the frame


def test_the_chunks_carry_id_role_finish_reason_and_usage() -> None:
    story = Story(document("a"))
    story("usage", "a", provider="p", model="m", input_tokens=3, output_tokens=4, cost_usd=0.5)
    story.done("a", "hi")("execution.completed", handled_failures=[])
    sent = story.encoded(model="my-flow")
    assert {(c["id"], c["created"], c["model"]) for c in sent} == {
        ("chatcmpl-x1", 1767225600, "my-flow")
    }
    first, *_, last = sent
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [c["choices"][0]["finish_reason"] for c in sent] == [None] * (len(sent) - 1) + ["stop"]
    assert last["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "total_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    assert last["extras"]["execution"]["usage"]["cost_usd"] == 0.5
    assert [e["status"] for e in about(sent, "execution")] == [
        "starting", "executing", "completed",
    ]  # fmt: skip
    assert content(sent) == "hi"


def test_a_failed_execution_ends_with_an_error_and_without_a_finish_reason() -> None:
    error = {"code": "node-failed", "message": "it broke"}
    story = Story(document("a"))("node.failed", "a", error=error, handled=False)
    sent = story("execution.failed", error=error, failures=["a"]).encoded()
    assert sent[-1]["error"] == {
        "message": "it broke", "type": "execution_failed", "code": "node-failed", "param": "a",
    }  # fmt: skip
    assert sent[-1]["choices"][0]["finish_reason"] is None
    assert about(sent, "error") == [error]
    assert content(sent) == ""


def test_a_cancelled_execution_ends_with_its_cause_as_error() -> None:
    sent = Story(document("a"))("execution.cancelled", cause="enough").encoded()
    assert sent[-1]["error"] == {
        "message": "enough", "type": "execution_cancelled", "code": "cancelled", "param": None,
    }  # fmt: skip


def test_pauses_and_requests_are_sent_in_extras() -> None:
    story = Story(document("a"))
    story("node.waiting", "a", request_id="r1", request={"prompt": "ok?"}, state={"secret": 1})
    story("execution.paused", reason="waiting for an answer")
    story("execution.resumed", reason="answered", epoch=2)
    sent = story("node.answered", "a", request_id="r1", answer={"decision": "yes"}).encoded()
    assert about(sent, "request") == [{"prompt": "ok?"}]
    assert [m["status"] for m in about(sent, "meta")] == ["waiting", "running"]
    assert [e["status"] for e in about(sent, "execution")][2:] == ["paused", "executing"]
    assert "secret" not in str(sent)


# -- which text, and when


def test_streamed_text_is_not_repeated_when_the_node_completes() -> None:
    story = Story(document("a")).delta("a", "Hel").delta("a", "lo")
    assert pieces(story.done("a", "Hello").encoded()) == ["Hel", "lo"]


def test_a_result_that_was_not_streamed_is_sent_whole() -> None:
    assert pieces(Story(document("a")).done("a", {"n": 1}).encoded()) == ['{"n":1}']


def test_text_missing_from_a_broken_stream_is_sent_at_the_end() -> None:
    story = Story(document("a")).delta("a", "Hel")
    story("node.delta", "a", 1, kind="text", text="rld", offset=8)
    assert pieces(story.done("a", "Hello world").encoded()) == ["Hel", "lo world"]


def test_a_result_that_differs_from_the_streamed_text_is_sent_too() -> None:
    story = Story(document("a")).delta("a", "thinking …").done("a", "42")
    assert content(story.encoded()) == "thinking …\n\n42"
    story = Story(document("a")).delta("a", '{"n": 1}').done("a", {"n": 1})
    assert content(story.encoded()) == '{"n": 1}'


def test_text_that_other_nodes_read_is_sent_in_extras_only() -> None:
    story = Story(document("a b", "a>b")).delta("a", "draft").done("a", "draft")
    sent = story.done("b", "final").encoded()
    assert content(sent) == "final"
    assert [d["text"] for d in about(sent, "delta")] == ["draft"]
    shown = {(m["node_id"], m["visible"]) for m in about(sent, "meta")}
    assert shown == {("a", False), ("b", True)}


def test_nodes_before_the_end_node_stream_and_the_end_node_adds_nothing() -> None:
    story = Story(document("a b c:end", "a>c", "b>c")).delta("a", "one").done("a", "one")
    story("node.skipped", "b", reason="all inputs were skipped").done("c", "one")
    sent = story.encoded()
    assert pieces(sent) == ["one"]
    assert about(sent, "reason") == ["all inputs were skipped"]


def test_the_end_node_sends_its_value_if_nothing_before_it_did() -> None:
    story = Story(document("a b:end", "a>b")).done("a", "hi", given=True).done("b", "hi")
    assert content(story.encoded()) == "hi"


def test_the_end_node_does_not_repeat_queued_text() -> None:
    story = Story(document("x a b:end", "a>b")).delta("x", "long ")
    story.done("a", "short").done("b", "short").delta("x", "story").done("x", "long story")
    assert content(story.encoded()) == "long story\n\nshort"


def test_reasoning_is_sent_in_its_own_field() -> None:
    story = Story(document("a")).delta("a", "hm", kind="reasoning").delta("a", "yes")
    sent = story.done("a", "yes").encoded()
    assert (content(sent, "reasoning_content"), content(sent)) == ("hm", "yes")


def test_deltas_of_other_kinds_are_sent_in_extras_only() -> None:
    sent = Story(document("a")).delta("a", "beep", kind="sound").encoded()
    assert content(sent) == ""
    assert about(sent, "delta") == [{"kind": "sound", "text": "beep", "offset": 0}]


def test_nested_nodes_are_sent_with_their_path_in_extras_only() -> None:
    story = Story(document("a")).delta("a[1]/b", "inner").done("a[1]/b", "inner").done("a", "outer")
    sent = story.encoded()
    assert content(sent) == "outer"
    nested = about(sent, "meta")[0]
    assert nested == {"node_id": "b", "path": "a[1]/b", "attempt": 1, "visible": False}


def test_nested_nodes_have_name_and_type_once_their_graph_is_known() -> None:
    inner = {"nodes": [{"id": "b", "type": "text", "name": "Inner"}], "edges": []}
    opened = {"key": "1", "graph": "h", "inputs": "i", "document": inner}
    story = Story(document("a"))
    story("node.event", "a", event_type="run_graph", data=opened).delta("a[1]/b", "inner")
    (nested,) = about(story.encoded(), "meta")
    assert (nested["node_type"], nested["name"], nested["visible"]) == ("text", "Inner", False)


def test_the_caller_may_choose_the_visible_nodes() -> None:
    story = Story(document("a b", "a>b")).delta("a", "draft").done("a", "draft").done("b", "final")
    assert content(story.encoded(visible=["a"])) == "draft"


# -- several at once


def test_two_concurrent_streams_become_two_paragraphs() -> None:
    story = Story(document("a b")).delta("a", "a1 ").delta("b", "b1 ").delta("a", "a2")
    story.delta("b", "b2").done("a", "a1 a2").delta("b", " b3").done("b", "b1 b2 b3")
    sent = story.encoded()
    assert content(sent) == "a1 a2\n\nb1 b2 b3"
    assert pieces(sent) == ["a1 ", "a2", "\n\nb1 ", "b2", " b3"]


def test_queued_text_is_sent_when_the_execution_ends() -> None:
    story = Story(document("a b")).delta("a", "one").delta("b", "two")
    assert content(story("execution.cancelled", cause="enough").encoded()) == "one\n\ntwo"


def test_a_node_that_waits_for_an_answer_releases_its_turn() -> None:
    story = Story(document("a b")).delta("a", "Shall I? ").delta("b", "meanwhile")
    story("node.waiting", "a", request_id="r", request={}).done("b", "meanwhile")
    story.done("a", "Shall I? Yes.")
    assert content(story.encoded()) == "Shall I? \n\nmeanwhile\n\nYes."


def test_a_parked_node_releases_its_turn_and_its_repeated_text_is_sent_once() -> None:
    story = Story(document("a b")).delta("a", "Each of these: ").delta("b", "meanwhile")
    story("node.parked", "a").done("b", "meanwhile")("node.unparked", "a")
    story("node.delta", "a", 1, kind="text", text="Each of these: fine.", offset=0)
    sent = story.done("a", "Each of these: fine.").encoded()
    assert content(sent) == "Each of these: \n\nmeanwhile\n\nfine."
    statuses = [m["status"] for m in about(sent, "meta") if m["node_id"] == "a" and "status" in m]
    assert statuses == ["waiting", "running", "completed"]


def test_a_message_event_of_any_node_is_visible_text() -> None:
    graph = document("a b", "a>b")
    message = {"text": "Working on it.", "extras": {"step": 1}}
    story = Story(graph)("node.event", "a", event_type="message", data=message).done("a", "x")
    sent = story.done("b", "Done.").encoded()
    assert content(sent) == "Working on it.\n\nDone."
    assert about(sent, "event") == [{"type": "message", "data": message}]


def test_a_node_that_sent_a_message_does_not_send_its_result() -> None:
    story = Story(document("a b:end", "a>b"))
    story("node.event", "a", event_type="message", data={"text": "Hi!"})
    assert content(story.done("a", "raw").done("b", "raw").encoded()) == "Hi!"


def test_a_message_is_queued_while_another_node_streams() -> None:
    story = Story(document("a b c", "b>c")).delta("a", "Once upon ")
    story("node.event", "b", event_type="message", data={"text": "News!"})
    story.delta("a", "a time").done("a", "Once upon a time")
    assert content(story.encoded()) == "Once upon a time\n\nNews!"


def test_a_message_of_a_streaming_node_is_a_paragraph_of_its_text() -> None:
    story = Story(document("a")).delta("a", "One.")
    story("node.event", "a", event_type="message", data="Two.").delta("a", "Three.")
    assert content(story.encoded()) == "One.\n\nTwo.\n\nThree."


def test_own_events_and_logs_are_sent_and_internal_events_are_not() -> None:
    story = Story(document("a"))
    for kind in ("prompt", "wired", "run_graph", "once"):
        story("node.event", "a", event_type=kind, data={"system": "secret"})
    story("node.event", "a", event_type="progress", data={"done": 3})
    sent = story("node.log", "a", message="careful", level="warning").encoded()
    assert about(sent, "event") == [{"type": "progress", "data": {"done": 3}}]
    assert about(sent, "log") == [{"message": "careful", "level": "warning"}]
    assert "secret" not in str(sent)


# -- attempts


def test_the_text_of_a_failed_attempt_is_discarded() -> None:
    story = Story(document("b a")).delta("b", "first").done("b", "first").delta("a", "wro")
    story("node.retrying", "a", error={"code": "x", "message": "cut"}, delay_s=1, next_attempt=2)
    story("node.started", "a", 2).delta("a", "right", attempt=2).done("a", "right", attempt=2)
    sent = story.encoded()
    assert content(sent) == "first\n\nright"
    assert about(sent, "discard") == [len("\n\nwro")]


def test_queued_text_of_a_failed_attempt_is_never_sent() -> None:
    story = Story(document("a b")).delta("a", "one ").delta("b", "wrong")
    story("node.failed", "b", error={"code": "x", "message": "y"}, handled=False)
    sent = story.delta("a", "two").done("a", "one two").encoded()
    assert content(sent) == "one two"
    assert about(sent, "discard") == []


def test_a_handled_failure_replaces_the_streamed_text_with_its_value() -> None:
    story = Story(document("a")).delta("a", "wro")
    story("node.failed", "a", error={}, handled=True, outputs=out(output="default"))
    assert content(story.encoded()) == "default"


def test_the_text_of_an_interrupted_attempt_is_replaced() -> None:
    story = Story(document("a")).delta("a", "half a sen")("node.started", "a", reentry=1)
    story("node.delta", "a", 1, kind="text", text="whole", offset=0).done("a", "whole")
    assert content(story.encoded()) == "whole"


def test_text_that_a_node_discards_is_replaced_by_what_it_streams_next() -> None:
    story = Story(document("b a")).delta("b", "first").done("b", "first").delta("a", "Hello wor")
    why = {"message": "the first model failed"}
    story("node.event", "a", event_type="text_discarded", data=why)
    story("node.delta", "a", 1, kind="text", text="Hello", offset=0).done("a", "Hello")
    sent = story.encoded()
    assert content(sent) == "first\n\nHello"
    assert about(sent, "discard") == [len("\n\nHello wor")]
    assert about(sent, "event") == [{"type": "text_discarded", "data": why}]


def test_text_that_is_streamed_again_unchanged_is_sent_once() -> None:
    story = Story(document("a")).delta("a", "Hello")
    story("node.delta", "a", 1, kind="text", text="Hel", offset=0)
    story("node.delta", "a", 1, kind="text", text="lo you", offset=3)
    assert pieces(story.done("a", "Hello you").encoded()) == ["Hello", " you"]


def test_text_streamed_again_differently_replaces_the_earlier_text() -> None:
    story = Story(document("a")).delta("a", "Hello").delta("a", " Bob")
    story("node.delta", "a", 1, kind="text", text=" you", offset=5)
    assert content(story.done("a", "Hello you").encoded()) == "Hello you"


@given(st.binary(max_size=60))
def test_every_result_is_one_paragraph_in_any_order_of_streams_and_failures(
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
    sent = story("execution.completed").encoded()
    assert sorted(content(sent).split("\n\n")) == sorted(results.values())


# -- changes of the graph


def test_text_that_a_new_node_reads_is_void_and_what_follows_it_is_sent_again() -> None:
    story = Story(document("a b")).delta("a", "Hel").done("a", "Hello").done("b", "World")
    story.change(document("a b c", "a>c")).done("c", "Hello, you")
    sent = story("execution.completed").encoded()
    assert content(sent) == "World\n\nHello, you"
    assert about(sent, "discard") == [len("Hello\n\nWorld")]
    assert about(sent, "change") == [1]


def test_text_of_a_dropped_node_is_void() -> None:
    story = Story(document("a b")).delta("a", "Hel")("node.cancelled", "a", cause="by a person")
    story.change(document("b")).done("b", "World")
    assert content(story("execution.completed").encoded()) == "World"


def test_text_that_still_streams_is_void_once_a_new_node_reads_it_and_lets_others_speak() -> None:
    story = Story(document("a b")).delta("a", "Hel").delta("b", "Wor")
    story.change(document("a b c", "a>c")).delta("a", "lo").delta("b", "ld")
    sent = story.done("b", "World").done("a", "Hello").done("c", "!")("execution.completed")
    assert content(sent.encoded()) == "World\n\n!"


def test_a_node_that_streams_on_after_a_change_can_still_take_its_text_back() -> None:
    story = Story(document("a b")).done("a", "Hello").delta("b", "Wor")
    story.change(document("a b c", "a>c")).delta("b", "ld")("node.failed", "b", error={})
    story.done("c", "!")
    assert content(story("execution.completed").encoded()) == "!"


def test_a_result_that_no_node_reads_any_more_is_sent() -> None:
    story = Story(document("a b", "a>b")).delta("a", "Hel").done("a", "Hello")
    assert content(story.change(document("a")).encoded()) == "Hello"


def test_messages_stay_whatever_changes() -> None:
    story = Story(document("a b"))("node.event", "a", event_type="message", data={"text": "Hi"})
    story.done("a", "Hi").change(document("a b c", "a>c", "b>c")).done("b", "World")
    assert content(story.done("c", "End")("execution.completed").encoded()) == "Hi\n\nEnd"


def test_a_change_as_it_is_written_is_no_text() -> None:
    story = Story(document("a"))("plan.requested", change=1, by="failure", path="a")
    before = story.encoded()
    assert story("node.delta", kind="plan", text="{}\n", offset=0).encoded() == before


@given(st.binary(max_size=80))
def test_the_content_is_what_people_see_with_the_newest_graph(source: bytes) -> None:
    choices = ByteChoices(source)
    nodes, edges = ["a", "b"], list[str]()
    story, results = Story(document("a b")), dict[str, str]()
    streamed = dict[str, str]()
    for _ in range(12):
        left = sorted(set(nodes) - results.keys())
        path = left[choices.below(len(left))] if left else ""
        match choices.below(4):
            case 0 if path:
                results[path] = streamed.get(path, "") + path
                story.done(path, results[path])
            case 1 if len(nodes) < 6:  # a new node reads others
                new = "cdef"[len(nodes) - 2]
                edges += [f"{each}>{new}" for each in nodes if choices.below(2)]
                nodes.append(new)
                story.change(document(" ".join(nodes), *edges))
            case 2 if edges:
                del edges[choices.below(len(edges))]
                story.change(document(" ".join(nodes), *edges))
            case _ if path:
                streamed[path] = streamed.get(path, "") + "x"
                story.delta(path, "x")
            case _:
                pass
    for path in sorted(set(nodes) - results.keys()):
        results[path] = streamed.get(path, "") + path
        story.done(path, results[path])
    read = {each.partition(">")[0] for each in edges}
    seen = sorted(text for path, text in results.items() if path not in read)
    assert sorted(content(story("execution.completed").encoded()).split("\n\n")) == seen


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


def flow(registry: planwave.Registry, kind: str) -> planwave.GraphBuilder:
    g = planwave.GraphBuilder(registry)
    start = g.node("start", id="s", initial_input="one two")
    g.node("end", input=g.node(kind, id="t", input=start))
    return g


async def test_a_run_in_the_library_is_encoded_while_it_runs(registry: planwave.Registry) -> None:
    sent = await collected(planwave.run(flow(registry, "typist")))
    assert pieces(sent) == ["one ", "two "]
    assert sent[-1]["choices"][0]["finish_reason"] == "stop"
    kinds = {m["node_id"]: (m["node_type"], m["visible"]) for m in about(sent, "meta")}
    assert kinds == {"s": ("start", False), "t": ("typist", True), "end": ("end", True)}
    assert content(sent) == "one two "


async def test_an_inner_graph_streams_where_its_node_is_visible(
    registry: planwave.Registry,
) -> None:
    inside = planwave.GraphBuilder(registry)
    inside.node("end", input=inside.node("typist", input=inside.node("start")))
    g = planwave.GraphBuilder(registry)
    start = g.node("start", initial_input="one two")
    g.node("end", input=g.node("inner", graph=inside, input=start))
    sent = await collected(planwave.run(g))
    assert pieces(sent) == ["one ", "two "]
    kinds = {m["path"]: m.get("node_type") for m in about(sent, "meta")}
    assert kinds["inner[graph]/typist"] == "typist"


async def test_the_text_of_a_loop_is_its_result(registry: planwave.Registry) -> None:
    g = planwave.GraphBuilder(registry)
    start = g.node("start", initial_input=["one", "two"])
    g.node("end", input=g.map("typist", start))
    sent = await collected(planwave.run(g))
    assert pieces(sent) == ['["one ","two "]']


async def test_a_send_message_node_sends_its_text_before_the_result(
    registry: planwave.Registry,
) -> None:
    g = planwave.GraphBuilder(registry)
    start = g.node("start", initial_input="one two")
    tell = g.node("send_message", message="Got {{ input }}.", extras={"step": 1}, input=start)
    g.node("end", input=g.node("typist", input=tell))
    sent = await collected(planwave.run(g))
    assert content(sent) == "Got one two.\n\none two "
    message = {"type": "message", "data": {"text": "Got one two.", "extras": {"step": 1}}}
    assert about(sent, "event") == [message]


async def test_closing_the_chunks_cancels_the_run(registry: planwave.Registry) -> None:
    run = planwave.run(flow(registry, "stuck"))
    sent = chunks(run)
    async for chunk in sent:
        if chunk["choices"][0]["delta"].get("content"):
            break
    await sent.aclose()
    assert run.result().status == "cancelled"


async def test_events_without_their_graph_need_it_as_an_argument(
    registry: planwave.Registry,
) -> None:
    built = planwave.build(flow(registry, "typist"))
    events = [event async for event in planwave.run(built)][1:]
    with pytest.raises(InputError, match="which graph") as caught:
        await collected(events)
    assert caught.value.code == "no-graph"
    for graph in (built.graph, built.graph.to_document()):
        assert content(await collected(events, graph=graph)) == "one two "


async def test_an_execution_without_node_events_needs_no_graph() -> None:
    story = Story()("execution.created", goal="x")("execution.cancelled", cause="enough")
    assert (await collected(story.events))[-1]["error"]["code"] == "cancelled"
