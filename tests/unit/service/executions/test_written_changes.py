"""Executions whose steps fail, and that a model changes: what it is shown, what is made, and what is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from planwave.api.routes.triggers.hooks import format_public_batch
from planwave.events import Event, fold
from planwave.events.plan_payloads import WRITTEN
from planwave.providers.protocols import CallScope, Delta, ModelReply, ModelRequest
from planwave.service.executions.written_changes import words_of
from planwave.service.streaming.subscriber_queue import EventBatch
from planwave.settings import Limits
from tests.support.llm.watched_model import WatchedModel
from tests.support.polling import until
from tests.support.service.dependencies import LastingStore
from tests.support.service.written_changes import (
    GRAPH,
    LEAK,
    REPLACES,
    REPLAN,
    asked_in,
    at_rest,
    changed_run,
    changes,
    service_of,
)


async def test_a_failed_step_is_replaced_by_what_a_model_writes() -> None:
    async with changed_run(changes(*REPLACES)) as (calls, path, models):
        document = await calls.get_json(f"{path}/document")
        assert document["status"] == "completed"
        assert document["node_results"]["sent"] == "Sent: The words"
        (change,) = document["changes"]
        assert (change["change"], change["note"]) == (1, "Takes the words instead.")
        assert "plan_request" not in document
        assert document["usage"]["calls"] == 1
        (scope,) = models.scopes
        assert scope is not None  # so the reply is recorded, and served where it is asked for again
        assert (scope.execution_id, scope.path, scope.attempt) == (document["execution_id"], "", 1)
        prompt = models.requests[0].prompt
        assert "count" in prompt
        failed = next(each for each in document["nodes"] if each["path"] == "draft")
        assert failed["status"] == "completed"
        (dropped,) = change["dropped"]
        assert f"- count: {dropped['error']['code']}: {dropped['error']['message'][:40]}" in prompt
        told = [each for each in document["execution_logs"] if "plan" in each.lower()]
        assert told == [
            "A change of the plan is being written as count failed",
            "Plan changed: new or changed words; dropped count - Takes the words instead.",
        ]


def test_what_failed_before_the_request_is_all_in_the_words_of_one() -> None:
    error = {"code": "gone", "message": "no such page"}
    graph = {"nodes": [{"id": each, "type": "text"} for each in "abc"], "edges": []}
    told = [
        ("execution.created", None, {"graph": graph}),
        *(("node.failed", each, {"error": error}) for each in "ab"),
        ("node.failed", "c", {"error": error, "handled": True, "outputs": {}}),
    ]
    events = [Event("x", n, "t", *each, 1, data) for n, (*each, data) in enumerate(told, 1)]
    words = words_of({"change": 1, "by": "failure", "path": "a"}, fold(events))
    assert words.splitlines()[1:] == ["- a: gone: no such page", "- b: gone: no such page"]


class HeldModel(WatchedModel):
    """A model that has written all of its reply and does not end it before its gate is open."""

    def __init__(self, reply: Any) -> None:
        super().__init__(reply)
        self.gate = asyncio.Event()

    async def stream(
        self, request: ModelRequest, scope: CallScope | None = None
    ) -> AsyncGenerator[Delta | ModelReply]:
        async for item in super().stream(request, scope):
            if isinstance(item, ModelReply):
                await self.gate.wait()
            yield item


async def test_who_watches_sees_a_change_as_it_is_written_also_one_who_comes_later() -> None:
    models = HeldModel([changes(*REPLACES), changes(*REPLACES)])
    async with service_of(models) as calls:
        body = {"graph": GRAPH, "start": True, "options": {"replan": REPLAN}}
        execution_id = (await calls.post_json("/api/execute", body, 202))["execution_id"]
        path = f"/api/executions/{execution_id}"
        await until(lambda: models.streamed == len(changes(*REPLACES)))
        watching = calls.service.executions.watch(execution_id)
        events: list[Event] = []
        async for event in watching:
            events.append(event)
            if event.type == "node.delta" and event.path is None:
                models.gate.set()
        written = [each for each in events if each.type == "node.delta" and each.path is None]
        text = "".join(each.data["text"] for each in written)
        assert [json.loads(line) for line in text.splitlines()] == [
            {"kind": "operation", "op": "remove_node", "id": "count"},
            {"kind": "node", "id": "words", "name": "Words", "type": "text"},
            {"kind": "edge", "source": "draft", "target": "words", "channel": "flow"},
            {"kind": "edge", "source": "words", "target": "sent", "channel": "flow"},
        ]
        assert {(each.attempt, each.data["kind"], each.seq) for each in written} == {(1, "plan", 0)}
        types = [each.type for each in events]
        assert (
            types.index("plan.requested") < events.index(written[0]) < types.index("plan.revised")
        )
        assert [node["path"] for node in (await calls.get_json(f"{path}/document"))["nodes"]] == [
            "draft", "sent", "words",
        ]  # fmt: skip
        late = [each async for each in calls.service.executions.watch(execution_id)]
        assert [each.type for each in late if each.type == "node.delta"] == []


async def test_who_calls_a_webhook_is_not_told_of_a_change_as_it_is_written() -> None:
    data = {"kind": WRITTEN, "text": "{}\n", "offset": 0}
    batch = EventBatch([Event("x", 0, "t", "node.delta", None, 1, data)], 1)
    assert format_public_batch(batch) == b""


async def test_a_change_that_reaches_something_new_asks_a_person_and_nothing_of_it_starts() -> None:
    async with changed_run(changes(*REPLACES, LEAK)) as (calls, path, models):
        document = await calls.get_json(f"{path}/document")
        assert (document["status"], document["waitingForInput"]) == ("paused", True)
        asked = await asked_in(calls, path)
        request = asked["request"]
        assert (request["kind"], request["actions"]) == ("plan-change", ["approve", "reject"])
        assert request["additions"] == [
            {"kind": "host", "name": "elsewhere.example", "node": "leak"}
        ]
        assert "elsewhere.example" in request["prompt"]
        assert request["answer"] == "Takes the words instead."
        assert [each["id"] for each in request["difference"]["nodes"]] == ["count", "words", "leak"]
        assert document["plan_hash"] == request["base"]
        assert {node["path"]: node["status"] for node in document["nodes"]} == {
            "draft": "completed", "count": "failed", "sent": "pending",
        }  # fmt: skip
        listed = await calls.get_json("/api/requests")
        assert [each["request_id"] for each in listed["requests"]] == [asked["request_id"]]
        assert len(models.requests) == 1


POST = {"id": "post", "type": "fetch", "data": {"url": "http://127.0.0.1:9/", "method": "POST"}}
TELLS = {"op": "update_node", "id": "post", "set": {"data": {"params": {"to": "everybody"}}}}


@pytest.mark.parametrize("tells", [False, True])
async def test_a_change_of_a_step_with_an_effect_asks_a_person_although_the_plan_has_it_already(
    *, tells: bool
) -> None:
    way = {"source": "sent", "target": "post", "data": {"channel": "flow"}}
    graph = {"nodes": [*GRAPH["nodes"], POST], "edges": [*GRAPH["edges"], way]}
    operations = [*REPLACES, TELLS] if tells else REPLACES
    async with changed_run(changes(*operations), graph=graph) as (calls, path, _):
        document = await calls.get_json(f"{path}/document")
        if not tells:
            assert document["failures"] == ["post"], "nobody was asked about the step as it was"
            return
        asked = await asked_in(calls, path)
        assert asked["request"]["additions"] == [
            {"kind": "effect", "name": "write fetch", "node": "post"}
        ]
        statuses = {node["path"]: node["status"] for node in document["nodes"]}
        assert (document["status"], statuses["post"]) == ("paused", "pending")


async def test_a_request_about_a_change_has_the_forecast_of_the_steps_that_have_not_begun() -> None:
    agent = {
        "op": "add_node",
        "node": {"id": "say", "name": "Say", "type": "agent", "description": "Say it.", "depends_on": ["words"], "data": {"maxTokens": 50}},
    }  # fmt: skip
    async with changed_run(changes(*REPLACES, agent, LEAK)) as (calls, path, _):
        asked = await asked_in(calls, path)
        forecast = asked["request"]["forecast"]
        # draft is done, count was dropped: words, sent, say and leak are left
        assert (forecast["nodes"], forecast["waves"], forecast["calls"]) == (4, 2, 1)
        assert forecast["cost_usd"]["high"] > 0
        assert [each["provider"] for each in forecast["models"]] == ["openai"]


async def test_the_forecast_leaves_out_what_a_failure_blocks() -> None:
    join_any = {"id": "any", "type": "text", "policy": {"join": "any"}, "data": {"text": "Any"}}
    later = {"id": "later", "type": "text", "data": {"text": "Later"}}
    ways = [("sent", "later"), ("count", "any"), ("draft", "any")]
    more = [{"source": a, "target": b, "data": {"channel": "flow"}} for a, b in ways]
    graph = {"nodes": [*GRAPH["nodes"], join_any, later], "edges": [*GRAPH["edges"], *more]}
    adds = REPLACES[1:2]
    async with changed_run(changes(*adds, LEAK), graph=graph) as (calls, path, _):
        forecast = (await asked_in(calls, path))["request"]["forecast"]
        # count has failed and stays, so sent and later are blocked; draft and any are done: words and leak are left
        assert (forecast["nodes"], forecast["waves"]) == (2, 1), forecast


async def test_a_step_that_names_the_default_model_asks_nobody_where_the_others_name_none() -> None:
    last = {"id": "ask", "type": "llm", "data": {"prompt": "Say it"}}
    after = {"source": "sent", "target": "ask", "data": {"channel": "flow"}}
    graph = {"nodes": [*GRAPH["nodes"], last], "edges": [*GRAPH["edges"], after]}
    named = {"provider": "openai", "model": "gpt", "prompt": "Say it"}
    more = {"op": "add_node", "node": {"id": "more", "name": "More", "type": "llm", "data": named}}
    async with changed_run(changes(*REPLACES, more), graph=graph) as (calls, path, _):
        assert (await calls.get_json(path))["requests"] == []
        assert len((await calls.get_json(f"{path}/document"))["changes"]) == 1


async def test_an_approved_change_is_made_as_it_was_shown() -> None:
    async with changed_run(changes(*REPLACES, LEAK)) as (calls, path, models):
        asked = await asked_in(calls, path)
        answer = {"decision": "approve", "note": "a page of ours"}
        await calls.post_json(f"{path}/requests/{asked['request_id']}", answer)
        document = await at_rest(calls, path)
        assert document["node_results"]["sent"] == "Sent: The words"
        (change,) = document["changes"]
        shown = asked["request"]
        assert (change["hash"], change["note"]) == (shown["hash"], shown["answer"])
        assert change["graph_change"] == shown["graph_change"]
        assert change["revised_by"] == {"kind": "local"}
        assert {node["path"] for node in document["nodes"]} == {"draft", "words", "leak", "sent"}
        assert len(models.requests) == 1
        events = await calls.service.executions.events(document["execution_id"])
        (at,) = (n for n, each in enumerate(events) if each.type == "plan.revised")
        resumed = events[at - 1]
        assert (resumed.type, resumed.data["answer"]) == ("execution.resumed", answer)


async def test_a_rejected_change_ends_the_run_as_it_would_have_with_the_words_of_the_person() -> (
    None
):
    async with changed_run(changes(*REPLACES, LEAK)) as (calls, path, models):
        asked = await asked_in(calls, path)
        answer = {"decision": "reject", "note": "whose page is that?"}
        await calls.post_json(f"{path}/requests/{asked['request_id']}", answer)
        document = await at_rest(calls, path)
        assert (document["status"], document["failures"]) == ("failed", ["count"])
        (refused,) = document["refused_changes"]
        assert refused["error"] == {
            "code": "change-rejected",
            "message": "the change was rejected: whose page is that?",
        }
        assert "leak" not in {node["path"] for node in document["nodes"]}
        assert "plan_request" not in document
        again = await calls.expect_problem(
            "POST", f"{path}/requests/{asked['request_id']}", 409, answer
        )
        assert again["code"] == "request-answered"
        assert len(models.requests) == 1


async def test_a_change_by_hand_closes_the_request_about_another_one() -> None:
    async with changed_run(changes(*REPLACES, LEAK)) as (calls, path, _):
        asked = await asked_in(calls, path)
        nodes = [*GRAPH["nodes"][::2], {"id": "mine", "type": "text", "data": {"text": "Mine"}}]
        edges = [{"source": "mine", "target": "sent", "data": {"channel": "flow"}}]
        changed = {"graph": {"nodes": nodes, "edges": edges}}
        await calls.post_json(f"{path}/revise", changed)
        document = await at_rest(calls, path)
        assert document["node_results"]["sent"] == "Sent: Mine"
        assert len(document["changes"]) == 1
        late = await calls.expect_problem(
            "POST", f"{path}/requests/{asked['request_id']}", 410, {"decision": "approve"}
        )
        assert late["code"] == "request-closed"


@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_a_request_about_a_change_outlives_its_process_and_no_model_is_asked_again(
    decision: str,
) -> None:
    store = LastingStore()
    async with changed_run(changes(*REPLACES, LEAK), store=store) as (calls, path, _):
        asked = await asked_in(calls, path)
    models = WatchedModel([])
    async with service_of(models, store=store) as calls:
        again = await asked_in(calls, path)
        assert again == asked
        await calls.post_json(f"{path}/requests/{asked['request_id']}", {"decision": decision})
        document = await at_rest(calls, path)
        assert document["failures"] == ["leak" if decision == "approve" else "count"]
        assert [each["hash"] for each in document.get("changes", ())] == (
            [asked["request"]["hash"]] if decision == "approve" else []
        )
        assert models.requests == []
        assert document["usage"]["calls"] == 1


async def test_a_change_that_reaches_nothing_new_asks_where_the_plan_needs_an_approval() -> None:
    models = WatchedModel([changes(*REPLACES)])
    async with service_of(models) as calls:
        options = {"replan": REPLAN}
        body = {"graph": GRAPH, "start": True, "options": options, "require_approval": True}
        started = await calls.post_json("/api/execute", body, 202)
        path = f"/api/executions/{started['execution_id']}"
        for kind in ("plan-approval", "plan-change"):
            await at_rest(calls, path)
            asked = await asked_in(calls, path)
            assert asked["request"]["kind"] == kind
            answer = {"decision": "approve"}
            await calls.post_json(f"{path}/requests/{asked['request_id']}", answer)
        document = await at_rest(calls, path)
        assert document["status"] == "completed"
        assert asked["request"]["additions"] == []
        assert document["approval"]["plan_hash"] == asked["request"]["hash"]


@pytest.mark.parametrize(
    ("replies", "code"),
    [
        ([changes(answer="Nothing can help.")], "nothing-changed"),
        (["no JSON"] * 3, "plan-invalid"),
    ],
)
async def test_a_reply_that_makes_no_change_ends_the_run_as_it_would_have(
    replies: list[str], code: str
) -> None:
    async with changed_run(*replies) as (calls, path, models):
        document = await calls.get_json(f"{path}/document")
        assert document["status"] == "failed"
        assert document["failures"] == ["count"]
        assert [each["error"]["code"] for each in document["refused_changes"]] == [code]
        assert document["usage"]["calls"] == len(models.requests) == len(replies)


async def test_a_run_that_was_changed_as_often_as_the_limit_says_asks_no_model() -> None:
    again = {**GRAPH["nodes"][1], "id": "again", "name": "Again", "depends_on": ["draft"]}
    way = {"source": "again", "target": "sent", "channel": "flow"}
    tries = [REPLACES[0], {"op": "add_node", "node": again}, {"op": "add_edge", "edge": way}]
    models = WatchedModel([changes(*tries)])
    async with service_of(models, limits=Limits(plan_revisions=1)) as calls:
        options = {"replan": {"on_failure": True, "max": 2}}
        body = {"graph": GRAPH, "start": True, "options": options}
        started = await calls.post_json("/api/execute", body, 202)
        document = await at_rest(calls, f"/api/executions/{started['execution_id']}")
        assert (document["status"], document["failures"]) == ("failed", ["again"])
        (refused,) = document["refused_changes"]
        assert refused["error"]["code"] == "revision-limit"
        assert len(models.requests) == len(document["changes"]) == 1


async def test_a_run_of_a_part_is_not_changed() -> None:
    async with changed_run(run_to=["sent"]) as (calls, path, models):
        document = await calls.get_json(f"{path}/document")
        assert document["refused_changes"][0]["error"]["code"] == "restricted-run"
        assert models.requests == []
