"""Chunks where they are wanted: from a running service, and in the hands of the OpenAI SDK."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from openai.types.chat import ChatCompletionChunk

import planwave
from planwave.client import AsyncClient, Client
from planwave.nodes.library import LIBRARY
from tests.support.nodes.node_packages import run_command
from tests.support.paths import ROOT
from tests.support.server.running_server import RunningServer

PAGE = (ROOT / "docs" / "chunks.md").read_text("utf-8")


def test_example_prints_its_output(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
    (answer,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.M | re.S)
    (tmp_path / "example.py").write_text(code, "utf-8")
    done = run_command(["python", "example.py"], tmp_path)
    assert (done.stdout, done.stderr) == (answer, "")


def text_of(chunks: list[dict[str, Any]]) -> str:
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk, strict=True)
    return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)


async def test_client_events_become_chunks(server: RunningServer) -> None:
    async with AsyncClient(server.base_url) as client:
        created = await client.run("texts")
        events = client.events(created["execution_id"])
        received = [chunk async for chunk in planwave.chunks(events)]
    assert text_of(received) == "two"
    assert received[0]["id"] == f"chatcmpl-{created['execution_id']}"
    assert received[-1]["choices"][0]["finish_reason"] == "stop"


async def test_sync_client_events_become_chunks(server: RunningServer) -> None:
    with Client(server.base_url) as client:
        created = client.run("texts")
        client.wait(created["execution_id"])
        events = list(client.events(created["execution_id"]))
    assert text_of([chunk async for chunk in planwave.chunks(events)]) == "two"


@pytest.fixture
def registry() -> planwave.Registry:
    registry = planwave.Registry(LIBRARY)

    @planwave.node("typist", registry=registry)
    async def typist(  # pyright: ignore[reportUnusedFunction]
        input: str, context: planwave.FlowContext
    ) -> AsyncGenerator[str | planwave.NodeEvent]:
        used = {"provider": "p", "model": "m", "input_tokens": 3, "output_tokens": 2}
        for word in input.split():
            yield f"{word} "
        if "fail" in input:
            raise planwave.NodeError("no such word")
        yield planwave.NodeEvent(context.node_id, "typist", "usage", context.run_id, used)

    return registry


def endpoint(registry: planwave.Registry) -> FastAPI:
    """An endpoint that speaks the OpenAI API and answers with a graph."""
    app = FastAPI()
    g = planwave.GraphBuilder(registry)
    g.node("end", input=g.node("typist", input=g.node("start", id="asked")))

    @app.post("/v1/chat/completions")
    async def answer(body: dict[str, Any]) -> StreamingResponse:  # pyright: ignore[reportUnusedFunction]
        requested = body["messages"][-1]["content"]

        async def lines() -> AsyncGenerator[str]:
            running = planwave.run(g, requested)
            async for chunk in planwave.chunks(running, model=body["model"]):
                yield f"data: {json.dumps(chunk)}\n\n"
            yield "data: [DONE]\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream")

    return app


async def ask_sdk(registry: planwave.Registry, question: str) -> list[ChatCompletionChunk]:
    """Ask the endpoint as any program does that uses the SDK."""
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(endpoint(registry)))
    async with openai.AsyncOpenAI(base_url="http://here/v1", api_key="k", http_client=http) as sdk:
        stream = await sdk.chat.completions.create(
            model="my-graph", messages=[{"role": "user", "content": question}], stream=True
        )
        return [chunk async for chunk in stream]


async def test_openai_sdk_reads_chunks_and_usage(registry: planwave.Registry) -> None:
    received = await ask_sdk(registry, "one two")
    assert "".join(chunk.choices[0].delta.content or "" for chunk in received) == "one two "
    assert received[0].choices[0].delta.role == "assistant"
    assert {chunk.model for chunk in received} == {"my-graph"}
    assert received[-1].choices[0].finish_reason == "stop"
    assert received[-1].usage is not None
    assert received[-1].usage.total_tokens == 5
    seen = [chunk.model_extra["extras"] for chunk in received if chunk.model_extra]
    assert {e["meta"]["node_id"] for e in seen if "meta" in e} == {"asked", "typist", "end"}


async def test_openai_sdk_raises_the_error(registry: planwave.Registry) -> None:
    with pytest.raises(openai.APIError, match="no such word") as caught:
        await ask_sdk(registry, "please fail")
    assert (caught.value.code, caught.value.type) == ("node-failed", "execution_failed")
    assert caught.value.param == "typist"
