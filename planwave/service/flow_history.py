"""Flows as they are kept: everything that can be read of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from planwave.errors import InputError, NotFound
from planwave.graph.strict import shown
from planwave.storage.ids import UUID_PATTERN

if TYPE_CHECKING:
    from planwave.storage.flows import FlowRecord, FlowVersion
    from planwave.storage.records import Place, Store

_PAGE: Final = 200
_SHOWN: Final = 4
_LISTS: Final = "`planwave flow ls` shows what is kept"


class FlowChoice(NamedTuple):
    """One version of a flow, or with None the one that it has when it is looked up."""

    flow_id: str
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow with one of its graphs.

    Attributes:
        description: What it is for; its executions have it as their goal.
        version: The hash of the graph.
        revision: Of the flow: counts its changes. Of an older version: the one it came with.
        updated_at: When that was, UTC.
        graph: The graph document, as it was saved.
    """

    flow_id: str
    name: str
    description: str
    version: str
    revision: int
    created_at: str
    updated_at: str
    graph: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Give the flow as the API shows it."""
        return {name: getattr(self, name) for name in self.__slots__}


class FlowHistory:
    """Reads flows; :class:`planwave.service.history.History` adds plans and executions."""

    _store: Store

    async def flow(self, flow_id: str, version: str | None = None) -> Flow:
        """Give a flow as it is, or with the graph of one of its versions.

        Raises:
            NotFound: There is none of that id, or it has no such version.
        """
        record = await self._flow_record(flow_id)
        kept = await self._store.flows.version(flow_id, version or record.version)
        if kept is None:
            raise NotFound(
                f"flow {record.name!r} has no version {shown(version or '')}",
                hint=f"`planwave flow show {flow_id}` lists its versions",
            )
        is_present = kept.version == record.version
        return Flow(
            flow_id,
            record.name,
            record.description,
            kept.version,
            record.revision if is_present else kept.revision,
            record.created_at,
            record.updated_at if is_present else kept.created_at,
            kept.graph or {},
        )

    async def flows(
        self, *, text: str | None = None, before: str | Place | None = None, limit: int = 50
    ) -> Sequence[FlowRecord]:
        """Give flows, newest first; ``text`` is looked for in name and description."""
        return await self._store.flows.page(text=text, before=before, limit=limit)

    async def flow_versions(
        self, flow_id: str, *, before: Place | None = None, limit: int = 50
    ) -> Sequence[FlowVersion]:
        """Give the versions of a flow, newest first, without their graphs.

        Raises:
            NotFound: There is none of that id.
        """
        await self._flow_record(flow_id)
        return await self._store.flows.versions(flow_id, before=before, limit=limit)

    async def find_flow(self, name: str) -> str:
        """Give the id of the flow of that id, or name, or whose id alone starts so.

        Raises:
            NotFound: Nothing fits.
            InputError: Several fit; the hint lists some of them.
        """
        if UUID_PATTERN.fullmatch(name) and await self._store.flows.get(name) is not None:
            return name
        found = [flow for flow in await self._all_flows(name) if flow.name == name]
        if not found and name:
            prefix = name.lower()
            found = [each for each in await self._all_flows() if each.flow_id.startswith(prefix)]
        if not found:
            raise NotFound(f"there is no flow called {shown(name)}", hint=_LISTS)
        if len(found) > 1:
            ids = ", ".join(flow.flow_id for flow in found[:_SHOWN])
            more = ", …" if len(found) > _SHOWN else ""
            raise InputError(
                f"{len(found)} flows go by {shown(name)}",
                code="ambiguous-flow",
                hint=f"name one by its id: {ids}{more}",
            )
        return found[0].flow_id

    async def _flow_record(self, flow_id: str) -> FlowRecord:
        record = await self._store.flows.get(flow_id)
        if record is None:
            raise NotFound(f"there is no flow {shown(flow_id)}", hint=_LISTS)
        return record

    async def _all_flows(self, text: str | None = None) -> Sequence[FlowRecord]:
        found: list[FlowRecord] = []
        before: str | None = None
        while page := await self.flows(text=text, before=before, limit=_PAGE):
            found += page
            before = page[-1].flow_id
        return found
