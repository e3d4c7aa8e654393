"""Two openings of one database that take turns, as two processes with the same settings would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class TakingTurns:
    """Gives each attribute, or method to call, of another one of some equal objects.

    What is set, and what every process sets for itself at its start, is set of all.
    """

    _PARTS = frozenset(
        ("access_tokens", "approved_tools", "chats", "notifications", "revisions", "triggers")
    )

    def __init__(self, *each: Any) -> None:
        self.__dict__["_each"] = each
        self.__dict__["_turn"] = 0
        for name in self._PARTS if hasattr(each[0], "revisions") else ():
            self.__dict__[name] = TakingTurns(*(getattr(one, name) for one in each))

    def __getattr__(self, name: str) -> Any:
        if name == "set_operator_targets":
            return lambda targets: self._call_all(name, targets)
        self.__dict__["_turn"] = (self._turn + 1) % len(self._each)
        return getattr(self._each[self._turn], name)

    def __setattr__(self, name: str, value: object) -> None:
        for one in self._each:
            setattr(one, name, value)

    async def close(self) -> None:
        for one in self._each:
            await one.close()

    def _call_all(self, name: str, *arguments: Sequence[Any]) -> None:
        for one in self._each:
            getattr(one, name)(*arguments)
