"""Access tokens in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from planwave.storage.access_tokens import AccessTokenRecord
from planwave.storage.event_codec import storable_text


class MemoryAccessTokens:
    """The ``AccessTokenStore`` port over a dictionary.

    Args:
        check_open: Raises if the store is closed.
    """

    def __init__(self, check_open: Callable[[], None]) -> None:
        self._check_open = check_open
        self._tokens: dict[str, AccessTokenRecord] = {}

    async def create(self, token: AccessTokenRecord) -> None:
        self._check_open()
        self._tokens[token.token_id] = replace(token, name=storable_text(token.name))

    async def all(self) -> Sequence[AccessTokenRecord]:
        by_age = sorted(self._tokens.values(), key=lambda each: (each.created_at, each.token_id))
        return by_age[::-1]

    async def set_last_used(self, uses: Mapping[str, str]) -> None:
        self._check_open()
        for token_id, at in uses.items():
            if token_id in self._tokens:
                self._tokens[token_id] = replace(self._tokens[token_id], last_used_at=at)

    async def delete(self, token_id: str) -> bool:
        self._check_open()
        return self._tokens.pop(token_id, None) is not None
