"""What the executor needs from outside; other rooms satisfy these by shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from planwave.events import Event


class Journal(Protocol):
    """Where events become durable."""

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        """Keep a batch, all or nothing; durable when this returns.

        Raises:
            StaleEpoch: ``epoch`` is older than the execution's owner.
            StoreError: The store cannot write now.
        """
        ...
