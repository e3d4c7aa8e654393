"""Numbers that people send go on, are stored and come back in the digits that they were written in."""

from __future__ import annotations

from base64 import b64encode
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from planwave.graph.model import Node
from tests.support.graph.builders import make_edge, make_graph, text_node
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies, execute_goal

NUMBERS = (
    "3544790567247868102",
    "-9007199254740993",
    str(2**64 - 1),
    str(2**64),
    str(10**40),
    "1.0",
    "-0.0",
    "1e+22",
    "0.1",
)
SHAPES = ("%s", '{"order":%s,"note":"x"}', "[[%s]]")
ASK = Node("ask", "approval", "Ask", data={"prompt": "ok?"})
ASKED = make_graph(
    text_node("a"), ASK, Node("end", "end", "End"),
    edges=[("a", "ask"), make_edge("ask", "end", source_handle="approve")],
)  # fmt: skip
CASES = list(product(NUMBERS, SHAPES))
JSON = {"content-type": "application/json"}


async def send(client: InProcessClient, method: str, path: str, body: str, **more: str) -> Any:
    answer = await client.request(method, path, content=body.encode(), headers={**JSON, **more})
    assert answer.is_success, answer.text
    return answer.json()


async def assert_shown(client: InProcessClient, execution_id: str, written: str) -> None:
    await client.service.executions.wait(execution_id)
    # `result` has a number alone as text, which is the one that templates print: 1 for 1.0.
    paths = ("document", "events?format=json", "nodes/end", *(("result",) * (written[0] in "{[")))
    for path in paths:
        text = (await client.get(f"/api/executions/{execution_id}/{path}")).text
        compact = text.replace(" ", "").replace("\\n", "").replace('\\"', '"')
        assert written in compact, (path, text)


@pytest.mark.parametrize("number", [2, 2**31, 2**63, 10**30])
async def test_a_number_that_no_revision_has_is_not_found_however_large_it_is(number: int) -> None:
    async with in_process_client(dependencies()) as client:
        graph = make_graph(text_node("a")).to_document()
        flow = await client.post_json("/api/flows", {"name": "f", "graph": graph}, 201)
        plan_id = flow["plan_id"]
        for path, body in (
            ("/api/execute", {"flow": "f", "revision": number}),
            ("/api/execute", {"plan_id": plan_id, "revision": number}),
            ("/api/triggers", {"plan_id": plan_id, "revision": number}),
            ("/api/chats", {"plan_id": plan_id, "plan_revision": number}),
        ):
            await client.expect_problem("POST", path, 404, body)
        inner = Node("n", "inner", "N", data={"flow": {"name": "f", "revision": number}})
        body = {"graph": make_graph(inner).to_document()}
        (found,) = (await client.post_json("/api/check", body))["diagnostics"]
        assert (found["code"], found["pointer"]) == ("unknown-flow", "/nodes/0/data/flow")
        forged = b64encode(b"2026-01-01T00:00:00 " + b"9" * 64).decode()
        path = f"/api/plans/{plan_id}/revisions"
        assert (await client.expect_problem("GET", path, 422, cursor=forged))["code"] == (
            "invalid-cursor"
        )


@pytest.mark.parametrize(("number", "shape"), CASES)
async def test_an_answer_keeps_its_numbers(tmp_path: Path, number: str, shape: str) -> None:
    written = shape % number
    async with in_process_client(dependencies(ASKED, directory=tmp_path)) as client:
        execution_id = (await execute_goal(client.service)).execution_id
        await client.service.executions.wait(execution_id)
        (request,) = await client.service.executions.requests(execution_id)
        path = f"/api/executions/{execution_id}/requests/{request.request_id}"
        await send(client, "POST", path, f'{{"decision":"approve","value":{written}}}')
        await assert_shown(client, execution_id, written)
        assert number in (tmp_path / f"{execution_id}.json").read_text()


@pytest.mark.parametrize(("number", "shape"), CASES)
async def test_a_change_of_a_plan_keeps_its_numbers(number: str, shape: str) -> None:
    written = shape % number
    graph = make_graph(
        Node("j", "json", "J", data={"value": 1}), Node("end", "end", "End"), edges=[("j", "end")]
    )
    async with in_process_client(dependencies(graph)) as client:
        plan = await client.service.plans.create("do it")
        path = f"/api/plans/{plan.plan_id}"
        changed = f'{{"op":"update_node","id":"j","set":{{"data":{{"value":{written}}}}}}}'
        await send(
            client, "PATCH", path, f'{{"operations":[{changed}]}}', **{"if-match": f'"{plan.hash}"'}
        )
        assert written in (await client.get(path)).text.replace(" ", "")
        made = await send(
            client, "POST", "/api/execute", f'{{"plan_id":"{plan.plan_id}","start":true}}'
        )
        await assert_shown(client, made["execution_id"], written)
