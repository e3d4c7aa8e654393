"""What was said, as attributes of spans."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.providers.protocols import ModelRequest, PromptMessage, ToolCall, ToolSpec
from planwave.redaction import NOTHING_SECRET, Redactor
from planwave.service.tracing_content import MAX_BYTES, SpanContent

CONTENT = SpanContent(NOTHING_SECRET)


def messages_of(request: ModelRequest) -> Any:
    return json.loads(CONTENT.of_request(request)["gen_ai.input.messages"])


def test_conversation_with_calls_results_and_images_is_in_order() -> None:
    look = ToolCall("c1", "look", '{"where": "here"}')
    turns = (
        PromptMessage(
            "user", "Go", images=("https://example.com/a.png", "data:image/png;base64,QQ")
        ),
        PromptMessage("assistant", "", tool_calls=(look, ToolCall("c2", "look", "no JSON"))),
        PromptMessage("tool", "blue", tool_call_id="c1", tool_name="look"),
    )
    tool = ToolSpec("look", "Looks.", {"type": "object"})
    request = ModelRequest("openai", "gpt", "", messages=turns, tools=(tool,))
    assert messages_of(request) == [
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "Go"},
                {"type": "uri", "modality": "image", "uri": "https://example.com/a.png"},
                {"type": "blob", "modality": "image", "mime_type": "image/png", "content": ""},
            ],
        },
        {
            "role": "assistant",
            "parts": [
                {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"where": "here"}},
                {"type": "tool_call", "id": "c2", "name": "look", "arguments": "no JSON"},
            ],
        },
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "c1", "response": "blue"}],
        },
    ]
    definitions = json.loads(CONTENT.of_request(request)["gen_ai.tool.definitions"])
    assert definitions == [
        {
            "type": "function",
            "name": "look",
            "description": "Looks.",
            "parameters": {"type": "object"},
        }
    ]


def test_secrets_are_withheld() -> None:
    content = SpanContent(Redactor({"KEY": "sk-1234567890"}))
    attributes = content.of_request(
        ModelRequest("p", "m", "use sk-1234567890", system="sk-1234567890")
    )
    assert "sk-1234567890" not in "".join(attributes.values())
    assert "[secret KEY]" in attributes["gen_ai.system_instructions"]


texts = st.text(max_size=40).map(lambda text: text * 3_000)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | texts | st.just("x" * 70_000),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5)
    ),
    max_leaves=12,
)


@given(values)
def test_attribute_is_json_within_the_limit(value: Any) -> None:
    text = CONTENT.text(value)
    assert len(text.encode()) <= MAX_BYTES
    read = json.loads(text)
    if len(json.dumps(value)) <= 10_000:
        assert read == value


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "user", "parts": ["x" * 200]} for _ in range(10_000)],
        {f"field {number}": "x" * 200 for number in range(10_000)},
        "\ud800" * 30_000,
        "\x00" * 70_000,
    ],
    ids=["many items", "many fields", "lone surrogates", "NUL"],
)
def test_value_that_no_cut_text_makes_small_is_still_json(value: Any) -> None:
    text = CONTENT.text(value)
    assert len(text.encode()) <= MAX_BYTES
    json.loads(text)


def test_last_messages_are_kept() -> None:
    turns = tuple(PromptMessage("user", f"{number} " + "x" * 300) for number in range(3_000))
    kept = messages_of(ModelRequest("p", "m", "the question", messages=turns))
    assert kept[-1]["parts"] == [{"type": "text", "content": "the question"}]
    assert 1 < len(kept) < 3_000
