"""Links as the command line lists them: all of them, however many there are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from planwave.cli.commands.executions.links import LinkBackend, LocalLinks, RemoteLinks
from planwave.client import AsyncClient
from planwave.ids import new_id
from planwave.storage.links import LinkRecord
from tests.support.server.running_server import RunningServer, running_server

AT = "2026-01-01T00:00:00.000000+00:00"
LATER = "2999-01-01T00:00:00.000000+00:00"
COUNT = 450


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server() as running:
        yield running


async def test_all_links_are_listed_not_only_those_of_the_first_page(server: RunningServer) -> None:
    async def fill() -> list[str]:
        links = server.service.links._store.links
        own = [new_id() for _ in range(COUNT)]
        for each in own:
            await links.create(LinkRecord(each, each, "result", "x", AT, LATER))
        return own

    async def listed(links: LinkBackend) -> list[str]:
        return [each["link_id"] for each in await links.all()]

    own = await server.on_loop(fill())
    assert await server.on_loop(listed(LocalLinks(server.service))) == sorted(own, reverse=True)
    async with AsyncClient(server.base_url) as client:
        assert await listed(RemoteLinks(client)) == sorted(own, reverse=True)
