"""The route of the MCP server where its SDK is not installed."""

from __future__ import annotations

import pytest

from planwave.interop.mcp_server import endpoint
from tests.support.server.running_server import running_server


async def test_without_the_extra_the_answer_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(endpoint, "is_installed", lambda: False)
    with running_server(token="tok-tok-tok") as running:
        async with running.client() as client:
            answer = await client.get("/mcp")
            stranger = await client.get("/mcp", headers={"Authorization": "Bearer no"})
    assert (answer.status_code, answer.json()["code"]) == (404, "mcp-not-installed")
    assert "pip install 'planwave[mcp]'" in answer.json()["hint"]
    assert stranger.status_code == 401
