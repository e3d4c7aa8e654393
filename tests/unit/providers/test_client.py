from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import ProviderError, StoreError, UnavailableProvider, UnknownProvider
from planwave.providers.catalog import ProviderCatalog
from planwave.providers.client import ModelClient
from planwave.providers.protocols import (
    CallKey,
    CallReport,
    CallScope,
    Delta,
    ModelProfile,
    ModelReply,
    ModelRequest,
    PromptMessage,
)
from planwave.settings import Limits, ProviderSettings, Settings
from planwave.storage.sqlite.store import SqliteStore
from tests.support.llm.client_harness import ModelClientHarness, model_client_harness
from tests.support.llm.fake_llm_server import ErrorReply, FakeLLMServer, TextReply
from tests.support.polling import until


class Notebook:
    """A recorder in memory that says what it was asked."""

    def __init__(self) -> None:
        self.kept: dict[CallKey, dict[str, Any]] = {}

    async def recorded(self, key: CallKey) -> dict[str, Any] | None:
        return self.kept.get(key)

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        self.kept[key] = reply


@asynccontextmanager
async def stored_in(place: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore.open(place)
    try:
        yield store
    finally:
        await store.close()


def test_importing_the_model_client_loads_no_sdk() -> None:
    code = (
        "import sys, planwave.providers.client, planwave.providers.local.models\n"
        "heavy = {'openai', 'anthropic', 'pydantic_ai', 'genai_prices', 'httpx2', 'httpx',"
        " 'xllamacpp'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_finished_call_is_recorded_before_it_is_returned() -> None:
    notebook = Notebook()
    async with model_client_harness(recorder=notebook) as rig:
        reply = await rig.ask(scope=CallScope("e", "n", 1))
    ((key, kept),) = notebook.kept.items()
    assert (key.execution_id, key.path, key.attempt, key.ordinal) == ("e", "n", 1, 0)
    assert kept["text"] == reply.text


async def test_a_reentered_attempt_is_served_its_calls_again_and_pays_only_for_new_ones() -> None:
    async with model_client_harness(
        TextReply("one"), TextReply("two"), TextReply("three"), recorder=Notebook()
    ) as rig:
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
    async with model_client_harness(recorder=Notebook()) as rig:
        await rig.ask(prompt="a", scope=CallScope("e", "n", 1))
        fresh = CallScope(scope.execution_id, scope.path, scope.attempt)
        assert not (await rig.ask(prompt=prompt, scope=fresh)).recorded
        assert len(rig.llm.requests) == 2


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_conversation_is_served_again_unless_a_turn_of_it_differs(provider: str) -> None:
    talk = (PromptMessage("user", "I am Ann."), PromptMessage("assistant", "Hello."))
    async with model_client_harness(TextReply("one"), TextReply("two"), recorder=Notebook()) as rig:

        async def asked(*messages: PromptMessage) -> tuple[str, bool]:
            reply = await rig.ask(provider, "?", CallScope("e", "n", 1), messages=messages)
            return reply.text, reply.recorded

        assert await asked(*talk) == ("one", False)
        assert await asked(*talk) == ("one", True)
        assert await asked(*talk[:1], PromptMessage("assistant", "Hello Ann.")) == ("two", False)
        assert len(rig.llm.requests) == 2


async def test_without_a_scope_nothing_is_recorded_and_no_key_is_sent() -> None:
    notebook = Notebook()
    async with model_client_harness(recorder=notebook) as rig:
        await rig.ask()
        assert notebook.kept == {}
        assert "idempotency-key" not in rig.llm.requests[0].headers


async def test_a_failed_call_leaves_no_record() -> None:
    notebook = Notebook()
    async with model_client_harness(ErrorReply(400), recorder=notebook) as rig:
        with pytest.raises(ProviderError):
            await rig.ask(scope=CallScope("e", "n", 1))
    assert notebook.kept == {}


async def test_a_damaged_record_fails_the_call_and_nothing_is_paid_again() -> None:
    class Damaged(Notebook):
        async def recorded(self, key: CallKey) -> dict[str, Any] | None:
            return {}

    async with model_client_harness(recorder=Damaged()) as rig:
        with pytest.raises(StoreError) as caught:
            await rig.ask(scope=CallScope("e", "n", 1))
        assert (caught.value.code, rig.llm.requests) == ("bad-record", [])


async def test_a_record_that_cannot_be_kept_fails_the_call() -> None:
    class Full(Notebook):
        async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
            raise StoreError("disk full")

    async with model_client_harness(recorder=Full()) as rig:
        with pytest.raises(StoreError, match="disk full"):
            await rig.ask(scope=CallScope("e", "n", 1))


@pytest.mark.parametrize("provider", ["openai", "anthropic", "box"])
async def test_a_crash_between_answer_and_record_costs_one_more_call_under_the_same_key(
    provider: str,
) -> None:
    writing = asyncio.Event()

    class Crashing(Notebook):
        async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
            writing.set()
            await asyncio.Event().wait()

    keys: list[str] = []
    async with model_client_harness(recorder=Crashing()) as rig, asyncio.TaskGroup() as group:
        cut_off = group.create_task(rig.ask(provider, scope=CallScope("e", "n", 1)))
        await writing.wait()
        cut_off.cancel()
        keys += [request.headers["idempotency-key"] for request in rig.llm.requests]
    async with model_client_harness(recorder=Notebook()) as rig:
        for _ in range(2):
            await rig.ask(provider, scope=CallScope("e", "n", 1))
        keys += [request.headers["idempotency-key"] for request in rig.llm.requests]
    assert keys == ["e/n/0"] * 2


async def test_a_reply_is_kept_the_moment_it_is_whole_and_told_of_once() -> None:
    """Nothing that can be cancelled lies between the end of a stream and its record."""
    ends: list[str] = []
    notebook = Notebook()
    async with model_client_harness(TextReply("abc", chunks=3), recorder=notebook) as rig:
        rig.client.on_call = lambda end: ends.append(end.outcome)
        items = rig.client.stream(ModelRequest("box", "box-1", "hi"), CallScope("e", "n", 1))
        async for item in items:
            if isinstance(item, ModelReply):
                break
        assert len(notebook.kept) == 1
        await items.aclose()
    assert ends == ["completed"]


async def test_a_reply_that_is_cancelled_while_it_is_recorded_is_told_of_as_completed() -> None:
    ends: list[str] = []
    writing = asyncio.Event()

    class Slow(Notebook):
        async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
            writing.set()
            await asyncio.Event().wait()

    async with model_client_harness(recorder=Slow()) as rig, asyncio.TaskGroup() as group:
        rig.client.on_call = lambda end: ends.append(end.outcome)
        call = group.create_task(rig.ask(scope=CallScope("e", "n", 1)))
        await writing.wait()
        call.cancel()
    assert ends == ["completed"], "it is paid for"


async def test_a_reply_whose_call_is_cancelled_at_its_very_end_is_recorded_all_the_same(
    tmp_path: Path,
) -> None:
    async with stored_in(tmp_path) as store, model_client_harness(recorder=store) as rig:
        asking = asyncio.ensure_future(  # noqa: TID251 - cancelled on purpose
            rig.ask(scope=CallScope("e", "n", 1))
        )
        rig.client.on_call = lambda _: asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        rig.client.on_call = None
        await rig.ask(scope=CallScope("e", "later", 1))  # all that is to be written is written now
        assert (await rig.ask(scope=CallScope("e", "n", 1))).recorded
        assert len(rig.llm.requests) == 2


@pytest.mark.parametrize("provider", ["openai", "anthropic", "box"])
async def test_a_call_that_is_cut_off_in_the_middle_leaves_no_record(provider: str) -> None:
    notebook = Notebook()
    never = asyncio.Event()
    left = TextReply("abcdef", chunks=6, gates={4: never})
    cut = TextReply("abcdef", chunks=6, cut_after=5)
    async with model_client_harness(
        cut, left, recorder=notebook, limits=Limits(call_attempts=1)
    ) as rig:
        with pytest.raises(ProviderError):
            await rig.ask(provider, scope=CallScope("e", "n", 1))
        async with asyncio.TaskGroup() as group:
            cut_off = group.create_task(rig.ask(provider, scope=CallScope("e", "n", 1)))
            await until(lambda: len(rig.llm.requests) == 2 and rig.deltas)
            cut_off.cancel()
        assert notebook.kept == {}
        assert not (await rig.ask(provider, scope=CallScope("e", "n", 1))).recorded
        assert len(rig.llm.requests) == 3


async def test_after_an_answer_an_attempt_is_not_served_what_it_asked_before() -> None:
    async with model_client_harness(
        TextReply("before"), TextReply("after"), recorder=Notebook()
    ) as rig:
        texts: list[str] = []
        for answers in (0, 1, 0, 1):
            reply = await rig.ask(scope=CallScope("e", "n", 1, answers))
            texts.append(reply.text)
        keys = [request.headers["idempotency-key"] for request in rig.llm.requests]
    assert texts == ["before", "after"] * 2
    assert keys == ["e/n/0", "e/n/1000"]


async def test_calls_of_a_provider_left_alone_are_refused_and_not_counted_as_calls() -> None:
    ends: list[str] = []
    limits = Limits(call_attempts=1, provider_failures=1, provider_wait_s=0)
    async with model_client_harness(ErrorReply(529), limits=limits) as rig:
        rig.client.on_call = lambda end: ends.append(end.outcome)
        for _ in range(3):
            with pytest.raises(ProviderError):
                await rig.ask()
        assert (await rig.ask("box")).text == "ok", "another provider is another matter"
    assert ends == ["provider-overloaded", "completed"]


async def test_a_second_try_comes_out_of_time_with_the_failure_of_the_first() -> None:
    limits = Limits(provider_failures=1, provider_wait_s=5)
    limited = ErrorReply(429, "rate_limit_error", headers={"retry-after": "6"})
    async with model_client_harness(limited, limits=limits) as rig:
        with pytest.raises(ProviderError, match="asked to wait 6 s"):
            await rig.ask()
        assert rig.time.slept == []


async def test_jitter_spreads_the_waits_between_nothing_and_a_cap() -> None:
    many = [ErrorReply(500)] * 9
    async with model_client_harness(*many, limits=Limits(call_attempts=9), jitter=1.0) as rig:
        with pytest.raises(ProviderError):
            await rig.ask()
        assert rig.time.slept == [1, 2, 4, 8, 16, 20, 20, 20]
    async with model_client_harness(ErrorReply(500), jitter=0.0) as rig:
        await rig.ask()
        assert rig.time.slept == [0]


async def test_an_unknown_or_unconfigured_provider_is_refused_before_any_call() -> None:
    async with model_client_harness() as rig:
        with pytest.raises(UnknownProvider):
            await rig.ask("nowhere", model="m")
        with pytest.raises(UnavailableProvider):
            await rig.ask("local", model="m")
        assert rig.llm.requests == []


async def test_duration_is_the_time_from_the_start_to_the_end_with_waits() -> None:
    async with model_client_harness(ErrorReply(429, headers={"retry-after": "7"})) as rig:
        assert (await rig.ask()).duration_s == 7


async def test_how_every_attempt_ended_is_told_to_who_counts_calls() -> None:
    never = asyncio.Event()
    ends: list[CallReport] = []
    steps = [ErrorReply(429, headers={"retry-after": "7"}), TextReply("one"), ErrorReply(400)]
    left = TextReply("abcdef", chunks=6, gates={4: never})
    async with model_client_harness(*steps, left, recorder=Notebook()) as rig:
        rig.client.on_call = ends.append
        for _ in range(2):
            reply = await rig.ask(scope=CallScope("e", "n", 1))
        with pytest.raises(ProviderError):
            await rig.ask()
        async with aclosing(rig.client.stream(ModelRequest("box", "box-1", "hi"))) as items:
            async for _ in items:
                break
    assert ends == [
        CallReport("openai", "gpt-4o-mini", "rate-limited", 0.0, will_retry=True),
        CallReport("openai", "gpt-4o-mini", "completed", 0.0, usage=reply.usage),
        CallReport("openai", "gpt-4o-mini", "recorded"),
        CallReport("openai", "gpt-4o-mini", "bad-request"),
        CallReport("box", "box-1", "cancelled"),
    ]


def waiting_for(provider: str, rig: ModelClientHarness) -> list[Any]:
    """Give the calls that stand in a provider's queues."""
    lane = rig.client._call_gates.get(provider)
    return [place for queue in lane._limiter._queues.values() for place in queue] if lane else []


async def test_executions_take_turns_at_a_busy_provider() -> None:
    door = asyncio.Event()

    async def held(body: dict[str, Any]) -> str:
        await door.wait()
        return "ok"

    one = ProviderSettings(max_concurrency=1)
    async with model_client_harness(reply_to=held, box=one) as rig:
        async with asyncio.TaskGroup() as group:
            for number, execution in enumerate("aaaab"):
                scope = CallScope(execution, "n", 1)
                group.create_task(rig.ask("box", f"{execution}{number}", scope))
            await until(lambda: len(waiting_for("box", rig)) == 4)
            door.set()
        order = [request.body["messages"][-1]["content"] for request in rig.llm.requests]
    assert order.index("b4") <= 2


async def test_a_stream_left_early_is_closed_and_its_place_is_free_again() -> None:
    never = asyncio.Event()
    one = ProviderSettings(max_concurrency=1)
    async with model_client_harness(
        TextReply("abcdef", chunks=6, gates={4: never}), box=one
    ) as rig:
        request = ModelRequest("box", "box-1", "hi")
        async with aclosing(rig.client.stream(request)) as items:
            async for _ in items:
                break
        assert (await rig.ask("box")).text == "ok"
        await until(lambda: rig.llm.open_requests == 0)
        assert rig.llm.early_disconnects == 1


class Embedded:
    """An embedded server whose place is a fake one."""

    models = ("tiny",)
    default_model = "tiny"
    slots = 1

    def __init__(self, llm: FakeLLMServer) -> None:
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
    async with FakeLLMServer() as llm:
        local = Embedded(llm)
        settings = Settings(openai_api_key=None)
        client = ModelClient(settings, ProviderCatalog(settings, local, environ={}))
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

    async with FakeLLMServer() as llm:
        settings = Settings(openai_api_key=None)
        catalogue = ProviderCatalog(settings, Embedded(llm), environ={})
        client = ModelClient(settings, catalogue, clock=lambda: 0.0, timeout=timeout)
        async with aclosing(client.stream(ModelRequest("local", "tiny", "hi"))) as items:
            assert [item async for item in items]
        await client.close()
    assert seen[0] == 300


async def test_a_local_server_that_cannot_start_is_told_as_it_is() -> None:
    class Broken(Embedded):
        async def endpoint(self, model: str) -> tuple[str, str]:
            raise ProviderError("no memory", provider="local", code="local-start-failed")

    async with FakeLLMServer() as llm:
        settings = Settings(openai_api_key=None)
        client = ModelClient(settings, ProviderCatalog(settings, Broken(llm), environ={}))
        with pytest.raises(ProviderError, match="no memory") as caught:
            async with aclosing(client.stream(ModelRequest("local", "tiny", "hi"))) as items:
                assert [item async for item in items]
        assert caught.value.code == "local-start-failed"
        await client.close()
