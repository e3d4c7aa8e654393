import asyncio
from collections.abc import Iterator

import pytest

from planwave.settings import Limits
from tests.support.server.raw_http import SHORT_WAIT_S, raw_connection
from tests.support.server.running_server import NO_RATE_LIMITS, RunningServer, running_server
from tests.support.server.uploads import Uploads

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


async def test_chunked_body_is_limited(
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


async def test_rejected_upload_can_read_the_response(
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


async def test_expect_continue_over_limit_is_rejected_before_body(tight: RunningServer) -> None:
    async with raw_connection(tight) as raw:
        await raw.send("POST", "/api/plan", "Content-Length: 5000", "Expect: 100-continue")
        answer = await raw.read_response()
        assert answer.status == 413
        assert await raw.is_closed()


async def test_f59_slow_body_times_out(tight: RunningServer) -> None:
    async with raw_connection(tight) as raw:
        await raw.send(
            "POST", "/api/plan", "Content-Type: application/json", f"Content-Length: {len(GOAL)}"
        )
        for byte in GOAL[:3]:
            await raw.write(bytes([byte]))
            await tight.advance_time(4)
        received = await tight.run_advancing_time(raw.read_response())
        assert (received.status, received.json()["code"]) == (408, "request-timeout")
        assert "PLANWAVE_LIMIT_BODY_READ_S" in received.json()["hint"]
        assert await raw.is_closed()


async def test_long_url_counts_against_header_limit(tight: RunningServer) -> None:
    async with raw_connection(tight) as raw:
        await raw.send("GET", "/healthz?" + "q" * 1024)
        assert (await raw.read_response()).status == 431


@pytest.mark.parametrize(
    ("path", "most"),
    [("/api/session", 64 * 1024), ("/hooks/one", 16 * 1024), ("/hooks/{}", 64 * 1024)],
    ids=["logins", "one webhook", "webhooks"],
)
async def test_bodies_of_unknown_senders_are_limited_together(path: str, most: int) -> None:
    limits = Limits(
        unauthenticated_bytes=64 * 1024, webhook_unauthenticated_bytes=16 * 1024, webhook_bytes=4096
    )
    uploads = Uploads(limits)
    async with asyncio.TaskGroup() as tasks:
        for number in range(200):
            tasks.create_task(uploads.send(path.format(number), [1024] * 4))
        await uploads.settle()
        assert most - 4096 <= uploads.held <= uploads.most <= most
        assert {error.status_hint for error in uploads.refusals} == {503}
        uploads.end.set()
    assert uploads.held == 0
    async with asyncio.TaskGroup() as tasks:  # nothing of them is counted any more
        uploads.refusals.clear()
        for number in range(most // 4096):
            tasks.create_task(uploads.send(path.format(number), [4096]))
    assert not uploads.refusals


async def test_bodies_of_known_senders_are_not_counted_among_those_of_unknown_ones() -> None:
    limits = Limits(unauthenticated_bytes=8192, webhook_bytes=4096)
    uploads = Uploads(limits, knows_sender=lambda _: True)
    async with asyncio.TaskGroup() as tasks:
        for number in range(50):
            tasks.create_task(uploads.send(f"/hooks/{number}", [4096]))
            await uploads.settle()
        assert (uploads.held, uploads.refusals) == (50 * 4096, [])
        uploads.end.set()


async def test_login_over_its_limit_is_refused_before_it_is_read(tight: RunningServer) -> None:
    async with raw_connection(tight) as raw:
        await raw.send(
            "POST", "/api/session", "Content-Type: application/json", "Content-Length: 4097"
        )
        answer = await raw.read_response()
        assert (answer.status, answer.json()["limit"]) == (413, "session_bytes")
    async with raw_connection(tight) as raw:
        await raw.send(
            "POST", "/api/session", "Content-Type: application/json", "Transfer-Encoding: chunked"
        )
        for _ in range(5):
            await raw.write(b"400\r\n" + b" " * 1024 + b"\r\n")
        answer = await raw.read_response()
        assert (answer.status, answer.json()["limit"]) == (413, "session_bytes")
