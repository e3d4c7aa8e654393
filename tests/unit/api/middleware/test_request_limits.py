from collections.abc import Iterator
from typing import Any

import pytest

from planwave.api.middleware.request_limits import size_of_head
from tests.support.server.raw_http import SHORT_WAIT_S, RawConnection, raw_connection
from tests.support.server.running_server import NO_RATE_LIMITS, RunningServer, running_server

LIMITS = NO_RATE_LIMITS.model_copy(
    update={"body_bytes": 2048, "header_bytes": 1024, "body_read_s": 15.0}
)
GOAL = b'{"prompt": "texts"}'


@pytest.fixture(scope="module")
def tight() -> Iterator[RunningServer]:
    with running_server(limits=LIMITS) as running:
        yield running


def body_of(size: int) -> bytes:
    """A plan's body of exactly so many bytes."""
    return GOAL[:-1] + b" " * (size - len(GOAL)) + b"}"


async def posted(raw: RawConnection, body: bytes, *more: str) -> tuple[int, dict[str, Any]]:
    await raw.send("POST", "/api/plan", "Content-Type: application/json", *more, body=body)
    answer = await raw.read_response()
    return answer.status, answer.json()


async def test_a_body_of_the_limit_is_read_and_one_byte_more_is_not(tight: RunningServer) -> None:
    async with raw_connection(tight) as raw:
        assert (await posted(raw, body_of(2048), "Content-Length: 2048"))[0] == 201
    async with raw_connection(tight) as raw:
        status, problem = await posted(raw, body_of(2049), "Content-Length: 2049")
        assert (status, problem["code"]) == (413, "limit-exceeded")
        assert (problem["limit"], problem["value"], problem["met"]) == ("body_bytes", 2048, 2049)
        assert await raw.is_closed()


async def test_chunks_up_to_the_limit_are_read_and_one_byte_more_is_not(
    tight: RunningServer,
) -> None:
    for size, expected in ((2048, 201), (2049, 413)):
        async with raw_connection(tight) as raw:
            await raw.send(
                "POST", "/api/plan", "Content-Type: application/json", "Transfer-Encoding: chunked"
            )
            body = body_of(size)
            await raw.write(b"400\r\n" + body[:1024] + b"\r\n")
            await raw.write(b"%x\r\n" % (size - 1024) + body[1024:] + b"\r\n0\r\n\r\n")
            answer = await raw.read_response()
            assert answer.status == expected
            if expected == 413:
                assert await raw.is_closed()
            else:
                assert not await raw.is_closed(SHORT_WAIT_S)


async def test_a_refused_upload_can_read_why(
    tight: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planwave.api.middleware.request_limits._LINGER_S", 45.0)
    size = 20_000_000
    async with raw_connection(tight) as raw:
        await raw.send(
            "POST", "/api/plan", "Content-Type: application/json", f"Content-Length: {size}"
        )
        await raw.write(b" " * size)  # more than any buffer holds: it has to be taken off the wire
        answer = await raw.read_response()
        assert (answer.status, answer.json()["met"]) == (413, size)
        assert await raw.is_closed()


async def test_who_asks_before_sending_is_refused_before_sending(tight: RunningServer) -> None:
    async with raw_connection(tight) as raw:
        await raw.send("POST", "/api/plan", "Content-Length: 5000", "Expect: 100-continue")
        answer = await raw.read_response()
        assert answer.status == 413
        assert await raw.is_closed()


async def test_f59_a_body_that_dribbles_has_its_time(tight: RunningServer) -> None:
    async with raw_connection(tight) as raw:
        await raw.send(
            "POST", "/api/plan", "Content-Type: application/json", f"Content-Length: {len(GOAL)}"
        )
        for byte in GOAL[:3]:
            await raw.write(bytes([byte]))
            await tight.advance_time(4)
        told = await tight.run_advancing_time(raw.read_response())
        assert (told.status, told.json()["code"]) == (408, "request-timeout")
        assert "PLANWAVE_LIMIT_BODY_READ_S" in told.json()["hint"]
        assert await raw.is_closed()


async def test_a_head_of_the_limit_is_read_and_one_byte_more_is_not(tight: RunningServer) -> None:
    for excess, expected in ((0, 200), (1, 431)):
        async with raw_connection(tight) as raw:
            scope = {
                "method": "GET",
                "path": "/healthz",
                "query_string": b"",
                "headers": [(b"host", raw.host.encode()), (b"x-pad", b"")],
            }
            pad = "x" * (1024 - size_of_head(scope) + excess)
            await raw.send("GET", "/healthz", f"X-Pad: {pad}")
            answer = await raw.read_response()
            assert answer.status == expected
        if expected == 431:
            problem = answer.json()
            assert (problem["limit"], problem["value"], problem["met"]) == (
                "header_bytes", 1024, 1025,
            )  # fmt: skip


async def test_a_long_address_counts_as_head(tight: RunningServer) -> None:
    async with raw_connection(tight) as raw:
        await raw.send("GET", "/healthz?" + "q" * 1024)
        assert (await raw.read_response()).status == 431


async def test_a_connection_goes_on_after_a_body_was_read(tight: RunningServer) -> None:
    async with raw_connection(tight) as raw:
        for _ in range(2):
            status, _ = await posted(raw, GOAL, f"Content-Length: {len(GOAL)}")
            assert status == 201
