"""Bodies of requests as conversations of planwave."""

from __future__ import annotations

from typing import Any

import pytest

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
