"""Requests over a network in memory, and over loopback where the operator allows it."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from planwave.errors import LimitExceeded, OutboundError
from planwave.outbound.client import OutboundClient, OutboundLimits
from tests.support.outbound.fake_network import PUBLIC, FakeNetwork, redirect, response
from tests.support.outbound.loopback_server import loopback_server

PUBLIC_NAMES = {"public.test": [PUBLIC], "other.test": ["93.184.216.35"]}


async def refused(network: FakeNetwork, url: str, *allowed: str, **options: Any) -> OutboundError:
    with pytest.raises(OutboundError) as caught:
        await network.client(*allowed).request("GET", url, **options)
    return caught.value


# -- addresses


async def test_the_connection_goes_to_the_vetted_address_under_the_name_of_the_url() -> None:
    network = FakeNetwork(PUBLIC_NAMES)
    found = await network.client().request("GET", "https://public.test/a?b=1")
    assert (found.status, found.body, found.url) == (200, b"hi", "https://public.test/a")
    assert network.connections == [(PUBLIC, 443)]
    assert network.tls_names == ["public.test"]
    assert network.requests[0].startswith(b"GET /a?b=1 HTTP/1.1\r\nHost: public.test\r\n")


NAMES = {
    "localhost": ["127.0.0.1"],
    "localhost.": ["127.0.0.1"],
    "metadata.google.internal": ["169.254.169.254"],
    "127.0.0.1.nip.io": ["127.0.0.1"],
    "intranet.test": ["10.0.0.1"],
    "mixed.test": [(PUBLIC, "10.0.0.1")],
    "multi.test": [(PUBLIC, "10.0.0.1")],
    "v6.test": ["fd00:ec2::254"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "scoped.test": ["fe80::1%eth0"],
    "rebind.test": [PUBLIC, "127.0.0.1"],
    "public.test": [PUBLIC],
    "example.com": [PUBLIC],
    "evil.test": [PUBLIC],
}
REFUSED = [
    "http://localhost/", "http://localhost./", "http://metadata.google.internal/", "http://0/",
    "http://127.0.0.1.nip.io/", "https://intranet.test/", "https://mixed.test/", "http://v6.test/",
    "http://mapped.test/", "http://scoped.test/", "http://127.0.0.1/", "http://[::1]/",
    "http://[::ffff:127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/",
    "http://169.254.169.254/latest/meta-data/", "http://168.63.129.16/", "http://2130706433/",
    "http://0x7f.1/", "http://127。0。0。1/", "http://127.0.0.1#@example.com/",
    "http://user:pw@example.com/", "http://example.com:6379/", "ftp://example.com/",
]  # fmt: skip


@pytest.mark.parametrize("url", REFUSED)
async def test_a_refused_url_opens_no_connection(url: str) -> None:
    network = FakeNetwork(NAMES)
    error = await refused(network, url)
    assert error.code in ("address-refused", "url-refused")
    assert not error.retryable
    assert network.connections == []


async def test_a_name_is_resolved_once_so_that_a_second_answer_changes_nothing() -> None:
    network = FakeNetwork({"rebind.test": [PUBLIC, "127.0.0.1"]})
    await network.client().request("GET", "http://rebind.test/")
    assert network.resolved == ["rebind.test"]
    assert network.connections == [(PUBLIC, 80)]
    error = await refused(network, "http://rebind.test/")
    assert (error.code, len(network.connections)) == ("address-refused", 1)


async def test_the_operator_allows_a_private_service_by_host_and_port() -> None:
    network = FakeNetwork({"wiki.internal": ["10.0.0.1"]})
    client = network.client("wiki.internal:8080", "127.0.0.1:81")
    await client.request("GET", "http://wiki.internal:8080/")
    await client.request("GET", "http://127.0.0.1:81/")
    assert network.connections == [("10.0.0.1", 8080), ("127.0.0.1", 81)]
    for url in ("http://wiki.internal/", "http://127.0.0.1/", "http://10.0.0.1:8080/"):
        await refused(network, url, "wiki.internal:8080", "127.0.0.1:81")
    error = await refused(network, "http://wiki.internal/")
    assert "'wiki.internal:80' to the setting allowed_outbound" in (error.hint or "")
    assert len(network.connections) == 2


async def test_an_allowed_service_may_not_lead_to_metadata() -> None:
    network = FakeNetwork({"wiki.internal": ["169.254.169.254"]})
    error = await refused(network, "http://wiki.internal/", "wiki.internal", "169.254.169.254")
    assert error.code == "address-refused"
    await refused(network, "http://169.254.169.254/", "169.254.169.254")
    assert network.connections == []


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    network = FakeNetwork(PUBLIC_NAMES)
    await network.client().request("GET", "http://public.test/")
    assert network.connections == [(PUBLIC, 80)]


async def test_an_unknown_host_and_one_without_an_address_cannot_be_reached() -> None:
    for names in ({}, {"gone.test": [()]}):
        network = FakeNetwork(names)
        error = await refused(network, "http://gone.test/")
        assert (error.code, error.retryable) == ("host-unreachable", True)
        assert "gone.test" in error.message


# -- redirects


@pytest.mark.parametrize(
    "location",
    [
        "http://intranet.test/", "http://169.254.169.254/latest", "http://localhost/",
        "file:///etc/passwd", "ftp://example.com/", "//127.0.0.1/", "http://example.com:6379/",
        "http://u:p@example.com/", "http://2130706433/", "http://[::ffff:10.0.0.1]/",
    ],
)  # fmt: skip
async def test_a_redirect_is_vetted_like_the_first_url(location: str) -> None:
    network = FakeNetwork(NAMES, redirect(location))
    error = await refused(network, "https://public.test/redir")
    assert error.code in ("address-refused", "url-refused")
    assert network.connections == [(PUBLIC, 443)]


async def test_a_redirect_to_another_origin_drops_headers_that_may_hold_credentials() -> None:
    network = FakeNetwork(PUBLIC_NAMES, redirect("https://other.test/b"), response())
    headers = {"Authorization": "Bearer s", "Cookie": "s=1", "X-Api-Key": "s", "Accept": "a/b"}
    await network.client().request("GET", "https://public.test/", headers=headers)
    first, second = (each.decode().lower() for each in network.requests)
    for name in ("authorization", "cookie", "x-api-key", "accept"):
        assert f"\r\n{name}: " in first
        assert (f"\r\n{name}: " in second) is (name == "accept")
    assert "host: other.test" in second


async def test_a_redirect_within_an_origin_keeps_headers() -> None:
    network = FakeNetwork(PUBLIC_NAMES, redirect("/b"), response())
    headers = {"Authorization": "Bearer s"}
    found = await network.client().request("GET", "https://public.test/a", headers=headers)
    assert found.url == "https://public.test/b"
    assert all(b"Authorization: Bearer s" in each for each in network.requests)


@pytest.mark.parametrize(
    ("status", "method"), [("303 See Other", b"GET"), ("307 Temporary Redirect", b"POST")]
)
async def test_a_redirected_post_keeps_its_method_as_the_status_says(
    status: str, method: bytes
) -> None:
    network = FakeNetwork(PUBLIC_NAMES, redirect("/b", status), response())
    await network.client().request("POST", "http://public.test/a", content=b"body")
    assert network.requests[-1].startswith(method + b" /b ")
    assert (b"body" in network.requests[-1]) is (method == b"POST")


async def test_redirects_are_followed_up_to_the_limit() -> None:
    network = FakeNetwork(PUBLIC_NAMES, redirect("/again"))
    with pytest.raises(LimitExceeded, match="limit fetch_redirects") as exceeded:
        await network.client(redirects=3).request("GET", "http://public.test/")
    assert (exceeded.value.value, len(network.requests)) == (3, 4)


async def test_a_redirect_that_leads_nowhere_is_an_invalid_response() -> None:
    network = FakeNetwork(PUBLIC_NAMES, redirect("http://public.test:x/"))
    assert (await refused(network, "http://public.test/")).code == "invalid-response"


async def test_requests_share_no_cookies() -> None:
    network = FakeNetwork(PUBLIC_NAMES, response(set_cookie="s=1; Path=/"))
    client = network.client()
    for _ in range(2):
        await client.request("GET", "http://public.test/")
    assert not any(b"ookie" in each for each in network.requests)


async def test_a_redirect_to_a_host_that_the_operator_does_not_list_is_refused() -> None:
    network = FakeNetwork(PUBLIC_NAMES, redirect("https://other.test/"))
    with pytest.raises(OutboundError, match=r"'other\.test' is not among"):
        await network.client(hosts=["public.test"]).request("GET", "https://public.test/")
    assert (network.resolved, len(network.connections)) == (["public.test"], 1)


# -- size and time


@pytest.mark.timeout(10)
async def test_a_response_of_many_headers_keeps_nothing_busy() -> None:
    lines = "".join(f"x{number}: {number}\r\n" for number in range(20_000))
    head = f"HTTP/1.1 200 OK\r\nA: 1\r\na: 2\r\n{lines}content-length: 0\r\n\r\n"
    network = FakeNetwork(PUBLIC_NAMES, head.encode())
    found = await network.client(header_bytes=10**6).request("GET", "http://public.test/")
    assert (len(found.headers), found.headers["a"], found.headers["x19999"]) == (
        20_002, "1, 2", "19999",
    )  # fmt: skip


def chunked(piece: bytes, count: int) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    for _ in range(count):
        yield f"{len(piece):x}\r\n".encode() + piece + b"\r\n"
    yield b"0\r\n\r\n"


async def test_a_body_at_the_limit_is_read_and_one_byte_more_is_refused() -> None:
    for answer in (response(b"x" * 1000), lambda: chunked(b"x" * 100, 10)):
        found = await FakeNetwork(PUBLIC_NAMES, answer).client(body_bytes=1000).request(
            "GET", "http://public.test/"
        )  # fmt: skip
        assert len(found.body) == 1000
        with pytest.raises(LimitExceeded, match="limit fetch_bytes"):
            await (
                FakeNetwork(PUBLIC_NAMES, answer)
                .client(body_bytes=999)
                .request("GET", "http://public.test/")
            )


@pytest.mark.parametrize("name", ["x-long", "content-encoding", "location"])
async def test_headers_over_the_limit_are_refused(name: str) -> None:
    network = FakeNetwork(PUBLIC_NAMES, response(**{name: "y" * 20_000}))
    with pytest.raises(LimitExceeded, match="limit fetch_header_bytes"):
        await network.client(header_bytes=10_000).request("GET", "http://public.test/")


async def test_an_endless_body_is_left_at_the_limit() -> None:
    network = FakeNetwork(PUBLIC_NAMES, lambda: chunked(b"x" * 1024, 10**9))
    with pytest.raises(LimitExceeded):
        await network.client(body_bytes=100_000).request("GET", "http://public.test/")
    assert network.bytes_read < 110_000


async def test_an_announced_size_over_the_limit_is_refused_before_the_body_is_read() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n"
    network = FakeNetwork(PUBLIC_NAMES, lambda: iter((head, *(b"x" * 1000,) * 1000)))
    with pytest.raises(LimitExceeded) as exceeded:
        await network.client(body_bytes=1000).request("GET", "http://public.test/")
    assert exceeded.value.met == 99999999999
    assert network.bytes_read == len(head)


async def test_a_compressed_body_is_decoded_up_to_the_limit_only() -> None:
    bomb = gzip.compress(bytes(64 * 1024 * 1024), 9)
    network = FakeNetwork(PUBLIC_NAMES, response(bomb, content_encoding="gzip"))
    client = network.client(body_bytes=1024 * 1024)
    tracemalloc.start()
    try:
        with pytest.raises(LimitExceeded):
            await client.request("GET", "http://public.test/")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 1024 * 1024


@pytest.mark.parametrize("cut", [1, 7, 10_000])
async def test_gzip_is_decoded_whatever_the_pieces_are(cut: int) -> None:
    body = gzip.compress(b"first ") + gzip.compress(b"second")
    whole = response(body, content_encoding="gzip")
    pieces = [whole[at : at + cut] for at in range(0, len(whole), cut)]
    network = FakeNetwork(PUBLIC_NAMES, lambda: iter(pieces))
    found = await network.client(body_bytes=12).request("GET", "http://public.test/")
    assert found.body == b"first second"


@pytest.mark.parametrize(
    "answer",
    [
        response(b"no gzip", content_encoding="gzip"),
        response(gzip.compress(b"x" * 1000, mtime=0)[:-9], content_encoding="gzip"),
        response(b"x", content_encoding="br"),
        response(b"x", content_encoding="gzip, gzip"),
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
        b"",
    ],
    ids=["no gzip", "cut gzip", "br", "twice", "no http", "short", "nothing"],
)
async def test_a_damaged_response_is_an_invalid_response(answer: bytes) -> None:
    error = await refused(FakeNetwork(PUBLIC_NAMES, answer), "http://public.test/")
    assert (error.code, error.retryable) == ("invalid-response", True)


async def test_a_silent_server_and_a_silent_resolver_end_at_their_time_limits() -> None:
    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        raise AssertionError

    async with loopback_server(None) as address:
        silent = OutboundClient([address], OutboundLimits(total_s=0.05))
        with pytest.raises(OutboundError) as caught:
            await silent.request("GET", f"http://{address}/")
    assert (caught.value.code, caught.value.retryable) == ("fetch-timeout", True)
    assert "fetch_s" in (caught.value.hint or "")
    unresolved = OutboundClient(limits=OutboundLimits(connect_s=0.05), resolver=never)
    with pytest.raises(OutboundError) as caught:
        await unresolved.request("GET", "http://public.test/")
    assert caught.value.code == "fetch-timeout"
    assert "fetch_connect_s" in (caught.value.hint or "")


# -- a real connection


async def test_a_loopback_server_that_the_operator_allowed_is_reached() -> None:
    async with loopback_server(response(b"here")) as address:
        found = await OutboundClient([address]).request("GET", f"http://{address}/")
        assert found.body == b"here"
        with pytest.raises(OutboundError) as unnamed:
            await OutboundClient().request("GET", f"http://{address}/")
    assert unnamed.value.code == "url-refused"


async def test_a_closed_port_cannot_be_reached() -> None:
    async with loopback_server(None) as address:
        pass
    with pytest.raises(OutboundError) as caught:
        await OutboundClient([address]).request("GET", f"http://{address}/")
    assert caught.value.code == "host-unreachable"
