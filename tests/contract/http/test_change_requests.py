"""The request about a change of the plan of a run, at every end where a person may see and answer it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from html import unescape
from typing import Any

import pytest

from tests.contract.http.test_drafts import approve
from tests.support.mcp.planwave_server import mcp_session
from tests.support.polling import until
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies
from tests.support.service.written_changes import (
    LEAKS,
    MENTION,
    REPLACES,
    asked_in,
    at_rest,
    changed_run,
    changes,
)

OWN_FORM = {"origin": "http://127.0.0.1"}
TOLD = (
    "Change the plan of this run? New or changed: words, see. Dropped: count. "
    "It would do or reach what the plan does not: host other.example."
)


def asking(**more: Any) -> Any:
    """A run that waits for a person's decision about a change that a model wrote."""
    return changed_run(changes(*REPLACES, MENTION), **more)


# -- links ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("decision", "status"), [("approve", "completed"), ("reject", "failed")])
async def test_a_link_shows_what_a_change_does_and_answers_once(decision: str, status: str) -> None:
    async with asking() as (calls, path, models):
        asked = await asked_in(calls, path)
        body = {"kind": "request", "request_id": asked["request_id"]}
        link = f"/links/{(await calls.post_json(f'{path}/links', body, 201))['key']}"
        page = await calls.get(link)
        shown = " ".join(unescape(re.sub(r"<[^>]*>", " ", page.text)).split())
        assert TOLD in shown
        assert "Takes the words instead." in shown
        for step in ("removed: count", "added: Words", "added: See"):
            assert step in shown
        assert "What has not begun: 0 model calls" in shown
        assert LEAKS not in page.text  # nothing of what steps gave
        form = {"request_id": asked["request_id"], "decision": decision}
        answered = await calls.post(link, data=form, headers=OWN_FORM)
        assert answered.status_code == 200, answered.text
        document = await at_rest(calls, path)
        assert document["status"] == status
        assert len(document.get("changes", ())) == (decision == "approve")
        again = await calls.post(link, data=form, headers=OWN_FORM)
        assert (again.status_code, 'data-code="link-used"' in again.text) == (410, True)
        assert len(models.requests) == 1


async def test_of_two_people_who_decide_at_once_one_counts() -> None:
    async with asking() as (calls, path, _):
        asked = await asked_in(calls, path)
        to = f"{path}/requests/{asked['request_id']}"
        body = {"kind": "request", "request_id": asked["request_id"]}
        link = f"/links/{(await calls.post_json(f'{path}/links', body, 201))['key']}"
        async with asyncio.TaskGroup() as tasks:
            approved = tasks.create_task(calls.post(to, json={"decision": "approve"}))
            form = {"request_id": asked["request_id"], "decision": "reject"}
            rejected = tasks.create_task(calls.post(link, data=form, headers=OWN_FORM))
        statuses = approved.result().status_code, rejected.result().status_code
        assert statuses in {(200, 410), (409, 200)}
        document = await at_rest(calls, path)
        assert document["status"] == ("completed" if statuses[0] == 200 else "failed")
        assert len(document.get("changes", ())) == (statuses[0] == 200)


# -- MCP --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("decision", "status"), [("approve", "completed"), ("reject", "failed")])
async def test_an_mcp_client_is_told_what_a_change_does_and_answers_for_its_user(
    decision: str, status: str
) -> None:
    async with asking() as (calls, path, _):
        session = await mcp_session(calls, {})
        execution_id = path.rpartition("/")[2]

        async def tool(name: str, **arguments: Any) -> Any:
            params = {"name": name, "arguments": {"execution_id": execution_id, **arguments}}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            answer = await calls.post("/mcp", json=body, headers=session)
            lines = [each[6:] for each in answer.text.splitlines() if each.startswith("data: ")]
            return json.loads(lines[-1] if lines else answer.text)["result"]

        told = await tool("status")
        (asked,) = told["structuredContent"]["requests"]
        assert asked["prompt"] == TOLD
        assert (asked["node"], asked["request"]["kind"]) == (None, "plan-change")
        text = told["content"][0]["text"]
        assert f"request {asked['request_id']}: {TOLD} (decision: approve or reject)" in text
        assert "Ask them, then call `answer`" in text
        done = await tool("answer", decision=decision)
        assert done["structuredContent"]["status"] == status
        if decision == "approve":
            assert done["structuredContent"]["result"] is not None


# -- callers of flows -------------------------------------------------------------------------------


def flow(entry: str) -> dict[str, Any]:
    """A flow that says something once a person lets it."""
    edges: list[dict[str, Any]] = [
        {"source": source, "sourceHandle": handle, "target": target, "data": {"channel": "flow"}}
        for source, handle, target in (
            ("in", "message" if entry == "chat_start" else "output", "ask"),
            ("ask", "approve", "say"),
        )
    ]
    nodes = [
        {"id": "in", "type": entry},
        {"id": "ask", "type": "approval", "data": {"prompt": "Say it?"}},
        {"id": "say", "type": "text", "data": {"text": "As it was"}},
    ]
    return {"nodes": nodes, "edges": edges}


@asynccontextmanager
async def published(entry: str = "start") -> AsyncGenerator[tuple[InProcessClient, str]]:
    """A service where every plan needs an approval, with an approved flow that is a model, and its id."""
    async with in_process_client(dependencies(require_approval=True)) as calls:
        made = await calls.post_json("/api/flows", {"name": "talk", "graph": flow(entry)}, 201)
        await approve(calls, made["plan_id"], 1)
        path = f"/api/flows/{made['plan_id']}/publication"
        assert (await calls.put(path, json={"model": True})).status_code == 200
        yield calls, made["plan_id"]


async def completion(calls: InProcessClient, _: str) -> str:
    body = {"model": "talk", "messages": [{"role": "user", "content": "Hello"}]}
    answer = (await calls.post_json("/v1/chat/completions", body))["choices"][0]
    assert answer["finish_reason"] == "stop"
    return answer["message"]["content"]


async def streamed_completion(calls: InProcessClient, _: str) -> str:
    body = {"model": "talk", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    answer = await calls.post("/v1/chat/completions", json=body)
    lines = [each[6:] for each in answer.text.splitlines() if each.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    choices = [choice for each in lines[:-1] for choice in json.loads(each)["choices"]]
    assert choices[-1]["finish_reason"] == "stop"
    return "".join(each["delta"].get("content") or "" for each in choices)


async def response(calls: InProcessClient, _: str) -> str:
    answer = await calls.post_json("/v1/responses", {"model": "talk", "input": "Hello"})
    assert answer["status"] == "completed"
    return answer["output"][-1]["content"][0]["text"]


async def reply(calls: InProcessClient, plan_id: str) -> str:
    chat = await calls.post_json("/api/chats", {"plan_id": plan_id}, 201)
    path = f"/api/chats/{chat['chat_id']}/messages"
    turn = await calls.post_json(path, {"message": "Hello"}, 202)
    execution_id = turn["message"]["execution_id"]
    while (await calls.get_json(f"/api/executions/{execution_id}"))["status"] != "completed":
        await until(lambda: True)
    shown = (await calls.get_json(f"/api/chats/{chat['chat_id']}"))["messages"][-1]
    asked = [each["tool"] for each in shown["blocks"] if each["type"] == "approval"]
    told = {each["kind"]: each["summary"] for each in asked}
    assert told["plan-change"] == "Change the plan of this run? New or changed: say."
    return "".join(each["text"] for each in shown["blocks"] if each["type"] == "text")


@pytest.mark.parametrize(
    ("caller", "entry"),
    [
        (completion, "start"),
        (streamed_completion, "start"),
        (response, "start"),
        (reply, "chat_start"),
    ],
)
@pytest.mark.parametrize(("decision", "says"), [("approve", "As changed"), ("reject", "As it was")])
async def test_a_caller_of_a_flow_waits_for_the_decision_about_a_change_of_its_run(
    caller: Callable[[InProcessClient, str], Coroutine[Any, Any, str]],
    entry: str,
    decision: str,
    says: str,
) -> None:
    async with published(entry) as (calls, plan_id), asyncio.TaskGroup() as tasks:
        answer = tasks.create_task(caller(calls, plan_id))
        waiting = await requests_of(calls, 1)
        path = f"/api/executions/{waiting[0]['execution_id']}"
        changed = flow(entry)
        changed["nodes"][2]["data"] = {"text": "As changed"}
        made = await calls.post_json(f"{path}/revise", {"graph": changed})
        assert made["request_id"] is not None
        assert not answer.done()
        decided = {"decision": decision}
        await calls.post_json(f"{path}/requests/{made['request_id']}", decided)
        await requests_of(calls, 1)
        assert not answer.done()
        await calls.post_json(
            f"{path}/requests/{waiting[0]['request_id']}", {"decision": "approve"}
        )
        assert says in await answer


async def requests_of(calls: InProcessClient, count: int) -> list[dict[str, Any]]:
    """The open requests of all executions, once there are so many."""
    while len(found := (await calls.get_json("/api/requests"))["requests"]) != count:
        await until(lambda: True)
    return found
