"""A person's message on its way to a model: from ``user_input`` over ``chat`` to each protocol."""

from __future__ import annotations

import base64
from typing import Any

import pytest

import planwave
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.nodes.services import NodeServices
from tests.support.llm.client_harness import MODELS, ModelClientHarness, model_client_harness
from tests.support.llm.fake_llm_server import ReceivedRequest, TextReply
from tests.support.llm.fake_providers import ListedProviders

REGISTRY = Registry(LIBRARY, providers=ListedProviders({p: [m] for p, m in MODELS.items()}))
PIXEL = "iVBORw0KGgo="
MESSAGE = {
    "message": "What is on it?",
    "images": [{"name": "p.png", "mime": "image/png", "data": PIXEL}],
    "files": [
        {"name": "n.txt", "mime": "text/plain", "data": base64.b64encode(b"a note").decode()}
    ],
}
HISTORY = [
    {"role": "user", "content": "I send you a picture next. " + "Long. " * 400},
    {"role": "assistant", "content": "Fine."},
    {"role": "user", "content": "Be quick."},
    {"role": "assistant", "content": "Yes."},
]


def graph_of(asker: str, provider: str) -> dict[str, Any]:
    """Give a graph that puts a person's message, with what was said before, to a model."""
    talk = {"system": "Be brief.", "historyMessages": HISTORY, "maxInputTokens": 1_500}
    model = {"provider": provider, "model": MODELS[provider]}
    return {
        "nodes": [
            {"id": "ask", "type": "user_input"},
            {"id": "talk", "type": "chat", "data": talk},
            {"id": "reply", "type": asker, "data": model},
        ],
        "edges": [
            {"source": "ask", "target": "talk", "data": {"channel": "flow"}},
            {
                "source": "talk",
                "sourceHandle": "messages",
                "target": "reply",
                "targetHandle": "messages",
                "data": {"channel": "flow"},
            },
        ],
    }


async def request_of(harness: ModelClientHarness, asker: str, provider: str) -> ReceivedRequest:
    """Run the graph; give the request that the provider got."""
    services = NodeServices(harness.client, ListedProviders({provider: [MODELS[provider]]}))
    built = planwave.build(graph_of(asker, provider), registry=REGISTRY)
    result = await planwave.run(built, inputs={"ask": MESSAGE}, services=services)
    assert (result.status, result.text) == ("completed", "A pixel.")
    (request,) = harness.llm.requests
    return request


@pytest.mark.parametrize("asker", ["agent", "llm"])
@pytest.mark.parametrize("provider", ["openai", "box"])
async def test_chat_protocol_gets_fitting_turns(asker: str, provider: str) -> None:
    async with model_client_harness(TextReply("A pixel.")) as harness:
        system, *turns = (await request_of(harness, asker, provider)).body["messages"]
        assert system["content"] == "Be brief."
        assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
        assert [turn["content"] for turn in turns[:2]] == ["Be quick.", "Yes."]
        assert turns[2]["content"] == [
            {"type": "text", "text": "What is on it?\n\nFile n.txt:\na note"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        ]


@pytest.mark.parametrize("asker", ["agent", "llm"])
async def test_messages_protocol_gets_fitting_turns(asker: str) -> None:
    async with model_client_harness(TextReply("A pixel.")) as harness:
        body = (await request_of(harness, asker, "anthropic")).body
        system = body["system"]
        assert (system if isinstance(system, str) else system[0]["text"]) == "Be brief."
        turns = body["messages"]
        assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
        text, image = turns[2]["content"]
        assert text["text"] == "What is on it?\n\nFile n.txt:\na note"
        assert image["source"] == {"type": "base64", "media_type": "image/png", "data": PIXEL}
