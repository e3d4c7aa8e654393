"""Flows, which are plans with a name: look-ups and lists, and the plan that calling a flow means."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from planwave.errors import InputError, NotFound
from planwave.graph.diagnostics import short_repr
from planwave.graph.plan import Plan
from planwave.graph.reading.documents import read_graph
from planwave.principals import current_principal, principal_json
from planwave.service.plans.documents import is_graph_error
from planwave.service.plans.revisions import RevisionQueries
from planwave.settings import Limits
from planwave.storage.records import PageCursor

if TYPE_CHECKING:
    from planwave.storage.records import PlanRecord
    from planwave.storage.sqlite.sql_store import Store

LIST_HINT: Final = "list the flows"
Publication = Literal["model", "tool"]
PUBLICATIONS: Final[tuple[Publication, ...]] = ("model", "tool")
"""What a flow is published as: a model of the OpenAI API, a tool of the MCP server."""
_PAGE: Final = 200


class FlowRef(NamedTuple):
    """One revision of a flow, or with None the one that is live when it is looked up."""

    plan_id: str
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow in one of its revisions: what those see who call it.

    Attributes:
        description: The purpose of the flow, and the goal of its executions.
        title: The title of the revision.
        revision: The number of the revision.
        hash: Of the graph of the revision.
        updated_at: When the revision was made, UTC.
        graph: The graph document of the revision.
        published: What the flow is published as, of :data:`PUBLICATIONS`.
    """

    plan_id: str
    name: str
    title: str
    description: str
    revision: int
    hash: str
    created_at: str
    updated_at: str
    graph: dict[str, Any]
    published: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the flow in the JSON form of the API."""
        return {name: getattr(self, name) for name in self.__slots__}


def flow_summary(record: PlanRecord) -> dict[str, Any]:
    """Return a flow as lists show it, in the JSON form of the API."""
    document = record.document
    return {
        "plan_id": record.plan_id,
        "name": record.name,
        "title": record.title,
        "description": record.description,
        "revision": record.live_revision,
        "newest_revision": document.get("revision", 1),
        "created_at": record.created_at,
        "updated_at": record.updated_at or record.created_at,
        "updated_by": principal_json(record.edited_by),
        "node_count": len(document.get("nodes") or ()),
        "published": list(record.published),
    }


class FlowQueries:
    """The plans that have a name, for reading."""

    list_hint = LIST_HINT
    """The way out in errors about a flow that is not there."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._revisions = RevisionQueries(store)

    async def flow(self, plan_id: str, revision: int | None = None) -> Flow:
        """Return a flow in its live revision, or in another one.

        Raises:
            NotFound: There is none of that id, or it has no such revision.
        """
        return await self.flow_of(await self.flow_record(plan_id), revision)

    async def flow_to_pin(self, plan_id: str, revision: int | None) -> Flow:
        """Return a flow in the revision that something is to start from now on.

        Raises:
            NotFound: There is none of that id, or it has no such revision.
            InputError: ``draft-revision``: the revision has errors, so it is never started.
        """
        record = await self.flow_record(plan_id)
        if revision is not None:
            found = await self._revisions.revision_of(record, revision)
            findings: Sequence[Mapping[str, Any]] = (found.document or {}).get("diagnostics") or ()
            if any(map(is_graph_error, findings)):
                raise InputError(
                    f"revision {revision} of flow {record.name!r} is a draft with errors",
                    code="draft-revision",
                    hint="choose a revision without errors, or none for the live one",
                )
        return await self.flow_of(record, revision)

    async def flow_of(self, record: PlanRecord, revision: int | None = None) -> Flow:
        """Return a stored flow in its live revision, or in another one.

        Raises:
            NotFound: The flow has no such revision.
        """
        number = revision or record.live_revision or 1
        found = await self._revisions.revision_of(record, number)
        document = found.document or {}
        return Flow(
            record.plan_id,
            record.name or "",
            found.title,
            record.description,
            found.revision,
            found.hash,
            record.created_at,
            found.created_at,
            {name: document.get(name) or [] for name in ("nodes", "edges")},
            record.published,
        )

    async def flows(
        self, *, text: str | None = None, before: str | PageCursor | None = None, limit: int = 50
    ) -> Sequence[PlanRecord]:
        """Return flows, newest first; ``text`` is searched in names, titles, descriptions and goals."""
        return await self._store.plans(text=text, named=True, before=before, limit=limit)

    async def flow_named(self, name: str) -> PlanRecord | None:
        """Return the flow of a name, whatever its case; None where there is none."""
        return await self._store.flow_named(name)

    async def published_flows(self, publication: Publication) -> Sequence[PlanRecord]:
        """Return all flows that are published as one kind of thing, newest first."""
        found: list[PlanRecord] = []
        before: PageCursor | None = None
        while True:
            page = await self._store.plans(published=publication, before=before, limit=_PAGE)
            found += page
            if len(page) < _PAGE:
                return found
            before = PageCursor(page[-1].created_at, page[-1].plan_id)

    async def flow_record(self, plan_id: str) -> PlanRecord:
        """Return the record of a flow.

        Raises:
            NotFound: No flow has this id.
        """
        record = await self._store.plan(plan_id)
        if record is None or record.name is None:
            raise flow_not_found(plan_id)
        return record


class FlowsOfToken(FlowQueries):
    """The flows of an access token; for what it started there are no others, at no depth."""

    list_hint = "what an access token starts runs its own flows only: have it made for this one too"

    def __init__(self, store: Store, flow_ids: Collection[str]) -> None:
        super().__init__(store)
        self._flow_ids = frozenset(flow_ids)

    async def flow_record(self, plan_id: str) -> PlanRecord:
        """Return the record of a flow; see :class:`FlowQueries`."""
        if plan_id not in self._flow_ids:
            raise flow_not_found(plan_id)
        return await super().flow_record(plan_id)

    async def flows(
        self, *, text: str | None = None, before: str | PageCursor | None = None, limit: int = 50
    ) -> Sequence[PlanRecord]:
        """Return flows; see :class:`FlowQueries`. A page may have fewer than asked for."""
        page = await super().flows(text=text, before=before, limit=limit)
        return [each for each in page if each.plan_id in self._flow_ids]

    async def flow_named(self, name: str) -> PlanRecord | None:
        """Return the flow of a name; see :class:`FlowQueries`."""
        found = await super().flow_named(name)
        return found if found is not None and found.plan_id in self._flow_ids else None


def flow_not_found(plan_id: str) -> NotFound:
    """Return the error for an id that no flow has."""
    return NotFound(f"there is no flow {short_repr(plan_id)}", hint=LIST_HINT)


def plan_of_flow(flow: Flow, limits: Limits | None = None) -> Plan:
    """Return the plan that runs where a flow is called: with its description as the goal.

    Raises:
        GraphInvalid: The stored graph was changed from outside, or exceeds lowered limits.
    """
    graph, _ = read_graph(flow.graph, limits=limits)
    return Plan(
        plan_id=flow.plan_id,
        user_prompt=flow.description,
        title=flow.name,
        graph=graph,
        hash=flow.hash,
        created_at=flow.updated_at,
        revision=flow.revision,
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
