"""The mailbox of one execution: messages for the driver, and futures for the replies."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import count
from typing import Final, cast

from planwave.errors import Conflict, PlanwaveError
from planwave.executor.messages import Message
from planwave.executor.state import Outputs, ReplyTo

ALREADY_ENDED: Final = "at-rest"
"""The code of a refusal that came too late: what is stored of the execution has the last word."""

Answer = Mapping[str, Outputs] | None
"""What a reply carries: the outputs of a nested run, or nothing."""


class Mailbox:
    """Messages that wait for the next turn of the driver.

    Attributes:
        is_closed: The execution has ended; messages are dropped.
    """

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._wake: asyncio.Future[None] | None = None
        self._waiting: dict[ReplyTo, asyncio.Future[Answer]] = {}
        self._commands: dict[ReplyTo, asyncio.Future[None]] = {}
        self._numbers = count()
        self.is_closed = False

    def __bool__(self) -> bool:
        return bool(self._messages)

    def post(self, message: Message) -> None:
        """Put a message into the mailbox."""
        if not self.is_closed:
            self._messages.append(message)
            self.wake_up()

    def take(self) -> list[Message]:
        """Return all messages, in the order in which they were posted."""
        messages, self._messages = self._messages, []
        return messages

    async def wait(self) -> None:
        """Return once a message is posted, or ``wake_up`` is called."""
        self._wake = asyncio.get_running_loop().create_future()
        await self._wake

    def wake_up(self) -> None:
        """Wake up ``wait``."""
        wake, self._wake = self._wake, None
        if wake is not None and not wake.done():
            wake.set_result(None)

    # -- replies -----------------------------------------------------------------------------------

    def expect_reply(self) -> tuple[ReplyTo, asyncio.Future[Answer]]:
        """Return a token for a node's message, and the future that gets the reply."""
        reply = ReplyTo(next(self._numbers))
        future = self._waiting[reply] = asyncio.get_running_loop().create_future()
        return reply, future

    def expect_command_reply(self) -> tuple[ReplyTo, asyncio.Future[None]]:
        """Return a token for a caller's command, and the future that gets the reply.

        The future fails once the mailbox is closed. It may be ignored.
        """
        reply = ReplyTo(next(self._numbers))
        future = self._commands[reply] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_retrieve_exception)
        if self.is_closed:
            self.resolve(reply, _already_ended())
        return reply, future

    def resolve(self, reply: ReplyTo, answer: Answer | PlanwaveError) -> None:
        """Set the result, or the error, of the future behind a reply token."""
        command = self._commands.pop(reply, None)
        future = self._waiting.pop(reply, None) if command is None else command
        if future is None or future.done():
            return
        if isinstance(answer, PlanwaveError):
            future.set_exception(answer)
        elif command is not None:
            command.set_result(None)
        else:
            cast("asyncio.Future[Answer]", future).set_result(answer)

    def cancel(self, reply: ReplyTo) -> None:
        """Cancel the future behind a reply token, and so the node's task that awaits it."""
        future = self._waiting.pop(reply, None)
        if future is not None:
            future.cancel()

    def forget(self, reply: ReplyTo) -> None:
        """Drop a reply token whose future is no longer awaited."""
        self._waiting.pop(reply, None)

    def close(self) -> None:
        """Refuse all commands without a reply, now and later; drop all messages."""
        self.is_closed = True
        self._messages.clear()
        for reply in [*self._commands]:
            self.resolve(reply, _already_ended())
        self._waiting.clear()


def _already_ended() -> Conflict:
    return Conflict("the execution has just come to rest", code=ALREADY_ENDED)


def _retrieve_exception(done: asyncio.Future[None]) -> None:
    """Keep asyncio from logging the error of a future that is never awaited."""
    if not done.cancelled():
        done.exception()
