"""How many WebSockets and event streams each principal has open, together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from planwave.errors import TooManyRequests

_RETRY_AFTER_S = 5.0


class ConnectionLimiter:
    """Counts what is open at the same time."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def slot(self, principal: str, limit: int) -> Generator[None]:
        """Take one seat as long as needed.

        Raises:
            Busy: The principal has as many as it may.
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
