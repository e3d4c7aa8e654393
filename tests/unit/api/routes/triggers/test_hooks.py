"""Webhooks over HTTP: who is let in, what a flow gets, and what the sender is answered."""

from __future__ import annotations

import asyncio
import hmac
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import httpx2
import pytest

from planwave.ids import new_id
from planwave.settings import Limits
from planwave.signatures import signed_headers, signing_key
from planwave.storage.sqlite.store import SqliteStore
from tests.support.graph.bad_inputs import bad_inputs, expanded
from tests.support.nodes.held_nodes import FailingNode, HeldNode
from tests.support.server.in_process_client import InProcessClient
from tests.support.triggers.hook_sender import (
    OTHER_SECRET,
    PLAIN_SECRET,
    SECRET,
    hook_flow,
    hook_service,
    listening,
    send,
    signed,
    text,
)

REPLY = {"id": "reply", "type": "webhook_reply", "data": {"status": 201}}
HELD = {"id": "held", "type": "held"}
BROKEN = {"id": "bad", "type": "broken"}


async def events_of(calls: InProcessClient, execution_id: str) -> Any:
    found = await calls.get_json(f"/api/executions/{execution_id}/events", format="json")
    return found["events"]


async def finished(calls: InProcessClient, execution_id: str) -> Any:
    await calls.service.executions.wait(execution_id)
    return await calls.get_json(f"/api/executions/{execution_id}/document")


async def executions(calls: InProcessClient) -> list[Any]:
    return (await calls.get_json("/api/executions"))["executions"]


# -- what a flow gets


async def test_signed_request_starts_an_execution_with_its_content() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow())
        answer = await send(calls, hook, {"order": "A-17"}, "?shop=3", x_shop="Ulm")
        assert (answer.status_code, list(answer.json())) == (202, ["execution_id"])
        document = await finished(calls, answer.json()["execution_id"])
        assert document["node_results"]["echo"] == 'got {"order":"A-17"}'
        assert document["trigger"]["id"] == hook
        assert document["trigger"]["kind"] == "webhook"
        (entry,) = [node for node in document["nodes"] if node["id"] == "hook"]
        value = json.loads(entry["result"])
        plan_id = document["plan_id"]
        expected = {
            "body": {"order": "A-17"}, "hook_id": hook, "agent_id": plan_id, "node_id": "hook",
            "query": {"shop": "3"}, "method": "POST", "path": f"/hooks/{hook}",
            "content_type": "application/json",
        }  # fmt: skip
        assert expected.items() <= value.items()
        assert value["remote"].keys() == {"host", "port"}
        assert value["headers"]["x_shop"] == "Ulm"
        assert "webhook-signature" not in value["headers"]
        shown = await calls.get_json(f"/api/executions/{answer.json()['execution_id']}")
        assert shown["trigger"] == document["trigger"]


async def test_messages_of_a_body_are_given_too() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow(text("echo", "{{ input.messages[0].content }}")))
        body = {"messages": [{"role": "user", "content": "Hello"}]}
        answer = await send(calls, hook, body, "?wait=30")
        assert answer.json()["outputs"] == {"echo": "Hello"}


@pytest.mark.parametrize(
    ("kind", "content", "result"),
    [
        ("application/json; charset=utf-8", '"x"', "got x"),
        ("application/cloudevents+json", "[1]", "got [1]"),
        ("text/plain", "[1]", "got [1]"),
        ("text/plain", "ä", "got ä"),
        ("application/json", "", "got "),
    ],
)
async def test_body_is_json_or_text(kind: str, content: str, result: str) -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow())
        headers = {**signed(content), "content-type": kind}
        answer = await calls.post(f"/hooks/{hook}?wait=30", content=content, headers=headers)
        assert answer.json()["outputs"] == {"echo": result}


async def test_payload_is_never_rendered_as_a_template() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow(text("echo", "{{ input.body.goal }}")))
        answer = await send(calls, hook, {"goal": "{{7*7}} {% raw %}"}, "?wait=30")
        assert answer.json()["outputs"] == {"echo": "{{7*7}} {% raw %}"}


async def test_live_revision_runs_unless_one_is_named() -> None:
    async with hook_service() as calls:
        graph = hook_flow(text("echo", "one"))
        flow = await calls.post_json("/api/flows", {"name": "F", "graph": graph}, 201)
        bound = {"plan_id": flow["plan_id"]}
        hook = (await calls.post_json("/api/triggers", bound, 201))["trigger_id"]
        path = f"/api/flows/{flow['plan_id']}"
        await calls.put(path, json={"graph": hook_flow(text("echo", "two"))})
        assert (await send(calls, hook, 1, "?wait=30")).json()["outputs"] == {"echo": "two"}
        await calls.delete(f"/api/triggers/{hook}")
        bound["revision"] = 1
        hook = (await calls.post_json("/api/triggers", bound, 201))["trigger_id"]
        assert (await send(calls, hook, 1, "?wait=30")).json()["outputs"] == {"echo": "one"}


# -- who is let in


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"webhook-signature": "v1,AAAA"},
        {"webhook-timestamp": "1"},
        {"webhook-id": "other"},
        {"x-forwarded-for": "127.0.0.1", "webhook-signature": ""},
        {"authorization": "Bearer no", "webhook-signature": ""},
    ],
    ids=str,
)
async def test_unauthenticated_request_is_401_without_detail_and_nothing_is_parsed(
    headers: dict[str, str],
) -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow(bodySchema={"type": "object"}))
        content = "{no json"
        sent = {**signed(content), **headers} if headers else {}
        answer = await calls.post(f"/hooks/{hook}?wait=x&wait=y", content=content, headers=sent)
        assert answer.status_code == 401
        problem = answer.json()
        assert (problem["code"], problem["detail"]) == (
            "unauthorized",
            "the request is not authenticated",
        )
        assert "hint" not in problem
        assert await executions(calls) == []


async def test_rotated_secret_is_accepted_beside_the_old_one() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow(secrets=["main", "next"]))
        for headers in (signed("1"), signed("1", secret=OTHER_SECRET)):
            answer = await calls.post(f"/hooks/{hook}", content="1", headers=headers)
            assert answer.status_code == 202


async def test_shared_secret_is_compared_and_never_stored() -> None:
    async with hook_service() as calls:
        graph = hook_flow(auth="secret", secrets=["plain"], secretHeader="X-Key")
        hook = await listening(calls, graph)
        path = f"/hooks/{hook}"
        for wrong in ({}, {"x-key": ""}, {"x-key": "no"}, {"x-webhook-secret": PLAIN_SECRET}):
            assert (await calls.post(path, content="1", headers=wrong)).status_code == 401
        right = {"x-key": PLAIN_SECRET, "content-type": "application/json"}
        answer = await calls.post(path, content="1", headers=right)
        assert answer.status_code == 202
        document = await finished(calls, answer.json()["execution_id"])
        events = await events_of(calls, answer.json()["execution_id"])
        assert PLAIN_SECRET not in json.dumps([document, events])


@pytest.mark.parametrize("allowed", [True, False])
async def test_unsigned_webhook_needs_the_permission_of_the_operator(allowed: bool) -> None:
    async with hook_service({"unsigned_webhooks": allowed}) as calls:
        hook = await listening(calls, hook_flow(auth="none", secrets=[]))
        answer = await calls.post(f"/hooks/{hook}", content="1")
        assert answer.status_code == (202 if allowed else 401)
        (listed,) = (await calls.get_json("/api/triggers"))["triggers"]
        assert (listed["problem"] is None) == allowed


async def test_secret_without_a_value_lets_nobody_in() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow(secrets=["unknown"]))
        assert (await send(calls, hook, 1)).status_code == 401
        (listed,) = (await calls.get_json("/api/triggers"))["triggers"]
        assert "none of its secrets has a value" in listed["problem"]


async def test_secret_that_is_no_key_lets_nobody_in() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow(secrets=["plain"]))
        assert (await send(calls, hook, 1)).status_code == 401


async def test_disabled_deleted_and_unknown_webhooks_are_not_found() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow())
        await calls.post_json(f"/api/triggers/{hook}/disable")
        disabled = await send(calls, hook, 1)
        await calls.post_json(f"/api/triggers/{hook}/enable")
        assert (await send(calls, hook, 1)).status_code == 202
        await calls.delete(f"/api/triggers/{hook}")
        deleted = await send(calls, hook, 1)
        unknown = await send(calls, hook.replace("0", "1"), 1)
        other = await send(calls, "disabled", 1)
        assert {a.status_code for a in (disabled, deleted, unknown, other)} == {404}


async def test_webhook_whose_node_is_gone_is_not_found() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow())
        (listed,) = (await calls.get_json("/api/triggers"))["triggers"]
        path = f"/api/flows/{listed['plan_id']}"
        await calls.put(path, json={"graph": {"nodes": [text("a", "x")], "edges": []}})
        assert (await send(calls, hook, 1)).status_code == 404
        (listed,) = (await calls.get_json("/api/triggers"))["triggers"]
        assert "no node 'hook'" in listed["problem"]


async def test_failed_attempts_share_one_limit() -> None:
    narrow = Limits(requests_burst=3, requests_per_s=0.001)
    async with hook_service({"limits": narrow}, limits=narrow) as calls:
        hook = await listening(calls, hook_flow())
        statuses = [(await calls.post(f"/hooks/{hook}")).status_code for _ in range(4)]
        assert statuses == [401, 401, 401, 429]


async def test_unknown_webhooks_count_as_failed_attempts_before_the_store_is_asked() -> None:
    narrow = Limits(requests_burst=30, requests_per_s=0.001)
    async with hook_service({"limits": narrow}, limits=narrow) as calls:
        hook = await listening(calls, hook_flow())
        asked: list[str] = []
        find = calls.service.triggers.get

        async def counted(trigger_id: str) -> Any:
            asked.append(trigger_id)
            return await find(trigger_id)

        calls.service.triggers.get = counted  # pyright: ignore[reportAttributeAccessIssue]
        statuses = [(await calls.post(f"/hooks/{new_id()}")).status_code for _ in range(50)]
        statuses += [(await calls.post(f"/hooks/{each}")).status_code for each in ("x", "a.b", "1")]
        assert statuses == [404] * 30 + [429] * 23
        assert len(asked) == 30
        assert (await send(calls, hook, 1)).status_code == 202
        await calls.post_json(f"/api/triggers/{hook}/disable")
        statuses = [(await send(calls, hook, 1)).status_code for _ in range(3)]
        assert statuses == [404, 429, 429]
        await calls.post_json(f"/api/triggers/{hook}/enable")
        assert (await send(calls, hook, 1)).status_code == 202


async def test_too_large_body_is_413_before_the_signature_is_computed() -> None:
    small = Limits(webhook_bytes=20)
    async with hook_service({"limits": small}, limits=small) as calls:
        hook = await listening(calls, hook_flow())
        assert (await send(calls, hook, "x" * 18)).status_code == 202
        for headers in ({}, signed(json.dumps("x" * 19))):
            answer = await calls.post(
                f"/hooks/{hook}", content=json.dumps("x" * 19), headers=headers
            )
            assert (answer.status_code, answer.json()["limit"]) == (413, "webhook_bytes")


# -- what does not fit


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        ("{no json", "application/json", 400, "invalid-json"),
        ('{"a":1,"a":2}', "application/json", 422, "invalid-payload"),
        ("[NaN]", "application/json", 422, "invalid-payload"),
        ("[" * 100 + "]" * 100, "application/json", 422, "invalid-payload"),
        ('"\\u0000"', "application/json", 422, "invalid-payload"),
        ("\0", "text/plain", 422, "invalid-payload"),
    ],
)
async def test_body_that_cannot_be_used_is_rejected_and_listed(
    content: str, kind: str, status: int, code: str
) -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow())
        headers = {**signed(content), "content-type": kind}
        answer = await calls.post(f"/hooks/{hook}", content=content, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        (listed,) = (await calls.get_json("/api/triggers"))["triggers"]
        (delivery,) = listed["deliveries"]
        assert (delivery["outcome"], delivery["execution_id"]) == ("rejected", None)
        assert delivery["note"] == answer.json()["detail"]


async def test_body_that_does_not_fit_its_schema_is_422_after_the_signature() -> None:
    schema = {"type": "object", "required": ["order"]}
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow(bodySchema=schema))
        assert (await send(calls, hook, {"order": 1})).status_code == 202
        refused = await send(calls, hook, {})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid-payload")
        assert "order" in refused.json()["detail"]


@pytest.mark.parametrize("wait", ["-1", "nan", "61", "x", "inf"])
async def test_wait_beyond_the_limit_is_rejected(wait: str) -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow())
        answer = await send(calls, hook, 1, f"?wait={wait}")
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")


# -- answers


async def test_reply_ends_the_request_and_not_the_execution() -> None:
    held = HeldNode()
    async with hook_service(types=[held]) as calls:
        reply = {**REPLY, "data": {"status": 418, "headers": {"X-Tea": "yes"}}}
        hook = await listening(calls, hook_flow(text("t", "tea"), reply, HELD))
        answer = await send(calls, hook, 1)
        assert (answer.status_code, answer.text) == (418, "tea")
        assert answer.headers["x-tea"] == "yes"
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["content-security-policy"].startswith("sandbox")
        (record,) = await executions(calls)
        assert record["status"] == "executing"
        held.release.set()
        assert (await finished(calls, record["execution_id"]))["status"] == "completed"


async def test_reply_that_is_no_text_is_json() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow(REPLY))
        answer = await send(calls, hook, {"a": [1]})
        assert (answer.status_code, answer.headers["content-type"]) == (201, "application/json")
        assert answer.json()["body"] == {"a": [1]}


@pytest.mark.parametrize("depth", [1, 2])
async def test_reply_in_a_nested_graph_answers_and_the_first_one_counts(depth: int) -> None:
    graph: dict[str, Any] = {
        "nodes": [text("said", "item {{ item }}"), REPLY],
        "edges": [{"source": "said", "target": "reply", "data": {"channel": "flow"}}],
    }
    loop: dict[str, Any] = {}
    for _ in range(depth):
        data = {"items": "{{ item }}", "parallel": 1, "body": graph}
        loop = {"id": "each", "type": "loop", "data": data}
        graph = {"nodes": [loop], "edges": []}
    loop["data"]["items"] = "{{ input.body }}"
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow(loop))
        answer = await send(calls, hook, ["a", "b"] if depth == 1 else [["a"], ["b"]])
        assert (answer.status_code, answer.text) == (201, "item a")


async def test_request_that_github_signed_is_accepted_and_another_is_not() -> None:
    body = '{"action": "opened"}'
    sign = "sha256=" + hmac.new(PLAIN_SECRET.encode(), body.encode(), "sha256").hexdigest()
    headers = {"content-type": "application/json", "x-hub-signature-256": sign}
    delivery = {"x-github-delivery": "72d3162e"}
    async with hook_service() as calls:
        flow = hook_flow(auth="github", secrets=["plain"], deliveryHeader="x-github-delivery")
        hook = await listening(calls, flow)
        answers = [
            await calls.post(f"/hooks/{hook}", content=body, headers={**headers, **delivery})
            for _ in range(2)
        ]
        assert [each.status_code for each in answers] == [202, 202]
        assert answers[0].json() == answers[1].json()
        assert (
            await calls.post(f"/hooks/{hook}", content=body + " ", headers=headers)
        ).status_code == 401
        (record,) = await executions(calls)
        ended = await finished(calls, record["execution_id"])
        assert "x-hub-signature-256" not in str(ended["inputs"])


async def test_flow_that_ends_without_its_reply_answers_with_the_execution() -> None:
    gate = {"id": "gate", "type": "if", "data": {"conditions": [
        {"field": "body", "operator": "equals", "value": "never"}]}}  # fmt: skip
    graph = hook_flow(gate, REPLY)
    graph["edges"][1]["sourceHandle"] = "condition-0"
    async with hook_service() as calls:
        hook = await listening(calls, graph)
        answer = await send(calls, hook, 1)
        assert (answer.status_code, list(answer.json())) == (202, ["execution_id"])


async def test_waiting_sender_gets_the_outputs_or_in_time_the_id() -> None:
    held = HeldNode()
    async with hook_service(types=[held]) as calls:
        hook = await listening(calls, hook_flow())
        answer = await send(calls, hook, 1, "?wait=30")
        assert answer.status_code == 200
        assert answer.json()["outputs"] == {"echo": "got 1"}
        assert answer.json()["status"] == "completed"
        hook = await listening(calls, hook_flow(HELD))
        late = await send(calls, hook, 1, "?wait=0.01")
        assert (late.status_code, list(late.json())) == (202, ["execution_id"])
        held.release.set()


@pytest.mark.parametrize("query", ["?wait=30", ""])
async def test_failed_node_is_500_with_the_id_of_the_execution_only(query: str) -> None:
    async with hook_service(types=[FailingNode()]) as calls:
        hook = await listening(calls, hook_flow(BROKEN, REPLY))
        answer = await send(calls, hook, 1, query)
        (record,) = await executions(calls)
        assert answer.status_code == 500
        assert answer.json() == {"execution_id": record["execution_id"]}


async def test_flow_that_cannot_run_is_500_without_detail() -> None:
    async with hook_service() as calls:
        graph = hook_flow({"id": "a", "type": "agent", "data": {"provider": "nobody"}})
        hook = await listening(calls, graph)
        answer = await send(calls, hook, 1, message_id="m")
        assert (answer.status_code, answer.json()["code"]) == (500, "execution-not-started")
        assert "nobody" not in answer.text
        (listed,) = (await calls.get_json("/api/triggers"))["triggers"]
        assert [each["outcome"] for each in listed["deliveries"]] == ["rejected"]


# -- repetitions


async def test_repeated_delivery_gets_the_first_answer() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow(REPLY))
        first = await send(calls, hook, 1, message_id="m")
        again = await send(calls, hook, 2, message_id="m")
        other = await send(calls, hook, 2, message_id="n")
        assert (again.status_code, again.text) == (first.status_code, first.text)
        assert again.headers["idempotency-replayed"] == "true"
        assert other.json()["body"] == 2
        assert len(await executions(calls)) == 2


async def test_first_answer_stays_where_the_flow_wants_other_bodies_now() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow(REPLY))
        first = await send(calls, hook, 1, message_id="m")
        (listed,) = (await calls.get_json("/api/triggers"))["triggers"]
        strict = hook_flow(REPLY, bodySchema={"type": "object"})
        await calls.put(f"/api/flows/{listed['plan_id']}", json={"graph": strict})
        assert (await send(calls, hook, 1, message_id="m")).text == first.text
        assert (await send(calls, hook, 1, message_id="n")).status_code == 422
        await calls.put(f"/api/flows/{listed['plan_id']}", json={"graph": hook_flow(REPLY)})
        assert (await send(calls, hook, 1, message_id="n")).status_code == 201


async def test_delivery_that_comes_again_while_it_is_processed_waits_for_the_answer() -> None:
    held = HeldNode()
    async with hook_service(types=[held]) as calls:
        hook = await listening(calls, hook_flow(HELD, REPLY))
        async with asyncio.TaskGroup() as tasks:
            sent = [tasks.create_task(send(calls, hook, 1, message_id="m")) for _ in range(3)]
            await held.started.wait()
            held.release.set()
        answers = [each.result() for each in sent]
        assert {each.status_code for each in answers} == {201}
        assert len({each.text for each in answers}) == 1
        assert len(await executions(calls)) == 1


async def test_first_answer_is_given_after_a_restart(tmp_path: Path) -> None:
    async with hook_service(store=SqliteStore.open(tmp_path)) as calls:
        hook = await listening(calls, hook_flow(text("t", "{{ input.body }}"), REPLY))
        first = await send(calls, hook, 1, message_id="m")
    async with hook_service(store=SqliteStore.open(tmp_path)) as calls:
        again = await send(calls, hook, 2, message_id="m")
        assert (again.status_code, again.text) == (first.status_code, first.text) == (201, "1")
        assert len(await executions(calls)) == 1


async def test_other_header_may_identify_deliveries() -> None:
    async with hook_service() as calls:
        graph = hook_flow(auth="secret", secrets=["plain"], deliveryHeader="X-GitHub-Delivery")
        hook = await listening(calls, graph)
        headers = {"x-webhook-secret": PLAIN_SECRET, "x-github-delivery": "d" * 300}
        for _ in range(2):
            await calls.post(f"/hooks/{hook}", content="1", headers=headers)
        assert len(await executions(calls)) == 1
        del headers["x-github-delivery"]
        for _ in range(2):
            await calls.post(f"/hooks/{hook}", content="1", headers=headers)
        assert len(await executions(calls)) == 3


async def test_a_signed_message_starts_one_execution_whatever_its_other_headers_say() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow())
        (listed,) = (await calls.get_json("/api/triggers"))["triggers"]
        for flow in (
            hook_flow(),
            hook_flow(auth="secret", secrets=["plain"], deliveryHeader="x-id"),
        ):
            await calls.put(f"/api/flows/{listed['plan_id']}", json={"graph": flow})
        signature_again = hook_flow()
        await calls.put(f"/api/flows/{listed['plan_id']}", json={"graph": signature_again})
        headers = signed("1", "m")
        async with asyncio.TaskGroup() as tasks:
            for number in range(20):
                own = {**headers, "x-id": str(number), "x-delivery": str(number)}
                tasks.create_task(calls.post(f"/hooks/{hook}", content="1", headers=own))
        assert len(await executions(calls)) == 1


@pytest.mark.parametrize("written", ["x-delivery", "X-GitHub-Delivery", "webhook-timestamp"])
async def test_a_signed_delivery_is_not_identified_by_another_header(written: str) -> None:
    async with hook_service() as calls:
        body = {"name": "F", "graph": hook_flow(deliveryHeader=written)}
        refused = await calls.expect_problem("POST", "/api/flows", 422, body)
        assert [each["pointer"] for each in refused["issues"]] == [
            "/graph/nodes/0/data/deliveryHeader"
        ]
        for fine in ("webhook-id", "Webhook-Id"):
            await listening(calls, hook_flow(deliveryHeader=fine))


async def test_an_id_with_a_full_stop_is_refused() -> None:
    """Else the id ``x`` with the body ``T.{}`` and the id ``x.T`` with ``{}`` would have one signature."""
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow())
        for message_id, status in (("x.1", 401), (".", 401), ("msg_1-2", 202)):
            assert (await send(calls, hook, 1, message_id=message_id)).status_code == status


def signed_by_github(body: str, **headers: str) -> dict[str, str]:
    mac = hmac.new(PLAIN_SECRET.encode(), body.encode(), "sha256").hexdigest()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"content-type": "application/json", "x-hub-signature-256": f"sha256={mac}", **named}


async def github_hook(calls: InProcessClient, **data: Any) -> str:
    return await listening(calls, hook_flow(auth="github", secrets=["plain"], **data))


async def test_a_body_that_github_signed_is_one_delivery_for_the_time_of_a_signature() -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    async with hook_service(now=lambda: now[0]) as calls:
        hook = await github_hook(calls)
        async with asyncio.TaskGroup() as tasks:
            for number in range(20):
                headers = signed_by_github("[1]", x_github_delivery=f"d{number}")
                tasks.create_task(calls.post(f"/hooks/{hook}", content="[1]", headers=headers))
        await calls.post(f"/hooks/{hook}", content="[1]", headers=signed_by_github("[1]"))
        assert len(await executions(calls)) == 1
        for body, delivery, count in (
            ("[2]", "e", 2), ("[1]", "f", 2), ("[3]", "e", 2), ("[3]", "g", 2), ("[4]", "h", 3),
        ):  # fmt: skip
            headers = signed_by_github(body, x_github_delivery=delivery)
            await calls.post(f"/hooks/{hook}", content=body, headers=headers)
            assert len(await executions(calls)) == count, (body, delivery)
        now[0] += timedelta(seconds=301)
        headers = signed_by_github("[1]", x_github_delivery="later")
        await calls.post(f"/hooks/{hook}", content="[1]", headers=headers)
        assert len(await executions(calls)) == 4


# -- forms


async def received(calls: InProcessClient, kind: str, content: bytes) -> Any:
    """Return the body that a flow gets."""
    hook = await listening(calls, hook_flow(text("echo", "{{ input.body }}")))
    now, key = int(datetime.now(UTC).timestamp()), signing_key(SECRET)
    assert key is not None
    headers = signed_headers([key], "m", now, content)
    headers["content-type"] = kind
    answer = await calls.post(f"/hooks/{hook}?wait=30", content=content, headers=headers)
    if answer.status_code != 200:
        return answer.json()["code"]
    document = await finished(calls, answer.json()["execution_id"])
    return document["inputs"]["hook"]["output"]["body"]


async def test_github_form_is_read_as_its_payload_and_a_ping_starts_nothing() -> None:
    push = json.dumps({"ref": "refs/heads/main"})
    form = f"payload={quote_plus(push)}"
    kind = "application/x-www-form-urlencoded"
    async with hook_service() as calls:
        flow = hook_flow(text("ref", "{{ input.body.ref }}"), auth="github", secrets=["plain"])
        hook = await listening(calls, flow)
        for content, content_type in ((push, "application/json"), (form, kind)):
            headers = signed_by_github(content) | {"content-type": content_type}
            answer = await calls.post(f"/hooks/{hook}?wait=30", content=content, headers=headers)
            assert answer.json()["outputs"] == {"ref": "refs/heads/main"}
        for query in ("", "?wait=30", "?stream=1"):
            ping = signed_by_github("{}", x_github_event="PING")
            answer = await calls.post(f"/hooks/{hook}{query}", content="{}", headers=ping)
            assert (answer.status_code, answer.json()) == (200, {"event": "ping"})
        unsigned = {**ping, "x-hub-signature-256": "sha256=00"}
        assert (await calls.post(f"/hooks/{hook}", headers=unsigned)).status_code == 401
        broken = signed_by_github("payload=%7B") | {"content-type": kind}
        answer = await calls.post(f"/hooks/{hook}", content="payload=%7B", headers=broken)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid-json")
        assert len(await executions(calls)) == 2


@pytest.mark.parametrize(
    ("kind", "content", "body"),
    [
        ("application/x-www-form-urlencoded", b"a=1&b=x+y%C3%A4&c=", {"a": "1", "b": "x y\u00e4", "c": ""}),
        ("Application/X-WWW-Form-URLencoded; Charset=UTF-8", b"a=1&a=&a=3", {"a": ["1", "", "3"]}),
        ("application/x-www-form-urlencoded; charset=iso-8859-1", b"a=%E4", {"a": "\u00e4"}),
        ("application/x-www-form-urlencoded; charset=unknown", b"a=%E4", {"a": "\ufffd"}),
        ("application/x-www-form-urlencoded", b"", None),
        ("text/plain; charset=unknown", b"\xe4!", "\ufffd!"),
        ("text/plain; charset=latin-1", b"\xe4!", "\u00e4!"),
        ("application/json; charset=unknown", b'["\xc3\xa4"]', ["\u00e4"]),
        ("application/json; charset=utf-16", '["\u00e4"]'.encode("utf-16"), ["\u00e4"]),
        ("application/x-www-form-urlencoded", b"a=%00", "invalid-payload"),
        ("application/x-www-form-urlencoded", b"&".join([b"a=1"] * 1001), "invalid-payload"),
        ("multipart/form-data", b"--B--", "invalid-payload"),
        ("multipart/form-data; boundary=B", b"--B\r\n\r\nx", "invalid-payload"),
        ("multipart/form-data; boundary=B", b"--B--\r\n", {}),
        ("image/png", b"\x89PNG", "invalid-payload"),
    ],
    ids=str,
)  # fmt: skip
async def test_body_is_read_as_its_type_says(kind: str, content: bytes, body: Any) -> None:
    async with hook_service() as calls:
        assert await received(calls, kind, content) == body


async def test_multipart_form_is_an_object_with_its_files() -> None:
    files = [
        ("doc", ("a.txt", "hello", "text/plain")),
        ("doc", ("b.bin", b"\x00\xff", "image/png")),
    ]
    sent = httpx2.Request("POST", "http://x", data={"a": ["1", "2"], "b": "\u00e4"}, files=files)
    content = sent.read()
    async with hook_service() as calls:
        assert await received(calls, sent.headers["content-type"], content) == {
            "a": ["1", "2"], "b": "\u00e4",
            "doc": [
                {"filename": "a.txt", "contentType": "text/plain", "size": 5, "text": "hello"},
                {"filename": "b.bin", "contentType": "image/png", "size": 2, "base64": "AP8="},
            ],
        }  # fmt: skip


# -- streams


@pytest.mark.parametrize(
    ("query", "headers"),
    [("?stream=1", {}), ("?stream=true", {}), ("", {"accept": "text/event-stream"})],
)
async def test_sender_watches_all_nodes_but_neither_graph_nor_errors(
    query: str, headers: dict[str, str]
) -> None:
    async with hook_service(types=[FailingNode()]) as calls:
        told = {"id": "told", "type": "send_message", "data": {"message": "half way"}}
        hook = await listening(calls, hook_flow(text("one", "1"), told, BROKEN, allowSse=True))
        answer = await send(calls, hook, 1, query, **headers)
        assert answer.headers["content-type"].startswith("text/event-stream")
        frames = [frame.splitlines() for frame in answer.text.strip().split("\n\n")]
        names = [line for frame in frames for line in frame if line.startswith("event: ")]
        assert names[0] == "event: execution.started"
        assert names[-1] == "event: execution.failed"
        assert "event: execution.created" not in names
        assert '"half way"' in answer.text
        assert '"value":"1"' in answer.text
        assert "boom" not in answer.text
        again = await send(calls, hook, 1)
        assert again.status_code == 202


async def test_streams_are_only_for_senders_whom_the_webhook_allows_them() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow())
        answer = await send(calls, hook, 1, "?stream=1", accept="text/event-stream")
        assert answer.status_code == 202


# -- the collection of bad inputs

LINES: dict[str, int] = {
    "HOK-381": 401, "HOK-386": 401, "HOK-388": 413, "HOK-390": 404, "HOK-392": 401, "HOK-394": 202,
}  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [line for line in bad_inputs() if line["area"] == "webhook"]
    or [pytest.param({}, marks=pytest.mark.skip(reason="no ../shared/bad_inputs.jsonl"))],
    ids=lambda line: line.get("id", "collection"),
)
async def test_line_of_the_collection_ends_as_expected(line: dict[str, Any]) -> None:
    given = expanded(line["input"])
    body, written = given.get("body", "{}"), given.get("headers", {})
    headers = {name: each for name, each in written.items() if name != "x-signature"}
    signature = written.get("x-signature")
    if signature is not None:
        headers |= signed(body)
        if "ahead" in signature:
            headers["webhook-timestamp"] = str(int(headers["webhook-timestamp"]) + 3_600)
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow())
        if given.get("path") == "/hooks/disabled":
            await calls.post_json(f"/api/triggers/{hook}/disable")
        answer = await calls.post(f"/hooks/{hook}", content=body, headers=headers)
        assert answer.status_code == LINES[line["id"]], answer.text
