"""A model client on a fake provider, in virtual time. Used by the provider tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest

from planwave.errors import ProviderError
from planwave.providers.client import ModelClient
from planwave.providers.model_stream import load_sdk
from planwave.providers.protocols import (
    CallScope,
    Delta,
    ModelReply,
    ModelRequest,
    OpenCallTrace,
    Recorder,
)
from planwave.providers.registry import ProviderRegistry
from planwave.settings import Limits, ProviderSettings, Settings
from tests.support.llm.fake_llm_server import FakeLLMServer, ReplyStep, ReplyToRequest

SECRETS = ("canary", "Bearer", "x-api-key", "authorization")
MODELS = {"openai": "gpt-4o-mini", "anthropic": "claude-haiku-5-5", "box": "box-1"}
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class ManualClock:
    """Time that moves only by sleeping or by hand; deadlines that pass only by hand."""

    now: float = 1_000.0
    slept: list[float] = field(default_factory=list)
    deadlines: list[ManualDeadline] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def date(self) -> datetime:
        return START + timedelta(seconds=self.now - 1_000.0)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def timeout(self, seconds: float) -> ManualDeadline:
        self.deadlines.append(ManualDeadline(seconds))
        return self.deadlines[-1]

    async def pass_deadline(self) -> float:
        """Wait until all is silent, let the running deadline pass, give the seconds it was set to."""
        for _ in range(10_000):
            seen = len(self.deadlines)
            for _ in range(100):
                await asyncio.sleep(0)
            if self.deadlines and len(self.deadlines) == seen and self.deadlines[-1].running:
                break
        last = self.deadlines[-1]
        self.now += last.seconds
        last.expire()
        return last.seconds


class LoopClock(ManualClock):
    """The time of the running loop, for tests with many waits at once on a virtual loop."""

    def clock(self) -> float:
        return asyncio.get_running_loop().time()

    def date(self) -> datetime:
        return START + timedelta(seconds=self.clock())

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float) -> Any:
        return asyncio.timeout(seconds)


class ManualDeadline:
    """A deadline that passes by hand; one that is already over passes at once."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.running = False
        self._inner = asyncio.timeout(0 if seconds <= 0 else None)

    async def __aenter__(self) -> None:
        self.running = True
        await self._inner.__aenter__()

    async def __aexit__(self, *raised: Any) -> None:
        self.running = False
        await self._inner.__aexit__(*raised)

    def expire(self) -> None:
        self._inner.reschedule(asyncio.get_running_loop().time())


@dataclass
class ModelClientHarness:
    """One fake server, one client, three ways to call it: openai, anthropic, box."""

    llm: FakeLLMServer
    client: ModelClient
    time: ManualClock
    deltas: list[Delta] = field(default_factory=list)

    async def ask(
        self,
        provider: str = "openai",
        prompt: str = "hi",
        scope: CallScope | None = None,
        **more: Any,
    ) -> ModelReply:
        """Make one call; the deltas are kept in ``deltas``."""
        model = more.pop("model", None) or MODELS[provider]
        request = ModelRequest(provider=provider, model=model, prompt=prompt, **more)
        self.deltas.clear()
        async with aclosing(self.client.stream(request, scope)) as items:
            async for item in items:
                if isinstance(item, ModelReply):
                    return item
                self.deltas.append(item)
        raise AssertionError("the stream ended without a reply")

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.deltas if delta.kind == "text")


@cache
def _with_keys() -> Settings:
    """Return settings with keys: to read them from everywhere takes longer than a call."""
    return Settings(
        openai_api_key="sk-canary-openai-0123456789", anthropic_api_key="sk-ant-canary-0123456789"
    )


@asynccontextmanager
async def model_client_harness(
    *steps: ReplyStep,
    reply_to: ReplyToRequest | None = None,
    recorder: Recorder | None = None,
    limits: Limits | None = None,
    box: ProviderSettings | None = None,
    jitter: float = 0.5,
    environ: Mapping[str, str] | None = None,
    time: ManualClock | None = None,
    urls: str | None = None,
    open_trace: OpenCallTrace | None = None,
    lacks: Collection[str] = (),
) -> AsyncIterator[ModelClientHarness]:
    """Run a fake provider and a client for it.

    Their time is moved by hand unless it is given; ``urls`` sends all calls somewhere else.
    """
    for kind in ("openai", "anthropic"):
        load_sdk(
            kind
        )  # seconds on a busy machine, which no deadline of a test should have to cover
    async with FakeLLMServer(*steps, reply_to=reply_to, lacks=lacks) as llm:
        openai_url = f"{urls}/v1" if urls else llm.openai_url
        table = box or ProviderSettings()
        own_url = llm.anthropic_url if table.kind == "anthropic" else openai_url
        table = table.model_copy(update={"base_url": table.base_url or own_url})
        settings = _with_keys().model_copy(
            update={
                "openai_base_url": openai_url,
                "anthropic_base_url": urls or llm.anthropic_url,
                "providers": {"box": table},
                "limits": limits or Limits(),
            }
        )
        time = time or ManualClock()
        client = ModelClient(
            settings,
            ProviderRegistry(settings, environ=environ or {}),
            recorder,
            clock=time.clock,
            sleep=time.sleep,
            rng=lambda: jitter,
            timeout=time.timeout,
            now=time.date,
            open_trace=open_trace,
        )
        try:
            yield ModelClientHarness(llm, client, time)
        finally:
            await client.close()


async def expect_provider_error(
    harness: ModelClientHarness, provider: str, **more: object
) -> ProviderError:
    """Make a call that has to fail; whatever it says holds no secret and names the provider."""
    with pytest.raises(ProviderError) as caught:
        await harness.ask(provider, **more)
    error = caught.value
    shown = json.dumps(error.as_json())
    assert not [secret for secret in SECRETS if secret.lower() in shown.lower()]
    assert error.provider == provider
    assert provider in error.message
    return error
