"""Flows of a store without a disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from planwave.storage.flows import FlowRecord, FlowVersion
from planwave.storage.ordering import newest_first
from planwave.storage.records import PageCursor
from planwave.storage.rows import encode_document, flow_not_found, search_key, storable_text


@dataclass(slots=True)
class _StoredFlow:
    record: FlowRecord
    graphs: dict[str, str] = field(default_factory=dict[str, str])
    versions: dict[str, FlowVersion] = field(default_factory=dict[str, FlowVersion])


class MemoryFlows:
    """The ``FlowStore`` port over dictionaries; graphs are kept as JSON text, as on disk.

    Args:
        check_open: Refuses writes to a store that was closed.
        check_unused: Refuses to have a flow deleted that is in use.
    """

    def __init__(self, check_open: Callable[[], None], check_unused: Callable[[str], None]) -> None:
        self._check_open = check_open
        self._check_unused = check_unused
        self._flows: dict[str, _StoredFlow] = {}

    async def save(
        self, flow: FlowRecord, graph: dict[str, Any] | None = None, *, after: int = 0
    ) -> bool:
        self._check_open()
        text = None if graph is None else encode_document(graph, f"flow {flow.flow_id!r}")
        kept = self._flows.get(flow.flow_id)
        if after != (0 if kept is None else kept.record.revision):
            return False
        record = replace(flow, name=storable_text(flow.name), description=storable_text(flow.description))
        if kept is None:
            kept = self._flows[flow.flow_id] = _StoredFlow(record)
        kept.record = record
        if text is not None:
            kept.graphs[flow.version] = text
            kept.versions.setdefault(
                flow.version,
                FlowVersion(
                    flow.flow_id, flow.version, flow.revision, flow.updated_at, flow.node_count
                ),
            )
        return True

    async def get(self, flow_id: str) -> FlowRecord | None:
        kept = self._flows.get(flow_id)
        return None if kept is None else kept.record

    async def version(self, flow_id: str, version: str) -> FlowVersion | None:
        kept = self._flows.get(flow_id)
        if kept is None or version not in kept.versions:
            return None
        return replace(kept.versions[version], graph=json.loads(kept.graphs[version]))

    async def page(
        self, *, text: str | None = None, before: str | PageCursor | None = None, limit: int = 50
    ) -> Sequence[FlowRecord]:
        found = newest_first((kept.record for kept in self._flows.values()), _flow_sort_key, before)
        return [flow for flow in found if _flow_matches(flow, text)][: max(limit, 0)]

    async def versions(
        self, flow_id: str, *, before: PageCursor | None = None, limit: int = 50
    ) -> Sequence[FlowVersion]:
        kept = self._flows.get(flow_id)
        own = () if kept is None else kept.versions.values()
        return newest_first(own, _version_sort_key, before)[: max(limit, 0)]

    async def delete(self, flow_id: str) -> None:
        self._check_open()
        self._check_unused(flow_id)
        if self._flows.pop(flow_id, None) is None:
            raise flow_not_found(flow_id)


def _flow_sort_key(flow: FlowRecord) -> tuple[str, str]:
    return flow.created_at, flow.flow_id


def _version_sort_key(version: FlowVersion) -> tuple[str, str]:
    return version.created_at, version.version


def _flow_matches(flow: FlowRecord, text: str | None) -> bool:
    return not text or storable_text(text).casefold() in search_key(flow.name, flow.description)
