"""``fetch`` through the whole service and from Python: private services are those of the operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import planwave
from planwave.api.app import create_app
from planwave.bootstrap import open_service
from planwave.settings import Settings
from tests.support.cli.command_process import isolated_directory
from tests.support.outbound.fake_network import response
from tests.support.outbound.loopback_server import loopback_server
from tests.support.server.in_process_client import asgi_client

PAGE = response(b'{"name": "Oslo"}', kind="application/json")


def graph_for(address: str) -> dict[str, Any]:
    return {
        "nodes": [
            {"id": "get", "type": "fetch", "data": {"url": f"http://{address}/city"}},
            {"id": "say", "type": "text", "data": {"text": "Hello {{ input.name }}"}},
        ],
        "edges": [{"source": "get", "target": "say", "data": {"channel": "flow"}}],
    }


async def executed(address: str, settings: Settings) -> dict[str, Any]:
    """Run the graph over HTTP; give its document."""
    async with asgi_client(create_app(settings, open_service)) as client:
        body = {"graph": graph_for(address), "start": True}
        created = await client.post("/api/execute", json=body)
        assert created.status_code == 202, created.text
        path = f"/api/executions/{created.json()['execution_id']}"
        await client.get(f"{path}/events")  # until the last event
        found: dict[str, Any] = (await client.get(f"{path}/document")).json()
        return found


async def test_the_service_reaches_what_the_operator_allows_and_nothing_else_on_loopback(
    tmp_path: Path,
) -> None:
    async with loopback_server(PAGE) as address:
        allowed = await executed(
            address, Settings(storage_dir=tmp_path / "a", allowed_outbound=[address])
        )
        refused = await executed(address, Settings(storage_dir=tmp_path / "b"))
    assert (allowed["status"], allowed["node_results"]["say"]) == ("completed", "Hello Oslo")
    assert refused["status"] == "failed"
    error = refused["error"]
    assert (error["node"], error["code"]) == ("get", "url-refused")
    assert f"'{address}' to the setting allowed_outbound" in error["hint"]


@pytest.mark.parametrize("is_nested", [False, True])
async def test_a_run_from_python_reads_the_setting(
    is_nested: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    async with loopback_server(PAGE) as address:
        graph = graph_for(address)
        if is_nested:
            graph = {
                "nodes": [{"id": "in", "type": "inner", "data": {"graph": graph}}],
                "edges": [],
            }
        refused = await planwave.run(graph, check=False)
        monkeypatch.setenv("PLANWAVE_ALLOWED_OUTBOUND", address)
        assert (await planwave.run(graph)).text == "Hello Oslo"
    assert refused.status == "failed"
    assert "may not be requested: port" in refused.text
