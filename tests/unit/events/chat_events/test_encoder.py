"""The events of chats: what the contract suite cannot time, such as nodes that stream at once."""

from __future__ import annotations

from typing import Any

from planwave.events import Event
from planwave.events.chat_events.encoder import ChatEventEncoder
from planwave.events.chat_events.speech import Reply
from planwave.graph.editing.revision import graph_change

GRAPH = {
    "nodes": [{"id": each, "type": "agent"} for each in ("a", "b")],
    "edges": [],
}


def event(seq: int, kind: str, path: str | None = None, **data: Any) -> Event:
    return Event("x", seq, "", kind, path, 1 if path else None, data)


def delta(path: str, text: str, offset: int = 0, kind: str = "text", attempt: int = 1) -> Event:
    data = {"kind": kind, "text": text, "offset": offset}
    return Event("x", 0, "", "node.delta", path, attempt, data)


BEGIN = [
    event(1, "execution.created", graph=GRAPH),
    event(2, "execution.started"),
    event(3, "node.started", "a"),
    event(4, "node.started", "b"),
]
CALL = {"call_id": "c1", "name": "look", "kind": "tool", "arguments": {}}


def usage(seq: int, path: str) -> Event:
    return event(seq, "usage", path, input_tokens=1, output_tokens=1)


def call(seq: int, phase: str, **more: Any) -> Event:
    return event(seq, "node.event", "a", event_type=f"tool_call_{phase}", data={**CALL, **more})


def encoded(*events: Event, replies: Any = None) -> tuple[ChatEventEncoder, list[dict[str, Any]]]:
    encoder = ChatEventEncoder("chat", "message", replies=replies)
    told = [each for given in [*BEGIN, *events] for each in encoder.encode(given)]
    return encoder, told


def texts(encoder: ChatEventEncoder) -> list[str]:
    return [block.get("text", block["type"]) for block in encoder.blocks]


def test_blocks_of_nodes_that_stream_at_once_are_in_the_order_of_their_starts() -> None:
    live, told = encoded(delta("b", "second"), delta("a", "first"), usage(5, "b"), usage(6, "a"))
    stored, _ = encoded(
        usage(5, "b"),
        usage(6, "a"),
        replies={("a", 1): [Reply("first")], ("b", 1): [Reply("second")]},
    )
    assert texts(live) == ["first", "second"]
    assert live.blocks == stored.blocks
    assert [each["event"] for each in told].count("SeedBlocks") == 1


def test_text_of_the_next_round_that_comes_early_is_moved_behind_the_calls() -> None:
    replies = {("a", 1): [Reply("Let me look."), Reply("Found.")]}
    end = call(7, "end", result="it")
    live, _ = encoded(
        delta("a", "Let me look.\n\nFound."), usage(5, "a"), call(6, "start"), end, usage(8, "a"),
        replies=replies,
    )  # fmt: skip
    stored, _ = encoded(usage(5, "a"), call(6, "start"), end, usage(8, "a"), replies=replies)
    assert texts(live) == ["Let me look.", "tool_call", "Found."]
    assert live.blocks == stored.blocks


def change(seq: int, after: dict[str, Any], before: Any = GRAPH) -> Event:
    return event(seq, "plan.revised", change=1, graph_change=graph_change(before, after))


def graph(*nodes: str, edges: str = "") -> dict[str, Any]:
    wires = [each.split(">") for each in edges.split()]
    return {
        "nodes": [{"id": each, "type": "agent"} for each in nodes],
        "edges": [
            {"id": f"{a}-{b}", "source": a, "target": b, "data": {"channel": "flow"}}
            for a, b in wires
        ],
    }


def test_a_change_leaves_out_what_a_dropped_node_said_and_how_it_failed() -> None:
    failed = event(5, "node.failed", "a", error={"code": "c", "message": "broken"})
    said = event(6, "node.event", "a", event_type="message", data={"text": "One moment."})
    live, told = encoded(
        delta("a", "half"), said, failed, delta("b", "other"), change(7, graph("b"))
    )
    assert texts(live) == ["other", "One moment."]
    assert told[-1]["event"] == "SeedBlocks"
    live.encode(event(8, "execution.failed", error={"code": "c", "message": "later"}))
    assert texts(live) == ["other", "One moment.", "error"]


def test_a_text_after_reasoning_that_no_reply_confirmed_shows() -> None:
    done = event(
        5, "node.completed", "a", outputs={"output": {"type": "text", "value": "It is so."}}
    )
    live, _ = encoded(delta("a", "Hm.", kind="reasoning"), delta("a", "It is"), done)
    assert texts(live) == ["It is so."]


def test_a_streamed_text_shows_again_that_no_node_reads_any_more() -> None:
    done = event(
        5, "node.completed", "a", outputs={"output": {"type": "text", "value": "It is so."}}
    )
    live, _ = encoded(delta("a", "It is"), done)
    assert texts(live) == ["It is so."]
    live.encode(change(6, graph("a", "b", "c", edges="a>c")))
    assert texts(live) == []
    live.encode(change(7, graph("a", "b"), graph("a", "b", "c", edges="a>c")))
    assert texts(live) == ["It is so."]


def test_a_result_shows_once_no_node_reads_it_any_more_and_not_while_one_does() -> None:
    done = event(5, "node.completed", "a", outputs={"output": {"type": "text", "value": "It."}})
    live, _ = encoded(done, change(6, graph("a", "b", "c", edges="a>c")))
    assert texts(live) == []
    live.encode(change(7, graph("a", "b"), graph("a", "b", "c", edges="a>c")))
    assert texts(live) == ["It."]


def test_attempt_that_is_entered_again_tells_nothing_twice() -> None:
    replies = {("a", 1): [Reply("Let me look.", "Hm."), Reply("Found.")]}
    first = [usage(5, "a"), call(6, "start"), call(7, "end", result="it")]
    again = [
        event(8, "node.unparked", "a"),
        delta("a", "Hm.", kind="reasoning"),
        delta("a", "Let me "),
        delta("a", "look.", 7),
        delta("a", "\n\n", 12),
        delta("a", "Fou", 14),
        usage(9, "a"),
        call(10, "end", result="it"),
        delta("a", "nd.", 17),
    ]
    encoder, told = encoded(*first, *again, replies=replies)
    assert texts(encoder) == ["Hm.", "Let me look.", "tool_call", "Found."]
    said = [each["content"] for each in told if each["event"] == "RunContent"]
    assert said == ["Let me look.", "Fou", "nd."]


def test_text_that_is_streamed_again_without_its_line_breaks_is_whole() -> None:
    encoder, told = encoded(delta("a", "\n\nHello"), delta("a", "Bye, all"))
    assert texts(encoder) == ["Bye, all"]
    said = [(each["content"], each["offset"]) for each in told if each["event"] == "RunContent"]
    assert said == [("Hello", 0), ("Bye, all", 0)]


def test_text_of_a_failed_attempt_is_void() -> None:
    encoder, told = encoded(
        delta("a", "Half a"),
        Event("x", 5, "", "node.started", "a", 2, {}),
        delta("a", "Whole.", attempt=2),
    )
    assert texts(encoder) == ["Whole."]
    assert next(each for each in told if each["event"] == "SeedBlocks")["blocks"] == []


def test_discarded_text_of_a_model_is_void_and_what_it_said_before_stays() -> None:
    replies = {("a", 1): [Reply("Let me look.")]}
    encoder, _ = encoded(
        delta("a", "Let me look."), usage(5, "a"), call(6, "start"), call(7, "end", result="it"),
        delta("a", "\n\nHalf", 12),
        event(8, "node.event", "a", event_type="text_discarded", data={"message": "m"}),
        delta("a", "Whole."),
        replies=replies,
    )  # fmt: skip
    assert texts(encoder) == ["Let me look.", "tool_call", "Whole."]


def test_result_that_was_not_streamed_is_shown_where_no_node_reads_it() -> None:
    output = {"output": {"type": "text", "value": "Done."}}
    encoder, _ = encoded(event(5, "node.completed", "a", outputs=output))
    assert texts(encoder) == ["Done."]


def test_request_that_nobody_answers_is_closed_at_the_end() -> None:
    asked = event(5, "node.waiting", "a", request_id="r5", request={"prompt": "May I?"})
    cancelled = event(6, "execution.cancelled", cause="by request")
    encoder, told = encoded(asked, cancelled)
    assert [block["status"] for block in encoder.blocks] == ["closed"]
    assert [each["event"] for each in told][-3:] == [
        "ApprovalRequired", "ApprovalResolved", "RunCancelled",
    ]  # fmt: skip
