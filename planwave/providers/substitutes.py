"""What replies to model calls in place of the providers in tests, and which calls may be made at all."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from typing import Final
from urllib.parse import urlsplit

from planwave.errors import ProviderError
from planwave.providers.protocols import (
    CallScope,
    Delta,
    ModelReply,
    ModelRequest,
    Models,
)

_WAY_OUT: Final = (
    "give planwave.testing.run_sync a model=FakeModel(…), or make the call in a block of "
    "planwave.testing.use_model(FakeModel(…))"
)


class ProcessCalls:
    """What holds for the model calls of this process.

    Attributes:
        substitute: Replies to the calls of all providers that are opened from now on; None if they do.
        allowed: The providers, and the hosts of providers, that may be called; None for all.
    """

    def __init__(self) -> None:
        self.substitute: Models | None = None
        self.allowed: Collection[str] | None = None

    def require_allowed(self, provider: str, model: str, base_url: str | None = None) -> None:
        """Check that a provider may be called.

        Raises:
            ProviderError: ``model-call-forbidden``.
        """
        host = urlsplit(base_url or "").hostname
        if self.allowed is not None and provider not in self.allowed and host not in self.allowed:
            raise forbidden_call(provider, model)


process_calls: Final = ProcessCalls()


def forbidden_call(provider: str, model: str) -> ProviderError:
    """Return the error of a call that a test makes without a double."""
    return ProviderError(
        f"a test called the model {provider}:{model}, and real model calls are forbidden here",
        provider=provider,
        model=model,
        code="model-call-forbidden",
        hint=_WAY_OUT,
    )


class ForbiddenModels:
    """Refuses every call; satisfies ``protocols.Models``."""

    async def stream(
        self, request: ModelRequest, scope: CallScope | None = None
    ) -> AsyncGenerator[Delta | ModelReply]:
        raise forbidden_call(request.provider, request.model)
        yield Delta("")  # makes it a generator
