"""Which provider and model a node uses: the ones in its data, or the defaults."""

from __future__ import annotations


def with_default_model(
    provider: str | None,
    model: str | None,
    default_provider: str | None,
    default_model: str | None,
) -> tuple[str | None, str | None]:
    """Fill in defaults; the default model belongs to the default provider alone."""
    if provider is None:
        provider = default_provider
    if model is None and provider == default_provider:
        model = default_model
    return provider, model
