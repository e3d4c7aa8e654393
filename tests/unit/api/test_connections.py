import asyncio
import json
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from fcntl import ioctl
from functools import partial
from termios import TIOCOUTQ

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from planwave.api.connections import Connection, Crowd
from planwave.api.websockets import Socket
from tests.support.object_lifetimes import uncollected
from tests.support.polling import until
from tests.support.server.raw_http import (
    SHORT_WAIT_S,
    WEBSOCKET_UPGRADE,
    RawConnection,
    raw_connection,
)
from tests.support.server.raw_websocket import raw_websocket
from tests.support.server.running_server import (
    NO_RATE_LIMITS,
    PlanningGate,
    RunningServer,
    running_server,
)

PATIENCE_S = 15.0
"""Of the server, whose time leaps; less than uvicorn keeps a connection between two requests."""


ONE_START = '{"nodes": [{"id": "s", "type": "start"}], "edges": []}'
LONG, SHORT = "x" * 2_000_000, "x" * 50_000


@pytest.fixture(scope="module")
def hasty() -> Iterator[RunningServer]:
    with running_server(
        limits=NO_RATE_LIMITS.model_copy(update={"body_read_s": PATIENCE_S})
    ) as running:
        yield running


async def healthy(raw: RawConnection) -> bool:
    await raw.send("GET", "/healthz")
    return (await raw.read_response()).status == 200


async def plan_under_way(running: RunningServer, raw: RawConnection, goal: str) -> PlanningGate:
    """Ask for a plan, and give the gate its planner stands at."""
    gate = running.planner.gates[goal] = PlanningGate()
    body = json.dumps({"prompt": goal}).encode()
    await raw.send(
        "POST", "/api/plan", "Content-Type: application/json",
        f"Content-Length: {len(body)}", body=body,
    )  # fmt: skip
    await running.on_loop(gate.reached.wait())
    return gate


async def narrow(running: RunningServer, held: Connection | Socket, size: int = 1) -> None:
    """Have the system hold little of what is sent to a client; next to nothing by default."""

    async def narrowed() -> None:
        own = held.transport.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)

    await running.on_loop(narrowed())


async def unsent(running: RunningServer, held: Connection | Socket) -> int:
    """Give how many bytes wait for a client to take what comes before them."""

    async def counted() -> int:
        return held.transport.get_write_buffer_size()

    return await running.on_loop(counted())


def held_by_system(held: Connection | Socket) -> int:
    """Give how many bytes the system has taken for a client and not passed on to its own."""
    own = held.transport.get_extra_info("socket")
    return int.from_bytes(ioctl(own.fileno(), TIOCOUTQ, bytes(4)), sys.byteorder)


async def started_with(running: RunningServer, text: str) -> str:
    """Make an execution of one node that is settled with a text; give its id."""
    plan = await running.on_loop(running.service.read_plan(ONE_START))
    made = running.service.create_execution(plan, inputs={"s": {"output": text}})
    return (await running.on_loop(made)).execution_id


async def ask_without_end(raw: RawConnection, requests: bytes) -> None:
    """Ask until every buffer on the way is full, and then wait."""
    while True:
        await asyncio.wait_for(raw.write(requests), 45)


async def test_who_says_nothing_is_let_go(hasty: RunningServer) -> None:
    async with raw_connection(hasty) as raw:
        assert not await raw.is_closed(SHORT_WAIT_S)
        assert await hasty.run_advancing_time(raw.is_closed())


async def test_f59_a_head_that_dribbles_has_its_time(hasty: RunningServer) -> None:
    async with raw_connection(hasty) as raw:
        await raw.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        for _ in range(3):
            await raw.write(b"X-More: 1\r\n")
            await hasty.advance_time(PATIENCE_S / 4)
        answer = await hasty.run_advancing_time(raw.read_response())
        assert (answer.status, answer.json()["code"]) == (408, "request-timeout")
        assert await raw.is_closed()


async def test_a_second_head_has_its_time_too(hasty: RunningServer) -> None:
    async with raw_connection(hasty) as raw:
        assert await healthy(raw)
        await raw.write(b"GET /healthz HT")
        answer = await hasty.run_advancing_time(raw.read_response())
        assert answer.status == 408
        assert await raw.is_closed()


async def test_a_connection_between_requests_is_kept(hasty: RunningServer) -> None:
    async with raw_connection(hasty) as raw:
        assert await healthy(raw)
        await hasty.advance_time(PATIENCE_S + 1)
        assert not await raw.is_closed(SHORT_WAIT_S)
        assert await healthy(raw)


async def test_a_body_nobody_reads_has_its_time(hasty: RunningServer) -> None:
    async with raw_connection(hasty) as raw:
        await raw.send("POST", "/nowhere", "Transfer-Encoding: chunked")
        assert (await raw.read_response()).status == 404
        assert await hasty.run_advancing_time(raw.is_closed())


async def test_a_request_at_work_is_left_alone(hasty: RunningServer) -> None:
    async with raw_connection(hasty) as raw:
        gate = await plan_under_way(hasty, raw, "slow")
        await hasty.advance_time(3 * PATIENCE_S)
        assert not await raw.is_closed(SHORT_WAIT_S)
        hasty.loop.call_soon_threadsafe(gate.open.set)
        assert (await raw.read_response()).status == 201


async def test_who_does_not_read_an_answer_is_cut_off() -> None:
    with running_server(limits=NO_RATE_LIMITS.model_copy(update={"body_read_s": 0.3})) as running:
        async with raw_connection(running) as raw:
            raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
            request = f"GET /openapi.json HTTP/1.1\r\nHost: {raw.host}\r\n\r\n".encode()
            with pytest.raises(ConnectionError):
                await ask_without_end(raw, request * 20)


async def test_who_does_not_read_a_last_answer_is_cut_off_however_little_of_it_is_left(
    hasty: RunningServer,
) -> None:
    with uncollected(Connection) as left:
        async with raw_connection(hasty) as raw:
            raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await until(lambda: left)
            (connection,) = left
            state = connection.server_state

            def has_answered(requests: int) -> bool:
                return state.total_requests == requests

            while not (size := await unsent(hasty, connection)):
                asked = state.total_requests + 1
                await raw.send("GET", "/metrics")
                await until(partial(has_answered, asked))
            assert size < 65_536  # so much alone holds up who writes
            await raw.send("GET", "/metrics", "Connection: close")
            await hasty.run_advancing_time(until(lambda: connection not in state.connections))


async def test_who_reads_an_answer_slowly_gets_it_whole(hasty: RunningServer) -> None:
    execution_id = await started_with(hasty, LONG)
    with uncollected(Connection) as left:
        async with raw_connection(hasty) as raw:
            await until(lambda: left)
            (connection,) = left
            await narrow(hasty, connection, 500_000)  # it takes more once a third of that is gone
            own = raw.writer.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
            await raw.send("GET", f"/api/executions/{execution_id}/document")
            head = await raw.reader.readuntil(b"\r\n\r\n")
            whole, taken = int(re.findall(rb"content-length: (\d+)", head)[0]), b""
            for _ in range(4):  # nearly four times as long as who takes nothing
                await hasty.advance_time(PATIENCE_S - 1)
                size = await unsent(hasty, connection) + held_by_system(connection)
                while await unsent(hasty, connection) + held_by_system(connection) >= size:
                    taken += await raw.reader.readexactly(4_096)
            assert await unsent(hasty, connection)
            taken += await raw.reader.readexactly(whole - len(taken))
            assert LONG in taken.decode()


async def test_a_watcher_that_does_not_read_the_end_is_cut_off_behind_it(
    hasty: RunningServer,
) -> None:
    execution_id = await started_with(hasty, SHORT)
    with uncollected(Socket) as left:
        async with raw_websocket(f"{hasty.ws_url}/ws/{execution_id}?mode=events") as watcher:
            assert (await watcher.read()).json["type"] == "snapshot"
            (held,) = left
            await narrow(hasty, held)
            await hasty.on_loop(hasty.service.start(execution_id))
            await hasty.on_loop(hasty.service.wait(execution_id))
            await until(lambda: held.close_sent)
            assert 0 < await unsent(hasty, held) < 65_536
            await hasty.run_advancing_time(until(lambda: held not in held.connections))


async def test_a_watcher_that_answers_no_ping_and_does_not_read_is_cut_off(
    hasty: RunningServer,
) -> None:
    execution_id = await started_with(hasty, "")
    with uncollected(Socket) as left:
        async with raw_websocket(f"{hasty.ws_url}/ws/{execution_id}?mode=events") as watcher:
            assert (await watcher.read()).json["type"] == "snapshot"
            (held,) = left
            await narrow(hasty, held)
            size = len(SHORT).to_bytes(2, "big")

            async def told() -> bool:
                return held.push(b"\x81\x7e" + size + SHORT.encode())

            assert await hasty.on_loop(told())
            assert 0 < await unsent(hasty, held) < 65_536
            await hasty.run_advancing_time(until(lambda: held not in held.connections))


@pytest.mark.parametrize(
    "sent",
    [b"\x16\x03\x01\x02\x00\x01\xfc\x03", b"GET /healthz\r\n\r\n", b"G\xffT / HTTP/1.1\r\n\r\n"],
)
async def test_what_is_not_http_is_told_so(server: RunningServer, sent: bytes) -> None:
    async with raw_connection(server) as raw:
        await raw.write(sent + b"\r\n\r\n")
        answer = await raw.read_response()
        assert (answer.status, answer.json()["code"]) == (400, "invalid-request")
        assert answer.headers["content-type"] == "application/problem+json"
        assert await raw.is_closed()


async def test_a_body_in_broken_chunks_ends_its_request(server: RunningServer) -> None:
    async with raw_connection(server) as raw:
        await raw.send(
            "POST", "/api/plan", "Content-Type: application/json", "Transfer-Encoding: chunked"
        )
        await raw.write(b"zz\r\n")
        assert (await raw.read_response()).status == 400
        assert await raw.is_closed()


CHECK = b'{"graph": {"nodes": [], "edges": []}}'
IN_CHUNKS = b"%x\r\n%s\r\n0\r\n" % (len(CHECK), CHECK)


@pytest.mark.parametrize(
    ("header", "body"),
    [(f"Content-Length: {len(CHECK)}", CHECK), ("Transfer-Encoding: chunked", IN_CHUNKS + b"\r\n")],
)
async def test_an_offer_of_another_protocol_is_not_taken_up_and_costs_no_body(
    server: RunningServer, header: str, body: bytes
) -> None:
    offer = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQ"]
    async with raw_connection(server) as raw:
        for _ in range(2):
            await raw.send(
                "POST", "/api/check", *offer, "Content-Type: application/json", header, body=body
            )  # fmt: skip
            answer = await raw.read_response()
            assert (answer.status, answer.json()["valid"]) == (200, False)  # it has no nodes
        await raw.send("GET", "/healthz", *offer)
        assert (await raw.read_response()).status == 200
        assert await healthy(raw)


async def test_what_cannot_be_read_is_answered_behind_what_came_before(
    server: RunningServer,
) -> None:
    async with raw_connection(server) as raw:
        gate = await plan_under_way(server, raw, "first")
        await raw.write(f"GET /healthz HTTP/1.1\r\nHost: {raw.host}\r\n\r\n".encode())
        await raw.write(b"\x16\x03\x01\r\n\r\n")
        assert not await raw.is_closed(SHORT_WAIT_S)
        server.loop.call_soon_threadsafe(gate.open.set)
        assert [(await raw.read_response()).status for _ in range(3)] == [201, 200, 400]
        assert await raw.is_closed()


async def test_a_broken_body_behind_a_request_at_work_is_answered_in_its_turn(
    server: RunningServer,
) -> None:
    async with raw_connection(server) as raw:
        gate = await plan_under_way(server, raw, "one")
        await raw.send(
            "POST", "/api/check", "Content-Type: application/json", "Transfer-Encoding: chunked",
            body=b"zz\r\n",
        )  # fmt: skip
        server.loop.call_soon_threadsafe(gate.open.set)
        assert [(await raw.read_response()).status for _ in range(2)] == [201, 400]
        assert await raw.is_closed()


async def test_a_websocket_is_not_asked_for_before_the_answer_to_the_last_request(
    server: RunningServer,
) -> None:
    async with raw_connection(server) as raw:
        gate = await plan_under_way(server, raw, "before")
        await raw.send("GET", "/ws/x", *WEBSOCKET_UPGRADE)
        server.loop.call_soon_threadsafe(gate.open.set)
        assert (await raw.read_response()).status == 201
        answer = await raw.read_response()
        assert (answer.status, answer.json()["code"]) == (400, "invalid-request")
        assert await raw.is_closed()


async def test_nobody_connects_through(server: RunningServer) -> None:
    async with raw_connection(server) as raw:
        await raw.send("CONNECT", "localhost:22")
        assert (await raw.read_response()).status == 400
        assert await raw.is_closed()


async def test_what_follows_a_body_is_no_header(server: RunningServer) -> None:
    async with raw_connection(server) as raw:
        for trailer in (b"", b"Content-Type: text/plain\r\n"):
            await raw.send(
                "POST", "/api/check", "Content-Type: application/json",
                "Transfer-Encoding: chunked", body=IN_CHUNKS + trailer + b"\r\n",
            )  # fmt: skip
            assert (await raw.read_response()).status == 200


async def test_who_ends_a_body_with_a_word_of_closing_is_closed(server: RunningServer) -> None:
    async with raw_connection(server) as raw:
        await raw.send(
            "POST", "/api/check", "Content-Type: application/json", "Transfer-Encoding: chunked",
            body=IN_CHUNKS + b"Connection: close\r\n\r\n",
        )  # fmt: skip
        answer = await raw.read_response()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await raw.is_closed()


async def test_sizes_of_chunks_may_be_padded(server: RunningServer) -> None:
    async with raw_connection(server) as raw:
        await raw.send(
            "POST", "/api/check", "Content-Type: application/json", "Transfer-Encoding: chunked",
            body=b"%x  \r\n%s\r\n0\r\n\r\n" % (len(CHECK), CHECK),
        )  # fmt: skip
        assert (await raw.read_response()).status == 200


@pytest.mark.parametrize("target", ["http://{}", "http://{}?x=1"])
async def test_a_whole_address_without_a_path_is_that_of_the_root(
    server: RunningServer, target: str
) -> None:
    async with raw_connection(server) as raw:
        await raw.send("GET", target.format(raw.host))
        answer = await raw.read_response()
        assert (answer.status, answer.json()["detail"]) == (404, "there is nothing at '/'")
        assert await healthy(raw)


@pytest.mark.parametrize("space", [" ", "\t", " \t "])
async def test_spaces_behind_a_header_are_not_of_it(server: RunningServer, space: str) -> None:
    async with raw_connection(server) as raw:
        await raw.send(
            "POST", "/api/check", "Content-Type: application/json" + space,
            f"Content-Length: {len(CHECK)}{space}", "Expect: 100-continue" + space,
            f"Host: {raw.host}{space}",
        )  # fmt: skip
        assert (await asyncio.wait_for(raw.read_response(), 45)).status == 100
        await raw.write(CHECK)
        assert (await raw.read_response()).status == 200
        await raw.send("GET", "/ws/x", *(each + space for each in WEBSOCKET_UPGRADE))
        assert (await raw.read_response()).status == 101


@pytest.mark.parametrize("hosts", [b"", b"Host: x\r\nHost: y\r\n"])
async def test_a_request_names_its_host_once(server: RunningServer, hosts: bytes) -> None:
    async with raw_connection(server) as raw:
        await raw.write(b"GET /healthz HTTP/1.1\r\n" + hosts + b"\r\n")
        answer = await raw.read_response()
        assert (answer.status, answer.json()["code"]) == (400, "invalid-request")
        assert await raw.is_closed()
    async with raw_connection(server) as raw:
        await raw.write(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert (await raw.read_response()).status == 200


async def test_a_body_is_not_taken_for_what_it_is_packed_in(server: RunningServer) -> None:
    async with raw_connection(server) as raw:
        await raw.send(
            "POST", "/api/check", "Content-Type: application/json",
            "Transfer-Encoding: gzip, chunked", body=IN_CHUNKS + b"\r\n",
        )  # fmt: skip
        assert (await raw.read_response()).status == 400
        assert await raw.is_closed()


@pytest.mark.parametrize(("version", "more"), [(b"1.0", b""), (b"1.1", b", close")])
async def test_an_offer_of_who_stays_for_one_answer_gets_that(
    server: RunningServer, version: bytes, more: bytes
) -> None:
    async with raw_connection(server) as raw:
        await raw.write(
            b"GET /healthz HTTP/%s\r\nHost: %s\r\nConnection: Upgrade%s\r\nUpgrade: h2c\r\n\r\n"
            % (version, raw.host.encode(), more)
        )
        answer = await asyncio.wait_for(raw.read_response(), 45)
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await raw.is_closed()


async def test_an_old_client_is_not_told_to_go_on(server: RunningServer) -> None:
    async with raw_connection(server) as raw:
        await raw.write(
            b"POST /api/check HTTP/1.0\r\nHost: %s\r\nContent-Type: application/json\r\n"
            b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n%s"
            % (raw.host.encode(), len(CHECK), CHECK)
        )
        assert (await raw.read_response()).status == 200


async def test_what_is_answered_already_is_not_answered_again(server: RunningServer) -> None:
    async with raw_connection(server) as raw:
        await raw.send("POST", "/nowhere", "Transfer-Encoding: chunked")
        assert (await raw.read_response()).status == 404
        await raw.write(b"zz\r\n")
        assert await raw.is_closed()


async def test_many_requests_in_one_go_are_begun_a_few_at_a_time(server: RunningServer) -> None:
    async with raw_connection(server) as raw:
        with uncollected(RequestResponseCycle) as left:
            gate = await plan_under_way(server, raw, "ahead")
            request = f"GET /healthz HTTP/1.1\r\nHost: {raw.host}\r\n\r\n".encode()
            await raw.write(request * 2_000)
            await until(lambda: len(left) > 10)
            async with raw_connection(server) as other:
                assert await healthy(other)
            server.loop.call_soon_threadsafe(gate.open.set)
            assert (await raw.read_response()).status == 201
            most = len(left)
            for _ in range(2_000):
                assert (await raw.read_response()).status == 200
                most = max(most, len(left))
        assert most < 200
        assert await healthy(raw)


@pytest.mark.parametrize("end", [b"0\r\nX-More: ", b"1;"])
async def test_what_comes_with_a_body_and_is_not_of_it_has_a_bound(end: bytes) -> None:
    with running_server(
        limits=NO_RATE_LIMITS.model_copy(update={"header_bytes": 1_024})
    ) as running:
        async with raw_connection(running) as raw, raw_connection(running) as other:
            await raw.send(
                "POST", "/api/check", "Content-Type: application/json",
                "Transfer-Encoding: chunked", body=b"1\r\n{\r\n",
            )  # fmt: skip
            assert await healthy(other)  # so that was read by itself
            await raw.write(end + b"x" * 2_048)
            answer = await raw.read_response()
            assert (answer.status, answer.json()["code"]) == (431, "limit-exceeded")
            assert await raw.is_closed()


@pytest.mark.parametrize(
    ("path", "more", "status"),
    [
        ("/ws/x", [f"X-{n}: 1" for n in range(130)], 431),
        ("/ws/x", ["X-Long: " + "x" * 8190], 431),
        ("/ws/x?" + "q" * 8200, [], 414),
    ],
)
async def test_a_websocket_s_head_fits_the_library_that_reads_it(
    server: RunningServer, path: str, more: list[str], status: int
) -> None:
    async with raw_connection(server) as raw:
        await raw.send("GET", path, *WEBSOCKET_UPGRADE, *more)
        assert (await raw.read_response()).status == status
        assert await raw.is_closed()


async def test_a_websocket_without_a_key_is_refused(server: RunningServer) -> None:
    async with raw_connection(server) as raw:
        await raw.send("GET", "/ws/x", *WEBSOCKET_UPGRADE[:3])
        answer = await raw.read_response()
        assert (answer.status, answer.json()["code"]) == (400, "invalid-request")
        assert "missing Sec-WebSocket-Key" in answer.json()["detail"]
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["x-request-id"]
        assert await raw.is_closed()


async def test_only_a_get_becomes_a_websocket(server: RunningServer) -> None:
    async with raw_connection(server) as raw:
        await raw.send("POST", "/ws/x", *WEBSOCKET_UPGRADE)
        answer = await raw.read_response()
        assert (answer.status, answer.json()["code"]) == (405, "method-not-allowed")
        assert answer.headers["allow"] == "GET"
        assert await raw.is_closed()


@pytest.mark.parametrize("more", ["Content-Length: 5", "Transfer-Encoding: chunked"])
async def test_a_websocket_with_a_body_is_refused_rather_than_left_hanging(
    server: RunningServer, more: str
) -> None:
    async with raw_connection(server) as raw:
        await raw.send("GET", "/ws/x", *WEBSOCKET_UPGRADE, more)
        answer = await asyncio.wait_for(raw.read_response(), 45)
        assert (answer.status, answer.json()["code"]) == (400, "invalid-request")
        assert await raw.is_closed()


async def test_a_websocket_with_an_empty_body_is_one(server: RunningServer) -> None:
    async with raw_connection(server) as raw:
        await raw.send("GET", "/ws/x", *WEBSOCKET_UPGRADE, "Content-Length: 0")
        assert (await raw.read_response()).status == 101


async def test_what_has_ended_is_let_go_of_without_anybody_looking_for_cycles(
    server: RunningServer,
) -> None:
    with uncollected(Connection, Socket) as left:
        async with raw_connection(server) as raw, raw_connection(server) as other:
            await raw.send("GET", "/ws/x", *WEBSOCKET_UPGRADE)
            assert (await raw.read_response()).status == 101
            assert await healthy(other)
            assert {type(each) for each in left} == {Connection, Socket}
        await until(lambda: not left)


@pytest.mark.parametrize("behind", [0, 1, 200, 1_500])
async def test_who_asks_on_behind_a_stream_and_goes_is_let_go_of_too(
    server: RunningServer, behind: int
) -> None:
    execution_id = await server.execute("held")
    with uncollected(Connection) as left:
        async with raw_connection(server) as raw:
            await raw.send("GET", f"/api/executions/{execution_id}/events")
            await raw.reader.readuntil(b"\r\n\r\n")
            request = f"GET /healthz HTTP/1.1\r\nHost: {raw.host}\r\n\r\n".encode()
            await raw.write(request * behind)
            assert await raw.reader.read(1)  # of the stream
        if behind > 1_000:  # so much is left unread, and with it that the client is gone
            server.release(execution_id)
        await until(lambda: not left)
    server.release(execution_id)


async def test_too_many_idle_connections_push_out_the_oldest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("planwave.api.server._most_idle", lambda: 3)
    with running_server() as running:
        async with AsyncExitStack() as stack:
            raws = [await stack.enter_async_context(raw_connection(running)) for _ in range(3)]
            for raw in raws:  # a server may take on who connected later, and answer, before others
                assert await healthy(raw)
            assert await healthy(raws[0])  # not the oldest any more
            raws.append(await stack.enter_async_context(raw_connection(running)))
            assert await raws[1].is_closed()
            for n in (0, 2, 3):
                assert await healthy(raws[n])


def test_a_crowd_counts_each_once() -> None:
    class Idle:
        def __init__(self) -> None:
            self.transport = self
            self.is_cut = False

        def abort(self) -> None:
            self.is_cut = True

    crowd = Crowd(2)
    one, two, three = Idle(), Idle(), Idle()
    for each in (one, two, one, two, one):
        crowd.join(each)  # pyright: ignore[reportArgumentType]
    crowd.leave(two)  # pyright: ignore[reportArgumentType]
    crowd.join(three)  # pyright: ignore[reportArgumentType]
    assert not any(each.is_cut for each in (one, two, three))
