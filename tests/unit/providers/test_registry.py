from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from planwave.errors import UnavailableProvider, UnknownModel, UnknownProvider
from planwave.nodes.checking.data_checks import model_finding
from planwave.providers.protocols import ModelProfile, Providers, Usage
from planwave.providers.registry import ProviderRegistry
from planwave.settings import ProviderSettings, Settings

BOTH = {"OPENAI_API_KEY": "sk-o-1234567", "ANTHROPIC_API_KEY": "sk-a-1234567"}


@dataclass
class Embedded:
    """A local provider that can be or not be there."""

    state: tuple[bool, str, str] = (True, "ready", "")
    models: tuple[str, ...] = ("tiny", "small")
    default_model: str = "tiny"
    slots: int = 2

    def running_download(self) -> None:
        return None

    def availability(self) -> tuple[bool, str, str]:
        return self.state

    async def endpoint(self, model: str) -> tuple[str, str]:
        return "http://127.0.0.1:1/v1", "key"

    def profile(self, model: str) -> ModelProfile:
        return ModelProfile(small=True, max_output_tokens=220)

    async def close(self) -> None: ...


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*BOTH, "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def registry(
    local: Embedded | None = None, environ: dict[str, str] | None = None, **settings: Any
) -> ProviderRegistry:
    return ProviderRegistry(Settings(**settings), local, environ=environ or {})


def test_available_providers_come_first_and_others_have_reasons() -> None:
    known: Providers = registry(Embedded(), OPENAI_API_KEY="sk-o-1234567")
    infos = known.list()
    assert [(info.name, info.available) for info in infos] == [
        ("openai", True),
        ("local", True),
        ("anthropic", False),
    ]
    assert infos[2].reason == "ANTHROPIC_API_KEY is not set"
    assert "ANTHROPIC_API_KEY" in infos[2].how_to_enable
    assert all(info.reason for info in infos)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (BOTH, "openai"),
        ({"ANTHROPIC_API_KEY": "sk-a-1234567"}, "anthropic"),
        ({}, "local"),
        ({"OPENAI_API_KEY": "   "}, "local"),
    ],
)
def test_default_is_openai_then_anthropic_then_local(keys: dict[str, str], expected: str) -> None:
    provider, model = registry(Embedded(), **keys).resolve(None, None)
    assert provider == expected
    assert model


def test_configured_provider_is_the_default() -> None:
    known = registry(Embedded(), provider="anthropic", model="claude-x", **BOTH)
    assert known.resolve(None, None) == ("anthropic", "claude-x")
    assert known.resolve("anthropic", None) == ("anthropic", "claude-x")
    assert known.resolve("openai", None) == ("openai", "gpt-5.6-luna")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-haiku-4-5", "anthropic"),
        ("claude-new-9", "anthropic"),
        ("gpt-9", "openai"),
        ("tiny", "local"),
        ("something-else", "openai"),
    ],
)
def test_provider_is_found_by_model_name(model: str, expected: str) -> None:
    assert registry(Embedded(), **BOTH).resolve(None, model) == (expected, model)


def test_model_of_unavailable_provider_is_not_sent_elsewhere() -> None:
    with pytest.raises(UnavailableProvider, match="ANTHROPIC_API_KEY is not set") as caught:
        registry(Embedded(), OPENAI_API_KEY="sk-o-1234567").resolve(None, "claude-haiku-4-5")
    assert "openai or local" in (caught.value.hint or "")


def test_configured_provider_takes_unclaimed_models() -> None:
    table = ProviderSettings(base_url="http://127.0.0.1:1/v1")
    known = registry(provider="box", providers={"box": table}, **BOTH)
    assert known.resolve(None, "llama-9") == ("box", "llama-9")
    assert known.resolve(None, "claude-haiku-4-5") == ("anthropic", "claude-haiku-4-5")


@pytest.mark.parametrize("name", ["gpt9000", "", " ", "x" * 5000])
def test_unknown_provider_lists_providers(name: str) -> None:
    with pytest.raises(UnknownProvider) as caught:
        registry(Embedded(), **BOTH).resolve(name, None)
    assert "available: openai, anthropic, local" in caught.value.message
    assert len(caught.value.message) < 500
    assert caught.value.code == "unknown-provider"


@pytest.mark.parametrize(("name", "meant"), [("OpenAI", "openai"), ("antropic", "anthropic")])
def test_similar_provider_is_suggested(name: str, meant: str) -> None:
    with pytest.raises(UnknownProvider, match=f"did you mean '{meant}'") as caught:
        registry(Embedded()).resolve(name, None)
    assert caught.value.closest == meant
    finding = model_finding(caught.value)
    assert finding.correction == (f"Use provider {meant}", {"data": {"provider": meant}})


@pytest.mark.parametrize("model", ["", " ", "a b", "a\nb", "x" * 201, "a\x00b"])
def test_invalid_model_name_is_rejected(model: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        registry(**BOTH).resolve("openai", model)
    assert caught.value.code == "unknown-model"


def test_hosted_provider_takes_unlisted_models() -> None:
    assert registry(**BOTH).resolve("openai", "gpt-99") == ("openai", "gpt-99")


def test_endpoint_with_models_takes_only_those() -> None:
    table = ProviderSettings(base_url="http://127.0.0.1:1/v1", models=["llama-3", "qwen-2"])
    known = registry(providers={"box": table})
    assert known.resolve("box", None) == ("box", "llama-3")
    with pytest.raises(UnknownModel, match="llama-3, qwen-2; did you mean 'llama-3'") as caught:
        known.resolve("box", "llama3")
    assert caught.value.closest == "llama-3"


def test_endpoint_without_models_needs_a_model() -> None:
    known = registry(providers={"box": ProviderSettings(base_url="http://127.0.0.1:1/v1")})
    assert known.resolve("box", "any/thing") == ("box", "any/thing")
    with pytest.raises(UnknownModel, match="no default model"):
        known.resolve("box", None)


@pytest.mark.parametrize(
    ("table", "environ", "reason"),
    [
        (ProviderSettings(), {}, "no base_url"),
        (ProviderSettings(base_url="ftp://x"), {}, "not an http"),
        (ProviderSettings(base_url="http://"), {}, "not an http"),
        (ProviderSettings(base_url="http://[bad"), {}, "not an http"),
        (ProviderSettings(base_url="http://h:99999999"), {}, "not an http"),
        (ProviderSettings(base_url="http://h/v1", api_key_env="BOX"), {}, "BOX is not set"),
        (
            ProviderSettings(base_url="http://h/v1", api_key_env="BOX"),
            {"BOX": "a\tb"},
            "characters",
        ),
        (
            ProviderSettings(base_url="http://h/v1", api_key_env="BOX"),
            {"BOX": "ключ"},
            "characters",
        ),
        (ProviderSettings(kind="anthropic"), {}, "names no api_key_env"),
    ],
)
def test_unusable_endpoint_has_reason_and_hint(
    table: ProviderSettings, environ: dict[str, str], reason: str
) -> None:
    known = registry(environ=environ, providers={"box": table})
    info = next(info for info in known.list() if info.name == "box")
    assert not info.available
    assert reason in info.reason
    assert info.how_to_enable
    with pytest.raises(UnavailableProvider, match="box"):
        known.resolve("box", "m")
    with pytest.raises(UnavailableProvider, match="box"):
        known.config("box")


def test_no_available_provider_lists_hints() -> None:
    absent = Embedded((False, "this CPU has no AVX2", "use another machine"))
    with pytest.raises(UnavailableProvider) as caught:
        registry(absent).resolve(None, None)
    assert caught.value.message == (
        "no language model provider is available: openai (OPENAI_API_KEY is not set); "
        "anthropic (ANTHROPIC_API_KEY is not set); local (this CPU has no AVX2)"
    )
    assert caught.value.hint == (
        "set OPENAI_API_KEY in the environment, or set ANTHROPIC_API_KEY in the environment, "
        "or use another machine, or add [providers.NAME] with a base_url to planwave.toml"
    )


def test_local_without_embedded_model_is_unavailable() -> None:
    with pytest.raises(UnavailableProvider, match="local"):
        registry().resolve("local", None)


def test_local_models_are_listed() -> None:
    known = registry(Embedded())
    assert known.resolve("local", None) == ("local", "tiny")
    with pytest.raises(UnknownModel, match="tiny, small"):
        known.resolve("local", "huge")


def test_undownloaded_model_names_the_pull_command() -> None:
    with pytest.raises(UnknownModel, match=r"no model 'qwen2\.5-coder-0\.5b'") as caught:
        registry(Embedded()).resolve("local", "qwen2.5-coder-0.5b")
    assert caught.value.hint == (
        "run: planwave model pull qwen2.5-coder-0.5b, "
        "or leave the model out to use the provider's default"
    )


def test_local_model_is_found_by_its_path() -> None:
    known = registry(Embedded(), local_model="/models/tiny.gguf", model="/models/tiny.gguf")
    assert known.resolve("local", "/models/tiny.gguf") == ("local", "tiny")
    with pytest.raises(UnknownModel):
        known.resolve("local", "/models/other.gguf")


def test_config_has_settings_and_hides_key() -> None:
    table = ProviderSettings(
        base_url="http://h/v1", api_key_env="BOX", max_concurrency=3, requests_per_minute=9
    )
    known = registry(environ={"BOX": " key-1 "}, providers={"box": table}, **BOTH)
    box = known.config("box")
    assert (box.kind, box.base_url) == ("openai-compatible", "http://h/v1")
    assert (box.max_concurrency, box.requests_per_minute) == (3, 9)
    assert box.api_key is not None
    assert box.api_key.get_secret_value() == "key-1"
    assert "key-1" not in repr(box)
    assert "sk-o" not in repr(known.config("openai")) + repr(known.list())


def test_settings_table_tunes_a_hosted_provider() -> None:
    known = registry(providers={"openai": ProviderSettings(max_concurrency=2)}, **BOTH)
    assert known.config("openai").max_concurrency == 2
    assert known.config("openai").kind == "openai"
    assert [info.name for info in known.list()].count("openai") == 1


def test_local_concurrency_is_the_number_of_slots() -> None:
    assert registry(Embedded()).config("local").max_concurrency == 2


def test_profiles_of_local_and_hosted_models() -> None:
    known = registry(Embedded(), **BOTH)
    assert known.profile("local", "tiny").small
    assert not known.profile("openai", "gpt-99").small
    assert not known.profile("nowhere", "x").small


def test_hosted_providers_search_the_web() -> None:
    url = "http://127.0.0.1:1/v1"
    tables = {
        "box": ProviderSettings(base_url=url),
        "proxy": ProviderSettings(base_url=url, kind="anthropic", api_key_env="PROXY"),
    }
    known = registry(Embedded(), providers=tables, **BOTH)
    names = ("openai", "anthropic", "proxy", "box", "local", "nowhere")
    can = {name: known.profile(name, "m").web_search for name in names}
    assert can == {
        "openai": True,
        "anthropic": True,
        "proxy": True,
        "box": False,
        "local": False,
        "nowhere": False,
    }
    assert known.profile("box", "m").tools


def test_hosted_providers_keep_prompts_in_a_cache_unless_the_operator_says_otherwise() -> None:
    url = "http://127.0.0.1:1/v1"
    tables = {
        "box": ProviderSettings(base_url=url),
        "cached": ProviderSettings(base_url=url, prompt_cache=True),
        "proxy": ProviderSettings(base_url=url, kind="anthropic", api_key_env="P"),
        "plain": ProviderSettings(base_url=url, kind="anthropic", api_key_env="P", prompt_cache=False),
    }  # fmt: skip
    known = registry(Embedded(), providers=tables, **BOTH)
    names = ("openai", "anthropic", "proxy", "cached", "box", "plain", "local", "nowhere")
    least = [known.profile(name, "m").cached_tokens for name in names]
    assert least == [1_024] * 4 + [None] * 4
    assert known.profile("anthropic", "claude-opus-4-6").cached_tokens == 4_096


def test_prices_of_hosted_local_and_unknown_models() -> None:
    known = registry(providers={"box": ProviderSettings(base_url="http://127.0.0.1:1/v1")}, **BOTH)
    tokens = Usage(input_tokens=1_000_000, output_tokens=0)
    cheap = known.price("openai", "gpt-4o-mini", tokens)
    assert cheap == pytest.approx(0.15)
    assert known.price("openai", "gpt-unheard-of", tokens) is None
    assert known.price("box", "m", tokens) is None
    assert known.price("nowhere", "m", tokens) is None
    assert known.price("local", "tiny", tokens) == 0


def test_own_endpoint_is_the_default_without_others() -> None:
    box = ProviderSettings(base_url="http://x.test/v1", models=["m-1"])
    registry = ProviderRegistry(Settings(providers={"box": box}), environ={})
    assert registry.resolve(None, None) == ("box", "m-1")


def test_the_embedded_model_can_be_forbidden() -> None:
    settings = Settings(embedded_model="never")
    providers = ProviderRegistry(settings, environ={})
    (local,) = [info for info in providers.list() if info.name == "local"]
    assert (local.available, local.how_to_enable) == (False, "set embedded_model to allow")
    for provider in (None, "local"):
        with pytest.raises(UnavailableProvider, match="the setting embedded_model is never"):
            providers.resolve(provider, None)


def elsewhere(**settings: Any) -> ProviderRegistry:
    local = Embedded((False, "it is not installed", "install it"))
    return ProviderRegistry(Settings(**settings), local, environ={}, embedded_elsewhere=True)


def test_steps_may_name_the_embedded_model_where_only_other_processes_run_it() -> None:
    known = elsewhere(OPENAI_API_KEY="sk-o-1234567")
    assert known.resolve("local", None) == ("local", "tiny")
    assert known.resolve("local", "of-another-process") == ("local", "of-another-process")
    (info,) = [each for each in known.list() if each.name == "local"]
    assert info.available
    assert "here it is not installed" in info.reason
    assert known.is_elsewhere("local")
    assert not known.is_elsewhere("openai")
    with pytest.raises(UnavailableProvider, match="it is not installed"):
        known.config("local")


def test_what_can_be_called_here_is_the_default_before_what_others_run() -> None:
    own = {
        "own": {"kind": "openai-compatible", "base_url": "http://127.0.0.1:1/v1", "models": ["one"]}
    }
    assert elsewhere(providers=own).resolve(None, None) == ("own", "one")
    assert elsewhere().resolve(None, None) == ("local", "tiny")
    assert registry(Embedded(), providers=own).resolve(None, None) == ("local", "tiny")


def test_a_forbidden_embedded_model_is_nowhere() -> None:
    known = elsewhere(embedded_model="never")
    assert not known.is_elsewhere("local")
    with pytest.raises(UnavailableProvider, match="embedded_model is never"):
        known.resolve("local", None)
