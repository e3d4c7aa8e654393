"""The tool with which an agent asks for a change of the plan that it is a step of."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.executor.options import RunOptions
from planwave.nodes.agents.linked_tools import CHANGE_PLAN
from planwave.providers.protocols import ModelReply, ModelRequest
from tests.support.llm.fake_providers import FakeProviders
from tests.support.nodes.agent_runs import AgentRun, agent_graph, calls, run_agents, scripted, tool
from tests.support.nodes.nested_graphs import node_document

BY_NODES = {"by_nodes": True, "max": 2}
WORDS = {"request": "Two of the sources are gone: ask others."}
AGENT = node_document("a", "agent", userPrompt="Go")


async def run(script: Any, *agents: Any, replan: Any = BY_NODES, **more: Any) -> AgentRun:
    """Run agents without tools of their own."""
    graph = agent_graph(*(agents or (AGENT,)), kit_of=(), edges=more.pop("edges", ()))
    return await run_agents(
        graph, script, providers=FakeProviders(), options=RunOptions(replan=replan), **more
    )


def offered(requests: list[ModelRequest]) -> list[list[str]]:
    return [[each.name for each in request.tools] for request in requests]


def refused(of: AgentRun) -> list[Any]:
    """Return what was requested, and not made: no model writes changes here."""
    return of.result.document.get("refused_changes", [])


async def test_an_agent_asks_once_it_has_replied() -> None:
    done = await run(scripted(calls((CHANGE_PLAN, WORDS)), "My part."))
    assert done.result.text == "My part."
    assert offered(done.requests) == [[CHANGE_PLAN], [CHANGE_PLAN]]
    said = done.requests[1].messages[-1].text
    assert said == "Noted: the plan is changed once you have replied, if that is possible."
    assert done.events("replan") == [("replan", WORDS)]
    kinds = [kind for kind, _ in done.emitted]
    assert kinds.index("tool_call_end") < kinds.index("replan")
    assert [each["change"] for each in refused(done)] == [1]


async def test_a_second_call_is_refused_and_the_first_one_stays() -> None:
    other = {"request": "Something else"}
    done = await run(scripted(calls((CHANGE_PLAN, WORDS), (CHANGE_PLAN, other)), "My part."))
    first, second = done.requests[1].messages[-2:]
    assert first.text.startswith("Noted")
    assert "it has asked for one already" in second.text
    assert done.events("replan") == [("replan", WORDS)]


@pytest.mark.parametrize(
    "arguments", [{}, {"request": ""}, {"request": "x" * 5000}, {"request": 3}, {"plan": "x"}]
)
async def test_arguments_that_do_not_fit_are_told_to_the_model(arguments: Any) -> None:
    done = await run(scripted(calls((CHANGE_PLAN, arguments)), "My part."))
    assert done.requests[1].messages[-1].is_error
    assert refused(done) == []


@pytest.mark.parametrize("replan", [None, {"on_failure": True}, {"by_nodes": False}])
async def test_without_the_option_no_agent_is_offered_it(replan: Any) -> None:
    done = await run(scripted("My part."), replan=replan)
    assert offered(done.requests) == [[]]


@pytest.mark.parametrize(
    "data",
    [{"maxSteps": 1}, {"provider": "tiny"}, {"fallback": [{"provider": "tiny", "model": "t1"}]}],
)
async def test_models_that_could_not_use_it_are_not_offered_it(data: Any) -> None:
    done = await run(scripted("My part."), node_document("a", "agent", userPrompt="Go", **data))
    assert offered(done.requests) == [[]]


async def test_another_tool_of_this_name_comes_first() -> None:
    done = await run_agents(
        agent_graph(AGENT),
        scripted(calls((CHANGE_PLAN, WORDS)), "My part."),
        tool(CHANGE_PLAN),
        options=RunOptions(replan=BY_NODES),
    )
    assert offered(done.requests) == [[CHANGE_PLAN]] * 2
    assert done.events("replan") == []


async def test_an_agent_that_another_one_calls_is_no_step_and_is_not_offered_it() -> None:
    expert = {**node_document("expert", "agent", userPrompt="{{ input }}"), "name": "Expert"}

    def script(request: ModelRequest) -> ModelReply | str:
        is_first = not request.messages and any("delegate" in each.name for each in request.tools)
        return calls(("delegate_Expert", {"task": "Look"})) if is_first else "Done."

    done = await run(script, AGENT, expert, edges=[("expert", "a")])
    assert offered(done.requests) == [
        ["delegate_Expert", CHANGE_PLAN],
        [],
        ["delegate_Expert", CHANGE_PLAN],
    ]


async def test_with_approval_of_all_calls_a_person_approves_it_first() -> None:
    agent = node_document("a", "agent", userPrompt="Go", approval="always")
    done = await run(scripted(calls((CHANGE_PLAN, WORDS)), "My part."), agent)
    assert done.result.status == "paused"
    assert done.events("replan") == []
