"""The planning loop: request, parse, send errors back, give up after two repairs."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from planwave.errors import (
    GraphInvalid,
    InputError,
    LimitExceeded,
    PlanInvalid,
    ProviderError,
    UnavailableProvider,
    UnknownProvider,
)
from planwave.graph.plan import Plan, graph_hash
from planwave.graph.protocols import EffectByField
from planwave.nodes.agents.tool_function import tool
from planwave.nodes.authoring.node_type import NodeData, NodeType
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.planner.capabilities import NO_RULES, PlanRules
from planwave.planner.planner import Planner
from planwave.planner.progress import PlanProgress
from planwave.planner.small_models import MAX_TOKENS
from planwave.providers.errors import provider_error
from planwave.providers.protocols import CallScope, CallSettings
from planwave.settings import Limits
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.llm.planner_replies import (
    DIAMOND_REPLY,
    planner_reply,
    reply_edge,
    reply_node,
    small_model_reply,
)
from tests.support.llm.watched_model import WatchedModel, in_pieces

CYCLE = planner_reply(
    reply_node("a"), reply_node("b"), edges=[reply_edge("a", "b"), reply_edge("b", "a")]
)
GHOST = planner_reply(reply_node("a"), edges=[reply_edge("a", "ghost")])


def planner_of(models: WatchedModel, limits: Limits | None = None) -> Planner:
    providers = FakeProviders()
    return Planner(
        models,
        providers,
        library_registry(providers),
        limits or Limits(),
        new_id=lambda: "plan-1",
        now=lambda: datetime(2030, 1, 1, tzinfo=UTC),
    )


async def planned(*script: Any, **options: Any) -> tuple[Plan, WatchedModel]:
    models = WatchedModel(script)
    return await planner_of(models).create_plan("Do it all", **options), models


async def failed(*script: Any, **options: Any) -> PlanInvalid:
    with pytest.raises(PlanInvalid) as caught:
        await planned(*script, **options)
    return caught.value


async def test_call_settings_override_those_of_the_planner() -> None:
    plain, set_so = (
        await planned(DIAMOND_REPLY),
        await planned(DIAMOND_REPLY, settings=CallSettings(0.5, 9)),
    )
    (usual,), (request,) = plain[1].requests, set_so[1].requests
    assert (request.temperature, request.max_tokens) == (0.5, 9)
    assert request.reasoning_effort == usual.reasoning_effort
    assert request.prompt == usual.prompt


async def test_a_plan_has_title_graph_hash_forecast_and_attempts() -> None:
    plan, models = await planned(in_pieces(DIAMOND_REPLY))
    assert (plan.plan_id, plan.created_at) == ("plan-1", "2030-01-01T00:00:00.000000+00:00")
    assert (plan.title, plan.user_prompt, plan.revision) == ("A plan", "Do it all", 1)
    assert (plan.provider, plan.model) == ("openai", "gpt")
    assert plan.hash == graph_hash(plan.graph)
    assert [n.id for n in plan.graph.nodes] == ["a", "b", "c", "d"]
    assert all(n.data == {"provider": "openai", "model": "gpt"} for n in plan.graph.nodes)
    assert (list(plan.diagnostics), list(plan.fixes)) == ([], [])
    assert plan.forecast["waves"] == 3
    (attempt,) = plan.attempts
    assert (attempt["reply"], attempt["finish_reason"]) == (DIAMOND_REPLY, "stop")
    assert attempt["usage"]["cost_usd"] == 0.01
    assert (len(models.requests), models.closed) == (1, 1)


async def test_the_request_has_goal_type_cards_and_schema() -> None:
    _, models = await planned(DIAMOND_REPLY)
    (request,) = models.requests
    assert request.prompt.endswith("Do it all")
    assert request.system is not None
    assert "- parser:" in request.system
    assert "never more than 50" in request.system
    assert request.schema is not None
    assert request.schema_name == "plan"


async def test_a_model_without_structured_output_is_asked_for_json_in_text() -> None:
    plan, models = await planned(DIAMOND_REPLY, provider="own", model="two")
    assert models.requests[0].schema is None
    assert (plan.provider, plan.model) == ("own", "two")
    assert plan.graph.nodes[0].data == {"provider": "own", "model": "two"}


@pytest.mark.parametrize("goal", ["", "  \n\t "])
async def test_an_empty_goal_is_rejected_before_any_call(goal: str) -> None:
    models = WatchedModel([])
    with pytest.raises(InputError) as caught:
        await planner_of(models).create_plan(goal)
    assert caught.value.code == "empty-goal"
    assert caught.value.hint


@pytest.mark.parametrize("goal", ["a\0b", "half \ud800"])
async def test_a_goal_that_cannot_be_stored_is_rejected(goal: str) -> None:
    with pytest.raises(InputError) as caught:
        await planner_of(WatchedModel([])).create_plan(goal)
    assert caught.value.code == "invalid-text"


async def test_the_limit_of_the_goal_counts_characters() -> None:
    planner = planner_of(WatchedModel([DIAMOND_REPLY]), Limits(goal_chars=10))
    assert (await planner.create_plan("x" * 10)).title == "A plan"
    with pytest.raises(LimitExceeded) as caught:
        await planner.create_plan("x" * 11)
    assert (caught.value.limit, caught.value.value, caught.value.met) == ("goal_chars", 10, 11)


async def test_a_model_that_cannot_plan_is_rejected_before_any_call() -> None:
    with pytest.raises(InputError, match="openai/toy is too small to write plans") as caught:
        await planner_of(WatchedModel([])).create_plan("goal", provider="openai", model="toy")
    assert caught.value.code == "model-cannot-plan"
    assert caught.value.hint == (
        "plan with another: openai/gpt, or own/one, or tiny/t1; "
        "toy still runs the steps of a graph that name it"
    )


async def test_an_unknown_or_unavailable_provider_is_rejected_before_any_call() -> None:
    for provider, kind in (("nobody", UnknownProvider), ("off", UnavailableProvider)):
        with pytest.raises(kind) as caught:
            await planner_of(WatchedModel([])).create_plan("goal", provider=provider)
        assert isinstance(caught.value, ValueError)
        assert caught.value.hint


async def test_an_invalid_plan_is_sent_back_with_its_errors() -> None:
    progress: list[PlanProgress] = []
    plan, models = await planned(CYCLE, GHOST, DIAMOND_REPLY, on_progress=progress.append)
    assert len(plan.graph.nodes) == 4
    assert [[d["code"] for d in a["diagnostics"]] for a in plan.attempts] == [
        ["flow-cycle"],
        ["dangling-edge"],
        [],
    ]
    first, second, third = models.requests
    assert second.system == third.system == first.system
    assert first.prompt in second.prompt
    assert CYCLE in second.prompt
    assert "[flow-cycle]" in second.prompt
    assert GHOST in third.prompt
    assert "[dangling-edge]" in third.prompt
    assert "ghost" in third.prompt
    assert CYCLE not in third.prompt
    repairs = [p.data for p in progress if p.kind == "repair"]
    assert [r["attempt"] for r in repairs] == [2, 3]
    assert repairs[0]["diagnostics"][0]["code"] == "flow-cycle"


async def test_after_two_repairs_the_error_has_all_attempts() -> None:
    error = await failed(CYCLE, "no", GHOST)
    assert [d.code for d in error.diagnostics] == ["dangling-edge"]
    assert [a["reply"] for a in error.attempts] == [CYCLE, "no", GHOST]
    assert [a["diagnostics"][0]["code"] for a in error.attempts] == [
        "flow-cycle",
        "invalid-json",
        "dangling-edge",
    ]
    assert (error.code, error.status_hint) == ("plan-invalid", 422)
    assert isinstance(error, (GraphInvalid, ValueError))
    assert error.hint


async def test_a_provider_error_passes_through() -> None:
    down = ProviderError("down", provider="openai")
    for script in ([down], [CYCLE, down]):
        with pytest.raises(ProviderError) as caught:
            await planned(*script)
        assert caught.value is down


async def test_an_empty_reply_is_asked_again_like_any_other_invalid_reply() -> None:
    empty = provider_error("empty-reply", provider="openai", model=None)
    plan, _ = await planned(empty, DIAMOND_REPLY)
    first = plan.attempts[0]
    assert (first["reply"], first["diagnostics"][0]["message"]) == (
        "", "the model answered with nothing"
    )  # fmt: skip
    with pytest.raises(PlanInvalid) as caught:
        await planned(empty, empty, empty)
    assert caught.value.message == (
        "no valid plan after 3 attempts; the last one: the model answered with nothing"
    )
    assert caught.value.hint == "rephrase the goal, or choose a stronger model"


async def test_the_hint_of_a_failed_call_speaks_of_planning() -> None:
    broken = provider_error("provider-error", provider="openai", model=None)
    with pytest.raises(ProviderError) as caught:
        await planned(broken)
    assert caught.value.hint == "plan again, or choose another provider or model"


async def test_a_stream_without_a_reply_is_a_provider_error() -> None:
    class Silent(WatchedModel):
        async def stream(self, request: Any, scope: Any = None) -> Any:
            return
            yield

    with pytest.raises(ProviderError) as caught:
        await planner_of(Silent([])).create_plan("goal")
    assert caught.value.retryable


async def test_a_reply_over_the_limit_is_aborted_while_it_streams() -> None:
    flood = in_pieces(*["x" * 100] * 100)
    models = WatchedModel([flood, DIAMOND_REPLY])
    plan = await planner_of(models, Limits(plan_bytes=1_000)).create_plan("goal")
    assert models.streamed == 1_100 + len(DIAMOND_REPLY)
    assert models.closed == 2
    assert plan.attempts[0]["finish_reason"] == "plan_bytes"
    assert plan.attempts[0]["usage"]["estimated"]
    assert plan.attempts[0]["usage"]["input_tokens"] > 100
    assert plan.attempts[0]["usage"]["output_tokens"] > 100
    assert plan.attempts[0]["usage"]["cost_usd"] > 0
    assert plan.attempts[0]["diagnostics"][0]["code"] == "limit-exceeded"
    assert "more compactly" in models.requests[1].prompt


@pytest.mark.parametrize(
    ("model", "room"), [("capped", [1_000, 2_000, 2_000]), ("gpt", [None] * 3)]
)
async def test_a_truncated_reply_is_requested_again_with_more_tokens_if_possible(
    model: str, room: list[int | None]
) -> None:
    plan, models = await planned(
        in_pieces(DIAMOND_REPLY[:50], finish_reason="length"), CYCLE, DIAMOND_REPLY, model=model
    )
    assert plan.attempts[0]["diagnostics"][0]["code"] == "truncated-reply"
    assert "finish_reason length" in models.requests[1].prompt
    assert "more compactly" in models.requests[1].prompt
    assert [r.max_tokens for r in models.requests] == room


async def test_an_error_page_is_not_shown_to_the_model_in_the_next_request() -> None:
    plan, models = await planned(
        "<html>502</html>", '{"error": {"message": "busy"}}', DIAMOND_REPLY
    )
    assert models.requests[0] == models.requests[1] == models.requests[2]
    assert len(plan.attempts) == 3


async def test_fixes_are_listed_on_the_plan_and_reported() -> None:
    progress: list[PlanProgress] = []
    fenced = "Here:\n```json\n" + planner_reply(reply_node("a"), title=None) + "\n```"
    plan, _ = await planned(fenced, on_progress=progress.append)
    assert len(plan.fixes) == 2
    assert plan.title == "Do it all"
    assert [p.data["fix"] for p in progress if p.kind == "fix"] == list(plan.fixes)


async def test_a_long_goal_makes_a_short_title() -> None:
    models = WatchedModel([planner_reply(reply_node("a"), title=" ")])
    plan = await planner_of(models).create_plan("word " * 100)
    assert len(plan.title) <= 80
    assert plan.title.endswith("…")


async def test_parts_of_the_plan_are_reported_while_it_is_written() -> None:
    progress: list[PlanProgress] = []
    pieces = [DIAMOND_REPLY[i : i + 9] for i in range(0, len(DIAMOND_REPLY), 9)]
    await planned(in_pieces(*pieces, reasoning="hm"), on_progress=progress.append)
    assert progress[0] == PlanProgress("delta", {"text": "hm", "reasoning": True})
    text = "".join(
        p.data["text"] for p in progress if p.kind == "delta" and not p.data["reasoning"]
    )
    assert text == DIAMOND_REPLY
    kinds = [p.kind for p in progress if p.kind != "delta"]
    assert kinds == ["title", *["node"] * 4, *["edge"] * 4]
    first_node = next(i for i, p in enumerate(progress) if p.kind == "node")
    assert first_node < len(progress) / 2, "a node is told long before the reply ends"


async def test_warnings_are_listed_on_the_plan() -> None:
    nodes = reply_node("a"), reply_node("b", data={"userPrompt": "Say hello"})
    plan, _ = await planned(planner_reply(*nodes, edges=[reply_edge("a", "b")]))
    assert [(d["severity"], d["node"]) for d in plan.diagnostics] == [("warning", "b")]


async def test_a_forbidden_value_is_neither_stored_nor_sent_again() -> None:
    leak = planner_reply(reply_node("a", data={"api_key": "sk-live-123"}))
    plan, models = await planned(leak, DIAMOND_REPLY)
    assert "sk-live-123" not in json.dumps(plan.as_json())
    assert "sk-live-123" not in models.requests[1].prompt
    assert "api_key" in models.requests[1].prompt
    error = await failed(leak, leak, leak)
    assert "sk-live-123" not in json.dumps(error.attempts) + str(error)


async def test_a_small_model_gets_the_positional_prompt_and_its_repair() -> None:
    progress: list[PlanProgress] = []
    text = small_model_reply()
    cut = in_pieces(text[:40], finish_reason="length")
    plan, models = await planned(cut, text, provider="tiny", on_progress=progress.append)
    first, second = models.requests
    assert first.schema is not None
    assert "n1" in first.schema["properties"]
    assert (second.schema, second.max_tokens) == (first.schema, MAX_TOKENS)
    assert first.prompt in second.prompt
    assert "more compactly" in second.prompt
    steps, edges = len(plan.graph.nodes), len(plan.graph.edges)
    assert steps >= 3
    assert plan.title == "title"
    assert all(n.data == {"provider": "tiny", "model": "t1"} for n in plan.graph.nodes)
    kinds = [p.kind for p in progress if p.kind not in ("delta", "repair")]
    assert kinds == ["title", "title", *["node"] * steps, *["edge"] * edges]


async def test_at_most_forty_errors_are_sent_back() -> None:
    flood = planner_reply(reply_node("a"), edges=[reply_edge("a", f"ghost{i}") for i in range(200)])
    _, models = await planned(flood, DIAMOND_REPLY)
    assert models.requests[1].prompt.count("[dangling-edge]") == 40
    assert "and 160 more" in models.requests[1].prompt


async def test_errors_of_every_code_are_sent_back_in_the_order_of_the_plan() -> None:
    edges = [
        reply_edge("a", "b"),
        reply_edge("b", "a"),
        *(reply_edge("a", f"ghost{i}") for i in range(200)),
    ]
    _, models = await planned(
        planner_reply(reply_node("a"), reply_node("b"), reply_node("c", type="x"), edges=edges),
        DIAMOND_REPLY,
    )
    prompt = models.requests[1].prompt
    places = [prompt.index(f"[{code}]") for code in ("flow-cycle", "unknown-node-type")]
    assert places == sorted(places)
    assert prompt.count("[dangling-edge]") == 38
    assert "and 162 more" in prompt


async def test_errors_of_shape_and_graph_are_sent_back_in_one_repair() -> None:
    faulty = planner_reply(
        reply_node("a", kind="agent"),
        reply_node("b", type="nope"),
        reply_node("c", description=5),
        edges=[
            reply_edge("a", "b"),
            reply_edge("b", "a"),
            {"source": "b", "to": "c", "channel": "flow"},
        ],
    )
    plan, models = await planned(faulty, DIAMOND_REPLY)
    assert len(plan.attempts) == 2
    prompt = models.requests[1].prompt
    for code in ("unknown-field", "unknown-node-type", "invalid-field", "missing-field"):
        assert f"[{code}]" in prompt
    assert "[flow-cycle]" in prompt
    assert "[dangling-edge]" not in prompt


async def test_a_long_invalid_reply_is_shortened_in_the_repair() -> None:
    _, models = await planned("x" * 100_000, DIAMOND_REPLY)
    assert len(models.requests[1].prompt) < 30_000
    assert "76000 more characters" in models.requests[1].prompt


async def test_without_limits_a_plan_may_be_of_any_size() -> None:
    providers = FakeProviders()
    models = WatchedModel([planner_reply(*(reply_node(f"n{i}") for i in range(400)))])
    plan = await Planner(models, providers, library_registry(providers)).create_plan("x" * 300_000)
    assert len(plan.graph.nodes) == 400
    assert plan.plan_id != "plan-1"
    assert plan.created_at.endswith("+00:00")


async def test_a_plan_may_be_restricted_to_types_and_a_number_of_nodes() -> None:
    rules = {"node_types": ["agent", "text"], "max_nodes": 2}
    plan, models = await planned(
        DIAMOND_REPLY, GHOST, planner_reply(reply_node("a"), reply_node("b")), **rules
    )
    assert [n.id for n in plan.graph.nodes] == ["a", "b"]
    request, again, _ = models.requests
    assert "- text: " in str(request.system)
    assert "- llm: " not in str(request.system)
    assert "never more than 2" in str(request.system)
    schema = request.schema or {}
    types = schema["properties"]["steps"]["items"]["properties"]["type"]["enum"]
    assert types == ["agent", "text"]
    assert "this plan may have 2 nodes, it has 4" in again.prompt


class Call(NodeType):
    """A step whose effect is that of what it names."""

    node_type = "call"
    effect = "write"
    effect_by = EffectByField("name", {"look_up": "read", "cancel": "write"}, absent="write")

    class Data(NodeData):
        """Its data."""

        name: str

    async def run(self, data: Any, inputs: Any, context: Any) -> None:
        return None


async def test_a_step_whose_data_give_it_a_forbidden_effect_is_sent_back() -> None:
    def calls(name: str) -> dict[str, Any]:
        return reply_node("f", type="call", data={"name": name})

    def nested(name: str) -> dict[str, Any]:
        graph = {"nodes": [calls(name)], "edges": []}
        return reply_node("each", type="loop", data={"items": [1], "body": graph})

    replies = [planner_reply(calls("cancel")), planner_reply(nested("cancel"))]
    models = WatchedModel([*replies, planner_reply(calls("look_up"))])
    providers = FakeProviders()
    rules = PlanRules(["agent", "call", "loop"], ["none", "read"])
    registry = library_registry(providers, [Call])
    planner = Planner(models, providers, registry, Limits(), rules)
    plan = await planner.create_plan("Do it all")
    assert [node.data["name"] for node in plan.graph.nodes] == ["look_up"]
    for request, where in zip(models.requests[1:], ("/nodes/0", "/nodes/0/data"), strict=True):
        assert "[type-not-allowed]" in request.prompt
        assert "node 'f' has the effect 'write' by its data.name" in request.prompt
        assert f"this plan may have none, read (at {where})" in request.prompt


async def test_a_type_that_is_not_allowed_is_sent_back() -> None:
    other = planner_reply(reply_node("a", type="llm", data={"prompt": "p"}))
    _, models = await planned(other, planner_reply(reply_node("a")), node_types=["agent"])
    assert "[type-not-allowed]" in models.requests[1].prompt
    assert "it may use agent" in models.requests[1].prompt


async def test_the_rules_of_the_service_apply_to_every_plan() -> None:
    models, providers = WatchedModel([planner_reply(reply_node("a"))]), FakeProviders()
    rules = PlanRules(["agent", "text"])
    planner = Planner(models, providers, library_registry(providers), rules=rules)
    await planner.create_plan("goal", node_types=["agent", "llm"])
    assert "- text: " not in str(models.requests[0].system)
    with pytest.raises(InputError) as caught:
        await planner.create_plan("goal", node_types=["llm"])
    assert caught.value.code == "no-node-types"


async def test_the_calls_of_a_plan_have_the_scope_of_the_caller() -> None:
    scope = CallScope("run", "plan", 2)
    _, models = await planned(CYCLE, DIAMOND_REPLY, scope=scope)
    assert models.scopes == [scope, scope]
    _, models = await planned(DIAMOND_REPLY)
    assert models.scopes == [None]


def test_importing_the_planner_loads_no_sdk_and_no_template_engine() -> None:
    code = (
        "import sys, planwave.planner.planner;"
        "print([m for m in ('openai','anthropic','pydantic_ai','jinja2','minijinja',"
        "'sqlalchemy','fastapi','httpx2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def with_tools(models: WatchedModel, rules: PlanRules = NO_RULES) -> Planner:
    """Return a planner with a tool that reads and one that writes."""
    providers = FakeProviders()
    registry = Registry(LIBRARY, providers=providers)

    @tool(effect="read", registry=registry)
    def look_up(number: int) -> str:
        """Look an order
        up."""  # noqa: D205, D209
        return ""

    @tool(effect="write", registry=registry)
    def cancel(number: int) -> str:
        """Cancel an order."""
        return ""

    return Planner(models, providers, registry, Limits(), rules)


def with_servers(models: WatchedModel, rules: PlanRules = NO_RULES) -> Planner:
    """Return a planner with an MCP server for plans, and one that plans may not use."""
    providers = FakeProviders()
    servers = {"tickets": "Files and\nreads tickets.", "payroll": None}
    registry = library_registry(providers).with_providers(providers, mcp_servers=servers)
    return Planner(models, providers, registry, Limits(), rules)


def plan_with_server(name: str, **data: str) -> str:
    """Return a reply in which an agent has the tools of an MCP server."""
    link = reply_edge("source", "answer") | {
        "channel": "link", "source_handle": "tools", "target_handle": "tools",
    }  # fmt: skip
    node = reply_node("source", type="mcp_server", data={"server": name, **data})
    return planner_reply(node, reply_node("answer"), edges=[link])


async def test_described_mcp_servers_are_offered_and_may_be_linked_to_agents() -> None:
    models = WatchedModel([plan_with_server("tickets")])
    plan = await with_servers(models).create_plan("Do it all")
    system = str(models.requests[0].system)
    assert "- tickets (mcp_server): Files and reads tickets. (side effect: once)" in system
    assert '"type": "mcp_server", "data": {"server": "tickets"}}' in system
    assert "payroll" not in system
    assert "- tool: " not in system
    assert "in: input (any), tools (tool, link); out: output (text)" in system
    assert plan.graph.by_id["source"].type == "mcp_server"
    assert plan.forecast["effects"] == [{"node": "source", "type": "mcp_server", "effect": "once"}]


async def test_a_plan_uses_no_other_server_and_waives_no_approval() -> None:
    models = WatchedModel(
        [
            plan_with_server("payroll"),
            plan_with_server("tickets", approval="never"),
            plan_with_server("tickets"),
        ]
    )
    await with_servers(models).create_plan("Do it all")
    refused = "[type-not-allowed] node 'source' names a server that plans may not use"
    assert refused in models.requests[1].prompt
    assert "they may use tickets" in models.requests[1].prompt
    assert "[field-not-for-plans] node 'source': a plan may not set data.approval" in (
        models.requests[2].prompt
    )


async def test_servers_are_not_offered_where_their_effect_is_not_allowed() -> None:
    models = WatchedModel([plan_with_server("tickets"), planner_reply(reply_node("a"))])
    await with_servers(models, PlanRules(None, ["none", "read"])).create_plan("Do it all")
    assert "tickets" not in str(models.requests[0].system)
    assert "[type-not-allowed]" in models.requests[1].prompt


def plan_with_tool(name: str, target_handle: str = "tools") -> str:
    """Return a reply in which an agent has a tool."""
    link = reply_edge("source", "answer") | {
        "channel": "link", "source_handle": "tools", "target_handle": target_handle,
    }  # fmt: skip
    node = reply_node("source", type="tool", data={"name": name})
    return planner_reply(node, reply_node("answer"), edges=[link])


async def test_the_tools_of_the_operator_are_offered_and_may_be_linked_to_agents() -> None:
    models = WatchedModel([plan_with_tool("look_up")])
    plan = await with_tools(models).create_plan("Do it all")
    system = str(models.requests[0].system)
    assert "- look_up: Look an order up. (side effect: read)" in system
    assert "- cancel: Cancel an order. (side effect: write)" in system
    assert '"type": "tool", "data": {"name": "cancel"}' in system
    assert "- tool: Give an agent a tool" in system
    assert "in: input (any), tools (tool, link); out: output (text)" in system
    (edge,) = plan.graph.edges
    assert (edge.channel, edge.source_handle, edge.target_handle) == ("link", "tools", "tools")
    source = plan.graph.by_id["source"]
    assert (source.type, dict(source.data)) == ("tool", {"name": "look_up"})


async def test_a_plan_says_which_of_its_tools_may_act() -> None:
    models = WatchedModel([plan_with_tool("cancel"), plan_with_tool("look_up")])
    plan = await with_tools(models).create_plan("Do it all")
    assert plan.forecast["effects"] == [{"node": "source", "type": "tool", "effect": "write"}]
    plan = await with_tools(models).create_plan("Do it all")
    assert plan.forecast["effects"] == []


async def test_a_plan_with_an_unknown_tool_or_handle_is_sent_back() -> None:
    models = WatchedModel(
        [plan_with_tool("lookup"), plan_with_tool("look_up", "tolls"), plan_with_tool("look_up")]
    )
    await with_tools(models).create_plan("Do it all")
    assert "[unknown-tool] node 'source': there is no tool 'lookup'" in models.requests[1].prompt
    assert "did you mean 'look_up'?" in models.requests[1].prompt
    assert "[unknown-handle]" in models.requests[2].prompt


async def test_only_tools_with_an_allowed_effect_are_offered_and_accepted() -> None:
    models = WatchedModel([plan_with_tool("cancel"), plan_with_tool("look_up")])
    await with_tools(models, PlanRules(None, ["none", "read"])).create_plan("Do it all")
    assert "- look_up: " in str(models.requests[0].system)
    assert "- cancel: " not in str(models.requests[0].system)
    assert "[type-not-allowed] node 'source' has the effect 'write'" in models.requests[1].prompt


@pytest.mark.parametrize(
    "rules", [PlanRules(["agent", "text"]), PlanRules(None, ["none"])], ids=["types", "effects"]
)
async def test_where_no_tool_is_allowed_the_prompt_is_that_without_tools(rules: PlanRules) -> None:
    allowed, without = (WatchedModel([planner_reply(reply_node("a"))]) for _ in range(2))
    await with_tools(allowed, rules).create_plan("Do it all")
    providers = FakeProviders()
    plain = Planner(without, providers, library_registry(providers), Limits(), rules)
    await plain.create_plan("Do it all")
    assert allowed.requests == without.requests
    assert "tool" not in str(allowed.requests[0].system)
    assert "tool" not in json.dumps(allowed.requests[0].schema)
