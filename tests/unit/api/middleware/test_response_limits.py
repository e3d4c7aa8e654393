"""Large bodies go out in pieces, and their bytes count until the client has taken them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import count

import pytest
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from planwave.api.auth import PRINCIPAL
from planwave.api.middleware.response_limits import ResponseLimitsMiddleware
from planwave.api.problems import ProblemError
from planwave.api.rate_limit import BytesInFlight
from planwave.api.responses import PIECE_BYTES, pieces_response
from planwave.principals import Principal

_BODY = b"0123456789abcdef" * (PIECE_BYTES // 4)
"""Four pieces."""


class Client:
    """A client that takes one message after the other, each when the test lets it."""

    def __init__(self, *, reads: bool = True) -> None:
        self.messages: list[Message] = []
        self.room = asyncio.Semaphore(1_000 if reads else 1)

    async def send(self, message: Message) -> None:
        await self.room.acquire()
        self.messages.append(message)

    async def receive(self) -> Message:
        return await asyncio.get_running_loop().create_future()

    @property
    def pieces(self) -> list[bytes]:
        return [m["body"] for m in self.messages if m["type"] == "http.response.body"]

    @property
    def status(self) -> int:
        return self.messages[0]["status"]


def scope_of(principal: str = "one") -> Scope:
    return {"type": "http", "method": "GET", "path": "/", PRINCIPAL: Principal("token", principal)}


async def requested(
    in_flight: BytesInFlight, client: Client, body: bytes = _BODY, principal: str = "one"
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(body)(scope, receive, send)

    middleware = ResponseLimitsMiddleware(app, in_flight)
    await middleware(scope_of(principal), client.receive, client.send)


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, len(_BODY)])
async def test_a_body_arrives_whole_in_pieces_of_at_most_their_size(size: int) -> None:
    client = Client()
    await requested(BytesInFlight(1), client, _BODY[:size])
    assert b"".join(client.pieces) == _BODY[:size]
    assert max(map(len, client.pieces)) <= PIECE_BYTES
    assert [m.get("more_body", False) for m in client.messages[1:]][-1] is False


async def test_bytes_count_until_a_slow_reader_has_taken_them_or_is_gone() -> None:
    in_flight, slow, gone = BytesInFlight(2 * len(_BODY)), Client(reads=False), Client(reads=False)
    reading = asyncio.get_running_loop().create_task(requested(in_flight, slow))
    leaving = asyncio.get_running_loop().create_task(
        requested(in_flight, gone, principal="another")
    )
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert in_flight.held == 2 * len(_BODY)
    leaving.cancel()
    await asyncio.wait([leaving])
    assert in_flight.held == len(_BODY)
    for _ in range(1_000):
        slow.room.release()
    await reading
    assert in_flight.held == 0


async def test_what_does_not_fit_is_503_with_retry_after_and_nothing_of_it_is_sent() -> None:
    in_flight, slow = BytesInFlight(len(_BODY)), Client(reads=False)
    reading = asyncio.get_running_loop().create_task(requested(in_flight, slow))
    await asyncio.sleep(0)
    refused, small = Client(), Client()
    await requested(in_flight, refused, principal="another")
    assert refused.status == 503
    assert dict(refused.messages[0]["headers"])[b"retry-after"] == b"5"
    assert json.loads(b"".join(refused.pieces))["code"] == "server-busy"
    await requested(in_flight, small, b"small", principal="another")
    assert small.pieces == [b"small"]
    reading.cancel()
    await asyncio.wait([reading])
    served = Client()
    await requested(in_flight, served, principal="another")
    assert served.status == 200


async def test_a_single_response_may_be_larger_than_the_limit() -> None:
    client = Client()
    await requested(BytesInFlight(1), client)
    assert client.status == 200


async def test_one_principal_holds_at_most_half() -> None:
    in_flight = BytesInFlight(3 * len(_BODY))
    reading = asyncio.get_running_loop().create_task(requested(in_flight, Client(reads=False)))
    await asyncio.sleep(0)
    refused, other = Client(), Client()
    await requested(in_flight, refused)
    await requested(in_flight, other, principal="another")
    assert (refused.status, other.status) == (503, 200)
    reading.cancel()
    await asyncio.wait([reading])


async def test_the_head_of_a_stream_is_not_kept_back() -> None:
    client, begun = Client(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        begun.set()
        await receive()

    middleware = ResponseLimitsMiddleware(app, BytesInFlight(1))
    task = asyncio.get_running_loop().create_task(
        middleware(scope_of(), client.receive, client.send)
    )
    await begun.wait()
    assert client.status == 200
    task.cancel()
    await asyncio.wait([task])


async def test_other_connections_pass_through() -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    client = Client()
    middleware = ResponseLimitsMiddleware(app, BytesInFlight(1))
    await middleware({"type": "lifespan"}, client.receive, client.send)
    assert seen == ["lifespan"]


async def sent(response: Response) -> Client:
    client = Client()
    await response(scope_of(), client.receive, client.send)
    return client


async def test_rendered_pieces_are_held_until_they_are_sent() -> None:
    in_flight = BytesInFlight(len(_BODY))
    rendered = (bytes([48 + number % 10]) * 100_000 for number in range(5))
    response = await pieces_response(rendered, in_flight.hold("one"))
    assert in_flight.held == 500_000
    client = await sent(response)
    assert b"".join(client.pieces) == b"".join(bytes([48 + n]) * 100_000 for n in range(5))
    assert max(map(len, client.pieces)) <= PIECE_BYTES
    assert in_flight.held == 0


async def test_nothing_is_held_of_what_does_not_fit_or_cannot_be_rendered() -> None:
    in_flight = BytesInFlight(2**21)
    in_flight.hold("another").grow(2**20)

    def broken() -> Iterator[bytes]:
        yield _BODY
        raise RuntimeError("it broke")

    with pytest.raises(RuntimeError, match="it broke"):
        await pieces_response(broken(), in_flight.hold("one"))
    endless = (_BODY for _ in count())
    with pytest.raises(ProblemError, match="sending"):
        await pieces_response(endless, in_flight.hold("one"))
    assert in_flight.held == 2**20
