from __future__ import annotations

from typing import Any

import pytest

from planwave.providers.protocols import PromptMessage
from planwave.providers.sdk_messages import replace_surrogates
from tests.support.llm.client_harness import model_client_harness
from tests.support.llm.fake_llm_server import TextReply

PIXEL = "data:image/png;base64,iVBORw0KGgo="
TALK = (
    PromptMessage("user", "My name is Ann."),
    PromptMessage("assistant", "Hello Ann."),
    PromptMessage("user", "Look.", (PIXEL, "https://pictures.example/cat.png")),
)
"""What was said before, with an image as data and one by its address."""


@pytest.mark.parametrize("provider", ["openai", "box"])
async def test_conversation_in_the_chat_protocol(provider: str) -> None:
    async with model_client_harness(TextReply("Ann")) as harness:
        reply = await harness.ask(provider, "Who am I?", system="Be brief.", messages=TALK)
        assert reply.text == "Ann"
        (request,) = harness.llm.requests
        assert request.path == "/v1/chat/completions"
        system, *turns = request.body["messages"]
        assert (system["role"], system["content"]) == ("system", "Be brief.")
        assert turns == [
            {"role": "user", "content": "My name is Ann."},
            {"role": "assistant", "content": "Hello Ann."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look."},
                    {"type": "image_url", "image_url": {"url": PIXEL}},
                    {
                        "type": "image_url",
                        "image_url": {"url": "https://pictures.example/cat.png"},
                    },
                ],
            },
            {"role": "user", "content": "Who am I?"},
        ]


async def test_conversation_in_the_messages_protocol() -> None:
    async with model_client_harness(TextReply("Ann")) as harness:
        await harness.ask("anthropic", "Who am I?", system="Be brief.", messages=TALK)
        (request,) = harness.llm.requests
        assert request.path == "/v1/messages"
        assert _text(request.body["system"]) == "Be brief."
        first, answer, last = request.body["messages"]
        assert (first["role"], _text(first["content"])) == ("user", "My name is Ann.")
        assert (answer["role"], _text(answer["content"])) == ("assistant", "Hello Ann.")
        assert last["role"] == "user"
        kinds = [block["type"] for block in last["content"]]
        assert kinds == ["text", "image", "image", "text"]
        assert last["content"][1]["source"] == {
            "type": "base64",
            "media_type": "image/png",
            "data": "iVBORw0KGgo=",
        }
        assert last["content"][2]["source"] == {
            "type": "url",
            "url": "https://pictures.example/cat.png",
        }
        assert last["content"][3]["text"] == "Who am I?"


@pytest.mark.parametrize("provider", ["openai", "anthropic", "box"])
async def test_without_prompt_the_last_turn_is_the_question(provider: str) -> None:
    async with model_client_harness(TextReply("hm")) as harness:
        await harness.ask(provider, "", messages=(PromptMessage("user", "", (PIXEL,)),))
        (request,) = harness.llm.requests
        (turn,) = request.body["messages"]
        assert turn["role"] == "user"
        assert len(turn["content"]) == 1  # the image alone: no empty text beside it


async def test_empty_system_text_is_not_sent() -> None:
    async with model_client_harness(TextReply("hm"), TextReply("hm")) as harness:
        await harness.ask("openai", "hi", messages=TALK[:2])
        await harness.ask("anthropic", "hi", messages=TALK[:2])
        chat, messages = harness.llm.requests
        assert [turn["role"] for turn in chat.body["messages"]] == ["user", "assistant", "user"]
        assert not messages.body.get("system")


def test_lone_surrogates_are_replaced() -> None:
    assert replace_surrogates("plain") == "plain"
    assert replace_surrogates("größe 🎉") == "größe 🎉"
    assert replace_surrogates("a\ud83d b") == "a\ufffd b"


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)
