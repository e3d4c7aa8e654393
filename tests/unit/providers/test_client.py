from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import aclosing
from typing import Any

import pytest

from planwave.errors import ProviderError, StoreError, UnavailableProvider, UnknownProvider
from planwave.providers.api import CallKey, CallScope, Delta, ModelProfile, ModelReply, ModelRequest
from planwave.providers.catalogue import ProviderCatalogue
from planwave.providers.client import ModelClient, idempotency_key
from planwave.settings import Limits, ProviderSettings, Settings
from tests.fakes.llm_server import Fails, FakeLLM, Says
from tests.fakes.model_rig import model_rig, until


class Notebook:
    """A recorder in memory that says what it was asked."""

    def __init__(self) -> None:
        self.kept: dict[CallKey, dict[str, Any]] = {}

    async def recorded(self, key: CallKey) -> dict[str, Any] | None:
        return self.kept.get(key)

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        self.kept[key] = reply


def test_importing_the_room_loads_no_sdk() -> None:
    code = (
        "import sys, planwave.providers.catalogue, planwave.providers.client\n"
        "heavy = {'openai', 'anthropic', 'pydantic_ai', 'genai_prices', 'httpx2', 'httpx'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_finished_call_is_recorded_before_it_is_returned() -> None:
    notebook = Notebook()
    async with model_rig(recorder=notebook) as rig:
        reply = await rig.ask(scope=CallScope("e", "n", 1))
    ((key, kept),) = notebook.kept.items()
    assert (key.execution_id, key.path, key.attempt, key.ordinal) == ("e", "n", 1, 0)
    assert kept["text"] == reply.text


async def test_a_reentered_attempt_is_served_its_calls_again_and_pays_only_for_new_ones() -> None:
    async with model_rig(Says("one"), Says("two"), Says("three"), recorder=Notebook()) as rig:
        first = CallScope("e", "n", 1)
        told = [await rig.ask(prompt=p, scope=first) for p in ("a", "b")]
        again = CallScope("e", "n", 1)
        served = [await rig.ask(prompt=p, scope=again) for p in ("a", "b")]
        assert [reply.text for reply in served] == ["one", "two"]
        assert all(reply.recorded for reply in served)
        assert served[0].usage == told[0].usage
        assert rig.deltas == [Delta("two")]
        assert len(rig.llm.requests) == 2
        assert (await rig.ask(prompt="c", scope=again)).text == "three"


@pytest.mark.parametrize(
    ("scope", "prompt"),
    [
        (CallScope("other", "n", 1), "a"),
        (CallScope("e", "other", 1), "a"),
        (CallScope("e", "n", 2), "a"),
        (CallScope("e", "n", 1), "changed"),
    ],
)
async def test_another_execution_path_attempt_or_question_is_a_new_call(
    scope: CallScope, prompt: str
) -> None:
    async with model_rig(recorder=Notebook()) as rig:
        await rig.ask(prompt="a", scope=CallScope("e", "n", 1))
        fresh = CallScope(scope.execution_id, scope.path, scope.attempt)
        assert not (await rig.ask(prompt=prompt, scope=fresh)).recorded
        assert len(rig.llm.requests) == 2


async def test_without_a_scope_nothing_is_recorded_and_no_key_is_sent() -> None:
    notebook = Notebook()
    async with model_rig(recorder=notebook) as rig:
        await rig.ask()
        assert notebook.kept == {}
        assert "idempotency-key" not in rig.llm.requests[0].headers


async def test_a_failed_call_leaves_no_record() -> None:
    notebook = Notebook()
    async with model_rig(Fails(400), recorder=notebook) as rig:
        with pytest.raises(ProviderError):
            await rig.ask(scope=CallScope("e", "n", 1))
    assert notebook.kept == {}


@pytest.mark.parametrize("record", [{}, {"text": 5}, {"text": "x", "usage": None}])
async def test_a_record_that_is_no_reply_is_a_store_error(record: dict[str, Any]) -> None:
    class Damaged(Notebook):
        async def recorded(self, key: CallKey) -> dict[str, Any] | None:
            return record

    async with model_rig(recorder=Damaged()) as rig:
        with pytest.raises(StoreError) as caught:
            await rig.ask(scope=CallScope("e", "n", 1))
        assert (caught.value.code, rig.llm.requests) == ("bad-record", [])


async def test_a_record_that_cannot_be_kept_fails_the_call() -> None:
    class Full(Notebook):
        async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
            raise StoreError("disk full")

    async with model_rig(recorder=Full()) as rig:
        with pytest.raises(StoreError, match="disk full"):
            await rig.ask(scope=CallScope("e", "n", 1))


async def test_jitter_spreads_the_waits_between_nothing_and_a_cap() -> None:
    many = [Fails(500)] * 9
    async with model_rig(*many, limits=Limits(call_attempts=9), jitter=1.0) as rig:
        with pytest.raises(ProviderError):
            await rig.ask()
        assert rig.time.slept == [1, 2, 4, 8, 16, 20, 20, 20]
    async with model_rig(Fails(500), jitter=0.0) as rig:
        await rig.ask()
        assert rig.time.slept == [0]


async def test_an_unknown_or_unconfigured_provider_is_refused_before_any_call() -> None:
    async with model_rig() as rig:
        with pytest.raises(UnknownProvider):
            await rig.ask("nowhere", model="m")
        with pytest.raises(UnavailableProvider):
            await rig.ask("local", model="m")
        assert rig.llm.requests == []


async def test_duration_is_the_time_from_the_start_to_the_end_with_waits() -> None:
    async with model_rig(Fails(429, headers={"retry-after": "7"})) as rig:
        assert (await rig.ask()).duration_s == 7


async def test_executions_take_turns_at_a_busy_provider() -> None:
    door = asyncio.Event()

    async def held(body: dict[str, Any]) -> str:
        await door.wait()
        return "ok"

    one = ProviderSettings(max_concurrency=1)
    async with model_rig(reply_to=held, box=one) as rig:
        async with asyncio.TaskGroup() as group:
            for number, execution in enumerate("aaaab"):
                scope = CallScope(execution, "n", 1)
                group.create_task(rig.ask("box", f"{execution}{number}", scope))
            await until(lambda: rig.llm.requests)
            for _ in range(50):
                await asyncio.sleep(0)
            door.set()
        order = [request.body["messages"][-1]["content"] for request in rig.llm.requests]
    assert order.index("b4") <= 2


async def test_a_stream_left_early_is_closed_and_its_place_is_free_again() -> None:
    never = asyncio.Event()
    one = ProviderSettings(max_concurrency=1)
    async with model_rig(Says("abcdef", chunks=6, gates={4: never}), box=one) as rig:
        request = ModelRequest("box", "box-1", "hi")
        async with aclosing(rig.client.stream(request)) as items:
            async for _ in items:
                break
        assert (await rig.ask("box")).text == "ok"
        await until(lambda: rig.llm.open_now == 0)
        assert rig.llm.left_early == 1


class Embedded:
    """An embedded server whose place is a fake one."""

    models = ("tiny",)
    default_model = "tiny"
    slots = 1

    def __init__(self, llm: FakeLLM) -> None:
        self.llm = llm
        self.asked: list[str] = []
        self.key = "random-1"

    def availability(self) -> tuple[bool, str, str]:
        return True, "ready", ""

    async def endpoint(self, model: str) -> tuple[str, str]:
        self.asked.append(model)
        return self.llm.openai_url, self.key

    def profile(self, model: str) -> ModelProfile:
        return ModelProfile(small=True)

    async def close(self) -> None: ...


async def test_local_calls_go_where_the_embedded_server_is_now_and_cost_nothing() -> None:
    async with FakeLLM() as llm:
        local = Embedded(llm)
        settings = Settings(openai_api_key=None)
        client = ModelClient(settings, ProviderCatalogue(settings, local, environ={}))
        for key in ("random-1", "random-2"):
            local.key = key
            async with aclosing(client.stream(ModelRequest("local", "tiny", "hi"))) as items:
                last = [item async for item in items][-1]
            assert isinstance(last, ModelReply)
            assert last.usage.cost_usd == 0
            assert llm.requests[-1].headers["authorization"] == f"Bearer {key}"
        assert local.asked == ["tiny", "tiny"]
        await client.close()


async def test_local_gets_the_time_of_a_whole_call_for_its_first_byte() -> None:
    seen: list[float] = []

    def timeout(seconds: float) -> asyncio.Timeout:
        seen.append(seconds)
        return asyncio.timeout(None)

    async with FakeLLM() as llm:
        settings = Settings(openai_api_key=None)
        catalogue = ProviderCatalogue(settings, Embedded(llm), environ={})
        client = ModelClient(settings, catalogue, clock=lambda: 0.0, timeout=timeout)
        async with aclosing(client.stream(ModelRequest("local", "tiny", "hi"))) as items:
            assert [item async for item in items]
        await client.close()
    assert seen[0] == 300


async def test_a_local_server_that_cannot_start_is_told_as_it_is() -> None:
    class Broken(Embedded):
        async def endpoint(self, model: str) -> tuple[str, str]:
            raise ProviderError("no memory", provider="local", code="local-start-failed")

    async with FakeLLM() as llm:
        settings = Settings(openai_api_key=None)
        client = ModelClient(settings, ProviderCatalogue(settings, Broken(llm), environ={}))
        with pytest.raises(ProviderError, match="no memory") as caught:
            async with aclosing(client.stream(ModelRequest("local", "tiny", "hi"))) as items:
                assert [item async for item in items]
        assert caught.value.code == "local-start-failed"
        await client.close()


def test_an_idempotency_key_can_stand_in_a_header_whatever_the_names_are() -> None:
    key = CallKey("exec\r\nx: y", "ü/[2]", 1, 3, "hash")
    text = idempotency_key(key)
    assert text.isascii()
    assert text.isprintable()
    assert text.endswith("/%C3%BC/[2]/3")
