"""Two applications over one database: what one does counts at the other one, at once and without any note."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import SecretStr

from planwave.api.session_cookies import SESSION_COOKIE
from planwave.service import following
from planwave.settings import Limits
from planwave.storage.postgres.store import READ_S, PostgresStore
from tests.contract.http.test_stream_ends import (
    ASKS,
    EXECUTION_STREAMS,
    OPERATOR,
    Connection,
    bearer,
    has_begun,
    token_for,
)
from tests.support.scale.relay import Relay
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies
from tests.support.storage.postgres_server import PostgresServer
from tests.unit.storage.postgres.test_notices import end_connections

OWN_PAGE = {"origin": "http://127.0.0.1"}
Replicas = tuple[InProcessClient, InProcessClient]


@asynccontextmanager
async def running(database_url: str, **more: Any) -> AsyncGenerator[Replicas]:
    """Two replicas of one installation, without a carrier: nothing here has to be driven on the other one."""
    async with AsyncExitStack() as opened:
        clients: list[InProcessClient] = []
        for _ in range(2):
            parts = dependencies(store=PostgresStore.open(database_url), **more)
            client = await opened.enter_async_context(
                in_process_client(parts, token=SecretStr(OPERATOR))
            )
            client.headers["Authorization"] = f"Bearer {OPERATOR}"
            clients.append(client)
        yield clients[0], clients[1]


@pytest.fixture
async def replicas(database_url: str) -> AsyncGenerator[Replicas]:
    async with running(database_url) as both:
        yield both


@pytest.fixture
def without_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No note arrives, and what is read at intervals is read ten times a second."""
    monkeypatch.setattr(
        "planwave.storage.postgres.notices.PostgresNotices._receive", lambda *_: None
    )
    monkeypatch.setattr("planwave.service.following.RELOAD_S", 0.1)


async def soon(holds: Callable[[], Coroutine[Any, Any, bool]], s: float = 5.0) -> None:
    async with asyncio.timeout(s):
        while not await holds():  # noqa: ASYNC110 - it happens at another replica
            await asyncio.sleep(0.02)


async def flow_of(client: InProcessClient) -> str:
    flow = await client.post_json("/api/flows", {"name": "f", "graph": ASKS}, 201)
    return flow["plan_id"]


async def status_with(client: InProcessClient, token: str) -> int:
    answer = await client.get("/v1/models", headers={"Authorization": f"Bearer {token}"})
    return answer.status_code


@pytest.mark.parametrize("notes", [True, False])
async def test_a_token_that_is_made_or_revoked_counts_at_the_other_replica(
    notes: bool, request: pytest.FixtureRequest, database_url: str
) -> None:
    if not notes:
        request.getfixturevalue("without_notes")
    async with running(database_url) as (one, other):
        plan_id = await flow_of(one)
        token = await token_for(one, plan_id)
        await soon(lambda: _is(status_with(other, token["token"]), 200), 2)
        assert (await one.delete(f"/api/tokens/{token['token_id']}")).status_code == 204
        assert await status_with(one, token["token"]) == 401
        await soon(lambda: _is(status_with(other, token["token"]), 401), 2)


async def _is(value: Coroutine[Any, Any, int], expected: int) -> bool:
    return await value == expected


@pytest.mark.parametrize("notes", [True, False])
async def test_open_streams_of_a_token_that_another_replica_revokes_end(
    notes: bool, request: pytest.FixtureRequest, database_url: str
) -> None:
    if not notes:
        request.getfixturevalue("without_notes")
    async with running(database_url) as (one, other):
        execution_id, token = await execution_and_token(one, other)
        streams = await open_streams(other, execution_id, bearer(token))
        await one.delete(f"/api/tokens/{token['token_id']}")
        async with asyncio.timeout(3):
            for each in streams:
                await each.ended()


async def execution_and_token(
    one: InProcessClient, other: InProcessClient
) -> tuple[str, dict[str, Any]]:
    """Return an execution that waits at one replica, and a token from another one that may read it."""
    plan_id = await flow_of(one)
    body = {"flow": plan_id, "start": True}
    execution_id = (await other.post_json("/api/execute", body, 202))["execution_id"]
    token = await token_for(one, plan_id)
    await soon(lambda: _is(status_with(other, token["token"]), 200), 2)
    return execution_id, token


async def open_streams(
    client: InProcessClient, execution_id: str, *headers: tuple[str, str]
) -> list[Connection]:
    """Return streams of all kinds that have begun."""
    app: Any = client._transport.app  # type: ignore[attr-defined]
    streams = [
        Connection(app, path.format(id=execution_id), *headers) for path in EXECUTION_STREAMS
    ]
    for each in streams:
        await each.until(has_begun)
    return streams


async def test_what_is_revoked_while_nobody_listens_counts_once_they_listen_again(
    replicas: Replicas, postgres: PostgresServer
) -> None:
    """The connections that listen are ended, and the note is sent before they are back."""
    one, other = replicas
    execution_id, token = await execution_and_token(one, other)
    streams = await open_streams(other, execution_id, bearer(token))
    end_connections(postgres, "planwave listen")
    assert (await one.delete(f"/api/tokens/{token['token_id']}")).status_code == 204
    await soon(lambda: _is(status_with(other, token["token"]), 401), 4)
    async with asyncio.timeout(3):
        for each in streams:
            await each.ended()


async def test_a_replica_that_is_cut_off_takes_no_token_and_no_session_that_it_cannot_confirm(
    database_url: str, postgres: PostgresServer
) -> None:
    """After 30 s another one may have revoked them; they are good again once the database answers."""
    leap = [timedelta()]

    def now() -> datetime:
        return datetime.now(UTC) + leap[0]

    with Relay(postgres.port) as relay:
        url = database_url.replace(f":{postgres.port}/", f":{relay.port}/")
        assert url != database_url
        async with running(database_url) as (one, _), running(url, now=now) as (other, _):
            execution_id, token = await execution_and_token(one, other)
            login = await one.post("/api/session", json={"token": OPERATOR})
            cookie = "cookie", f"{SESSION_COOKIE}={login.cookies[SESSION_COOKIE]}"
            credentials = bearer(token), cookie
            opened = [
                stream
                for each in credentials
                for stream in await open_streams(other, execution_id, each)
            ]
            operators = await open_streams(other, execution_id, bearer({"token": OPERATOR}))
            del other.headers["Authorization"]
            other.cookies.clear()
            relay.cut()
            assert [await _status(other, each) for each in credentials] == [403, 200]
            leap[0] = timedelta(seconds=31)
            for each in credentials:
                refused = await other.get("/api/node-types", headers=dict([each]))
                assert (refused.status_code, refused.json()["code"]) == (503, "store-unreachable")
                assert int(refused.headers["retry-after"]) > 0
            for stream in opened:
                assert await stream.ended() == UNCONFIRMED[stream.scope["type"]]
            assert all(each.is_open for each in operators)
            relay.restore()
            for each, accepted in zip(credentials, (403, 200), strict=True):
                await soon(lambda each=each, to=accepted: _is(_status(other, each), to), 25)


UNCONFIRMED = {"http": "event: problem store-unreachable", "websocket": "close 1012"}


async def _status(client: InProcessClient, header: tuple[str, str]) -> int:
    """Return the status of a request that reads nothing of the store; an access token may not send it."""
    return (await client.get("/api/node-types", headers=dict([header]))).status_code


def test_what_is_read_again_is_read_before_it_is_too_old() -> None:
    """Also where the read takes as long as one may."""
    assert following.RELOAD_S + READ_S <= following.CONFIRMED_FOR.total_seconds() <= 30


async def test_open_streams_of_a_session_that_another_replica_closes_end(
    replicas: Replicas,
) -> None:
    one, other = replicas
    execution_id, _ = await execution_and_token(one, other)
    login = await one.post("/api/session", json={"token": OPERATOR})
    cookie = f"{SESSION_COOKIE}={login.cookies[SESSION_COOKIE]}"
    streams = await open_streams(other, execution_id, ("cookie", cookie))
    del one.headers["Authorization"]
    one.cookies.clear()
    closed = await one.delete("/api/session", headers={"cookie": cookie, **OWN_PAGE})
    assert closed.status_code == 204
    async with asyncio.timeout(3):
        for each in streams:
            await each.ended()


async def test_executions_that_wait_for_one_token_count_at_all_replicas(database_url: str) -> None:
    limits = Limits(waiting_executions=3)
    async with running(database_url, limits=limits) as (one, other):
        plan_id = await flow_of(one)
        token = await token_for(one, plan_id)
        await soon(lambda: _is(status_with(other, token["token"]), 200), 2)
        headers, body = dict([bearer(token)]), {"flow": plan_id, "start": True}
        for client in (one, other, one):
            made = await client.post("/api/execute", json=body, headers=headers)
            assert made.status_code == 202
            await client.service.executions.wait(made.json()["execution_id"])
        for client in (one, other):
            refused = await client.post("/api/execute", json=body, headers=headers)
            assert (refused.status_code, refused.json()["code"]) == (429, "quota-exceeded")


async def test_the_use_of_a_token_at_one_replica_is_seen_at_the_other(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = replicas
    token = await token_for(one, await flow_of(one))
    await soon(lambda: _is(status_with(other, token["token"]), 200), 2)

    async def is_seen() -> bool:
        (listed,) = (await one.get_json("/api/tokens"))["tokens"]
        return listed["last_used_at"] is not None

    await soon(is_seen)


async def test_a_flow_that_is_deleted_takes_its_tokens_along_at_the_other_replica(
    replicas: Replicas,
) -> None:
    one, other = replicas
    plan_id = await flow_of(one)
    token = await token_for(one, plan_id)
    await soon(lambda: _is(status_with(other, token["token"]), 200), 2)
    await one.delete(f"/api/flows/{plan_id}?force=true")

    async def is_known_without_it() -> bool:
        found = other.service.access_tokens.find(token["token"])
        return found is None or plan_id not in found.flows

    await soon(is_known_without_it, 2)


@pytest.mark.parametrize("notes", [True, False])
async def test_a_session_is_open_and_closed_at_all_replicas(
    notes: bool, request: pytest.FixtureRequest, database_url: str
) -> None:
    if not notes:
        request.getfixturevalue("without_notes")
    async with running(database_url) as (one, other):
        login = await one.post("/api/session", json={"token": OPERATOR})
        cookie = {"cookie": f"{SESSION_COOKIE}={login.cookies[SESSION_COOKIE]}", **OWN_PAGE}
        for client in (one, other):
            del client.headers["Authorization"]
            client.cookies.clear()
            assert (await client.get("/api/executions", headers=cookie)).status_code == 200
        assert (await one.delete("/api/session", headers=cookie)).status_code == 204
        assert (await one.get("/api/executions", headers=cookie)).status_code == 401

        async def is_closed() -> bool:
            return (await other.get("/api/executions", headers=cookie)).status_code == 401

        await soon(is_closed, 2)
    async with running(database_url) as (restarted, _):
        del restarted.headers["Authorization"]
        assert (await restarted.get("/api/executions", headers=cookie)).status_code == 401


async def test_the_last_use_of_a_token_never_goes_back(database_url: str) -> None:
    async with running(database_url) as (one, other):
        token = await token_for(one, await flow_of(one))
        stores = [each.service._store.access_tokens for each in (one, other)]
        for store, at in zip(stores, ("2026-01-02", "2026-01-01"), strict=True):
            await store.set_last_used({token["token_id"]: at})
        (record,) = await stores[0].all()
        assert record.last_used_at == "2026-01-02"


async def test_requests_with_one_key_at_both_replicas_do_their_work_once(
    replicas: Replicas,
) -> None:
    one, other = replicas
    body = {"flow": await flow_of(one), "start": False}
    for key in ("first", "second", "third"):
        headers = {"Idempotency-Key": key}
        async with asyncio.TaskGroup() as tasks:
            sent = [
                tasks.create_task(client.post("/api/execute", json=body, headers=headers))
                for client in (one, other) * 20
            ]
        answers = [each.result() for each in sent]
        assert {each.status_code for each in answers} == {201}
        assert len({each.text for each in answers}) == 1
    assert len(await one.service.executions.list()) == 3


async def test_a_request_that_another_replica_handles_for_too_long_is_told_to_come_back(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = replicas
    monkeypatch.setattr("planwave.api.middleware.idempotency.WAIT_TIMEOUT_S", 0.6)
    path, body, headers = "/api/check", {"graph": ASKS}, {"Idempotency-Key": "k"}
    keys, is_done = one.service.maintenance, asyncio.Event()
    store_response = keys.store_response

    async def store_late(*response: Any) -> None:
        await is_done.wait()
        await store_response(*response)

    monkeypatch.setattr(keys, "store_response", store_late)
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(one.post(path, json=body, headers=headers))
        await soon(lambda: _is_claimed(one))
        late = await other.post(path, json=body, headers=headers)
        assert (late.status_code, late.json()["code"]) == (409, "request-under-way")
        assert late.headers["retry-after"] == "2"
        waiting = tasks.create_task(other.post(path, json=body, headers=headers))
        is_done.set()
    assert waiting.result().headers["idempotency-replayed"] == "true"
    assert waiting.result().text == first.result().text


async def _is_claimed(client: InProcessClient) -> bool:
    return await client.service._store._read(
        lambda connection: connection.exec_driver_sql("SELECT count(*) FROM answers").scalar() == 1
    )


async def test_a_request_whose_response_broke_off_is_repeated_at_the_other_replica(
    replicas: Replicas,
) -> None:
    """It has the id that it had, also while the process that lost the client lives."""
    keys = [each.service.maintenance for each in replicas]
    first = await keys[0].claim_idempotency_key("k", "digest")
    assert (await keys[1].claim_idempotency_key("k", "digest")).is_held_elsewhere
    await keys[0].release_idempotency_key("k", keeps_subject=True)
    again = await keys[1].claim_idempotency_key("k", "digest")
    assert (again.is_new, again.is_held_elsewhere, again.subject) == (True, False, first.subject)
