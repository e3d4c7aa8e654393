"""Bodies of requests as conversations of planwave."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.diagnostics import short_repr
from planwave.interop.openai.chat_request import ChatCompletionRequest
from planwave.interop.openai.errors import InvalidParameter
from planwave.interop.openai.responses_request import ResponsesRequest

CALL = {"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{}"}}


def chat(*messages: dict[str, Any], **more: Any) -> ChatCompletionRequest:
    return ChatCompletionRequest.model_validate({"model": "m", "messages": [*messages], **more})


def response(given: Any, **more: Any) -> ResponsesRequest:
    return ResponsesRequest.model_validate({"model": "m", "input": given, **more})


def test_unknown_fields_are_ignored() -> None:
    request = chat({"role": "user", "content": "x", "name": "Ann"}, user="u", store=True, seed=1)
    assert request.turn().message == "x"


def test_both_protocols_give_the_same_conversation() -> None:
    of_chat = chat(
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "9 degrees"},
    ).turn()
    of_response = response(
        [
            {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
            {"type": "reasoning", "id": "r", "summary": []},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Let me see."}],
            },
            {"type": "function_call", "call_id": "c1", "name": "t", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "9 degrees"},
        ],
        instructions="Be kind.",
    ).turn()
    assert of_chat.message == of_response.message == ""
    assert [message["role"] for message in of_chat.history] == [
        "system", "user", "assistant", "tool",
    ]  # fmt: skip
    assert of_chat.history[2:] == of_response.history[2:]
    assert of_response.history[1]["content"] == [{"type": "text", "text": "Weather?"}]


def test_images_of_the_last_message_are_apart() -> None:
    url = "https://example.com/a.png"
    parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": url}}]
    turn = chat({"role": "user", "content": [*parts, {"type": "text", "text": "b"}]}).turn()
    assert (turn.message, list(turn.images)) == ("a\nb", [url])
    shown = [{"type": "input_image", "image_url": url}]
    of_response = response([{"role": "user", "content": shown}]).turn()
    assert (of_response.message, list(of_response.images)) == ("", [url])


def test_options_have_only_what_is_asked_for() -> None:
    said = {"role": "user", "content": "x"}
    assert chat(said).turn().options == {}
    tool = {"type": "function", "function": {"name": "t"}}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    asked = chat(
        said, tools=[tool], response_format=form, max_tokens=5, max_completion_tokens=6,
        temperature=0, reasoning_effort="low",
    )  # fmt: skip
    schema = {"type": "object", "properties": {}}
    assert asked.turn().options == {
        "tools": [{"name": "t", "description": "", "parameters": schema}],
        "outputSchema": {"type": "object"},
        "maxTokens": 6,
        "temperature": 0,
        "reasoningEffort": "low",
    }
    assert chat(said, tools=[tool], tool_choice="none").turn().options == {}
    other = {"type": "function", "function": {"name": "u"}}
    for choice, names in (("required", ["t", "u"]), (other, ["u"])):
        forced = chat(said, tools=[tool, other], tool_choice=choice).turn().options
        assert (forced["mustCall"], [each["name"] for each in forced["tools"]]) == (True, names)
    flat = [{**each, **each["function"]} for each in (tool, other)]
    forced = response("x", tools=flat, tool_choice={"type": "function", "name": "u"}).turn().options
    assert (forced["mustCall"], [each["name"] for each in forced["tools"]]) == (True, ["u"])
    text = {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}}
    same = response("x", text=text, max_output_tokens=6, reasoning={"effort": "low"})
    assert same.turn().options == {
        "outputSchema": {"type": "object"},
        "maxTokens": 6,
        "reasoningEffort": "low",
    }


USER = {"role": "user", "content": "x"}


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        (chat({"role": "system", "content": "x"}), "messages"),
        (chat({"role": "user"}), "messages[0].content"),
        (chat({"role": "tool", "content": "x"}), "messages[0].tool_call_id"),
        (chat({"role": "user", "content": [{"type": "text"}]}), "messages[0].content[0]"),
        (chat(USER, stop=["a"] * 5), "stop"),
        (chat(USER, response_format={"type": "json_schema"}), "response_format"),
        (chat(USER, tool_choice={"type": "function"}), "tool_choice"),
        (chat(USER, tool_choice={"type": "function", "function": {"name": "t"}}), "tool_choice"),
        (chat(USER, tool_choice="required"), "tool_choice"),
        (
            chat(
                USER,
                response_format={
                    "type": "json_schema",
                    "json_schema": {"schema": {"type": "array"}},
                },
            ),
            "response_format",
        ),
        (response("x", previous_response_id="resp_1"), "previous_response_id"),
        (response([{"type": "item_reference", "id": "x"}]), "input[0]"),
        (response([{"type": "function_call", "name": "t"}]), "input[0]"),
        (response("x", text={"format": {"type": "json_schema"}}), "text.format"),
        (response([]), "messages"),
    ],
)
def test_what_cannot_be_used_is_named(request_: Any, param: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        request_.turn()
    assert refused.value.param == param


USER_PARTS: list[dict[str, Any]] = [
    {"type": "file", "file": {"file_id": "f"}}, {"type": "input_audio", "input_audio": {"data": ""}},
    {"type": "thinking", "thinking": "x"}, {"type": "video_url", "video_url": {"url": "http://x"}},
    {"type": "refusal", "refusal": "no"}, {"type": "text"}, {"type": "text", "text": 5},
    {"type": "image_url", "image_url": "http://x/a.png"}, {"type": "image_url"}, {"type": 7}, {},
    {"type": "image_url", "image_url": {"url": None}}, {"type": "image_url", "image_url": ["x"]},
]  # fmt: skip


@pytest.mark.parametrize("part", USER_PARTS, ids=str)
@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_part_that_cannot_be_used_is_named_by_its_type(part: dict[str, Any], role: str) -> None:
    message = {"role": role, "tool_call_id": "c", "content": [{"type": "text", "text": "x"}, part]}
    with pytest.raises(InvalidParameter) as refused:
        chat(message, {"role": "user", "content": "x"}).turn()
    assert refused.value.message == f"a part {short_repr(part.get('type'))} cannot be used here"
    assert refused.value.param == "messages[0].content[1]"


@pytest.mark.parametrize("kind", ["input_file", "input_audio", "input_image", "refusal"])
@pytest.mark.parametrize("value", [None, 5, {"url": "http://x"}])
@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_part_of_a_response_that_cannot_be_used_is_named_too(
    kind: str, value: Any, role: str
) -> None:
    part = {"type": kind, "image_url": value, "text": value}
    with pytest.raises(InvalidParameter, match=f"a part '{kind}' cannot be used here"):
        response([{"role": role, "content": [part]}, {"role": "user", "content": "x"}]).turn()


@pytest.mark.parametrize(
    "value", [[], [{"name": "t", "parameters": {}}], "auto", {"name": "t"}, {}]
)
@pytest.mark.parametrize("field", ["functions", "function_call"])
def test_legacy_functions_are_refused_by_name(field: str, value: Any) -> None:
    called = {"role": "assistant", "content": "x", "function_call": value}
    asked = {"role": "user", "content": "x"}
    for request in (chat(asked, **{field: value}), chat(called, asked)):
        with pytest.raises(InvalidParameter, match="functions") as refused:
            request.turn()
        assert refused.value.status_hint == 400
        assert "tools" in str(refused.value.hint)
    for request in (chat(asked, functions=None, function_call=None),):
        assert request.turn().message == "x"
