from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.graph.model import LINK, Graph, Node
from planwave.nodes.authoring.field_wires import FieldBundle
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.agent import Agent
from planwave.nodes.library.llm import Llm
from planwave.nodes.library.model import ClientModel, Model
from planwave.nodes.registry import Registry
from planwave.providers.protocols import ModelRequest
from tests.support.graph.builders import make_edge
from tests.support.llm.fake_providers import ListedProviders
from tests.support.nodes.node_checks import check_node, locations
from tests.support.nodes.node_context import (
    context_for,
    make_inputs,
    result_and_events,
    services_with,
)

PROVIDERS = ListedProviders({"openai": ["m", "n"], "own": ["big"]})


def services() -> Any:
    return services_with(lambda _: ["hi"], PROVIDERS)


@pytest.mark.parametrize(
    ("kind", "data", "values"),
    [
        (Model(), {}, {"provider": "openai", "model": "m"}),
        (Model(), {"provider": "own"}, {"provider": "own", "model": "big"}),
        (
            Model(),
            {"model": "n", "temperature": 0, "maxTokens": 5, "reasoningEffort": "low"},
            {
                "provider": "openai",
                "model": "n",
                "temperature": 0,
                "maxTokens": 5,
                "reasoningEffort": "low",
            },
        ),
        (
            Model(),
            {"model": "n", "fallback": [{"provider": "own"}]},
            {"provider": "openai", "model": "n", "fallback": [{"provider": "own"}]},
        ),
        (
            ClientModel(),
            {"engine": "own", "model_name": "big"},
            {"provider": "own", "model": "big"},
        ),
        (ClientModel(), {"provider": "own", "model": "big"}, {"provider": "own", "model": "big"}),
    ],
)
async def test_a_model_node_gives_provider_model_and_settings(
    kind: Model, data: dict[str, Any], values: dict[str, Any]
) -> None:
    context = context_for(Node("g", "model", "G"), services=services()[0])
    assert await kind.materialize(data, "output", context) == FieldBundle("model", values)


async def test_an_unknown_model_fails_the_node() -> None:
    context = context_for(Node("g", "model", "G"), services=services()[0])
    with pytest.raises(NodeError) as caught:
        await Model().materialize({"model": "none"}, "output", context)
    assert caught.value.code == "unknown-model"


@pytest.mark.parametrize("kind", [Agent(), Llm()])
async def test_a_linked_model_overrides_the_data_and_a_wire_into_a_setting_overrides_it(
    kind: Agent | Llm,
) -> None:
    node_services, models = services()
    bundle = FieldBundle(
        "model",
        {
            "provider": "own", "model": "big", "temperature": 0.5, "maxTokens": 9,
            "reasoningEffort": "low",
        },
    )  # fmt: skip
    context = context_for(
        Node("a", kind.node_type, "A"),
        edges=[make_edge("g", "a", channel=LINK, target_handle="model")],
        links={("a", "model"): [bundle]},
        services=node_services,
    )
    data = {"provider": "openai", "model": "n", "temperature": 1.0}
    _, events = await result_and_events(
        kind.execute(data, make_inputs("Hi", ("maxTokens", 7)), context)
    )
    (request,) = models.requests
    assert isinstance(request, ModelRequest)
    assert (request.provider, request.model, request.prompt) == ("own", "big", "Hi")
    assert (request.temperature, request.max_tokens, request.reasoning_effort) == (0.5, 7, "low")
    wired_fields = events[0].data["fields"]
    assert {name: (each["source"], each["over"]) for name, each in wired_fields.items()} == {
        "maxTokens": ("s1", ["link"]),
        "provider": ("g", ["inline"]),
        "model": ("g", ["inline"]),
        "temperature": ("g", ["inline"]),
        "reasoningEffort": ("g", []),
    }


REGISTRY = Registry(LIBRARY, providers=PROVIDERS)


def test_an_unavailable_provider_is_reported_at_the_model_node_only() -> None:
    unknown = {"provider": "nobody"}
    found = locations(check_node("model", unknown, registry=REGISTRY))
    assert found == [("unknown-provider", "/data/provider")]
    linked = Node("a", "llm", "A", data={"prompt": "Hi", **unknown})
    edge = make_edge("g", "a", channel=LINK, target_handle="model")
    graph = Graph((linked, Node("g", "model", "G", data=unknown)), (edge,))
    assert list(REGISTRY.check(linked, graph)) == []
    unlinked = locations(check_node("llm", linked.data, registry=REGISTRY))
    assert unlinked == [("unknown-provider", "/data/provider")]


def test_a_model_node_is_linked_and_never_executed() -> None:
    for name in ("model", "client"):
        facts = REGISTRY.type_info(name)
        assert facts is not None
        assert (facts.executes, facts.materializes) == (False, True)
