"""What was planned and what ran: everything that can be read without running anything."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from planwave.errors import InputError, NotFound
from planwave.events import Event
from planwave.storage.records import ExecutionRecord, PlanRecord, Store

LAST = "last"
"""Names the newest execution, where an id is asked for."""
_PAGE = 200


class Found(NamedTuple):
    """What a short name stands for."""

    kind: Literal["execution", "plan"]
    id: str


class History:
    """Reads plans and executions of one store.

    Args:
        store: Where they are kept; closed together with this.
        directory: Where JSON documents lie, or None where none are written.
    """

    def __init__(self, store: Store, directory: Path | None) -> None:
        self._store = store
        self.directory = directory

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the store; all writes are durable then."""
        await self._store.close()

    async def plan(self, plan_id: str) -> PlanRecord:
        """Give a stored plan.

        Raises:
            NotFound: There is none of that id.
        """
        record = await self._store.plan(plan_id)
        if record is None:
            raise NotFound(f"there is no plan {plan_id!r}", hint="`planwave ls` shows what is kept")
        return record

    async def plans(
        self, *, text: str | None = None, before: str | None = None, limit: int = 50
    ) -> list[PlanRecord]:
        """Give plans, newest first."""
        return await self._store.plans(text=text, before=before, limit=limit)

    async def execution(self, execution_id: str) -> ExecutionRecord:
        """Give an execution as lists show it.

        Raises:
            NotFound: There is none of that id.
        """
        record = await self._store.execution(execution_id)
        if record is None:
            raise NotFound(
                f"there is no execution {execution_id!r}", hint="`planwave ls` shows what is kept"
            )
        return record

    async def executions(
        self,
        *,
        status: str | None = None,
        text: str | None = None,
        since: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[ExecutionRecord]:
        """Give executions, newest first."""
        return await self._store.executions(
            status=status, text=text, since=since, before=before, limit=limit
        )

    async def events(self, execution_id: str, *, after: int = 0) -> list[Event]:
        """Give the stored events of an execution with ``seq`` above ``after``."""
        await self.execution(execution_id)
        return await self._store.events(execution_id, after=after)

    async def document(self, execution_id: str) -> dict[str, Any]:
        """Give the JSON document of an execution, projected from its events as they are now."""
        from planwave.storage.document import project

        record = await self.execution(execution_id)
        events = await self._store.events(execution_id)
        return await asyncio.to_thread(project, events, record)

    def document_path(self, execution_id: str) -> Path | None:
        """Give where the document of an execution lies once it has paused or ended."""
        return None if self.directory is None else self.directory / f"{execution_id}.json"

    async def plan_status(self, plan_id: str) -> str:
        """Give the status of a plan: that of its newest execution, ``draft`` without one."""
        before: str | None = None
        while page := await self._store.executions(before=before, limit=_PAGE):
            for record in page:
                if record.plan_id == plan_id:
                    return status_of_plan(record.status)
            before = page[-1].execution_id
        return "draft"

    async def find(self, name: str) -> Found:
        """Find an execution or a plan by id, by the unique start of its id, or ``last``.

        Raises:
            NotFound: Nothing fits.
            InputError: Several fit; the hint lists some of them.
        """
        if name == LAST:
            newest = await self._store.executions(limit=1)
            if not newest:
                raise NotFound("nothing has run here yet", hint='start with: planwave run "GOAL"')
            return Found("execution", newest[0].execution_id)
        if await self._store.execution(name) is not None:
            return Found("execution", name)
        if await self._store.plan(name) is not None:
            return Found("plan", name)
        found = await self._starting_with(name.lower()) if name else []
        if not found:
            raise NotFound(
                f"no execution or plan has an id that starts with {name!r}",
                hint="`planwave ls` shows what is kept",
            )
        if len(found) > 1:
            raise InputError(
                f"{len(found)} executions and plans have an id that starts with {name!r}",
                code="ambiguous-id",
                hint=f"write more of it: {_some(found)}",
            )
        return found[0]

    async def _starting_with(self, prefix: str) -> list[Found]:
        found: list[Found] = []
        before: str | None = None
        while page := await self._store.executions(before=before, limit=_PAGE):
            ids = [record.execution_id for record in page]
            found += [Found("execution", i) for i in ids if i.startswith(prefix)]
            before = ids[-1]
        before = None
        while plans := await self._store.plans(before=before, limit=_PAGE):
            ids = [record.plan_id for record in plans]
            found += [Found("plan", i) for i in ids if i.startswith(prefix)]
            before = ids[-1]
        return found


def status_of_plan(execution_status: str) -> str:
    """Give the plan status that an execution status stands for."""
    if execution_status in ("starting", "executing", "paused"):
        return "executing"
    return "completed" if execution_status == "completed" else "failed"


def _some(found: Sequence[Found]) -> str:
    shown = ", ".join(each.id for each in found[:4])
    return f"{shown}, …" if len(found) > 4 else shown
