"""Flows and their versions in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from planwave.storage.errors import not_found
from planwave.storage.event_codec import encode_document, storable_text
from planwave.storage.memory.lists import matches_text, newest_first
from planwave.storage.records import FlowRecord, FlowVersion, PageCursor


@dataclass(slots=True)
class _StoredFlow:
    record: FlowRecord
    graphs: dict[str, str] = field(default_factory=dict[str, str])
    versions: dict[str, FlowVersion] = field(default_factory=dict[str, FlowVersion])


class MemoryFlows:
    """The ``FlowStore`` port over dictionaries; graphs are kept as JSON text, as on disk.

    Args:
        check_open: Refuses writes to a store that was closed.
        release: Refuses to have a flow deleted that is in use; deletes its triggers.
    """

    def __init__(self, check_open: Callable[[], None], release: Callable[[str], None]) -> None:
        self._check_open = check_open
        self._release = release
        self._flows: dict[str, _StoredFlow] = {}

    async def save(
        self, flow: FlowRecord, graph: dict[str, Any] | None = None, *, after: int = 0
    ) -> bool:
        self._check_open()
        text = None if graph is None else encode_document(graph, f"flow {flow.flow_id!r}")
        kept = self._flows.get(flow.flow_id)
        if after != (0 if kept is None else kept.record.revision):
            return False
        record = replace(
            flow, name=storable_text(flow.name), description=storable_text(flow.description)
        )
        if kept is None:
            kept = self._flows[flow.flow_id] = _StoredFlow(replace(record, published=()))
        kept.record = replace(record, published=kept.record.published)
        if text is not None:
            kept.graphs[flow.version] = text
            kept.versions.setdefault(
                flow.version,
                FlowVersion(
                    flow.flow_id,
                    flow.version,
                    flow.revision,
                    flow.updated_at,
                    flow.node_count,
                    created_by=flow.updated_by,
                ),
            )
        return True

    def has(self, flow_id: str) -> bool:
        """Return whether a flow exists."""
        return flow_id in self._flows

    async def get(self, flow_id: str) -> FlowRecord | None:
        kept = self._flows.get(flow_id)
        return None if kept is None else kept.record

    async def version(self, flow_id: str, version: str) -> FlowVersion | None:
        kept = self._flows.get(flow_id)
        if kept is None or version not in kept.versions:
            return None
        return replace(kept.versions[version], graph=json.loads(kept.graphs[version]))

    async def publish(self, flow_id: str, published: Sequence[str]) -> bool:
        self._check_open()
        kept = self._flows.get(flow_id)
        if kept is not None:
            kept.record = replace(kept.record, published=tuple(published))
        return kept is not None

    async def page(
        self,
        *,
        text: str | None = None,
        published: str | None = None,
        before: str | PageCursor | None = None,
        limit: int = 50,
    ) -> Sequence[FlowRecord]:
        found = newest_first((kept.record for kept in self._flows.values()), _flow_sort_key, before)
        matching = (
            f
            for f in found
            if matches_text(text, f.name, f.description)
            and (published is None or published in f.published)
        )
        return list(islice(matching, max(limit, 0)))

    async def versions(
        self, flow_id: str, *, before: PageCursor | None = None, limit: int = 50
    ) -> Sequence[FlowVersion]:
        kept = self._flows.get(flow_id)
        own = () if kept is None else kept.versions.values()
        return newest_first(own, _version_sort_key, before)[: max(limit, 0)]

    async def delete(self, flow_id: str) -> None:
        self._check_open()
        self._release(flow_id)
        if self._flows.pop(flow_id, None) is None:
            raise not_found("flow", flow_id)


def _flow_sort_key(flow: FlowRecord) -> tuple[str, str]:
    return flow.created_at, flow.flow_id


def _version_sort_key(version: FlowVersion) -> tuple[str, str]:
    return version.created_at, version.version
