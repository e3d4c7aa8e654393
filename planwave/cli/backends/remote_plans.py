"""Plans, their revisions and flows over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from planwave.cli.backends.records import (
    flow_from_json,
    flow_record_from_json,
    input_set_from_json,
    plan_from_json,
    revision_from_json,
)
from planwave.errors import LimitExceeded, TooManyRequests
from planwave.graph.operations import operation_json
from planwave.graph.reading.document_text import parse_document_text
from planwave.graph.reading.documents import read_graph

if TYPE_CHECKING:
    from planwave.client import AsyncClient
    from planwave.graph.operations import Operation
    from planwave.service.flows.flow_queries import Flow
    from planwave.service.plans.revisions import Editor
    from planwave.shapes.common import PlanStatus
    from planwave.shapes.plans import RevisionDiffResponse
    from planwave.storage.records import InputSet, PlanRecord, PlanRevision

_MAX_PAGE_SIZE: Final = 200
PLANNING_TIMEOUT_S: Final = 86_400.0
"""No limit of its own: a model takes as long as it does, and the service ends its calls."""


class PageReader:
    """Reads lists of a service page by page."""

    def __init__(self) -> None:
        self._page_size = _MAX_PAGE_SIZE
        self._cursors: dict[str, str | None] = {}
        """The cursor behind each record that ended a page, by the record's id."""

    async def read(
        self,
        read_page: Callable[[str | None, int], Awaitable[Mapping[str, Any]]],
        list_name: str,
        id_name: str,
        before: str | None,
        limit: int,
    ) -> list[dict[str, Any]]:
        """Return items of a list, page by page until there are ``limit`` items, or no more.

        Args:
            read_page: Requests one page: from a cursor on, so many items.
            list_name: The field of a page with its items.
            id_name: The field of an item with its id.
            before: The id of the last item read before; its page was read here.
            limit: How many items at most.
        """
        items = list[dict[str, Any]]()
        cursor = None if before is None else self._cursors.get(before)
        if before is not None and cursor is None:
            return []
        while len(items) < limit:
            size = min(self._page_size, limit - len(items))
            try:
                page = await read_page(cursor, size)
            except TooManyRequests as error:
                await asyncio.sleep(error.retry_after_s)
                continue
            except LimitExceeded:
                if size == 1:
                    raise
                self._page_size = size // 2  # the service is configured for smaller pages
                continue
            items += page[list_name]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        if items:
            self._cursors[items[-1][id_name]] = cursor
        return items


class RemotePlans:
    """The plans of a running service."""

    def __init__(self, client: AsyncClient, pages: PageReader) -> None:
        self._client, self._pages = client, pages

    async def get(self, plan_id: str) -> PlanRecord:
        """See ``StoredPlans.get``."""
        return plan_from_json(await self._client.plan(plan_id))

    async def status(self, plan_id: str) -> PlanStatus:
        """See ``StoredPlans.status``."""
        return (await self._client.plan(plan_id))["status"]

    async def list(self, *, before: str | None = None, limit: int = 50) -> Sequence[PlanRecord]:
        """See ``StoredPlans.list``; of the nodes, only their number is known."""

        async def read(cursor: str | None, size: int) -> Mapping[str, Any]:
            return await self._client.plans(cursor=cursor, limit=size)

        items = await self._pages.read(read, "plans", "plan_id", before, limit)
        return [plan_from_json({**each, "nodes": [{}] * each["node_count"]}) for each in items]

    async def edit(
        self,
        plan_id: str,
        operations: Sequence[Operation],
        *,
        expected: Collection[str],
        author: Editor = "api",
        note: str = "",
    ) -> PlanRecord:
        """See ``Plans.edit``."""
        plan = await self._client.edit_plan(
            plan_id,
            [operation_json(each) for each in operations],
            if_match=_tags(expected),
            author=author,
            note=note,
        )
        return plan_from_json(plan)

    async def delete(self, plan_id: str) -> None:
        """See ``Plans.delete``."""
        await self._client.delete_plan(plan_id)


class RemoteRevisions:
    """The revisions of the plans of a running service.

    Args:
        client: Connected to the service.
        pages: Reads its lists.
        provider: The provider that changes plans in words; None leaves the choice to the service.
        model: A model of that provider.
    """

    def __init__(
        self,
        client: AsyncClient,
        pages: PageReader,
        provider: str | None = None,
        model: str | None = None,
    ) -> None:
        self._client, self._pages = client, pages
        self._provider, self._model = provider, model

    async def list(self, plan_id: str, *, limit: int = 50) -> Sequence[PlanRevision]:
        """See ``StoredRevisions.list``."""

        async def read(cursor: str | None, size: int) -> Mapping[str, Any]:
            return await self._client.plan_revisions(plan_id, cursor=cursor, limit=size)

        items = await self._pages.read(read, "revisions", "revision", None, limit)
        return [revision_from_json(each) for each in items]

    async def diff(self, plan_id: str, a: int, b: int | None = None) -> RevisionDiffResponse:
        """See ``StoredRevisions.diff``."""
        return await self._client.diff_revisions(plan_id, a, b)

    async def refine(self, plan_id: str, request: str, *, dry_run: bool = False) -> PlanRecord:
        """See ``Revisions.refine``."""
        plan = await self._client.refine_plan(
            plan_id,
            request,
            provider=self._provider,
            model=self._model,
            dry_run=dry_run,
            timeout_s=PLANNING_TIMEOUT_S,
        )
        return plan_from_json(plan)

    async def accept(
        self, plan_id: str, accepted: str, *, expected: Collection[str], author: Editor = "api"
    ) -> PlanRecord:
        """See ``Revisions.accept``."""
        return plan_from_json(
            await self._client.accept_proposal(
                plan_id, accepted, if_match=_tags(expected), author=author
            )
        )

    async def restore(
        self,
        plan_id: str,
        revision: int,
        *,
        expected: Collection[str],
        author: Editor = "api",
        note: str = "",
    ) -> PlanRecord:
        """See ``Revisions.restore``."""
        plan = await self._client.restore_revision(
            plan_id, revision, if_match=_tags(expected), author=author, note=note
        )
        return plan_from_json(plan)

    async def promote(
        self,
        execution_id: str,
        *,
        expected: Collection[str] | None,
        author: Editor = "api",
        note: str = "",
    ) -> PlanRecord:
        """See ``Revisions.promote``."""
        if_match = None if expected is None else _tags(expected)
        plan = await self._client.promote(execution_id, if_match=if_match, author=author, note=note)
        return plan_from_json(plan)

    async def approve(
        self, plan_id: str, revision: int, *, expected: Collection[str] | None
    ) -> PlanRecord:
        """See ``Revisions.approve``."""
        if_match = "*" if expected is None else _tags(expected)
        return plan_from_json(
            await self._client.approve_revision(plan_id, revision, if_match=if_match)
        )


class RemoteFlows:
    """The flows of a running service."""

    def __init__(self, client: AsyncClient, pages: PageReader) -> None:
        self._client, self._pages = client, pages

    async def get(self, plan_id: str, revision: int | None = None) -> Flow:
        """See ``StoredFlows.get``."""
        return flow_from_json(await self._client.flow(plan_id, revision))

    async def to_start(self, plan_id: str, revision: int | None = None) -> Flow:
        """See ``StoredFlows.to_start``; the service says so when the flow is started."""
        return await self.get(plan_id, revision)

    async def list(
        self, *, name: str | None = None, before: str | None = None, limit: int = 50
    ) -> Sequence[PlanRecord]:
        """See ``StoredFlows.list``."""

        async def read(cursor: str | None, size: int) -> Mapping[str, Any]:
            return await self._client.flows(name=name, cursor=cursor, limit=size)

        items = await self._pages.read(read, "flows", "plan_id", before, limit)
        return [flow_record_from_json(each) for each in items]

    async def summaries(self, flows: Sequence[PlanRecord], /) -> Sequence[dict[str, Any]]:
        """See ``StoredFlows.summaries``."""
        return [each.document for each in flows]

    async def input_sets(self, plan_id: str) -> Sequence[InputSet]:
        """See ``StoredFlows.input_sets``."""
        saved = (await self._client.input_sets(plan_id))["input_sets"]
        return [input_set_from_json(plan_id, each) for each in saved]

    async def create(
        self,
        name: str,
        *,
        graph: bytes | None = None,
        plan_id: str | None = None,
        description: str | None = None,
        draft: bool = False,
    ) -> Flow:
        """See ``Flows.create``."""
        document = None if graph is None else parse_document(graph)
        return flow_from_json(
            await self._client.create_flow(
                name, document, plan_id=plan_id, description=description, draft=draft
            )
        )

    async def update(
        self,
        plan_id: str,
        *,
        name: str | None = None,
        graph: bytes | None = None,
        graph_of: str | None = None,
        description: str | None = None,
        draft: bool = False,
        force: bool = False,
    ) -> Flow:
        """See ``Flows.update``."""
        document = None if graph is None else parse_document(graph)
        return flow_from_json(
            await self._client.update_flow(
                plan_id,
                name=name,
                graph=document,
                from_plan_id=graph_of,
                description=description,
                draft=draft,
                force=force,
            )
        )

    async def delete(self, plan_id: str, *, force: bool = False) -> None:
        """See ``Flows.delete``."""
        await self._client.delete_flow(plan_id, force=force)

    async def remove_name(self, plan_id: str, *, force: bool = False) -> None:
        """See ``Flows.remove_name``."""
        await self._client.remove_name(plan_id, force=force)


def _tags(hashes: Collection[str]) -> str:
    """Return hashes for ``If-Match``; the client adds the outer quotes."""
    return '", "'.join(sorted(hashes))


def parse_document(source: bytes) -> dict[str, Any]:
    """Parse the JSON or YAML of a plan or graph.

    Raises:
        GraphInvalid: The source is not an object of JSON or YAML.
    """
    document = parse_document_text(source)
    if not isinstance(document, dict):
        read_graph(document)  # raises the error that a local check would raise
    return cast("dict[str, Any]", document)
