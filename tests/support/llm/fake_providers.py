"""Provider catalogs without a network, and the node library with one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from planwave.errors import UnavailableProvider, UnknownModel, UnknownProvider
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.providers.protocols import (
    ModelProfile,
    ProviderInfo,
    Usage,
)
from planwave.settings import Limits

DEFAULT_LIMITS = Limits()
"""The limits of a service without settings; to read them from the environment takes milliseconds."""


class FakeProviders:
    """``openai`` takes any model at a price, ``own`` two models of unknown price, ``off`` is off.

    ``tiny`` has one model with the ``small`` profile; a model called ``capped`` has a token limit,
    one called ``toy`` cannot plan.
    """

    infos = (
        ProviderInfo("openai", "openai", True, "key", models=("gpt",), default_model="gpt"),
        ProviderInfo(
            "own", "openai-compatible", True, "", "", ("one", "two"), "one", open_models=False
        ),
        ProviderInfo("tiny", "local", True, "", "", ("t1",), "t1", open_models=False),
        ProviderInfo("off", "anthropic", False, "no key", "set OFF_KEY", ("x",), "x"),
    )

    def list(self) -> list[ProviderInfo]:
        return [*self.infos]

    def resolve(self, provider: str | None, model: str | None) -> tuple[str, str]:
        if provider is None:
            homes = [i.name for i in self.infos if i.available and model in i.models]
            provider = homes[0] if homes else "openai"
        info = next((i for i in self.infos if i.name == provider), None)
        if info is None:
            raise UnknownProvider(f"no provider {provider!r}", hint="openai, own, tiny")
        if not info.available:
            raise UnavailableProvider(f"{provider} is off: {info.reason}", hint=info.how_to_enable)
        if model is not None and not info.open_models and model not in info.models:
            raise UnknownModel(f"{provider} has no model {model!r}", hint=", ".join(info.models))
        return info.name, model or info.default_model or "?"

    def profile(self, provider: str, model: str) -> ModelProfile:
        if model == "toy":
            return ModelProfile(small=True, plans=False)
        if provider == "tiny":
            return ModelProfile(small=True, max_output_tokens=220)
        if model == "capped":
            return ModelProfile(max_output_tokens=1_000)
        return ModelProfile(structured_output=provider == "openai")

    def price(self, provider: str, model: str, usage: Usage) -> float | None:
        if provider == "own":
            return None
        return 0.001 * usage.input_tokens + 0.002 * usage.output_tokens


_library = cache(Registry)
"""To read the declarations of all types takes milliseconds, and thousands of tests need them."""


def library_registry(providers: Any = None, types: Sequence[Any] = ()) -> Registry:
    """Give the node library, with providers looked up at the fake.

    Args:
        providers: Others than the fake.
        types: Further types. What is registered later would be there in other tests too.
    """
    providers = providers or FakeProviders()
    if types:
        return Registry([*LIBRARY, *types], providers=providers, limits=DEFAULT_LIMITS)
    return _library(LIBRARY).with_providers(providers, limits=DEFAULT_LIMITS)


class ListedProviders:
    """Providers known by a table: ``{provider: models}``; those in ``off`` are not configured."""

    def __init__(
        self,
        table: Mapping[str, Sequence[str]],
        *,
        off: Sequence[str] = (),
        profiles: Mapping[str, ModelProfile] | None = None,
    ) -> None:
        self._table = table
        self._off = off
        self._profiles = profiles or {}

    def list(self) -> list[ProviderInfo]:
        return [
            ProviderInfo(name, "fake", name not in self._off, "listed", models=tuple(models))
            for name, models in self._table.items()
        ]

    def resolve(self, provider: str | None, model: str | None) -> tuple[str, str]:
        name = provider or next(iter(self._table))
        if name not in self._table:
            raise UnknownProvider(f"no provider {name!r}", hint=f"there are {list(self._table)}")
        if name in self._off:
            raise UnavailableProvider(f"{name!r} is not configured", hint="set its key")
        models = self._table[name]
        if model is not None and model not in models:
            raise UnknownModel(f"{name!r} has no model {model!r}", hint=f"it has {list(models)}")
        return name, model or models[0]

    def profile(self, provider: str, model: str) -> ModelProfile:
        return self._profiles.get(model, ModelProfile())

    def price(self, provider: str, model: str, usage: Usage) -> float | None:
        return None
