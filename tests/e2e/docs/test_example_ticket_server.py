"""The example of an MCP server: a ticket system that acts once for each key."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import McpError
from planwave.mcp.connection import Connection
from tests.support.mcp.servers import no_progress, servers_of, ticket_server


@pytest.fixture
async def tickets(tmp_path: Path) -> AsyncIterator[Connection]:
    async with servers_of(tickets=ticket_server(tmp_path)).connection("tickets") as connection:
        yield connection


async def call(tickets: Connection, tool: str, key: str = "", **arguments: Any) -> Any:
    found = tickets.listed.tools[tool]
    return await tickets.call(found, arguments, key=key, progress=no_progress)


async def test_tickets_are_created_once_for_each_key_found_and_commented(
    tickets: Connection, tmp_path: Path
) -> None:
    tools = tickets.listed.tools
    assert {name: (tool.reads_only, tool.takes_key) for name, tool in tools.items()} == {
        "search_tickets": (True, False),
        "create_ticket": (False, True),
        "comment_ticket": (False, True),
    }
    disk = {"title": "Disk is full", "text": "Server 7 reports 100 %.", "priority": "high"}
    made = await call(tickets, "create_ticket", "run/1", **disk)
    assert made == {"id": "T-1", "comments": [], **disk}
    assert await call(tickets, "create_ticket", "run/1", **disk) == made
    other = await call(tickets, "create_ticket", "run/2", title="Printer", text="No größe paper")
    assert (other["id"], other["priority"]) == ("T-2", "normal")

    for _ in range(2):
        commented = await call(tickets, "comment_ticket", "run/3", ticket_id="T-1", text="Freed")
        assert commented["comments"] == [{"text": "Freed"}]
    assert await call(tickets, "search_tickets", query="disk FREED") == {"result": [commented]}
    assert await call(tickets, "search_tickets", query="GRÖSSE run") == {"result": []}
    assert await call(tickets, "search_tickets", query="GRÖßE") == {"result": [other]}
    assert len((await call(tickets, "search_tickets"))["result"]) == 2
    with pytest.raises(McpError, match="there is no ticket 'T-9'"):
        await call(tickets, "comment_ticket", "run/4", ticket_id="T-9", text="x")
    stored = json.loads((tmp_path / "tickets.json").read_text("utf-8"))
    assert stored["keys"] == {"run/1": "T-1", "run/2": "T-2"}
