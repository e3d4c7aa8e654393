from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.model import Json
from planwave.service.library.results import RunResult
from planwave.settings import Limits
from tests.support.nodes.agent_runs import agent_graph, calls, run_agents, scripted, tool
from tests.support.nodes.nested_graphs import node_document
from tests.support.virtual_loop import virtual_time

SCHEMA = {"text": {"type": "string"}}


class Tickets:
    """A tool that acts, and remembers what it did."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.tool = tool("create", self._create, fields=SCHEMA, effect="write", approval="write")

    async def _create(self, text: str) -> str:
        self.made.append(text)
        return f"ticket {len(self.made)}"


SCRIPT = scripted(calls(("create", {"text": "Broken"})), "Done.")


async def answered(result: RunResult, answer: Json) -> RunResult:
    (request,) = result.requests
    return await result.run.answer(request.request_id, answer)


async def test_call_waits_for_a_person() -> None:
    tickets = Tickets()
    run = await run_agents(agent_graph(), SCRIPT, tickets.tool)
    assert run.result.status == "paused"
    (request,) = run.result.requests
    assert tickets.made == []
    asked: Any = request.request
    assert asked["value"] == {"text": "Broken"}
    assert asked["tool"] == {"name": "create", "kind": "tool", "effect": "write", "call_id": "c1"}
    assert asked["actions"] == ["approve", "reject"]
    result = await answered(run.result, {"decision": "approve"})
    assert (result.text, tickets.made) == ("Done.", ["Broken"])


async def test_person_changes_the_arguments() -> None:
    tickets = Tickets()
    run = await run_agents(agent_graph(), SCRIPT, tickets.tool)
    result = await answered(run.result, {"decision": "approve", "value": {"text": "Cracked"}})
    assert (result.text, tickets.made) == ("Done.", ["Cracked"])
    told = run.requests[-1].messages[-1].text
    assert told == (
        '(A person changed the arguments of this call to {"text":"Cracked"}.)\nticket 1'
    )


async def test_rejection_and_its_note_are_for_the_model() -> None:
    tickets = Tickets()
    run = await run_agents(agent_graph(), SCRIPT, tickets.tool)
    result = await answered(run.result, {"decision": "reject", "note": "Not today."})
    assert (result.text, tickets.made) == ("Done.", [])
    told = run.requests[-1].messages[-1]
    assert told.is_error
    assert (
        told.text == "Error: a person rejected this call; it was not made. They wrote: Not today."
    )


@pytest.mark.parametrize(
    ("of_agent", "of_tool", "effect", "asks"),
    [
        ("never", "never", "once", False),
        ("never", "always", "none", True),
        ("always", "never", "none", True),
        ("write", "never", "read", False),
        ("write", "never", "write", True),
        ("never", "write", "once", True),
    ],
)
async def test_the_stricter_rule_holds(
    of_agent: str, of_tool: Any, effect: Any, asks: bool
) -> None:
    agent = node_document("a", "agent", userPrompt="Go", approval=of_agent)
    kit = tool("create", effect=effect, approval=of_tool)
    run = await run_agents(agent_graph(agent), SCRIPT, kit)
    assert bool(run.result.requests) == asks


async def test_other_calls_go_on_and_each_question_is_its_own() -> None:
    tickets, seen = Tickets(), []

    async def look(at: str) -> None:
        seen.append(at)

    script = scripted(
        calls(("create", {"text": "One"}), ("look", {"at": "sea"}), ("create", {"text": "Two"})),
        "Done.",
    )
    run = await run_agents(agent_graph(), script, tickets.tool, tool("look", look))
    assert seen == ["sea"]
    first, second = run.result.requests
    assert first.path != second.path
    result = await run.result.run.answer(second.request_id, {"decision": "approve"})
    assert (result.status, tickets.made) == ("paused", ["Two"])
    result = await answered(result, {"decision": "reject"})
    assert (result.text, tickets.made) == ("Done.", ["Two"])
    texts = [turn.text for turn in run.requests[-1].messages if turn.role == "tool"]
    assert texts[1:] == ["", "ticket 1"]


@virtual_time
async def test_question_that_nobody_answers_is_a_rejection() -> None:
    tickets = Tickets()
    limits = Limits(approval_timeout_s=3_600)
    run = await run_agents(agent_graph(), SCRIPT, tickets.tool, limits=limits)
    (request,) = run.result.requests
    assert request.timeout_s == 3_600
    result = await run.result.run.resume()
    assert (result.text, tickets.made) == ("Done.", [])
    told = run.requests[-1].messages[-1]
    assert (told.is_error, "rejected" in told.text) == (True, True)
