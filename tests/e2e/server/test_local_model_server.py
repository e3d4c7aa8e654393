"""The embedded model server for real, where its model was pulled."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import openai
import pytest

from planwave.planner.small_models import read_small_reply, small_request
from planwave.prompts.counted_replies import Count, counted_grammar
from planwave.providers.local.download import model_path
from planwave.providers.local.model_files import MODEL_FILES
from planwave.providers.local.models import SLOTS, LocalModelServers
from planwave.providers.protocols import ModelRequest
from planwave.settings import Settings

ASKED = [{"role": "user", "content": "Say hello."}]


async def started(model: str) -> LocalModelServers:
    """Give local models that can serve this model, or skip."""
    local = LocalModelServers(Settings(local_model=model, local_threads=1))
    available, reason, way = local.availability()
    if not available:
        pytest.skip(f"{reason}; {way}")
    return local


@pytest.fixture
async def tiny() -> AsyncIterator[tuple[str, str]]:
    local = await started("smollm2-135m")
    yield await local.endpoint("smollm2-135m")
    await local.close()


def client_of(endpoint: tuple[str, str]) -> openai.AsyncOpenAI:
    # A busy machine may leave a kept connection alone for longer than the server keeps it.
    return openai.AsyncOpenAI(base_url=endpoint[0], api_key=endpoint[1], max_retries=2)


def status_of(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:  # noqa: S310  # loopback
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def busy_slots(endpoint: tuple[str, str]) -> int:
    request = urllib.request.Request(  # noqa: S310  # loopback
        endpoint[0].removesuffix("v1") + "slots", headers={"Authorization": f"Bearer {endpoint[1]}"}
    )
    with urllib.request.urlopen(request, timeout=10) as reply:  # noqa: S310
        return sum(slot["is_processing"] for slot in json.load(reply))


async def test_the_server_speaks_the_protocol_and_only_to_its_owner(tiny: tuple[str, str]) -> None:
    base_url, key = tiny
    assert base_url.startswith("http://127.0.0.1:")
    async with client_of((base_url, "guessed")) as stranger:
        with pytest.raises(openai.AuthenticationError):
            await stranger.chat.completions.create(model="any", messages=ASKED, max_tokens=4)  # type: ignore[arg-type]
    assert status_of(base_url.removesuffix("v1")) == 404  # no web page

    async with client_of((base_url, key)) as client:
        create: Any = client.chat.completions.create
        reply = await create(model="smollm2-135m", messages=ASKED, max_tokens=8, temperature=0)
        assert reply.choices[0].message.content
        assert reply.choices[0].finish_reason in ("stop", "length")
        assert reply.usage.prompt_tokens > 0

        pieces = [
            piece
            async for piece in await create(
                model="smollm2-135m",
                messages=ASKED,
                max_tokens=8,
                temperature=0,
                stream=True,
                stream_options={"include_usage": True},
            )
        ]
        text = "".join(p.choices[0].delta.content or "" for p in pieces if p.choices)
        assert text == reply.choices[0].message.content
        assert any(p.choices and p.choices[0].finish_reason for p in pieces)
        assert pieces[-1].usage.completion_tokens > 0

        schema = {
            "type": "object",
            "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
            "required": ["colour"],
            "additionalProperties": False,
        }
        shaped = await create(
            model="smollm2-135m",
            messages=ASKED,
            max_tokens=40,
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": schema, "strict": True},
            },
        )
        assert json.loads(shaped.choices[0].message.content)["colour"] in ("red", "blue")


async def test_the_same_prompt_has_the_same_reply_unless_the_call_sets_a_temperature(
    tiny: tuple[str, str],
) -> None:
    async with client_of(tiny) as client:
        create: Any = client.chat.completions.create

        async def reply(**options: float) -> str:
            asked = [{"role": "user", "content": "Tell me a story."}]
            done = await create(model="smollm2-135m", messages=asked, max_tokens=24, **options)
            return str(done.choices[0].message.content)

        assert await reply() == await reply()
        assert len({await reply(temperature=1.5) for _ in range(3)}) > 1


async def test_the_server_keeps_replies_to_a_grammar(tiny: tuple[str, str]) -> None:
    async with client_of(tiny) as client:
        create: Any = client.chat.completions.create

        async def reply(count: Count) -> str:
            grammar = {"grammar": counted_grammar(count)}
            done = await create(
                model="smollm2-135m", messages=ASKED, max_tokens=200, extra_body=grammar
            )
            assert done.choices[0].finish_reason == "stop"
            return str(done.choices[0].message.content).strip()

        lines = (await reply(Count(3, sentences=False))).splitlines()
        assert [line[:3] for line in lines] == ["1. ", "2. ", "3. "]
        paragraph = await reply(Count(2, sentences=True))
        assert len(re.split(r"(?<=[.!?]) ", paragraph)) == 2


async def test_closing_a_stream_frees_its_slot(tiny: tuple[str, str]) -> None:
    async with client_of(tiny) as client:
        create: Any = client.chat.completions.create
        streams = [
            await create(
                model="smollm2-135m",
                messages=ASKED,
                max_tokens=100_000,
                stream=True,
                extra_body={"ignore_eos": True},
            )
            for _ in range(SLOTS)
        ]
        for stream in streams:
            await anext(aiter(stream))
        assert busy_slots(tiny) == SLOTS
        for stream in streams:
            await stream.close()
        looks = 0
        while busy_slots(tiny):
            looks += 1
            assert looks < 2_000
        reply = await create(model="smollm2-135m", messages=ASKED, max_tokens=2)
        assert reply.choices[0].finish_reason in ("stop", "length")


async def test_a_fixed_beginning_is_read_once_for_all_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = "smollm2-135m"
    await started(model)  # or skip
    file = model_path(MODEL_FILES[model], Settings().model_dir)
    (tmp_path / file.name).symlink_to(file)
    monkeypatch.setenv("PLANWAVE_MODEL_DIR", str(tmp_path))
    beginning = "The plan of another goal has these steps. " * 10
    known: list[int] = []
    for goal in ("a trip", "a dinner"):
        local = LocalModelServers(Settings(local_model=model, local_threads=1))
        endpoint = await local.endpoint(model)
        prompt = f"{beginning}\nGoal: {goal}"
        await local.prepare(ModelRequest("local", model, prompt, fixed_chars=len(beginning)))
        async with client_of(endpoint) as client:
            create: Any = client.chat.completions.create
            asked = [{"role": "user", "content": prompt}]
            reply = await create(model=model, messages=asked, max_tokens=2)
            known.append(reply.usage.prompt_tokens_details.cached_tokens)
        await local.close()
    assert min(known) >= 80, "of about 90 tokens"
    assert len(list((tmp_path / "prompt-state").iterdir())) == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_the_default_model_writes_a_legal_plan_with_parallel_steps() -> None:
    model = "qwen2.5-coder-1.5b"
    local = await started(model)
    endpoint = await local.endpoint(model)
    request = small_request(
        "Compare solar, wind and nuclear power for a small island and recommend one",
        provider="local",
        model=model,
    )
    async with client_of(endpoint) as client:
        create: Any = client.chat.completions.create
        reply = await create(
            model=model,
            messages=[
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.prompt},
            ],
            temperature=request.temperature,
            max_tokens=request.max_tokens,
            timeout=550,
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "plan", "schema": request.schema, "strict": True},
            },
        )
    await local.close()
    assert reply.choices[0].finish_reason == "stop"
    plan = read_small_reply(json.loads(reply.choices[0].message.content))
    sources: dict[str, set[str]] = {node["id"]: set() for node in plan["nodes"]}
    for edge in plan["edges"]:
        sources[edge["target"]].add(edge["source"])
    sorter = TopologicalSorter(sources)
    sorter.prepare()
    waves: list[int] = []
    while sorter.is_active():
        ready = sorter.get_ready()
        waves.append(len(ready))
        sorter.done(*ready)
    assert sum(waves) == len(plan["nodes"]) in (4, 5)
    assert max(waves) >= 2
