"""Who drives which execution, what the carrier has yet to be told, and the commands for those that others drive.

All this is for executions that a carrier hands to any of several processes. What keeps two of them from driving one
execution is the epoch; what is here says where commands go, and that nothing is forgotten between two commits.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    delete,
    exists,
    func,
    or_,
    select,
    text,
    update,
)

from planwave.errors import Conflict, StaleEpoch
from planwave.events import ENDED_STATUS
from planwave.storage.notices import Notices
from planwave.storage.postgres.followers import PostgresFollowers
from planwave.storage.postgres.provider_shares import PostgresProviderShares
from planwave.storage.records import DRIVEN_ELSEWHERE, Waiting
from planwave.storage.sql.lists import count_open
from planwave.storage.sql.queries import Rows, raise_epoch
from planwave.storage.sql.schema import commands, executions, holders, owners, submissions

if TYPE_CHECKING:
    from planwave.shapes.executions import WaitsForResponse

_KEPT_S: Final = 86_400.0
"""How long an outcome can be read."""
_LEFT_S: Final = 60.0
"""How long what belongs to an execution stays that was deleted, or has ended: longer than its last callers wait."""

_NOW: Final = text("clock_timestamp()")
_IS_ALIVE: Final = exists().where(
    holders.c.holder_id == owners.c.holder_id, holders.c.expires_at > _NOW
)
_IS_DRIVEN: Final = exists().where(owners.c.execution_id == executions.c.execution_id, _IS_ALIVE)
_IS_STARTING: Final = and_(executions.c.status == "starting", executions.c.queued == 1)
_WAITING: Final = select(func.count()).where(_IS_STARTING)
_WAITING_FOR: Final = (
    select(executions.c.needs, func.count())
    .where(
        executions.c.needs.is_not(None),
        or_(_IS_STARTING, and_(executions.c.status == "executing", ~_IS_DRIVEN)),
    )
    .group_by(executions.c.needs)
)
_WAITS: Final = select(executions.c.execution_id, executions.c.needs).where(
    executions.c.needs.is_not(None),
    or_(_IS_STARTING, executions.c.status == "executing"),
    ~_IS_DRIVEN,
)
_CAPABILITIES: Final = select(holders.c.capabilities).where(
    holders.c.expires_at > _NOW, holders.c.capabilities != ""
)
_NEEDS: Final = select(
    executions.c.execution_id, executions.c.needs, executions.c.status.in_(ENDED_STATUS)
).where(executions.c.needs.is_not(None))
_OTHER_OWNER: Final = select(owners.c.holder_id).where(
    owners.c.execution_id == bindparam("of"), owners.c.holder_id != bindparam("me"), _IS_ALIVE
)
_KEEP_OWNER: Final = (
    select(owners.c.holder_id)
    .where(owners.c.execution_id == bindparam("of"))
    .with_for_update(read=True)
)
_TAKE: Final = text(
    "INSERT INTO owners (execution_id, holder_id, epoch, takeovers) VALUES (:of, :me, :epoch, 0) "
    "ON CONFLICT (execution_id) DO UPDATE SET holder_id = excluded.holder_id, epoch = excluded.epoch, "
    "takeovers = owners.takeovers + 1 RETURNING takeovers"
)
_RELEASE: Final = (
    delete(owners)
    .where(owners.c.execution_id == bindparam("of"), owners.c.epoch == bindparam("raised"))
    .returning(owners.c.epoch)
)
_ADD_COMMAND: Final = text(
    "INSERT INTO commands (execution_id, command) SELECT o.execution_id, :command "
    "FROM owners o JOIN holders h ON h.holder_id = o.holder_id "
    "WHERE o.execution_id = :of AND o.holder_id <> :me AND h.expires_at > clock_timestamp() "
    "FOR SHARE OF o RETURNING id"
)
_SUBMIT: Final = text(
    "INSERT INTO submissions (execution_id) SELECT e.execution_id FROM executions e "
    "WHERE e.execution_id = :of AND (e.queued = 1 OR e.status <> 'starting') "
    "ON CONFLICT (execution_id) DO UPDATE SET at = clock_timestamp()"
)
_SUBMIT_OPEN: Final = text(
    "INSERT INTO submissions (execution_id) SELECT e.execution_id FROM executions e "
    "WHERE (e.status IN ('executing', 'paused') OR (e.status = 'starting' AND e.queued = 1)) "
    "AND NOT EXISTS (SELECT 1 FROM owners o JOIN holders h ON h.holder_id = o.holder_id "
    "WHERE o.execution_id = e.execution_id AND h.expires_at > clock_timestamp()) "
    "ON CONFLICT (execution_id) DO NOTHING"
)
_FORGET_SUBMISSION: Final = delete(submissions).where(submissions.c.execution_id == bindparam("of"))
_OLD_SUBMISSIONS: Final = (
    select(submissions.c.execution_id)
    .where(submissions.c.at < text("clock_timestamp() - make_interval(secs => :age)"))
    .order_by(submissions.c.at)
    .limit(bindparam("most"))
)
_OPEN: Final = select(
    commands.c.id, commands.c.execution_id, commands.c.command, commands.c.begun_by.is_not(None)
).where(commands.c.outcome.is_(None))
_OPEN_OF: Final = _OPEN.where(commands.c.execution_id == bindparam("of")).order_by(commands.c.id)
_SETTLE: Final = (
    update(commands)
    .where(commands.c.id == bindparam("of"), commands.c.outcome.is_(None))
    .values(outcome=bindparam("came"))
)
_OUTCOME: Final = select(commands.c.outcome).where(commands.c.id == bindparam("of"))
_OWNED: Final = _OPEN.where(
    exists().where(
        owners.c.execution_id == commands.c.execution_id, owners.c.holder_id == bindparam("me")
    )
).order_by(commands.c.id)
_LEFT: Final = _OPEN.where(
    commands.c.at < text("clock_timestamp() - make_interval(secs => :age)"),
    ~exists().where(owners.c.execution_id == commands.c.execution_id, _IS_ALIVE),
).order_by(commands.c.id)
_ENDED_BEFORE: Final = text(
    "to_char((clock_timestamp() - make_interval(secs => :left)) AT TIME ZONE 'utc', 'YYYY-MM-DD\"T\"HH24\\:MI\\:SS')"
)
_FORGET: Final = (
    delete(commands).where(
        or_(
            commands.c.at < text("clock_timestamp() - make_interval(secs => :kept)"),
            and_(
                commands.c.at < text("clock_timestamp() - make_interval(secs => :left)"),
                ~exists().where(executions.c.execution_id == commands.c.execution_id),
            ),
        )
    ),
    # Also where their process lives: it may have failed to say that it drives one no more.
    delete(owners).where(
        ~exists().where(
            executions.c.execution_id == owners.c.execution_id,
            or_(
                executions.c.status.not_in(ENDED_STATUS),
                executions.c.completed_at >= _ENDED_BEFORE,
            ),
        ),
    ),
)


class Taken(NamedTuple):
    """An execution that this opening drives from now on.

    Attributes:
        epoch: The owner's.
        takeovers: How often it was taken over since it came to rest last; 0 where nobody drove it.
    """

    epoch: int
    takeovers: int


class Need(NamedTuple):
    """What an execution needs of a process that drives it.

    Attributes:
        capability: What not every process can do.
        is_over: The execution has ended, so it needs that no more.
    """

    capability: str
    is_over: bool


class OpenCommand(NamedTuple):
    """A command that has no outcome yet.

    Attributes:
        command_id, execution_id, command: Which command, and for what.
        was_begun: An opening began to carry it out, and may have done so.
    """

    command_id: int
    execution_id: str
    command: dict[str, Any]
    was_begun: bool = False


Change = Callable[[Connection], Any]


class Write(Protocol):
    """Commits a change, after those of the same execution, if one is named."""

    def __call__(self, change: Change, execution_id: str | None = None) -> Awaitable[Any]: ...


class ExecutionOwners:
    """The owners of executions in one database, as one opening sees them.

    Args:
        read: Runs a query.
        write: Commits a change.
        holder_id: This opening.
        notices: Tells the other openings.

    Attributes:
        provider_shares: What this opening may use of the limits of providers, which all call.
        followers: Which openings have clients whose leaving cancels an execution.
    """

    def __init__(
        self,
        read: Callable[[Change], Awaitable[Any]],
        write: Write,
        holder_id: str,
        notices: Notices,
    ) -> None:
        self._read, self._write, self._me = read, write, holder_id
        self.provider_shares = PostgresProviderShares(write, holder_id, notices)
        self.followers = PostgresFollowers(read, write, holder_id)

    # -- ownership ---------------------------------------------------------------------------------

    async def claim(self, execution_id: str, queued: bool | None = None) -> int:
        """Raise the epoch for a command, where nobody else drives the execution; return it.

        The carrier is to be told afterwards, as a command may let the execution go on.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``driven-elsewhere``.
        """

        def change(connection: Connection) -> int:
            epoch = raise_epoch(connection, execution_id, queued)
            if self._other(connection, execution_id):
                raise Conflict(
                    f"another process drives execution {execution_id}", code=DRIVEN_ELSEWHERE
                )
            connection.execute(_SUBMIT, {"of": execution_id})
            return epoch

        return await self._write(change, execution_id)

    async def take(self, execution_id: str) -> Taken:
        """Raise the epoch to drive an execution, whoever drove it before.

        Raises:
            NotFound: There is none of that id.
        """

        def change(connection: Connection) -> Taken:
            epoch = raise_epoch(connection, execution_id)
            row = {"of": execution_id, "me": self._me, "epoch": epoch}
            takeovers = connection.execute(_TAKE, row).scalar_one()
            connection.execute(_FORGET_SUBMISSION, {"of": execution_id})
            return Taken(epoch, takeovers)

        return await self._write(change, execution_id)

    def require_own(self, connection: Connection, execution_id: str) -> None:
        """Check that this opening drives an execution, and keep it so to the end of the transaction.

        Raises:
            StaleEpoch: Another one took it over, and may have let it rest since.
        """
        if connection.execute(_KEEP_OWNER, {"of": execution_id}).scalar() != self._me:
            raise StaleEpoch(f"execution {execution_id!r} was taken over by another process")

    async def release(self, execution_id: str, epoch: int) -> list[OpenCommand]:
        """Say that this opening drives an execution no more; nothing is done where another one does by now.

        Returns:
            The commands that came too late for its owner, in order: nobody else is to carry them out.
        """

        def change(connection: Connection) -> list[OpenCommand]:
            if not connection.execute(_RELEASE, {"of": execution_id, "raised": epoch}).all():
                return []
            # Not in one statement: who holds the owner's row adds a command until it is deleted.
            return _open_commands(connection.execute(_OPEN_OF, {"of": execution_id}).all())

        return await self._write(change, execution_id)

    async def is_elsewhere(self, execution_id: str) -> bool:
        """Return whether another opening that is alive drives an execution."""
        return await self._read(lambda connection: self._other(connection, execution_id))

    async def count_driven(self, account: str) -> int:
        """Return how many executions of an account openings that are alive drive now."""
        return await self._read(lambda connection: count_open(connection, account, _IS_DRIVEN))

    # -- capabilities ------------------------------------------------------------------------------

    async def waiting(self) -> Waiting:
        """Return how many executions wait for a process, and for which."""

        def query(connection: Connection) -> Waiting:
            return Waiting(
                connection.execute(_WAITING).scalar_one(),
                {needs: count for needs, count in connection.execute(_WAITING_FOR)},
                _capable(connection),
            )

        return await self._read(query)

    async def needs_of(self, execution_ids: Sequence[str]) -> dict[str, Need]:
        """Return what executions need; those that any process can drive are left out."""
        own = _NEEDS.where(executions.c.execution_id.in_(execution_ids))

        def query(connection: Connection) -> dict[str, Need]:
            return {of: Need(needs, is_over) for of, needs, is_over in connection.execute(own)}

        return await self._read(query)

    async def add_need(self, execution_id: str, capability: str) -> None:
        """Store that only processes with a capability can drive an execution from now on."""
        own = update(executions).where(executions.c.execution_id == execution_id)
        change = own.values(needs=capability)
        await self._write(lambda connection: connection.execute(change), execution_id)

    def _other(self, connection: Connection, execution_id: str) -> bool:
        row = connection.execute(_OTHER_OWNER, {"of": execution_id, "me": self._me}).first()
        return row is not None

    # -- the outbox to the carrier -----------------------------------------------------------------

    async def unsubmitted(self, age_s: float, most: int) -> list[str]:
        """Return executions that the carrier should know for longer than this, the oldest first."""
        values = {"age": age_s, "most": most}

        def query(connection: Connection) -> list[str]:
            return list(connection.execute(_OLD_SUBMISSIONS, values).scalars())

        return await self._read(query)

    async def clock(self) -> datetime:
        """Return the time of the server."""
        return await self._read(lambda connection: connection.execute(select(_NOW)).scalar_one())

    async def submitted(self, execution_ids: Sequence[str], before: datetime) -> None:
        """Note that the carrier knows executions; what was to be submitted after a time still is.

        Args:
            execution_ids: Which.
            before: The time of the server before the carrier was told.
        """
        own = delete(submissions).where(
            submissions.c.execution_id.in_(execution_ids), submissions.c.at <= before
        )
        await self._write(lambda connection: connection.execute(own))

    async def submit_open(self) -> None:
        """Have the carrier told of all executions that have not ended and that nobody drives.

        Those that are paused too: when the time for an answer is over, is for the carrier to say.
        """
        await self._write(lambda connection: connection.execute(_SUBMIT_OPEN))

    # -- commands ----------------------------------------------------------------------------------

    async def add_command(self, execution_id: str, command: dict[str, Any]) -> int | None:
        """Store a command for another process that drives an execution; return its id, or None if none is alive.

        Who releases an execution, comes after it, and finds the command.
        """
        row = {"of": execution_id, "command": json.dumps(command), "me": self._me}
        return await self._write(lambda connection: connection.execute(_ADD_COMMAND, row).scalar())

    async def outcome(self, command_id: int) -> dict[str, Any] | None:
        """Return what came of a command; None while nothing did."""
        row = {"of": command_id}
        stored = await self._read(lambda connection: connection.execute(_OUTCOME, row).scalar())
        return None if stored is None else json.loads(stored)

    async def begin(self, command_ids: Sequence[int]) -> None:
        """Note that this opening begins to carry out commands: the next owner has to look what came of them."""
        own = update(commands).where(commands.c.id.in_(command_ids)).values(begun_by=self._me)
        await self._write(lambda connection: connection.execute(own))

    async def settle(self, command_id: int, outcome: dict[str, Any]) -> None:
        """Store what came of a command, once."""
        row = {"of": command_id, "came": json.dumps(outcome)}
        await self._write(lambda connection: connection.execute(_SETTLE, row))

    async def own_commands(self) -> list[OpenCommand]:
        """Return the open commands for executions that this opening drives, in order."""
        return await self._commands(_OWNED, {"me": self._me})

    async def left_commands(self, age_s: float) -> list[OpenCommand]:
        """Return the open commands that are older than this and whose owner is gone, in order."""
        return await self._commands(_LEFT, {"age": age_s})

    async def _commands(self, query: Rows, values: dict[str, Any]) -> list[OpenCommand]:
        def read(connection: Connection) -> list[Any]:
            return list(connection.execute(query, values))

        rows: list[Any] = await self._read(read)
        return _open_commands(rows)

    # -- upkeep ------------------------------------------------------------------------------------

    async def forget_old(self) -> None:
        """Delete commands that nobody asks for any more, and owners of executions that have ended.

        Commands of executions that were deleted stay as long as their callers wait, others for a day.
        """

        def change(connection: Connection) -> None:
            for statement in _FORGET:
                connection.execute(statement, {"kept": _KEPT_S, "left": _LEFT_S})

        await self._write(change)


def waits_for(connection: Connection, execution_ids: Sequence[str]) -> dict[str, WaitsForResponse]:
    """Return what executions wait for that not every process can do, by id; others are left out."""
    own = _WAITS.where(executions.c.execution_id.in_(execution_ids))
    waiting = {of: needs for of, needs in connection.execute(own)}
    capable = _capable(connection) if waiting else Counter[str]()
    return {of: {"capability": needs, "processes": capable[needs]} for of, needs in waiting.items()}


def _capable(connection: Connection) -> Counter[str]:
    """Return how many openings have each capability."""
    held = connection.execute(_CAPABILITIES).scalars()
    return Counter(name for each in held for name in each.split(","))


def _open_commands(rows: Sequence[Any]) -> list[OpenCommand]:
    return [OpenCommand(own, of, json.loads(text_), begun) for own, of, text_, begun in rows]
