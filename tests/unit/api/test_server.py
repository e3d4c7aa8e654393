import asyncio
import gc
import signal
import socket
import sys
import time
from contextlib import suppress
from types import ModuleType
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from pydantic import SecretStr
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from planwave.api.app import create_app
from planwave.api.server import (
    Server,
    ShutdownSignals,
    bind_socket,
    check_token,
    lasting_objects_frozen,
    serve,
    url_of,
)
from planwave.errors import InputError
from planwave.service.service import Service
from planwave.settings import Settings
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.server.raw_http import raw_connection
from tests.support.server.running_server import (
    NO_RATE_LIMITS,
    PlanningGate,
    RunningServer,
    running_server,
)
from tests.support.service.dependencies import dependencies

EVERYWHERE = "0.0.0.0"  # noqa: S104 - what is to be refused
BODY = b'{"prompt": "slow"}'
POST = ("Content-Type: application/json", f"Content-Length: {len(BODY)}")
BRIEF = NO_RATE_LIMITS.model_copy(update={"drain_s": 0.2})


def speaks_ipv6() -> bool:
    """Say whether there is an IPv6 loopback, which Python may know of where the machine has none."""
    with suppress(OSError), socket.socket(socket.AF_INET6) as listener:
        listener.bind(("::1", 0))
        return True
    return False


def refusal_of(settings: Settings) -> str | None:
    """Give the code of the error with which a server does not start."""
    try:
        check_token(settings)
    except InputError as error:
        return error.code
    return None


async def test_server_answers_at_its_url(server: RunningServer) -> None:
    async with server.client() as client:
        answer = await client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert "server" not in answer.headers
    assert "date" in answer.headers


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.9.9.9"])
def test_loopback_needs_no_token(host: str) -> None:
    assert refusal_of(Settings(host=host)) is None


@pytest.mark.parametrize(
    "host", [EVERYWHERE, "::", "10.1.2.3", "192.0.2.1", "no.such.host.invalid"]
)
def test_other_address_needs_token(host: str) -> None:
    with pytest.raises(InputError) as refused:
        check_token(Settings(host=host))
    assert refused.value.code == "token-required"
    assert "PLANWAVE_TOKEN" in str(refused.value.hint)
    for short in ("secret", "a", "x" * 15, f" {'x' * 15} "):
        with pytest.raises(InputError, match="at least 16 characters") as refused:
            check_token(Settings(host=host, token=SecretStr(short)))
        assert short not in f"{refused.value.message} {refused.value.hint}" or short == "a"
    assert refusal_of(Settings(host=host, token=SecretStr("x" * 16))) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_token_of_loopback_may_be_short(host: str) -> None:
    assert refusal_of(Settings(host=host, token=SecretStr("secret"))) is None


@pytest.mark.parametrize("token", ["", " "])
def test_empty_token_is_rejected(token: str) -> None:
    with pytest.raises(InputError, match="empty"):
        check_token(Settings(token=SecretStr(token)))


def test_port_in_use_is_reported_with_hint() -> None:
    with bind_socket("127.0.0.1", 0) as first:
        first[0].listen()
        with pytest.raises(InputError) as refused, bind_socket(*first[0].getsockname()):
            pass
    assert refused.value.code == "cannot-listen"
    assert "in use" in refused.value.message
    assert "--port" in str(refused.value.hint)


async def test_connections_send_each_piece_of_a_stream_at_once() -> None:
    options: list[int] = []

    class Accepted(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted = transport.get_extra_info("socket")
            options.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            self.transport.close()

    with bind_socket("127.0.0.1", 0) as (listener,):
        serving = await asyncio.get_running_loop().create_server(Accepted, sock=listener)
        async with serving:
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(b"x")  # the kernel hands on only connections with data
            assert await reader.read() == b""
            writer.close()
    assert options == [1]


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1"])
def test_foreign_host_is_reported(host: str) -> None:
    with pytest.raises(InputError, match="cannot listen"), bind_socket(host, 0):
        pass


def test_url_of_ipv4_address() -> None:
    for host, url in (("127.0.0.1", "http://127.0.0.1:"), (EVERYWHERE, "http://127.0.0.1:")):
        with bind_socket(host, 0) as (listener,):
            assert url_of(listener) == f"{url}{listener.getsockname()[1]}"


@pytest.mark.skipif(not speaks_ipv6(), reason="this machine has no ::1")
def test_url_of_ipv6_address() -> None:
    with bind_socket("::1", 0) as (listener,):
        assert url_of(listener) == f"http://[::1]:{listener.getsockname()[1]}"


def resolved(*addresses: str) -> Any:
    """Give a resolver for which ``localhost`` stands for these addresses, each found twice."""
    resolve = socket.getaddrinfo

    def getaddrinfo(host: str, *args: Any, **more: Any) -> Any:
        hosts = (*addresses, *addresses) if host == "localhost" else (host,)
        return [found for each in hosts for found in resolve(each, *args, **more)]

    return getaddrinfo


@pytest.mark.skipif(not speaks_ipv6(), reason="this machine has no ::1")
async def test_name_with_two_address_families_is_served_on_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolved("127.0.0.1", "::1"))
    answers: list[int] = []

    async def ask(url: str) -> None:
        port = url.rpartition(":")[2]
        try:
            async with httpx2.AsyncClient(timeout=10) as client:
                for address in ("127.0.0.1", "[::1]"):
                    answer = await client.get(f"http://{address}:{port}/healthz")
                    answers.append(answer.status_code)
        finally:
            signal.raise_signal(signal.SIGTERM)

    async with asyncio.TaskGroup() as tasks:
        settings = Settings(host="localhost", port=0)
        await served(settings, lambda url: tasks.create_task(ask(url)))
    assert answers == [200, 200]


@pytest.mark.skipif(not speaks_ipv6(), reason="this machine has no ::1")
def test_all_addresses_of_a_name_share_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolved("127.0.0.1", "::1"))
    with bind_socket("localhost", 0) as listeners:
        port = listeners[0].getsockname()[1]
        assert [each.getsockname()[:2] for each in listeners] == [
            ("127.0.0.1", port),
            ("::1", port),
        ]


@pytest.mark.skipif(not speaks_ipv6(), reason="this machine has no ::1")
def test_port_taken_on_one_address_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with bind_socket("::1", 0) as (other,):
        other.listen()
        monkeypatch.setattr(socket, "getaddrinfo", resolved("127.0.0.1", "::1"))
        port = other.getsockname()[1]
        with pytest.raises(InputError, match="in use"), bind_socket("localhost", port):
            pass


def test_address_missing_on_this_machine_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolved("192.0.2.1", "127.0.0.1"))
    with bind_socket("localhost", 0) as (listener,):
        assert listener.getsockname()[0] == "127.0.0.1"


async def served(settings: Settings, told: Any) -> int:
    app = create_app(settings, lambda _: Service(dependencies(store=Announcing())))
    return await serve(settings, app, told)


class Announcing(MemoryStore):
    announced: tuple[str | None, str | None] | None = None

    def publish_address(
        self, url: str | None, token: str | None = None, *, is_service: bool = True
    ) -> None:
        Announcing.announced = (url, token)


@pytest.mark.usefixtures("hangup")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_first_signal_ends_with_exit_code_0(number: int) -> None:
    urls: list[str] = []

    def told(url: str) -> None:
        urls.append(url)
        signal.raise_signal(number)

    assert await served(Settings(port=0, token=SecretStr("tok")), told) == 0
    assert Announcing.announced == (urls[0], "tok")


async def test_second_signal_ends_with_signal_exit_code() -> None:
    def told(_: str) -> None:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)

    assert await served(Settings(port=0), told) == 128 + signal.SIGINT


async def test_third_signal_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr("planwave.api.server.os._exit", codes.append)
    stop = ShutdownSignals()
    for _ in range(3):
        stop.receive(signal.SIGTERM)
    assert codes == [143]


async def test_service_is_not_opened_when_listening_is_refused() -> None:
    def opened(_: Settings) -> Service:
        raise AssertionError("opened")

    settings = Settings(host=EVERYWHERE)
    with pytest.raises(InputError):
        await serve(settings, create_app(settings, opened), print)


async def test_a_ready_server_has_its_objects_out_of_garbage_collections() -> None:
    own: list[object] = [[]]
    collected: list[bool] = []

    def told(_: str) -> None:
        collected.append(any(each is own for each in gc.get_objects()))
        signal.raise_signal(signal.SIGTERM)

    assert await served(Settings(port=0), told) == 0
    assert collected == [False]


def test_a_module_loaded_later_is_frozen_by_the_next_full_collection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def collects(own: object) -> bool:
        gc.collect()
        return any(each is own for each in gc.get_objects())

    before = list(gc.callbacks)
    with lasting_objects_frozen():
        of_request: list[object] = [[]]
        assert collects(of_request)
        monkeypatch.setitem(sys.modules, "loaded_later", ModuleType("loaded_later"))
        assert not collects(of_request)
        of_request = [[]]
        assert collects(of_request)
        assert gc.get_freeze_count() > 0
    assert gc.callbacks == before
    assert (
        gc.get_freeze_count() == 0
    )  # the process that served goes on with all its garbage collected


def ask_to_stop(running: RunningServer) -> None:
    running.loop.call_soon_threadsafe(running.stop.receive)


async def until_draining(running: RunningServer) -> None:
    async def draining() -> None:
        await running.stop.drain_requested.wait()
        await asyncio.sleep(0)  # its other waiter goes first

    await running.on_loop(draining())
    assert running.service.load.is_draining


async def test_draining_rejects_new_work_and_allows_reads() -> None:
    with running_server() as running:
        execution_id = await running.execute("held")
        async with running.client() as client:
            ask_to_stop(running)
            await until_draining(running)
            ready = await client.get("/readyz")
            assert (ready.status_code, ready.json()["code"]) == (503, "server-draining")
            assert (await client.get("/healthz")).status_code == 200
            plan = await client.post("/api/plan", json={"prompt": "texts"})
            assert (plan.status_code, plan.json()["code"]) == (503, "server-draining")
            assert plan.headers["retry-after"] == "5"
            shown = await client.get(f"/api/executions/{execution_id}")
            assert shown.json()["status"] == "executing"
            running.release(execution_id)
        await running.on_loop(running.service.executions.wait(execution_id))


async def test_request_in_progress_is_answered_before_shutdown() -> None:
    with running_server() as running:
        gate = running.planner.gates["slow"] = PlanningGate()
        async with raw_connection(running) as raw:
            await raw.send("POST", "/api/plan", *POST, body=BODY)
            await running.on_loop(gate.reached.wait())
            ask_to_stop(running)
            await until_draining(running)
            running.loop.call_soon_threadsafe(gate.open.set)
            answer = await raw.read_response()
            assert answer.status == 201
            assert await raw.is_closed()


@pytest.mark.parametrize("asked", ["nothing", "half a head", "half a body", "a slow plan", "all"])
async def test_idle_or_slow_client_does_not_delay_shutdown(asked: str) -> None:
    began = time.monotonic()
    with running_server(limits=BRIEF) as running:
        gate = running.planner.gates["slow"] = PlanningGate()
        async with raw_connection(running) as raw:
            match asked:
                case "half a head":
                    await raw.write(b"GET /healthz HTTP/1.1\r\n")
                case "half a body":
                    await raw.send("POST", "/api/plan", *POST, body=BODY[:3])
                case "a slow plan":
                    await raw.send("POST", "/api/plan", *POST, body=BODY)
                    await running.on_loop(gate.reached.wait())
                case "all":
                    await raw.send("GET", "/healthz")
                    assert (await raw.read_response()).status == 200
                case _:
                    pass
            ask_to_stop(running)
            if asked != "nothing":  # until it sends something, the server does not know of it
                await raw.reader.read()
    assert time.monotonic() - began < min(NO_RATE_LIMITS.body_read_s, NO_RATE_LIMITS.drain_s), (
        "something was waited for"
    )


async def last_of(socket: ClientConnection) -> str:
    """Give the last message before a WebSocket is closed."""
    output = ""
    with suppress(ConnectionClosed):
        while True:
            output = str(await socket.recv())
    return output


async def start_later(running: RunningServer) -> str:
    """Make an execution that nobody starts, so that there is nothing to wait for in the end."""

    async def made() -> str:
        plan = await running.service.plans.create("texts")
        return (await running.service.executions.create(plan.plan_id)).execution_id

    return await running.on_loop(made())


@pytest.mark.parametrize("status", ["executing", "starting"])
async def test_shutdown_notifies_and_closes_streams(status: str) -> None:
    with running_server(limits=BRIEF) as running:
        is_held = status == "executing"
        execution_id = await (running.execute("held") if is_held else start_later(running))
        poll = f"{running.ws_url}/ws/{execution_id}"
        async with (
            raw_connection(running) as raw,
            connect(poll) as one,
            connect(f"{poll}?mode=events&after=0") as two,
        ):
            await raw.send("GET", f"/api/executions/{execution_id}/events")
            await raw.reader.readuntil(b"event: node.started" if is_held else b"execution.created")
            for each in (one, two):
                await each.recv()
            ask_to_stop(running)
            assert b"event: server_draining" in await raw.reader.read()
            for each in (one, two):
                assert "draining" in await last_of(each)
                assert each.close_code == 1012
        record = await running.on_loop(running.service.executions.get(execution_id))
        assert record.status == status


@pytest.mark.parametrize("turns", range(6))
async def test_no_connection_is_left_open_whenever_it_was_accepted(turns: int) -> None:
    settings = Settings(port=0)
    with bind_socket(settings.host, settings.port) as listeners:
        server = Server(FastAPI(), settings, listeners)
        await server.open()
        with socket.create_connection(listeners[0].getsockname()[:2], timeout=5) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            for _ in range(turns):  # of the event loop, which accepts it in steps
                await asyncio.sleep(0)
            await server.close()
            with suppress(ConnectionResetError):
                while await asyncio.to_thread(client.recv, 4_096):
                    pass
