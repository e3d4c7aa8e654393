"""The backend over HTTP: the process that owns the storage directory.

That is ``planwave serve``, or a command that runs something in another terminal.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from planwave.cli.backends.records import (
    execution_from_json,
    plan_from_json,
)
from planwave.cli.backends.remote_plans import (
    PLANNING_TIMEOUT_S,
    PageReader,
    RemoteFlows,
    RemotePlans,
    RemoteRevisions,
    parse_document,
)
from planwave.cli.inputs import InputArgument, Source, merge_inputs
from planwave.client.sse import is_worth_retrying
from planwave.errors import (
    Conflict,
    GraphInvalid,
    InputError,
    PlanwaveError,
    Unreachable,
)
from planwave.events import OpenRequest
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.reading.documents import read_graph
from planwave.service.flows.flow_queries import Flow, plan_of_flow
from planwave.service.plans.documents import (
    CheckReport,
    plan_from_graph,
    plan_of,
    raise_for_graph,
)
from planwave.storage.documents import document_seq
from planwave.storage.records import (
    ExecutionRecord,
)

if TYPE_CHECKING:
    from planwave.cli.backends.backend import PlanUpdate
    from planwave.client import AsyncClient
    from planwave.client.requests import ExecutionsQuery
    from planwave.events import Event
    from planwave.executor.options import RunOptions
    from planwave.graph.model import Json
    from planwave.graph.plan import Plan
    from planwave.service.executions.fork import ForkChanges
    from planwave.service.service import Service
    from planwave.shapes.executions import (
        DifferenceResponse,
        DocumentResponse,
        ExplainResponse,
        WaitsForResponse,
    )
    from planwave.shapes.graphs import ForkPreviewResponse
    from planwave.shapes.nodes import PlanChangeResponse, ReplanAccepted
    from planwave.shapes.plans import ReplanResponse

RESPONSE_TIMEOUT_S: Final = 120.0
"""The time limit of one response; planning and event streams have none."""
_Feature = TypeVar("_Feature")
_POLL_INTERVAL_S: Final = 0.02
_DOCUMENT_POLLS: Final = 250
"""A service writes a document within a second after an execution pauses or ends."""


class OwnerEnded(Unreachable):
    """The command that ran an execution has ended, and its HTTP API with it."""

    def __init__(self, execution_id: str) -> None:
        super().__init__("the command that ran this execution, in another terminal, has ended")
        again = f"planwave resume {execution_id}"
        self.hint = f"see it with: planwave show {execution_id}; continue it with: {again}"


class RemoteExecutions:
    """The executions of a running service.

    Args:
        client: Connected to the service.
        pages: Reads its lists.
        directory: The storage directory, which the service owns; None if it is out of reach.
        is_service: Whether the process is a service, rather than a command that ends by itself.
    """

    def __init__(
        self, client: AsyncClient, pages: PageReader, directory: Path | None, *, is_service: bool
    ) -> None:
        self._client, self._pages = client, pages
        self._directory, self._is_service = directory, is_service
        self._cut_off: set[str] = set()
        """The executions of the lists so far that nobody runs, as the service says."""
        self._waiting: dict[str, WaitsForResponse] = {}
        """What executions that were read wait for, as the service says."""
        self._seen: dict[str, int] = {}
        """The number of the last event that was yielded, by execution."""

    async def get(self, execution_id: str) -> ExecutionRecord:
        """See ``StoredExecutions.get``."""
        item = await self._client.execution(execution_id)
        self._note_waiting([item])
        return execution_from_json(item)

    async def list(
        self,
        *,
        status: str | None = None,
        text: str | None = None,
        tag: str | None = None,
        starred: bool | None = None,
        since: str | None = None,
        until: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[ExecutionRecord]:
        """See ``StoredExecutions.list``."""
        query: ExecutionsQuery = {
            "status": status,
            "q": text,
            "since": since,
            "until": until,
            "tag": tag,
            "starred": starred,
        }

        async def read(cursor: str | None, size: int) -> Mapping[str, Any]:
            page: ExecutionsQuery = {**query, "cursor": cursor, "limit": size}
            return await self._client.executions(**page)

        items = await self._pages.read(read, "executions", "execution_id", before, limit)
        self._cut_off |= {each["execution_id"] for each in items if each.get("interrupted")}
        self._note_waiting(items)
        return [execution_from_json(each) for each in items]

    def _note_waiting(self, items: Iterable[Mapping[str, Any]]) -> None:
        self._waiting |= {e["execution_id"]: e["waits_for"] for e in items if "waits_for" in e}

    async def waits_for(self, records: Sequence[ExecutionRecord]) -> Mapping[str, WaitsForResponse]:
        """See ``StoredExecutions.waits_for``; of executions that were read."""
        ids = {record.execution_id for record in records}
        return {of: each for of, each in self._waiting.items() if of in ids}

    async def interrupted(self, records: Sequence[ExecutionRecord]) -> Collection[str]:
        """See ``StoredExecutions.interrupted``; of executions that were listed."""
        return {record.execution_id for record in records} & self._cut_off

    async def document(self, execution_id: str) -> DocumentResponse:
        """See ``StoredExecutions.document``; read from its file where the command that wrote it has ended."""
        try:
            return await self._client.document(execution_id)
        except Unreachable:
            path = self.document_path(execution_id)
            if path is None or not await self._is_on_disk(execution_id):
                raise
        content = await asyncio.to_thread(path.read_bytes)
        return cast("DocumentResponse", json.loads(content))

    async def _is_on_disk(self, execution_id: str) -> bool:
        """Return whether a command that has ended left a document with all that was seen here."""
        seen = self._seen.get(execution_id, 1)
        path = self.document_path(execution_id)
        if path is None or self._is_service:
            return False
        return await asyncio.to_thread(document_seq, path) >= seen

    def document_path(self, execution_id: str) -> Path | None:
        """See ``StoredExecutions.document_path``; None of a service elsewhere."""
        return None if self._directory is None else self._directory / f"{execution_id}.json"

    async def diff(self, a: str, b: str) -> DifferenceResponse:
        """See ``StoredExecutions.diff``."""
        return await self._client.diff(a, b)

    async def explain(self, execution_id: str, path: str) -> ExplainResponse:
        """See ``StoredExecutions.explain``."""
        return await self._client.explain(execution_id, path)

    async def watch(self, execution_id: str, *, after: int = 0) -> AsyncGenerator[Event]:
        """See ``Executions.watch``.

        Raises:
            OwnerEnded: The command that runs the execution ends before the execution does.
        """
        async with aclosing(self._client.events(execution_id, after=after)) as events:
            try:
                async for event in events:
                    self._seen[execution_id] = max(self._seen.get(execution_id, 1), event.seq)
                    yield event
            except PlanwaveError as error:
                if self._is_service or not is_worth_retrying(error):
                    raise
                raise OwnerEnded(execution_id) from error

    async def wait(self, execution_id: str) -> None:
        """Wait until the service has written the present document of an execution that is idle."""
        path = self.document_path(execution_id)
        if path is None:  # a document that is sent is always the present one
            return
        try:
            last_seq = (await self._client.execution(execution_id))["last_seq"]
        except Unreachable:
            if await self._is_on_disk(execution_id):
                return
            raise
        for _ in range(_DOCUMENT_POLLS):
            if await asyncio.to_thread(document_seq, path) >= last_seq:
                return
            await asyncio.sleep(_POLL_INTERVAL_S)

    async def cancel(
        self, execution_id: str, cause: str | None = None, *, node: str | None = None
    ) -> None:
        """See ``Executions.cancel``; the service words the default cause."""
        await self._client.cancel(execution_id, cause, node=node)

    async def pause(self, execution_id: str) -> None:
        """See ``Executions.pause``."""
        await self._client.pause(execution_id)

    async def requests(self, execution_id: str) -> Sequence[OpenRequest]:
        """See ``Executions.requests``."""
        response = await self._client.requests(execution_id)
        return [OpenRequest(**each) for each in response["requests"]]


class RemoteBackend:
    """A running service, as ``Backend`` and as ``Queries``.

    Args:
        client: Connected to the service; closed together with this backend.
        directory: The storage directory, which the service owns; None if it is out of reach.
        provider: The provider that plans goals; None leaves the choice to the service.
        model: A model of that provider.
        is_service: Whether the process is a service, rather than a command that ends by itself.
        import_conflict: Why the service cannot load the ``--import`` modules of this command, which
            only matters where it gets a new goal or graph; None without such modules.
    """

    runs_in_process = False

    def __init__(
        self,
        client: AsyncClient,
        directory: Path | None,
        provider: str | None = None,
        model: str | None = None,
        *,
        is_service: bool = True,
        import_conflict: Conflict | None = None,
    ) -> None:
        self._client = client
        self._provider, self._model = provider, model
        self._is_service, self._import_conflict = is_service, import_conflict
        self._source: dict[str, Any] | Flow = {}
        pages = PageReader()
        self.plans = RemotePlans(client, pages)
        self.revisions = RemoteRevisions(client, pages, provider, model)
        self.flows = RemoteFlows(client, pages)
        self.executions = RemoteExecutions(client, pages, directory, is_service=is_service)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    def choose(
        self, _local: Callable[[Service], _Feature], remote: Callable[[AsyncClient], _Feature], /
    ) -> _Feature:
        """See ``Backend.choose``."""
        return remote(self._client)

    def planner_name(self) -> str:
        """See ``Backend.planner_name``."""
        chosen = "/".join(name for name in (self._provider, self._model) if name)
        return f"the service at {self._client.url}" + (f": {chosen}" if chosen else "")

    async def plan_goal(
        self, goal: str, on_progress: Callable[[PlanUpdate], None], answers: Mapping[str, str]
    ) -> Plan:
        """See ``Backend.plan_goal``.

        Raises:
            Conflict: The command line imports modules, which only the service can do.
        """
        self._reject_imports()
        plan = await self._client.create_plan(
            goal, self._provider, self._model, on_progress=on_progress, answers=answers
        )
        return plan_of(plan_from_json(plan))

    async def plan_source(self, source: Source, inputs: Sequence[InputArgument]) -> Plan:
        """See ``Backend.plan_source``.

        Raises:
            Conflict: The command line imports modules, which only the service can do.
            InputError: The command line chooses a provider, which only the service can do.
        """
        self._reject_imports()
        self._reject_model_choice()
        try:
            document = parse_document(source.content)
        except GraphInvalid as error:
            raise GraphInvalid(error.diagnostics, f"{source.name}: {error.message}") from error
        report, forecast = await self._check(document, source.name)
        plan = plan_from_graph(report, plan_id="", created_at="", forecast=lambda _, goal: forecast)
        await self._resolve_inputs(inputs, plan)
        self._source = document
        return plan

    async def plan_flow(self, flow: Flow, inputs: Sequence[InputArgument]) -> Plan:
        """See ``Backend.plan_flow``.

        Raises:
            Conflict: The command line imports modules, which only the service can do.
            InputError: The command line chooses a provider, which only the service can do.
        """
        self._reject_imports()
        self._reject_model_choice()
        report, forecast = await self._check(flow.graph, f"flow {flow.name!r}")
        diagnostics = tuple(each.as_json() for each in report.diagnostics)
        plan = replace(plan_of_flow(flow), diagnostics=diagnostics, forecast=forecast)
        await self._resolve_inputs(inputs, plan)
        self._source = flow
        return plan

    async def start(
        self,
        plan: Plan,
        inputs: Sequence[InputArgument],
        options: RunOptions | None,
        *,
        require_approval: bool = False,
    ) -> str:
        """See ``Backend.start``."""
        arguments: dict[str, Any] = {
            "require_approval": require_approval,
            "inputs": await self._resolve_inputs(inputs, plan) or None,
            "options": None if options is None else options.as_json(),
        }
        if isinstance(self._source, Flow):
            flow = self._source
            created = await self._client.execute_flow(
                flow.plan_id, revision=flow.revision, **arguments
            )
        else:
            created = await self._client.execute(plan.plan_id or self._source, **arguments)
        return str(created["execution_id"])

    async def resume(self, execution_id: str) -> None:
        """See ``Backend.resume``."""
        await self._client.resume(execution_id)

    async def answer(self, execution_id: str, request_id: str, answer: Json) -> str:
        """See ``Backend.answer``."""
        return str((await self._client.answer(execution_id, request_id, answer))["execution_id"])

    async def retry(self, execution_id: str) -> str:
        """See ``Backend.retry``."""
        return str((await self._client.retry(execution_id))["execution_id"])

    async def fork(self, execution_id: str, changes: ForkChanges) -> str:
        """See ``Backend.fork``."""
        created = await self._client.fork(execution_id, **_sent(changes))
        return str(created["execution_id"])

    async def preview_fork(self, execution_id: str, changes: ForkChanges) -> ForkPreviewResponse:
        """See ``Backend.preview_fork``."""
        return await self._client.preview_fork(execution_id, **_sent(changes))

    async def revise(
        self,
        execution_id: str,
        graph: Mapping[str, Json],
        note: str,
        expected: str | None = None,
    ) -> PlanChangeResponse:
        """See ``Backend.revise``."""
        return await self._client.revise(execution_id, graph, note=note, if_match=expected)

    async def replan(
        self, execution_id: str, request: str | None, expected: str | None = None
    ) -> ReplanAccepted:
        """See ``Backend.replan``."""
        return await self._client.replan(
            execution_id, request, provider=self._provider, model=self._model, if_match=expected
        )

    async def propose(self, execution_id: str, request: str | None) -> ReplanResponse:
        """See ``Backend.propose``."""
        return await self._client.replan(
            execution_id,
            request,
            provider=self._provider,
            model=self._model,
            dry_run=True,
            timeout_s=PLANNING_TIMEOUT_S,
        )

    async def delete_execution(self, execution_id: str) -> None:
        """See ``Backend.delete_execution``."""
        await self._client.delete_execution(execution_id)

    async def check(self, document: dict[str, Json]) -> list[Diagnostic]:
        """See ``Backend.check``."""
        return _diagnostics(await self._client.check(document))

    async def models(self, graph: Mapping[str, Json]) -> Sequence[Mapping[str, Any]]:
        """See ``Backend.models``."""
        forecast = (await self._client.check({**graph}))["forecast"] or {}
        return forecast.get("models") or ()

    def _reject_imports(self) -> None:
        if self._import_conflict is not None:
            raise self._import_conflict

    def _reject_model_choice(self) -> None:
        if self._provider or self._model:
            way = "stop the service first" if self._is_service else "wait until that command ends"
            raise InputError(
                "--provider and --model have no effect here: the service at "
                f"{self._client.url} runs this, with its own default",
                code="usage",
                hint=f"name provider and model in the data of the nodes, or {way}",
            )

    async def _resolve_inputs(self, inputs: Sequence[InputArgument], plan: Plan) -> dict[str, Any]:
        if not inputs:
            return {}
        types = (await self._client.node_types())["node_types"]
        entry_types = {each["node_type"] for each in types if each["entry"]}
        return merge_inputs(inputs, plan.graph, entry_types)

    async def _check(
        self, document: Mapping[str, Any], name: str
    ) -> tuple[CheckReport, Mapping[str, Any]]:
        """Check a document by the service; return the report and the forecast of a local check.

        Raises:
            GraphInvalid: The document has errors; the message begins with ``name``.
        """
        checked = await self._client.check(dict(document))
        report = tuple(_diagnostics(checked))
        try:
            raise_for_graph(report)
            graph, _ = read_graph({part: document.get(part) for part in ("nodes", "edges")})
        except GraphInvalid as error:
            raise GraphInvalid(error.diagnostics, f"{name}: {error.message}") from error
        return CheckReport(graph, report, document), checked.get("forecast") or {}


def _diagnostics(checked: Mapping[str, Any]) -> list[Diagnostic]:
    return [Diagnostic(**each) for each in checked["diagnostics"]]


def _sent(changes: ForkChanges) -> dict[str, Any]:
    """Return what a fork changes, as the client takes it; commands have no options of their own."""
    sent = {name: changes.get(name) for name in ("rerun", "changes", "graph")}
    return {name: value for name, value in sent.items() if value is not None}
