"""Limits of HTTP requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope, Send

from planwave.api.auth import Authenticator
from planwave.api.middleware.request_limits import RequestLimitsMiddleware, size_of_head
from planwave.api.rate_limit import BytesInFlight, ResponseLimiter
from planwave.service.service import Service
from planwave.settings import Limits, Settings
from planwave.storage.sqlite.memory import MemoryStore
from planwave.triggers.host import TriggerHost
from tests.contract.http.limit_cases.registry import (
    Refusal,
    case,
    limited_client,
    refusal_in_response,
    refusal_of,
)
from tests.support.server.uploads import Uploads
from tests.support.service.dependencies import dependencies
from tests.support.triggers.hook_sender import hook_flow, hook_service, listening, send, signed


@case("body_bytes", 1024)
async def _(limits: Limits, amount: int) -> Refusal | None:
    body = b'{"graph": {}}'
    async with limited_client(limits) as client:
        headers = {"Content-Type": "application/json"}
        padded = body + b" " * (amount - len(body))
        return refusal_in_response(await client.post("/api/check", content=padded, headers=headers))


async def _hold_responses(limits: Limits, name: str, amount: int) -> Refusal | None:
    limiter = ResponseLimiter()
    async with AsyncExitStack() as held:
        for _ in range(amount):
            await held.enter_async_context(limiter.slot("one", name, getattr(limits, name)))
    return None


@case(
    "heavy_responses", 2, code="too-many-requests", mentions=["2 large", "LIMIT_HEAVY_RESPONSES"],
    virtual=True,
)  # fmt: skip
async def _(limits: Limits, amount: int) -> Refusal | None:
    return await _hold_responses(limits, "heavy_responses", amount)


@case(
    "operator_heavy_responses", 3, code="too-many-requests",
    mentions=["3 large", "LIMIT_OPERATOR_HEAVY_RESPONSES"], virtual=True,
)  # fmt: skip
async def _(limits: Limits, amount: int) -> Refusal | None:
    return await _hold_responses(limits, "operator_heavy_responses", amount)


@case("sending_bytes", 2**20, code="server-busy", mentions=["LIMIT_SENDING_BYTES"])
async def _(limits: Limits, amount: int) -> Refusal | None:
    in_flight, half = BytesInFlight(limits.sending_bytes), limits.sending_bytes // 2
    in_flight.hold("one").grow(half)
    in_flight.hold("another").grow(amount - half)
    return None


@case("webhook_bytes", 64)
async def _(limits: Limits, amount: int) -> Refusal | None:
    async with hook_service({"limits": limits}, limits=limits) as calls:
        hook, body = await listening(calls, hook_flow()), "1" + " " * (amount - 1)
        return refusal_in_response(
            await calls.post(f"/hooks/{hook}", content=body, headers=signed(body))
        )


@case("session_bytes", 64)
async def _(limits: Limits, amount: int) -> Refusal | None:
    async with limited_client(limits) as client:
        body = '{"token": "t"}'.ljust(amount)
        headers = {"Content-Type": "application/json"}
        return refusal_in_response(await client.post("/api/session", content=body, headers=headers))


@case("unauthenticated_bytes", 1024, webhook_bytes=1000)
async def _(limits: Limits, amount: int) -> Refusal | None:
    return await refusal_of_bodies(limits, {"/hooks/a": [512], "/hooks/b": [amount - 512]})


@case("webhook_unauthenticated_bytes", 1024, webhook_bytes=1000)
async def _(limits: Limits, amount: int) -> Refusal | None:
    return await refusal_of_bodies(limits, {"/hooks/a": [1000, amount - 1000]})


async def refusal_of_bodies(limits: Limits, bodies: Mapping[str, Sequence[int]]) -> Refusal | None:
    """Send bodies of so many bytes, all in memory at once; return how the last one is refused."""
    paths = [path for path, sizes in bodies.items() for _ in sizes]
    sizes = [size for each in bodies.values() for size in each]
    async with asyncio.TaskGroup() as tasks:
        uploads = Uploads(limits)
        held = [tasks.create_task(uploads.send(p, [n])) for p, n in zip(paths, sizes, strict=True)]
        await uploads.settle()
        refused = uploads.refusals
        uploads.end.set()
        await asyncio.wait(held)
    return refusal_of(refused[0]) if refused else None


@case("webhook_wait_s", 5, code="invalid-parameter", mentions=["webhook_wait_s", "5"])
async def _(limits: Limits, amount: float) -> Refusal | None:
    async with hook_service({"limits": limits}, limits=limits) as calls:
        hook = await listening(calls, hook_flow())
        answer = await send(calls, hook, 1, f"?wait={amount}")
        if answer.status_code == 200:
            return None
        issue = answer.json()["issues"][0]
        return Refusal(issue["code"], issue["message"])


@case("schedule_gap_s", 120, at=120, past=60)
async def _(limits: Limits, amount: int) -> Refusal | None:
    async with hook_service({"limits": limits}, limits=limits) as calls:
        flow = {"nodes": [{"id": "a", "type": "schedule", "data": {"everyS": amount}}], "edges": []}
        own = await listening(calls, flow)
        problem = (await calls.get_json(f"/api/triggers/{own}"))["problem"]
        return problem and Refusal("limit-exceeded", problem)


@case("schedule_catch_up_s", 600, at=600, past=601, code="missed", mentions=["earlier time"])
async def _(limits: Limits, amount: int) -> Refusal | None:
    """The one time of a schedule was so long ago when its service starts."""
    created = datetime(2026, 1, 1, tzinfo=UTC)
    store, noon = MemoryStore(), created + timedelta(hours=12)
    daily = {
        "nodes": [{"id": "a", "type": "schedule", "data": {"cron": "0 12 * * *"}}],
        "edges": [],
    }
    async with Service(dependencies(store=store, now=lambda: created)) as service:
        flow = await service.flows.create("F", graph=daily)
        own = (await service.triggers.create(flow.plan_id, ["schedule"])).trigger_id
        now = noon + timedelta(seconds=amount - 0.5)
        late = Service(dependencies(store=store, now=lambda: now, limits=limits))
        async with late, TriggerHost(late, Settings(limits=limits)):
            while not (found := await store.triggers.deliveries([own])):  # noqa: ASYNC110
                await asyncio.sleep(0)
        (delivery,) = found[own]
    if delivery.outcome == "missed":
        return Refusal("missed", delivery.note)
    return None


@case("triggers", 1)
async def _(limits: Limits, amount: int) -> Refusal | None:
    async with hook_service({"limits": limits}, limits=limits) as calls:
        for number in range(amount):
            body = {"name": str(number), "graph": hook_flow()}
            flow = await calls.post_json("/api/flows", body, 201)
            made = await calls.post("/api/triggers", json={"plan_id": flow["plan_id"]})
        return refusal_in_response(made)


@case(
    "body_read_s",
    30,
    at=29.9,
    past=30.1,
    code="request-timeout",
    mentions=["30 s", "BODY_READ_S"],
    virtual=True,
)
async def _(limits: Limits, amount: float) -> Refusal | None:
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
    await RequestLimitsMiddleware(read, limits)(scope, receive, send)
    return None


@case("header_bytes", 1024)
async def _(limits: Limits, amount: int) -> Refusal | None:
    async with limited_client(limits) as client:
        empty = client.build_request("GET", "/healthz", headers={"X-Pad": ""})
        scope = {
            "method": "GET",
            "path": "/healthz",
            "query_string": b"",
            "headers": empty.headers.raw,
        }
        pad = "x" * (amount - size_of_head(scope))
        return refusal_in_response(await client.get("/healthz", headers={"X-Pad": pad}))


@case("requests_burst", 3, code="too-many-requests", mentions=["3 at once"], requests_per_s=0.001)
async def _(limits: Limits, amount: int) -> Refusal | None:
    async with limited_client(limits) as client:
        answers = [await client.get("/api/limits") for _ in range(amount)]
        assert all(answer.is_success for answer in answers[:-1])
        if not answers[-1].is_success:
            assert int(answers[-1].headers["retry-after"]) > 0
        return refusal_in_response(answers[-1])


@case(
    "requests_per_s",
    4,
    past=4.1,
    code="too-many-requests",
    mentions=["4 a second"],
    requests_burst=1,
)
async def _(limits: Limits, amount: float) -> Refusal | None:
    time = [0.0]
    access = Authenticator(Settings(limits=limits), clock=lambda: time[0])
    connection = HTTPConnection({"type": "http", "headers": []})
    for _ in range(20):
        access.check(connection)
        time[0] += 1 / amount
    return None


@case("executions_per_minute", 3, code="too-many-requests", mentions=["3 at once"])
async def _(limits: Limits, amount: int) -> Refusal | None:
    async with limited_client(limits) as client:
        plan = (await client.post("/api/plan", json={"prompt": "p"})).json()["plan_id"]
        body = {"plan_id": plan}
        answers = [await client.post("/api/execute", json=body) for _ in range(amount)]
        assert all(answer.is_success for answer in answers[:-1])
        return refusal_in_response(answers[-1])


@case("page_items", 5)
async def _(limits: Limits, amount: int) -> Refusal | None:
    async with limited_client(limits) as client:
        return refusal_in_response(await client.get("/api/plans", params={"limit": amount}))


@case("idempotency_key_chars", 12)
async def _(limits: Limits, amount: int) -> Refusal | None:
    async with limited_client(limits) as client:
        headers = {"Idempotency-Key": "k" * amount}
        return refusal_in_response(
            await client.post("/api/plan", json={"prompt": "p"}, headers=headers)
        )


@case("idempotency_hours", 2, past=2.01, code="forgotten", mentions=[])
async def _(limits: Limits, amount: float) -> Refusal | None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    async with Service(dependencies(limits=limits, now=lambda: now[0])) as service:
        await service.maintenance.claim_idempotency_key("key", "digest")
        await service.maintenance.store_response("key", 201, "{}")
        now[0] += timedelta(hours=amount)
        return (
            Refusal("forgotten")
            if (await service.maintenance.claim_idempotency_key("key", "digest")).is_new
            else None
        )
