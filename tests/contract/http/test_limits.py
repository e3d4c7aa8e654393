"""Every limit, at the limit and one past it: generated from the settings class.

A limit is a field of ``Limits``. Each has a case here: what is done with so much of something under
a given limit, and how that is refused. A new field without a case fails.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import httpx2
import pytest
from pydantic import ValidationError
from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope, Send
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

import planwave
from planwave.api.app import create_app
from planwave.api.auth import Authenticator
from planwave.api.middleware.request_limits import RequestLimitsMiddleware as BoundsOfRequests
from planwave.api.middleware.request_limits import size_of_head
from planwave.api.rate_limit import TokenBucket
from planwave.api.streaming.websocket import split_message
from planwave.errors import InputError, PlanwaveError
from planwave.events import Event
from planwave.expressions import Renderer
from planwave.graph.model import DataValue, Graph, Node
from planwave.graph.protocols import ExecutionResult
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.nodes.services import NodeServices
from planwave.planner.planner import Planner
from planwave.service.executions.loading import load_run_spec
from planwave.service.executions.queue_entry import QueuedExecution
from planwave.service.service import Service
from planwave.service.streaming.subscriber_queue import BacklogLimits, EventBatch, Subscriber
from planwave.settings import Limits, Settings, load_settings
from planwave.storage.sqlite.store import SqliteStore
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.llm.client_harness import ModelClientHarness, model_client_harness
from tests.support.llm.fake_llm_server import ErrorReply, NoReply, ReplyStep, TextReply
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.llm.planner_replies import planner_reply, reply_node
from tests.support.llm.scripted_models import ScriptedModels
from tests.support.nodes.held_nodes import HeldNode
from tests.support.polling import until
from tests.support.server.raw_websocket import CLOSE, PING, TEXT, RawWebSocket, raw_websocket
from tests.support.server.running_server import NO_RATE_LIMITS, running_server
from tests.support.service.dependencies import dependencies
from tests.support.virtual_loop import VirtualLoop

MIB: Final = 1024 * 1024


class Told(NamedTuple):
    """A refusal: its code, and all it says."""

    code: str
    text: str = ""


Attempt = Callable[[Limits, Any], Awaitable[Told | None]]


@dataclass(frozen=True)
class Case:
    """How a limit is tried.

    Attributes:
        attempt: Does so much of it under these limits; gives the refusal, or None.
        value: What the limit is.
        at: As much as it allows.
        past: One more.
        code: What one more is refused with.
        says: What the refusal has in it.
        more: Other limits on the way.
        virtual: Whether its time is that of a virtual loop.
    """

    attempt: Attempt
    value: Any
    at: Any
    past: Any
    code: str
    says: tuple[str, ...]
    more: dict[str, Any]
    virtual: bool


CASES: Final[dict[str, Case]] = {}


def case(
    name: str,
    value: Any,
    *,
    at: Any = None,
    past: Any = None,
    code: str = "limit-exceeded",
    says: Sequence[str] | None = None,
    virtual: bool = False,
    **more: Any,
) -> Callable[[Attempt], Attempt]:
    """Make a function the case of a limit; its refusal names limit, value and what was met."""
    most, over = value if at is None else at, value + 1 if past is None else past

    def keep(attempt: Attempt) -> Attempt:
        assert name not in CASES
        told = (name, f"{value:.12g}", f"{over:.12g}") if says is None else tuple(says)
        CASES[name] = Case(attempt, value, most, over, code, told, more, virtual)
        return attempt

    return keep


def tried(name: str, amount: Callable[[Case], Any]) -> Told | None:
    found = CASES[name]
    limits = Limits(**{**NO_RATE_LIMITS.model_dump(), **found.more, name: found.value})

    async def once() -> Told | None:
        return await found.attempt(limits, amount(found))

    with asyncio.Runner(loop_factory=VirtualLoop if found.virtual else None) as runner:
        return runner.run(once())


@pytest.mark.parametrize("name", Limits.model_fields)
def test_a_limit_is_kept_to_the_last_one(name: str) -> None:
    assert name in CASES, f"no case tries the limit {name}: write one here"
    assert tried(name, lambda found: found.at) is None
    told = tried(name, lambda found: found.past)
    assert told is not None, "it let one more through"
    assert told.code == CASES[name].code, told
    for said in CASES[name].says:
        assert said in told.text, (said, told.text)


@pytest.mark.parametrize("name", Limits.model_fields)
def test_a_limit_cannot_be_set_past_its_hard_cap_nor_below_its_least(
    name: str, tmp_path: Path
) -> None:
    rules = Limits.model_fields[name].metadata
    cap = next(rule.le for rule in rules if hasattr(rule, "le"))
    assert getattr(Limits(**{name: cap}), name) == cap
    least = next((rule.ge for rule in rules if hasattr(rule, "ge")), None)
    if least is not None:
        assert getattr(Limits(**{name: least}), name) == least
    for beyond in (cap + 1, 0 if least is None else least - 1):
        with pytest.raises(ValidationError):
            Limits(**{name: beyond})
        file = tmp_path / "planwave.toml"
        file.write_text(f"[limits]\n{name} = {beyond}\n")
        with pytest.raises(InputError, match=name) as refused:
            load_settings(file)
        assert str(file) in (refused.value.hint or "")


def test_no_case_is_for_a_limit_that_is_gone() -> None:
    assert set(CASES) == set(Limits.model_fields)


# -- what is tried in many cases


def told_by(error: PlanwaveError) -> Told:
    return Told(error.code, f"{error.message} {error.hint}")


def of_diagnostics(found: Sequence[Any]) -> Told | None:
    first = next((each for each in found if each.severity == "error"), None)
    return None if first is None else Told(first.code, f"{first.message} {first.hint}")


class Takes:
    """A node type that takes so many seconds, and counts how many do at once."""

    node_type = "takes"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.now = self.most = 0
        self.started = asyncio.Event()

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        self.started.set()
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.seconds)
        self.now -= 1
        return ExecutionResult({"output": DataValue("text", "done")})


class Gives:
    """A node type that gives a text of so many bytes of JSON."""

    node_type = "gives"

    def __init__(self, size: int) -> None:
        self.size = size

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        return ExecutionResult({"output": DataValue("text", "x" * (self.size - 2))})


def of_type(kind: str, *ids: str) -> Graph:
    return make_graph(*(Node(each, kind, each) for each in ids))


async def run_of(
    limits: Limits, graph: Graph, *types: Any, inputs: Any = None, **more: Any
) -> list[Event]:
    """Run a graph to its end; give its events."""
    parts = dependencies(types=types, limits=limits, **more)
    async with Service(parts) as service:
        record = await service.execute(make_plan(graph), inputs=inputs)
        await service.wait(record.execution_id)
        return list(await service.events(record.execution_id))


def failure_in(events: Sequence[Event], kind: str) -> Told | None:
    for event in events:
        if event.type == kind:
            error = event.data["error"]
            return Told(error["code"], f"{error['message']} {error.get('hint')}")
    return None


@asynccontextmanager
async def served(limits: Limits) -> AsyncIterator[httpx2.AsyncClient]:
    app = create_app(Settings(limits=limits), lambda _: Service(dependencies(limits=limits)))
    transport = httpx2.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", timeout=None
        ) as client,
    ):
        yield client


def refusal_in(answer: httpx2.Response) -> Told | None:
    if answer.is_success:
        return None
    problem = answer.json()
    if problem["code"] == "limit-exceeded":
        assert {"limit", "value", "met"} <= set(problem)
    return Told(problem["code"], json.dumps(problem))


# -- requests


@case("body_bytes", 1024)
async def _(limits: Limits, amount: int) -> Told | None:
    body = b'{"graph": {}}'
    async with served(limits) as client:
        headers = {"Content-Type": "application/json"}
        padded = body + b" " * (amount - len(body))
        return refusal_in(await client.post("/api/check", content=padded, headers=headers))


@case(
    "body_read_s",
    30,
    at=29.9,
    past=30.1,
    code="request-timeout",
    says=["30 s", "BODY_READ_S"],
    virtual=True,
)
async def _(limits: Limits, amount: float) -> Told | None:
    """Its dependencies would be looked up in threads, whose time is real: so no whole service."""
    pieces = [(0.0, b"{", True), (amount, b"}", False)]

    async def receive() -> Message:
        seconds, body, more = pieces.pop(0)
        await asyncio.sleep(seconds)
        return {"type": "http.request", "body": body, "more_body": more}

    async def send(message: Message) -> None:
        raise AssertionError(message)

    async def read(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["more_body"]:
            pass

    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": []}
    try:
        await BoundsOfRequests(read, limits)(scope, receive, send)
    except PlanwaveError as error:
        return told_by(error)
    return None


@case("header_bytes", 1024)
async def _(limits: Limits, amount: int) -> Told | None:
    async with served(limits) as client:
        empty = client.build_request("GET", "/healthz", headers={"X-Pad": ""})
        scope = {
            "method": "GET",
            "path": "/healthz",
            "query_string": b"",
            "headers": empty.headers.raw,
        }
        pad = "x" * (amount - size_of_head(scope))
        return refusal_in(await client.get("/healthz", headers={"X-Pad": pad}))


@case("requests_burst", 3, code="too-many-requests", says=["3 at once"], requests_per_s=0.001)
async def _(limits: Limits, amount: int) -> Told | None:
    async with served(limits) as client:
        answers = [await client.get("/api/limits") for _ in range(amount)]
        assert all(answer.is_success for answer in answers[:-1])
        if not answers[-1].is_success:
            assert int(answers[-1].headers["retry-after"]) > 0
        return refusal_in(answers[-1])


@case(
    "requests_per_s", 4, past=4.1, code="too-many-requests", says=["4 a second"], requests_burst=1
)
async def _(limits: Limits, amount: float) -> Told | None:
    time = [0.0]
    access = Authenticator(Settings(limits=limits), clock=lambda: time[0])
    connection = HTTPConnection({"type": "http", "headers": []})
    try:
        for _ in range(20):
            access.check(connection)
            time[0] += 1 / amount
    except PlanwaveError as error:
        return told_by(error)
    return None


@case("executions_per_minute", 3, code="too-many-requests", says=["3 at once"])
async def _(limits: Limits, amount: int) -> Told | None:
    async with served(limits) as client:
        plan = (await client.post("/api/plan", json={"prompt": "p"})).json()["plan_id"]
        body = {"plan_id": plan}
        answers = [await client.post("/api/execute", json=body) for _ in range(amount)]
        assert all(answer.is_success for answer in answers[:-1])
        return refusal_in(answers[-1])


@case("page_items", 5)
async def _(limits: Limits, amount: int) -> Told | None:
    async with served(limits) as client:
        return refusal_in(await client.get("/api/plans", params={"limit": amount}))


@case("idempotency_key_chars", 12)
async def _(limits: Limits, amount: int) -> Told | None:
    async with served(limits) as client:
        headers = {"Idempotency-Key": "k" * amount}
        return refusal_in(await client.post("/api/plan", json={"prompt": "p"}, headers=headers))


@case("idempotency_hours", 2, past=2.01, code="forgotten", says=[])
async def _(limits: Limits, amount: float) -> Told | None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    async with Service(dependencies(limits=limits, now=lambda: now[0])) as service:
        await service.claim_idempotency_key("key", "digest")
        await service.store_idempotency_key("key", 201, "{}")
        now[0] += timedelta(hours=amount)
        return (
            Told("forgotten")
            if (await service.claim_idempotency_key("key", "digest")).is_new
            else None
        )


# -- executions and their queue


@case("recoveries", 3)
async def _(limits: Limits, amount: int) -> Told | None:
    async with Service(dependencies(types=[HeldNode()], limits=limits)) as service:
        made = await service.create_execution(make_plan(of_type("held", "h")))
        store, execution_id = service._store, made.execution_id
        for _ in range(amount - 1):
            await store.claim(execution_id)
        try:
            await load_run_spec(store, execution_id, QueuedExecution(is_recovery=True), limits)
        except PlanwaveError as error:
            return told_by(error)
    return None


@case("recoveries_per_s", 2, at=2, past=3, code="slower", says=[], virtual=True)
async def _(limits: Limits, amount: int) -> Told | None:
    async with Service(dependencies(types=[HeldNode()], limits=limits)) as service:
        for _ in range(5):
            made = await service.create_execution(make_plan(of_type("held", "h")))
            await service._store.claim(made.execution_id, queued=True)
        assert await service.recover() == 5
        await asyncio.sleep(0.99)
        left = await service.executions(status="starting")
        return None if 5 - len(left) >= amount else Told("slower")


async def _queued(limits: Limits, amount: int) -> Told | None:
    held = HeldNode()
    async with Service(dependencies(types=[held], limits=limits)) as service:
        plan = make_plan(of_type("held", "h"))
        made: list[str] = []
        try:
            for _ in range(amount):
                made.append((await service.execute(plan)).execution_id)
        except PlanwaveError as error:
            return told_by(error)
        finally:
            held.release.set()
            for execution_id in made:
                await service.wait(execution_id)
    return None


@case(
    "concurrent_executions", 2, code="queue-full", says=["0 executions wait"], queued_executions=0
)
async def _(limits: Limits, amount: int) -> Told | None:
    return await _queued(limits, amount)


@case(
    "queued_executions", 2, code="queue-full", says=["2 executions wait", "QUEUED_EXECUTIONS"],
    concurrent_executions=1,
)  # fmt: skip
async def _(limits: Limits, amount: int) -> Told | None:
    return await _queued(limits, amount + 1)


@case("drain_s", 25, at=24.9, past=25.1, code="left-resumable", says=[], virtual=True)
async def _(limits: Limits, amount: float) -> Told | None:
    takes = Takes(amount)
    async with Service(dependencies(types=[takes], limits=limits)) as service:
        plan = make_plan(of_type("takes", "t"))
        execution_id = (await service.execute(plan)).execution_id
        await takes.started.wait()
        await service.drain()
        kinds = [event.type for event in await service.events(execution_id)]
    return None if "node.completed" in kinds else Told("left-resumable")


@case("parallel_nodes", 3, code="waits", says=[], virtual=True)
async def _(limits: Limits, amount: int) -> Told | None:
    takes = Takes(1)
    await run_of(limits, of_type("takes", *(f"n{i}" for i in range(amount))), takes)
    assert takes.most <= limits.parallel_nodes
    return None if takes.most == amount else Told("waits")


@case(
    "node_timeout_s", 60, at=59.9, past=60.1, code="node-timeout", says=["60"],
    run_timeout_s=1_000, virtual=True,
)  # fmt: skip
async def _(limits: Limits, amount: float) -> Told | None:
    events = await run_of(limits, of_type("takes", "t"), Takes(amount))
    return failure_in(events, "node.failed")


@case(
    "run_timeout_s", 90, at=89.9, past=90.1, code="run-timeout", says=["90"],
    node_timeout_s=1_000, virtual=True,
)  # fmt: skip
async def _(limits: Limits, amount: float) -> Told | None:
    events = await run_of(limits, of_type("takes", "t"), Takes(amount))
    return failure_in(events, "execution.failed")


@case("largest_result_bytes", 100)
async def _(limits: Limits, amount: int) -> Told | None:
    events = await run_of(limits, of_type("gives", "a"), Gives(amount))
    return failure_in(events, "node.failed")


@case("run_state_bytes", 100)
async def _(limits: Limits, amount: int) -> Told | None:
    first, second = Gives(50), Gives(amount - 50)
    second.node_type = "also"
    graph = make_graph(Node("a", "gives", "a"), Node("b", "also", "b"), edges=[("a", "b")])
    return failure_in(await run_of(limits, graph, first, second), "execution.failed")


@case("events", 30, says=["events", "30", "31"])
async def _(limits: Limits, amount: int) -> Told | None:
    """A text node makes two events, and one that is given its result only one."""
    count, is_odd = divmod(amount - 4, 2)
    graph = make_graph(*map(text_node, _ids(count + is_odd)))
    inputs = {"n0": {"output": "given"}} if is_odd else None
    events = await run_of(limits, graph, inputs=inputs)
    assert (
        len(await run_of(NO_RATE_LIMITS, graph, inputs=inputs)) == amount + 1
    )  # the last one apart
    return failure_in(events, "execution.failed")


def files_in(place: Path) -> list[Path]:
    return [each for each in place.rglob("*") if each.is_file()]


@case("node_result_bytes", 500, code="kept-as-a-file", says=[])
async def _(limits: Limits, amount: int) -> Told | None:
    with TemporaryDirectory() as directory:
        place = Path(directory)
        store = SqliteStore.open(place, artifact_bytes=limits.node_result_bytes)
        await run_of(limits, of_type("gives", "a"), Gives(amount), store=store, directory=place)
        files = files_in(place / "artifacts")
    return Told("kept-as-a-file") if files else None


# -- watchers and WebSockets


def _event(seq: int, text: str = "") -> Event:
    return Event("x", seq, "2026-01-01T00:00:00+00:00", "node.started", "a", 1, {"text": text})


def _fallen_behind(frames: Sequence[EventBatch], bounds: BacklogLimits) -> Told | None:
    follower = Subscriber(0, bounds)
    for frame in frames:
        follower.put(frame)
    return Told("too-slow") if follower.is_dropped else None


@case("watcher_events", 10, code="too-slow", says=[])
async def _(limits: Limits, amount: int) -> Told | None:
    frames = [EventBatch([_event(number)], number) for number in range(1, amount + 1)]
    return _fallen_behind(frames, BacklogLimits(limits.watcher_events, limits.watcher_bytes))


@case("watcher_bytes", 2048, code="too-slow", says=[])
async def _(limits: Limits, amount: int) -> Told | None:
    first, empty = EventBatch([_event(1)], 1), EventBatch([_event(2)], 2)
    second = EventBatch([_event(2, "x" * (amount - first.size_bytes - empty.size_bytes))], 2)
    assert first.size_bytes + second.size_bytes == amount
    return _fallen_behind(
        [first, second], BacklogLimits(limits.watcher_events, limits.watcher_bytes)
    )


def closed_by(error: ConnectionClosed) -> Told:
    return Told("cut") if error.rcvd is None else Told(str(error.rcvd.code), error.rcvd.reason)


async def _said_on_a_socket(limits: Limits, *messages: str) -> Told | None:
    """Send these to a socket of a held execution, and hear a pong for each or why not."""
    with running_server(limits=limits) as server:
        execution_id = await server.execute("held")
        try:
            async with connect(f"{server.ws_url}/ws/{execution_id}?mode=events", proxy=None) as ws:
                for message in messages:
                    await ws.send(message)
                    while json.loads(await ws.recv()) != {"type": "pong"}:
                        pass
        except ConnectionClosed as error:
            return closed_by(error)
    return None


@case("socket_message_bytes", 64, code="1009", says=[])
async def _(limits: Limits, amount: int) -> Told | None:
    ping = '{"op":"ping"}'
    return await _said_on_a_socket(limits, ping + " " * (amount - len(ping)))


@case("socket_messages_burst", 4, code="1008", says=["4 at once"], socket_messages_per_s=0.001)
async def _(limits: Limits, amount: int) -> Told | None:
    return await _said_on_a_socket(limits, *['{"op":"ping"}'] * amount)


@case(
    "socket_messages_per_s", 4, past=4.1, code="too-many-requests", says=["4 a second"],
    socket_messages_burst=1,
)  # fmt: skip
async def _(limits: Limits, amount: float) -> Told | None:
    time = [0.0]
    per_s, burst = limits.socket_messages_per_s, limits.socket_messages_burst
    pace = TokenBucket("messages", per_s, burst, lambda: time[0])
    try:
        for _ in range(20):
            pace.acquire("")
            time[0] += 1 / amount
    except PlanwaveError as error:
        return told_by(error)
    return None


@case("socket_connections", 3, code="4429", says=["3 WebSockets and event streams are open"])
async def _(limits: Limits, amount: int) -> Told | None:
    with running_server(limits=limits) as server:
        execution_id = await server.execute("held")
        async with AsyncExitStack() as open_now:
            try:
                for _ in range(amount):
                    url = f"{server.ws_url}/ws/{execution_id}"
                    await (await open_now.enter_async_context(connect(url, proxy=None))).recv()
            except ConnectionClosed as error:
                return closed_by(error)
    return None


@case("socket_frame_bytes", 1024, code="in-parts", says=[])
async def _(limits: Limits, amount: int) -> Told | None:
    sent = split_message(json.dumps("x" * (amount - 2)).encode(), limits.socket_frame_bytes)
    assert all(len(each.encode()) <= limits.socket_frame_bytes for each in sent)
    return None if len(sent) == 1 else Told("in-parts")


async def _pinged(client: RawWebSocket) -> bytes | None:
    """Read up to a ping, and give what it holds; None where the connection ends first."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while (frame := await client.read()).opcode != CLOSE:
            if frame.opcode == PING:
                return frame.payload
    return None


@case("socket_ping_s", 20, at="answers", past="is silent", code="dropped", says=[])
async def _(limits: Limits, amount: str) -> Told | None:
    pong = 10
    with running_server(limits=limits) as server:
        url = f"{server.ws_url}/ws/{await server.execute('held')}?mode=events"
        async with raw_websocket(url) as client:
            for _ in range(2):
                asked = await server.run_advancing_time(_pinged(client))
                if asked is None:
                    return Told("dropped")
                if amount == "answers":
                    client.send(asked, opcode=pong)
                    client.send('{"op":"ping"}')
                    while (
                        heard := await client.read()
                    ).opcode != TEXT or b"pong" not in heard.payload:
                        pass  # once this is answered, what came before it was heard too
    return None


# -- graphs, plans and goals


async def _checked(limits: Limits, document: Any) -> Told | None:
    catalogue = Registry(LIBRARY, providers=FakeProviders(), limits=limits)
    service = Service(replace(dependencies(limits=limits), catalogue=catalogue))
    text = document if isinstance(document, str) else json.dumps(document)
    return of_diagnostics(service.check_document(text).diagnostics)


def _document(*nodes: dict[str, Any], edges: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    wires = [{"source": a, "target": b, "data": {"channel": "flow"}} for a, b in edges]
    return {"nodes": list(nodes), "edges": wires}


def _text(node_id: str = "a", text: str = "t", **more: Any) -> dict[str, Any]:
    return {"id": node_id, "type": "text", "name": node_id, "data": {"text": text}, **more}


def _ids(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


@case("nodes", 3)
async def _(limits: Limits, amount: int) -> Told | None:
    return await _checked(limits, _document(*map(_text, _ids(amount))))


@case("edges", 3)
async def _(limits: Limits, amount: int) -> Told | None:
    first, *others = _ids(amount + 1)
    edges = [(first, each) for each in others]
    return await _checked(limits, _document(*map(_text, [first, *others]), edges=edges))


@case("depth", 3)
async def _(limits: Limits, amount: int) -> Told | None:
    ids = _ids(amount)
    return await _checked(limits, _document(*map(_text, ids), edges=list(pairwise(ids))))


@case("json_depth", 8, says=["json_depth", "8"])
async def _(limits: Limits, amount: int) -> Told | None:
    inner: Any = {}
    for _ in range(amount - 4):  # below document, nodes, node and ui
        inner = {"in": inner}
    return await _checked(limits, _document(_text(ui=inner)))


@case("string_bytes", 100)
async def _(limits: Limits, amount: int) -> Told | None:
    return await _checked(limits, _document(_text(text="é" + "x" * (amount - 2))))


@case("plan_bytes", 400)
async def _(limits: Limits, amount: int) -> Told | None:
    text = json.dumps(_document(_text()))
    return await _checked(limits, text + " " * (amount - len(text)))


@case("policy_timeout_s", 60)
async def _(limits: Limits, amount: float) -> Told | None:
    return await _checked(limits, _document(_text(policy={"timeoutS": amount})))


@case("policy_attempts", 3)
async def _(limits: Limits, amount: int) -> Told | None:
    return await _checked(limits, _document(_text(policy={"retry": {"attempts": amount}})))


@case("policy_backoff_s", 7)
async def _(limits: Limits, amount: float) -> Told | None:
    policy = {"retry": {"attempts": 2, "backoffS": amount}}
    return await _checked(limits, _document(_text(policy=policy)))


@case("call_tokens", 500)
async def _(limits: Limits, amount: int) -> Told | None:
    asks = {"id": "a", "type": "llm", "name": "A", "data": {"prompt": "p", "maxTokens": amount}}
    return await _checked(limits, _document(asks))


@case("steps", 3)
async def _(limits: Limits, amount: int) -> Told | None:
    return failure_in(
        await run_of(limits, make_graph(*map(text_node, _ids(amount)))), "execution.failed"
    )


@case("nested_depth", 3)
async def _(limits: Limits, amount: int) -> Told | None:
    document = _document(_text())
    for _ in range(amount):
        document = _document({"id": "a", "type": "inner", "data": {"graph": document}})
    return await _checked(limits, document)


async def _run(limits: Limits, kind: str, data: dict[str, Any]) -> Told | None:
    services = NodeServices(ScriptedModels(()), FakeProviders(), limits=limits)
    document = _document({"id": "a", "type": kind, "data": data})
    ended = await planwave.run(document, services=services, check=False)
    return None if ended.error is None else Told(ended.error["code"], ended.error["message"])


@case("loop_items", 3)
async def _(limits: Limits, amount: int) -> Told | None:
    return await _run(limits, "loop", {"items": _ids(amount), "body": _document(_text())})


@case("loop_rounds", 3)
async def _(limits: Limits, amount: int) -> Told | None:
    value: Any = {"goes": False}
    for _ in range(amount):
        value = {"goes": True, "next": value}
    body = _document({"id": "b", "type": "parser", "data": {"template": "{{ value.next }}"}})
    return await _run(limits, "while", {"initial": value, "condition": "value.goes", "body": body})


def _planner(limits: Limits, *script: str) -> Planner:
    providers = FakeProviders()
    return Planner(ScriptedModels(script), providers, library_registry(providers), limits)


@case("goal_chars", 10)
async def _(limits: Limits, amount: int) -> Told | None:
    try:
        await _planner(limits, planner_reply(reply_node("a"))).create_plan("é" * amount)
    except InputError as error:
        return told_by(error)
    return None


@case("plan_nodes", 3)
async def _(limits: Limits, amount: int) -> Told | None:
    written = planner_reply(*map(reply_node, _ids(amount)))
    try:
        await _planner(limits, *[written] * 5).create_plan("goal")
    except InputError as error:
        return of_diagnostics(getattr(error, "diagnostics", ()))
    return None


# -- templates


async def _rendered(limits: Limits, source: str, **variables: Any) -> Told | None:
    renderer = Renderer(
        wall_s=limits.template_wall_s,
        memory_bytes=limits.template_memory_bytes,
        max_template_bytes=limits.template_bytes,
        max_output_bytes=limits.template_output_bytes,
    )
    try:
        await renderer.render(source, variables)
    except PlanwaveError as error:
        return told_by(error)
    finally:
        await renderer.close()
    return None


@case("template_bytes", 100, code="template-too-large")
async def _(limits: Limits, amount: int) -> Told | None:
    source = "{{ 1 }}"
    return await _rendered(limits, source + "x" * (amount - len(source)))


@case("template_output_bytes", 100, code="template-too-large")
async def _(limits: Limits, amount: int) -> Told | None:
    return await _rendered(limits, "{{ x ~ '' }}", x="x" * amount)


@case("template_wall_s", 1, at=1, past=10**9, code="template-timeout", says=["than 1 s"])
async def _(limits: Limits, amount: int) -> Told | None:
    """The amount is work: pieces that are replaced."""
    heavy = "{% for i in range(n) %}{% set y = x | replace('a', 'b') %}{% endfor %}"
    return await _rendered(limits, heavy, x="a" * 500_000, n=min(amount, 90_000))


@case(
    "template_memory_bytes", 64 * MIB, at=MIB, past=500 * MIB, code="template-memory", says=[],
    template_output_bytes=8 * MIB,
)  # fmt: skip
async def _(limits: Limits, amount: int) -> Told | None:
    source = "{{ (('a' * 1024) | replace('a', 'b' * n)) | length }}"
    return await _rendered(limits, source.replace("n)", f"{amount // 1024})"))


# -- model calls


async def _asked(limits: Limits, *steps: ReplyStep) -> tuple[Told | None, ModelClientHarness]:
    async with model_client_harness(*steps, limits=limits, jitter=1.0) as rig:
        try:
            await rig.ask()
        except PlanwaveError as error:
            return told_by(error), rig
        return None, rig


@case("call_attempts", 3, code="provider-overloaded", says=[])
async def _(limits: Limits, amount: int) -> Told | None:
    """The amount is the attempt that would succeed."""
    told, rig = await _asked(limits, *[ErrorReply(529, "overloaded_error")] * (amount - 1))
    assert len(rig.llm.requests) == min(amount, limits.call_attempts)
    return told


@case("retry_after_s", 7, code="not-waited-for", says=[])
async def _(limits: Limits, amount: int) -> Told | None:
    limited = ErrorReply(429, "rate_limit_error", headers={"retry-after": str(amount)})
    told, rig = await _asked(limits, limited)
    assert told is None
    waited = rig.time.now - 1_000
    assert waited >= limits.retry_after_s
    return None if waited >= amount else Told("not-waited-for")


@case("provider_failures", 3, code="provider-overloaded", says=["not called"], provider_wait_s=0)
async def _(limits: Limits, amount: int) -> Told | None:
    """The amount is the call that would succeed; each has one attempt."""
    down = [ErrorReply(529, "overloaded_error")] * (amount - 1)
    alone = limits.model_copy(update={"call_attempts": 1})
    async with model_client_harness(*down, limits=alone) as rig:
        for _ in down:
            with pytest.raises(PlanwaveError, match="HTTP 529"):
                await rig.ask()
        try:
            await rig.ask()
        except PlanwaveError as error:
            assert len(rig.llm.requests) == limits.provider_failures
            return told_by(error)
        return None


@case(
    "provider_wait_s", 7, code="provider-overloaded", says=["not called", "in 8 s"],
    provider_failures=1,
)  # fmt: skip
async def _(limits: Limits, amount: int) -> Told | None:
    """The amount is how long the provider is left alone."""
    down = ErrorReply(529, "overloaded_error", headers={"retry-after": str(amount)})
    alone = limits.model_copy(update={"call_attempts": 1})
    async with model_client_harness(down, limits=alone) as rig, asyncio.TaskGroup() as tasks:
        with pytest.raises(PlanwaveError, match="HTTP 529"):
            await rig.ask()

        async def ask() -> Told | None:
            try:
                await rig.ask()
            except PlanwaveError as error:
                return told_by(error)
            return None

        asking = tasks.create_task(ask())
        await asyncio.sleep(0)
        if amount <= limits.provider_wait_s:
            assert await rig.time.pass_deadline() == amount
        return await asking


async def _too_late(
    limits: Limits, step: ReplyStep, *, early: float, deadline: float
) -> Told | None:
    """Let all but ``deadline`` seconds pass in good time, and then those in silence."""
    async with model_client_harness(step, limits=limits) as rig, asyncio.TaskGroup() as tasks:

        async def ask() -> Told | None:
            try:
                await rig.ask()
            except PlanwaveError as error:
                return told_by(error)
            return None

        asking = tasks.create_task(ask())
        await until(lambda: rig.llm.requests if isinstance(step, NoReply) else rig.deltas)
        rig.time.now += early
        if isinstance(step, TextReply):
            step.gates[4].set()
        assert await rig.time.pass_deadline() == deadline
        return await asking


@case(
    "first_byte_s", 12, at="answers", past="hangs", code="first-byte-timeout", says=["FIRST_BYTE_S"]
)
async def _(limits: Limits, amount: str) -> Told | None:
    if amount == "answers":
        return (await _asked(limits, TextReply("hi")))[0]
    return await _too_late(limits, NoReply(), early=0, deadline=12)


@case("chunk_gap_s", 9, at="goes on", past="stops", code="chunk-timeout", says=["CHUNK_GAP_S"])
async def _(limits: Limits, amount: str) -> Told | None:
    if amount == "goes on":
        return (await _asked(limits, TextReply("abcdef", chunks=6)))[0]
    gates = {4: asyncio.Event(), 6: asyncio.Event()}
    return await _too_late(
        limits, TextReply("abcdefgh", chunks=8, gates=gates), early=0, deadline=9
    )


@case("call_s", 100, at="ends", past="goes on", code="call-timeout", says=["CALL_S"])
async def _(limits: Limits, amount: str) -> Told | None:
    if amount == "ends":
        return (await _asked(limits, TextReply("abcdef", chunks=6)))[0]
    gates = {4: asyncio.Event(), 6: asyncio.Event()}
    return await _too_late(
        limits, TextReply("abcdefgh", chunks=8, gates=gates), early=96, deadline=4
    )
