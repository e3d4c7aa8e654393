"""Tools that act only once, called by agents that run again: in another attempt, a retry or a fork."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import planwave
from planwave.errors import ProviderError
from planwave.graph.model import Json, Node
from planwave.nodes.agents.delegation import Delegation
from planwave.nodes.agents.once_calls import OnceCalls
from planwave.nodes.agents.tool import Tool, ToolCallContext
from planwave.providers.protocols import CONTINUES, ModelReply, ModelRequest
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.nodes.agent_runs import Kit, agent_graph, calls
from tests.support.nodes.nested_graphs import node_document, registry_with
from tests.support.nodes.node_context import context_for, services_with

Script = Callable[[ModelRequest], ModelReply | str]
MAIL = ("mail", {"to": "Ada"})
AGENT = node_document("a", "agent", userPrompt="Go")


class Office:
    """Agents with the tool ``mail``, which counts what it has sent.

    Args:
        script: What the models reply.
        agents: The agents; ``mail`` is linked to the last one.
        edges: See ``agent_graph``.
        options: More of the tool.
    """

    def __init__(
        self, script: Script, *agents: dict[str, Any], edges: Any = (), **options: Any
    ) -> None:
        self.sent: list[str] = []
        tool = Tool(
            "mail", "Sends.", {"type": "object"}, self._send, **{"effect": "once", **options}
        )
        services, self.models = services_with(lambda request: [script(request)])
        self.run = planwave.run(
            agent_graph(*agents, edges=edges, kit_of=(agents[-1]["id"],)),
            registry=registry_with(Kit([tool])),
            store=MemoryStore(),
            services=services,
            check=False,
        )

    async def _send(self, arguments: Any, context: ToolCallContext) -> str:
        self.sent.append(arguments["to"])
        return f"sent to {arguments['to']}"


def down() -> ProviderError:
    return ProviderError(
        "it is down", provider="openai", model="m", code="overloaded", retryable=True
    )


def told(request: ModelRequest) -> list[str]:
    """Return the results that a model was given."""
    return [turn.text for turn in request.messages if turn.role == "tool"]


class FailsAfterwards:
    """A model that calls ``mail``, then fails so many times, and says at last what it was told."""

    def __init__(self, failures: int = 1, *wanted: tuple[str, Any]) -> None:
        self.failures, self.wanted = failures, wanted or (MAIL,)

    def __call__(self, request: ModelRequest) -> ModelReply | str:
        results = told(request)
        if not results:
            return calls(*self.wanted)
        if self.failures:
            self.failures -= 1
            raise down()
        return "; ".join(results)


def question(result: planwave.RunResult) -> tuple[str, Json]:
    """Return the id of the only question, and what is asked."""
    (request,) = result.requests
    asked: Any = request.request
    assert "An earlier run of this agent has called the tool mail" in asked["prompt"]
    assert (asked["actions"], asked["editable"]) == (["approve", "reject"], False)
    return request.request_id, asked["value"]


@pytest.mark.parametrize(
    ("answer", "sent", "text"),
    [
        ({"decision": "approve"}, ["Ada", "Ada"], "sent to Ada"),
        (
            {"decision": "reject", "note": "She has it."},
            ["Ada"],
            "Error: a person rejected this call; it was not made. They wrote: She has it.",
        ),
    ],
)
async def test_retry_asks_before_a_tool_acts_that_the_failed_run_has_called(
    answer: dict[str, str], sent: list[str], text: str
) -> None:
    office = Office(FailsAfterwards(), AGENT)
    failed = await office.run
    assert (failed.status, office.sent) == ("failed", ["Ada"])
    retried = await failed.run.retry()
    request_id, arguments = question(retried)
    assert (arguments, office.sent) == ({"to": "Ada"}, ["Ada"])
    ended = await retried.run.answer(request_id, answer)
    assert (ended.text, office.sent) == (text, sent)


async def test_another_attempt_asks_too() -> None:
    agent = {**AGENT, "policy": {"retry": {"attempts": 2, "backoffS": 0}}}
    office = Office(FailsAfterwards(), agent)
    waiting = await office.run
    request_id, _ = question(waiting)
    assert office.sent == ["Ada"]
    ended = await waiting.run.answer(request_id, {"decision": "approve"})
    assert (ended.text, office.sent) == ("sent to Ada", ["Ada", "Ada"])


async def test_other_arguments_are_asked_for_as_well() -> None:
    model = FailsAfterwards()
    office = Office(model, AGENT)
    failed = await office.run
    model.wanted = (("mail", {"to": "Countess Ada"}),)
    _, arguments = question(await failed.run.retry())
    assert (arguments, office.sent) == ({"to": "Countess Ada"}, ["Ada"])


async def test_the_calls_of_one_attempt_need_no_question() -> None:
    office = Office(FailsAfterwards(0, MAIL, ("mail", {"to": "Bob"})), AGENT)
    result = await office.run
    assert (result.status, sorted(office.sent)) == ("completed", ["Ada", "Bob"])


async def test_a_retry_of_an_agent_that_has_not_acted_needs_no_question() -> None:
    failures = [down()]

    def reply(request: ModelRequest) -> ModelReply | str:
        if failures:
            raise failures.pop()
        return FailsAfterwards(0)(request)

    office = Office(reply, AGENT)
    result = await (await office.run).run.retry()
    assert (result.status, office.sent) == ("completed", ["Ada"])


@pytest.mark.parametrize("effect", ["read", "write", "none"])
async def test_tools_of_other_effects_are_called_again(effect: str) -> None:
    office = Office(FailsAfterwards(), AGENT, effect=effect)
    result = await (await office.run).run.retry()
    assert (result.status, office.sent) == ("completed", ["Ada", "Ada"])


async def test_an_approval_of_an_execution_before_is_none_for_a_call_that_repeats_one() -> None:
    office = Office(FailsAfterwards(), AGENT, approval="always")
    waiting = await office.run
    failed = await waiting.run.answer(waiting.requests[0].request_id, {"decision": "approve"})
    assert (failed.status, office.sent) == ("failed", ["Ada"])
    retried = await failed.run.retry()
    request_id, _ = question(retried)
    ended = await retried.run.answer(request_id, {"decision": "approve"})
    assert (ended.status, office.sent) == ("completed", ["Ada", "Ada"])


async def test_a_person_who_approves_each_call_is_asked_once_in_another_attempt() -> None:
    agent = {**AGENT, "policy": {"retry": {"attempts": 2, "backoffS": 0}}}
    waiting = await Office(FailsAfterwards(), agent, approval="always").run
    for _ in range(2):
        (request,) = waiting.requests
        assert "May the tool mail be called with these arguments?" in str(request.request)
        waiting = await waiting.run.answer(request.request_id, {"decision": "approve"})
    assert waiting.status == "completed"


async def test_a_retry_asks_for_the_agents_too_that_the_failed_one_had_called() -> None:
    lead = node_document("lead", "agent", userPrompt="Lead")
    clerk = {**node_document("clerk", "agent", userPrompt="{{ input }}"), "name": "Clerk"}
    fails = [down()]

    def reply(request: ModelRequest) -> ModelReply | str:
        if "Lead" not in request.texts:
            return "; ".join(told(request)) or calls(MAIL)
        if not told(request):
            given = calls(("delegate_Clerk", {"task": "Write to Ada."}))
            call = given.tool_calls[0]._replace(id=f"c-{len(fails)}")
            return replace(given, tool_calls=(call,))
        if fails:
            raise fails.pop()
        return "; ".join(told(request))

    office = Office(reply, lead, clerk, edges=[("clerk", "lead")])
    failed = await office.run
    assert (failed.status, office.sent) == ("failed", ["Ada"])
    waiting = await failed.run.retry()
    request_id, _ = question(waiting)
    ended = await waiting.run.answer(request_id, {"decision": "approve"})
    assert (ended.text, office.sent) == ("sent to Ada", ["Ada", "Ada"])


async def test_a_fork_is_served_the_call_unless_it_is_to_run_the_agent_again() -> None:
    def reply(request: ModelRequest) -> ModelReply | str:
        return "; ".join(told(request)) or calls(MAIL)

    office = Office(reply, AGENT)
    done = await office.run
    same = await done.run.fork(set={"a.maxSteps": 9})
    assert (same.text, office.sent) == ("sent to Ada", ["Ada"])
    assert not same.document["nodes"][0].get("reused")
    again = await same.run.fork(rerun=["a"])
    question(again)
    assert office.sent == ["Ada"]


def team(clerk: Script, **clerk_options: Any) -> Office:
    """Return an office in which ``lead`` lets ``Clerk`` write."""
    lead = node_document("lead", "agent", userPrompt="Lead")
    called = {**node_document("clerk", "agent", userPrompt="{{ input }}"), "name": "Clerk"}

    def reply(request: ModelRequest) -> ModelReply | str:
        if "Lead" not in request.texts:
            return clerk(request)
        return "; ".join(told(request)) or calls(("delegate_Clerk", {"task": "Write to Ada."}))

    return Office(reply, lead, {**called, **clerk_options}, edges=[("clerk", "lead")])


async def test_another_attempt_of_an_agent_that_was_called_asks_too() -> None:
    retried = {"policy": {"retry": {"attempts": 2, "backoffS": 0}}}
    office = team(FailsAfterwards(), **retried)
    waiting = await office.run
    request_id, _ = question(waiting)
    assert office.sent == ["Ada"]
    ended = await waiting.run.answer(request_id, {"decision": "approve"})
    assert (ended.text, office.sent) == ("sent to Ada", ["Ada", "Ada"])


async def test_a_fork_that_changes_the_agent_that_was_called_asks_too() -> None:
    model = FailsAfterwards(0)
    office = team(model)
    done = await office.run
    assert (done.text, office.sent) == ("sent to Ada", ["Ada"])
    model.wanted = (("mail", {"to": "Bob"}),)
    waiting = await done.run.fork(set={"clerk.systemPrompt": "You write to Bob."})
    _, arguments = question(waiting)
    assert (arguments, office.sent) == ({"to": "Bob"}, ["Ada"])


async def test_a_call_that_a_person_rejected_is_not_made_by_a_fork_of_that_execution() -> None:
    office = Office(FailsAfterwards(0, MAIL, ("mail", {"to": "Bob"})), AGENT)
    again = await (await office.run).run.fork(rerun=["a"])
    assert sorted(office.sent) == ["Ada", "Bob"]
    for request in again.requests:
        asked: Any = request.request
        decision = "approve" if asked["value"]["to"] == "Bob" else "reject"
        answered = await again.run.answer(request.request_id, {"decision": decision})
    assert (answered.status, office.sent[2:]) == ("completed", ["Bob"])
    same = await answered.run.fork(set={"a.maxSteps": 9})
    assert (same.status, office.sent[2:]) == ("completed", ["Bob"])
    assert same.text == answered.text


@pytest.mark.parametrize(("attempt", "may_repeat"), [(1, False), (2, True)])
async def test_only_the_first_attempt_of_a_fork_continues_that_of_its_parent(
    attempt: int, may_repeat: bool
) -> None:
    class Notes(MemoryStore):
        async def recorded(self, key: Any) -> dict[str, Any]:
            return {"execution_id": "parent", "attempt": 1, CONTINUES: True}

    services, _ = services_with(lambda request: [], recorder=Notes())
    context = context_for(Node("a", "agent", "A"), services=services)
    context.attempt = attempt
    calls_of_fork = OnceCalls(context, Delegation())
    assert await calls_of_fork.may_repeat("mail", is_approved=False) == may_repeat
