from __future__ import annotations

from dataclasses import replace
from typing import Any

from planwave.errors import ProviderError
from planwave.providers.protocols import ModelReply, ModelRequest
from planwave.settings import Limits
from tests.support.nodes.agent_runs import agent_graph, calls, run_agents, tool
from tests.support.nodes.nested_graphs import node_document

LEAD = node_document("lead", "agent", userPrompt="Write a report.")
EXPERT = {
    **node_document(
        "expert", "agent", userPrompt="Find out: {{ input }}", systemPrompt="You know."
    ),
    "name": "Tide expert",
    "description": "Knows all about tides.",
}


def delegates(task: str = "How high?", times: int = 1) -> ModelReply:
    return calls(*[("delegate_Tide_expert", {"task": task})] * times)


def has_asked(request: ModelRequest) -> bool:
    return any(turn.role == "tool" for turn in request.messages)


def script(request: ModelRequest) -> ModelReply | str:
    if request.prompt.startswith("Find out"):
        return "Three metres."
    return "The tide is high." if has_asked(request) else delegates()


async def test_linked_agent_is_a_tool_of_the_other() -> None:
    run = await run_agents(agent_graph(LEAD, EXPERT, edges=[("expert", "lead")], kit_of=()), script)
    result, requests, _ = run
    assert result.text == "The tide is high."
    (offered,) = requests[0].tools
    assert offered.name == "delegate_Tide_expert"
    assert "Knows all about tides." in offered.description
    assert (requests[1].system, requests[1].prompt) == ("You know.", "Find out: How high?")
    assert requests[2].messages[-1].text == "Three metres."
    start, end = run.events("subagent_call_start", "subagent_call_end")
    assert start[1]["arguments"] == {"task": "How high?"}
    assert end[1]["result"] == "Three metres."
    nodes = {node["path"]: node["status"] for node in result.document["nodes"]}
    assert nodes["expert"] == "linked"


async def test_templates_in_its_system_prompt_read_the_call() -> None:
    source = node_document("notes", "text", text="Neap {{ '{{' }} x.")
    data = {**EXPERT["data"], "systemPrompt": "Asked: {{ input }}; {{ nodes.notes.output }}"}
    lead = node_document("lead", "agent", userPrompt="Write.", systemPrompt="{{ 'a' | upper }}")
    graph = agent_graph(
        lead, {**EXPERT, "data": data}, source, edges=[("expert", "lead")], kit_of=()
    )
    graph["edges"].append(flow("notes", "expert"))
    run = await run_agents(graph, script)
    assert [each.system for each in run.requests] == ["A", "Asked: How high?; Neap {{ x.", "A"]


async def test_task_is_the_prompt_of_an_agent_without_one() -> None:
    expert = {"id": "expert", "type": "agent", "name": "Tide expert", "description": "Knows tides."}

    def reply(request: ModelRequest) -> ModelReply | str:
        if request.prompt == "How high?":
            return "Three metres."
        return "The tide is high." if has_asked(request) else delegates()

    graph = agent_graph(LEAD, expert, edges=[("expert", "lead")], kit_of=())
    result, _, _ = await run_agents(graph, reply)
    assert result.text == "The tide is high."


def flow(source: str, target: str) -> dict[str, Any]:
    return {"source": source, "target": target, "data": {"channel": "flow"}}


async def test_agent_may_be_a_stage_after_the_one_that_calls_it() -> None:
    graph = agent_graph(LEAD, EXPERT, edges=[("expert", "lead")], kit_of=())
    graph["edges"].append(flow("lead", "expert"))

    def reply(request: ModelRequest) -> ModelReply | str:
        if request.prompt == "Find out: The tide is high.":
            return "How high it is."
        return script(request)

    run = await run_agents(graph, reply)
    assert run.result.text == "How high it is."
    prompts = [request.prompt for request in run.requests]
    assert prompts == [
        "Write a report.", "Find out: How high?", "", "Find out: The tide is high."
    ]  # fmt: skip
    nodes = {node["path"]: node["status"] for node in run.result.document["nodes"]}
    assert (nodes["lead"], nodes["expert"]) == ("completed", "completed")
    assert run.result.document["waves"]["total"] == 2


async def test_task_is_the_only_input_of_an_agent_that_other_nodes_feed() -> None:
    source = node_document("notes", "text", text="Neap.")
    expert = {**EXPERT, "data": {"userPrompt": "Find out: {{ input }}, {{ nodes.notes.output }}"}}
    graph = agent_graph(LEAD, expert, source, edges=[("expert", "lead")], kit_of=())
    graph["edges"].append(flow("notes", "expert"))
    run = await run_agents(graph, script)
    assert [request.prompt for request in run.requests][1] == "Find out: How high?, Neap."


async def test_tools_of_the_called_agent_are_its_own() -> None:
    def reply(request: ModelRequest) -> ModelReply | str:
        names = [spec.name for spec in request.tools]
        if has_asked(request):
            return f"{request.messages[-1].text}!"
        return calls(("look", {"at": "sea"})) if names == ["look"] else delegates()

    graph = agent_graph(LEAD, EXPERT, edges=[("expert", "lead")], kit_of=("expert",))
    run = await run_agents(graph, reply, tool("look"))
    assert run.result.text == '{"at":"sea"}!!'
    (_, of_tool) = run.events("tool_call_start")[0]
    assert of_tool["parent_call_id"] == "c1"
    assert of_tool["depth"] == 1
    assert of_tool["path"].startswith("lead[delegate_Tide_expert-")


async def test_agents_are_called_at_most_so_often() -> None:
    def reply(request: ModelRequest) -> ModelReply | str:
        if request.prompt.startswith("Find out"):
            return "Three metres."
        return "Enough." if has_asked(request) else delegates(times=3)

    graph = agent_graph(LEAD, EXPERT, edges=[("expert", "lead")], kit_of=())
    result, requests, _ = await run_agents(graph, reply, limits=Limits(subagent_calls=2))
    assert result.text == "Enough."
    texts = [turn.text for turn in requests[-1].messages if turn.role == "tool"]
    assert texts == [
        "Three metres.",
        "Three metres.",
        "Error: no more calls of other agents are allowed",
    ]


async def test_agents_are_offered_only_as_deep_as_they_may_be() -> None:
    middle = {**node_document("middle", "agent", userPrompt="{{ input }}"), "name": "Middle"}

    def reply(request: ModelRequest) -> ModelReply | str:
        names = [spec.name for spec in request.tools]
        if has_asked(request) or not names:
            return "Done."
        return calls((names[0], {"task": "Do it."}))

    graph = agent_graph(
        LEAD, middle, EXPERT, edges=[("middle", "lead"), ("expert", "middle")], kit_of=()
    )
    _, deep, _ = await run_agents(graph, reply, limits=Limits(subagent_depth=2))
    _, flat, _ = await run_agents(graph, reply, limits=Limits(subagent_depth=1))
    assert [len(request.tools) for request in deep] == [1, 1, 0, 1, 1]
    assert [len(request.tools) for request in flat] == [1, 0, 1]


async def test_failure_of_the_called_agent_is_for_the_one_that_called() -> None:
    expert = {**EXPERT, "data": {"userPrompt": "{{ input }}", "maxSteps": 1}}

    def reply(request: ModelRequest) -> ModelReply | str:
        if request.prompt == "How high?":
            return calls(("look", {}))
        return "Nobody knows." if has_asked(request) else delegates()

    graph = agent_graph(LEAD, expert, edges=[("expert", "lead")], kit_of=("expert",))
    run = await run_agents(graph, reply, tool("look"))
    assert run.result.text == "Nobody knows."
    ((_, data),) = run.events("subagent_call_error")
    assert "after 1 replies" in data["error"]["message"]


async def test_agent_that_is_retried_calls_the_other_again() -> None:
    lead = {**LEAD, "policy": {"retry": {"attempts": 2, "backoffS": 0}}}
    attempts: list[str] = []

    def reply(request: ModelRequest) -> ModelReply | str:
        if request.prompt.startswith("Find out"):
            return "Three metres."
        if not has_asked(request):
            attempts.append("begins")
            given = delegates()
            call = given.tool_calls[0]._replace(id=f"call-{len(attempts)}")
            return replace(given, tool_calls=(call,))
        if len(attempts) == 1:
            raise ProviderError(
                "it is down", provider="openai", model="m", code="overloaded", retryable=True
            )
        return "The tide is high."

    graph = agent_graph(lead, EXPERT, edges=[("expert", "lead")], kit_of=())
    run = await run_agents(graph, reply)
    assert run.result.text == "The tide is high."
    assert run.events("subagent_call_error") == []
    assert len(run.events("subagent_call_end")) == 2
