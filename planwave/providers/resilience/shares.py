"""The share of the limits of one provider that this process may use, where several processes call it.

The process leases a share for ten seconds, sized by its calls, and renews it while it has calls. What it has
not renewed in time is the smallest share: another process may have the rest by now. No call asks the database. A
rate that moves from one process to another counts there at once: in that minute more calls may begin than the limit
allows.

What a provider asks of one process, it asks of all that call it with the same key: a process tells the others of a pause
and of a circuit that opens. It is a hint. A process that is not told makes a call more, and is told by the provider.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Literal, NamedTuple, Protocol

from planwave.errors import PlanwaveError
from planwave.providers.resilience.concurrency_limiter import FairConcurrencyLimiter

_log = logging.getLogger(__name__)
LEASE_S: Final = 10.0
_RENEW_S: Final = 2.0
_IDLE_RENEWALS: Final = 5
"""Renewals without a call after which the share is left to others."""


class Share(NamedTuple):
    """Limits of the calls of one provider.

    Attributes:
        concurrency: Calls at a time.
        per_minute: Calls that begin within a minute; None for any number.
    """

    concurrency: int
    per_minute: int | None


class ProviderPause(NamedTuple):
    """What a failed call of one process means for the others.

    Attributes:
        provider: The name of the provider.
        account: See ``account_digest``: what another server or another key is asked to do, is another matter.
        wait_s: How long no call may begin; 0 where only a circuit opened.
        opened: The circuit that the failure opened, if any: that of the provider, or that of the account.
        code: That of the failure.
        model: The model that was called.
    """

    provider: str
    account: str
    wait_s: float
    opened: Literal["provider", "account"] | None
    code: str
    model: str | None

    def as_note(self) -> str:
        """Return it as a text for ``from_note``."""
        return json.dumps(self)

    @classmethod
    def from_note(cls, note: str) -> ProviderPause:
        """Return what ``as_note`` made a text of."""
        return cls(*json.loads(note))


def account_digest(base_url: str | None, secret: str) -> str:
    """Return what is the same for processes that call one server with one key; it tells neither."""
    return hashlib.sha256(f"{base_url}\0{secret}".encode()).hexdigest()[:16]


class ProviderShares(Protocol):
    """Port: divides the limits of a provider among the processes that call it, and passes on its pauses."""

    def tell(self, pause: ProviderPause) -> None:
        """Tell the other processes of a pause; never waits and never fails."""
        ...

    def follow(self, receive: Callable[[ProviderPause], object]) -> None:
        """Call ``receive`` on the event loop with each pause that another process tells of."""
        ...

    async def lease(
        self, provider: str, demand: int, whole: Share, lease_s: float, *, held: int = 0
    ) -> Share:
        """Lease a part of the limits of a provider, or renew it; at least one call.

        Args:
            provider: Its name.
            demand: The calls that this process has, or that wait.
            whole: The limits for all processes together.
            lease_s: How long it is leased.
            held: The calls that may run by the lease before; others get none of these until the next renewal.

        Raises:
            StoreError: It cannot be leased now.
        """
        ...


class LeasedShare:
    """Keeps a limiter within the share of its process.

    Args:
        provider: The name of the provider.
        whole: The limits of the provider for all processes together.
        limiter: That of the provider in this process.
        shares: Leases a share.
        clock: Seconds.
        sleep: Waits for seconds.
    """

    def __init__(
        self,
        provider: str,
        whole: Share,
        limiter: FairConcurrencyLimiter,
        shares: ProviderShares,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._provider, self._whole, self._limiter, self._shares = provider, whole, limiter, shares
        self._clock, self._sleep = clock, sleep
        self._leased = asyncio.Event()
        self._renewing: asyncio.Task[None] | None = None
        self._entering = 0
        self._leased_until = 0.0

    async def wait(self) -> None:
        """Wait until a share is leased, which is renewed from now on as long as there are calls."""
        self._entering += 1
        try:
            if self._renewing is None or self._renewing.done():
                self._leased.clear()
                # Not a TaskGroup: it ends by itself, or with ``close``.
                self._renewing = asyncio.get_running_loop().create_task(self._renew())
            await self._leased.wait()
        finally:
            self._entering -= 1

    async def close(self) -> None:
        """Renew no longer."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])

    async def _renew(self) -> None:
        idle = 0
        while idle < _IDLE_RENEWALS:
            demand = self._limiter.demand + self._entering
            idle = 0 if demand else idle + 1
            await self._lease(demand)
            self._leased.set()
            await self._sleep(_RENEW_S)

    async def _lease(self, demand: int) -> None:
        began = self._clock()
        # Calls go on that are more than the new share, and until it is known, further ones begin.
        held = self._limiter.most if self._leased.is_set() else self._limiter.running
        try:
            share = await self._shares.lease(
                self._provider, demand, self._whole, LEASE_S, held=held
            )
        except PlanwaveError as error:
            if self._clock() > self._leased_until:
                _log.warning("no share of provider %s is leased: %s", self._provider, error)
                self._limiter.resize(1, None if self._whole.per_minute is None else 1)
            return
        self._leased_until = began + LEASE_S
        self._limiter.resize(share.concurrency, share.per_minute)
