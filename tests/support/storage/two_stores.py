"""Two openings of one database that take turns, as two processes with the same settings would."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any


class TakingTurns:
    """Gives each attribute, or method to call, of another one of some equal objects.

    What is set, and what every process sets for itself at its start, is set of all. What was claimed is settled or
    released by the one that claimed it.
    """

    _CLAIMS = frozenset(("claim_idempotency_key", "claim"))
    _OF_CLAIMS = frozenset(("store_response", "release_idempotency_key", "settle", "release"))

    _PARTS = frozenset(
        (
            "access_tokens",
            "approved_tools",
            "chats",
            "links",
            "notifications",
            "revisions",
            "triggers",
        )
    )

    def __init__(self, *each: Any) -> None:
        self.__dict__["_each"] = each
        self.__dict__["_turn"] = 0
        self.__dict__["_claimed_by"] = {}
        for name in self._PARTS if hasattr(each[0], "revisions") else ():
            self.__dict__[name] = TakingTurns(*(getattr(one, name) for one in each))

    def __getattr__(self, name: str) -> Any:
        if name == "set_operator_targets":
            return lambda targets: self._call_all(name, targets)
        if name in self._OF_CLAIMS:
            return partial(self._settle, name)
        self.__dict__["_turn"] = (self._turn + 1) % len(self._each)
        one = self._each[self._turn]
        return partial(self._claim, one, name) if name in self._CLAIMS else getattr(one, name)

    async def _claim(self, one: Any, name: str, *of: Any, **rest: Any) -> Any:
        claimed = await getattr(one, name)(*of, **rest)
        if getattr(claimed, "is_new", False):
            self._claimed_by |= {of[:length]: one for length in range(1, len(of))}
        return claimed

    def _settle(self, name: str, *of: Any, **rest: Any) -> Any:
        keys = [of[:length] for length in range(len(of), 0, -1)]
        one = next(
            (self._claimed_by[key] for key in keys if key in self._claimed_by), self._each[0]
        )
        return getattr(one, name)(*of, **rest)

    def __setattr__(self, name: str, value: object) -> None:
        for one in self._each:
            setattr(one, name, value)

    async def close(self) -> None:
        for one in self._each:
            await one.close()

    def _call_all(self, name: str, *arguments: Sequence[Any]) -> None:
        for one in self._each:
            getattr(one, name)(*arguments)
