"""What a run over a cached beginning costs, read in every place that shows it."""

from __future__ import annotations

import asyncio
import json
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planwave.api.app import create_app
from planwave.bootstrap import open_service
from planwave.cli.formatting import money, tokens_text
from planwave.providers.protocols import Usage
from planwave.providers.registry import ProviderRegistry
from planwave.settings import Settings
from tests.support.cli.in_process_command import invoke, invoke_json
from tests.support.llm.fake_llm_server import FakeLLMServer
from tests.support.llm.prompt_cache import FakePromptCache, caching_replies
from tests.support.server.in_process_client import asgi_client

MODEL = "claude-haiku-4-5"
SHARED = "All that is known of the matter.\n" * 1_000
ITEMS = 7
STEP = {"systemPrompt": SHARED, "userPrompt": "Item {{ item }}", "model": MODEL}
BODY = {"nodes": [{"id": "a", "type": "agent", "data": {**STEP, "provider": "anthropic"}}]}
EACH = {"items": [*range(ITEMS)], "parallel": ITEMS, "body": BODY | {"edges": []}}
GRAPH: dict[str, Any] = {
    "nodes": [{"id": "ask", "type": "user_input"}, {"id": "each", "type": "loop", "data": EACH}],
    "edges": [{"source": "ask", "target": "each", "data": {"channel": "flow"}}],
}


async def served(llm: FakeLLMServer, directory: Path) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Run the flow as a model; return the answer, and what the API says of the execution."""
    settings = Settings(
        storage_dir=directory, anthropic_api_key="sk-ant-test", anthropic_base_url=llm.anthropic_url
    )
    async with asgi_client(create_app(settings, open_service)) as client:
        flow = (await client.post("/api/flows", json={"name": "each", "graph": GRAPH})).json()
        path = f"/api/flows/{flow['plan_id']}/publication"
        assert (await client.put(path, json={"model": True})).is_success
        body = {"model": "each", "messages": [{"role": "user", "content": "Go."}]}
        answer = await client.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        path = f"/api/executions/{answer.headers['x-planwave-execution-id']}"
        shown = (await client.get(path)).json()
        lines = (await client.get(f"{path}/events")).text.splitlines()
        return (
            answer.json(),
            shown,
            [json.loads(each[6:]) for each in lines if each[:6] == "data: "],
        )


def test_every_place_shows_the_cost_of_the_reported_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> Any:
        cache = FakePromptCache(time.monotonic)
        async with FakeLLMServer(reply_to=caching_replies(cache)) as llm:
            return *(await served(llm, tmp_path)), cache.reported

    answer, shown, events, reported = asyncio.run(run())
    monkeypatch.setenv("PLANWAVE_STORAGE_DIR", str(tmp_path))
    execution_id = shown["execution_id"]
    price = ProviderRegistry(Settings()).price
    costs = [
        price("anthropic", MODEL, Usage(given, made, cache_read_tokens=read, cache_write_tokens=written))
        for (given, made), (read, written) in reported
    ]  # fmt: skip
    told = [each["data"] for each in events if each["type"] == "usage"]
    assert len(told) == len(costs) == ITEMS
    assert sorted(each["cost_usd"] for each in told) == sorted(costs)
    read, written = (sum(cached[at] for _, cached in reported) for at in (0, 1))
    assert (read, written) == (6 * 8_250, 8_250)
    usage = {
        "calls": ITEMS,
        "input_tokens": sum(counts[0] for counts, _ in reported),
        "output_tokens": sum(counts[1] for counts, _ in reported),
        "cost_usd": float(
            sum(Decimal(str(cost)) for cost in costs)
        ),  # web/src/stream/usage.test.ts
        "estimated": False,
        "cache_read_tokens": read,
        "cache_write_tokens": written,
    }
    document = json.loads((tmp_path / f"{execution_id}.json").read_text())
    in_nodes = [node["usage"]["cost_usd"] for node in document["nodes"] if "usage" in node]
    assert [
        shown["usage"], document["usage"], invoke_json("show", execution_id)["usage"],
    ] == [usage] * 3  # fmt: skip
    assert in_nodes
    assert answer["usage"]["prompt_tokens"] == usage["input_tokens"]
    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == read
    printed = invoke("show", execution_id).stdout
    assert f"tokens {tokens_text(usage)}" in " ".join(printed.split())
    assert money(usage["cost_usd"]) in printed
