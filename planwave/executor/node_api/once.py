"""Values that a node finds again whenever it is entered again: ``runtime.once``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from planwave.errors import ResultNotJson
from planwave.executor.messages import OnceValueMade
from planwave.executor.node_api.mailbox import Mailbox
from planwave.executor.node_api.own_work import OwnWork
from planwave.executor.state import DONE, Attempt, current_attempt
from planwave.executor.stored_runs import NO_ONCE_VALUES
from planwave.expressions.json_text import copy_json
from planwave.graph.json_values import NotJson, to_json
from planwave.graph.model import Json

FindInParent = Callable[[Attempt, str], Awaitable[tuple[Json] | None]]
"""Returns the once value that a fork's node reuses, as a tuple of one, or None."""


class OnceValues:
    """The once values of one execution's nodes; ``mailbox`` gets a message for each new value."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}

    async def once(
        self, key: str, fn: Callable[[], Awaitable[Json]], find_in_parent: FindInParent
    ) -> Json:
        """Return the value of a node under a key; see ``RuntimeApi.once``."""
        attempt = current_attempt.get()
        _require_running(attempt)
        known = _known_values(attempt)
        if key in known:
            return copy_json(known[key])  # the node may change what it gets
        name = attempt.path, key
        async with self._locks.setdefault(name, asyncio.Lock()):
            _require_running(attempt)
            known = _known_values(attempt)
            if key in known:
                value = known[key]
            else:
                with OwnWork(attempt, self._mailbox):
                    value = await self._compute(attempt, key, fn, find_in_parent)
        self._locks.pop(name, None)
        return copy_json(value)

    async def _compute(
        self,
        attempt: Attempt,
        key: str,
        fn: Callable[[], Awaitable[Json]],
        find_in_parent: FindInParent,
    ) -> Json:
        taken = await find_in_parent(attempt, key)
        made = await fn() if taken is None else taken[0]
        try:
            value = copy_json(to_json(made))
        except NotJson as fault:
            raise ResultNotJson(
                f"node {attempt.path!r} was to keep, as {key!r}, a value that is {fault}",
                hint="keep text, numbers, booleans, null, lists and objects with text keys",
            ) from fault
        reply, stored = self._mailbox.expect_reply()
        self._mailbox.post(OnceValueMade(attempt, key, value, reply))
        try:
            await stored
        finally:
            self._mailbox.forget(reply)
        return value


def _known_values(attempt: Attempt) -> Mapping[str, Json]:
    return NO_ONCE_VALUES if attempt.node_run is None else attempt.node_run.once_values


def _require_running(attempt: Attempt) -> None:
    if attempt.phase is DONE:
        raise attempt.ended_error()
