"""What an execution needs of a process, as far as its graph and the flows that it names say so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from planwave.graph.reading.documents import read_graph
from planwave.providers.protocols import LocalProvider, ModelProfile
from planwave.providers.registry import ProviderRegistry
from planwave.service.executions.capabilities import needed_capability
from planwave.service.service import Service
from planwave.settings import Settings
from tests.support.llm.fake_providers import library_registry
from tests.support.service.dependencies import dependencies


def step(**data: Any) -> dict[str, Any]:
    return {"id": "a", "type": "agent", "data": {"userPrompt": "Say it.", **data}}


def alone(node: dict[str, Any]) -> dict[str, Any]:
    return {"nodes": [node], "edges": []}


def inside(**data: Any) -> dict[str, Any]:
    return alone({"id": "in", "type": "inner", "data": data})


LINKED = {
    "nodes": [
        {"id": "m", "type": "client", "data": {"provider": "local", "model": "tiny"}},
        step(),
    ],
    "edges": [
        {"source": "m", "sourceHandle": "model", "target": "a", "targetHandle": "model", "data": {"channel": "link"}}
    ],
}  # fmt: skip
TEXT = alone({"id": "t", "type": "text", "data": {"text": "local"}})


class Missing:
    """The embedded model where its extra is not installed."""

    models = ("tiny",)
    default_model = "tiny"

    def availability(self) -> tuple[bool, str, str]:
        return False, "it is not installed", "install it"

    def running_download(self) -> None:
        return None

    def profile(self, model: str) -> ModelProfile:
        return ModelProfile()


def providers(**settings: Any) -> ProviderRegistry:
    local = cast("LocalProvider", Missing())
    return ProviderRegistry(Settings(**settings), local, environ={}, embedded_elsewhere=True)


FLOWS = {
    "embedded": alone(step(provider="local")),
    "around": inside(flow={"name": "embedded"}),
    "hosted": alone(step(provider="openai")),
}
KEYED: dict[str, Any] = {"openai_api_key": "sk-o-1234567"}


@pytest.mark.parametrize(
    ("document", "settings", "needs"),
    [
        (TEXT, {}, None),
        (alone(step(provider="local")), KEYED, "local"),
        (alone(step(provider="openai")), KEYED, None),
        (alone(step()), KEYED, None),
        (alone(step()), {}, "local"),
        (alone(step()), {"embedded_model": "never"}, None),
        (inside(graph=alone(step(provider="local"))), KEYED, "local"),
        (inside(graph=inside(graph=alone(step(provider="local")))), KEYED, "local"),
        (LINKED, KEYED, "local"),
        (inside(flow={"name": "embedded"}), KEYED, "local"),
        (inside(flow={"name": "around"}), KEYED, "local"),
        (inside(flow={"name": "hosted"}), KEYED, None),
        (inside(flow={"name": "{{ 'embed' ~ 'ded' }}"}), KEYED, None),
        (inside(flow={"name": "nowhere"}), KEYED, None),
    ],
)
async def test_a_graph_needs_what_its_steps_and_the_flows_that_they_name_need(
    document: dict[str, Any], settings: dict[str, Any], needs: str | None
) -> None:
    known = providers(**settings)
    graph, _ = read_graph(document)
    catalogue = library_registry(known)
    parts = replace(dependencies(), catalogue=catalogue, providers=known)
    async with Service(parts) as service:
        for name, flow in FLOWS.items():
            await service.flows.create(name, graph=flow, draft=name == "hosted")
        assert await needed_capability(graph, catalogue, known, service.flows) == needs
