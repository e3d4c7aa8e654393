"""Limits per principal: a token bucket for requests, limits of streams, responses and their bytes."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final, Literal

from planwave.api.problems import ProblemError
from planwave.errors import TooManyRequests
from planwave.storage.access_tokens import AccessTokenRecord


class TokenBucket:
    """A token bucket for each principal.

    Args:
        what: The counted things, in the plural, for messages.
        rate_per_s: Tokens added each second.
        burst: Tokens that a bucket holds.
        clock: Seconds that never go back.
        limits: Names of the limits that an operator can raise.
    """

    def __init__(
        self,
        what: str,
        rate_per_s: float,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
        *,
        limits: Sequence[str] = (),
    ) -> None:
        self._what = what
        self._rate = rate_per_s
        self._burst = burst
        self._clock = clock
        self._setting_names = " and ".join(f"PLANWAVE_LIMIT_{name.upper()}" for name in limits)
        self._buckets: dict[str, tuple[float, float]] = {}

    def acquire(self, principal: str) -> None:
        """Take a token.

        Raises:
            TooManyRequests: The bucket is empty; ``retry_after_s`` is the time to the next token.
        """
        now = self._clock()
        tokens, at = self._buckets.get(principal, (float(self._burst), now))
        tokens = min(self._burst, tokens + (now - at) * self._rate)
        if tokens < 1:
            self._buckets[principal] = tokens, now
            raise self._busy((1 - tokens) / self._rate)
        self._buckets[principal] = tokens - 1, now

    def _busy(self, retry_after_s: float) -> TooManyRequests:
        raising = f", or raise {self._setting_names}" if self._setting_names else ""
        return TooManyRequests(
            f"too many {self._what}: {self._burst} at once, then {self._rate:.12g} a second",
            retry_after_s=retry_after_s,
            hint=f"try again in {math.ceil(retry_after_s)} s{raising}",
        )


class AccessTokenRates:
    """The rate limits of access tokens, each with the amounts of its own record.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: dict[tuple[str, str], TokenBucket] = {}

    def count(self, token: AccessTokenRecord, what: Literal["requests", "executions"]) -> None:
        """Count a request, or an execution that is about to be created, with an access token.

        Raises:
            TooManyRequests: There were too many within a minute.
        """
        limits = {"requests": token.requests_per_minute, "executions": token.executions_per_minute}
        per_minute = limits[what]
        if per_minute is None:
            return
        key = token.token_id, what
        if key not in self._buckets:
            limited = f"{what} with this access token"
            self._buckets[key] = TokenBucket(limited, per_minute / 60, per_minute, self._clock)
        self._buckets[key].acquire(token.token_id)


_RETRY_AFTER_S: Final = 5.0
RESPONSE_WAIT_S: Final = 5.0
"""How long a large response waits for others of its principal: a page opens several at once."""


class ConnectionLimiter:
    """A limit on the open streams of each principal."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def slot(self, principal: str, limit: int) -> Generator[None]:
        """Hold one slot within the block.

        Raises:
            TooManyRequests: All slots of the principal are in use.
        """
        if self._open[principal] >= limit:
            raise TooManyRequests(
                f"{limit} WebSockets and event streams are open, as many as may",
                retry_after_s=_RETRY_AFTER_S,
                hint="close some, or raise PLANWAVE_LIMIT_SOCKET_CONNECTIONS",
            )
        self._open[principal] += 1
        try:
            yield
        finally:
            self._open[principal] -= 1
            if not self._open[principal]:
                del self._open[principal]


class ResponseLimiter:
    """A limit on the large responses of each principal, from the request until the last byte is sent."""

    def __init__(self) -> None:
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._users: Counter[str] = Counter()

    @asynccontextmanager
    async def slot(self, principal: str, limit_name: str, limit: int) -> AsyncGenerator[None]:
        """Hold one slot within the block; wait for it first, in order of arrival.

        Raises:
            TooManyRequests: All slots of the principal stayed in use.
        """
        slots = self._slots.setdefault(principal, asyncio.Semaphore(limit))
        self._users[principal] += 1
        try:
            try:
                async with asyncio.timeout(RESPONSE_WAIT_S):
                    await slots.acquire()
            except TimeoutError:
                raise TooManyRequests(
                    f"{limit} large responses are being sent, as many as may",
                    retry_after_s=_RETRY_AFTER_S,
                    hint=f"read those first, or raise PLANWAVE_LIMIT_{limit_name.upper()}",
                ) from None
            try:
                yield
            finally:
                slots.release()
        finally:
            self._users[principal] -= 1
            if not self._users[principal]:
                del self._users[principal], self._slots[principal]


class BytesInFlight:
    """The bytes of large responses that are in memory until their clients have taken them.

    Args:
        limit: Of all together; one principal may hold half of it.

    Attributes:
        held: How many there are.
        rendering: Held while a large document is computed: a few at once leave time for the event loop.
        rendering_links: Held while the page of a link is made: anybody who has one waits only for others like them.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: Counter[str] = Counter()
        self.held = 0
        self.rendering = asyncio.Semaphore(2)
        self.rendering_links = asyncio.Semaphore(1)

    def hold(self, principal: str) -> HeldBytes:
        """Return what counts the bytes of one response; nothing is held yet."""
        return HeldBytes(self, principal)

    def change(self, principal: str, size: int) -> None:
        """Add to what a principal holds, or with a negative size subtract from it."""
        self.held += size
        self._held[principal] += size
        if not self._held[principal]:
            del self._held[principal]

    def check(self, principal: str, size: int, own: int) -> None:
        """Check that one more piece of a response may be held.

        Args:
            principal: Whose response it is.
            size: The bytes of the piece.
            own: Those that the response holds already.

        Raises:
            ProblemError: ``server-busy``: too many are held, and not by this response alone.
        """
        shares = ((self.held, self._limit), (self._held[principal], self._limit // 2))
        if any(held > own and held + size > most for held, most in shares):
            raise ProblemError(
                503,
                "server-busy",
                "the service is sending as many bytes as it may; clients read them too slowly",
                hint=f"try again in {_RETRY_AFTER_S:.0f} s, or raise PLANWAVE_LIMIT_SENDING_BYTES",
                headers={"Retry-After": f"{_RETRY_AFTER_S:.0f}"},
            )


class HeldBytes:
    """The bytes that one response holds."""

    def __init__(self, in_flight: BytesInFlight, principal: str) -> None:
        self._in_flight, self._principal, self._held = in_flight, principal, 0

    def grow(self, size: int) -> None:
        """Hold more bytes.

        Raises:
            ProblemError: ``server-busy``; see ``BytesInFlight.check``.
        """
        self._in_flight.check(self._principal, size, self._held)
        self._change(size)

    def shrink(self, size: int) -> None:
        """Hold fewer bytes, as these are sent."""
        self._change(-size)

    def close(self) -> None:
        """Hold nothing any more."""
        self._change(-self._held)

    def _change(self, size: int) -> None:
        self._held += size
        self._in_flight.change(self._principal, size)
