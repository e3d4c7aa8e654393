"""Flows: saving, changing and deleting them, and how nodes get at them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from planwave.errors import GraphInvalid, InputError, LimitExceeded, NotFound, PreconditionFailed
from planwave.graph.checking.checker import check
from planwave.graph.editing.editor import PlanContent, apply_operations
from planwave.graph.editing.forms import check_operations
from planwave.graph.plan import canonical_json, graph_hash
from planwave.graph.reading.documents import read_graph
from planwave.ids import new_id
from planwave.principals import current_principal
from planwave.service.dependencies import ServiceDependencies
from planwave.service.flows.chat_entries import chat_entry
from planwave.service.flows.flow_queries import (
    PUBLICATIONS,
    Flow,
    FlowQueries,
    FlowsOfToken,
    Publication,
)
from planwave.service.flows.named_flows import flow_named, unknown_flow
from planwave.service.plans.documents import load_plan, raise_for_graph, raise_for_run
from planwave.service.plans.planner_service import PlannerService
from planwave.storage.records import FlowRecord

if TYPE_CHECKING:
    from planwave.graph.diagnostics import Diagnostic
    from planwave.graph.model import Graph, Json
    from planwave.graph.operations import Operation
    from planwave.graph.protocols import Catalogue
    from planwave.settings import Limits
    from planwave.storage.sqlite.sql_store import Store

NAME_CHARS: Final = 200
"""Of a flow's name, at most."""
_READY: Final = 64
"""Graphs of flows that are kept ready to run."""


class _Content(NamedTuple):
    """A graph that was checked, and the goal it was planned for, "" where none is known."""

    graph: Graph
    goal: str
    diagnostics: Sequence[Diagnostic] = ()


class EditedFlow(NamedTuple):
    """A flow after an edit, with what was found of it and what the edit could not follow."""

    flow: Flow
    diagnostics: Sequence[Diagnostic]


class FlowService:
    """The use cases that change flows: create, update, edit and delete them.

    Attributes:
        changes: Called with the id of a flow after it was changed or deleted.
    """

    def __init__(
        self, dependencies: ServiceDependencies, plans: PlannerService, queries: FlowQueries
    ) -> None:
        self._dependencies = dependencies
        self._store = dependencies.store
        self._plans = plans
        self._queries = queries
        self.changes: list[Callable[[str], object]] = []

    async def create_flow(
        self,
        name: str,
        *,
        graph: str | bytes | Mapping[str, Json] | None = None,
        plan_id: str | None = None,
        description: str | None = None,
        flow_id: str | None = None,
    ) -> Flow:
        """Save a graph, or that of a stored plan, under a name; durable when this returns.

        Args:
            name: What people call it; others may be called the same.
            graph: A graph or a plan document: JSON text, or read strictly.
            plan_id: A stored plan, in place of a graph.
            description: The purpose of the flow; by default the goal of the plan.
            flow_id: The id of the flow, chosen by a caller that may repeat the request; if it
                exists already, it is returned.

        Raises:
            GraphInvalid: The graph can run nowhere; all diagnostics are attached.
            InputError: ``invalid-name``; not exactly one of graph and plan.
            LimitExceeded: The description is longer than a goal may be.
            NotFound: There is no such plan.
        """
        if flow_id is not None and await self._store.flows.get(flow_id) is not None:
            return await self._queries.flow(flow_id)
        name = _validate_name(name)
        content = await self._read_content(graph, plan_id)
        if content is None:
            raise InputError("a flow is saved from a graph or a plan", hint="give one of both")
        said = self._validate_description(content.goal if description is None else description)
        document, now = content.graph.to_document(), self._dependencies.timestamp()
        record = FlowRecord(
            flow_id=flow_id or new_id(),
            name=name,
            description=said,
            version=graph_hash(content.graph),
            revision=1,
            created_at=now,
            updated_at=now,
            node_count=len(content.graph.nodes),
            updated_by=current_principal(),
        )
        await self._store.flows.save(record, document)
        return await self._queries.flow(record.flow_id)

    async def update_flow(
        self,
        flow_id: str,
        *,
        name: str | None = None,
        graph: str | bytes | Mapping[str, Json] | None = None,
        plan_id: str | None = None,
        description: str | None = None,
        expected: Collection[str] | None = None,
    ) -> Flow:
        """Change a flow; arguments that are None change nothing. Durable when this returns.

        A graph it never had before becomes a new version; the ones before stay.

        Args:
            flow_id: Which.
            name: As in :meth:`create_flow`.
            graph: As in :meth:`create_flow`.
            plan_id: As in :meth:`create_flow`.
            description: As in :meth:`create_flow`.
            expected: Versions of which it has to have one at present.

        Raises:
            NotFound: There is no such flow, or no such plan.
            PreconditionFailed: Its version is none of those expected; nothing was changed.
            GraphInvalid, InputError, LimitExceeded: As in :meth:`create_flow`.
        """
        content = await self._read_content(graph, plan_id)
        new_name = None if name is None else _validate_name(name)

        def change(present: Flow) -> Flow:
            wanted = replace(
                present,
                name=present.name if new_name is None else new_name,
                description=present.description
                if description is None
                else self._validate_description(description),
            )
            return wanted if content is None else _with_graph(wanted, content.graph)

        return await self._save(flow_id, change, expected)

    async def edit_flow(
        self,
        flow_id: str,
        operations: Sequence[Operation],
        *,
        expected: Collection[str] | None,
    ) -> EditedFlow:
        """Apply operations of plans to the name and the graph of a flow, all or none.

        The result is durable when this returns. A flow has no drafts: a graph with errors is refused.

        Args:
            flow_id: The flow.
            operations: The changes, in order; ``SetTitle`` changes the name.
            expected: Versions of which it has to have one at present; None accepts any.

        Raises:
            NotFound: There is no such flow.
            PreconditionFailed: Its version is none of those expected; nothing was changed.
            InvalidOperation: An operation has a wrong form, whatever the flow's version, or cannot be
                applied.
            GraphInvalid: The changed graph can run nowhere.
            LimitExceeded: ``plan_operations``.
        """
        most = self._dependencies.limits.plan_operations
        if len(operations) > most:
            raise LimitExceeded("plan_operations", most, len(operations))
        await asyncio.to_thread(check_operations, operations)

        found: Sequence[Diagnostic] = ()

        def change(present: Flow) -> Flow:
            nonlocal found
            content = PlanContent(present.name, present.graph)
            made = apply_operations(content, operations, self._dependencies.catalogue)
            read = self._read_sound(made.graph)
            found = (*read.diagnostics, *made.findings)
            return _with_graph(replace(present, name=made.title), read.graph)

        return EditedFlow(await self._save(flow_id, change, expected), found)

    async def publish_flow(self, flow_id: str, changes: Mapping[Publication, bool]) -> Flow:
        """Publish a flow, or unpublish it; durable when this returns.

        Args:
            flow_id: Which.
            changes: Whether it is published as each of these; as others it stays as it is.

        Raises:
            NotFound: There is none of that id.
            InputError: ``not-a-model``: it has no node that takes a message, or several.
        """
        present = await self._queries.flow(flow_id)
        if changes.get("model"):
            chat_entry(present.graph, present.name)
        wanted = {each: each in present.published for each in PUBLICATIONS} | dict(changes)
        published = tuple(each for each in PUBLICATIONS if wanted[each])
        if published == present.published:
            return present
        await self._store.flows.publish(flow_id, published)
        self._report_change(flow_id)
        return await self._queries.flow(flow_id)

    async def delete_flow(self, flow_id: str) -> None:
        """Delete a flow with all its versions. Its executions stay: they carry their graph.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``flow-in-use``: an execution of it has not ended.
        """
        await self._store.flows.delete(flow_id)
        self._report_change(flow_id)

    async def find_flow(self, name: str) -> FlowRecord:
        """Return a flow by its id or its name.

        Raises:
            NotFound: ``unknown-flow``: there is none; the hint has the nearest name.
            InputError: ``ambiguous-flow``: several have the name.
        """
        found = await self._store.flows.get(name)
        return found if found is not None else await flow_named(self._queries, name)

    async def _save(
        self, flow_id: str, change: Callable[[Flow], Flow], expected: Collection[str] | None
    ) -> Flow:
        """Save the change of a flow; compute it again as long as others save theirs meanwhile."""
        while True:
            present = await self._queries.flow(flow_id)
            if expected is not None and present.version not in expected:
                raise _outdated_error(present)
            wanted = await asyncio.to_thread(change, present)
            if canonical_json(wanted.as_json()) == canonical_json(present.as_json()):
                return present
            if await self._save_next(present, wanted):
                self._report_change(flow_id)
                return await self._queries.flow(flow_id)

    def _report_change(self, flow_id: str) -> None:
        for call in self.changes:
            call(flow_id)

    async def _save_next(self, present: Flow, wanted: Flow) -> bool:
        """Save the next revision, unless another caller saved it first."""
        record = FlowRecord(
            flow_id=present.flow_id,
            name=wanted.name,
            description=wanted.description,
            version=wanted.version,
            revision=present.revision + 1,
            created_at=present.created_at,
            updated_at=self._dependencies.timestamp(),
            node_count=len(wanted.graph["nodes"]),
            updated_by=current_principal(),
        )
        is_same = wanted.graph is present.graph
        return await self._store.flows.save(
            record, None if is_same else wanted.graph, after=present.revision
        )

    async def _read_content(
        self, source: str | bytes | Mapping[str, Json] | None, plan_id: str | None
    ) -> _Content | None:
        if source is not None and plan_id is not None:
            raise InputError("a flow has one graph", hint="give either a graph or a plan")
        if plan_id is not None:
            plan = self._plans.readable_plan(await load_plan(self._store, plan_id))
            raise_for_graph(self._plans.check_graph(plan.graph))
            return _Content(plan.graph, plan.user_prompt)
        return None if source is None else self._read_sound(source)

    def _read_sound(self, source: str | bytes | Mapping[str, Json]) -> _Content:
        report = self._plans.check_document(source)
        raise_for_graph(report.diagnostics)
        if report.graph is None:
            raise GraphInvalid(report.diagnostics)
        goal = report.envelope.get("user_prompt")
        return _Content(report.graph, goal if isinstance(goal, str) else "", report.diagnostics)

    def _validate_description(self, description: str) -> str:
        most = self._dependencies.limits.goal_chars
        if len(description) > most:
            raise LimitExceeded("goal_chars", most, len(description), what="a description")
        return description


class FlowResolver:
    """Flows as nodes run them: the port ``NodeServices.flows`` over a store.

    A version is read and checked once; all runs share the same ``Graph``.
    """

    def __init__(self, store: Store, catalogue: Catalogue, limits: Limits) -> None:
        self._store = store
        self._queries = FlowQueries(store)
        self._catalogue = catalogue
        self._limits = limits
        self._ready: OrderedDict[tuple[str, str], Graph] = OrderedDict()

    def limited_to(self, flow_ids: Collection[str]) -> FlowResolver:
        """Return one that finds these flows only; what was checked is shared."""
        other = copy(self)
        other._queries = FlowsOfToken(self._store, flow_ids)
        return other

    async def get(self, flow_id: str, version: str | None = None) -> Graph:
        """Return the graph of a flow, or of one of its versions.

        Raises:
            NotFound: There is none of that id, or it has no such version.
            GraphInvalid: It cannot run here (any more).
            UnknownProvider, UnavailableProvider, UnknownModel: Only that stands in the way.
        """
        try:
            record = await self._queries.flow_record(flow_id)
        except NotFound as error:
            raise await unknown_flow(self._queries, flow_id) from error
        key = flow_id, version or record.version
        graph = self._ready.get(key)
        if graph is None:
            flow = await self._queries.flow_of(record, key[1])
            checked = await asyncio.to_thread(self._read_and_check, flow)
            graph = self._ready.setdefault(key, checked)  # another task may have been faster
            if len(self._ready) > _READY:
                self._ready.popitem(last=False)
        self._ready.move_to_end(key)
        return graph

    async def find(self, name: str) -> str:
        """Return the id of the one flow of a name.

        Raises:
            NotFound, InputError: There is none, or there are several.
        """
        return (await flow_named(self._queries, name)).flow_id

    def _read_and_check(self, flow: Flow) -> Graph:
        try:
            graph, _ = read_graph(flow.graph, limits=self._limits)
            raise_for_run(check(graph, self._catalogue, self._limits))
        except GraphInvalid as error:
            raise GraphInvalid(error.diagnostics, f"flow {flow.name!r}: {error.message}") from error
        return graph


def _validate_name(name: str) -> str:
    """Return a name without surrounding space.

    Raises:
        InputError: ``invalid-name``.
    """
    name = name.strip()
    if not name or len(name) > NAME_CHARS or not name.isprintable():
        raise InputError(
            "a flow's name is one line of text",
            code="invalid-name",
            hint=f"write 1 to {NAME_CHARS} characters without line breaks",
        )
    return name


def _with_graph(flow: Flow, graph: Graph) -> Flow:
    return replace(flow, graph=graph.to_document(), version=graph_hash(graph))


def _outdated_error(present: Flow) -> PreconditionFailed:
    return PreconditionFailed(
        f"flow {present.name!r} has moved on: it is at version {present.version} now",
        code="flow-changed",
        hint="look at it as it is now, and save again with that version",
        current=present.version,
    )
