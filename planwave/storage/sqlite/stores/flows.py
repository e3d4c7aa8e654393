"""The flows of the store, and their statements."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from sqlalchemy import Connection, func, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from planwave.principals import Principal, principal_text
from planwave.storage.event_codec import encode_document, search_key, storable_text
from planwave.storage.records import FlowRecord, FlowVersion, PageCursor
from planwave.storage.sqlite.deletes import delete_flow
from planwave.storage.sqlite.lists import ListQuery, contains, query_parameter, search_text
from planwave.storage.sqlite.readers import Read
from planwave.storage.sqlite.schema import flow_versions, flows

FLOWS: Final = ListQuery(
    [
        flows.c.flow_id,
        flows.c.name,
        flows.c.description,
        flows.c.version,
        flows.c.revision,
        flows.c.created_at,
        flows.c.updated_at,
        flow_versions.c.node_count,
        flows.c.published,
        flows.c.updated_by,
    ],
    flows.join(
        flow_versions,
        (flow_versions.c.flow_id == flows.c.flow_id) & (flow_versions.c.version == flows.c.version),
    ),
    flows.c.created_at,
    flows.c.flow_id,
    {
        "text": contains(flows.c.search),
        "published": func.instr(flows.c.published, query_parameter("published")) > 0,
    },
)
_VERSION: Final = (
    flow_versions.c.flow_id,
    flow_versions.c.version,
    flow_versions.c.revision,
    flow_versions.c.created_at,
    flow_versions.c.node_count,
    flow_versions.c.created_by,
)
VERSIONS: Final = ListQuery(
    _VERSION,
    flow_versions,
    flow_versions.c.created_at,
    flow_versions.c.version,
    {"flow_id": flow_versions.c.flow_id == query_parameter("flow_id")},
)


class SqliteFlows:
    """Flows and their versions, in the tables ``flows`` and ``flow_versions``.

    Args:
        read: Runs a query beside the writer.
        write: Commits a change, which is durable on return where there is a disk.
    """

    def __init__(
        self,
        read: Read,
        write: Callable[[Callable[[Connection], Any]], Coroutine[Any, Any, Any]],
    ) -> None:
        self._read = read
        self._write = write

    async def save(
        self, flow: FlowRecord, graph: dict[str, Any] | None = None, *, after: int = 0
    ) -> bool:
        """Save a flow, and its current graph if ``graph`` is given.

        Args:
            flow: The new record.
            graph: The graph document with the hash ``flow.version``; required for a new flow.
            after: The revision before this one; 0 for a new flow.

        Returns:
            Whether the flow was saved; False if another revision or flow of this id came first.
        """
        text = None if graph is None else encode_document(graph, f"flow {flow.flow_id!r}")
        return await self._write(lambda connection: _save(connection, flow, text, after))

    async def get(self, flow_id: str) -> FlowRecord | None:
        found = await self._read(lambda connection: FLOWS.one(connection, flow_id))
        return None if found is None else _flow_from_row(found)

    async def version(self, flow_id: str, version: str) -> FlowVersion | None:
        """Return one version, with its graph."""
        columns = flow_versions.c
        statement = select(*_VERSION, columns.graph).where(
            columns.flow_id == storable_text(flow_id), columns.version == storable_text(version)
        )
        row = await self._read(lambda connection: connection.execute(statement).first())
        if row is None:
            return None
        *summary, graph = row
        return _version_from_row(summary, json.loads(graph))

    async def publish(self, flow_id: str, published: Sequence[str]) -> bool:
        """Store what a flow is published as; return whether there is a flow of this id."""
        statement = (
            update(flows)
            .where(flows.c.flow_id == storable_text(flow_id))
            .values(published="".join(f" {each} " for each in published))
        )
        return await self._write(lambda connection: connection.execute(statement).rowcount > 0)

    async def page(
        self,
        *,
        text: str | None = None,
        published: str | None = None,
        before: str | PageCursor | None = None,
        limit: int = 50,
    ) -> Sequence[FlowRecord]:
        """Return flows, newest first; ``before`` is the id or cursor of the last one of a page.

        Raises:
            NotFound: ``before`` is an unknown id.
        """
        chosen = {
            "text": search_text(text),
            "published": None if published is None else f" {published} ",
        }
        rows = await self._read(lambda connection: FLOWS.page(connection, chosen, before, limit))
        return [_flow_from_row(row) for row in rows]

    async def versions(
        self, flow_id: str, *, before: PageCursor | None = None, limit: int = 50
    ) -> Sequence[FlowVersion]:
        """Return the versions of a flow, newest first, without their graphs."""
        own = {"flow_id": flow_id}
        rows = await self._read(lambda connection: VERSIONS.page(connection, own, before, limit))
        return [_version_from_row(row) for row in rows]

    async def delete(self, flow_id: str) -> None:
        """Delete a flow with its versions, triggers and targets of notifications; its executions are kept, with their graphs.

        Raises:
            NotFound: No flow has this id.
            Conflict: ``flow-in-use``: an execution of the flow has not ended.
        """
        await self._write(lambda connection: delete_flow(connection, flow_id))


def _flow_from_row(row: Sequence[Any]) -> FlowRecord:
    *fields, published, updated_by = row
    by = Principal.from_text(updated_by)
    return FlowRecord(*fields, published=tuple(published.split()), updated_by=by)


def _version_from_row(row: Sequence[Any], graph: dict[str, Any] | None = None) -> FlowVersion:
    *fields, created_by = row
    return FlowVersion(*fields, graph=graph, created_by=Principal.from_text(created_by))


def _save(connection: Connection, flow: FlowRecord, graph: str | None, after: int) -> bool:
    values = {
        "created_at": flow.created_at,
        "updated_at": flow.updated_at,
        "name": storable_text(flow.name),
        "description": storable_text(flow.description),
        "version": flow.version,
        "revision": flow.revision,
        "search": search_key(flow.name, flow.description),
        "updated_by": principal_text(flow.updated_by),
    }
    if after:
        same = (flows.c.flow_id == flow.flow_id) & (flows.c.revision == after)
        kept = connection.execute(update(flows).where(same).values(values))
    else:
        new = upsert(flows).values(flow_id=flow.flow_id, **values)
        kept = connection.execute(new.on_conflict_do_nothing())
    if kept.rowcount and graph is not None:
        _save_version(connection, flow, graph)
    return bool(kept.rowcount)


def _save_version(connection: Connection, flow: FlowRecord, graph: str) -> None:
    """Keep a content; of one that is known, what its hash does not cover."""
    columns = flow_versions.c
    connection.execute(
        upsert(flow_versions)
        .values(
            flow_id=flow.flow_id,
            version=flow.version,
            revision=flow.revision,
            created_at=flow.updated_at,
            node_count=flow.node_count,
            graph=graph,
            created_by=principal_text(flow.updated_by),
        )
        .on_conflict_do_update(
            index_elements=[columns.flow_id, columns.version], set_={"graph": graph}
        )
    )
