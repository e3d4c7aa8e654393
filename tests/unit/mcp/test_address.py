"""Servers at a URL: which addresses are reached, and responses that are not as they should be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from planwave.errors import McpError
from planwave.mcp.connection import Connection
from tests.support.mcp.legacy_http_server import LegacyServer, legacy_http_server, response
from tests.support.mcp.servers import no_progress, servers_of


@pytest.fixture
async def server() -> AsyncIterator[LegacyServer]:
    async with legacy_http_server() as running:
        yield running


async def start_failure(table: dict[str, Any], **environment: str) -> McpError:
    with pytest.raises(McpError) as caught:
        async with servers_of(environment=environment, box=table).connection("box"):
            pass
    assert caught.value.code == "mcp-start-failed"
    return caught.value


async def act(connection: Connection) -> Any:
    tool = connection.listed.tools["act"]
    return await connection.call(tool, {}, key="k", progress=no_progress)


async def test_a_session_that_the_server_has_forgotten_is_begun_again_without_a_failed_call(
    server: LegacyServer,
) -> None:
    async with servers_of(box={"url": server.url}).connection("box") as connection:
        assert await act(connection) == "s1"
        server.sessions.clear()
        assert await act(connection) == "s2"
    assert server.calls == ["s1", "s2"]


async def test_headers_come_from_the_environment(server: LegacyServer) -> None:
    table = {"url": server.url, "header_env": {"Authorization": "BOX_AUTH"}}
    servers = servers_of(environment={"BOX_AUTH": "Bearer t0p-secret"}, box=table)
    async with servers.connection("box") as connection:
        await act(connection)
    assert len(server.heads) >= 4
    assert all("authorization: bearer t0p-secret" in head.lower() for head in server.heads)


async def test_a_header_that_cannot_be_sent_is_refused_without_its_value() -> None:
    table = {"url": "http://127.0.0.1:1/", "header_env": {"Authorization": "BOX_AUTH"}}
    error = await start_failure(table, BOX_AUTH="se\r\nX-Evil: cret")
    assert "the value of the header 'Authorization' cannot be sent" in error.message
    assert "cret" not in f"{error.message} {error.hint}"
    missing = await start_failure(table)
    assert "needs the environment variable BOX_AUTH" in missing.message


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://169.254.169.254/mcp", "the metadata service of a cloud"),
        ("http://[fe80::1]/mcp", "a link-local address"),
        ("http://0.0.0.0:9/mcp", "an unspecified address"),
        ("ftp://example.com/mcp", "only http:// and https:// are allowed"),
        ("http://user:word@127.0.0.1/mcp", "it holds credentials"),
        ("http://2130706433/mcp", "is not an IP address"),
    ],
)
async def test_some_addresses_are_refused_even_to_an_operator(url: str, reason: str) -> None:
    error = await start_failure({"url": url})
    assert reason in error.message
    assert "word" not in error.message


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (response(b"", status="401 Unauthorized"), "HTTP status 401"),
        (response(b"", status="500 Oops"), "HTTP status 500"),
        (
            response(b"", status="307 Go", extra="Location: http://169.254.169.254/latest\r\n"),
            "not followed",
        ),
        (response(b"{}", extra="Content-Encoding: gzip\r\n"), "compressed"),
        (response(b"x" * 17_000_000), "a message of more than 16777216 bytes"),
        (b"what?\r\n\r\n", ""),
    ],
    ids=["unauthorized", "broken", "redirect", "compressed", "large", "no http"],
)
async def test_a_wrong_answer_says_what_is_wrong(
    server: LegacyServer, wrong: bytes, reason: str
) -> None:
    server.wrong = wrong
    error = await start_failure({"url": server.url})
    assert reason in error.message


async def test_nobody_listening_is_an_error_at_once() -> None:
    async with legacy_http_server() as gone:
        url = gone.url
    assert "did not start" in (await start_failure({"url": url})).message


async def test_a_large_answer_fails_its_call_only(server: LegacyServer) -> None:
    async with servers_of(box={"url": server.url}).connection("box") as connection:
        server.wrong = response(b"x" * 17_000_000)
        with pytest.raises(McpError, match="a message of more than 16777216 bytes"):
            await act(connection)
        server.wrong = None
        assert await act(connection) == "s1"


async def test_the_code_of_a_closed_connection_is_a_refusal_if_the_server_sent_it(
    server: LegacyServer,
) -> None:
    server.refuses = True
    async with servers_of(box={"url": server.url}).connection("box") as connection:
        for _ in range(2):
            with pytest.raises(McpError, match="refused the call: the backend said no") as caught:
                await act(connection)
            assert caught.value.code == "mcp-call-failed"
        server.refuses = False
        assert await act(connection) == "s1"
        server.wrong = response(b": nothing\n\n").replace(b"application/json", b"text/event-stream")
        with pytest.raises(McpError) as caught:
            await act(connection)
        assert caught.value.code == "mcp-connection-lost"
