"""Shares of the limits of providers: a row for each process and provider, and none for a call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from sqlalchemy import Connection, text

from planwave.providers.resilience.shares import ProviderPause, Share
from planwave.storage.notices import Notices
from planwave.storage.sql.locks import lock

_OTHERS: Final = text(
    "SELECT coalesce(sum(greatest(demand, 1)), 0), coalesce(sum(concurrency), 0), "
    "coalesce(sum(per_minute), 0), count(*) FROM provider_shares "
    "WHERE provider = :provider AND holder_id <> :me AND expires_at > clock_timestamp()"
)
_LEASE: Final = text(
    "INSERT INTO provider_shares (provider, holder_id, demand, concurrency, per_minute, expires_at) "
    "VALUES (:provider, :me, :demand, :concurrency, :per_minute, "
    "clock_timestamp() + make_interval(secs => :lease_s)) "
    "ON CONFLICT (provider, holder_id) DO UPDATE SET demand = excluded.demand, "
    "concurrency = excluded.concurrency, per_minute = excluded.per_minute, "
    "expires_at = excluded.expires_at"
)
_FORGET: Final = text(
    "DELETE FROM provider_shares WHERE provider = :provider AND expires_at <= clock_timestamp()"
)


class PostgresProviderShares:
    """Satisfies ``ProviderShares`` by the table ``provider_shares``.

    A process takes no more than the others have left, whatever its part would be; they leave it when they renew theirs,
    and no call runs any more that is beyond it.
    So all together stay within the limits, but that each process has one call at least.

    Args:
        write: Commits a change.
        holder_id: This opening.
        notices: Passes pauses on.
    """

    def __init__(
        self,
        write: Callable[[Callable[[Connection], Any]], Awaitable[Any]],
        holder_id: str,
        notices: Notices,
    ) -> None:
        self._write, self._me, self._notices = write, holder_id, notices

    def tell(self, pause: ProviderPause) -> None:
        """Tell the other processes of a pause; see ``ProviderShares``."""
        self._notices.publish("pauses", pause.as_note())

    def follow(self, receive: Callable[[ProviderPause], object]) -> None:
        """Receive the pauses of other processes; see ``ProviderShares``."""
        self._notices.subscribe("pauses", lambda note: receive(ProviderPause.from_note(note)))

    async def lease(
        self, provider: str, demand: int, whole: Share, lease_s: float, *, held: int = 0
    ) -> Share:
        """Lease a share; see ``ProviderShares``."""

        def change(connection: Connection) -> Share:
            lock(connection, "provider", provider)
            own = {"provider": provider, "me": self._me}
            connection.execute(_FORGET, {"provider": provider})
            wanted, calls, per_minute, others = connection.execute(_OTHERS, own).one()
            weight = max(demand, 1)
            share = Share(
                part_of(whole.concurrency, weight, int(wanted), int(calls)),
                None
                if whole.per_minute is None
                else part_of(whole.per_minute, weight, int(wanted), int(per_minute)),
            )
            row = {**own, "demand": demand, "lease_s": lease_s, **share._asdict()}
            row["concurrency"] = max(share.concurrency, held)
            connection.execute(_LEASE, row)
            return whole if others == 0 else share

        return await self._write(change)


def part_of(limit: int, weight: int, others: int, taken: int) -> int:
    """Return the part of a limit by weight, rounded up, of what is not taken; at least 1."""
    fair = -(-limit * weight // (weight + others))
    return max(1, min(fair, limit - taken))
