"""The backend over HTTP: a running service that holds the storage directory.

The process that holds the directory writes its URL into the lock file. Only a service that answers there
is used; otherwise commands work as if there was none.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from planwave.cli.inputs import InputArgument, merge_inputs
from planwave.errors import GraphInvalid, InputError, LimitExceeded, NotFound, TooManyRequests
from planwave.events import OpenRequest
from planwave.service.flows.flow_queries import Flow
from planwave.service.queries.history import QueryService
from planwave.storage.lock import read_owner
from planwave.storage.records import (
    STORE_STATUSES,
    ExecutionRecord,
    FlowRecord,
    FlowVersion,
    PageCursor,
    PlanRecord,
    Store,
)

if TYPE_CHECKING:
    from planwave.cli.backends.backend import PlanUpdate
    from planwave.cli.inputs import Source
    from planwave.client import AsyncClient
    from planwave.events import Event
    from planwave.executor.options import RunOptions
    from planwave.graph.model import Json
    from planwave.graph.plan import Plan
    from planwave.service.executions.fork import NodeChanges
    from planwave.service.plans.documents import CheckReport
    from planwave.storage.records import PageCursor

_PROBE_TIMEOUT_S: Final = 10.0
"""How long a service that is well may take to say so, on a machine that is busy with what it runs."""
RESPONSE_TIMEOUT_S: Final = 120.0
"""How long one answer may take; planning and event streams have no such end."""
_POLL_INTERVAL_S: Final = 0.02
_DOCUMENT_POLLS: Final = 250
"""A service writes a document right after an execution's end."""


class LockOwner(NamedTuple):
    """A process that holds a storage directory, as it describes itself."""

    pid: int
    url: str | None = None
    token: str | None = None

    def __repr__(self) -> str:
        """Show it without its token."""
        return f"Holder(pid={self.pid}, url={self.url!r})"


def lock_owner(directory: Path) -> LockOwner | None:
    """Give the process that holds a directory; None where it is gone, or there is none."""
    said = read_owner(directory) or {}
    pid, url, token = said.get("pid"), said.get("url"), said.get("token")
    if not isinstance(pid, int) or not _is_alive(pid):
        return None
    return LockOwner(
        pid, url if isinstance(url, str) else None, token if isinstance(token, str) else None
    )


def is_planwave_service(url: str) -> bool:
    """Say whether a planwave service answers at an address; no token is sent to find out."""
    import httpx2

    try:
        said: Any = httpx2.get(f"{url}/healthz", timeout=_PROBE_TIMEOUT_S, trust_env=False).json()
    except (httpx2.TransportError, httpx2.InvalidURL, ValueError):
        return False
    return said in [{"status": status} for status in STORE_STATUSES]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return pid > 0


class ReadPages(Protocol):
    """Reads page after page; ``before`` is the last one of what was given so far."""

    async def __call__(
        self, ask: PageRequest, what: str, before: str | PageCursor | None, limit: int
    ) -> list[dict[str, Any]]: ...


class FlowShelf:
    """What :class:`QueryService` reads of a store's flows, over HTTP."""

    def __init__(self, client: AsyncClient, read: ReadPages) -> None:
        self._client = client
        self._read = read

    async def get(self, flow_id: str) -> FlowRecord | None:
        try:
            flow = await self._client.flow(flow_id)
        except NotFound:
            return None
        facts = {name: value for name, value in flow.items() if name != "graph"}
        return _record({**facts, "node_count": len(flow["graph"]["nodes"])})

    async def version(self, flow_id: str, version: str) -> FlowVersion | None:
        try:
            flow = await self._client.flow(flow_id, version)
        except NotFound:
            return None
        graph: dict[str, Any] = {**flow["graph"]}
        return FlowVersion(
            flow_id, version, flow["revision"], flow["updated_at"], len(graph["nodes"]), graph
        )

    async def page(
        self, *, text: str | None = None, before: str | PageCursor | None = None, limit: int = 50
    ) -> Sequence[FlowRecord]:
        async def ask(cursor: str | None, size: int) -> Mapping[str, Any]:
            return await self._client.flows(q=text, cursor=cursor, limit=size)

        return [_record(each) for each in await self._read(ask, "flow", before, limit)]

    async def versions(
        self, flow_id: str, *, before: PageCursor | None = None, limit: int = 50
    ) -> Sequence[FlowVersion]:
        async def ask(cursor: str | None, size: int) -> Mapping[str, Any]:
            return await self._client.flow_versions(flow_id, cursor=cursor, limit=size)

        found = await self._read(ask, "version", before, limit)
        return [
            FlowVersion(
                flow_id,
                each["version"],
                each["revision"],
                each["created_at"],
                each["node_count"],
            )
            for each in found
        ]


class RemoteFlows(QueryService):
    """Changes flows of a running service; :class:`planwave.cli.backends.remote.RemoteBackend` adds the rest."""

    _client: AsyncClient

    async def create_flow(
        self,
        name: str,
        *,
        graph: bytes | None = None,
        plan_id: str | None = None,
        description: str | None = None,
    ) -> Flow:
        """Have a graph, or a stored plan, saved under a name."""
        document = None if graph is None else parse_document(graph)
        made = await self._client.create_flow(
            name, document, plan_id=plan_id, description=description
        )
        return _flow(made)

    async def update_flow(
        self,
        flow_id: str,
        *,
        graph: bytes | None = None,
        plan_id: str | None = None,
        description: str | None = None,
    ) -> Flow:
        """Have a flow changed."""
        document = None if graph is None else parse_document(graph)
        changed = await self._client.update_flow(
            flow_id, graph=document, plan_id=plan_id, description=description
        )
        return _flow(changed)

    async def delete_flow(self, flow_id: str) -> None:
        """Have a flow removed."""
        await self._client.delete_flow(flow_id)


def _record(flow: Mapping[str, Any]) -> FlowRecord:
    return FlowRecord(**{name: flow[name] for name in FlowRecord.__slots__})


def _flow(flow: Mapping[str, Any]) -> Flow:
    return Flow(**{name: flow[name] for name in Flow.__slots__})


class RemoteBackend(RemoteFlows):
    """A running service: reads what :class:`QueryService` reads, and works as a ``Backend``.

    Args:
        client: Speaks with the service; closed together with this.
        directory: The storage directory, which the service holds.
        provider: Who is to plan; None leaves it to the service.
        model: A model of that provider.
    """

    runs_in_process = False

    def __init__(
        self,
        client: AsyncClient,
        directory: Path,
        provider: str | None = None,
        model: str | None = None,
    ) -> None:
        super().__init__(cast("Store", _Shelf(client)), directory)
        self._client = client
        self._provider = provider
        self._model = model
        self._source: dict[str, Any] | Flow = {}

    async def plan_status(self, plan_id: str) -> str:
        """Give the status of a plan."""
        return str((await self._client.plan(plan_id))["status"])

    async def document(self, execution_id: str) -> dict[str, Any]:
        """Give the JSON document of an execution."""
        return cast("dict[str, Any]", await self._client.document(execution_id))

    async def diff(self, a: str, b: str) -> dict[str, Any]:
        """Say what differs between two executions."""
        return {**await self._client.diff(a, b)}

    # -- as a workplace ----------------------------------------------------------------------------

    @property
    def service(self) -> RemoteBackend:
        """See :meth:`Workplace.service`."""
        return self

    def planner_name(self) -> str:
        """Name who is going to plan: what was asked for, or the service, which chooses."""
        asked = "/".join(name for name in (self._provider, self._model) if name)
        return asked or f"the service at {self._client.url}"

    async def plan_goal(self, goal: str, on_progress: Callable[[PlanUpdate], None]) -> Plan:
        """Have a goal planned and kept."""
        from planwave.service.plans.documents import plan_of

        made = await self._client.create_plan(
            goal, self._provider, self._model, on_progress=on_progress
        )
        return plan_of(_plan_record(made))

    async def plan_source(self, source: Source, inputs: Sequence[InputArgument]) -> Plan:
        """Read a plan or graph and have it checked; it is kept when it is started.

        Raises:
            GraphInvalid: It has errors; the message names the source.
            InputError: Inputs are for nodes it does not have, or a provider was asked for.
        """
        from planwave.service.plans.documents import plan_from_graph

        self._reject_model_choice()
        try:
            document = parse_document(source.content)
        except GraphInvalid as error:
            raise GraphInvalid(error.diagnostics, f"{source.name}: {error.message}") from error
        report = await check_document(self._client, document, source.name)
        plan = plan_from_graph(report, plan_id="", created_at="", forecast=lambda _: {})
        await self._resolved_inputs(inputs, plan)
        self._source = document
        return plan

    async def plan_flow(self, flow: Flow, inputs: Sequence[InputArgument]) -> Plan:
        """Have a flow checked, for an execution with these inputs.

        Raises:
            GraphInvalid: It has errors (by now); the message names the flow.
            InputError: Inputs are for nodes it does not have, or a provider was asked for.
        """
        from planwave.service.flows.flow_queries import plan_of_flow

        self._reject_model_choice()
        await check_document(self._client, flow.graph, f"flow {flow.name!r}")
        plan = plan_of_flow(flow)
        await self._resolved_inputs(inputs, plan)
        self._source = flow
        return plan

    async def start(
        self, plan: Plan, inputs: Sequence[InputArgument], options: RunOptions | None
    ) -> str:
        """Have a plan started; gives the id of its execution."""
        how: dict[str, Any] = {
            "inputs": await self._resolved_inputs(inputs, plan) or None,
            "options": None if options is None else options.as_json(),
        }
        what = plan.plan_id or self._source
        if isinstance(what, Flow):
            made = await self._client.execute_flow(what.flow_id, version=what.version, **how)
        else:
            made = await self._client.execute(what, **how)
        return str(made["execution_id"])

    async def watch(self, execution_id: str, *, after: int = 0) -> AsyncGenerator[Event]:
        """Give the events of an execution above a number as they happen, to its end."""
        async with aclosing(self._client.events(execution_id, after=after)) as events:
            async for event in events:
                yield event

    async def wait(self, execution_id: str) -> None:
        """Wait until the service has written the document of an execution that came to rest."""
        path = self.document_path(execution_id)
        for _ in range(_DOCUMENT_POLLS):
            if path is None or path.is_file():
                return
            await asyncio.sleep(_POLL_INTERVAL_S)

    async def cancel(
        self, execution_id: str, cause: str | None = None, *, node: str | None = None
    ) -> None:
        """Have an execution stopped, or one node; without a cause, in the service's own words."""
        await self._client.cancel(execution_id, cause, node=node)

    async def pause(self, execution_id: str) -> None:
        """Have nothing more of an execution started."""
        await self._client.pause(execution_id)

    async def resume(self, execution_id: str) -> None:
        """Have an execution go on."""
        await self._client.resume(execution_id)

    async def requests(self, execution_id: str) -> list[OpenRequest]:
        """Give what an execution waits to be answered, oldest first."""
        found = (await self._client.requests(execution_id))["requests"]
        return [OpenRequest(**each) for each in found]

    async def answer(self, execution_id: str, request_id: str, answer: Json) -> None:
        """Answer a request."""
        await self._client.answer(execution_id, request_id, answer)

    async def retry(self, execution_id: str) -> str:
        """Have what failed of an execution started as a new one."""
        return str((await self._client.retry(execution_id))["execution_id"])

    async def fork(self, execution_id: str, rerun: Sequence[str], changes: NodeChanges) -> str:
        """Have a changed execution made out of one, and started."""
        made = await self._client.fork(execution_id, rerun=rerun, changes=changes or None)
        return str(made["execution_id"])

    def _reject_model_choice(self) -> None:
        if self._provider or self._model:
            raise InputError(
                "--provider and --model have no effect here: the service at "
                f"{self._client.url} runs this, with its own default",
                code="usage",
                hint="name provider and model in the data of the nodes, or stop the service first",
            )

    async def _resolved_inputs(self, inputs: Sequence[InputArgument], plan: Plan) -> dict[str, Any]:
        if not inputs:
            return {}
        types = (await self._client.node_types())["node_types"]
        entry_types = {each["node_type"] for each in types if each["entry"]}
        return merge_inputs(inputs, plan.graph, entry_types)


class _Shelf:
    """What :class:`QueryService` reads of a store, over HTTP."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._cursors: dict[str, str | None] = {}
        self._page = 200
        self.flows = FlowShelf(client, self._read)

    async def plan(self, plan_id: str) -> PlanRecord | None:
        try:
            return _plan_record(await self._client.plan(plan_id))
        except NotFound:
            return None

    async def execution(self, execution_id: str) -> ExecutionRecord | None:
        try:
            return _execution_record(await self._client.execution(execution_id))
        except NotFound:
            return None

    async def plans(
        self, *, text: str | None = None, before: str | PageCursor | None = None, limit: int = 50
    ) -> list[PlanRecord]:
        async def ask(cursor: str | None, size: int) -> Mapping[str, Any]:
            return await self._client.plans(q=text, cursor=cursor, limit=size)

        return [_listed_plan(each) for each in await self._read(ask, "plan", before, limit)]

    async def executions(
        self,
        *,
        status: str | None = None,
        text: str | None = None,
        since: str | None = None,
        before: str | PageCursor | None = None,
        limit: int = 50,
        plan_id: str | None = None,
        flow_id: str | None = None,
    ) -> list[ExecutionRecord]:
        async def ask(cursor: str | None, size: int) -> Mapping[str, Any]:
            return await self._client.executions(
                status=status,
                q=text,
                since=since,
                plan_id=plan_id,
                flow_id=flow_id,
                cursor=cursor,
                limit=size,
            )

        found = await self._read(ask, "execution", before, limit)
        return [_execution_record(each) for each in found]

    async def close(self) -> None:
        await self._client.close()

    async def _read(
        self,
        ask: PageRequest,
        what: str,
        before: str | PageCursor | None,
        limit: int,
    ) -> list[dict[str, Any]]:
        """Read page after page; ``before`` is the last one of what was given so far."""
        cursor, found = None, list[dict[str, Any]]()
        if before is not None:
            cursor = self._cursors.get(before if isinstance(before, str) else before.id)
            if cursor is None:
                return []
        while len(found) < limit:
            size = min(self._page, limit - len(found))
            try:
                page = await ask(cursor, size)
            except TooManyRequests as error:
                await asyncio.sleep(error.retry_after_s)
                continue
            except LimitExceeded:
                if size == 1:
                    raise
                self._page = size // 2  # this service gives smaller pages
                continue
            found += page[f"{what}s"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        if found:
            self._cursors[found[-1].get(f"{what}_id") or found[-1][what]] = cursor
        return found


def _plan_record(plan: Mapping[str, Any]) -> PlanRecord:
    return PlanRecord(
        plan["plan_id"],
        plan["created_at"],
        plan["user_prompt"],
        plan["title"],
        plan["hash"],
        {**plan},
    )


def _listed_plan(plan: Mapping[str, Any]) -> PlanRecord:
    """Give a plan as lists have it; of its nodes they tell no more than how many there are."""
    return _plan_record({**plan, "nodes": [{}] * plan["node_count"]})


def _execution_record(execution: Mapping[str, Any]) -> ExecutionRecord:
    return ExecutionRecord(
        execution["execution_id"],
        execution["plan_id"],
        execution["title"],
        execution["user_prompt"],
        execution["status"],
        execution["created_at"],
        execution["started_at"],
        execution["completed_at"],
        flow_id=execution["flow_id"],
        flow_version=execution["flow_version"],
    )


def parse_document(source: bytes) -> dict[str, Any]:
    """Read the JSON of a plan or graph.

    Raises:
        GraphInvalid: It is no JSON, or no object.
    """
    from planwave.graph.reading.documents import parse_strict_json, read_graph

    document = parse_strict_json(source)
    if not isinstance(document, dict):
        read_graph(document)  # says so
    return cast("dict[str, Any]", document)


async def check_document(
    client: AsyncClient, document: Mapping[str, Any], name: str
) -> CheckReport:
    """Have a service check a document, and give what it found as a check here would give it.

    Raises:
        GraphInvalid: The document has errors; the message begins with ``name``.
    """
    from planwave.graph.diagnostics import Diagnostic
    from planwave.graph.reading.documents import read_graph
    from planwave.service.plans.documents import CheckReport, raise_for_graph

    found: list[Mapping[str, Any]] = [*(await client.check(document))["diagnostics"]]
    report = tuple(Diagnostic(**each) for each in found)
    try:
        raise_for_graph(report)
        graph, _ = read_graph({part: document.get(part) for part in ("nodes", "edges")})
    except GraphInvalid as error:
        raise GraphInvalid(error.diagnostics, f"{name}: {error.message}") from error
    return CheckReport(graph, report, document)


PageRequest = Callable[[str | None, int], Awaitable[Mapping[str, Any]]]
"""Asks for one page: from a cursor on, so many items."""
