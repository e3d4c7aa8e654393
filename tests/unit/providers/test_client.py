from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import ProviderError, StoreError, UnavailableProvider, UnknownProvider
from planwave.events import Event, fold
from planwave.executor.driver.execution import Execution
from planwave.executor.program import Program
from planwave.graph.reading.documents import read_graph
from planwave.nodes.services import NodeServices
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
from planwave.providers.registry import ProviderRegistry
from planwave.settings import Limits, ProviderSettings, Settings
from planwave.storage.sqlite.store import SqliteStore
from planwave.testing import forbid_model_calls
from tests.support.llm.client_harness import ModelClientHarness, model_client_harness
from tests.support.llm.fake_llm_server import ErrorReply, FakeLLMServer, TextReply
from tests.support.llm.fake_providers import library_registry
from tests.support.llm.notebook import Notebook
from tests.support.polling import until


@pytest.fixture
def embedded_model_is_allowed() -> Iterator[None]:
    """Let a test call the provider of the embedded model, behind which it has a model server of its own."""
    with forbid_model_calls(allow=["local", "127.0.0.1"]):
        yield


@asynccontextmanager
async def stored_in(place: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore.open(place)
    try:
        yield store
    finally:
        await store.close()


def test_importing_providers_loads_no_sdk() -> None:
    code = (
        "import sys, planwave.providers.client, planwave.providers.local.models\n"
        "heavy = {'openai', 'anthropic', 'pydantic_ai', 'genai_prices', 'httpx2', 'httpx',"
        " 'xllamacpp'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_reply_is_recorded_before_it_is_returned() -> None:
    notebook = Notebook()
    async with model_client_harness(recorder=notebook) as harness:
        reply = await harness.ask(scope=CallScope("e", "n", 1))
    ((key, stored),) = notebook.kept.items()
    assert (key.execution_id, key.path, key.attempt, key.ordinal) == ("e", "n", 1, 0)
    assert stored["text"] == reply.text


async def test_reentered_attempt_replays_recorded_calls() -> None:
    async with model_client_harness(
        TextReply("one"), TextReply("two"), TextReply("three"), recorder=Notebook()
    ) as harness:
        first = CallScope("e", "n", 1)
        received = [await harness.ask(prompt=p, scope=first) for p in ("a", "b")]
        again = CallScope("e", "n", 1)
        served = [await harness.ask(prompt=p, scope=again) for p in ("a", "b")]
        assert [reply.text for reply in served] == ["one", "two"]
        assert all(reply.recorded for reply in served)
        assert served[0].usage == received[0].usage
        assert harness.deltas == [Delta("two")]
        assert len(harness.llm.requests) == 2
        assert (await harness.ask(prompt="c", scope=again)).text == "three"


@pytest.mark.parametrize(
    ("scope", "prompt"),
    [
        (CallScope("other", "n", 1), "a"),
        (CallScope("e", "other", 1), "a"),
        (CallScope("e", "n", 2), "a"),
        (CallScope("e", "n", 1), "changed"),
    ],
)
async def test_call_with_another_key_is_not_replayed(scope: CallScope, prompt: str) -> None:
    async with model_client_harness(recorder=Notebook()) as harness:
        await harness.ask(prompt="a", scope=CallScope("e", "n", 1))
        fresh = CallScope(scope.execution_id, scope.path, scope.attempt)
        assert not (await harness.ask(prompt=prompt, scope=fresh)).recorded
        assert len(harness.llm.requests) == 2


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_conversation_is_replayed_unless_changed(provider: str) -> None:
    talk = (PromptMessage("user", "I am Ann."), PromptMessage("assistant", "Hello."))
    async with model_client_harness(
        TextReply("one"), TextReply("two"), recorder=Notebook()
    ) as harness:

        async def asked(*messages: PromptMessage) -> tuple[str, bool]:
            reply = await harness.ask(provider, "?", CallScope("e", "n", 1), messages=messages)
            return reply.text, reply.recorded

        assert await asked(*talk) == ("one", False)
        assert await asked(*talk) == ("one", True)
        assert await asked(*talk[:1], PromptMessage("assistant", "Hello Ann.")) == ("two", False)
        assert len(harness.llm.requests) == 2


async def test_call_without_scope_is_not_recorded() -> None:
    notebook = Notebook()
    async with model_client_harness(recorder=notebook) as harness:
        await harness.ask()
        assert notebook.kept == {}
        assert "idempotency-key" not in harness.llm.requests[0].headers


async def test_failed_call_is_not_recorded() -> None:
    notebook = Notebook()
    async with model_client_harness(ErrorReply(400), recorder=notebook) as harness:
        with pytest.raises(ProviderError):
            await harness.ask(scope=CallScope("e", "n", 1))
    assert notebook.kept == {}


async def test_failure_is_recorded_and_raised_again_where_the_scope_asks_for_it() -> None:
    notebook = Notebook()
    async with model_client_harness(ErrorReply(401), recorder=notebook) as harness:
        for _ in range(2):  # the second time as after a crash
            scope = CallScope("e", "n", 1)
            scope.record_failures = True
            with pytest.raises(ProviderError) as caught:
                await harness.ask(scope=scope)
            assert (caught.value.code, caught.value.status) == ("provider-auth", 401)
        assert len(harness.llm.requests) == 1
        assert (await harness.ask(scope=CallScope("e", "n", 2))).text == "ok"
    assert "canary" not in str(notebook.kept)


async def test_damaged_record_fails_without_a_new_call() -> None:
    class Damaged(Notebook):
        async def has_calls(self, key: CallKey) -> bool:
            return True

        async def recorded(self, key: CallKey) -> dict[str, Any] | None:
            return {}

    async with model_client_harness(recorder=Damaged()) as harness:
        with pytest.raises(StoreError) as caught:
            await harness.ask(scope=CallScope("e", "n", 1))
        assert (caught.value.code, harness.llm.requests) == ("bad-record", [])


async def test_failed_recording_fails_the_call() -> None:
    class Full(Notebook):
        async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
            raise StoreError("disk full")

    async with model_client_harness(recorder=Full()) as harness:
        with pytest.raises(StoreError, match="disk full"):
            await harness.ask(scope=CallScope("e", "n", 1))


@pytest.mark.parametrize("provider", ["openai", "anthropic", "box"])
async def test_crash_before_recording_repeats_the_call_with_the_same_key(
    provider: str,
) -> None:
    writing = asyncio.Event()

    class Crashing(Notebook):
        async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
            writing.set()
            await asyncio.Event().wait()

    keys: list[str] = []
    async with model_client_harness(recorder=Crashing()) as harness, asyncio.TaskGroup() as group:
        cut_off = group.create_task(harness.ask(provider, scope=CallScope("e", "n", 1)))
        await writing.wait()
        cut_off.cancel()
        keys += [request.headers["idempotency-key"] for request in harness.llm.requests]
    async with model_client_harness(recorder=Notebook()) as harness:
        for _ in range(2):
            await harness.ask(provider, scope=CallScope("e", "n", 1))
        keys += [request.headers["idempotency-key"] for request in harness.llm.requests]
    assert keys == ["e/n/0"] * 2


async def test_complete_reply_is_recorded_at_once_and_reported_once() -> None:
    """Nothing that can be cancelled lies between the end of a stream and its record."""
    ends: list[str] = []
    notebook = Notebook()
    async with model_client_harness(TextReply("abc", chunks=3), recorder=notebook) as harness:
        harness.client.on_call = lambda end: ends.append(end.outcome)
        items = harness.client.stream(ModelRequest("box", "box-1", "hi"), CallScope("e", "n", 1))
        async for item in items:
            if isinstance(item, ModelReply):
                break
        assert len(notebook.kept) == 1
        await items.aclose()
    assert ends == ["completed"]


async def test_reply_cancelled_during_recording_is_reported_as_completed() -> None:
    ends: list[str] = []
    writing = asyncio.Event()

    class Slow(Notebook):
        async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
            writing.set()
            await asyncio.Event().wait()

    async with model_client_harness(recorder=Slow()) as harness, asyncio.TaskGroup() as group:
        harness.client.on_call = lambda end: ends.append(end.outcome)
        call = group.create_task(harness.ask(scope=CallScope("e", "n", 1)))
        await writing.wait()
        call.cancel()
    assert ends == ["completed"], "it is paid for"


async def test_reply_cancelled_at_its_end_is_recorded(
    tmp_path: Path,
) -> None:
    async with stored_in(tmp_path) as store, model_client_harness(recorder=store) as harness:
        asking = asyncio.ensure_future(  # noqa: TID251 - cancelled on purpose
            harness.ask(scope=CallScope("e", "n", 1))
        )
        harness.client.on_call = lambda _: asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        harness.client.on_call = None
        await harness.ask(
            scope=CallScope("e", "later", 1)
        )  # all that is to be written is written now
        assert (await harness.ask(scope=CallScope("e", "n", 1))).recorded
        assert len(harness.llm.requests) == 2


@pytest.mark.parametrize("provider", ["openai", "anthropic", "box"])
async def test_interrupted_call_is_not_recorded(provider: str) -> None:
    notebook = Notebook()
    never = asyncio.Event()
    left = TextReply("abcdef", chunks=6, gates={4: never})
    cut = TextReply("abcdef", chunks=6, cut_after=5)
    async with model_client_harness(
        cut, left, recorder=notebook, limits=Limits(call_attempts=1)
    ) as harness:
        with pytest.raises(ProviderError):
            await harness.ask(provider, scope=CallScope("e", "n", 1))
        async with asyncio.TaskGroup() as group:
            cut_off = group.create_task(harness.ask(provider, scope=CallScope("e", "n", 1)))
            await until(lambda: len(harness.llm.requests) == 2 and harness.deltas)
            cut_off.cancel()
        assert notebook.kept == {}
        assert not (await harness.ask(provider, scope=CallScope("e", "n", 1))).recorded
        assert len(harness.llm.requests) == 3


async def test_answers_separate_recorded_calls() -> None:
    async with model_client_harness(
        TextReply("before"), TextReply("after"), recorder=Notebook()
    ) as harness:
        texts: list[str] = []
        for answers in (0, 1, 0, 1):
            reply = await harness.ask(scope=CallScope("e", "n", 1, answers))
            texts.append(reply.text)
        keys = [request.headers["idempotency-key"] for request in harness.llm.requests]
    assert texts == ["before", "after"] * 2
    assert keys == ["e/n/0", "e/n/1000"]


async def test_rejected_calls_are_not_reported() -> None:
    ends: list[str] = []
    limits = Limits(call_attempts=1, provider_failures=1, provider_wait_s=0)
    async with model_client_harness(ErrorReply(529), limits=limits) as harness:
        harness.client.on_call = lambda end: ends.append(end.outcome)
        for _ in range(3):
            with pytest.raises(ProviderError):
                await harness.ask()
        assert (await harness.ask("box")).text == "ok", "another provider is another matter"
    assert ends == ["provider-overloaded", "completed"]


async def test_exhausted_wait_limit_raises_the_first_error() -> None:
    limits = Limits(provider_failures=1, provider_wait_s=5)
    limited = ErrorReply(429, "rate_limit_error", headers={"retry-after": "6"})
    async with model_client_harness(limited, limits=limits) as harness:
        with pytest.raises(ProviderError, match="asked to wait 6 s"):
            await harness.ask()
        assert harness.time.slept == []


async def test_retry_delays_are_jittered_and_capped() -> None:
    many = [ErrorReply(500)] * 9
    async with model_client_harness(*many, limits=Limits(call_attempts=9), jitter=1.0) as harness:
        with pytest.raises(ProviderError):
            await harness.ask()
        assert harness.time.slept == [1, 2, 4, 8, 16, 20, 20, 20]
    async with model_client_harness(ErrorReply(500), jitter=0.0) as harness:
        await harness.ask()
        assert harness.time.slept == [0]


async def test_unknown_or_unconfigured_provider_makes_no_call() -> None:
    async with model_client_harness() as harness:
        with pytest.raises(UnknownProvider):
            await harness.ask("nowhere", model="m")
        with pytest.raises(UnavailableProvider):
            await harness.ask("local", model="m")
        assert harness.llm.requests == []


async def test_the_owner_of_a_call_is_told_why_it_is_not_answered_yet() -> None:
    scope, told = CallScope("x", "a", 1), list[str]()
    scope.warn = told.append
    limited = ErrorReply(429, "rate_limit_error", headers={"retry-after": "7"})
    async with model_client_harness(limited, jitter=0.0) as harness:
        await harness.ask(scope=scope.at(0))
    failed, waits = told
    assert failed.startswith("attempt 1 of a call failed, and is repeated: openai (gpt-4o-mini)")
    assert failed.endswith("it asked to wait 7 s: scripted failure")
    assert waits == "the call waits 7 s: openai (gpt-4o-mini) asked all calls to wait"


async def test_duration_includes_waits() -> None:
    async with model_client_harness(ErrorReply(429, headers={"retry-after": "7"})) as harness:
        assert (await harness.ask()).duration_s == 7


async def test_every_attempt_is_reported() -> None:
    never = asyncio.Event()
    ends: list[CallReport] = []
    steps = [ErrorReply(429, headers={"retry-after": "7"}), TextReply("one"), ErrorReply(400)]
    left = TextReply("abcdef", chunks=6, gates={4: never})
    async with model_client_harness(*steps, left, recorder=Notebook()) as harness:
        harness.client.on_call = ends.append
        for _ in range(2):
            await harness.ask(scope=CallScope("e", "n", 1))
        with pytest.raises(ProviderError):
            await harness.ask()
        async with aclosing(harness.client.stream(ModelRequest("box", "box-1", "hi"))) as items:
            async for _ in items:
                break
    servers = {each.server for each in ends if each.outcome != "recorded"}
    assert all(server and server.startswith("http://127.0.0.1:") for server in servers)
    assert ends[1].reply is not None
    assert (ends[1].reply.text, ends[1].reply.response_id) == ("one", "chatcmpl-1")
    place = {"execution_id": "e", "path": "n"}
    assert [each._replace(server=None, reply=None) for each in ends] == [
        CallReport(
            "openai",
            "gpt-4o-mini",
            "rate-limited",
            0.0,
            will_retry=True,
            retry_after_s=7.0,
            **place,
        ),
        CallReport("openai", "gpt-4o-mini", "completed", first_token_s=0.0, **place, number=2),
        CallReport("openai", "gpt-4o-mini", "recorded", **place),
        CallReport("openai", "gpt-4o-mini", "bad-request"),
        CallReport("box", "box-1", "cancelled", first_token_s=0.0),
    ]


async def test_a_call_that_fails_for_good_says_how_often_it_was_tried() -> None:
    steps = [ErrorReply(429) for _ in range(4)]
    reports: list[CallReport] = []
    async with model_client_harness(*steps) as harness:
        harness.client.on_call = reports.append
        with pytest.raises(ProviderError, match=r"too many requests .*\(after 4 attempts\)$"):
            await harness.ask()
    assert [(each.number, each.will_retry) for each in reports] == [
        (1, True),
        (2, True),
        (3, True),
        (4, False),
    ]


def waiting_for(provider: str, harness: ModelClientHarness) -> list[Any]:
    """Give the calls that stand in a provider's queues."""
    gate = harness.client._call_gates.get(provider)
    return (
        [location for queue in gate._limiter._queues.values() for location in queue] if gate else []
    )


async def test_executions_take_turns_at_a_busy_provider() -> None:
    door = asyncio.Event()

    async def held(body: dict[str, Any]) -> str:
        await door.wait()
        return "ok"

    one = ProviderSettings(max_concurrency=1)
    async with model_client_harness(reply_to=held, box=one) as harness:
        async with asyncio.TaskGroup() as group:
            for number, execution in enumerate("aaaab"):
                scope = CallScope(execution, "n", 1)
                group.create_task(harness.ask("box", f"{execution}{number}", scope))
            await until(lambda: len(waiting_for("box", harness)) == 4)
            door.set()
        order = [request.body["messages"][-1]["content"] for request in harness.llm.requests]
    assert order.index("b4") <= 2


async def test_closed_stream_releases_its_place() -> None:
    never = asyncio.Event()
    one = ProviderSettings(max_concurrency=1)
    async with model_client_harness(
        TextReply("abcdef", chunks=6, gates={4: never}), box=one
    ) as harness:
        request = ModelRequest("box", "box-1", "hi")
        async with aclosing(harness.client.stream(request)) as items:
            async for _ in items:
                break
        assert (await harness.ask("box")).text == "ok"
        await until(lambda: harness.llm.open_requests == 0)
        assert harness.llm.early_disconnects == 1


class Embedded:
    """An embedded server whose place is a fake one."""

    models = ("tiny",)
    default_model = "tiny"
    slots = 1

    def __init__(self, llm: FakeLLMServer) -> None:
        self.llm = llm
        self.asked: list[str] = []
        self.prepared: list[ModelRequest] = []
        self.key = "random-1"

    def running_download(self) -> None:
        return None

    def availability(self) -> tuple[bool, str, str]:
        return True, "ready", ""

    async def endpoint(self, model: str) -> tuple[str, str]:
        self.asked.append(model)
        return self.llm.openai_url, self.key

    async def prepare(self, request: ModelRequest) -> None:
        self.prepared.append(request)

    def profile(self, model: str) -> ModelProfile:
        return ModelProfile(small=True)

    async def close(self) -> None: ...


@pytest.mark.usefixtures("embedded_model_is_allowed")
async def test_local_calls_use_the_current_endpoint_and_are_free() -> None:
    async with FakeLLMServer() as llm:
        local = Embedded(llm)
        settings = Settings(openai_api_key=None)
        client = ModelClient(settings, ProviderRegistry(settings, local, environ={}))
        for key in ("random-1", "random-2"):
            local.key = key
            async with aclosing(client.stream(ModelRequest("local", "tiny", "hi"))) as items:
                last = [item async for item in items][-1]
            assert isinstance(last, ModelReply)
            assert last.usage.cost_usd == 0
            assert llm.requests[-1].headers["authorization"] == f"Bearer {key}"
        assert local.asked == ["tiny"] * 3, "once more while the SDK is imported"
        assert local.prepared == []
        await client.close()


@pytest.mark.usefixtures("embedded_model_is_allowed")
async def test_local_model_is_prepared_for_a_call_with_a_fixed_beginning() -> None:
    async with FakeLLMServer() as llm:
        local = Embedded(llm)
        client = ModelClient(
            Settings(openai_api_key=None), ProviderRegistry(Settings(), local, environ={})
        )
        request = ModelRequest("local", "tiny", "Plan this: a trip", fixed_chars=11)
        async with aclosing(client.stream(request)) as items:
            async for _ in items:
                assert local.prepared == [request]
        assert request.fixed_beginning == "Plan this: "
        await client.close()


@pytest.mark.usefixtures("embedded_model_is_allowed")
async def test_embedded_model_starts_while_the_sdk_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, imported = threading.Event(), threading.Event()

    class Starting(Embedded):
        async def endpoint(self, model: str) -> tuple[str, str]:
            asked.set()
            await asyncio.to_thread(imported.wait, 30)
            return await super().endpoint(model)

    def load(kind: str) -> None:
        assert asked.wait(30), "the model starts only after the import"
        imported.set()

    monkeypatch.setattr("planwave.providers.model_stream.load_sdk", load)
    async with FakeLLMServer() as llm:
        client = ModelClient(
            Settings(openai_api_key=None), ProviderRegistry(Settings(), Starting(llm), environ={})
        )
        async with aclosing(client.stream(ModelRequest("local", "tiny", "hi"))) as items:
            assert [item async for item in items]
        await client.close()


@pytest.mark.usefixtures("embedded_model_is_allowed")
@pytest.mark.parametrize("provider", ["openai", "local"])
async def test_what_is_loaded_once_takes_no_time_of_the_step(
    monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    """Both the SDK and the embedded model load for 0.3 s; the step may take that less than it was there."""
    monkeypatch.setattr("planwave.providers.model_stream.load_sdk", lambda kind: time.sleep(0.3))

    class Slow(Embedded):
        async def endpoint(self, model: str) -> tuple[str, str]:
            if not self.asked:
                await asyncio.sleep(0.3)
            return await super().endpoint(model)

    data = {"provider": provider, "model": "tiny", "prompt": "hi"}
    graph, _ = read_graph({"nodes": [{"id": "a", "type": "llm", "data": data}], "edges": []})
    async with FakeLLMServer() as llm:
        settings = Settings(openai_api_key="sk-test", openai_base_url=llm.openai_url)  # type: ignore[arg-type]
        providers = ProviderRegistry(settings, Slow(llm), environ={})
        client, program = (
            ModelClient(settings, providers),
            Program(graph, library_registry(providers)),
        )
        events = list[Event]()
        services = NodeServices(client, providers)
        execution = Execution(program, execution_id="x", services=services, on_events=events.extend)
        assert await execution.run() == "completed", execution.error
        await client.close()
    node = fold(events).nodes["a"]
    assert node.started_at is not None
    assert node.completed_at is not None
    assert node.duration_s is not None
    there = datetime.fromisoformat(node.completed_at) - datetime.fromisoformat(node.started_at)
    assert there.total_seconds() - node.duration_s > 0.29


def test_fixed_beginning_does_not_change_the_identity_of_a_call() -> None:
    plain = ModelRequest("local", "tiny", "Plan this: a trip")
    assert replace(plain, fixed_chars=11).hash() == plain.hash()


@pytest.mark.usefixtures("embedded_model_is_allowed")
async def test_local_first_byte_timeout_is_the_call_timeout() -> None:
    seen: list[float] = []

    def timeout(seconds: float) -> asyncio.Timeout:
        seen.append(seconds)
        return asyncio.timeout(None)

    async with FakeLLMServer() as llm:
        settings = Settings(openai_api_key=None)
        providers = ProviderRegistry(settings, Embedded(llm), environ={})
        client = ModelClient(settings, providers, clock=lambda: 0.0, timeout=timeout)
        async with aclosing(client.stream(ModelRequest("local", "tiny", "hi"))) as items:
            assert [item async for item in items]
        await client.close()
    assert seen[0] == 300


@pytest.mark.usefixtures("embedded_model_is_allowed")
async def test_local_start_error_is_passed_on() -> None:
    class Broken(Embedded):
        async def endpoint(self, model: str) -> tuple[str, str]:
            raise ProviderError("no memory", provider="local", code="local-start-failed")

    async with FakeLLMServer() as llm:
        settings = Settings(openai_api_key=None)
        client = ModelClient(settings, ProviderRegistry(settings, Broken(llm), environ={}))
        with pytest.raises(ProviderError, match="no memory") as caught:
            async with aclosing(client.stream(ModelRequest("local", "tiny", "hi"))) as items:
                assert [item async for item in items]
        assert caught.value.code == "local-start-failed"
        await client.close()
