"""How many WebSockets and event streams each principal has open, together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from planwave.errors import Busy

_RETRY_AFTER_S = 5.0


class Seats:
    """Counts what is open at the same time."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    @contextmanager
    def take(self, principal: str, most: int) -> Generator[None]:
        """Take one seat as long as needed.

        Raises:
            Busy: The principal has as many as it may.
        """
        if self._taken[principal] >= most:
            raise Busy(
                f"{most} WebSockets and event streams are open, as many as may",
                retry_after_s=_RETRY_AFTER_S,
                hint="close some, or raise PLANWAVE_LIMIT_SOCKET_CONNECTIONS",
            )
        self._taken[principal] += 1
        try:
            yield
        finally:
            self._taken[principal] -= 1
            if not self._taken[principal]:
                del self._taken[principal]
