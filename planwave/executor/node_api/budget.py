"""What a running node reserves of the budget of its execution."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from planwave.executor.messages import BudgetReleased, BudgetReserved
from planwave.executor.node_api.mailbox import Mailbox
from planwave.executor.node_api.own_work import calls_around
from planwave.executor.state import DONE, Attempt, ReplyTo, current_attempt


class Reservation:
    """Amounts that a call of a node holds; satisfies ``graph.protocols.Reservation``."""

    __slots__ = ("_attempt", "_mailbox", "_reply")

    def __init__(self, mailbox: Mailbox, attempt: Attempt, reply: ReplyTo) -> None:
        self._mailbox, self._attempt = mailbox, attempt
        self._reply: ReplyTo | None = reply

    def release(self) -> None:
        """Free the amounts; what was really used is in ``usage`` events emitted before."""
        reply, self._reply = self._reply, None
        if reply is not None:
            self._mailbox.post(BudgetReleased(self._attempt, reply))


class NodeBudget:
    """The budget of one execution, for its nodes; satisfies ``graph.protocols.Budget``.

    Args:
        mailbox: Gets the reservations.
        amounts: The names of the amounts that are limited.
    """

    def __init__(self, mailbox: Mailbox, amounts: Collection[str]) -> None:
        self._mailbox = mailbox
        self.amounts = frozenset(amounts)

    async def reserve(self, amounts: Mapping[str, float]) -> Reservation:
        """Wait until the budget has these amounts, and hold them; see ``FlowContext.budget``."""
        attempt = current_attempt.get()
        if attempt.phase is DONE:
            raise attempt.ended_error()
        reply, granted = self._mailbox.expect_reply()
        is_counted = attempt.counts(asyncio.current_task())
        blocks = calls_around.get()
        attempt.own_calls -= blocks  # while it waits, it does no own work
        self._mailbox.post(BudgetReserved(attempt, amounts, reply, is_counted))
        reservation = Reservation(self._mailbox, attempt, reply)
        try:
            await granted
        except BaseException:
            reservation.release()
            raise
        finally:
            attempt.own_calls += blocks
            if attempt.waits is not None:
                attempt.waits.discard(reply)
            self._mailbox.forget(reply)
        return reservation
