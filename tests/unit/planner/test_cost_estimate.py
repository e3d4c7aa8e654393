"""What a plan will take, before it runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planwave.cli.views.plan import forecast_lines
from planwave.graph.model import LINK, Graph, Node, Policy
from planwave.graph.reading.documents import read_graph
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.planner.capabilities import knows_tools
from planwave.planner.cost_estimate import forecast
from planwave.planner.graph_builder import ModelDefaults
from planwave.planner.reply_parser import ParseContext, read_reply
from planwave.providers.protocols import ModelProfile, ProviderInfo, Usage
from tests.support.cli.fake_console import plain_console
from tests.support.graph.builders import make_edge, make_graph, text_node
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.llm.planner_replies import DIAMOND_REPLY, planner_reply, reply_edge, reply_node

STEP_OVERHEAD = 250
"""What the prompt of a planned step may say besides goal, task and inputs."""


def graph_of(text: str, registry: Registry | None = None) -> Graph:
    reader = ParseContext(
        registry or library_registry(), FakeProviders(), ModelDefaults("openai", "gpt")
    )
    reading = read_reply(text, reader)
    assert reading.graph is not None, reading.diagnostics
    return reading.graph


def forecast_of(text: str, goal: str = "") -> dict[str, Any]:
    return forecast(graph_of(text), library_registry(), FakeProviders(), goal=goal)


class Mail:
    """Writes to the world."""

    node_type = "mail"
    effect = "once"

    async def execute(self, data: Any, inputs: Any, context: Any) -> Any: ...


def test_the_forecast_of_a_diamond_has_its_shape() -> None:
    found = forecast_of(DIAMOND_REPLY)
    assert {k: found[k] for k in ("waves", "nodes", "width", "depth", "calls")} == {
        "waves": 3,
        "nodes": 4,
        "width": 2,
        "depth": 3,
        "calls": 4,
    }
    path = found["critical_path"]
    assert (path[0], path[-1], len(path)) == ("a", "d", 3)
    assert found["effects"] == []


def test_cost_is_the_price_of_the_tokens_of_both_ends_of_the_range() -> None:
    found = forecast_of(planner_reply(reply_node("a", data={"maxTokens": 100})))
    read, output_tokens = found["tokens"]["low"] - 20, 20
    assert found["cost_usd"]["low"] == round(0.001 * read + 0.002 * output_tokens, 6)
    assert found["tokens"]["high"] - found["tokens"]["low"] == 80 + STEP_OVERHEAD
    assert found["cost_usd"]["high"] == pytest.approx(
        0.001 * (read + STEP_OVERHEAD) + 0.002 * 100, abs=1e-6
    )


def test_a_fallback_adds_no_calls_and_no_cost() -> None:
    node = Node("a", "agent", "A", "Do it", {"provider": "openai", "model": "gpt"})
    spare = node._replace(data={**node.data, "fallback": [{"provider": "own"}]})
    alone, backed = (
        forecast(Graph((each,), ()), library_registry(), FakeProviders()) for each in (node, spare)
    )
    assert backed == alone
    assert backed["calls"] == 1


def test_longer_goals_and_results_read_by_later_steps_cost_more() -> None:
    assert forecast_of(DIAMOND_REPLY, goal="g" * 400)["tokens"]["low"] == (
        forecast_of(DIAMOND_REPLY)["tokens"]["low"] + 4 * 100
    )
    parallel = planner_reply(reply_node("a"), reply_node("b"))
    chain = planner_reply(reply_node("a"), reply_node("b"), edges=[reply_edge("a", "b")])
    more = forecast_of(chain)["tokens"]["high"] - forecast_of(parallel)["tokens"]["high"]
    assert more == 4_096 + 4  # with the name and the id of the node that gave it


def test_steps_without_a_model_call_pass_on_their_input_tokens() -> None:
    text = reply_node("t", type="text", data={"text": "x"})
    through = planner_reply(
        reply_node("a"), text, reply_node("b"), edges=[reply_edge("a", "t"), reply_edge("t", "b")]
    )
    direct = planner_reply(reply_node("a"), reply_node("b"), edges=[reply_edge("a", "b")])
    assert forecast_of(through)["tokens"]["low"] == forecast_of(direct)["tokens"]["low"]
    more = forecast_of(through)["tokens"]["high"] - forecast_of(direct)["tokens"]["high"]
    assert 0 <= more < 10
    assert forecast_of(through)["calls"] == 2


def test_an_unknown_price_makes_the_cost_unknown_not_zero() -> None:
    assert (
        forecast_of(planner_reply(reply_node("a"), reply_node("b", provider="own")))["cost_usd"]
        is None
    )


def test_the_profile_of_a_model_limits_its_output_tokens() -> None:
    found = forecast_of(planner_reply(reply_node("a", provider="tiny")))
    assert found["tokens"]["high"] - found["tokens"]["low"] == 2 * 220 - 20 + STEP_OVERHEAD


def test_side_effects_are_listed_by_step() -> None:
    registry = Registry([*LIBRARY, Mail])
    graph = graph_of(
        planner_reply(reply_node("a"), reply_node("m", type="mail"), edges=[reply_edge("a", "m")]),
        registry,
    )
    assert forecast(graph, registry, FakeProviders())["effects"] == [
        {"node": "m", "type": "mail", "effect": "once"}
    ]


def test_side_effects_depend_on_the_data_of_a_step() -> None:
    registry = Registry(LIBRARY)
    data = {"get": {}, "head": {"method": "HEAD"}, "post": {"method": "POST"}}
    nodes = [Node(name, "fetch", name, data={"url": "u", **each}) for name, each in data.items()]
    assert forecast(Graph(tuple(nodes), ()), registry, FakeProviders())["effects"] == [
        {"node": "post", "type": "fetch", "effect": "write"}
    ]


def test_the_effect_of_a_policy_overrides_that_of_the_type() -> None:
    registry = Registry([*LIBRARY, Mail])
    nodes = [
        Node(f"{kind}-{effect}", kind, "n", policy=Policy(effect=effect))
        for kind in ("text", "mail", "unknown")
        for effect in (None, "none", "read", "write")
    ]
    output_tokens = forecast(Graph(tuple(nodes), ()), registry, FakeProviders())["effects"]
    assert [(each["node"], each["effect"]) for each in output_tokens] == [
        ("text-write", "write"), ("mail-None", "once"), ("mail-write", "write"),
        ("unknown-write", "write"),
    ]  # fmt: skip


def test_steps_without_a_model_are_priced_at_the_default_model() -> None:
    planned = graph_of(DIAMOND_REPLY)
    by_hand = Graph(tuple(n._replace(data={}) for n in planned.nodes), planned.edges)
    found = forecast(by_hand, library_registry(), FakeProviders())
    assert found["cost_usd"] is not None
    lost = Graph(tuple(n._replace(data={"provider": "gone"}) for n in planned.nodes), planned.edges)
    assert forecast(lost, library_registry(), FakeProviders())["calls"] == 4


def looped(*inner: dict[str, Any]) -> dict[str, Any]:
    body = {"nodes": list(inner), "edges": []}
    return reply_node("each", type="loop", data={"items": ["x", "y"], "body": body})


def test_nested_steps_count_once_and_make_the_forecast_a_minimum() -> None:
    ask = {"id": "ask", "type": "agent", "data": {"userPrompt": "{{ item }}", "maxTokens": 100}}
    found = forecast_of(
        planner_reply(looped(ask), reply_node("b"), edges=[reply_edge("each", "b")])
    )
    assert (found["nodes"], found["calls"], found["at_least"]) == (2, 2, True)
    alone = forecast_of(planner_reply(reply_node("b")))
    assert found["tokens"]["high"] > alone["tokens"]["high"] + 2 * 100
    assert found["cost_usd"]["low"] > alone["cost_usd"]["low"]
    assert (alone["calls"], alone["at_least"]) == (1, False)
    nested = {
        "id": "in",
        "type": "loop",
        "data": {"items": [1], "body": looped(ask)["data"]["body"]},
    }
    assert forecast_of(planner_reply(looped(nested)))["calls"] == 1


def test_an_unknown_price_in_a_nested_graph_makes_the_cost_unknown() -> None:
    ask = {"id": "ask", "type": "agent", "data": {"userPrompt": "Hm?", "provider": "own"}}
    assert forecast_of(planner_reply(looped(ask)))["cost_usd"] is None


def test_effects_in_a_nested_graph_are_listed_at_its_node() -> None:
    registry = library_registry(types=[Mail()])
    text = planner_reply(looped({"id": "send", "type": "mail"}))
    found = forecast(graph_of(text, registry), registry, FakeProviders())
    assert found["effects"] == [{"node": "each", "type": "mail", "effect": "once"}]


def test_agents_that_may_call_others_make_the_forecast_a_minimum() -> None:
    lead, member = (Node(name, "agent", name, "Do it.") for name in ("lead", "member"))
    link = make_edge(
        "member", "lead", source_handle="tools-out", target_handle="tools", channel=LINK
    )
    found = forecast(make_graph(lead, member, edges=[link]), library_registry(), FakeProviders())
    assert (found["nodes"], found["calls"], found["at_least"]) == (1, 1, True)


class Caching(FakeProviders):
    """A read from the cache is a tenth of the price, a write a quarter more."""

    def profile(self, provider: str, model: str) -> ModelProfile:
        return ModelProfile(cached_tokens=1_000 if provider == "openai" else None)

    def price(self, provider: str, model: str, usage: Usage) -> float | None:
        fresh = super().price(provider, model, usage)
        more = 0.25 * usage.cache_write_tokens - 0.9 * usage.cache_read_tokens
        return None if fresh is None else fresh + 0.001 * more


def agent(**data: Any) -> dict[str, Any]:
    return {"id": "ask", "type": "agent", "data": {"provider": "openai", "maxTokens": 20, **data}}


def cost_of(providers: FakeProviders, node: dict[str, Any], *, in_loop: bool) -> dict[str, Any]:
    document = {"nodes": [node], "edges": []}
    if in_loop:
        each = {"id": "each", "type": "loop", "data": {"items": ["x"], "body": document}}
        document = {"nodes": [each], "edges": []}
    graph, _ = read_graph(json.dumps(document))
    found = forecast(graph, library_registry(), providers)
    cost: Any = found["cost_usd"]
    return cost


LONG = "word " * 1_000
STEPS = [
    ({"systemPrompt": LONG, "userPrompt": "Go."}, False, 1_250),
    ({"systemPrompt": LONG, "userPrompt": "{{ item }}"}, True, 1_250),
    ({"systemPrompt": LONG[:3_200], "userPrompt": LONG[:800] + "{{ item }} once more"}, True, 1_000),
    ({"userPrompt": LONG + "{{ item }}"}, True, 1_250),
    ({"userPrompt": LONG}, False, 0),
    ({"userPrompt": "{{ item }}" + LONG}, True, 0),
    ({"systemPrompt": LONG[:3_600], "userPrompt": "Go."}, False, 0),
    ({"systemPrompt": LONG, "userPrompt": "Go.", "provider": "tiny"}, False, 0),
]  # fmt: skip


@pytest.mark.parametrize(("data", "in_loop", "cached"), STEPS)
def test_the_cost_reaches_from_a_cached_beginning_to_one_that_is_written(
    data: dict[str, Any], in_loop: bool, cached: int
) -> None:
    fresh = cost_of(FakeProviders(), agent(**data), in_loop=in_loop)
    found = cost_of(Caching(), agent(**data), in_loop=in_loop)
    assert 0.9 < fresh["low"] <= fresh["high"] <= fresh["low"] + 0.005
    assert found["low"] == pytest.approx(fresh["low"] - 0.0009 * cached, abs=1e-6)
    read = round((fresh["high"] - 0.002 * 20) / 0.001)
    written = read if read >= 1_000 and data.get("provider") != "tiny" else 0
    assert found["high"] == pytest.approx(fresh["high"] + 0.00025 * written, abs=3e-6)


class Keyless(FakeProviders):
    """No API key is set, so that the embedded model is the default."""

    infos = (
        ProviderInfo("openai", "openai", False, "OPENAI_API_KEY is not set", "set it"),
        ProviderInfo("local", "local", True, "", "", ("small",), "small", open_models=False),
        ProviderInfo("mine", "openai-compatible", False, "[providers.mine] has no base_url", ""),
    )

    def resolve(self, provider: str | None, model: str | None) -> tuple[str, str]:
        return super().resolve(provider or "local", model)


def models_of(providers: FakeProviders, *data: dict[str, Any]) -> Any:
    nodes = tuple(
        Node(f"n{number}", "agent", "N", "Do it.", each) for number, each in enumerate(data)
    )
    return forecast(Graph(nodes, ()), library_registry(), providers).get("models")


def test_the_models_that_steps_call_are_named_with_why_the_embedded_one_is_among_them() -> None:
    embedded = {"provider": "local", "model": "small"}
    assert models_of(Keyless(), {}) == [{**embedded, "calls": 1, "reason": "no API key is set"}]
    assert models_of(Keyless(), embedded) == [{**embedded, "calls": 1}], "it was chosen"
    gpt = {"provider": "openai", "model": "gpt"}
    own = {"provider": "own", "model": "two"}
    assert models_of(FakeProviders(), own, {}, gpt) == [{**gpt, "calls": 2}, {**own, "calls": 1}]


def test_a_graph_without_a_model_step_names_no_model() -> None:
    graph = Graph((Node("a", "text", "A", "", {"text": "x"}),), ())
    assert "models" not in forecast(graph, library_registry(), Keyless())


def test_the_forecast_says_whose_tools_it_leaves_out() -> None:
    lead = text_node("lead")._replace(type="agent", data={"provider": "openai", "model": "gpt"})
    nodes = lead, text_node("box")._replace(type="mcp_server", data={"server": "box"})
    link = make_edge("box", "lead", source_handle="tools", target_handle="tools", channel=LINK)
    plain, linked = (
        forecast(Graph(nodes, edges), library_registry(), FakeProviders())
        for edges in ((), (link,))
    )
    assert "uncounted_tools" not in plain
    assert linked["uncounted_tools"] == ["box"]
    (line, *_) = forecast_lines(plain_console(), linked)
    assert "tokens without the tools of box" in line.plain


def test_all_other_tools_are_known_before_a_run() -> None:
    types = library_registry()
    given = [
        name
        for name in types.names()
        if any(port.type == "tool" for port in types.type_info(name).outputs)  # type: ignore[union-attr]
    ]
    unknown = [name for name in given if not knows_tools(types, name)]
    assert len(given) > len(unknown)
    assert unknown == ["mcp_server"]


def test_the_forecast_of_the_rest_of_a_run_has_what_has_not_begun() -> None:
    reply = planner_reply(
        reply_node("a"), reply_node("b"), reply_node("c"),
        edges=[reply_edge("a", "b"), reply_edge("b", "c")],
    )  # fmt: skip
    graph, parts = graph_of(reply), (library_registry(), FakeProviders())
    whole = forecast(graph, *parts)
    rest = forecast(graph, *parts, inputs={"a": {"output": "w" * 400}}, begun={"a"})
    shape = {name: rest[name] for name in ("waves", "nodes", "calls", "critical_path")}
    assert shape == {"waves": 2, "nodes": 2, "calls": 2, "critical_path": ["b", "c"]}
    assert rest["tokens"]["high"] < whole["tokens"]["high"]
    short = forecast(graph, *parts, inputs={"a": {"output": ""}}, begun={"a"})
    assert rest["tokens"]["low"] - short["tokens"]["low"] == 100  # what b reads of a
    runs = forecast(graph, *parts, begun={"a"})  # nobody knows yet what a gives
    assert runs["calls"] == 2
    assert runs["tokens"]["high"] > short["tokens"]["high"]
    assert forecast(graph, *parts, begun={"a", "b", "c"})["nodes"] == 0


def test_the_rest_of_a_run_has_no_effects_of_tools_of_steps_that_have_begun() -> None:
    tool = Node(
        "t", "http_tool", "T", data={"name": "post", "url": "https://a.example/", "method": "POST"}
    )
    agents = [Node(each, "agent", each, "Do it") for each in ("a", "b")]
    link = make_edge("t", "a", target_handle="tools", channel="link")
    graph, parts = (
        make_graph(tool, *agents, edges=[("a", "b"), link]),
        (library_registry(), FakeProviders()),
    )
    assert [each["node"] for each in forecast(graph, *parts)["effects"]] == ["t"]
    rest = forecast(graph, *parts, begun={"a"})
    assert (rest["effects"], rest["nodes"], rest["at_least"]) == ([], 1, False)
