"""Flows as they are stored: look-ups and lists, and the plan that executing a flow means."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from planwave.errors import NotFound
from planwave.graph.diagnostics import short_repr
from planwave.graph.plan import Plan
from planwave.graph.reading.documents import read_graph
from planwave.principals import current_principal
from planwave.settings import Limits
from planwave.storage.records import PageCursor

if TYPE_CHECKING:
    from planwave.storage.records import FlowRecord, FlowVersion
    from planwave.storage.sqlite.sql_store import Store

LIST_HINT: Final = "list the flows"
Publication = Literal["model", "tool"]
PUBLICATIONS: Final[tuple[Publication, ...]] = ("model", "tool")
"""What a flow is published as: a model of the OpenAI API, a tool of the MCP server."""
_PAGE: Final = 200


class FlowRef(NamedTuple):
    """One version of a flow, or with None the one that it has when it is looked up."""

    flow_id: str
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow with one of its graphs.

    Attributes:
        description: The purpose of the flow, and the goal of its executions.
        version: The hash of the graph.
        revision: Of the flow: counts its changes. Of an older version: the one it came with.
        updated_at: When that was, UTC.
        graph: The graph document, as it was saved.
        published: What the flow is published as, of :data:`PUBLICATIONS`.
    """

    flow_id: str
    name: str
    description: str
    version: str
    revision: int
    created_at: str
    updated_at: str
    graph: dict[str, Any]
    published: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the flow in the JSON form of the API."""
        return {name: getattr(self, name) for name in self.__slots__}


class FlowQueries:
    """The stored flows and their versions, for reading."""

    list_hint = LIST_HINT
    """The way out in errors about a flow that is not there."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def flow(self, flow_id: str, version: str | None = None) -> Flow:
        """Return a flow with its present graph, or that of one of its versions.

        Raises:
            NotFound: There is none of that id, or it has no such version.
        """
        record = await self.flow_record(flow_id)
        return await self.flow_of(record, version or record.version)

    async def flow_of(self, record: FlowRecord, version: str) -> Flow:
        """Return a stored flow with the graph of one of its versions.

        Raises:
            NotFound: The flow has no such version.
        """
        kept = await self._store.flows.version(record.flow_id, version)
        if kept is None:
            raise _version_not_found(record.flow_id, version)
        is_present = kept.version == record.version
        return Flow(
            record.flow_id,
            record.name,
            record.description,
            kept.version,
            record.revision if is_present else kept.revision,
            record.created_at,
            record.updated_at if is_present else kept.created_at,
            kept.graph or {},
            record.published,
        )

    async def flows(
        self, *, text: str | None = None, before: str | PageCursor | None = None, limit: int = 50
    ) -> Sequence[FlowRecord]:
        """Return flows, newest first; ``text`` is searched in name and description."""
        return await self._store.flows.page(text=text, before=before, limit=limit)

    async def published_flows(self, publication: Publication) -> Sequence[FlowRecord]:
        """Return all flows that are published as one kind of thing, newest first."""
        found: list[FlowRecord] = []
        before: PageCursor | None = None
        while True:
            page = await self._store.flows.page(published=publication, before=before, limit=_PAGE)
            found += page
            if len(page) < _PAGE:
                return found
            before = PageCursor(page[-1].created_at, page[-1].flow_id)

    async def flow_versions(
        self, flow_id: str, *, before: PageCursor | None = None, limit: int = 50
    ) -> Sequence[FlowVersion]:
        """Return the versions of a flow, newest first, without their graphs.

        Raises:
            NotFound: There is none of that id.
        """
        await self.flow_record(flow_id)
        return await self._store.flows.versions(flow_id, before=before, limit=limit)

    async def flow_record(self, flow_id: str) -> FlowRecord:
        """Return the record of a flow.

        Raises:
            NotFound: No flow has this id.
        """
        record = await self._store.flows.get(flow_id)
        if record is None:
            raise flow_not_found(flow_id)
        return record


class FlowsOfToken(FlowQueries):
    """The flows of an access token; for what it started there are no others, at no depth."""

    list_hint = "what an access token starts runs its own flows only: have it made for this one too"

    def __init__(self, store: Store, flow_ids: Collection[str]) -> None:
        super().__init__(store)
        self._flow_ids = frozenset(flow_ids)

    async def flow_record(self, flow_id: str) -> FlowRecord:
        """Return the record of a flow; see :class:`FlowQueries`."""
        if flow_id not in self._flow_ids:
            raise flow_not_found(flow_id)
        return await super().flow_record(flow_id)

    async def flows(
        self, *, text: str | None = None, before: str | PageCursor | None = None, limit: int = 50
    ) -> Sequence[FlowRecord]:
        """Return flows; see :class:`FlowQueries`. A page may have fewer than asked for."""
        page = await super().flows(text=text, before=before, limit=limit)
        return [each for each in page if each.flow_id in self._flow_ids]


def flow_not_found(flow_id: str) -> NotFound:
    """Return the error for an id that no flow has."""
    return NotFound(f"there is no flow {short_repr(flow_id)}", hint=LIST_HINT)


def _version_not_found(flow_id: str, version: str) -> NotFound:
    return NotFound(
        f"flow {flow_id} has no version {short_repr(version)}",
        hint="list its versions",
    )


def plan_of_flow(flow: Flow, limits: Limits | None = None) -> Plan:
    """Return the plan of a flow, not stored, with the flow's description as its goal.

    Raises:
        GraphInvalid: The stored graph was changed from outside, or exceeds lowered limits.
    """
    graph, _ = read_graph(flow.graph, limits=limits)
    return Plan(
        plan_id="",
        user_prompt=flow.description,
        title=flow.name,
        graph=graph,
        hash=flow.version,
        created_at=flow.updated_at,
    )


async def flows_of_caller(
    store: Store, before: Sequence[str] | None = None
) -> Sequence[str] | None:
    """Return the only stored flows that a new execution may run: those of the caller's token.

    Args:
        store: Where the tokens are.
        before: Those of the execution that it is a fork of.
    """
    token_id = current_principal().token_id
    if token_id is None:
        return before
    tokens = await store.access_tokens.all()
    own = next((each.flows for each in tokens if each.token_id == token_id), ())
    return [each for each in own if before is None or each in before]
