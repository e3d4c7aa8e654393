"""The rows stores keep beside events, and the port every store satisfies.

One contract suite (``tests/contract``) runs over all implementations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from planwave.events import Event
from planwave.providers.api import CallKey


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """A stored plan: columns to search by, and ``document``, the whole of ``Plan.as_json()``."""

    plan_id: str
    created_at: str
    user_prompt: str
    title: str
    hash: str
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExecutionRecord:
    """An execution as lists show it; kept up to date by the store from the events it appends.

    ``status`` is one of ``starting executing paused completed failed cancelled``.
    ``document_seq`` is the ``last_seq`` of the JSON document on disk (0: none yet).
    """

    execution_id: str
    plan_id: str | None
    title: str
    user_prompt: str
    status: str
    created_at: str
    started_at: str | None = None
    completed_at: str | None = None
    last_seq: int = 0
    document_seq: int = 0
    epoch: int = 1


class Store(Protocol):
    """Plans, executions, their events, and recorded calls. All writes are durable on return."""

    async def save_plan(self, plan: PlanRecord) -> None: ...
    async def plan(self, plan_id: str) -> PlanRecord | None: ...
    async def plans(
        self, *, text: str | None = None, before: str | None = None, limit: int = 50
    ) -> list[PlanRecord]:
        """Give plans, newest first; ``before`` is the id of the last one already seen."""
        ...

    async def create_execution(self, record: ExecutionRecord, events: Sequence[Event]) -> None:
        """Keep a new execution with its first events in one commit."""
        ...

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None: ...
    async def claim(self, execution_id: str) -> int:
        """Make the caller the owner: raise the epoch by one and give it. NotFound if unknown."""
        ...

    async def events(
        self, execution_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Event]: ...
    async def execution(self, execution_id: str) -> ExecutionRecord | None: ...
    async def executions(
        self,
        *,
        status: str | None = None,
        text: str | None = None,
        since: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[ExecutionRecord]:
        """Give executions, newest first; ``since`` is a UTC time, ``before`` an id."""
        ...

    async def set_document_seq(self, execution_id: str, seq: int) -> None: ...
    async def lagging_documents(self) -> list[str]:
        """Give ids of paused or ended executions whose document is behind their events."""
        ...

    async def recorded(self, key: CallKey) -> dict[str, Any] | None: ...
    async def record(self, key: CallKey, reply: dict[str, Any]) -> None: ...
    async def close(self) -> None: ...
