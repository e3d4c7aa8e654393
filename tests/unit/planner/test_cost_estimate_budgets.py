"""A budget of the forecast's size does not stop the first call, whatever the graph is made of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import planwave
from planwave.nodes.agents.tool import Tool
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.nodes.services import NodeServices
from planwave.outbound.client import OutboundClient
from planwave.planner.capabilities import calls_model
from planwave.planner.cost_estimate import forecast
from planwave.planner.planner import Planner
from planwave.providers.protocols import (
    CallScope,
    ModelReply,
    ModelRequest,
    Usage,
)
from tests.support.llm.fake_providers import DEFAULT_LIMITS, FakeProviders


class ReservingModels:
    """Models that reserve what a call may use, as those of a provider do, and reply in a word."""

    def __init__(self) -> None:
        self.calls = 0

    async def stream(
        self, request: ModelRequest, scope: CallScope | None = None
    ) -> AsyncIterator[ModelReply]:
        assert scope is not None
        assert scope.reserve is not None, "the run has a budget"
        await scope.reserve(request)
        self.calls += 1
        yield ModelReply("done", request.provider, request.model, "stop", Usage(1, 1, 0.001))


async def _look_up(arguments: Any, context: Any) -> Any: ...


PARAMETERS = {
    "type": "object",
    "required": ["field0"],
    "properties": {f"field{number}": {"type": "string", "description": "x" * 80} for number in range(20)},
}  # fmt: skip


def registry() -> Registry:
    types = Registry(LIBRARY, providers=FakeProviders(), limits=DEFAULT_LIMITS)
    for name in ("look_up", "charge"):
        types.tools.register(Tool(name, "Looks things up. " * 30, PARAMETERS, _look_up))
    return types


REGISTRY = registry()
TEXTS = st.integers(0, 6_000).map(lambda size: "word " * (size // 5))
PROMPTS = st.sampled_from(
    ["Do it.", "Read {{ input }}.", "Read {{ input }}, then {{ input }} and {{ input }}."]
)


def step(node_id: str, kind: str, draw: Any, **more: Any) -> dict[str, Any]:
    model = {"provider": draw(st.sampled_from(["openai", "tiny"]))}
    tokens = draw(st.none() | st.integers(1, 9_000))
    if tokens is not None:
        model["maxTokens"] = tokens
    data = {
        "llm": lambda: {"prompt": draw(PROMPTS), "system": draw(TEXTS), "jsonOutput": True},
        "agent": lambda: {"systemPrompt": draw(TEXTS)},
        "prompted": lambda: {
            "userPrompt": draw(PROMPTS),
            "messages": [{"role": "user", "content": draw(TEXTS)}],
        },
        "planner": lambda: {"goal": draw(PROMPTS)},
    }[kind]()
    node = {"id": node_id, "type": {"prompted": "agent"}.get(kind, kind), "data": {**model, **data}}
    if kind == "agent":
        node["description"] = draw(TEXTS.map(lambda text: text.strip() or "Do it."))
    return node | more


def tool_nodes(agent: dict[str, Any], draw: Any) -> tuple[list[Any], list[Any]]:
    """Return nodes that give tools to an agent, and their links."""
    http = {"name": "fetch_it", "description": "F" * 900, "url": "https://example.org/{field0}",
            "parameters": PARAMETERS}  # fmt: skip
    given = {
        "tool": {"id": "t", "type": "tool", "data": {"name": "look_up"}},
        "toolset": {"id": "t", "type": "toolset", "data": {"names": ["look_up", "charge"]}},
        "http": {"id": "t", "type": "http_tool", "data": http},
        "agent": {"id": "t", "type": "agent", "description": "Help. " * 90},
    }
    kind = draw(st.sampled_from(sorted(given)))
    agent["data"]["provider"] = "openai"
    handle = "tools-out" if kind == "agent" else "tools"
    link = {"source": "t", "sourceHandle": handle, "target": agent["id"], "targetHandle": "tools"}
    return [given[kind]], [{**link, "data": {"channel": "link"}}]


@st.composite
def graphs(draw: Any) -> dict[str, Any]:
    kind = draw(st.sampled_from(["llm", "agent", "prompted", "planner"]))
    asking = step("ask", kind, draw)
    nodes, edges = [asking], []
    if kind in ("agent", "prompted") and draw(st.booleans()):
        further, edges = tool_nodes(asking, draw)
        nodes += further
    is_nested = draw(st.booleans())
    if is_nested:
        for field, value in asking["data"].items():
            if isinstance(value, str):
                asking["data"][field] = value.replace("{{ input }}", "{{ item }}")
        body = {"nodes": nodes, "edges": edges}
        nodes = [{"id": "each", "type": "loop", "data": {"items": [draw(TEXTS)], "body": body}}]
        edges = []
    for number in range(draw(st.integers(int(not is_nested), 3))):
        source = {"id": f"s{number}", "type": "text", "data": {"text": draw(TEXTS)}}
        nodes.append({**source, "name": "A name of some length " * draw(st.integers(0, 3)) or "s"})
        ends = {"source": f"s{number}", "target": nodes[0]["id"]}
        edges = [*edges, {**ends, "data": {"channel": "flow"}}]
    return {"nodes": nodes, "edges": edges}


async def calls_before_a_wait(
    document: dict[str, Any], goal: str, amount: str, share: float
) -> int:
    """Return how many calls a run makes before one waits for a budget of a share of the forecast."""
    built = planwave.build(document, registry=REGISTRY)
    found = forecast(built.graph, REGISTRY, FakeProviders(), goal=goal)
    top = found["tokens"]["high"] if amount == "tokens" else found["cost_usd"]["high"]
    most = max(int(top * share), 1) if amount == "tokens" else top * share
    models = ReservingModels()
    planner = Planner(models, FakeProviders(), REGISTRY)
    services = NodeServices(
        models, FakeProviders(), goal=goal, planner=planner, outbound=OutboundClient()
    )
    options = planwave.RunOptions(budget={amount: most})
    run = planwave.run(built, services=services, options=options, goal=goal, check=False)
    async for event in run:
        if event.type == "node.parked":
            break
    return models.calls


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("amount", ["tokens", "usd"])
@settings(max_examples=100, deadline=None, phases=[Phase.generate])
@given(document=graphs(), goal=TEXTS)
def test_a_budget_of_the_size_of_the_forecast_does_not_stop_the_first_call(
    amount: str, document: dict[str, Any], goal: str
) -> None:
    assert asyncio.run(calls_before_a_wait(document, goal, amount, 1.0)) >= 1


def test_a_smaller_budget_stops_the_first_call() -> None:
    document = {"nodes": [{"id": "a", "type": "agent", "description": "Do it."}], "edges": []}
    assert asyncio.run(calls_before_a_wait(document, "", "tokens", 0.5)) == 0


def test_every_type_that_calls_a_model_is_drawn() -> None:
    asking = {name for name in REGISTRY.names() if calls_model(REGISTRY, name)}
    assert asking == {"llm", "agent", "planner", "model", "client"}, "the last two are linked"
