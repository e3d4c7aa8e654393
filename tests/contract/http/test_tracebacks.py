"""Where a failed step or a failed call of a tool came from is for the operator alone, at every door there is.

The doors are walked by the tables of the code: its routes, its tools and resources, its event types. A
door that is new is closed until ``OPERATOR_DOORS`` names it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args, get_type_hints

import httpx2
import pytest
from pydantic import SecretStr

from planwave.api.access_rules import RULES
from planwave.api.routes.events import stream_events
from planwave.events import Event
from planwave.events.types import OPERATOR_FIELDS, public_event
from planwave.nodes.authoring.function import node
from planwave.nodes.registry import Registry
from planwave.setting_tables import NotificationSettings
from planwave.storage.sqlite.memory import MemoryStore
from tests.contract.http.test_access_matrix import (
    OPERATOR,
    ROUTES,
    SOCKETS,
    Program,
    bearing,
    body_for,
    filled,
    program,
)
from tests.support.mcp.planwave_server import mcp_session
from tests.support.nodes.agent_runs import Kit, agent_graph, scripted, tool
from tests.support.nodes.agent_runs import calls as calls_of
from tests.support.nodes.nested_graphs import node_document
from tests.support.nodes.node_context import services_with
from tests.support.outbound.fake_network import PUBLIC, FakeNetwork
from tests.support.polling import until
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies
from tests.support.service.notified import ACCEPTED
from tests.support.triggers.hook_sender import SECRETS, hook_flow, listening, send

MARK, TOOL_MARK = MARKS = "a_frame_on_the_way", "a_tool_on_the_way"
"""Stand in tracebacks only, of the step and of the tool: the hint of an error names the innermost frame."""
SOCKET_FORMS = {"events": "mode=events&after=0", "snapshot": "mode=events", "poll": "mode=poll"}
EVENT_FORMATS = get_args(get_type_hints(stream_events)["format"])
OPERATOR_DOORS = {
    "getDocument", "loadExecution", "getNode", "explainNode", "streamEvents events",
    "streamEvents json", "streamEvents log", "/ws/{execution_id:path} events", "/ws/{execution_id:path} snapshot",
}  # fmt: skip


def innermost(text: str) -> str:
    return json.loads(text)


def a_frame_on_the_way(text: str) -> str:
    return innermost(text)


@node("breaks", registry=Registry())
async def breaks(input: Any) -> str:
    return a_frame_on_the_way("nope")


async def a_tool_on_the_way() -> str:
    return innermost("nope")


STEP = {"id": "a", "type": "breaks", "policy": {"retry": {"attempts": 2}}}
OF_A_STEP = re.compile("/(nodes|explain)/a$")
"""The ends of paths that tell of a single node: they are tried for both that fail."""
AGENT = agent_graph(node_document("agent", "agent", userPrompt="Go"), kit_of=("agent",))
GRAPH = {
    "nodes": [{"id": "s", "type": "start"}, STEP, *AGENT["nodes"]],
    "edges": [{"source": "s", "target": "a", "data": {"channel": "flow"}}, *AGENT["edges"]],
}


@asynccontextmanager
async def failed_flow(tmp_path: Path) -> AsyncGenerator[tuple[InProcessClient, Program]]:
    """Open a service with a flow whose run failed after a retry, and that tells a receiver."""
    network = FakeNetwork({"ops.test": [PUBLIC]}, ACCEPTED)
    told = NotificationSettings(url="https://ops.test/hook", secrets=["main"])  # type: ignore[arg-type]
    store = MemoryStore()
    script = scripted(calls_of(("look_up", {})), "It failed.")
    services, models = services_with(lambda request: [script(request)], recorder=store)
    parts = dependencies(
        types=[breaks, Kit([tool("look_up", a_tool_on_the_way)])], store=store, secrets=SECRETS,
        directory=tmp_path, notifier=network.client(redirects=0), notification_tables={"ops": told},
        node_services=lambda _: services,
    )  # fmt: skip
    async with in_process_client(parts, token=SecretStr(OPERATOR)) as calls:
        calls.headers.update(bearing(OPERATOR))
        ours = await program(calls, "ours", GRAPH)
        async with calls.service.notifications.sender(), asyncio.timeout(20):
            await until(lambda: bool(network.requests))
        assert not has_mark(str(network.requests))
        assert len(models.requests) >= 2
        assert not has_mark(str(models.requests))
        yield calls, ours


def has_mark(text: str) -> bool:
    return any(mark in text for mark in MARKS)


async def heard(calls: InProcessClient, path: str, query: str, headers: dict[str, str]) -> str:
    """Return what a WebSocket sends until it is closed."""
    assert isinstance(calls._transport, httpx2.ASGITransport)
    sent: list[str] = []
    is_over = asyncio.Event()
    messages = iter([{"type": "websocket.connect"}])

    async def receive() -> Any:
        for message in messages:
            return message
        await is_over.wait()
        return {"type": "websocket.disconnect", "code": 1000}

    async def keep(message: Any) -> None:
        sent.append(str(message.get("text") or message.get("bytes")))
        if message["type"] == "websocket.close":
            is_over.set()

    scope = {
        "type": "websocket", "path": path, "raw_path": path.encode(), "subprotocols": [],
        "query_string": query.encode(), "client": ("127.0.0.1", 1), "scheme": "ws",
        "server": ("127.0.0.1", 80),
        "headers": [(n.lower().encode(), v.encode()) for n, v in ({"host": "127.0.0.1"} | headers).items()],
    }  # fmt: skip
    async with asyncio.timeout(10):
        await calls._transport.app(scope, receive, keep)
    return "".join(sent)


async def all_doors(calls: InProcessClient, ours: Program, token: str) -> dict[str, str]:
    """Return what each door says about the execution, by its name."""
    told: dict[str, str] = {}
    headers = bearing(token)
    for operation, (method, path) in ROUTES.items():
        if method == "DELETE":
            continue
        body = body_for(f"{method} {path}", ours) if method != "GET" else None
        for form in EVENT_FORMATS if operation == "streamEvents" else ("",):
            query = (
                {"format": form}
                if form
                else {"plan_id": ours.plan_id}
                if "list" in operation
                else {}
            )
            name = f"{operation} {form}".rstrip()
            told[name] = ""
            own = filled(path, ours)
            for each in dict.fromkeys((own, OF_A_STEP.sub(r"/\1/agent", own))):
                answer = await calls.request(method, each, json=body, params=query, headers=headers)
                told[name] += answer.text
    for path in sorted(SOCKETS):
        for form, query in SOCKET_FORMS.items():
            told[f"{path} {form}"] = await heard(calls, filled(path, ours), query, headers)
    session = await mcp_session(calls, headers)
    for method, params in mcp_requests(ours):
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = await calls.post("/mcp", json=request, headers=session)
        told[f"{method} {json.dumps(params)}"] = answer.text
    return told


def mcp_requests(ours: Program) -> list[tuple[str, dict[str, Any]]]:
    uri = f"planwave://executions/{ours.execution_id}/"
    by_id = {"execution_id": ours.execution_id}
    calls = [("status", by_id), ("result", by_id), ("run", {"flow": ours.plan_id})]
    return [
        *(("resources/read", {"uri": f"{uri}{kind}"}) for kind in ("result", "document")),
        *(("tools/call", {"name": name, "arguments": given}) for name, given in calls),
    ]


async def test_the_operator_sees_tracebacks_at_the_doors_that_are_the_operators(
    tmp_path: Path,
) -> None:
    async with failed_flow(tmp_path) as (calls, ours):
        told = await all_doors(calls, ours, OPERATOR)
    assert {name for name, text in told.items() if MARK in text} == OPERATOR_DOORS
    of_tool = {name for name, text in told.items() if TOOL_MARK in text}
    assert of_tool == OPERATOR_DOORS - {"/ws/{execution_id:path} snapshot"}, "it has no calls"
    with_traceback = {each for each, names in OPERATOR_FIELDS.items() if "traceback" in names}
    assert with_traceback == {"node.failed", "node.retrying", "node.event"}
    for event_type in with_traceback:
        assert event_type in told["streamEvents json"]


async def test_no_door_shows_a_traceback_to_an_access_token(tmp_path: Path) -> None:
    async with failed_flow(tmp_path) as (calls, ours):
        told = await all_doors(calls, ours, ours.all_scopes)
    assert {name for name, text in told.items() if has_mark(text) or "Traceback" in text} == set()
    reached = {name for name, text in told.items() if "JSONDecodeError" in text}
    assert reached >= OPERATOR_DOORS | {"getExecution"}
    assert {each for each in RULES if each in ROUTES} <= {name.split(" ")[0] for name in told}


async def test_a_document_to_be_handed_on_has_no_traceback(tmp_path: Path) -> None:
    async with failed_flow(tmp_path) as (calls, ours):
        path = f"/api/executions/{ours.execution_id}/document"
        shown, own = (await calls.get(path, params={"public": True})).json(), await calls.get(path)
        assert all(mark in own.text for mark in MARKS)
        for step in (document := own.json())["nodes"]:
            step.pop("traceback", None)
            for call in step["calls"]:
                call.pop("traceback", None)
        assert shown == document


@pytest.mark.parametrize("query", ["?wait=10", "?stream=true"])
async def test_no_webhook_answers_with_a_traceback(tmp_path: Path, query: str) -> None:
    async with failed_flow(tmp_path) as (calls, _):
        graph = hook_flow(STEP, allowSse=True)
        answer = await send(calls, await listening(calls, graph), {}, query)
        assert answer.status_code == 500 or "failed" in answer.text
        assert not has_mark(answer.text)


async def test_no_chat_shows_a_traceback(tmp_path: Path) -> None:
    async with failed_flow(tmp_path) as (calls, _):
        graph = {"nodes": [{"id": "s", "type": "chat_start"}, STEP], "edges": GRAPH["edges"][:1]}
        flow = await calls.post_json("/api/flows", {"name": "chat", "graph": graph}, 201)
        chat = await calls.post_json("/api/chats", {"plan_id": flow["plan_id"]}, 201)
        path = f"/api/chats/{chat['chat_id']}"
        turn = await calls.post_json(f"{path}/messages", {"message": "x"}, 202)
        reply = turn["message"]["message_id"]
        stream = await calls.get(f"{path}/messages/{reply}/events")
        shown = await calls.get(f"{path}/messages/{reply}")
        assert "JSONDecodeError" in shown.text
        assert not has_mark(stream.text + shown.text + (await calls.get(path)).text)


@pytest.mark.parametrize("event_type", sorted(OPERATOR_FIELDS))
def test_a_public_event_has_every_field_but_the_marked_ones(event_type: str) -> None:
    data = {"error": {}, "delay_s": 1.0, **dict.fromkeys(OPERATOR_FIELDS[event_type], "secret")}
    shown = public_event(Event("e", 1, "", event_type, "a", 1, data))
    assert shown.data == {"error": {}, "delay_s": 1.0}
    other = Event("e", 1, "", "node.log", "a", 1, {"message": "x"})
    assert public_event(other) is other
