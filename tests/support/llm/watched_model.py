"""A fake model that tests can watch: whose calls it gets, and how far its replies are read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

from planwave.providers.protocols import CallScope, Delta, ModelReply, ModelRequest, Usage
from planwave.testing import FakeModel

USAGE = Usage(11, 7, 0.01)
"""What a reply of ``in_pieces`` costs."""


class WatchedModel(FakeModel):
    """A fake model that is given to nodes or the planner without a client around it.

    Attributes:
        scopes: Whose the calls were, in their order.
        streamed: The characters that were read.
        closed: The calls that have ended, also those that were left early.
    """

    def __init__(self, reply: Any) -> None:
        super().__init__(reply)
        self.scopes: list[CallScope | None] = []
        self.streamed = self.closed = 0

    async def stream(
        self, request: ModelRequest, scope: CallScope | None = None
    ) -> AsyncGenerator[Delta | ModelReply]:
        self.scopes.append(scope)
        try:
            async with aclosing(super().stream(request, scope)) as items:
                async for item in items:
                    if isinstance(item, Delta) and item.kind == "text":
                        self.streamed += len(item.text)
                    yield item
        finally:
            self.closed += 1


def in_pieces(
    *pieces: str, finish_reason: str = "stop", reasoning: str = "", usage: Usage = USAGE
) -> Iterator[Delta | ModelReply]:
    """Return a reply that is streamed in these pieces, after its reasoning."""
    if reasoning:
        yield Delta(reasoning, "reasoning")
    yield from map(Delta, pieces)
    yield ModelReply("".join(pieces), "", "", finish_reason, usage)
