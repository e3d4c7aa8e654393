"""The types and models that the planner offers to its model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from planwave.errors import InputError
from planwave.graph.editing.editor import PlanContent
from planwave.graph.reading.documents import read_graph
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.planner.capabilities import (
    PlanRules,
    calls_model,
    change_schema,
    check_can_plan,
    plan_schema,
    plannable_types,
    provider_cards,
    type_cards,
)
from planwave.planner.revised_plan import RevisedPlan
from planwave.prompts.render import ProviderCard
from planwave.providers.protocols import ProviderInfo
from tests.support.llm.fake_providers import FakeProviders, library_registry


class Tool:
    """Only materializes: nothing that could be a step."""

    node_type = "gadget"

    async def materialize(self, data: Any, output_handle: str, context: Any) -> Any: ...


class Tree(BaseModel):
    """A schema that holds itself."""

    left: Tree | None = None


class OddData(BaseModel):
    free: dict[str, int] = {}
    tree: Tree | None = None
    either: int | str = 1
    text: int = 0


class Odd:
    node_type = "odd"
    purpose = "Has data that a takes some thought."

    Data = OddData

    async def execute(self, data: Any, inputs: Any, context: Any) -> Any: ...


def test_the_type_cards_list_every_executable_type_with_the_default_first() -> None:
    registry = Registry([*LIBRARY, Tool])
    cards = type_cards(registry, plannable_types(registry))
    names = [c.name for c in cards]
    runs = {t.node_type for t in LIBRARY if hasattr(t, "execute") and getattr(t, "planned", True)}
    assert names == ["agent", *sorted(runs - {"agent"})]
    agent = cards[0]
    assert list(agent.inputs) == ["input (any)"], "data fields are not listed twice"
    assert list(agent.outputs) == ["output (text)", "messages (list)", "sources (list)"]
    assert "userPrompt (string)" in agent.fields
    assert not any(f.startswith(("provider", "model ")) for f in agent.fields)
    hidden = ("tools", "agentName", "fallback")
    assert not any(field.startswith(hidden) for field in agent.fields)
    assert agent.templates == ("userPrompt",)
    choose = cards[names.index("if")]
    (conditions,) = choose.fields
    assert conditions.startswith("conditions (list of {operator: equal | contains | equals | ")
    assert conditions.endswith(" | isEmpty, value: string, field: string, caseSensitive: boolean})")
    ask = cards[names.index("approval")]
    assert ask.fields == ["prompt (string)", "actions (list of string)"], "the rest is for editors"
    assert "only where the goal asks" in ask.purpose


def test_only_available_providers_are_offered_their_default_model_first() -> None:
    assert provider_cards(FakeProviders()) == [
        ProviderCard("openai", ("gpt",)),
        ProviderCard("own", ("one", "two")),
        ProviderCard("tiny", ("t1",)),
    ]


class Toys(FakeProviders):
    infos = (
        ProviderInfo("own", "openai-compatible", True, "", "", ("toy", "one"), "toy"),
        ProviderInfo("tiny", "local", True, "", "", ("toy",), "toy", open_models=False),
        ProviderInfo("open", "openai-compatible", True, ""),
    )


def test_a_model_that_cannot_plan_is_not_offered_for_steps_either() -> None:
    assert provider_cards(Toys()) == [ProviderCard("own", ("one",)), ProviderCard("open", ())]


def test_a_model_that_cannot_plan_is_rejected_with_those_that_can() -> None:
    check_can_plan(FakeProviders(), "openai", "gpt")
    with pytest.raises(InputError) as caught:
        check_can_plan(Toys(), "tiny", "toy")
    assert str(caught.value.hint).startswith("plan with another: own/one; toy")


class OnlyToys(FakeProviders):
    infos = (ProviderInfo("local", "local", True, "", "", ("toy",), "toy"),)


def test_without_a_planning_model_the_hint_names_embedded_models() -> None:
    with pytest.raises(InputError) as caught:
        check_can_plan(OnlyToys(), "local", "toy")
    assert "another: local/qwen2.5-coder-1.5b, or" in str(caught.value.hint)
    assert "smollm2-135m" not in str(caught.value.hint)


def test_types_that_call_a_model_are_known_from_the_registry() -> None:
    registry = library_registry()
    assert calls_model(registry, "agent")
    assert calls_model(registry, "llm")
    assert not calls_model(registry, "text")
    assert not calls_model(registry, "nonsense")


def test_the_schema_names_types_and_data_fields_in_plain_keywords() -> None:
    schema = plan_schema(library_registry(), plannable_types(library_registry()))
    text = json.dumps(schema)
    for keyword in (
        "$ref",
        "$defs",
        '"default"',
        "minimum",
        "minItems",
        '"type": "null"',
        "maxLength",
    ):
        assert keyword not in text
    assert schema["required"] == ["title", "steps"]
    node = schema["properties"]["steps"]["items"]
    assert node["required"] == ["id", "name", "depends_on", "description", "type"]
    assert node["properties"]["type"]["enum"][0] == "agent"
    data = node["properties"]["data"]
    assert data["additionalProperties"] is False
    assert data["properties"]["template"] == {"type": "string"}
    assert data["properties"]["conditions"]["items"]["required"] == ["operator"]
    assert not {"provider", "model"} & data["properties"].keys(), "they belong to the node"


def test_the_schema_copes_with_open_recursive_and_clashing_fields() -> None:
    registry = Registry([*(t for t in LIBRARY if t.node_type in ("agent", "text")), Odd])
    schema = plan_schema(registry, plannable_types(registry))
    data = schema["properties"]["steps"]["items"]["properties"]["data"]["properties"]
    assert data["free"] == {"type": "object"}
    assert data["tree"]["properties"]["left"] == {"type": "string"}
    assert data["either"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert data["text"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    (odd,) = type_cards(registry, ["odd"])
    assert odd.fields[0] == "free (object)"


class Writes:
    node_type = "writes"
    purpose = "Changes the world."
    effect = "write"

    async def execute(self, data: Any, inputs: Any, context: Any) -> Any: ...


def test_a_type_card_has_graph_fields_expression_fields_and_effect() -> None:
    registry = Registry([*LIBRARY, Writes])
    loop, repeat, writes = type_cards(registry, ["loop", "while", "writes"])
    assert "body (a graph: steps as in the plan; in it: {{ item }}, {{ index }})" in (loop.fields)
    assert "condition (expression over value, index)" in repeat.fields
    assert not any(field.startswith("flow") for field in loop.fields), "no plan knows any"
    assert (loop.effect, writes.effect) == ("none", "write")


def test_types_excluded_from_plans_are_used_only_if_they_are_named() -> None:
    registry = library_registry()
    assert "planner" not in plannable_types(registry)
    assert plannable_types(registry, PlanRules(["planner", "agent"])) == ["agent", "planner"]


def test_plans_use_only_allowed_types_and_side_effects() -> None:
    registry = Registry([*LIBRARY, Writes])
    assert "writes" in plannable_types(registry)
    assert "writes" not in plannable_types(registry, PlanRules(effects=["none", "read"]))
    by_method = PlanRules(["agent", "fetch"], ["none", "read"])
    assert plannable_types(registry, by_method) == ["agent", "fetch"]
    few = PlanRules(["agent", "text", "writes"])
    assert plannable_types(registry, few.restricted_to(["text", "llm"])) == ["text"]
    assert plannable_types(registry, few.restricted_to(None)) == ["agent", "text", "writes"]
    for rules, code in (
        (PlanRules(["agnt"]), "unknown-node-type"),
        (PlanRules(["writes"], ["none"]), "no-node-types"),
        (few.restricted_to(["llm"]), "no-node-types"),
    ):
        with pytest.raises(InputError) as caught:
            plannable_types(registry, rules)
        assert caught.value.code == code


def test_the_schema_of_a_nested_graph_is_that_of_the_plan_without_nesting() -> None:
    schema = plan_schema(library_registry(), ["agent", "loop", "text"])
    data = schema["properties"]["steps"]["items"]["properties"]["data"]["properties"]
    assert set(data["body"]["properties"]) == {"steps"}
    inside = data["body"]["properties"]["steps"]["items"]["properties"]
    assert inside["type"]["enum"] == ["agent", "loop", "text"]
    assert "text" in inside["data"]["properties"]
    assert "body" not in inside["data"]["properties"]
    words = json.dumps(schema)
    assert all(f'"{mark}"' not in words for mark in ("graph", "expression", "names", "template"))


@pytest.mark.parametrize("steps", [0, 2])
def test_the_schema_of_a_change_has_no_empty_enum(steps: int) -> None:
    """Providers refuse one; a plan in an editor may have no step yet."""
    document = {"nodes": [{"id": f"n{n}", "type": "text", "data": {}} for n in range(steps)]}
    graph, _ = read_graph({**document, "edges": []})
    plan = RevisedPlan("Goal", PlanContent("", graph.document), graph)
    text = json.dumps(change_schema(plan, library_registry(), ["text"]))
    assert '"enum": []' not in text
    assert ('"n1"' in text) == (steps == 2)
