"""Calls that must not happen twice, in all attempts of an agent and in the executions that a fork continues."""

from __future__ import annotations

import hashlib
from typing import Final

from planwave.graph.model import Json
from planwave.graph.protocols import FlowContext
from planwave.nodes.agents.delegation import Delegation
from planwave.nodes.services import NodeServices
from planwave.providers.protocols import CONTINUES, NO_ATTEMPT, CallKey, Recorder

_ACTED: Final = "/acted"
"""What follows the hash of a tool in the key of the note that it was called."""


class OnceCalls:
    """Notes which tools of the effect ``once`` an agent has called.

    An agent that runs again, in another attempt or in a fork, may call such a tool with other arguments,
    or in another order. So a note says only that an attempt called the tool. A call by an agent that is
    called as a tool is noted for the agents above it too: any of them may run again.

    Args:
        context: The context of the attempt.
        delegation: Where the agent is, if another agent called it.
    """

    def __init__(self, context: FlowContext, delegation: Delegation) -> None:
        services = context.services
        self._recorder: Recorder | None = (
            services.recorder if isinstance(services, NodeServices) else None
        )
        self._execution_id = context.run_id
        self._attempts = delegation.attempts_of(context)

    async def may_repeat(self, tool: str, *, is_approved: bool) -> bool:
        """Return whether a call of a tool may repeat one of an earlier attempt or execution.

        Args:
            tool: The tool that is to be called.
            is_approved: A person has approved the call. The approval may be that of an execution before,
                never that of an earlier attempt.
        """
        if self._recorder is None:
            return False
        for path, attempt in self._attempts:
            note = await self._recorder.recorded(self._key(tool, path))
            if note is None or note == self._note(attempt):
                continue
            if note.get(CONTINUES) and attempt == 1:  # later attempts continue nothing
                continue
            if not is_approved or note["execution_id"] != self._execution_id:
                return True
        return False

    async def note(self, tool: str) -> None:
        """Note that a tool is about to be called; the first notes stay. Durable on return."""
        if self._recorder is not None:
            for path, attempt in self._attempts:
                await self._recorder.record(self._key(tool, path), self._note(attempt))

    def _note(self, attempt: int) -> dict[str, Json]:
        return {"execution_id": self._execution_id, "attempt": attempt}

    def _key(self, tool: str, path: str) -> CallKey:
        hashed = hashlib.sha256(tool.encode("utf-8")).hexdigest()
        return CallKey(self._execution_id, path, NO_ATTEMPT, 0, hashed + _ACTED)
