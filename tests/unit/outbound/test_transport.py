"""The transport below any client of httpx2: it vets what the client follows by itself."""

from __future__ import annotations

import httpcore2
import httpx2
import pytest

from planwave.errors import OutboundError
from planwave.outbound.transport import VettingBackend, VettingTransport
from planwave.outbound.urls import AllowedServices
from tests.support.outbound.fake_network import PUBLIC, FakeNetwork, redirect, response

NAMES = {
    "public.test": [PUBLIC],
    "inner.test": ["10.0.0.1"],
    "two.test": [("2606:4700::1", PUBLIC)],
}


def client_on(network: FakeNetwork) -> httpx2.AsyncClient:
    allowed = AllowedServices()
    backend = VettingBackend(allowed, network.resolve, network)
    transport = VettingTransport(backend, allowed)
    return httpx2.AsyncClient(transport=transport, follow_redirects=True)


@pytest.mark.parametrize("location", ["http://inner.test/", "http://[::1]/", "ftp://public.test/"])
async def test_a_client_that_follows_redirects_by_itself_is_stopped(location: str) -> None:
    network = FakeNetwork(NAMES, redirect(location))
    async with client_on(network) as client:
        with pytest.raises(OutboundError):
            await client.get("http://public.test/")
    assert network.connections == [(PUBLIC, 80)]


async def test_errors_are_those_of_httpx2() -> None:
    async with client_on(FakeNetwork(NAMES, b"garbage\r\n\r\n")) as client:
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.get("http://public.test/")
    async with client_on(FakeNetwork()) as client:
        with pytest.raises(httpx2.ConnectError, match=r"'unknown\.test' was not found"):
            await client.get("http://unknown.test/")


async def test_the_next_vetted_address_is_tried_where_one_does_not_connect() -> None:
    class HalfReachable(FakeNetwork):
        async def connect_tcp(self, host: str, *args: object, **options: object) -> object:  # type: ignore[override]
            if ":" in host:
                raise httpcore2.ConnectError("no route")
            return await super().connect_tcp(host, *args, **options)  # type: ignore[arg-type]

    network = HalfReachable(NAMES, response())
    async with client_on(network) as client:
        assert (await client.get("http://two.test/")).text == "hi"
    assert network.connections == [(PUBLIC, 80)]


async def test_a_unix_socket_is_never_opened() -> None:
    network = FakeNetwork(NAMES)
    backend = VettingBackend(AllowedServices(), network.resolve, network)
    with pytest.raises(httpcore2.ConnectError):
        await backend.connect_unix_socket("/var/run/docker.sock")
