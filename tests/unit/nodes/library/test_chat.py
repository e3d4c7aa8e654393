"""The conversation for a model call: order, window, and attachments."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planwave
from planwave.errors import NodeError
from planwave.graph.inputs import Inputs
from planwave.graph.model import Node
from planwave.nodes.conversation import ChatMessage
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.chat import Chat, ChatData, fit_window
from planwave.nodes.registry import Registry
from planwave.nodes.spec import spec_of
from planwave.providers.protocols import ModelRequest
from tests.support.nodes.node_context import (
    context_for,
    make_inputs,
    result_and_events,
    services_with,
)

NODE = Node("talk", "chat", "Talk")
CAT = "https://pictures.example/cat.png"


def said(*texts: str) -> list[dict[str, str]]:
    """Return messages: ``u:text``, ``a:text`` or ``s:text`` each."""
    roles = {"u": "user", "a": "assistant", "s": "system"}
    return [{"role": roles[t[0]], "content": t[2:]} for t in texts]


def file(name: str, mime: str, content: bytes) -> dict[str, str]:
    return {"name": name, "mime": mime, "data": base64.b64encode(content).decode()}


async def talk(inputs: Inputs, **data: Any) -> tuple[list[Any], list[Any]]:
    """Return the messages of the node and its log."""
    result, events = await result_and_events(Chat().execute(data, inputs, context_for(NODE)))
    (messages,) = result.outputs.values()
    assert messages.type == "json"
    return messages.value, [event.data for event in events]


# -- what it is made of


async def test_the_input_is_the_user_message() -> None:
    assert await talk(make_inputs("hi")) == (said("u:hi"), [])


async def test_the_parts_of_a_conversation_are_ordered() -> None:
    messages, _ = await talk(
        make_inputs("ignored"),
        system="Be brief.",
        message="And now?",
        historyMessages=said("u:one", "a:two"),
        customMessages=said("u:three", "a:four"),
    )
    assert messages == said("s:Be brief.", "u:one", "a:two", "u:three", "a:four", "u:And now?")


@pytest.mark.parametrize(
    ("append", "expected"),
    [
        (False, said("u:new", "u:custom", "u:hi")),
        (True, said("u:old", "a:older", "u:new", "u:custom", "u:hi")),
    ],
)
async def test_messages_replace_the_history_or_are_appended_to_it(
    append: bool, expected: list[Any]
) -> None:
    parts = {"historyMessages": said("u:old", "a:older"), "customMessages": said("u:custom")}
    wired = make_inputs("hi", ("messages", said("u:new")))
    messages, _ = await talk(wired, messagesAppendMode=append, **parts)
    assert messages == expected


async def test_every_part_may_be_wired() -> None:
    inputs = make_inputs(
        ("system", "Be brief."),
        ("message", "And now?"),
        ("historyMessages", said("u:one", "a:two")),
        ("images", [CAT]),
    )
    messages, _ = await talk(inputs)
    image = {"type": "image_url", "image_url": {"url": CAT}}
    assert messages == [
        *said("s:Be brief.", "u:one", "a:two"),
        {"role": "user", "content": [{"type": "text", "text": "And now?"}, image]},
    ]


async def test_files_and_images_of_a_user_input_are_used_unless_the_data_have_their_own() -> None:
    whole = {
        "message": "Look",
        "files": [file("a.txt", "text/plain", b"hello")],
        "images": [CAT],
        "extras": {"tone": "warm"},
        "chatId": "c",
    }
    ((message,), logs) = await talk(make_inputs(whole))
    assert [part.get("text") for part in message["content"]] == ["Look\n\nFile a.txt:\nhello", None]
    assert message["content"][1]["image_url"] == {"url": CAT}
    assert logs == []
    ((own,), _) = await talk(
        make_inputs(whole), message="No:", files=[file("b", "text/csv", b"1,2")]
    )
    assert own["content"][0]["text"] == "No:\n\nFile b:\n1,2"


@pytest.mark.parametrize("value", [{"text": "hi"}, {"message": "hi", "more": 1}])
async def test_any_other_object_is_converted_to_text(value: dict[str, Any]) -> None:
    ((message,), _) = await talk(make_inputs(value))
    assert message["content"].startswith("{")


async def test_several_inputs_are_one_message_with_labelled_sources() -> None:
    ((message,), _) = await talk(make_inputs("a", "b"))
    assert message["content"] == "From Source 0 (s0):\na\n\nFrom Source 1 (s1):\nb"


async def test_without_a_message_there_is_no_user_turn() -> None:
    assert await talk(Inputs(), system="Be brief.") == (said("s:Be brief."), [])
    assert await talk(Inputs(), historyMessages=said("u:hi")) == (said("u:hi"), [])


# -- files


@pytest.mark.parametrize(
    "mime", ["text/markdown", "application/json", "application/ld+json", "image/svg+xml"]
)
async def test_text_files_are_quoted(mime: str) -> None:
    ((message,), logs) = await talk(make_inputs("Read"), files=[file("f", mime, "ü".encode())])
    assert (message["content"], logs) == ("Read\n\nFile f:\nü", [])


@pytest.mark.parametrize(
    ("attached", "quoted"),
    [
        (file("r.pdf", "application/pdf", b"%PDF"), "[File r.pdf (application/pdf)]"),
        (
            {"name": "r.txt", "mime": "text/plain", "url": "https://files.example/r.txt"},
            "[File r.txt (text/plain): https://files.example/r.txt]",
        ),
    ],
)
async def test_other_files_are_only_named_and_logged(attached: dict[str, str], quoted: str) -> None:
    ((message,), (log,)) = await talk(make_inputs("Read"), files=[attached])
    assert message["content"] == f"Read\n\n{quoted}"
    assert log["level"] == "warning"
    assert repr(attached["name"]) in log["message"]


async def test_a_text_file_that_is_not_utf_8_fails_the_node() -> None:
    with pytest.raises(NodeError) as caught:
        await talk(make_inputs("Read"), files=[file("f", "text/plain", b"\xff\xfe")])
    assert caught.value.code == "invalid-data"
    assert "'f'" in caught.value.message


# -- the window


def window(max_tokens: int | None, *texts: str) -> list[str]:
    """Fit messages; every text of n letters is n tokens here."""
    messages = [
        ChatMessage.model_validate({**each, "content": each["content"] * 4})
        for each in said(*texts)
    ]
    return [
        m.role[0] + ":" + m.text[: len(m.text) // 4] for m in fit_window(messages, max_tokens)[0]
    ]


SIX = ("u:aa", "a:bb", "s:S", "u:c", "a:d", "u:e")


@pytest.mark.parametrize(
    ("max_tokens", "texts", "kept"),
    [
        (None, SIX, ["s:S", "u:aa", "a:bb", "u:c", "a:d", "u:e"]),
        (8, SIX, ["s:S", "u:aa", "a:bb", "u:c", "a:d", "u:e"]),
        (7, SIX, ["s:S", "u:c", "a:d", "u:e"]),
        (4, SIX, ["s:S", "u:c", "a:d", "u:e"]),
        (3, SIX, ["s:S", "u:e"]),
        (1, SIX, ["s:S", "u:e"]),
        (5, ("u:aaaaaaaa", "a:b", "a:c", "u:d"), ["u:d"]),
        (2, ("a:aa", "u:b", "a:c"), ["u:b", "a:c"]),
        (4, ("a:aa", "u:b", "a:c"), ["a:aa", "u:b", "a:c"]),
        (3, ("u:a", "u:bbbbb", "u:c"), ["u:c"]),
        (1, (), []),
    ],
)
def test_the_oldest_turns_are_dropped_and_system_messages_and_the_last_turn_stay(
    max_tokens: int | None, texts: tuple[str, ...], kept: list[str]
) -> None:
    assert window(max_tokens, *texts) == kept


conversations = st.lists(
    st.builds(
        lambda role, size: ChatMessage(role=role, content="x" * 4 * size),
        st.sampled_from(["system", "user", "assistant"]),
        st.integers(0, 9),
    ),
    max_size=12,
)


@given(conversations, st.integers(1, 60))
def test_a_window_is_the_longest_end_of_whole_turns_that_fits(
    messages: list[ChatMessage], max_tokens: int
) -> None:
    system = [m for m in messages if m.role == "system"]
    said = [m for m in messages if m.role != "system"]
    found = fit_window(messages, max_tokens)
    kept = found.messages[len(system) :]
    assert found.messages[: len(system)] == system
    assert kept == said[len(said) - len(kept) :]
    assert found.dropped == len(said) - len(kept)
    assert found.tokens == sum(m.tokens for m in found.messages)
    begins = [n for n, m in enumerate(said) if n == 0 or m.role == "user"]
    assert found.dropped in begins or not said
    if found.dropped:
        older = max(n for n in begins if n < found.dropped)
        wider = found.tokens + sum(m.tokens for m in said[older : found.dropped])
        assert wider > max_tokens
    if found.tokens > max_tokens and said:
        assert found.dropped == begins[-1]


async def test_dropped_messages_are_logged() -> None:
    history = said("u:" + "a" * 40, "a:" + "b" * 40, "u:c", "a:d")
    messages, (log,) = await talk(make_inputs("hi"), historyMessages=history, maxInputTokens=10)
    assert messages == said("u:c", "a:d", "u:hi")
    assert log["level"] == "info"
    assert log["message"].startswith("2 of the oldest messages")


async def test_a_last_turn_over_the_limit_is_sent_with_a_warning() -> None:
    messages, (log,) = await talk(make_inputs("a" * 400), maxInputTokens=10)
    assert len(messages) == 1
    assert log["level"] == "warning"
    assert "about 100 tokens" in log["message"]


# -- calls of tools

CALL = {"id": "a", "type": "function", "function": {"name": "add", "arguments": "{}"}}
CALLED: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RETURNED = {"role": "tool", "content": "2", "tool_call_id": "a"}


async def test_calls_of_tools_are_passed_on_with_their_results() -> None:
    history = [*said("u:old", "a:old", "u:add"), CALLED]
    messages, _ = await talk(
        make_inputs("hi"), historyMessages=history, customMessages=[RETURNED], maxInputTokens=6
    )
    assert messages == [*said("u:add"), CALLED, RETURNED, *said("u:hi")]


async def test_a_conversation_with_a_result_without_its_call_is_an_error() -> None:
    with pytest.raises(NodeError) as caught:
        await talk(make_inputs("hi"), historyMessages=said("u:add"), customMessages=[RETURNED])
    assert caught.value.code == "invalid-data"
    assert "message 1 answers the call 'a'" in caught.value.message


# -- data and runs


@pytest.mark.parametrize(
    "data",
    [
        {"maxInputTokens": 0},
        {"historyMessages": [{"role": "robot", "content": "x"}]},
        {"messages": "hi"},
        {"images": ["cat.png"]},
        {"memory": {}},
    ],
)
async def test_invalid_data_fail_the_node(data: dict[str, Any]) -> None:
    with pytest.raises(NodeError) as caught:
        await talk(make_inputs("hi"), **data)
    assert caught.value.code == "invalid-data"


def test_the_planner_may_set_only_system_and_message() -> None:
    schema = ChatData.model_json_schema()["properties"]
    planned = [name for name, field in schema.items() if field.get("planned") is not False]
    assert planned == ["system", "message"]


async def test_the_messages_reach_the_model_as_turns() -> None:
    requests: list[ModelRequest] = []

    def reply(request: ModelRequest) -> list[str]:
        requests.append(request)
        return ["Seeds."]

    services, _ = services_with(reply)
    built = planwave.build(dict(spec_of(Chat()).example), registry=Registry(LIBRARY))
    result = await planwave.run(built, services=services)
    assert result.text == "Seeds."
    (request,) = requests
    assert request.system == "You know all about birds."
    assert [(turn.role, turn.text) for turn in request.messages] == [
        ("user", "What do robins eat in summer?"),
        ("assistant", "Insects and worms, mostly."),
        ("user", "And in winter?"),
    ]
    assert request.prompt == ""
