"""Which providers there are, why one is not available, and which one a request means.

Cheap: no SDK is imported and nothing is called. A provider counts as available when it is
configured; whether its key works shows at the first call.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from typing import Literal
from urllib.parse import urlsplit

from pydantic import SecretStr

from planwave.errors import UnavailableProvider, UnknownModel, UnknownProvider
from planwave.providers.local.catalog import MODEL_FILES
from planwave.providers.protocols import LocalProvider, ModelProfile, ProviderInfo, Usage
from planwave.settings import ProviderSettings, Settings

ProviderKind = Literal["openai", "anthropic", "openai-compatible", "local"]

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
"""Known-good names, the default first: the cheapest current model that plans well.

Source: the names pydantic-ai 2.68 offers to pick from; any other name is passed on as it is.
"""

_FAMILIES = (("claude", "anthropic"), ("gpt-", "openai"), ("chatgpt-", "openai"))
_HOSTED_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_MODEL_NAME_CHARS = 200
_LOCAL_MISSING = (False, "the embedded model is not part of this installation", "")


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """How to reach one provider; what the client needs and nobody else may see."""

    name: str
    kind: ProviderKind
    base_url: str | None
    api_key: SecretStr | None
    max_concurrency: int
    requests_per_minute: int | None


class ProviderCatalog:
    """The providers of one configuration; satisfies ``providers.api.ProvidersResponse``.

    Args:
        settings: Keys, endpoints and the defaults.
        local: The embedded model server, or None where planwave runs without one.
        environ: Where ``api_key_env`` names are looked up; the process environment by default.
    """

    def __init__(
        self,
        settings: Settings,
        local: LocalProvider | None = None,
        *,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings
        self._environ = os.environ if environ is None else environ
        self.local = local

    def list(self) -> list[ProviderInfo]:
        """Give all known providers, available ones first, else in the order of preference."""
        infos = [self._describe(name) for name in self._names()]
        return sorted(infos, key=lambda info: not info.available)

    def resolve(self, provider: str | None, model: str | None) -> tuple[str, str]:
        """Give the provider and model a request means; None means the default.

        Without a provider a model's name decides, where exactly one place offers it.
        """
        settings = self._settings
        if provider is None and model is None:
            provider, model = settings.provider, settings.model
        if provider is None:
            info = self._provider_of_model(model) if model is not None else self._first_available()
        else:
            info = self._require_known(provider)
        if not info.available:
            raise UnavailableProvider(
                f"provider {info.name!r} is not available: {info.reason}",
                hint=self._hints(info.how_to_enable),
            )
        if info.name == "local" and model == settings.local_model:
            model = None  # the embedded model, named as it was configured: perhaps by its path
        elif model is None and settings.model is not None and settings.provider == info.name:
            model = settings.model
        return info.name, self._accept_model(info, model)

    def profile(self, provider: str, model: str) -> ModelProfile:
        """Give what a model can do; cheap and never wrong by much, so no name is refused here."""
        if provider == "local" and self.local is not None:
            return self.local.profile(model)
        return ModelProfile()

    def price(self, provider: str, model: str, usage: Usage) -> float | None:
        """Give the price in US dollars by the public price list, or None where unknown."""
        if provider == "local":
            return 0.0
        from genai_prices import Usage as Tokens
        from genai_prices import calc_price

        tokens = Tokens(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
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
        """Give what is needed to call a provider.

        Raises:
            UnknownProvider, UnavailableProvider: As :meth:`resolve`.
        """
        info = self._require_known(provider)
        if not info.available:
            raise UnavailableProvider(
                f"provider {info.name!r} is not available: {info.reason}",
                hint=self._hints(info.how_to_enable),
            )
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
        )

    # -- one provider -------------------------------------------------------------------------

    def _names(self) -> builtins.list[str]:
        own = [name for name in self._settings.providers if name not in (*_HOSTED_KEYS, "local")]
        return [*_HOSTED_KEYS, *own, "local"]

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
        trouble = self._unavailable_reason(name)
        reason, way_out = trouble or (self._available_reason(name), "")
        return ProviderInfo(
            name=name,
            kind=self._kind(name),
            available=trouble is None,
            reason=reason,
            how_to_enable=way_out,
            models=models,
            default_model=models[0] if models else None,
            open_models=not listed,
        )

    def _describe_local(self) -> ProviderInfo:
        local = self.local
        available, reason, way_out = local.availability() if local else _LOCAL_MISSING
        return ProviderInfo(
            name="local",
            kind="local",
            available=available,
            reason=reason,
            how_to_enable=way_out,
            models=local.models if local else (),
            default_model=local.default_model if local else None,
            open_models=False,
        )

    def _available_reason(self, name: str) -> str:
        variable = self._key_variable(name)
        if variable:
            return f"{variable} is set"
        return f"configured as [providers.{name}], without a key"

    def _unavailable_reason(self, name: str) -> tuple[str, str] | None:
        """Say why a provider cannot be used and how it could, or None."""
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
            wanted = (f"{table} names no api_key_env", f"set api_key_env in {table}")
            return wanted if needs_key else None
        key = self._api_key(name)
        if key is None:
            return f"{variable} is not set", f"set {variable} in the environment"
        if not _is_header_safe(key.get_secret_value()):
            return f"{variable} holds characters no key has", f"copy the key into {variable} again"
        return None

    # -- choosing -----------------------------------------------------------------------------

    def _require_known(self, provider: str) -> ProviderInfo:
        if provider in self._names():
            return self._describe(provider)
        known = dict.fromkeys(self._names())
        raise UnknownProvider(
            f"unknown provider {provider[:80]!r}; {self._overview()}{_suggestion(provider, known)}",
            hint=self._hints(""),
        )

    def _first_available(self) -> ProviderInfo:
        preferred = [*_HOSTED_KEYS, "local"]
        for name in dict.fromkeys([*preferred, *self._names()]):
            if (info := self._require_known(name)).available:
                return info
        raise UnavailableProvider(
            f"no language model provider is available; {self._overview()}",
            hint=self._hints(""),
        )

    def _provider_of_model(self, model: str) -> ProviderInfo:
        """Find who offers a model that was named without its provider."""
        infos = self.list()
        default = self._settings.provider
        homes = [info for info in infos if model in info.models]
        if default is not None and (not homes or default in {info.name for info in homes}):
            return self._require_known(default)
        if homes:
            return homes[0]
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
        can_be_pulled = info.name == "local" and chosen in MODEL_FILES
        raise UnknownModel(
            f"provider {info.name!r} has no model {chosen[:80]!r}; it offers: {offered}"
            + _suggestion(chosen, {name: info for name in info.models}),
            hint=(f"run: planwave model pull {chosen}, or " if can_be_pulled else "")
            + "leave the model out to use the provider's default",
        )

    def _overview(self) -> str:
        infos = self.list()
        here = ", ".join(info.name for info in infos if info.available) or "none"
        missing = "; ".join(f"{info.name} ({info.reason})" for info in infos if not info.available)
        return f"available: {here}" + (f"; not available: {missing}" if missing else "")

    def _hints(self, first: str) -> str:
        ways = [first] if first else []
        ways += [
            info.how_to_enable
            for info in self.list()
            if not info.available and info.how_to_enable and info.how_to_enable != first
        ]
        here = [info.name for info in self.list() if info.available]
        if here:
            ways.append(f"or use {' or '.join(here)}, which {_is_or_are(here)} available")
        ways.append("or add [providers.NAME] with a base_url to planwave.toml")
        return "; ".join(ways)


@cache
def _is_installed(package: str) -> bool:
    return find_spec(package) is not None


def _is_or_are(names: builtins.list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _suggestion(name: str, known: Mapping[str, object]) -> str:
    """Give "; did you mean 'x'?" or nothing."""
    lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.strip().lower()[:_MODEL_NAME_CHARS], lower, n=1, cutoff=0.6)
    return f"; did you mean {lower[close[0]]!r}?" if close else ""


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
