"""Flows, which are plans with a name: look-ups and lists, and the plan that calling a flow means."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from planwave.errors import Conflict, NotFound
from planwave.graph.diagnostics import short_repr
from planwave.graph.plan import Plan
from planwave.graph.reading.documents import read_graph
from planwave.principals import current_principal, principal_json
from planwave.service.plans.revisions import (
    RevisionQueries,
    current_revision,
    require_sound,
    revision_summary,
)
from planwave.settings import Limits
from planwave.storage.records import PageCursor

if TYPE_CHECKING:
    from planwave.shapes.common import GraphDocument, Publication
    from planwave.shapes.plans import FlowResponse, FlowSummary, RevisionSummary
    from planwave.storage.records import InputSet, PlanRecord, PlanRevision
    from planwave.storage.sql.store import Store

LIST_HINT: Final = "list the flows"
NOT_APPROVED: Final = "not-approved"
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
        live_revision: The revision that callers start; None while none is approved.
        draft: The newest revision where callers do not start it, in the JSON form of the API.
        inputs: The JSON Schema of its inputs, where they were read; None for a graph that cannot be.
        hash: Of the graph of the revision.
        updated_at: When the revision was made, UTC.
        graph: The graph document of the revision.
        published: What the flow is published as, of ``PUBLICATIONS``.
    """

    plan_id: str
    name: str
    title: str
    description: str
    revision: int
    hash: str
    created_at: str
    updated_at: str
    graph: GraphDocument
    published: tuple[Publication, ...] = ()
    live_revision: int | None = None
    draft: RevisionSummary | None = None
    inputs: dict[str, Any] | None = field(default=None, compare=False)

    def as_json(self) -> FlowResponse:
        """Return the flow in the JSON form of the API."""
        return {
            "plan_id": self.plan_id,
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "revision": self.revision,
            "hash": self.hash,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "graph": self.graph,
            "published": list(self.published),
            "live_revision": self.live_revision,
            "draft": self.draft,
            "inputs": self.inputs,
        }


class FlowQueries:
    """The plans that have a name, for reading."""

    list_hint = LIST_HINT
    """The way out in errors about a flow that is not there."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._revisions = RevisionQueries(store)

    async def get(self, plan_id: str, revision: int | None = None) -> Flow:
        """Return a flow to be looked at: in its live revision, or in another one.

        Raises:
            NotFound: There is none of that id, or it has no such revision.
        """
        return await self.of(await self.record(plan_id), revision)

    async def to_start(self, plan_id: str, revision: int | None = None) -> Flow:
        """Return a flow in its live revision, or in another one that callers may start.

        Whatever starts a flow, or lets others start it from now on, reads it here.

        Raises:
            NotFound: There is none of that id, or it has no such revision.
            InputError: ``draft-revision``: the revision has errors, or every one.
            Conflict: ``not-approved``: neither the revision nor, without one, any other is approved.
        """
        return await self.startable(await self.record(plan_id), revision)

    async def startable(self, record: PlanRecord, revision: int | None = None) -> Flow:
        """Return a stored flow as ``to_start`` does."""
        if revision is None and record.live_revision is None:
            require_sound(current_revision(record))
            raise _not_approved(record, "no revision")
        revision_to_start = await self._revisions.of(record, revision or record.live_revision or 1)
        require_sound(revision_to_start)
        if record.needs_approval and revision_to_start.approval is None:
            raise _not_approved(record, f"revision {revision}")
        return _flow(record, revision_to_start)

    async def of(self, record: PlanRecord, revision: int | None = None) -> Flow:
        """Return a stored flow as ``get`` does; without a live revision, in the newest one.

        Raises:
            NotFound: The flow has no such revision.
        """
        number = revision or record.live_revision or record.revision
        return _flow(record, await self._revisions.of(record, number))

    async def summaries(self, records: Sequence[PlanRecord]) -> Sequence[FlowSummary]:
        """Return flows as lists show them, in the JSON form of the API: in the revisions of ``get``."""
        below = {
            each.plan_id: each.live_revision
            for each in records
            if each.live_revision is not None and each.live_revision != each.revision
        }
        live = await self._store.revisions.summaries(below)
        return [_summary(each, live.get(each.plan_id)) for each in records]

    async def list(
        self,
        *,
        text: str | None = None,
        name: str | None = None,
        before: str | PageCursor | None = None,
        limit: int = 50,
    ) -> Sequence[PlanRecord]:
        """Return flows, newest first.

        Args:
            text: Only those with this in name, title, description or goal.
            name: Only the one with this name, whatever its case.
            before: The last one already seen: its id, or its place.
            limit: How many at most.
        """
        return await self._store.plans(text=text, name=name, named=True, before=before, limit=limit)

    async def published(self, publication: Publication) -> Sequence[PlanRecord]:
        """Return all flows that are published as one kind of thing, newest first."""
        flows: list[PlanRecord] = []
        before: PageCursor | None = None
        while True:
            page = await self._store.plans(published=publication, before=before, limit=_PAGE)
            flows += page
            if len(page) < _PAGE:
                return flows
            before = PageCursor(page[-1].created_at, page[-1].plan_id)

    async def input_sets(self, plan_id: str) -> Sequence[InputSet]:
        """Return the inputs that are saved of a flow, by name.

        Raises:
            NotFound: No flow has this id.
        """
        await self.record(plan_id)
        return await self._store.input_sets.all(plan_id)

    async def record(self, plan_id: str) -> PlanRecord:
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

    async def record(self, plan_id: str) -> PlanRecord:
        """Return the record of a flow; see ``FlowQueries``."""
        if plan_id not in self._flow_ids:
            raise flow_not_found(plan_id)
        return await super().record(plan_id)

    async def list(
        self,
        *,
        text: str | None = None,
        name: str | None = None,
        before: str | PageCursor | None = None,
        limit: int = 50,
    ) -> Sequence[PlanRecord]:
        """Return flows; see ``FlowQueries``. A page may have fewer than asked for."""
        page = await super().list(text=text, name=name, before=before, limit=limit)
        return [each for each in page if each.plan_id in self._flow_ids]


def _flow(record: PlanRecord, revision: PlanRevision) -> Flow:
    document = revision.document or {}
    return Flow(
        record.plan_id,
        record.name or "",
        revision.title,
        record.description,
        revision.revision,
        revision.hash,
        record.created_at,
        revision.created_at,
        {"nodes": document.get("nodes") or [], "edges": document.get("edges") or []},
        record.published,
        record.live_revision,
        _draft_of(record),
    )


def _summary(record: PlanRecord, live: PlanRevision | None) -> FlowSummary:
    """Return a flow as lists show it; ``live`` is None where its newest revision is shown."""
    revision = live or current_revision(record)
    return {
        "plan_id": record.plan_id,
        "name": record.name or "",
        "title": revision.title,
        "description": record.description,
        "revision": revision.revision,
        "live_revision": record.live_revision,
        "draft": _draft_of(record),
        "created_at": record.created_at,
        "updated_at": revision.created_at,
        "updated_by": principal_json(revision.created_by),
        "node_count": revision.node_count,
        "published": list(record.published),
    }


def _draft_of(record: PlanRecord) -> RevisionSummary | None:
    """Return the newest revision where callers of a flow do not start it."""
    if record.revision == record.live_revision:
        return None
    return revision_summary(current_revision(record))


def _not_approved(record: PlanRecord, what: str) -> Conflict:
    return Conflict(
        f"{what} of flow {record.name!r} is approved, and this service starts no other",
        code=NOT_APPROVED,
        hint="have the operator approve a revision",
    )


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
