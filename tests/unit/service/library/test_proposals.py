"""Runs that are changed: by a new graph while they go on, wait or rest, and in words by a model."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import planwave
from planwave.errors import PreconditionFailed
from planwave.nodes.authoring.function import node
from planwave.nodes.library import LIBRARY
from planwave.planner.capabilities import PlanRules
from planwave.planner.planner import Planner
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.llm.fake_llm_server import fake_llm_in_thread
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.llm.watched_model import WatchedModel
from tests.support.nodes.node_context import services_with


def text(node_id: str, data: str = "{{ input }}") -> dict[str, Any]:
    return {"id": node_id, "type": "text", "data": {"text": data}}


def graph(*nodes: dict[str, Any], edges: str) -> dict[str, Any]:
    pairs = [each.split(">") for each in edges.split()]
    return {
        "nodes": list(nodes),
        "edges": [{"source": a, "target": b, "data": {"channel": "flow"}} for a, b in pairs],
    }


START = {"id": "start", "type": "start"}
SLOW = {"id": "slow", "type": "slow"}
COSTS = text("costs", "The costs of {{ input }}")
NARROW = graph(START, SLOW, text("report"), edges="start>slow slow>report")
WIDE = graph(
    START, SLOW, COSTS, text("report"),
    edges="start>slow start>costs slow>report costs>report",
)  # fmt: skip


class Slow:
    """A node type whose step waits until it is let go, and counts how often it ran."""

    def __init__(self) -> None:
        self.registry, self.runs = planwave.Registry(LIBRARY), Counter[str]()
        self.gate = asyncio.Event()

        @node("slow", registry=self.registry)
        async def slow(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
            self.runs[input] += 1
            await self.gate.wait()
            return f"{input}!"

    def run(self, spec: Any = NARROW, **arguments: Any) -> planwave.Run:
        return planwave.run(spec, "a pump", registry=self.registry, **arguments)


async def test_a_run_goes_on_with_a_changed_graph_and_runs_nothing_twice() -> None:
    work = Slow()
    run = work.run()
    async for event in run:
        if (event.type, event.path) == ("node.started", "slow"):
            assert run.revise(WIDE, note="also cover the costs") is run
        if (event.type, event.path) == ("node.completed", "costs"):
            work.gate.set()
    result = await run
    assert result["costs"] == "The costs of a pump"
    assert result.text == '["a pump!","The costs of a pump"]'
    assert work.runs == {"a pump": 1}
    (change,) = result.document["changes"]
    assert (change["note"], change["revised_by"]) == ("also cover the costs", {"kind": "library"})
    assert [each.id for each in run.graph.nodes] == ["start", "slow", "report", "costs"]


ASKS = {
    "nodes": [{"id": "ask", "type": "approval", "data": {"prompt": "Send it?"}}, text("sent", "S")],
    "edges": [{
        "source": "ask", "sourceHandle": "approve", "target": "sent", "data": {"channel": "flow"},
    }],
}  # fmt: skip
ASKS_AND_MORE = {**ASKS, "nodes": [*ASKS["nodes"], text("more", "More")]}


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_change_of_a_run_whose_plan_needed_an_approval_ends_in_a_request(
    tmp_path: Path, decision: str
) -> None:
    paused = planwave.run_sync(ASKS, store=tmp_path, require_approval=True)
    waiting = paused.run.answer(paused.requests[0].request_id, decision="approve").wait()
    asked = waiting.run.revise(ASKS_AND_MORE, note="also more").wait()
    assert (asked.status, "changes" in asked.document) == ("paused", False)
    (request,) = (each for each in asked.requests if each.path is None)
    assert request.request["prompt"] == "Change the plan of this run? New or changed: more."
    assert (request.request["by"], request.request["answer"]) == ("person", "also more")
    opened = planwave.open(tmp_path, "last")
    decided = opened.answer(request.request_id, decision=decision).wait()
    assert decided.status == "paused"  # the approval step still waits
    is_made = decision == "approve"
    assert ("more" in {each.id for each in opened.graph.nodes}) == is_made
    assert [each["hash"] for each in decided.document.get("changes", ())] == (
        [request.request["hash"]] if is_made else []
    )


def test_a_run_that_waits_goes_on_with_a_changed_graph_when_it_is_awaited(tmp_path: Path) -> None:
    paused = planwave.run_sync(ASKS, store=tmp_path)
    changed = paused.run.revise(ASKS_AND_MORE).wait()
    assert (changed.status, changed["more"]) == ("paused", "More")
    (request,) = changed.requests
    ended = planwave.open(tmp_path, "last").answer(request.request_id, decision="approve").wait()
    assert (ended.status, ended["sent"]) == ("completed", "S")
    with pytest.raises(planwave.Conflict, match="already completed") as over:
        ended.run.revise(ASKS)
    assert over.value.hint == "fork it with the changed graph"
    assert ended.run.fork(graph=ASKS).wait().status == "completed"


def test_what_has_begun_is_refused_at_once_with_the_place() -> None:
    paused = planwave.run_sync(ASKS)
    other = {**ASKS, "nodes": [{**ASKS["nodes"][0], "data": {"prompt": "Now?"}}, ASKS["nodes"][1]]}
    with pytest.raises(planwave.GraphInvalid) as refused:
        paused.run.revise(other)
    assert [(e.code, e.node) for e in refused.value.diagnostics] == [("frozen-node", "ask")]
    broken = {**other, "nodes": [*other["nodes"], {"id": "x", "type": "none of ours", "data": {}}]}
    with pytest.raises(planwave.GraphInvalid) as refused:
        paused.run.revise(broken)
    assert [(e.code, e.node) for e in refused.value.diagnostics] == [
        ("frozen-node", "ask"), ("unknown-node-type", "x"),
    ]  # fmt: skip
    with pytest.raises(planwave.GraphInvalid, match="would stay as it is"):
        paused.run.revise(ASKS)
    unstarted = planwave.run(ASKS)
    with pytest.raises(planwave.Conflict) as early:
        unstarted.revise(ASKS_AND_MORE)
    assert early.value.code == "not-started"
    unstarted.cancel()


async def test_of_two_changes_the_second_one_is_refused_and_the_run_goes_on() -> None:
    paused = await planwave.run(ASKS)
    paused.run.revise(ASKS_AND_MORE)
    with pytest.raises(planwave.Conflict, match="once it goes on") as pending:
        paused.run.revise({**ASKS, "nodes": [*ASKS["nodes"], text("other", "Other")]})
    assert pending.value.code == "change-pending"
    assert (await paused.run)["more"] == "More"

    work = Slow()
    run = work.run()
    with pytest.raises(planwave.Conflict) as late:  # noqa: PT012
        async for event in run:
            if (event.type, event.path) == ("node.started", "slow"):
                run.revise(WIDE)
                run.revise(graph(START, SLOW, edges="start>slow"))
                work.gate.set()
    assert late.value.code == "plan-changed"
    assert (await run).text == '["a pump!","The costs of a pump"]'


async def test_a_run_that_was_opened_before_a_change_goes_on_with_the_changed_graph() -> None:
    store = MemoryStore()
    first = (await planwave.run(ASKS, store=store)).run
    opened = planwave.open(store, first.execution_id)
    assert (await opened).status == "paused"
    other = planwave.open(store, first.execution_id)
    await other.revise(ASKS_AND_MORE)
    with pytest.raises(PreconditionFailed) as late:
        await opened.revise({**ASKS, "nodes": [*ASKS["nodes"], text("lost", "Lost")]})
    assert late.value.code == "plan-changed"
    (request,) = (await other).requests
    ended = await opened.answer(request.request_id, decision="approve")
    assert (ended.status, ended["more"], ended["sent"]) == ("completed", "More", "S")
    assert [each.id for each in opened.graph.nodes] == ["ask", "sent", "more"]


# -- in words


def changes(*operations: Any, answer: str = "Adds the costs.") -> str:
    return json.dumps({"answer": answer, "operations": list(operations)})


def adds(node_id: str, node_type: str = "text", **data: Any) -> dict[str, Any]:
    written = {"id": node_id, "name": node_id, "type": node_type, "data": data}
    return {"op": "add_node", "node": written}


def planner_of(*replies: str) -> tuple[Any, WatchedModel]:
    """Return services with a planner whose model gives these replies."""
    providers, models = FakeProviders(), WatchedModel([*replies])
    rules = PlanRules(node_types=["text", "fetch", "approval"])
    planner = Planner(models, providers, library_registry(providers), rules=rules)
    return services_with(lambda _: [], providers, planner=planner)[0], models


async def test_a_proposal_changes_nothing_until_the_run_is_revised_with_it() -> None:
    services, models = planner_of(changes(adds("costs", text="The costs")))
    paused = await planwave.run(ASKS, services=services)
    proposal = await paused.run.replan("also cover the costs", dry_run=True)
    assert (proposal.answer, proposal.additions) == ("Adds the costs.", [])
    assert '"state": "waiting"' in models.requests[0].prompt
    assert "changes" not in paused.run.result().document
    taken = await paused.run.revise(proposal)
    assert (taken.status, taken["costs"]) == ("paused", "The costs")
    (change,) = taken.document["changes"]
    assert change["note"] == "in words: also cover the costs"
    assert change["hash"] == proposal.document["hash"]
    with pytest.raises(PreconditionFailed):
        paused.run.revise(proposal)


def test_a_proposal_names_what_it_would_reach_and_a_fork_takes_that_of_a_run_that_has_ended() -> (
    None
):
    services, models = planner_of(
        changes(adds("leak", "fetch", url="https://elsewhere.example/")),
        changes(adds("costs", text="The costs"), {"op": "remove_node", "id": "report"}),
        changes(answer="There is nothing to cover."),
    )
    ended = planwave.run_sync(graph(text("report", "Hot"), edges=""), services=services)
    reaches = ended.run.replan_sync("send it elsewhere", dry_run=True)
    assert ("host", "elsewhere.example") in [(e["kind"], e["name"]) for e in reaches.additions]
    proposal = ended.run.replan_sync("the costs in place of the report", dry_run=True)
    assert "that run has ended" in models.requests[1].prompt
    fork = ended.run.fork(graph=proposal.graph).wait()
    assert (fork.status, fork.text) == ("completed", "The costs")
    with pytest.raises(planwave.InputError, match="stays as it was: There is nothing") as nothing:
        ended.run.replan_sync("cover it", dry_run=True)
    assert nothing.value.code == "nothing-changed"


def test_a_run_that_repairs_itself_opens_what_that_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    bad = {"id": "bad", "type": "transform", "data": {"expression": "{{ input.cost * 3 }}"}}
    repaired = changes(
        {"op": "remove_node", "id": "bad"},
        {"op": "add_node", "node": {**adds("good", text="Good")["node"], "depends_on": ["a"]}},
        {"op": "add_edge", "edge": {"source": "good", "target": "end", "channel": "flow"}},
    )
    broken = graph(text("a", "A"), bad, text("end"), edges="a>bad bad>end")
    options = planwave.RunOptions(replan={"on_failure": True, "max": 1})
    with fake_llm_in_thread(reply_to=lambda _: repaired) as llm:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        result = planwave.run_sync(broken, options=options)
    assert (result.text, len(llm.requests)) == ("Good", 1)
    assert [each.id for each in result.run.graph.nodes] == ["a", "end", "good"]


async def test_what_cannot_be_planned_is_refused_before_a_model_is_asked() -> None:
    services, models = planner_of()
    run = (await planwave.run(ASKS, services=services)).run
    with pytest.raises(RuntimeError, match=r"await run\.replan"):
        run.replan_sync("more")
    with pytest.raises(planwave.InputError, match="the request is empty"):
        await run.replan(" ")
    with pytest.raises(TypeError, match="what is to be different is text"):
        await run.replan(5)  # pyright: ignore[reportArgumentType]
    unstarted = planwave.run(ASKS, services=services)
    with pytest.raises(planwave.Conflict, match="not started yet"):
        await unstarted.replan("more")
    unstarted.cancel()
    bare = (await planwave.run(ASKS, services=services_with(lambda _: [], planner=None)[0])).run
    with pytest.raises(planwave.Conflict, match="no planner"):
        await bare.replan("more", dry_run=True)
    assert models.requests == []


async def test_a_run_without_services_opens_them_for_a_change_only_where_it_rests(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    written = {
        "id": "note",
        "type": "llm",
        "data": {"provider": "openai", "model": "gpt-4o", "prompt": "Note it"},
    }
    more = {**NARROW, "nodes": [*NARROW["nodes"], written]}
    work = Slow()
    run = work.run()
    async for event in run:
        if (event.type, event.path) == ("node.started", "slow"):
            with pytest.raises(planwave.Conflict) as refused:
                run.revise(more)
            work.gate.set()
    assert refused.value.code == "no-services"
    assert (await run).status == "completed"


# -- made in words


async def test_a_run_that_waits_is_changed_in_words_and_waits_again() -> None:
    services, models = planner_of(changes(adds("costs", text="The costs")))
    paused = await planwave.run(ASKS, services=services)
    assert await paused.run.replan("also cover the costs") is paused.run
    with pytest.raises(planwave.Conflict) as twice:
        await paused.run.replan("and more")
    assert twice.value.code == "change-pending"
    with pytest.raises(planwave.Conflict) as by_hand:
        paused.run.revise(ASKS_AND_MORE)
    assert by_hand.value.code == "change-pending"
    changed = await paused.run
    assert (changed.status, changed["costs"], len(models.requests)) == ("paused", "The costs", 1)
    (change,) = changed.document["changes"]
    assert (change["by"], change["note"]) == ("person", "Adds the costs.")
    assert changed.document["usage"]["calls"] == 1
    with pytest.raises(planwave.InputError) as nothing:
        await changed.run.replan()
    assert nothing.value.code == "nothing-failed"
    with pytest.raises(TypeError, match="on_progress is for dry_run=True"):
        await changed.run.replan("x", on_progress=print)  # pyright: ignore[reportCallIssue]


async def test_a_change_in_words_that_reaches_something_new_is_answered_before_it_is_made() -> None:
    services, _ = planner_of(changes(adds("leak", "fetch", url="https://elsewhere.example/")))
    paused = await planwave.run(ASKS, services=services)
    asked = await (await paused.run.replan("as the draft says"))
    request = asked.requests[-1]
    assert (asked.status, request.request["kind"]) == ("paused", "plan-change")
    rejected = await asked.run.answer(request.request_id, decision="reject")
    assert rejected.document["refused_changes"][0]["error"]["code"] == "change-rejected"


async def test_a_run_that_goes_on_holds_its_steps_until_the_words_are_a_change() -> None:
    services, models = planner_of(changes(adds("costs", text="The costs")))
    run = planwave.run(
        graph(text("first", "A"), text("last", "B"), edges="first>last"), services=services
    )
    types: list[str] = []
    async for event in run:
        types.append(event.type)
        if event.type == "execution.started":
            await run.replan("also cover the costs")
    result = await run
    assert (result.status, result["costs"], len(models.requests)) == ("completed", "The costs", 1)
    held = types[types.index("plan.requested") : types.index("plan.revised")]
    assert "node.started" not in held
