"""Conversations as JSON: which are valid, and what is sent to the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import Field

import planwave
from planwave.errors import GraphInvalid, LimitExceeded, NodeError
from planwave.graph.inputs import Inputs
from planwave.graph.model import Node
from planwave.nodes.authoring.node_type import NodeData, NodeType, validate_data
from planwave.nodes.conversation import (
    Conversation,
    Files,
    Images,
    chat_message,
    readable_messages,
    strip_images,
    user_message,
    with_messages,
)
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.agent import Agent
from planwave.nodes.library.llm import Llm
from planwave.nodes.registry import Registry
from planwave.providers.protocols import ModelProfile, ModelRequest, PromptMessage, ToolCall
from planwave.settings import Limits
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.llm.fake_providers import ListedProviders
from tests.support.nodes.nested_graphs import graph_document, node_document
from tests.support.nodes.node_context import (
    context_for,
    make_inputs,
    result_and_events,
    services_with,
)
from tests.support.outbound.fake_network import PUBLIC, FakeNetwork, response

PIXEL = "data:image/png;base64,iVBORw0KGgo="
CAT = "https://pictures.example/cat.png"
ASKED = ModelRequest("openai", "m", "And now?", system="Be kind.")
TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "I am Ann."},
    {"role": "assistant", "content": "Hello Ann."},
]

ADD = {"type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", **ADD}, {"id": "b", **ADD}],
    "native": {"kind": "response", "parts": []},
}
RETURNED = [
    {"role": "tool", "content": "2", "tool_call_id": "a"},
    {"role": "tool", "content": "no", "tool_call_id": "b", "name": "add", "is_error": True},
]
ACTED = [*TALK, CALLED, *RETURNED]
"""A conversation in which two tools were called at once."""


class Given(NodeData):
    """All that a conversation is made of."""

    messages: Conversation = Field([])
    files: Files = Field([])
    images: Images = Field([])


def read(**data: Any) -> Given:
    given = validate_data(Given, data)
    assert isinstance(given, Given)
    return given


def error_of(**data: Any) -> str:
    with pytest.raises(NodeError) as caught:
        validate_data(Given, data)
    assert caught.value.code == "invalid-data"
    return caught.value.message


# -- what is read


def test_a_message_survives_reading_and_writing() -> None:
    parts = [
        {"type": "text", "text": "Look at"},
        {"type": "image_url", "image_url": {"url": CAT}},
        {"type": "text", "text": "this."},
    ]
    messages_sent = [*TALK, {"role": "user", "content": parts}]
    messages = read(messages=messages_sent).messages
    assert [message.as_json() for message in messages] == messages_sent
    assert messages[-1].text == "Look at\nthis."
    assert messages[-1].images == (CAT,)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"role": "robot", "content": "x"}, "has to be 'system', 'user', 'assistant' or 'tool'"),
        ({"role": "tool", "content": "x"}, "a tool message needs the tool_call_id"),
        ({"role": "tool", "content": None, "tool_call_id": "a"}, "content is required"),
        ({"role": "assistant", "content": None}, "content is required"),
        ({"role": "assistant", "tool_calls": []}, "tool_calls"),
        ({"role": "assistant", "tool_calls": [{"id": "", **ADD}]}, "tool_calls.0.id"),
        ({"role": "assistant", "tool_calls": [{"id": "a", "type": "function"}]}, "function"),
        (
            {"role": "user", "content": "x", "tool_calls": CALLED["tool_calls"]},
            "the role assistant",
        ),
        ({"role": "user", "content": "x", "tool_call_id": "a"}, "the role tool"),
        ({"role": "tool", "content": "x", "tool_call_id": "a", "native": {"a": 1}}, "assistant"),
        ({"role": "user"}, "content is required"),
        ({"role": "user", "content": 5}, "has to be an array"),
        ({"role": "user", "content": [{"type": "audio"}]}, "'text', 'image_url'"),
        ({"role": "user", "content": "x", "age": 5}, "age is not known here"),
        (
            {"role": "user", "content": "x", "name": "Ann"},
            "name belongs to messages of the role tool",
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "image_url", "image_url": {"url": CAT}}],
            },
            "a message of the assistant holds no images",
        ),
    ],
)
def test_an_invalid_message_is_rejected_with_its_index(message: dict[str, Any], words: str) -> None:
    messages_sent = error_of(messages=[TALK[0], message])
    assert messages_sent.startswith("data.messages.1")
    assert words in messages_sent


def test_messages_of_tools_survive_reading_and_writing() -> None:
    messages = read(messages=ACTED).messages
    assert [message.as_json() for message in messages] == ACTED
    called, plain = messages[3], messages[2]
    assert (called.text, called.images) == ("", ())
    assert called.calls == (ToolCall("a", "add", '{"a": 1}'), ToolCall("b", "add", '{"a": 1}'))
    assert (called.tokens, plain.tokens) == (6, 3)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (RETURNED[:1], "message 0 answers the call 'a', which no message before it makes"),
        ([*TALK, *RETURNED], "message 3 answers the call 'a', which no message before it makes"),
        ([*ACTED, RETURNED[0]], "message 6 answers the call 'a', which has a result already"),
        ([*TALK, CALLED], "message 3 makes the call 'a', which has no result after it"),
        (ACTED[:-1], "message 3 makes the call 'b', which has no result after it"),
        ([*ACTED[:-1], TALK[1], RETURNED[1]], "the call 'b', which has no result before message 5"),
        ([CALLED, CALLED, *RETURNED], "message 0 makes the call 'a', which has no result before"),
    ],
)
def test_calls_and_results_have_to_match(messages: list[Any], words: str) -> None:
    assert words in error_of(messages=messages)


def test_ids_of_calls_may_be_used_again_after_their_results() -> None:
    assert len(read(messages=[*ACTED, CALLED, TALK[0], *RETURNED[::-1]]).messages) == 10


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://pictures.example/cat.png", "http:// or https://"),
        ("https:///cat.png", "names a host"),
        ("file:///etc/passwd", "http:// or https://"),
        ("https://pictures.example/" + "a" * 5_000, "at most 4096 characters"),
        ("data:image/svg+xml;base64,AAAA", "image/png, image/jpeg"),
        ("data:image/png,AAAA", "data:TYPE;base64"),
        ("data:image/png;base64", "data:TYPE;base64"),
        ("data:image/png;base64,A*A", "not base64"),
    ],
)
def test_an_unusable_image_is_rejected(url: str, words: str) -> None:
    assert words in error_of(images=[url])
    part = {"type": "image_url", "image_url": {"url": url}}
    assert words in error_of(messages=[{"role": "user", "content": [part]}])


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ({"name": "a.txt", "mime": "text/plain"}, "a url or data, one of them"),
        (
            {"name": "a", "mime": "text/plain", "url": "https://x.example/a", "data": "YQ=="},
            "a url or data, one of them",
        ),
        ({"name": "a", "mime": "text", "data": "YQ=="}, "mime"),
        ({"name": "", "mime": "text/plain", "data": "YQ=="}, "name"),
        ({"name": "a", "mime": "text/plain", "data": "not base64!"}, "not base64"),
        ({"name": "a", "mime": "text/plain", "url": "javascript:x"}, "http:// or https://"),
        ("a.txt", "has to be an object"),
    ],
)
def test_an_invalid_file_is_rejected(file: Any, words: str) -> None:
    messages_sent = error_of(files=[file])
    assert messages_sent.startswith("data.files.0")
    assert words in messages_sent


def test_a_file_has_content_or_a_url() -> None:
    inside = {"name": "a.txt", "mime": "text/plain", "data": "aGk="}
    outside = {"name": "a.txt", "mime": "text/plain", "url": "https://x.example/a.txt"}
    files = read(files=[inside, outside]).files
    assert [file.content for file in files] == [b"hi", None]


def test_an_image_is_a_url_or_an_image_file() -> None:
    image = {"name": "p", "mime": "image/png", "data": "iVBORw0KGgo="}
    url, file = read(images=[CAT, image]).images
    assert url == CAT
    assert not isinstance(file, str)
    assert file.as_url == PIXEL
    assert "mime" in error_of(images=[image | {"mime": "image/svg+xml"}])


def test_text_and_images_of_a_user_are_one_message() -> None:
    assert user_message("hi", ()).as_json() == {"role": "user", "content": "hi"}
    shown = {"type": "image_url", "image_url": {"url": CAT}}
    assert user_message("", [CAT]).as_json() == {"role": "user", "content": [shown]}
    both = user_message("Look", [CAT])
    assert both.as_json()["content"] == [{"type": "text", "text": "Look"}, shown]
    assert (user_message("a" * 8, ()).tokens, both.tokens) == (2, 1_001)


# -- what goes to a model


def test_system_messages_at_the_beginning_join_the_system_prompt_and_later_ones_keep_their_place() -> (
    None
):
    late = {"role": "system", "content": "Be exact."}
    request = with_messages(ASKED, read(messages=[*TALK, late]).messages)
    assert request.system == "Be kind.\n\nBe brief."
    assert request.messages == (
        PromptMessage("user", "I am Ann."),
        PromptMessage("assistant", "Hello Ann."),
        PromptMessage("system", "Be exact."),
    )
    assert chat_message(request.messages[-1]).as_json() == late
    assert request.prompt == "And now?"
    assert with_messages(ASKED, None) is ASKED
    assert with_messages(ASKED, []) is ASKED


def test_calls_of_tools_become_turns_and_messages_again() -> None:
    messages = read(messages=ACTED).messages
    turns = with_messages(ASKED, messages).messages
    calls = (ToolCall("a", "add", '{"a": 1}'), ToolCall("b", "add", '{"a": 1}'))
    assert turns[2:] == (
        PromptMessage("assistant", "", tool_calls=calls, native=CALLED["native"]),
        PromptMessage("tool", "2", tool_call_id="a", tool_name="add"),
        PromptMessage("tool", "no", tool_call_id="b", tool_name="add", is_error=True),
    )
    named = [*ACTED[1:4], {**RETURNED[0], "name": "add"}, RETURNED[1]]
    assert [chat_message(turn).as_json() for turn in turns] == named
    shown = PromptMessage("user", "Look", (CAT,))
    assert with_messages(ASKED, [chat_message(shown)]).messages == (shown,)
    said = PromptMessage("assistant", "")
    assert chat_message(said).as_json() == {"role": "assistant", "content": ""}


def test_calls_of_tools_are_shown_without_the_native_form() -> None:
    turns = with_messages(ASKED, read(messages=ACTED).messages).messages
    call = {"name": "add", "arguments": '{"a": 1}'}
    assert readable_messages(turns[2:]) == [
        {"role": "assistant", "content": "", "tool_calls": [{"id": i, **call} for i in "ab"]},
        {"role": "tool", "content": "2", "tool_call_id": "a", "name": "add"},
        {
            "role": "tool",
            "content": "no",
            "tool_call_id": "b",
            "name": "add",
            "is_error": True,
        },
    ]


def test_a_text_replaces_images_for_a_model_without_vision() -> None:
    talk = (PromptMessage("user", "Look:", (CAT, PIXEL)), PromptMessage("user", "", (CAT,)))
    request = ModelRequest("local", "m", "?", messages=talk)
    blind, left_out = strip_images(request)
    assert left_out == 3
    note = "[an image that cannot be shown to this model]"
    assert blind.messages == (
        PromptMessage("user", f"Look:\n{note}\n{note}"),
        PromptMessage("user", note),
    )
    assert strip_images(ASKED) == (ASKED, 0)
    acted = with_messages(request, read(messages=ACTED).messages).messages
    assert strip_images(replace(request, messages=(*acted, talk[1])))[0].messages[:-1] == acted


@pytest.mark.parametrize("kind", [Agent, Llm])
@pytest.mark.parametrize("wired", [True, False])
async def test_messages_from_data_or_a_wire_are_sent_to_the_model(
    kind: type[NodeType], wired: bool
) -> None:
    services, models = services_with(lambda _: ["fine"])
    talk = [*TALK, {"role": "user", "content": "Who am I?"}]
    context = context_for(planwave_node(kind), services=services)
    inputs = make_inputs(("messages", talk)) if wired else Inputs()
    data = {} if wired else {"messages": talk}
    result, events = await result_and_events(kind().execute(data, inputs, context))
    assert result.outputs["output"].value == "fine"
    (request,) = models.requests
    assert request.system == "Be brief."
    assert [turn.text for turn in request.messages] == ["I am Ann.", "Hello Ann.", "Who am I?"]
    assert request.prompt == ""
    prompt = next(event.data for event in events if event.event_type == "prompt")
    assert prompt["messages"][-1] == {"role": "user", "content": "Who am I?"}
    assert prompt["prompt"] == ""


@pytest.mark.parametrize("kind", [Agent, Llm])
async def test_the_input_follows_the_conversation_as_prompt(kind: type[NodeType]) -> None:
    services, models = services_with(lambda _: ["fine"])
    context = context_for(planwave_node(kind), services=services)
    await result_and_events(kind().execute({"messages": TALK}, make_inputs("And now?"), context))
    (request,) = models.requests
    assert (len(request.messages), request.prompt) == (2, "And now?")


@pytest.mark.parametrize("kind", [Agent, Llm])
async def test_a_conversation_that_ends_with_an_assistant_message_fails_the_node(
    kind: type[NodeType],
) -> None:
    services, models = services_with(lambda _: ["fine"])
    context = context_for(planwave_node(kind), services=services)
    with pytest.raises(NodeError) as caught:
        await result_and_events(kind().execute({"messages": TALK}, Inputs(), context))
    assert caught.value.code == "empty-prompt"
    assert "does not end with a question" in caught.value.message
    assert models.requests == []


@pytest.mark.parametrize("kind", [Agent, Llm])
async def test_a_model_replies_to_a_conversation_that_ends_with_the_result_of_a_tool(
    kind: type[NodeType],
) -> None:
    services, models = services_with(lambda _: ["fine"])
    context = context_for(planwave_node(kind), services=services)
    result, events = await result_and_events(kind().execute({"messages": ACTED}, Inputs(), context))
    assert result.outputs["output"].value == "fine"
    assert [turn.role for turn in models.requests[0].messages][-2:] == ["tool", "tool"]
    prompt = next(event.data for event in events if event.event_type == "prompt")
    assert prompt["messages"][-1]["is_error"] is True
    assert "native" not in str(prompt)


@pytest.mark.parametrize("kind", ["agent", "llm"])
def test_the_check_finds_a_call_without_its_result(kind: str) -> None:
    graph = graph_document(node_document("a", kind, messages=ACTED[:-1]))
    with pytest.raises(GraphInvalid) as caught:
        planwave.build(graph, registry=Registry(LIBRARY))
    (found,) = caught.value.diagnostics
    assert (found.code, found.pointer) == ("invalid-data", "/nodes/0/data/messages")
    assert "message 3 makes the call 'b', which has no result" in found.message


async def test_images_for_a_model_without_vision_are_dropped_with_a_warning() -> None:
    providers = ListedProviders(
        {"local": ["blind"]}, profiles={"blind": ModelProfile(images=False)}
    )
    services, models = services_with(lambda _: ["fine"], providers)
    context = context_for(planwave_node(Llm), services=services)
    data = {"messages": [user_message("Look", [PIXEL]).as_json()]}
    _, events = await result_and_events(Llm().execute(data, Inputs(), context))
    (request,) = models.requests
    assert request.messages[0].images == ()
    assert events[0].data == {
        "message": "blind cannot look at images: 1 left out",
        "level": "warning",
    }


SHOWN = [{"role": "user", "content": "Look", "images": ["data:image/png, 9 bytes", CAT]}]


def cat_server(*answers: bytes) -> FakeNetwork:
    jpeg = response(b"\xff\xd8\xff", kind="image/jpeg")
    return FakeNetwork({"pictures.example": [PUBLIC]}, *(answers or (jpeg,)))


async def test_an_image_is_fetched_for_the_model_and_shown_as_its_url() -> None:
    net = cat_server()
    services, models = services_with(lambda _: ["fine"], outbound=net.client())
    context = context_for(planwave_node(Llm), services=services)
    data = {"messages": [user_message("Look", [PIXEL, CAT]).as_json()]}
    _, events = await result_and_events(Llm().execute(data, Inputs(), context))
    assert models.requests[0].messages[0].images == (PIXEL, "data:image/jpeg;base64,/9j/")
    assert events[0].data["messages"] == SHOWN


async def test_providers_get_the_url_of_an_image_where_the_operator_wants_it() -> None:
    services, models = services_with(lambda _: ["fine"], providers_fetch_images=True)
    context = context_for(planwave_node(Llm), services=services)
    data = {"messages": [user_message("Look", [PIXEL, CAT]).as_json()]}
    _, events = await result_and_events(Llm().execute(data, Inputs(), context))
    assert models.requests[0].messages[0].images == (PIXEL, CAT)
    assert events[0].data["messages"] == SHOWN


async def test_providers_get_no_url_of_a_host_that_the_operator_does_not_list() -> None:
    client = FakeNetwork().client(hosts=["elsewhere.example"])
    services, models = services_with(
        lambda _: ["fine"], providers_fetch_images=True, outbound=client
    )
    context = context_for(planwave_node(Llm), services=services)
    data = {"messages": [user_message("Look", [PIXEL, CAT]).as_json()]}
    with pytest.raises(NodeError) as caught:
        await result_and_events(Llm().execute(data, Inputs(), context))
    assert (caught.value.code, models.requests) == ("url-refused", [])


@pytest.mark.parametrize(("is_own", "code"), [(True, None), (False, "address-refused")])
async def test_a_service_of_the_operator_shows_images_that_the_graph_names_itself(
    is_own: bool, code: str | None
) -> None:
    net = FakeNetwork({"inner.test": ["10.0.0.1"]}, response(b"\xff\xd8\xff", kind="image/jpeg"))
    url = "https://inner.test/1.jpg"
    services, models = services_with(lambda _: ["fine"], outbound=net.client("inner.test"))
    node = Node("n", "llm", "N", data={"messages": [user_message("Look", [url]).as_json()]})
    data = node.data
    if not is_own:  # it came over a wire, or with the caller's conversation
        node = node._replace(data={"messages": [user_message(f"{url} and more", []).as_json()]})
    context = context_for(node, services=services)
    call = Llm().execute(data, Inputs(), context)
    if code is None:
        await result_and_events(call)
        assert models.requests[0].messages[0].images == ("data:image/jpeg;base64,/9j/",)
        return
    with pytest.raises(NodeError) as caught:
        await result_and_events(call)
    assert (caught.value.code, net.connections) == (code, [])


@pytest.mark.parametrize("kind", [Agent, Llm])
async def test_no_wire_sets_more_tokens_than_the_operator_allows(kind: type[NodeType]) -> None:
    services, models = services_with(lambda _: ["fine"], limits=Limits(call_tokens=500))
    context = context_for(planwave_node(kind), services=services)
    data: dict[str, Any] = {"messages": TALK[:2], "maxTokens": 501}
    with pytest.raises(LimitExceeded, match="call_tokens"):
        await result_and_events(kind().execute(data, Inputs(), context))
    assert models.requests == []


async def test_a_caller_gets_no_more_tokens_than_the_operator_allows() -> None:
    services, models = services_with(lambda _: ["fine"], limits=Limits(call_tokens=500))
    context = context_for(planwave_node(Agent), services=services)
    data: dict[str, Any] = {"messages": TALK[:2], "caller": {"maxTokens": 1_000_000_000}}
    await result_and_events(Agent().execute(data, Inputs(), context))
    assert [request.max_tokens for request in models.requests] == [500]


async def test_an_image_is_fetched_once_for_all_replies_of_an_agent_and_after_a_crash() -> None:
    net, store = cat_server(), MemoryStore()
    services, models = services_with(
        lambda request: ['{"ok": true}' if request.messages[1:] else "no JSON"],
        outbound=net.client(),
        recorder=store,
    )
    data = {"userPrompt": "Look", "images": [CAT, CAT], "outputSchema": {"type": "object"}}
    for _ in range(2):
        context = context_for(planwave_node(Agent), services=services)
        result, _ = await result_and_events(Agent().execute(data, Inputs(), context))
        assert result.outputs["output"].value == {"ok": True}
    shown = ("data:image/jpeg;base64,/9j/",) * 2
    assert [request.messages[0].images for request in models.requests] == [shown] * 4
    assert len(net.requests) == 1


@pytest.mark.parametrize(
    ("net", "code"),
    [
        (cat_server(response(status="404 Not Found")), "http-status"),
        (cat_server(response(b"<html>", kind="text/html")), "invalid-response"),
        (FakeNetwork({"pictures.example": ["10.0.0.1"]}), "address-refused"),
        (None, "no-outbound"),
    ],
)
async def test_an_image_that_cannot_be_fetched_fails_the_node_before_a_call_is_paid(
    net: FakeNetwork | None, code: str
) -> None:
    services, models = services_with(lambda _: ["fine"], outbound=net and net.client())
    context = context_for(planwave_node(Agent), services=services)
    data = {"userPrompt": "Look", "images": [CAT]}
    with pytest.raises(NodeError) as caught:
        await result_and_events(Agent().execute(data, Inputs(), context))
    assert (caught.value.code, models.requests) == (code, [])


@pytest.mark.parametrize("kind", ["agent", "llm"])
def test_messages_replace_the_required_prompt(kind: str) -> None:
    registry = Registry(LIBRARY)
    graph = graph_document(node_document("a", kind, messages=TALK))
    assert planwave.build(graph, registry=registry).diagnostics == ()
    wired = graph_document(
        node_document("talk", "parser", template=TALK),
        node_document("a", kind),
        edges=[("talk", "a", "output", "messages")],
    )
    assert planwave.build(wired, registry=registry).diagnostics == ()


def planwave_node(kind: type[NodeType]) -> Any:
    return planwave.Node("n", kind.node_type, "N")
