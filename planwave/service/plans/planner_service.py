"""Plans: creation by the planner, import from JSON, checks and forecasts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planwave.errors import GraphInvalid
from planwave.graph.checking.checker import check
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Graph, Json
from planwave.graph.plan import Plan, canonical_json
from planwave.graph.reading.documents import read_graph
from planwave.ids import new_id
from planwave.planner.cost_estimate import forecast
from planwave.planner.plan_check import require_for_author
from planwave.service.dependencies import ServiceDependencies
from planwave.service.plans.documents import (
    CheckedPlan,
    CheckReport,
    check_source,
    load_plan,
    plan_from_graph,
    plan_of,
    raise_for_graph,
    record_of,
)
from planwave.storage.records import PlanRecord

if TYPE_CHECKING:
    from planwave.shapes.graphs import ForecastResponse
    from planwave.storage.sqlite.sql_store import Store


class PlannerService:
    """The use cases of plans: create, read, check, forecast and delete them.

    Attributes:
        changes: Called with the id of a plan after one with a name was changed, or any was deleted.
        releases: Called after what led to the name of a flow may have been removed.
    """

    def __init__(self, dependencies: ServiceDependencies) -> None:
        self._dependencies = dependencies
        self._store = dependencies.store
        self.changes: list[Callable[[str], object]] = []
        self.releases: list[Callable[[], Awaitable[object]]] = []

    async def create_plan(
        self,
        prompt: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        on_progress: Callable[[Any], None] | None = None,
        plan_id: str | None = None,
    ) -> Plan:
        """Plan a goal. The plan is durable when this returns.

        Args:
            prompt: The goal in the user's words.
            provider: Who plans, and runs the nodes the plan leaves open; None for the default.
            model: See ``provider``.
            on_progress: Called with each progress event while the plan is written; must not block.
            plan_id: The id of the plan, chosen by a caller that may repeat the request; if it
                exists already, it is returned.

        Raises:
            InputError: The goal is empty or too long.
            UnknownProvider, UnavailableProvider, UnknownModel: No model was called.
            PlanInvalid: The model's plan could not be repaired; nothing is stored.
            ProviderError: The model could not be reached.
        """
        if plan_id is not None and (kept := await self._store.plan(plan_id)):
            return plan_of(kept)
        plan = await self._dependencies.planner.create_plan(
            prompt, provider, model, on_progress=on_progress
        )
        if plan_id is not None:
            plan = replace(plan, plan_id=plan_id)
        await self._store.save_plan(record_of(plan))
        return plan

    def check_document(self, source: str | bytes | Mapping[str, Json]) -> CheckReport:
        """Return every diagnostic of a graph or plan; nothing is stored.

        Args:
            source: JSON text, or such as was read strictly.
        """
        return check_source(source, self._dependencies.catalogue, self._dependencies.limits)

    async def read_plan(self, source: str | bytes | Mapping[str, Json]) -> Plan:
        """Make a plan of a graph or a plan written by hand; nothing is stored.

        A plan that is already stored and was not changed keeps its id.

        Raises:
            GraphInvalid: It has errors; all diagnostics are attached.
        """
        return (await self.parse_and_check(source)).plan

    async def parse_and_check(self, source: str | bytes | Mapping[str, Json]) -> CheckedPlan:
        """Make a plan as :meth:`read_plan` does, to be executed at once.

        Arguments and errors are those of :meth:`check_document` and :meth:`read_plan`.
        """
        report = self.check_document(source)
        plan = plan_from_graph(
            report,
            plan_id=new_id(),
            created_at=self._dependencies.timestamp(),
            forecast=self.forecast_graph,
        )
        named = report.envelope.get("plan_id")
        stored = await self._store.plan(named) if isinstance(named, str) else None
        if stored is not None and stored.hash == plan.hash:
            plan = plan_of(stored)
        return CheckedPlan(plan, report, self)

    async def validate(self, plan_id: str) -> CheckReport:
        """Check a stored plan against the node types, providers and limits there are now.

        Raises:
            NotFound: There is none of that id.
        """
        record = await load_plan(self._store, plan_id)
        return await asyncio.to_thread(
            check_source,
            canonical_json(record.document),
            self._dependencies.catalogue,
            self._dependencies.limits,
        )

    def readable_plan(self, record: PlanRecord) -> Plan:
        """Return the plan of a record.

        Raises:
            GraphInvalid: Its graph cannot be read; with everything that the check finds.
        """
        try:
            return plan_of(record, self._dependencies.limits)
        except GraphInvalid as error:
            document = canonical_json(record.document)
            raise GraphInvalid(self.check_document(document).diagnostics) from error

    async def forecast(self, plan_id: str) -> ForecastResponse:
        """Forecast a stored plan with the providers and prices there are now.

        The result has waves, critical path, calls, tokens and cost range, as ``Plan.forecast``.

        Raises:
            NotFound: There is none of that id.
            GraphInvalid: The stored graph has errors.
        """
        record = await load_plan(self._store, plan_id)
        return await asyncio.to_thread(self._forecast_record, record)

    def _forecast_record(self, record: PlanRecord) -> ForecastResponse:
        graph = self.readable_plan(record).graph
        raise_for_graph(self.check_graph(graph))
        return self.forecast_graph(graph)

    async def delete_plan(self, plan_id: str, *, force: bool = False) -> None:
        """Delete a plan with its revisions. Its executions stay: they carry their graph.

        Args:
            plan_id: Which.
            force: Whether to remove what leads to its name, if it has one.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``plan-in-use``: an execution of it has not ended; ``flow-in-use``: something
                leads to its name, and ``force`` is not set.
        """
        await self._store.delete_plan(plan_id, force=force)
        await self.report_change(plan_id, released=force)

    async def report_change(self, plan_id: str, *, released: bool = False) -> None:
        """Tell those who follow the changes of plans that one was changed or deleted.

        Args:
            plan_id: Which.
            released: Whether what led to its name may have been removed.
        """
        for call in self.changes:
            call(plan_id)
        if released:
            for reload in self.releases:
                await reload()

    def forecast_graph(self, graph: Graph) -> ForecastResponse:
        """Return the forecast of a graph without errors."""
        return forecast(graph, self._dependencies.catalogue, self._dependencies.providers)

    def forecast_report(self, report: CheckReport) -> ForecastResponse | None:
        """Return the forecast of a checked graph, or None if it can run nowhere."""
        if report.graph is None or not report.is_sound:
            return None
        return self.forecast_graph(report.graph)

    def check_graph(self, graph: Graph) -> list[Diagnostic]:
        """Return the diagnostics of a graph that is about to run."""
        return check(graph, self._dependencies.catalogue, self._dependencies.limits)


async def require_stored_plan(
    dependencies: ServiceDependencies, graph: Graph, author: str | None, plan_id: str | None
) -> None:
    """Judge a stored plan that a model wrote; see :func:`planwave.planner.plan_check.require_for_author`."""
    if author is None:
        return
    first = await _first_graph(dependencies.store, plan_id) if plan_id else None
    require_for_author(dependencies.catalogue, dependencies.planner, graph, first)


async def _first_graph(store: Store, plan_id: str) -> Graph | None:
    """Return the graph that the model wrote; None if the plan was deleted."""
    plan = await store.plan(plan_id)
    if plan is None:
        return None
    document: Mapping[str, Json] | None = plan.document
    if plan.document.get("revision", 1) > 1:
        first = await store.revisions.get(plan_id, 1)
        document = None if first is None else first.document
    if document is None:
        return None
    return read_graph({name: document.get(name) for name in ("nodes", "edges")})[0]
