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
            ClientModel(),
            {"engine": "own", "model_name": "big"},
            {"provider": "own", "model": "big"},
        ),
        (ClientModel(), {"provider": "own", "model": "big"}, {"provider": "own", "model": "big"}),
    ],
)
async def test_it_gives_the_model_and_all_that_is_set(
    kind: Model, data: dict[str, Any], values: dict[str, Any]
) -> None:
    context = context_for(Node("g", "model", "G"), services=services()[0])
    assert await kind.materialize(data, "output", context) == FieldBundle("model", values)


async def test_a_model_that_is_not_there_fails() -> None:
    context = context_for(Node("g", "model", "G"), services=services()[0])
    with pytest.raises(NodeError) as caught:
        await Model().materialize({"model": "none"}, "output", context)
    assert caught.value.code == "unknown-model"


async def test_wires_into_it_count_however_the_field_was_written() -> None:
    edges = [make_edge("s", "g", channel=LINK, target_handle="model")]
    links: dict[Any, Any] = {("g", "model"): ["n"]}
    context = context_for(
        Node("g", "client", "G"), edges=edges, links=links, services=services()[0]
    )
    made = await ClientModel().materialize({"model_name": "m"}, "output", context)
    assert made.values["model"] == "n"


@pytest.mark.parametrize("kind", [Agent(), Llm()])
async def test_a_linked_model_beats_what_is_written_and_a_wire_into_a_setting_beats_it(
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
    (asked,) = models.requests
    assert isinstance(asked, ModelRequest)
    assert (asked.provider, asked.model, asked.prompt) == ("own", "big", "Hi")
    assert (asked.temperature, asked.max_tokens, asked.reasoning_effort) == (0.5, 7, "low")
    fed = events[0].data["fields"]
    assert {name: (each["source"], each["over"]) for name, each in fed.items()} == {
        "maxTokens": ("s1", ["link"]),
        "provider": ("g", ["inline"]),
        "model": ("g", ["inline"]),
        "temperature": ("g", ["inline"]),
        "reasoningEffort": ("g", []),
    }


@pytest.mark.parametrize("kind", [Agent(), Llm()])
async def test_text_that_flows_into_the_model_is_its_name(kind: Agent | Llm) -> None:
    node_services, models = services()
    context = context_for(Node("a", kind.node_type, "A"), services=node_services)
    await result_and_events(
        kind.execute({"model": "m"}, make_inputs("Hi", ("model", "n")), context)
    )
    assert models.requests[0].model == "n"


REGISTRY = Registry(LIBRARY, providers=PROVIDERS)


def found(node: Node, *others: Node) -> list[tuple[str, str]]:
    edges = tuple(make_edge(o.id, node.id, channel=LINK, target_handle="model") for o in others)
    return [(f.code, f.pointer) for f in REGISTRY.check(node, Graph((node, *others), edges))]


def test_what_is_not_available_is_found_at_the_model_and_not_at_those_who_ask_it() -> None:
    wrong = Node("g", "model", "G", data={"provider": "nobody"})
    asking = Node("a", "llm", "A", data={"prompt": "Hi", "provider": "nobody"})
    assert found(wrong) == [("unknown-provider", "/data/provider")]
    assert found(asking) == [("unknown-provider", "/data/provider")]
    assert found(asking, wrong) == []


def test_it_never_runs_and_is_only_linked() -> None:
    for name in ("model", "client"):
        facts = REGISTRY.type_info(name)
        assert facts is not None
        assert (facts.executes, facts.materializes) == (False, True)
