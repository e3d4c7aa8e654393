"""What a provider asks of one process holds in the others that call it with the same key: real notes, real calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from time import monotonic
from typing import NamedTuple

import pytest
from pydantic import SecretStr

from planwave.bootstrap import open_models, open_providers
from planwave.errors import ProviderError
from planwave.providers.client import ModelClient
from planwave.providers.model_stream import load_sdk
from planwave.providers.protocols import ModelReply, ModelRequest
from planwave.settings import Limits, Settings
from planwave.storage.postgres.store import PostgresStore
from tests.support.llm.fake_llm_server import ErrorReply, FakeLLMServer
from tests.support.polling import until

ASKED = ModelRequest("openai", "gpt-4o-mini", "hi")
DOWN = ErrorReply(503, "server_error")
NO_QUOTA = ErrorReply(429, "insufficient_quota")
"""What OpenAI says where the money is used up."""


class Processes(NamedTuple):
    """The clients of three processes: the last one has another key."""

    llm: FakeLLMServer
    one: ModelClient
    other: ModelClient
    stranger: ModelClient


@pytest.fixture
async def processes(database_url: str) -> AsyncIterator[Processes]:
    limits = Limits(provider_failures=2, call_attempts=1, provider_wait_s=0.1)
    await asyncio.to_thread(load_sdk, "openai")
    async with AsyncExitStack() as opened:
        llm = await opened.enter_async_context(FakeLLMServer())
        clients: list[ModelClient] = []
        for key in ("sk-a", "sk-a", "sk-b"):
            store = PostgresStore.open(database_url, is_carried=True)
            await opened.enter_async_context(store)
            await store.notices.open()
            opened.push_async_callback(store.notices.close)
            settings = Settings(
                openai_api_key=SecretStr(key), openai_base_url=llm.openai_url, limits=limits
            )
            registry, _ = open_providers(settings)
            clients.append(open_models(settings, registry, owners=store.owners))
            opened.push_async_callback(clients[-1].close)
        yield Processes(llm, *clients)


async def call(client: ModelClient) -> str:
    """Call the model; return its text, or the code of the failure."""
    try:
        async for item in client.stream(ASKED):
            if isinstance(item, ModelReply):
                return item.text
    except ProviderError as error:
        return error.code
    raise AssertionError("no reply")


async def is_told(client: ModelClient) -> None:
    """Wait until a process that has not called yet knows of a provider."""
    await until(lambda: "openai" in client._call_gates)


async def test_a_pause_that_a_provider_asks_for_holds_in_all_processes_with_the_key(
    processes: Processes,
) -> None:
    llm, one, other, stranger = processes
    llm.add(ErrorReply(429, "rate_limit_exceeded", headers={"retry-after": "1"}))
    began = monotonic()
    assert await call(one) == "rate-limited"
    await is_told(other)
    assert await call(stranger) == "ok"
    assert monotonic() - began < 0.9, "another key, another limit"
    async with asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(call(other)) for _ in range(3)]
    assert {each.result() for each in calls} == {"ok"}
    assert monotonic() - began >= 1
    assert len(llm.requests) == 5


@pytest.mark.parametrize(
    ("failures", "refused"),
    [([DOWN, DOWN], "provider-overloaded"), ([NO_QUOTA], "quota-exhausted")],
)
async def test_a_circuit_that_opens_in_one_process_opens_in_all_with_the_key(
    processes: Processes, failures: list[ErrorReply], refused: str
) -> None:
    llm, one, other, stranger = processes
    llm.add(*failures)
    for _ in failures:
        await call(one)
    await is_told(other)
    assert await call(other) == refused
    assert await call(stranger) == "ok"
    assert len(llm.requests) == len(failures) + 1, "it was not called by the other one"


async def test_each_process_probes_by_itself_and_finds_that_the_provider_is_back(
    processes: Processes,
) -> None:
    llm, one, other, _ = processes
    llm.add(DOWN, DOWN)
    assert [await call(one) for _ in range(3)][-1] == "provider-overloaded"
    await is_told(other)
    await asyncio.sleep(1.05)
    assert [await call(each) for each in (one, other)] == ["ok", "ok"]


async def test_a_note_that_is_lost_costs_a_call(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm, one, other, _ = processes
    monkeypatch.setattr(
        "planwave.storage.postgres.notices.PostgresNotices._receive", lambda *_: None
    )
    llm.add(ErrorReply(429, "rate_limit_exceeded", headers={"retry-after": "1"}))
    began = monotonic()
    assert [await call(each) for each in (one, other)] == ["rate-limited", "ok"]
    assert monotonic() - began < 0.9
    assert len(llm.requests) == 2
