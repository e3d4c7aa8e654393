"""Plans that a model wrote, from the model's reply to the services around: what they cannot do.

Each plan here did something that no person had allowed. Now it is refused, and no request arrives.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.api.app import create_app
from planwave.bootstrap import open_service
from planwave.settings import McpServerSettings, Settings
from tests.support.llm.fake_llm_server import FakeLLMServer, prompt_of, schema_of
from tests.support.llm.planner_replies import planner_reply, reply_edge, reply_node
from tests.support.mcp.servers import Marks, scripted_program
from tests.support.server.in_process_client import NO_RATE_LIMITS, asgi_client

Parts = tuple[Sequence[Any], Sequence[Any]]


@asynccontextmanager
async def noting_service(requests: list[str]) -> AsyncIterator[str]:
    """Answer all requests, and note their first lines; give ``host:port``."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            requests.append(head.decode("latin-1").splitlines()[0])
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nSECRET")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}"


@dataclass
class World:
    """planwave with its surroundings: a model, a service and two MCP servers.

    ``plan`` is what the model writes for every goal.
    """

    client: httpx2.AsyncClient
    llm: FakeLLMServer
    address: str
    marks: Marks
    requests: list[str]
    plan: list[str] = field(default_factory=list)

    async def post(self, path: str, body: Any, **options: Any) -> httpx2.Response:
        return await self.client.post(path, json=body, **options)

    async def save_flow(self, name: str, graph: Any) -> str:
        saved = await self.post("/api/flows", {"name": name, "graph": graph})
        assert saved.status_code == 201, saved.text
        return saved.json()["plan_id"]

    async def run(self, body: Any) -> dict[str, Any]:
        """Run something to its end; return its document."""
        created = await self.post("/api/execute", {**body, "start": True})
        assert created.status_code == 202, created.text
        path = f"/api/executions/{created.json()['execution_id']}"
        await self.client.get(f"{path}/events")
        document: dict[str, Any] = (await self.client.get(f"{path}/document")).json()
        return document

    def assert_nothing_happened(self) -> None:
        assert self.requests == []
        assert self.marks.lines == []


@asynccontextmanager
async def world(path: Path, **settings: Any) -> AsyncIterator[World]:
    requests: list[str] = []
    plan: list[str] = []
    marks = Marks(path / "marks")

    def reply_to(body: dict[str, Any]) -> str:
        return plan[0] if schema_of(body) is not None else "done"

    async with (
        FakeLLMServer(reply_to=reply_to) as llm,
        noting_service(requests) as address,
    ):
        table = scripted_program(marks)
        configured = Settings(
            storage_dir=path / "storage",
            allowed_outbound=[address],
            openai_api_key="sk-test",
            openai_base_url=llm.openai_url,
            mcp={
                "shop": McpServerSettings(**table, description="The shop."),
                "hidden": McpServerSettings(**table),
            },
            limits=NO_RATE_LIMITS,
            **settings,
        )
        async with asgi_client(create_app(configured, open_service)) as client:
            yield World(client, llm, address, marks, requests, plan)


def agent_with(server: dict[str, Any], *more: Any, edges: Sequence[Any] = ()) -> Parts:
    link = {
        **reply_edge("server", "n", source_handle="tools", target_handle="tools"),
        "channel": "link",
    }
    nodes = [reply_node("server", type="mcp_server", data=server), reply_node("n"), *more]
    return nodes, [link, *edges]


def text(node_id: str, value: str) -> dict[str, Any]:
    return reply_node(node_id, type="text", data={"text": value})


def wire(source: str, target: str, handle: str, channel: str = "flow") -> dict[str, Any]:
    return {**reply_edge(source, target, target_handle=handle), "channel": channel}


def posts(address: str) -> dict[str, Any]:
    node = {
        "id": "post",
        "type": "fetch",
        "data": {"url": f"http://{address}/WRITE", "method": "POST"},
    }
    return {"nodes": [{"id": "s", "type": "start"}, node],
            "edges": [{"source": "s", "target": "post", "data": {"channel": "flow"}}]}  # fmt: skip


def as_data(graph: dict[str, Any]) -> dict[str, Any]:
    """Return a step that gives a graph as data."""
    return reply_node(
        "given",
        type="transform",
        data={"expression": {"nodes": graph["nodes"], "edges": graph["edges"]}},
    )


NOTHING = {"nodes": [{"id": "x", "type": "text", "data": {"text": "x"}}], "edges": []}


def tool_of_agent(node_type: str, data: dict[str, Any]) -> Parts:
    """Return an agent with a tool of some type."""
    link = {**wire("t", "n", "tools", "link"), "source_handle": "tool"}
    return [reply_node("t", type=node_type, data=data), reply_node("n")], [link]


ATTACKS: dict[str, Callable[[str], Parts]] = {
    "an approval that never asks": lambda _: agent_with({"server": "shop", "approval": "never"}),
    "a wire into the approval": lambda _: agent_with(
        {"server": "shop"}, text("t", "never"), edges=[wire("t", "server", "approval")]
    ),
    "a link into the approval": lambda _: agent_with(
        {"server": "shop"}, text("t", "never"), edges=[wire("t", "server", "approval", "link")]
    ),
    "a server that is not offered": lambda _: agent_with({"server": "hidden"}),
    "a wire that names the server": lambda _: agent_with(
        {"server": "shop"}, text("t", "hidden"), text("u", "never"),
        edges=[wire("t", "server", "server"), wire("u", "server", "approval")],
    ),
    "a request": lambda host: (
        [reply_node("n", type="fetch", data={"url": f"http://{host}/WRITE", "method": "POST"})], []
    ),
    "a request in a loop": lambda host: (
        [reply_node("n", type="loop", data={"items": [1], "body": posts(host)})], []
    ),
    "a loop over a flow": lambda _: (
        [reply_node("n", type="loop", data={"items": [1], "flow": {"name": "ops"}})], []
    ),
    "a while over a flow": lambda _: (
        [reply_node("n", type="while", data={"condition": "index < 1", "flow": {"name": "ops"}})], []
    ),
    "a wire that names the flow": lambda _: (
        [
            reply_node("t", type="transform", data={"expression": {"name": "ops"}}),
            reply_node("n", type="loop", data={"items": [1]}),
        ],
        [wire("t", "n", "flow")],
    ),
    "a graph as data": lambda host: (
        [as_data(posts(host)), reply_node("n", type="loop", data={"items": [1]})],
        [wire("given", "n", "body")],
    ),
    "a graph as data of a while": lambda host: (
        [as_data(posts(host)), reply_node("n", type="while", data={"condition": "index < 1"})],
        [wire("given", "n", "body")],
    ),
    "a graph as data in a body": lambda host: (
        [
            reply_node("outer", type="loop", data={"items": [1], "body": {
                "nodes": [as_data(posts(host)), reply_node("n", type="loop", data={"items": [1]})],
                "edges": [wire("given", "n", "body")],
            }}),
        ],
        [],
    ),
    "an approval that answers itself": lambda _: (
        [
            reply_node("ask", type="approval",
                       data={"prompt": "Go on?", "timeoutS": 0.2, "timeoutAction": "approve"}),
            reply_node("n"),
        ],
        [{**reply_edge("ask", "n"), "source_handle": "approve"}],
    ),
    "an approval that answers itself by wires": lambda _: (
        [
            reply_node("s", type="parser", data={"template": 0.2}), text("t", "approve"),
            reply_node("ask", type="approval", data={"prompt": "Go on?"}), reply_node("n"),
        ],
        [
            wire("s", "ask", "timeoutS"), wire("t", "ask", "timeoutAction"),
            {**reply_edge("ask", "n"), "source_handle": "approve"},
        ],
    ),
    "an image": lambda host: ([reply_node("n", data={"images": [f"http://{host}/x.png?d=1"]})], []),
    "an image from data": lambda host: (
        [
            text("t", "SECRETDATA"),
            reply_node("u", type="transform", data={"expression": f"{{{{ ['http://{host}/x.png?d=' ~ input] }}}}"}),
            reply_node("n"),
        ],
        [reply_edge("t", "u"), wire("u", "n", "images")],
    ),
    "an image in a conversation": lambda host: (
        [reply_node("n", data={"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": f"http://{host}/x.png"}}]}]})], []
    ),
    "web search": lambda _: ([reply_node("n", data={"tools": {"web_search": True}})], []),
    "tools of a caller": lambda _: ([reply_node("n", data={"caller": {"tools": []}})], []),
    "another model when one fails": lambda _: (
        [reply_node("n", data={"fallback": [{"model": "gpt-4o"}]})], []
    ),
    "a request as a tool": lambda host: tool_of_agent(
        "http_tool", {"name": "t", "description": "d", "url": f"http://{host}/WRITE", "method": "POST"}
    ),
    "a flow as a tool": lambda _: tool_of_agent("flow_tool", {"flow": {"name": "ops"}}),
    "a function as a tool": lambda _: tool_of_agent("tool", {"name": "t", "description": "d"}),
    "tools of a list": lambda _: tool_of_agent("toolset", {"tools": ["web_search"]}),
    "an agent as a tool that asks nobody": lambda _: tool_of_agent("agent", {"approval": "never"}),
    "a server that a link brings": lambda _: agent_with(
        {"server": "shop"}, reply_node("s", type="mcp_server", data={"server": "hidden"}),
        edges=[{**wire("s", "n", "tools", "link"), "source_handle": "tools"}],
    ),
    "a call of a function without a model": lambda _: (
        [reply_node("n", type="call_tool", data={"tool": "t"})], []
    ),
    "a call of a server without a model": lambda _: (
        [reply_node("n", type="call_tool", data={"server": "shop", "tool": "look"})], []
    ),
    "a call of a flow without a model": lambda _: (
        [reply_node("n", type="call_tool", data={"flow": {"name": "ops"}})], []
    ),
    "a call without a model in a loop": lambda _: (
        [reply_node("n", type="loop", data={"items": [1], "body": {"nodes": [
            {"id": "x", "type": "call_tool", "data": {"server": "shop", "tool": "look", "approval": "never"}}
        ], "edges": []}})],
        [],
    ),
    "a list of tools by a wire": lambda _: (
        [text("t", "look"), reply_node("n")], [wire("t", "n", "tools")]
    ),
    "a stream of events": lambda host: (
        [reply_node("n", type="sse", data={"url": f"http://{host}/READ"})], []
    ),
    "a reply with headers": lambda _: (
        [reply_node("n", type="webhook_reply", data={"headers": {"NEL": "x"}})], []
    ),
    "a planner that may do more": lambda _: (
        [reply_node("n", type="planner", data={"goal": "g", "allowedNodeTypes": ["fetch"]})], []
    ),
    "a condition that data make": lambda _: (
        [text("t", "index < 9"), reply_node("n", type="while", data={"body": NOTHING})],
        [wire("t", "n", "condition")],
    ),
    "a condition that a link brings": lambda _: (
        [text("t", "index < 9"), reply_node("n", type="while", data={"body": NOTHING})],
        [wire("t", "n", "condition", "link")],
    ),
    "a flow that a template names": lambda _: (
        [reply_node("n", type="loop", data={"items": [1], "flow": {"name": "{{ 'ops' }}"}})], []
    ),
    "a template that is a body": lambda host: (
        [as_data(posts(host)), reply_node("n", type="loop", data={"items": [1], "body": "{{ input }}"})],
        [reply_edge("given", "n")],
    ),
    "nodes of a body that a template makes": lambda host: (
        [
            as_data(posts(host)),
            reply_node("n", type="loop", data={
                "items": [1], "body": {"nodes": "{{ input.nodes }}", "edges": []}}),
        ],
        [reply_edge("given", "n")],
    ),
    "a type that a template makes": lambda host: (
        [reply_node("n", type="loop", data={"items": [1], "body": {"nodes": [
            {"id": "x", "type": "{{ 'fetch' }}", "data": {"url": f"http://{host}/WRITE", "method": "POST"}}
        ], "edges": []}})],
        [],
    ),
    "a body under its other names": lambda host: (
        [reply_node("n", type="loop", data={"items": [1], "graph": posts(host), "body": posts(host)})],
        [],
    ),
    "an effect of its own": lambda _: ([reply_node("n", policy={"effect": "none"})], []),
}  # fmt: skip


REFUSALS = {"field-not-for-plans", "policy-field", "type-not-allowed", "forbidden-field"}
BY_THE_CHECK = {
    "a list of tools by a wire": "channel-mismatch",
    "a template that is a body": "invalid-data",
    "nodes of a body that a template makes": "invalid-field",
    "a type that a template makes": "unknown-node-type",
    # The type is offered where other tests of the process have registered tools.
    "a function as a tool": "unknown-tool",
}
"""What is no valid graph for anybody, with its code."""


@pytest.mark.timeout(120)
async def test_every_such_plan_is_refused_and_nothing_is_sent(tmp_path: Path) -> None:
    async with world(tmp_path) as around:
        await around.save_flow("ops", posts(around.address))
        for attack, made in ATTACKS.items():
            nodes, edges = made(around.address)
            around.plan[:] = [planner_reply(*nodes, edges=list(edges))]
            refused = await around.post("/api/plan", {"prompt": "Do it"})
            assert refused.status_code == 422, (attack, refused.text)
            codes = {each["code"] for each in refused.json()["issues"]}
            assert codes & {*REFUSALS, BY_THE_CHECK.get(attack)}, (attack, codes)
            around.assert_nothing_happened()


async def test_questions_are_part_of_a_plan_and_answers_make_another_one(tmp_path: Path) -> None:
    nodes = json.loads(planner_reply(reply_node("n")))
    market = {"question": "Which market?", "assumed": "<b>{{ 7 * 7 }}</b>", "options": ["Austria"]}
    async with world(tmp_path) as around:
        around.plan[:] = [json.dumps({"questions": [market] * 4, **nodes})]
        made = (await around.post("/api/plan", {"prompt": "Do it"})).json()
        asked = {"question": "Which market?", "answer": "<b>{{ 7 * 7 }}</b>", "assumed": True}
        assert made["questions"] == [{**asked, "options": ["Austria"]}]
        stored = (await around.client.get(f"/api/plans/{made['plan_id']}")).json()
        assert stored["questions"] == made["questions"]

        answers = {"Which market?": "{{ 7 * 7 }} Austria"}
        other = (await around.post("/api/plan", {"prompt": "Do it", "answers": answers})).json()
        assert other["questions"] == [
            {
                "question": "Which market?",
                "answer": "{{ 7 * 7 }} Austria",
                "assumed": False,
                "options": [],
            }
        ]
        assert (other["user_prompt"], other["hash"]) == ("Do it", made["hash"])
        assert other["plan_id"] != made["plan_id"]
        assert "- Which market? {{ 7 * 7 }} Austria" in prompt_of(around.llm.requests[-1].body)

        run = (await around.post("/api/run", {"prompt": "Do it", "answers": answers})).json()
        ran = (await around.client.get(f"/api/plans/{run['plan_id']}")).json()
        assert ran["questions"] == other["questions"]

        for bad in ({"Which market?": ""}, {"": "x"}, {"q": "x" * 501}):
            refused = await around.post("/api/plan", {"prompt": "Do it", "answers": bad})
            assert (refused.status_code, refused.json()["code"]) == (422, "invalid-goal-answer")
        too_many = {"prompt": "Do it", "answers": {str(number): "x" for number in range(4)}}
        assert (await around.post("/api/plan", too_many)).status_code == 422


async def test_the_plan_that_only_uses_what_is_offered_is_taken(tmp_path: Path) -> None:
    async with world(tmp_path) as around:
        nodes, edges = agent_with({"server": "shop", "allow": ["look"]})
        around.plan[:] = [planner_reply(*nodes, edges=list(edges))]
        planned = await around.post("/api/plan", {"prompt": "Do it"})
        assert planned.status_code == 201, planned.text


@pytest.mark.parametrize("holder", ["inner", "loop", "while"])
async def test_effects_count_through_what_a_plan_runs(holder: str, tmp_path: Path) -> None:
    allowed = {"allowed_node_types": ["agent", "fetch", "inner", "loop", "while"],
               "allowed_effects": ["none", "read"]}  # fmt: skip
    data: dict[str, dict[str, Any]] = {
        "inner": {}, "loop": {"items": [1]}, "while": {"condition": "index < 1"}
    }  # fmt: skip
    graph_field = "graph" if holder == "inner" else "body"
    async with world(tmp_path, **allowed) as around:
        await around.save_flow("ops", posts(around.address))
        for inside in ({"flow": {"name": "ops"}}, {graph_field: posts(around.address)}):
            node = reply_node("n", type=holder, data={**data[holder], **inside})
            around.plan[:] = [planner_reply(node)]
            refused = await around.post("/api/plan", {"prompt": "Do it"})
            assert refused.status_code == 422, refused.text
        around.assert_nothing_happened()


async def test_a_stored_plan_is_judged_again_where_it_starts(tmp_path: Path) -> None:
    wide = {"allowed_node_types": ["agent", "fetch"]}
    async with world(tmp_path, **wide) as around:
        data = {"url": f"http://{around.address}/READ"}
        around.plan[:] = [planner_reply(reply_node("get", type="fetch", data=data))]
        plan = (await around.post("/api/plan", {"prompt": "Do it"})).json()
        of_plan = {"plan_id": plan["plan_id"]}
        ended = (await around.run(of_plan))["execution_id"]
        assert around.requests == ["GET /READ HTTP/1.1"]
        waiting = (await around.post("/api/execute", of_plan)).json()["execution_id"]
    async with world(tmp_path, allowed_effects=["none"], **wide) as around:
        before = (await around.client.get("/api/executions")).json()
        for path, body in (
            ("/api/execute", of_plan),
            ("/api/execute", {**of_plan, "start": True}),
            (f"/api/executions/{ended}/fork", {"rerun": ["get"]}),
        ):
            refused = await around.post(path, body)
            assert refused.status_code == 422, (path, refused.text)
            assert "effect 'read'" in refused.text
            assert "has changed since" in refused.text
        assert (await around.client.get("/api/executions")).json() == before, "nothing is created"
        started = await around.client.post(f"/api/execute/{waiting}/start")
        assert started.status_code == 202, started.text
        await around.client.get(f"/api/executions/{waiting}/events")
        document = (await around.client.get(f"/api/executions/{waiting}/document")).json()
        assert document["status"] == "failed"
        assert "has changed since" in json.dumps(document)
        assert around.requests == []
        await change_data(around, plan, "get", {"url": f"http://{around.address}/MINE"})
        assert (await around.run(of_plan))["status"] == "completed", "a person's request"
        assert around.requests == ["GET /MINE HTTP/1.1"]


async def change_data(around: World, plan: Any, node: str, data: Any) -> None:
    """Change a node of a plan, as a person does."""
    changed = await around.client.patch(
        f"/api/plans/{plan['plan_id']}",
        json={
            "operations": [{"op": "update_node", "id": node, "set": {"data": data}}],
            "author": "person",
        },
        headers={"If-Match": f'"{plan["hash"]}"'},
    )
    assert changed.status_code == 200, changed.text


PLANS_THE_MESSAGE = {
    "nodes": [
        {"id": "s", "type": "start"},
        {"id": "p", "type": "planner", "data": {"goal": "{{ input }}"}},
    ],
    "edges": [{"source": "s", "target": "p", "data": {"channel": "flow"}}],
}


async def token_for(around: World, *flows: str) -> dict[str, str]:
    wanted = {"name": "far away", "scopes": ["chat", "run", "read"], "flows": list(flows)}
    made = await around.post("/api/tokens", wanted)
    assert made.status_code == 201, made.text
    return {"Authorization": f"Bearer {made.json()['token']}"}


async def test_a_message_from_far_away_reaches_no_other_flow(tmp_path: Path) -> None:
    async with world(tmp_path) as around:
        await around.save_flow("ops", posts(around.address))
        helper = await around.save_flow("helper", PLANS_THE_MESSAGE)
        published = await around.client.put(
            f"/api/flows/{helper}/publication", json={"model": True}
        )
        assert published.status_code == 200, published.text
        loop = reply_node("n", type="loop", data={"items": ["pay"], "flow": {"name": "ops"}})
        around.plan[:] = [planner_reply(loop)]
        body = {"model": "helper", "messages": [{"role": "user", "content": "pay mallory"}]}
        answer = await around.post(
            "/v1/chat/completions", body, headers=await token_for(around, helper)
        )
        assert "SECRET" not in answer.text
        around.assert_nothing_happened()


async def test_what_a_token_starts_runs_its_flows_only(tmp_path: Path) -> None:
    async with world(tmp_path) as around:
        ops = await around.save_flow("ops", posts(around.address))
        runs_ops = {
            "nodes": [{"id": "n", "type": "inner", "data": {"flow": {"name": "ops"}}}],
            "edges": [],
        }
        middle = await around.save_flow("middle", runs_ops)
        uses = {
            "nodes": [{"id": "n", "type": "inner", "data": {"flow": {"id": middle}}}],
            "edges": [],
        }
        outer = await around.save_flow("outer", uses)
        for flow, token in (("outer", [outer]), ("middle", [middle])):
            headers = await token_for(around, *token)
            body = {"flow": flow, "start": True}
            refused = await around.post("/api/execute", body, headers=headers)
            assert refused.status_code == 422, refused.text
            assert "access token" in refused.text
        headers = await token_for(around, outer, middle)
        started = await around.post("/api/execute", {"flow": outer, "start": True}, headers=headers)
        path = f"/api/executions/{started.json()['execution_id']}"
        await around.client.get(f"{path}/events")
        document = (await around.client.get(f"{path}/document")).json()
        assert document["status"] == "failed"
        assert "there is no flow 'ops'" in json.dumps(document)
        around.assert_nothing_happened()
        assert (await around.run({"flow": ops}))["status"] == "completed"
        assert around.requests == ["POST /WRITE HTTP/1.1"], "the operator's own run"
