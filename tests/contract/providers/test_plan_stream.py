"""Plans of the embedded model over HTTP: each step is sent while the model writes the next one."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest

from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.planner.planner import Planner
from planwave.planner.small_models import read_small_reply
from planwave.providers.client import ModelClient
from planwave.providers.protocols import ModelProfile, ModelRequest
from planwave.providers.registry import ProviderRegistry
from planwave.settings import Settings
from planwave.testing import forbid_model_calls
from tests.support.llm.fake_llm_server import FakeLLMServer, TextReply
from tests.support.server.running_server import running_server

STEPS: dict[str, Any] = {
    "title": "Compare X and Y",
    "n1": {"name": "Assess X", "depends_on": [], "task": "Describe X."},
    "n2": {"name": "Assess Y", "depends_on": [], "task": "Describe Y."},
    "n3": {"name": "Compare", "depends_on": ["n1", "n2"], "task": "Compare both."},
    "final": {"name": "Report", "depends_on": ["n3"], "task": "Write it down."},
}
REPLY = json.dumps(STEPS)


class EmbeddedModel:
    """The local provider, whose model is served by a scripted server on loopback."""

    models = ("tiny",)
    default_model = "tiny"
    slots = 1

    def __init__(self, llm: FakeLLMServer) -> None:
        self._url = llm.openai_url

    def availability(self) -> tuple[bool, str, str]:
        return True, "ready", ""

    async def endpoint(self, model: str) -> tuple[str, str]:
        return self._url, "key"

    async def prepare(self, request: ModelRequest) -> None:
        assert request.fixed_beginning
        assert "Compare X and Y" not in request.fixed_beginning

    def profile(self, model: str) -> ModelProfile:
        return ModelProfile(small=True)

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    ("held_before", "expected"),
    [
        ('"name": "Assess X"', ["title"]),
        ('"n2"', ["title", "Assess X"]),
        ('"n3"', ["title", "Assess X", "Assess Y"]),
        ('"final"', ["title", "Assess X", "Assess Y", "Compare", "edge", "edge"]),
    ],
)
async def test_embedded_model_steps_are_streamed_while_it_writes(
    held_before: str, expected: list[str]
) -> None:
    goes_on = asyncio.Event()
    gate = {1 + REPLY.index(held_before): goes_on}  # piece 0 opens the stream
    async with FakeLLMServer(TextReply(REPLY, chunks=len(REPLY), gates=gate)) as llm:
        settings = Settings(openai_api_key=None)
        providers = ProviderRegistry(settings, EmbeddedModel(llm), environ={})
        models = ModelClient(settings, providers)
        planner = Planner(models, providers, Registry(LIBRARY, providers=providers))
        changes = {"planner": planner, "providers": providers, "close": models.close}
        with forbid_model_calls(allow=["local"]), running_server(overrides=changes) as server:
            body = {"prompt": "Compare X and Y", "provider": "local", "model": "tiny"}
            async with (
                server.client() as client,
                client.stream("POST", "/api/plan?stream=1", json=body) as response,
                aclosing(_events(response)) as events,
            ):
                assert [_label(*await anext(events)) for _ in expected] == expected
                goes_on.set()
                rest = [event async for event in events]
    plan = read_small_reply(STEPS)
    assert len(expected) + len(rest) == 1 + len(plan["nodes"]) + len(plan["edges"]) + 1
    kind, document = rest[-1]
    assert kind == "plan"
    assert [node["id"] for node in document["nodes"]] == [n["id"] for n in plan["nodes"]]


def _label(kind: str, data: dict[str, Any]) -> str:
    return data["name"] if kind == "node" else kind


async def _events(response: Any) -> Any:
    """Yield (event, data) of each server-sent event but the text deltas."""
    kind = ""
    async for line in response.aiter_lines():
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: ") and kind != "delta":
            yield kind, json.loads(line.removeprefix("data: "))
