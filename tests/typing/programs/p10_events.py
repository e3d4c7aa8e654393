"""Events are typed by their names."""

from __future__ import annotations

import asyncio

import planwave


async def main() -> list[str]:
    """Return the ids of the requests of a run."""
    g = planwave.GraphBuilder()
    g.node("approval", prompt="Send it?", input=g.node("start"))
    requests: list[str] = []
    async for event in planwave.run(g, "Dear Ann"):
        if event.type == "node.waiting":
            requests.append(event.data["request_id"])
    return requests


assert len(asyncio.run(main())) == 1
