"""Flows of a running service, as commands use them: over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from planwave.cli.remote_documents import parse_document
from planwave.errors import NotFound
from planwave.service.flow_history import Flow
from planwave.service.history import QueryService
from planwave.storage.flows import FlowRecord, FlowVersion

if TYPE_CHECKING:
    from planwave.client import AsyncClient
    from planwave.storage.records import PageCursor

PageRequest = Callable[[str | None, int], Awaitable[Mapping[str, Any]]]
"""Asks for one page: from a cursor on, so many items."""


class ReadPages(Protocol):
    """Reads page after page; ``before`` is the last one of what was given so far."""

    async def __call__(
        self, ask: PageRequest, what: str, before: str | PageCursor | None, limit: int
    ) -> list[dict[str, Any]]: ...


class FlowShelf:
    """What :class:`QueryService` reads of a store's flows, over HTTP."""

    def __init__(self, client: AsyncClient, read: ReadPages) -> None:
        self._client = client
        self._read = read

    async def get(self, flow_id: str) -> FlowRecord | None:
        try:
            flow = await self._client.flow(flow_id)
        except NotFound:
            return None
        facts = {name: value for name, value in flow.items() if name != "graph"}
        return _record({**facts, "node_count": len(flow["graph"]["nodes"])})

    async def version(self, flow_id: str, version: str) -> FlowVersion | None:
        try:
            flow = await self._client.flow(flow_id, version)
        except NotFound:
            return None
        graph: dict[str, Any] = {**flow["graph"]}
        return FlowVersion(
            flow_id, version, flow["revision"], flow["updated_at"], len(graph["nodes"]), graph
        )

    async def page(
        self, *, text: str | None = None, before: str | PageCursor | None = None, limit: int = 50
    ) -> Sequence[FlowRecord]:
        async def ask(cursor: str | None, size: int) -> Mapping[str, Any]:
            return await self._client.flows(q=text, cursor=cursor, limit=size)

        return [_record(each) for each in await self._read(ask, "flow", before, limit)]

    async def versions(
        self, flow_id: str, *, before: PageCursor | None = None, limit: int = 50
    ) -> Sequence[FlowVersion]:
        async def ask(cursor: str | None, size: int) -> Mapping[str, Any]:
            return await self._client.flow_versions(flow_id, cursor=cursor, limit=size)

        found = await self._read(ask, "version", before, limit)
        return [
            FlowVersion(
                flow_id,
                each["version"],
                each["revision"],
                each["created_at"],
                each["node_count"],
            )
            for each in found
        ]


class RemoteFlows(QueryService):
    """Changes flows of a running service; :class:`planwave.cli.remote.RemoteBackend` adds the rest."""

    _client: AsyncClient

    async def create_flow(
        self,
        name: str,
        *,
        graph: bytes | None = None,
        plan_id: str | None = None,
        description: str | None = None,
    ) -> Flow:
        """Have a graph, or a stored plan, saved under a name."""
        document = None if graph is None else parse_document(graph)
        made = await self._client.create_flow(
            name, document, plan_id=plan_id, description=description
        )
        return _flow(made)

    async def update_flow(
        self,
        flow_id: str,
        *,
        graph: bytes | None = None,
        plan_id: str | None = None,
        description: str | None = None,
    ) -> Flow:
        """Have a flow changed."""
        document = None if graph is None else parse_document(graph)
        changed = await self._client.update_flow(
            flow_id, graph=document, plan_id=plan_id, description=description
        )
        return _flow(changed)

    async def delete_flow(self, flow_id: str) -> None:
        """Have a flow removed."""
        await self._client.delete_flow(flow_id)


def _record(flow: Mapping[str, Any]) -> FlowRecord:
    return FlowRecord(**{name: flow[name] for name in FlowRecord.__slots__})


def _flow(flow: Mapping[str, Any]) -> Flow:
    return Flow(**{name: flow[name] for name in Flow.__slots__})
