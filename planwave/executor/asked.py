"""Commands whose caller wants to know what became of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from planwave.errors import Conflict, PlanwaveError

ALREADY_ENDED: Final = "at-rest"
"""The code of a refusal that came too late: what is stored of the execution has the last word."""
TurnCallback = Callable[[Any, Any], None]
"""How a message is taken in its turn: called with what it is about, and what it says."""


class PendingCommands:
    """The commands of one execution that nobody has been told about yet.

    Args:
        post: Puts a message into the mailbox.
        after_commit: Has something called once the turn's events are durable.
    """

    __slots__ = ("_after_commit", "_open", "_post")

    def __init__(
        self,
        post: Callable[[TurnCallback, Any, Any], None],
        after_commit: Callable[[Callable[[], None]], None],
    ) -> None:
        self._post: Callable[[TurnCallback, Any, Any], None] | None = post
        self._after_commit: Callable[[Callable[[], None]], None] | None = after_commit
        self._open: set[asyncio.Future[None]] = set()

    def send(self, callback: TurnCallback, about: Any, what: Any) -> asyncio.Future[None]:
        """Put a command into the mailbox.

        Returns:
            Done once what it led to is durable; has the error where it was refused. Nobody has to
            look at it.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.add_done_callback(_retrieve_exception)
        post, after_commit = self._post, self._after_commit
        if post is None or after_commit is None:
            resolve_future(done, _already_ended())
            return done
        self._open.add(done)

        def taken(about: Any, what: Any) -> None:
            refusal: PlanwaveError | None = None
            try:
                callback(about, what)
            except PlanwaveError as error:
                refusal = error
            after_commit(lambda: self._reply(done, refusal))

        post(taken, about, what)
        return done

    def _reply(self, done: asyncio.Future[None], refusal: PlanwaveError | None) -> None:
        self._open.discard(done)
        resolve_future(done, refusal)

    def close(self) -> None:
        """Refuse what came too late for a turn, now and later."""
        for done in self._open:
            resolve_future(done, _already_ended())
        self._open.clear()
        self._post = self._after_commit = None  # they would keep the execution alive


def _already_ended() -> Conflict:
    return Conflict("the execution has just come to rest", code=ALREADY_ENDED)


def resolve_future(future: asyncio.Future[Any], result: Any) -> None:
    """Give a future its result, or its error, unless it has one."""
    if future.done():
        return
    if isinstance(result, PlanwaveError):
        future.set_exception(result)
    else:
        future.set_result(result)


def _retrieve_exception(done: asyncio.Future[None]) -> None:
    """Have nobody complain of an error that nobody asked for."""
    if not done.cancelled():
        done.exception()
