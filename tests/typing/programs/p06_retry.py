"""A retry and a time limit belong to the node."""

from __future__ import annotations

import planwave

tries: list[str] = []


@planwave.node(
    "fetch-page",
    retry=planwave.Retry(attempts=3, backoff_s=0.01, on=[ConnectionError]),
    timeout_s=30,
)
async def fetch(input: str) -> str:
    """Fetch a page from a server that answers the second time."""
    tries.append(input)
    if len(tries) < 2:
        raise ConnectionError("the server did not answer")
    return f"page {input}"


g = planwave.GraphBuilder()
page = g.node(fetch, input=g.node("start"))
assert planwave.run_sync(g, "x")[page] == "page x"
assert tries == ["x", "x"]
