"""What the executor needs from outside; other rooms satisfy these by shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from planwave.events import Event
from planwave.graph.model import Json


@runtime_checkable
class Redacting(Protocol):
    """Services of nodes that know secrets: what a node gives, emits and raises is stored without them."""

    def redact(self, value: Json) -> Json:
        """Return JSON with the names of secrets in place of their values."""
        ...


class Journal(Protocol):
    """Where events become durable."""

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        """Keep a batch, all or nothing; durable when this returns.

        Raises:
            StaleEpoch: ``epoch`` is older than the execution's owner.
            StoreError: The store cannot write now.
        """
        ...

    async def events(self, execution_id: str) -> Sequence[Event]:
        """Return all events of an execution that are durable, in order.

        Raises:
            StoreError: They cannot be read now.
        """
        ...
