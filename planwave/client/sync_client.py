"""The client for code without an event loop."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Any, Self

import httpx2

from planwave.client import requests
from planwave.client.errors import unreachable
from planwave.client.requests import (
    CONNECT_TIMEOUT_S,
    STREAM_TIMEOUT,
    RequestSpec,
    RetryPolicy,
    auth_headers,
    error_from_response,
    event_stream_request,
    is_stream,
    parse_response,
    request_arguments,
    validated_url,
)
from planwave.client.sse import (
    STREAM_ENDED,
    EventStreamParser,
    PlanStreamEvent,
    ServerSentEvent,
    StreamPosition,
    is_worth_retrying,
    plan_from_message,
)
from planwave.client.types import (
    CheckResponse,
    DifferenceResponse,
    DocumentResponse,
    ExecutionCreated,
    ExecutionResponse,
    ExecutionsResponse,
    ExplainResponse,
    FlowResponse,
    FlowsResponse,
    FlowVersionsResponse,
    ForecastResponse,
    LimitsResponse,
    NodeTypesResponse,
    OpenRequestsResponse,
    PlanResponse,
    PlansResponse,
    ProvidersResponse,
    ResultResponse,
)
from planwave.errors import PlanwaveError, Unreachable
from planwave.events import Event


class FlowMethods(ABC):
    """Flows of one service; :class:`Client` adds everything else."""

    @abstractmethod
    def _send(self, call: RequestSpec) -> Any: ...

    def create_flow(
        self,
        name: str,
        graph: Mapping[str, Any] | None = None,
        *,
        plan_id: str | None = None,
        description: str | None = None,
        idempotency_key: str | None = None,
    ) -> FlowResponse:
        """Save a graph, or that of a stored plan, under a name; it is stored when this returns.

        Args:
            name: What it is called; others may be called the same.
            graph: ``{"nodes", "edges"}``.
            plan_id: A stored plan, in place of a graph.
            description: What it is for; by default the goal of the plan.
            idempotency_key: The same key and arguments make one flow, however often.

        Raises:
            GraphInvalid: It can run nowhere; nothing is stored.
        """
        body = {"name": name, "graph": graph, "plan_id": plan_id, "description": description}
        return self._send(requests.post("api", "flows", body=body, key=idempotency_key))

    def flows(
        self, *, q: str | None = None, cursor: str | None = None, limit: int | None = None
    ) -> FlowsResponse:
        """Give one page of flows, newest first: ``{"flows": […], "next_cursor"}``."""
        return self._send(requests.get("api", "flows", q=q, cursor=cursor, limit=limit))

    def flow(self, flow_id: str, version: str | None = None) -> FlowResponse:
        """Give a flow as it is, or as it was in one of its versions."""
        return self._send(requests.get("api", "flows", flow_id, version=version))

    def flow_versions(
        self, flow_id: str, *, cursor: str | None = None, limit: int | None = None
    ) -> FlowVersionsResponse:
        """Give one page of a flow's versions, newest first: ``{"versions": […], "next_cursor"}``."""
        path = ("api", "flows", flow_id, "versions")
        return self._send(requests.get(*path, cursor=cursor, limit=limit))

    def update_flow(
        self,
        flow_id: str,
        *,
        name: str | None = None,
        graph: Mapping[str, Any] | None = None,
        plan_id: str | None = None,
        description: str | None = None,
        if_match: str | None = None,
    ) -> FlowResponse:
        """Change a flow; what is not given stays as it is.

        Args:
            flow_id: Which flow.
            name: What it is called from now on.
            graph: Its graph from now on; one it never had before is a new version.
            plan_id: A stored plan, in place of a graph.
            description: What it is for.
            if_match: The version it has to have at present.

        Raises:
            PreconditionFailed: It has another version by now; nothing was changed.
            GraphInvalid: The graph can run nowhere; nothing was changed.
        """
        body = {"name": name, "graph": graph, "plan_id": plan_id, "description": description}
        return self._send(requests.put("api", "flows", flow_id, body=body, if_match=if_match))

    def delete_flow(self, flow_id: str) -> None:
        """Remove a flow with all its versions; its executions stay."""
        self._send(requests.delete("api", "flows", flow_id))

    def execute_flow(
        self,
        flow_id: str,
        *,
        version: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        start: bool = True,
        idempotency_key: str | None = None,
    ) -> ExecutionCreated:
        """Execute a flow, or one of its versions.

        Args:
            flow_id: Which flow.
            version: Which of its versions; else the present one.
            inputs: ``{node_id: {handle: value}}``: nodes settled with these values;
                ``{handle: value}`` where there is one entry node.
            options: As in :meth:`Client.execute`.
            start: Queue it now; else :meth:`Client.start_command` does.
            idempotency_key: The same key and arguments make one execution, however often.
        """
        call = requests.execute_flow(flow_id, version, inputs, options, start, idempotency_key)
        return self._send(call)


class Client(FlowMethods):
    """Speaks with one service; a context manager.

    Answers are JSON as the service documents it. Failures are raised as the exceptions a service in
    this process would raise, with their ``code``; ``Unreachable`` where nothing answers.

    Args:
        url: Where the service is.
        token: Its bearer token, where it has one.
        timeout_s: How long one answer may take. Planning takes as long as its model does, and an
            event stream as long as the execution.
        transport: Carries the requests; over the network by default.

    Raises:
        InputError: ``invalid-url``, ``invalid-token``.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        token: str | None = None,
        *,
        timeout_s: float = 900.0,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.url = validated_url(url)
        self._http = httpx2.Client(
            base_url=self.url,
            headers=auth_headers(token),
            timeout=httpx2.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S),
            transport=transport,
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def events(self, execution_id: str, *, after: int = 0) -> Generator[Event]:
        """Give the events of an execution as they happen; see :meth:`AsyncClient.events`."""
        progress, patience = StreamPosition(after), RetryPolicy()
        while not progress.is_over:
            given, failure = progress.delivered, None
            try:
                with closing(
                    self._messages(event_stream_request(execution_id, progress.cursor))
                ) as told:
                    for message in told:
                        yield from progress.new_events(message)
            except PlanwaveError as error:
                if not is_worth_retrying(error):
                    raise
                failure = error
            if not progress.is_over:
                time.sleep(patience.next_delay(progress.delivered > given, failure))

    def _messages(self, call: RequestSpec) -> Generator[ServerSentEvent]:
        """Give what one connection tells."""
        reader = EventStreamParser()
        try:
            with self._http.stream(**request_arguments(call), timeout=STREAM_TIMEOUT) as response:
                if not response.is_success:
                    raise error_from_response(response, response.read())
                if not is_stream(response):
                    yield STREAM_ENDED
                else:
                    for chunk in response.iter_bytes():
                        yield from reader.feed(chunk)
        except httpx2.RequestError as error:
            raise unreachable(self.url, error) from error

    def _send(self, call: RequestSpec) -> Any:
        try:
            response = self._http.request(**request_arguments(call))
        except httpx2.RequestError as error:
            raise unreachable(self.url, error) from error
        return parse_response(response)

    # -- plans -------------------------------------------------------------------------------------

    def create_plan(
        self,
        prompt: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        on_progress: Callable[[PlanStreamEvent], object] | None = None,
        idempotency_key: str | None = None,
    ) -> PlanResponse:
        """Plan a goal; it is stored when this returns.

        Args:
            prompt: The goal.
            provider: Who plans, and runs the nodes the plan leaves open; else the default.
            model: A model of that provider.
            on_progress: Told what happens while the plan is written. Leaving then stops it.
            idempotency_key: The same key and arguments make one plan, however often.

        Raises:
            PlanInvalid: The model's plan could not be repaired; nothing is stored.
            PlanwaveError: Whatever :meth:`Service.create_plan` raises.
        """
        if on_progress is None:
            return self._send(requests.create_plan(prompt, provider, model, idempotency_key))
        call = requests.create_plan(prompt, provider, model, idempotency_key, stream=True)
        with closing(self._messages(call)) as messages:
            for message in messages:
                plan = plan_from_message(message, on_progress)
                if plan is not None:
                    return plan
        raise Unreachable(f"the service at {self.url} went away before the plan was written")

    def plans(
        self, *, q: str | None = None, cursor: str | None = None, limit: int | None = None
    ) -> PlansResponse:
        """Give one page of plans, newest first: ``{"plans": […], "next_cursor"}``."""
        return self._send(requests.get("api", "plans", q=q, cursor=cursor, limit=limit))

    def plan(self, plan_id: str) -> PlanResponse:
        """Give a plan."""
        return self._send(requests.get("api", "plans", plan_id))

    def delete_plan(self, plan_id: str) -> None:
        """Remove a plan; its executions stay."""
        self._send(requests.delete("api", "plans", plan_id))

    def validate(self, plan_id: str) -> CheckResponse:
        """Check a stored plan again: ``{"valid", "diagnostics"}``."""
        return self._send(requests.post("api", "plans", plan_id, "validate"))

    def forecast(self, plan_id: str) -> ForecastResponse:
        """Say what running a plan will take: waves, calls, tokens, cost."""
        return self._send(requests.get("api", "plans", plan_id, "forecast"))

    def check(self, graph: Mapping[str, Any]) -> CheckResponse:
        """Find everything that is wrong with a graph: ``{"valid", "diagnostics"}``."""
        return self._send(requests.post("api", "check", body={"graph": graph}))

    # -- executions --------------------------------------------------------------------------------

    def execute(
        self,
        what: str | Mapping[str, Any],
        *,
        inputs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        start: bool = True,
        idempotency_key: str | None = None,
    ) -> ExecutionCreated:
        """Execute a stored plan, or a graph.

        Args:
            what: A plan's id, or ``{"nodes", "edges"}``.
            inputs: ``{node_id: {handle: value}}``: nodes settled with these values.
            options: ``scheduling``, ``on_failure``, ``max_parallel``, ``run_to``, ``run_from``,
                ``policies``.
            start: Queue it now; else :meth:`start_command` does.
            idempotency_key: The same key and arguments make one execution, however often.

        Returns:
            ``{"execution_id", "plan_id", "status", "position"}``; it is durable.
        """
        return self._send(requests.execute(what, inputs, options, start, idempotency_key))

    def start(self, execution_id: str) -> ExecutionCreated:
        """Queue an execution that was made with ``start=False``."""
        return self._send(requests.post("api", "execute", execution_id, "start"))

    def run(
        self,
        prompt: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> ExecutionCreated:
        """Plan a goal and run the plan; answers as :meth:`execute` does."""
        call = requests.run(prompt, provider, model, inputs, options, idempotency_key)
        return self._send(call)

    def executions(
        self,
        *,
        status: str | None = None,
        q: str | None = None,
        since: str | None = None,
        plan_id: str | None = None,
        flow_id: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> ExecutionsResponse:
        """Give one page of executions, newest first: ``{"executions": […], "next_cursor"}``."""
        query = {"status": status, "q": q, "since": since, "plan_id": plan_id, "flow_id": flow_id}
        return self._send(requests.get("api", "executions", **query, cursor=cursor, limit=limit))

    def execution(self, execution_id: str) -> ExecutionResponse:
        """Give the state of an execution."""
        return self._send(requests.get("api", "executions", execution_id))

    def result(self, execution_id: str) -> ResultResponse:
        """Give what an execution gave: ``{"status", "node_results", "execution_logs", …}``."""
        return self._send(requests.get("api", "executions", execution_id, "result"))

    def document(self, execution_id: str) -> DocumentResponse:
        """Give the whole document of an execution."""
        return self._send(requests.get("api", "executions", execution_id, "document"))

    def explain(self, execution_id: str, path: str) -> ExplainResponse:
        """Say why a node ran, did not run, or waits."""
        return self._send(requests.get("api", "executions", execution_id, "explain", path))

    def diff(self, execution_id: str, other_id: str) -> DifferenceResponse:
        """Say what differs between two executions, node by node."""
        return self._send(requests.get("api", "executions", execution_id, "diff", other_id))

    def requests(self, execution_id: str) -> OpenRequestsResponse:
        """Give what an execution waits to be answered: ``{"requests": […]}``, oldest first."""
        return self._send(requests.get("api", "executions", execution_id, "requests"))

    def answer(self, execution_id: str, request_id: str, answer: Any) -> ExecutionCreated:
        """Answer a request, once; the answer is durable when this returns.

        Args:
            execution_id: Which execution.
            request_id: One of :meth:`requests`.
            answer: ``{"decision", "note"?, "value"?, "form"?}`` for requests with actions.

        Raises:
            Conflict: ``request-answered``.
            Gone: ``request-closed``: its time was over, or its node was cancelled.
            InputError: It is no answer to this request, which stays open.
        """
        return self._send(requests.answer(execution_id, request_id, answer))

    def pause(self, execution_id: str) -> ExecutionCreated:
        """Have nothing more of an execution started; nodes at work go on to their end."""
        return self._send(requests.post("api", "executions", execution_id, "pause"))

    def resume(self, execution_id: str) -> ExecutionCreated:
        """Have an execution go on that was paused by request, or set aside."""
        return self._send(requests.post("api", "executions", execution_id, "resume"))

    def cancel(
        self, execution_id: str, cause: str | None = None, *, node: str | None = None
    ) -> ExecutionCreated:
        """Stop an execution, or the one node of that path; that is durable when this returns."""
        return self._send(requests.cancel(execution_id, cause, node))

    def retry(
        self, execution_id: str, *, start: bool = True, idempotency_key: str | None = None
    ) -> ExecutionCreated:
        """Make a new execution that runs what failed, was blocked or was cancelled."""
        path = ("api", "executions", execution_id, "retry")
        return self._send(requests.post(*path, body={"start": start}, key=idempotency_key))

    def fork(
        self,
        execution_id: str,
        *,
        rerun: Sequence[str] = (),
        changes: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        start: bool = True,
        idempotency_key: str | None = None,
    ) -> ExecutionCreated:
        """Make a new execution of the same graph that takes over every result it still holds.

        Args:
            execution_id: One that has ended or is paused.
            rerun: Ids of nodes that run in any case, with all that runs inside them.
            changes: ``{node_id: {"data": merge patch} | {"outputs": {handle: value}}}``.
            options: As in :meth:`execute`, without ``policies``; those of the one before by default.
            start: Queue it now; else :meth:`start_command` does.
            idempotency_key: The same key and arguments make one execution, however often.
        """
        call = requests.fork(execution_id, rerun, changes, options, start, idempotency_key)
        return self._send(call)

    def delete_execution(self, execution_id: str) -> None:
        """Remove an execution that has ended."""
        self._send(requests.delete("api", "executions", execution_id))

    def wait(self, execution_id: str) -> ResultResponse:
        """Wait until an execution is over, and give its result."""
        for _ in self.events(execution_id):
            pass
        return self.result(execution_id)

    # -- what there is -----------------------------------------------------------------------------

    def providers(self) -> ProvidersResponse:
        """Give the providers, whether they can be used, and why not."""
        return self._send(requests.get("api", "providers"))

    def node_types(self) -> NodeTypesResponse:
        """Give the node types with their ports and the JSON Schemas of their data."""
        return self._send(requests.get("api", "node-types"))

    def limits(self) -> LimitsResponse:
        """Give the limits the service enforces."""
        return self._send(requests.get("api", "limits"))
