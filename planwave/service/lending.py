"""Finished calls of an execution that its forks need not pay for again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from planwave.providers.api import CallKey, Recorder
from planwave.providers.recordings import USAGE_UNREPORTED

if TYPE_CHECKING:
    from planwave.executor.reuse import Reuse


class ParentCallRecorder:
    """A recorder that also finds what the execution before a fork had recorded; over another one.

    A node that had come to no end there, as it was cancelled or cut off, goes on in the fork as one
    that is entered again does: what it asks the same in the same order, it was answered. One that had
    failed begins anew: what it was answered may be why.
    Where a node was cut off between a call and the word of what that took, who borrows it tells.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        # A fork holds what it takes over for as long as it runs.
        self._forks = WeakValueDictionary[str, "Reuse"]()

    def share(self, execution_id: str, reuse: Reuse) -> None:
        """Let an execution have the calls of the one it is a fork of, as far as that says so."""
        self._forks[execution_id] = reuse

    async def recorded(self, key: CallKey) -> dict[str, Any] | None:
        """Give the recorded reply, or None; one that is lent is recorded for who borrows it too."""
        found = await self._recorder.recorded(key)
        reuse = self._forks.get(key.execution_id)
        if found is not None or reuse is None:
            return found
        attempt = reuse.continued_attempt(key.path, key.attempt)
        if attempt is None:
            return None
        before = key._replace(execution_id=reuse.execution_id, attempt=attempt)
        lent = await self._recorder.recorded(before)
        if lent is None:
            return None
        await self._recorder.record(key, lent)
        is_told = reuse.was_recorded(key.path, attempt, lent.get("usage") or {})
        return lent if is_told else {**lent, USAGE_UNREPORTED: True}

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        """Keep a reply; see ``Recorder``."""
        await self._recorder.record(key, reply)
