"""A small ticket system as an MCP server, for agents that read and write tickets.

It keeps its tickets in the JSON file that ``TICKETS_FILE`` names, and speaks MCP over standard input
and output::

    [mcp.tickets]
    command = "python"
    args = ["examples/mcp/ticket_server.py"]
    read_tools = ["search_tickets"]
    env = {TICKETS_FILE = "tickets.json"}

Each tool says what it does to the world (``readOnlyHint``, ``idempotentHint``). The tools that write take
an ``idempotency_key``: a call that is made again with the same key changes nothing and gives the same
ticket. planwave gives the key by itself; models never see it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True)
MAX_FOUND = 20

Priority = Literal["low", "normal", "high"]
Text = Annotated[str, Field(min_length=1, max_length=10_000)]
Key = Annotated[str, Field(min_length=1, max_length=255)]


class Comment(BaseModel):
    """A comment on a ticket."""

    text: str
    key: str = Field(exclude=True)


class Ticket(BaseModel):
    """A ticket as the tools return it."""

    id: str
    title: str
    text: str
    priority: Priority
    comments: list[Comment] = []


server = MCPServer("tickets", instructions="Search for a ticket before you create one.")


@contextmanager
def opened_file() -> Iterator[dict[str, Any]]:
    """Give the content of the file, and write it back; one process at a time has it."""
    path = Path(os.environ["TICKETS_FILE"])
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        text = path.read_text("utf-8") if path.exists() else '{"tickets": {}, "keys": {}}'
        content = json.loads(text)
        yield content
        changed = json.dumps(content, indent=2, ensure_ascii=False)
        if changed != text:
            temporary = path.with_suffix(".new")
            temporary.write_text(changed, "utf-8")
            temporary.replace(path)


def shown(ticket: dict[str, Any]) -> Ticket:
    """Return a stored ticket as the tools give it."""
    return Ticket.model_validate(ticket)


@server.tool(annotations=READS)
def search_tickets(query: Annotated[str, Field(max_length=500)] = "") -> list[Ticket]:
    """Find tickets whose title, text or comments contain all words of a query; no words find all."""
    words = query.lower().split()
    with opened_file() as content:
        tickets = list(content["tickets"].values())
    found = [each for each in tickets if all(word in text_of(each) for word in words)]
    return [shown(each) for each in found[-MAX_FOUND:]]


def text_of(ticket: dict[str, Any]) -> str:
    """Return all the words of a ticket in lower case."""
    comments = (comment["text"] for comment in ticket["comments"])
    return "\n".join((ticket["id"], ticket["title"], ticket["text"], *comments)).lower()


@server.tool(annotations=WRITES)
def create_ticket(
    title: Annotated[str, Field(min_length=1, max_length=200)],
    text: Text,
    idempotency_key: Key,
    priority: Priority = "normal",
) -> Ticket:
    """Create a ticket and return it with its id."""
    with opened_file() as content:
        ticket_id = content["keys"].get(idempotency_key)
        if ticket_id is None:
            ticket_id = f"T-{len(content['tickets']) + 1}"
            content["keys"][idempotency_key] = ticket_id
            ticket = {"id": ticket_id, "title": title, "text": text, "priority": priority}
            content["tickets"][ticket_id] = {**ticket, "comments": []}
        return shown(content["tickets"][ticket_id])


@server.tool(annotations=WRITES)
def comment_ticket(ticket_id: str, text: Text, idempotency_key: Key) -> Ticket:
    """Add a comment to a ticket and return the ticket."""
    with opened_file() as content:
        ticket = content["tickets"].get(ticket_id)
        if ticket is None:
            raise ToolError(f"there is no ticket {ticket_id!r}; search_tickets finds them")
        if all(each["key"] != idempotency_key for each in ticket["comments"]):
            ticket["comments"].append({"text": text, "key": idempotency_key})
        return shown(ticket)


if __name__ == "__main__":
    server.run("stdio")
