import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from planwave.api.app import create_app
from planwave.api.middleware import idempotency
from planwave.errors import PlanInvalid, StoreError
from planwave.graph.diagnostics import Diagnostic
from planwave.ids import new_id
from planwave.service.service import Service
from planwave.settings import Limits, Settings
from planwave.storage.sqlite.memory import MemoryStore
from planwave.storage.sqlite.store import SqliteStore
from tests.support.server.running_server import (
    NO_RATE_LIMITS,
    PlannerByGoal,
    PlanningGate,
    RunningServer,
)
from tests.support.service.dependencies import dependencies

KEY = {"Idempotency-Key": "k1"}
GOAL = {"prompt": "texts"}


@asynccontextmanager
async def client_of(
    planner: PlannerByGoal,
    store: Any = None,
    limits: Limits = NO_RATE_LIMITS,
    token: str | None = None,
    **more: Any,
) -> AsyncGenerator[httpx2.AsyncClient]:
    settings = Settings(limits=limits, token=None if token is None else SecretStr(token))
    parts = dependencies(planner=planner, store=store or MemoryStore(), limits=limits, **more)
    app = create_app(settings, lambda _: Service(parts))
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1"
        ) as client,
    ):
        yield client


async def plan(
    client: httpx2.AsyncClient, body: Any = GOAL, headers: Any = KEY, url: str = "/api/plan"
) -> httpx2.Response:
    return await client.post(url, json=body, headers=headers)


async def test_repeated_request_replays_response() -> None:
    planner = PlannerByGoal()
    async with client_of(planner) as client:
        first, again = await plan(client), await plan(client)
        assert (first.status_code, again.status_code) == (201, 201)
        assert first.content == again.content
        for name in ("location", "content-type", "content-length"):
            assert first.headers.get(name) == again.headers.get(name)
        assert "idempotency-replayed" not in first.headers
        assert again.headers["idempotency-replayed"] == "true"
        assert first.headers["x-request-id"] != again.headers["x-request-id"]
        assert len((await client.get("/api/plans")).json()["plans"]) == 1
    assert planner.goals == ["texts"]


async def test_request_without_key_is_not_replayed() -> None:
    planner = PlannerByGoal()
    async with client_of(planner) as client:
        answers = [await plan(client, headers={}) for _ in range(2)]
    assert answers[0].json()["plan_id"] != answers[1].json()["plan_id"]


@pytest.mark.parametrize(
    ("body", "url"), [({"prompt": "another"}, "/api/plan"), (GOAL, "/api/plan?stream=1")]
)
async def test_key_reused_with_other_request_is_rejected(body: Any, url: str) -> None:
    planner = PlannerByGoal()
    async with client_of(planner) as client:
        await plan(client)
        refused = await plan(client, body, url=url)
        assert (refused.status_code, refused.json()["code"]) == (422, "idempotency-key-reused")
    assert planner.goals == ["texts"]


GRAPH = {"nodes": [{"id": "a", "type": "start", "data": {}}], "edges": []}
RUN = {
    "graph": GRAPH,
    "inputs": {"a": {"output": [1, 2.5, "\u00e4", None, 10**19, {"x": 1, "y": 2}]}},
}
SPACED = json.dumps(RUN, indent=1).replace("{", "{ \t").replace("\n", "\r\n")


@pytest.mark.parametrize(
    "written",
    [
        json.dumps(RUN, sort_keys=True), json.dumps(RUN, ensure_ascii=False), SPACED,
        json.dumps({key: RUN[key] for key in reversed(RUN)}), json.dumps(RUN).replace("2.5", "25e-1"),
        json.dumps(RUN).replace('"output"', r'"\u006futput"'), f"\ufeff{json.dumps(RUN)}",
        json.dumps(RUN).replace('{"x": 1, "y": 2}', '{"y":2,"x":1}'),
    ],
)  # fmt: skip
async def test_same_json_written_in_another_way_is_the_same_request(written: str) -> None:
    async with client_of(PlannerByGoal()) as client:
        headers = {**KEY, "Content-Type": "application/json"}
        first = await client.post("/api/execute", content=json.dumps(RUN), headers=headers)
        again = await client.post("/api/execute", content=written.encode(), headers=headers)
        assert (first.status_code, again.status_code) == (201, 201), again.text
        assert again.content == first.content
        assert again.headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[1, 2.5", "[1.0, 2.5"), ("[1, 2.5", "[2.5, 1"), ("[1, ", '["1", '), ("null", "false"),
        ("null", "0"), ("2.5", "2.50000000001"), (str(10**19), str(10**19 + 1)), (str(10**19), "1e19"),
        ('{"x": 1', '{"x": 1, "x": 1'), ('"y": 2}', '"y": 2,}'), ('"y": 2}', '"y": 2, "z": null}'),
        ("\\u00e4", "a\\u0308"),
    ],
)  # fmt: skip
async def test_other_json_is_another_request(old: str, new: str) -> None:
    async with client_of(PlannerByGoal()) as client:
        headers = {**KEY, "Content-Type": "application/json"}
        written = json.dumps(RUN)
        assert old in written
        await client.post("/api/execute", content=written, headers=headers)
        changed = written.replace(old, new)
        refused = await client.post("/api/execute", content=changed, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (422, "idempotency-key-reused")


async def test_key_is_scoped_to_its_route() -> None:
    async with client_of(PlannerByGoal()) as client:
        created = (await plan(client)).json()
        check = await client.post("/api/check", json={"graph": {}}, headers=KEY)
        assert check.status_code == 200
        validated = await client.post(f"/api/plans/{created['plan_id']}/validate", headers=KEY)
        assert validated.status_code == 200


async def gathered(*work: Any) -> list[Any]:
    async with asyncio.TaskGroup() as tasks:
        under_way = [tasks.create_task(each) for each in work]
    return [each.result() for each in under_way]


async def test_twenty_concurrent_requests_run_once() -> None:
    planner = PlannerByGoal()
    gate = planner.gates["texts"] = PlanningGate()
    async with client_of(planner) as client:

        async def let_go() -> None:
            await gate.reached.wait()
            gate.open.set()

        *answers, _ = await gathered(*(plan(client) for _ in range(20)), let_go())
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.json()["plan_id"] for answer in answers}) == 1
    assert planner.goals == ["texts"]


async def test_other_request_with_key_is_rejected_without_waiting() -> None:
    planner = PlannerByGoal()
    gate = planner.gates["texts"] = PlanningGate()
    async with client_of(planner) as client, asyncio.TaskGroup() as tasks:
        tasks.create_task(plan(client))
        await gate.reached.wait()
        assert (await plan(client, {"prompt": "another"})).status_code == 422
        gate.open.set()


async def test_wait_timeout_returns_conflict_with_retry_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(idempotency, "WAIT_TIMEOUT_S", 0.01)
    planner = PlannerByGoal()
    gate = planner.gates["texts"] = PlanningGate()
    async with client_of(planner) as client, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(plan(client))
        await gate.reached.wait()
        received = await plan(client)
        assert (received.status_code, received.json()["code"]) == (409, "request-under-way")
        assert received.headers["retry-after"] == "2"
        gate.open.set()
    assert (await first).status_code == 201


@pytest.mark.parametrize(
    ("url", "status", "field"),
    [("/api/plan", 201, "plan_id"), ("/api/run", 202, "execution_id")],
)
async def test_request_repeated_after_crash_creates_nothing_new(
    tmp_path: Path, url: str, status: int, field: str
) -> None:
    class Crashing(SqliteStore):
        async def store_response(self, key: str, status: int, body: str) -> None:
            raise StoreError("the process dies here")

    planner = PlannerByGoal()
    async with client_of(planner, Crashing.open(tmp_path)) as client:
        first = (await plan(client, url=url)).json()
    async with client_of(planner, SqliteStore.open(tmp_path)) as client:
        again = await plan(client, url=url)
        assert (again.status_code, again.json()[field]) == (status, first[field])
        assert len((await client.get("/api/plans")).json()["plans"]) == 1
    assert planner.goals == ["texts"]


async def test_plan_stored_before_crash_is_reused(
    tmp_path: Path,
) -> None:
    class Crashing(SqliteStore):
        async def create_execution(self, *_: Any, **__: Any) -> None:
            raise StoreError("the process dies here")

        async def release_idempotency_key(self, key: str) -> None:
            raise StoreError("and does not come to that")

    planner = PlannerByGoal()
    store = SqliteStore.open(tmp_path)
    store.__class__ = Crashing
    async with client_of(planner, store) as client:
        assert (await plan(client, url="/api/run")).status_code == 503
    async with client_of(planner, SqliteStore.open(tmp_path)) as client:
        again = await plan(client, url="/api/run")
        assert again.status_code == 202
        created = again.json()
        assert created["plan_id"] != created["execution_id"]
        plans = (await client.get("/api/plans")).json()["plans"]
        assert [each["plan_id"] for each in plans] == [created["plan_id"]]
    assert planner.goals == ["texts"]


async def test_failed_response_is_not_replayed() -> None:
    class Fails(PlannerByGoal):
        async def create_plan(self, prompt: str, *more: Any, **named: Any) -> Any:
            if not self.goals:
                self.goals.append(prompt)
                raise PlanInvalid([Diagnostic("invalid-json", "error", "no")], [])
            return await super().create_plan(prompt, *more, **named)

    async with client_of(Fails()) as client:
        assert (await plan(client)).json()["code"] == "plan-invalid"
        assert (await plan(client)).status_code == 201
        assert (await plan(client, {}, {"Idempotency-Key": "k2"})).status_code == 422
        assert (await plan(client, GOAL, {"Idempotency-Key": "k2"})).status_code == 201


async def test_key_is_released_before_failure_is_sent(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget = server.service.maintenance.release_idempotency_key

    async def forget_slowly(name: str) -> None:
        await asyncio.sleep(0.2)
        await forget(name)

    monkeypatch.setattr(server.service.maintenance, "release_idempotency_key", forget_slowly)
    key = {"Idempotency-Key": "free at once"}
    async with server.client() as client:
        for _ in range(3):
            refused = await plan(client, {}, key)
            assert refused.status_code == 422
            assert "idempotency-replayed" not in refused.headers
        assert (await plan(client, GOAL, key)).status_code == 201


async def test_internal_error_releases_key() -> None:
    class Breaks(PlannerByGoal):
        async def create_plan(self, prompt: str, *more: Any, **named: Any) -> Any:
            if not self.goals:
                self.goals.append(prompt)
                raise ZeroDivisionError
            return await super().create_plan(prompt, *more, **named)

    async with client_of(Breaks()) as client:
        assert (await plan(client)).status_code == 500
        assert (await plan(client)).status_code == 201


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("", "invalid-idempotency-key"),
        ("a\tb", "invalid-idempotency-key"),
        ("k" * 256, "limit-exceeded"),
    ],
)
async def test_invalid_key_is_rejected(key: str, code: str) -> None:
    planner = PlannerByGoal()
    async with client_of(planner) as client:
        refused = await plan(client, headers={"Idempotency-Key": key})
        assert (refused.status_code, refused.json()["code"]) == (422, code)
        twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
        assert (await plan(client, headers=twice)).json()["code"] == "invalid-idempotency-key"
        assert planner.goals == []
        assert (await plan(client, headers={"Idempotency-Key": "k" * 255})).status_code == 201


async def test_replay_requires_token_and_counts_against_rate_limit() -> None:
    limits = NO_RATE_LIMITS.model_copy(update={"requests_per_s": 0.001, "requests_burst": 2})
    bearer = {**KEY, "Authorization": "Bearer tok"}
    async with client_of(PlannerByGoal(), limits=limits, token="tok") as client:
        assert (await plan(client, "not even JSON")).status_code == 401
        statuses = [(await plan(client, headers=bearer)).status_code for _ in range(3)]
    assert statuses == [201, 201, 429]


async def test_response_that_cannot_be_stored_is_sent_and_replayed() -> None:
    class Full(MemoryStore):
        async def store_response(self, key: str, status: int, body: str) -> None:
            raise StoreError("the disk is full")

    async with client_of(PlannerByGoal(), Full()) as client:
        answers = [await plan(client) for _ in range(2)]
        assert [each.status_code for each in answers] == [201, 201]
        assert answers[0].content == answers[1].content


async def test_abandoned_stream_is_completed_by_repeated_request(server: RunningServer) -> None:
    goal = "left half way"
    gate = server.planner.gates[goal] = PlanningGate()
    headers = {"Idempotency-Key": new_id()}
    async with server.client() as client:
        left = client.stream("POST", "/api/plan?stream=1", json={"prompt": goal}, headers=headers)
        async with left:
            await server.on_loop(gate.reached.wait())
        server.loop.call_soon_threadsafe(gate.open.set)
        url, body = "/api/plan?stream=1", {"prompt": goal}
        done = await client.post(url, json=body, headers=headers)
        again = await client.post(url, json=body, headers=headers)
    assert done.headers["content-type"] == again.headers["content-type"]
    assert "event: plan" in done.text
    assert done.text == again.text
