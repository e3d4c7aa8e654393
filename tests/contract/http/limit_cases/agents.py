"""Limits of agents: their replies, the agents they call, and how long an approval waits."""

from __future__ import annotations

from planwave.graph.model import Node
from planwave.graph.protocols import Suspension
from planwave.nodes.library.approval import Approval
from planwave.providers.protocols import ModelReply, ModelRequest
from planwave.settings import Limits
from tests.contract.http.limit_cases.registry import Refusal, case
from tests.support.nodes.agent_runs import agent_graph, calls, run_agents, scripted, tool
from tests.support.nodes.nested_graphs import node_document
from tests.support.nodes.node_context import context_for, last_item, make_inputs, services_with

_LEAD = node_document("lead", "agent", userPrompt="Go")


def _helper(node_id: str) -> dict[str, object]:
    return {"id": node_id, "type": "agent", "name": node_id, "description": "Helps."}


@case("tool_rounds", 3, code="max-steps", mentions=["3 replies"])
async def _(limits: Limits, amount: int) -> Refusal | None:
    """The amount is the reply in which the agent ends."""
    agent = node_document("a", "agent", userPrompt="Go", maxSteps=100)
    script = scripted(*[calls(("look", {}))] * (amount - 1), "Done.")
    run = await run_agents(agent_graph(agent), script, tool("look"), limits=limits)
    error = run.result.error
    return None if error is None else Refusal(error["code"], error["message"])


@case("tool_result_bytes", 1000)
async def _(limits: Limits, amount: int) -> Refusal | None:
    async def act() -> str:
        return "x" * (amount - len('""'))

    script = scripted(calls(("act", {})), "Done.")
    run = await run_agents(agent_graph(), script, tool("act", act), limits=limits)
    errors = [data["error"] for _, data in run.events("tool_call_error")]
    return Refusal(errors[0]["code"], errors[0]["message"]) if errors else None


@case("subagent_calls", 2, mentions=["no more calls of other agents"])
async def _(limits: Limits, amount: int) -> Refusal | None:
    def script(request: ModelRequest) -> ModelReply | str:
        is_lead = bool(request.tools)
        has_asked = any(turn.role == "tool" for turn in request.messages)
        if not is_lead or has_asked:
            return "Done."
        return calls(*[("delegate_helper", {"task": "Help."})] * amount)

    graph = agent_graph(_LEAD, _helper("helper"), edges=[("helper", "lead")], kit_of=())
    run = await run_agents(graph, script, limits=limits)
    errors = [data["error"] for _, data in run.events("subagent_call_error")]
    return Refusal(errors[0]["code"], errors[0]["message"]) if errors else None


@case("subagent_depth", 1, code="not-offered", mentions=[])
async def _(limits: Limits, amount: int) -> Refusal | None:
    """The amount is the number of agents above the last one."""
    names = [f"helper{number}" for number in range(1, amount + 1)]

    def script(request: ModelRequest) -> ModelReply | str:
        has_asked = any(turn.role == "tool" for turn in request.messages)
        if has_asked or not request.tools:
            return "Done."
        return calls((request.tools[0].name, {"task": "Help."}))

    links = zip(names, ["lead", *names], strict=False)
    graph = agent_graph(_LEAD, *map(_helper, names), edges=[*links], kit_of=())
    run = await run_agents(graph, script, limits=limits)
    called = len(run.events("subagent_call_start"))
    return None if called == amount else Refusal("not-offered")


@case("approval_timeout_s", 60, code="rejected", mentions=[])
async def _(limits: Limits, amount: int) -> Refusal | None:
    """The amount is the second in which the answer comes."""
    services, _ = services_with(lambda _: [], limits=limits)
    context = context_for(Node("a", "approval", "A"), services=services)
    asked = await last_item(Approval().execute({"prompt": "?"}, make_inputs("x"), context))
    assert isinstance(asked, Suspension)
    assert asked.timeout_s is not None
    assert asked.timeout_answer == {"decision": "reject", "note": ""}
    return None if amount <= asked.timeout_s else Refusal("rejected")
