"""The time that the processes of one database go by: that of its server."""

from __future__ import annotations

from datetime import UTC, datetime
from time import monotonic


class ServerClock:
    """The clock of a server, which goes on by the monotonic clock of this process between two answers.

    The wall clock of this machine is not read, so it may be wrong and may jump: a deadline, the time of a schedule and the
    age of a row are the same in all processes.
    """

    def __init__(self) -> None:
        self._ahead_s: float | None = None

    def set(self, at: datetime, asked: float, answered: float) -> None:
        """Take over the time of the server, unless the clock agrees with it as far as one can tell.

        Args:
            at: The time in the answer.
            asked: When the server was asked, by the monotonic clock.
            answered: When the answer came; the server read its clock between the two.
        """
        least_s, most_s = at.timestamp() - answered, at.timestamp() - asked
        before_s = (least_s + most_s) / 2 if self._ahead_s is None else self._ahead_s
        self._ahead_s = min(max(before_s, least_s), most_s)

    def now(self) -> datetime:
        """Return the UTC time.

        Raises:
            RuntimeError: The server has not said its time yet.
        """
        if self._ahead_s is None:
            raise RuntimeError("the server has not said its time yet")
        return datetime.fromtimestamp(self._ahead_s + monotonic(), UTC)
