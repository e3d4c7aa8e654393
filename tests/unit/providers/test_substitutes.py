"""Which model calls a process may make, and what a call that it may not make says."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

import planwave
from planwave.errors import ProviderError
from planwave.providers.client import ModelClient
from planwave.providers.local.download import download_model
from planwave.providers.protocols import ModelRequest, ProviderKind
from planwave.providers.registry import ProviderRegistry
from planwave.providers.substitutes import process_calls
from planwave.settings import Limits, ProviderSettings, Settings
from planwave.testing import FakeModel, forbid_model_calls, run_sync, use_model


def asks(**fields: Any) -> planwave.GraphBuilder:
    """Return a graph of one llm step."""
    g = planwave.GraphBuilder()
    g.node("llm", id="ask", **{"prompt": "Say hello.", **fields})
    return g


@pytest.fixture
def unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_calls, "allowed", None)
    monkeypatch.setattr(process_calls, "substitute", None)


def client_of(kind: ProviderKind, host: str = "models.example") -> tuple[ModelClient, ModelRequest]:
    """Return a client with a key for a provider of a kind, and a request to it."""
    url = f"http://{host}:9/v1"
    own = ProviderSettings(kind="openai-compatible", base_url=url, models=["m"])
    settings = Settings(
        limits=Limits(call_attempts=1),
        openai_api_key="sk-x",
        anthropic_api_key="sk-x",
        openai_base_url=url,
        anthropic_base_url=url,
        providers={"own": own},
    )
    local = SimpleNamespace(
        models=("m",), default_model="m", slots=1, availability=lambda: (True, "", "")
    )
    name = "own" if kind == "openai-compatible" else kind
    providers = ProviderRegistry(settings, local)  # pyright: ignore[reportArgumentType]
    return ModelClient(settings, providers), ModelRequest(name, "m", "x")


@pytest.mark.usefixtures("unguarded")
@pytest.mark.parametrize("kind", get_args(ProviderKind))
async def test_calls_of_every_kind_of_provider_are_forbidden(kind: ProviderKind) -> None:
    client, request = client_of(kind)
    with forbid_model_calls(), pytest.raises(ProviderError) as caught:
        _ = [item async for item in client.stream(request)]
    assert caught.value.code == "model-call-forbidden"
    assert f"a test called the model {request.provider}:m" in caught.value.message
    assert "FakeModel" in str(caught.value.hint)


@pytest.mark.usefixtures("unguarded")
@pytest.mark.parametrize("allow", ["own", "127.0.0.1"])
async def test_what_is_allowed_is_called_and_nothing_else(allow: str) -> None:
    with forbid_model_calls(allow=[allow]):
        client, request = client_of("openai-compatible", "127.0.0.1")
        with pytest.raises(ProviderError) as caught:
            _ = [item async for item in client.stream(request)]
        assert caught.value.code == "provider-unreachable"
        await client.close()
        other, request = client_of("local")
        with pytest.raises(ProviderError, match="a test called"):
            _ = [item async for item in other.stream(request)]


@pytest.mark.usefixtures("unguarded")
def test_the_guard_holds_in_runs_plans_and_downloads_until_the_block_ends(tmp_path: Path) -> None:
    with forbid_model_calls():
        for call in (
            lambda: planwave.run_sync(asks(model="openai:gpt-5.6-luna")),
            lambda: planwave.plan_sync("Compare two ways"),
            lambda: download_model("smollm2-135m", tmp_path),
        ):
            with pytest.raises(planwave.PlanwaveError, match="a test called the model"):
                call()
        assert list(tmp_path.iterdir()) == []
        assert run_sync(asks(), model=FakeModel("fake"))["ask"] == "fake"
        with use_model(FakeModel("fake")):
            assert planwave.run_sync(asks())["ask"] == "fake"
    assert process_calls.allowed is None
    with pytest.raises(planwave.ExecutionFailed, match="OPENAI_API_KEY is not set"):
        planwave.run_sync(asks(provider="openai"))
    with pytest.raises(TypeError, match=r"write allow=\['local'\]"):
        forbid_model_calls(allow="local")
