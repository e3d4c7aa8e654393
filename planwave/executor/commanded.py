"""The commands of an execution, as callers give them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from planwave.events.vocabulary import PAUSE_REASONS, REQUESTED
from planwave.executor.asked import PendingCommands
from planwave.executor.attempt import GraphRun
from planwave.executor.outcomes import Reducer
from planwave.graph.model import Json


class CommandSender:
    """What an execution can be told; each command takes its turn in the mailbox."""

    root: GraphRun
    _reducer: Reducer
    _commands: PendingCommands
    _has_begun: bool

    def post(self, callback: Callable[[Any, Any], None], subject: Any, payload: Any) -> None:
        """Put a message into the mailbox: ``take(about, what)`` is called in its turn."""
        raise NotImplementedError

    def cancel(self, cause: str) -> None:
        """Cancel the execution; :meth:`run` ends with ``cancelled`` unless it finished before."""
        self.post(self._reducer.commands.cancel_all, self.root, cause)

    def cancel_node(self, path: str, cause: str) -> asyncio.Future[None]:
        """Cancel one node; done once that is durable, ``Conflict`` where it cannot be."""
        return self._commands.send(self._reducer.commands.cancel_node, path, cause)

    def pause(self, reason: str = PAUSE_REASONS[REQUESTED]) -> asyncio.Future[None]:
        """Start nothing more until :meth:`resume_args`; nodes at work go on to their end."""
        return self._commands.send(self._reducer.commands.request_pause, self.root, reason)

    def resume(self, reason: str = "resumed by request") -> asyncio.Future[None]:
        """Go on after :meth:`pause`; ``Conflict`` where it is not paused."""
        return self._commands.send(self._reducer.commands.request_resume, self.root, reason)

    def expire(self, request_id: str) -> None:
        """Have a waiting node go on with what it wants where nobody answers in time."""
        self.post(self._reducer.commands.expire_request, request_id, None)

    def answer(self, request_id: str, answer: Json) -> asyncio.Future[None]:
        """Answer a waiting node; it goes on with its ``resume``. Done once that is durable.

        Raises:
            Conflict, Gone: No request of that id is open (any more); the code says why.
        """
        requests = self._reducer.requests
        if self._has_begun and not requests.claim(request_id):
            raise requests.refusal_error(request_id)
        return self._commands.send(self._reducer.commands.answer_request, request_id, answer)
