"""The known providers, why one is unavailable, and the choice of one for a request.

Cheap: imports no SDK and calls nothing. A provider is available if it is configured; whether its key
works shows at the first call.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from urllib.parse import urlsplit

from pydantic import SecretStr

from planwave.errors import UnavailableProvider, UnknownModel, UnknownProvider
from planwave.providers.capabilities import CapabilityTable, default_api, minimum_tokens
from planwave.providers.local.model_files import MODEL_FILES
from planwave.providers.protocols import (
    LocalProvider,
    ModelProfile,
    Models,
    ProviderInfo,
    ProviderKind,
    Usage,
)
from planwave.settings import ProviderSettings, Settings

_MODELS: dict[str, tuple[str, ...]] = {
    "openai": (
        "gpt-5.6-luna",
        "gpt-6-luna",
        "gpt-6.1-terra",
        "gpt-6.1-sol",
        "gpt-5.6-terra",
        "gpt-5.6-sol",
        "gpt-4o-mini",
    ),
    "anthropic": (
        "claude-haiku-5-5",
        "claude-sonnet-5-5",
        "claude-opus-5-5",
        "claude-haiku-4-5",
        "claude-sonnet-4-6",
    ),
}
"""Tested names, the default first: the cheapest current model that plans well.

Source: the model names of pydantic-ai 2.68; other names are passed on unchanged.
"""

_FAMILIES = (("claude", "anthropic"), ("gpt-", "openai"), ("chatgpt-", "openai"))
_HOSTED_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_SEARCHING_KINDS: tuple[ProviderKind, ...] = ("openai", "anthropic")
_MODEL_NAME_CHARS = 200
_FAKE = "fake"
"""The provider and the model of calls that name none, where a test replies."""
_FAKE_CONCURRENCY = 64
_ADD_PROVIDER = "add [providers.NAME] with a base_url to planwave.toml"
_NEW_PROVIDER_HINT = f"name one of these, or {_ADD_PROVIDER}"
_LOCAL_FORBIDDEN = (False, "the setting embedded_model is never", "set embedded_model to allow")
_LOCAL_MISSING = (False, "the embedded model is not part of this installation", "")


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """The connection of one provider, with its secret key; only for the client.

    ``substitute`` replies to the calls in place of the provider, in tests.
    """

    name: str
    kind: ProviderKind
    base_url: str | None
    api_key: SecretStr | None
    max_concurrency: int
    requests_per_minute: int | None
    settings: ProviderSettings = field(default_factory=ProviderSettings)
    substitute: Models | None = None


class ProviderRegistry:
    """The providers of one configuration; implements ``protocols.Providers``.

    Args:
        settings: Keys, endpoints and the defaults.
        local: The embedded model server, or None without one.
        environ: The environment for ``api_key_env``; by default that of the process.
        embedded_elsewhere: Whether other processes may run the embedded model for executions: steps may name it although
            it cannot be called here.
    """

    def __init__(
        self,
        settings: Settings,
        local: LocalProvider | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        embedded_elsewhere: bool = False,
    ) -> None:
        self._embedded_elsewhere = embedded_elsewhere
        self._settings = settings
        self._environ = os.environ if environ is None else environ
        self.local = local

    def list(self) -> list[ProviderInfo]:
        """Return all known providers, available ones first, then by preference."""
        infos = [self._describe(name) for name in self._names()]
        return sorted(infos, key=lambda info: not info.available)

    def resolve(self, provider: str | None, model: str | None) -> tuple[str, str]:
        """Return the provider and model of a request; None selects the default.

        Without a provider, the name of the model selects the provider that lists it.
        """
        settings = self._settings
        if provider is None and model is None:
            provider, model = settings.provider, settings.model
        if provider is None:
            info = self._provider_of_model(model) if model is not None else self._first_available()
        else:
            info = self._require_known(provider)
        self._require_available(info)
        if info.name == "local" and model == settings.local_model:
            model = None  # the configured name of the embedded model, possibly a path
        elif model is None and settings.model is not None and settings.provider == info.name:
            model = settings.model
        return info.name, self._accept_model(info, model)

    def profile(self, provider: str, model: str) -> ModelProfile:
        """Return the capabilities of a model; accepts any name."""
        if provider == "local" and self.local is not None:
            return self.local.profile(model)
        if provider not in self._names():
            return ModelProfile()
        kind = self._kind(provider)
        table = self._settings.providers.get(provider) or ProviderSettings()
        has_cache = CapabilityTable(kind, table).of(default_api(kind), model).prompt_cache
        return ModelProfile(
            web_search=kind in _SEARCHING_KINDS,
            cached_tokens=minimum_tokens(model) if has_cache else None,
        )

    def price(self, provider: str, model: str, usage: Usage) -> float | None:
        """Return the price in US dollars from the public price list, or None if unknown."""
        if provider == "local":
            return 0.0
        # Lazy: test_importing_providers_loads_no_sdk
        from genai_prices import Usage as Tokens
        from genai_prices import calc_price

        tokens = Tokens(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        try:
            if provider in _HOSTED_KEYS:
                return float(calc_price(tokens, model, provider_id=provider).total_price)
            table = self._settings.providers.get(provider)
            url = table.base_url if table is not None else None
            if url is None:
                return None
            return float(calc_price(tokens, model, provider_api_url=url).total_price)
        except LookupError:
            return None

    def config(self, provider: str) -> ProviderConfig:
        """Return the connection of a provider.

        Raises:
            UnknownProvider, UnavailableProvider: As ``resolve``; also where only other processes can call it.
        """
        info = self._require_known(provider)
        self._require_available(self._describe_embedded() if info.name == "local" else info)
        table = self._settings.providers.get(provider) or ProviderSettings()
        slots = table.max_concurrency
        if provider == "local" and self.local is not None:
            slots = self.local.slots
        return ProviderConfig(
            name=provider,
            kind=self._kind(provider),
            base_url=self._base_url(provider),
            api_key=self._api_key(provider),
            max_concurrency=slots,
            requests_per_minute=table.requests_per_minute,
            settings=table,
        )

    def is_elsewhere(self, provider: str) -> bool:
        """Return whether only other processes can call a provider."""
        return (
            provider == "local"
            and self._may_be_elsewhere
            and not self._describe_embedded().available
        )

    @property
    def _may_be_elsewhere(self) -> bool:
        return self._embedded_elsewhere and self._settings.embedded_model != "never"

    # -- one provider -------------------------------------------------------------------------

    def _names(self) -> builtins.list[str]:
        configured = [
            name for name in self._settings.providers if name not in (*_HOSTED_KEYS, "local")
        ]
        return [*_HOSTED_KEYS, *configured, "local"]

    def _kind(self, name: str) -> ProviderKind:
        match name:
            case "openai" | "anthropic" | "local":
                return name
            case _:
                return self._settings.providers[name].kind

    def _key_variable(self, name: str) -> str | None:
        table = self._settings.providers.get(name)
        if table is not None and table.api_key_env:
            return table.api_key_env
        return _HOSTED_KEYS.get(name)

    def _api_key(self, name: str) -> SecretStr | None:
        variable = self._key_variable(name)
        if variable is None:
            return None
        settings = self._settings
        from_settings = {
            "OPENAI_API_KEY": settings.openai_api_key,
            "ANTHROPIC_API_KEY": settings.anthropic_api_key,
        }.get(variable)
        raw = from_settings.get_secret_value() if from_settings else self._environ.get(variable, "")
        return SecretStr(raw.strip()) if raw.strip() else None

    def _base_url(self, name: str) -> str | None:
        table = self._settings.providers.get(name)
        if table is not None and table.base_url:
            return table.base_url
        return {
            "openai": self._settings.openai_base_url,
            "anthropic": self._settings.anthropic_base_url,
        }.get(name) or None

    def _describe(self, name: str) -> ProviderInfo:
        if name == "local":
            return self._describe_local()
        table = self._settings.providers.get(name)
        listed = tuple(table.models) if table is not None else ()
        models = listed or _MODELS.get(name, ())
        unavailable = self._unavailable_reason(name)
        reason, how_to_enable = unavailable or (self._available_reason(name), "")
        return ProviderInfo(
            name=name,
            kind=self._kind(name),
            available=unavailable is None,
            reason=reason,
            how_to_enable=how_to_enable,
            models=models,
            default_model=models[0] if models else None,
            open_models=not listed,
        )

    def _describe_local(self) -> ProviderInfo:
        here = self._describe_embedded()
        if here.available or not self._may_be_elsewhere:
            return here
        reason = f"processes that have the embedded model run it; here {here.reason}"
        models = tuple(dict.fromkeys((*here.models, *MODEL_FILES)))
        return replace(here, available=True, reason=reason, models=models, open_models=True)

    def _describe_embedded(self) -> ProviderInfo:
        """Describe the embedded model as this process can run it."""
        local = self.local
        if self._settings.embedded_model == "never":
            available, reason, how_to_enable = _LOCAL_FORBIDDEN
        else:
            available, reason, how_to_enable = local.availability() if local else _LOCAL_MISSING
        return ProviderInfo(
            name="local",
            kind="local",
            available=available,
            reason=reason,
            how_to_enable=how_to_enable,
            models=local.models if local else (),
            default_model=local.default_model if local else None,
            open_models=False,
            download=local.running_download() if local and not available else None,
        )

    def _available_reason(self, name: str) -> str:
        variable = self._key_variable(name)
        if variable:
            return f"{variable} is set"
        return f"configured as [providers.{name}], without a key"

    def _unavailable_reason(self, name: str) -> tuple[str, str] | None:
        """Return why a provider is unavailable and how to enable it, or None if it is available."""
        kind = self._kind(name)
        package = "anthropic" if kind == "anthropic" else "openai"
        if not _is_installed(package):
            return f"the package {package!r} is not installed", f"pip install {package}"
        url, table = self._base_url(name), f"[providers.{name}]"
        if kind == "openai-compatible" and url is None:
            return f"{table} has no base_url", f"set base_url in {table} of planwave.toml"
        if url is not None and not _is_http_url(url):
            where = (
                f"base_url in {table}" if name not in _HOSTED_KEYS else f"{name.upper()}_BASE_URL"
            )
            return f"{where} is not an http(s) address", f"set {where} to https://…"
        variable = self._key_variable(name)
        if variable is None:
            needs_key = kind != "openai-compatible"
            missing = (f"{table} names no api_key_env", f"set api_key_env in {table}")
            return missing if needs_key else None
        key = self._api_key(name)
        if key is None:
            return f"{variable} is not set", f"set {variable} in the environment"
        if not _is_header_safe(key.get_secret_value()):
            return (
                f"{variable} has characters that are invalid in a key",
                f"copy the key into {variable} again",
            )
        return None

    # -- choosing -----------------------------------------------------------------------------

    def _require_known(self, provider: str) -> ProviderInfo:
        if provider in self._names():
            return self._describe(provider)
        named = f"unknown provider {provider[:80]!r}"
        if near := _closest(provider, self._names()):
            hint = f"the providers are {', '.join(self._names())}"
            error = UnknownProvider(f"{named}: did you mean {near!r}?", hint=hint)
            error.closest = near
            raise error
        raise UnknownProvider(f"{named}; {self._overview()}", hint=_NEW_PROVIDER_HINT)

    def _require_available(self, info: ProviderInfo) -> None:
        if not info.available:
            raise UnavailableProvider(
                f"provider {info.name!r} is not available: {info.reason}",
                hint=self._hint(info.how_to_enable),
            )

    def _first_available(self) -> ProviderInfo:
        preferred = [*_HOSTED_KEYS, "local"]
        names = [*dict.fromkeys([*preferred, *self._names()])]
        names.sort(key=self.is_elsewhere)  # what can be called here first
        for name in names:
            if (info := self._require_known(name)).available:
                return info
        raise UnavailableProvider(
            "no language model provider is available: "
            + "; ".join(f"{info.name} ({info.reason})" for info in self.list()),
            hint=self._hint(""),
        )

    def _provider_of_model(self, model: str) -> ProviderInfo:
        """Return the provider of a model that was named without a provider."""
        infos = self.list()
        default = self._settings.provider
        offering = [info for info in infos if model in info.models]
        if default is not None and (not offering or default in {info.name for info in offering}):
            return self._require_known(default)
        if offering:
            return offering[0]
        for prefix, name in _FAMILIES:
            if model.startswith(prefix):
                return self._require_known(name)
        return self._first_available()

    def _accept_model(self, info: ProviderInfo, model: str | None) -> str:
        chosen = info.default_model if model is None else model
        if chosen is None:
            raise UnknownModel(
                f"provider {info.name!r} has no default model: name one",
                hint=f"pass a model, or list models in [providers.{info.name}] of planwave.toml",
            )
        if chosen in info.models or (info.open_models and _is_model_name(chosen)):
            return chosen
        offered = ", ".join(info.models) or "any name without spaces"
        near = _closest(chosen, info.models)
        can_be_downloaded = info.name == "local" and chosen in MODEL_FILES
        error = UnknownModel(
            f"provider {info.name!r} has no model {chosen[:80]!r}; it offers: {offered}"
            + (f"; did you mean {near!r}?" if near else ""),
            hint=(f"run: planwave model pull {chosen}, or " if can_be_downloaded else "")
            + "leave the model out to use the provider's default",
        )
        error.closest = near
        raise error

    def _overview(self) -> str:
        infos = self.list()
        available = ", ".join(info.name for info in infos if info.available) or "none"
        missing = "; ".join(f"{info.name} ({info.reason})" for info in infos if not info.available)
        return f"available: {available}" + (f"; not available: {missing}" if missing else "")

    def _hint(self, first: str) -> str:
        """Return how to enable one provider, or which to use; if none is available, every way."""
        available = [info.name for info in self.list() if info.available]
        if available:
            verb = "is" if len(available) == 1 else "are"
            use = f"use {' or '.join(available)}, which {verb} available"
            return f"{first}, or {use}" if first else use
        ways = [first, *(info.how_to_enable for info in self.list()), _ADD_PROVIDER]
        return ", or ".join(dict.fromkeys(filter(None, ways)))


class SubstituteProviders(ProviderRegistry):
    """Providers whose calls something else replies to: every name is one, and none needs a key.

    Args:
        settings: The addresses of providers, by which prices are found.
        substitute: Replies to the calls.
    """

    def __init__(self, settings: Settings, substitute: Models) -> None:
        super().__init__(settings)
        self._substitute = substitute

    def list(self) -> builtins.list[ProviderInfo]:
        return [
            ProviderInfo(_FAKE, "openai-compatible", True, "a test replies", "", (_FAKE,), _FAKE)
        ]

    def resolve(self, provider: str | None, model: str | None) -> tuple[str, str]:
        return provider or _FAKE, model or _FAKE

    def profile(self, provider: str, model: str) -> ModelProfile:
        return ModelProfile(web_search=True)

    def price(self, provider: str, model: str, usage: Usage) -> float | None:
        return 0.0 if provider == _FAKE else super().price(provider, model, usage)

    def config(self, provider: str) -> ProviderConfig:
        return ProviderConfig(
            name=provider,
            kind="openai-compatible",
            base_url=None,
            api_key=None,
            max_concurrency=_FAKE_CONCURRENCY,
            requests_per_minute=None,
            substitute=self._substitute,
        )


@cache
def _is_installed(package: str) -> bool:
    return find_spec(package) is not None


def _closest(name: str, names: Iterable[str]) -> str | None:
    """Return the known name that a misspelt one is closest to, or None."""
    lower = {candidate.lower(): candidate for candidate in names}
    close = get_close_matches(name.strip().lower()[:_MODEL_NAME_CHARS], lower, n=1, cutoff=0.6)
    return lower[close[0]] if close else None


def _is_model_name(name: str) -> bool:
    printable = name.isprintable() and not any(mark.isspace() for mark in name)
    return 0 < len(name) <= _MODEL_NAME_CHARS and printable


def _is_header_safe(key: str) -> bool:
    return key.isascii() and key.isprintable() and " " not in key


def _is_http_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False
