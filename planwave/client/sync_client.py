# Generated from async_client.py by tools/unasync.py; do not edit. Run: make generate
"""A client of the service with blocking methods."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import httpx2
from typing_extensions import Unpack

from planwave.client import requests
from planwave.client.errors import unreachable
from planwave.client.requests import (
    CONNECT_TIMEOUT_S,
    STREAM_ATTEMPTS,
    STREAM_TIMEOUT,
    RequestSpec,
    RetryPolicy,
    auth_headers,
    error_from_response,
    event_stream_request,
    is_stream,
    parse_response,
    reply_stream_request,
    request_arguments,
    validated_url,
)
from planwave.client.sse import (
    REPLY_ENDS,
    STREAM_ENDED,
    EventStreamParser,
    PlanStreamEvent,
    ServerSentEvent,
    StreamPosition,
    is_worth_retrying,
    plan_from_message,
    reply_event,
)
from planwave.client.sync_methods import (
    ChatMethods,
    ExportMethods,
    FlowMethods,
    NotificationMethods,
    TriggerMethods,
)
from planwave.client.sync_revisions import RevisionMethods
from planwave.errors import PlanwaveError, Unreachable
from planwave.events import Event

if TYPE_CHECKING:
    from planwave.client.requests import ExecutionsQuery
    from planwave.shapes.catalog import (
        LimitsResponse,
        NodeTypesResponse,
        ProvidersResponse,
        ToolsResponse,
    )
    from planwave.shapes.executions import (
        DifferenceResponse,
        DocumentResponse,
        ExecutionCreated,
        ExecutionResponse,
        ExecutionsResponse,
        ExplainResponse,
        LabelsResponse,
        OpenRequestsResponse,
        ResultResponse,
    )
    from planwave.shapes.graphs import CheckResponse, ForecastResponse, ForkPreviewResponse
    from planwave.shapes.imports import ImportResponse
    from planwave.shapes.nodes import PlanChangeResponse, ReplanAccepted
    from planwave.shapes.plans import PlanResponse, PlansResponse, ReplanResponse
    from planwave.shapes.spend import SpendResponse


class Client(
    RevisionMethods,
    FlowMethods,
    ExportMethods,
    TriggerMethods,
    NotificationMethods,
    ChatMethods,
):
    """A connection to one service; a context manager.

    Methods return the JSON of the response. Problem responses are raised as the exceptions that the
    same call raises in-process, with their ``code``; ``Unreachable`` if no service responds.

    Args:
        url: The address of the service.
        token: The bearer token, if the service requires one.
        timeout_s: Time limit of a response; a plan takes as long as the model. Streams have none.
        transport: Sends the requests; by default over the network.
        stream_attempts: Connections without an event after which an event stream is given up.

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
        stream_attempts: int = STREAM_ATTEMPTS,
    ) -> None:
        self.url = validated_url(url)
        self._stream_attempts = stream_attempts
        self._http = httpx2.Client(
            base_url=self.url,
            headers=auth_headers(token),
            timeout=httpx2.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S),
            transport=transport,
            verify=not self.url.lower().startswith("http:"),  # certificates take 20 ms to load
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections of the client."""
        self._http.close()

    def events(self, execution_id: str, *, after: int = 0) -> Generator[Event]:
        """Yield the events of an execution as they are published, until the execution ends.

        Each stored event above ``after`` is yielded once and in order, and so is each character of
        streamed text (``node.delta``, each piece with its ``offset``). If the connection breaks, the
        client reconnects with growing delays, for about half a minute without progress.

        Raises:
            NotFound, Unreachable: No execution has this id; no service responded to the retries.
        """
        position, retry_policy = StreamPosition(after), RetryPolicy(self._stream_attempts)
        while not position.is_over:
            delivered, failure = position.delivered, None
            try:
                with closing(
                    self._messages(event_stream_request(execution_id, position.cursor))
                ) as messages:
                    for message in messages:
                        yield from position.new_events(message)
            except PlanwaveError as error:
                if not is_worth_retrying(error):
                    raise
                failure = error
            if not position.is_over:
                progressed = position.delivered > delivered
                time.sleep(retry_policy.next_delay(progressed, failure))

    def reply_events(
        self, chat_id: str, message_id: str, *, after: int = 0
    ) -> Generator[dict[str, Any]]:
        """Yield the events of a reply of a chat as they happen, until it ends.

        After a broken connection texts come again from the ``offset`` at which they may differ.

        Raises:
            NotFound, Unreachable: There is no such reply; no service responded to the retries.
        """
        retry_policy = RetryPolicy(self._stream_attempts)
        while True:
            before, failure = after, None
            try:
                call = reply_stream_request(chat_id, message_id, after)
                with closing(self._messages(call)) as messages:
                    for message in messages:
                        if message is STREAM_ENDED:
                            return
                        if (event := reply_event(message)) is None:
                            break
                        yield event
                        after = event.get("seq", after)
                        if event["event"] in REPLY_ENDS:
                            return
            except PlanwaveError as error:
                if not is_worth_retrying(error):
                    raise
                failure = error
            time.sleep(retry_policy.next_delay(after > before, failure))

    def _messages(self, call: RequestSpec) -> Generator[ServerSentEvent]:
        """Yield the messages of one connection."""
        parser = EventStreamParser()
        try:
            with self._http.stream(**request_arguments(call), timeout=STREAM_TIMEOUT) as response:
                if not response.is_success:
                    raise error_from_response(response, response.read())
                if not is_stream(response):
                    yield STREAM_ENDED
                else:
                    for chunk in response.iter_bytes():
                        yield from parser.feed(chunk)
        except httpx2.RequestError as error:
            raise unreachable(self.url, error) from error

    def _send(self, call: RequestSpec) -> Any:
        try:
            response = self._http.request(**request_arguments(call))
        except httpx2.RequestError as error:
            raise unreachable(self.url, error) from error
        return parse_response(response, is_text=call.is_text)

    # -- plans -------------------------------------------------------------------------------------

    def create_plan(
        self,
        prompt: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        answers: Mapping[str, str] | None = None,
        on_progress: Callable[[PlanStreamEvent], object] | None = None,
        idempotency_key: str | None = None,
    ) -> PlanResponse:
        """Create a plan for a goal; the plan is stored when this returns.

        Args:
            prompt: The goal.
            provider: The provider that plans, and that runs nodes without a provider; by default
                the provider of the service.
            model: A model of that provider.
            answers: Answers to the ``questions`` of an earlier plan of the goal, by question.
            on_progress: Called with each event while the plan is written; closing the connection
                cancels the planning.
            idempotency_key: Repeating the call with the same key and arguments creates one plan.

        Raises:
            PlanInvalid: The model's plan could not be repaired; nothing is stored.
            PlanwaveError: Any error of ``PlanService.create``.
        """
        stream = on_progress is not None
        call = requests.create_plan(
            prompt, provider, model, idempotency_key, answers, stream=stream
        )
        if on_progress is None:
            return self._send(call)
        with closing(self._messages(call)) as messages:
            for message in messages:
                plan = plan_from_message(message, on_progress)
                if plan is not None:
                    return plan
        raise Unreachable(f"the service at {self.url} went away before the plan was written")

    def plans(
        self,
        *,
        q: str | None = None,
        name: str | None = None,
        named: bool | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> PlansResponse:
        """Return one page of plans, newest first: ``{"plans": […], "next_cursor"}``.

        Args:
            q: Only those with this in name, title, description or goal.
            name: Only the one with this name, whatever its case.
            named: Only flows; False: only plans without a name.
            cursor: The ``next_cursor`` of the page before.
            limit: How many at most.
        """
        query: dict[str, Any] = {"q": q, "name": name, "named": named}
        return self._send(requests.get("api", "plans", **query, cursor=cursor, limit=limit))

    def plan(self, plan_id: str) -> PlanResponse:
        """Return a plan."""
        return self._send(requests.get("api", "plans", plan_id))

    def delete_plan(self, plan_id: str, *, force: bool = False) -> None:
        """Delete a plan; its executions are kept."""
        self._send(requests.delete("api", "plans", plan_id, force=force or None))

    def validate(self, plan_id: str) -> CheckResponse:
        """Check a stored plan again: ``{"valid", "diagnostics"}``."""
        return self._send(requests.post("api", "plans", plan_id, "validate"))

    def forecast(self, plan_id: str) -> ForecastResponse:
        """Return an estimate of the waves, calls, tokens and cost of running a plan."""
        return self._send(requests.get("api", "plans", plan_id, "forecast"))

    def check(self, graph: Mapping[str, Any]) -> CheckResponse:
        """Check a graph for errors and warnings: ``{"valid", "diagnostics"}``."""
        return self._send(requests.post("api", "check", body={"graph": graph}))

    def import_file(
        self,
        text: str,
        kind: str | None = None,
        *,
        write_code: bool = False,
        provider: str | None = None,
        model: str | None = None,
        save_as_flow: str | None = None,
    ) -> ImportResponse:
        """Convert a file of another program to a graph; nothing is stored but with ``save_as_flow``.

        Args:
            text: JSON, YAML or a Mermaid flowchart.
            kind: The format, such as ``dify``; None to tell it from the shape of the document.
            write_code: Whether programs in the file become node types of a module, ``code``.
            provider: A provider in place of each that the file names.
            model: A model of that provider; None for its default.
            save_as_flow: The name of a new flow that the graph is saved as.
        """
        body = {
            "text": text,
            "kind": kind,
            "write_code": write_code,
            "provider": provider,
            "model": model,
            "save_as_flow": save_as_flow,
        }
        return self._send(requests.post("api", "import", body=body))

    # -- executions --------------------------------------------------------------------------------

    def execute(
        self,
        what: str | Mapping[str, Any],
        *,
        inputs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        start: bool = True,
        require_approval: bool = False,
        idempotency_key: str | None = None,
    ) -> ExecutionCreated:
        """Execute a stored plan, or a graph.

        Args:
            what: A plan's id, or ``{"nodes", "edges"}``.
            inputs: ``{node_id: {handle: value}}``: preset results of nodes.
            options: ``scheduling``, ``on_failure``, ``max_parallel``, ``run_to``, ``run_from``,
                ``policies``.
            start: Queue the execution now; if False, call ``Client.start`` later.
            require_approval: Ask a person before the first node starts.
            idempotency_key: Repeating the call with the same key and arguments creates one
                execution.

        Returns:
            ``{"execution_id", "plan_id", "status", "position"}``; it is durable.
        """
        call = requests.execute(what, inputs, options, start, idempotency_key, require_approval)
        return self._send(call)

    def start(self, execution_id: str) -> ExecutionCreated:
        """Queue an execution that was created with ``start=False``."""
        return self._send(requests.post("api", "execute", execution_id, "start"))

    def run(
        self,
        prompt: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        require_approval: bool = False,
        idempotency_key: str | None = None,
    ) -> ExecutionCreated:
        """Plan a goal and run the plan; returns the same as ``execute``."""
        call = requests.run(
            prompt, provider, model, inputs, options, idempotency_key, require_approval
        )
        return self._send(call)

    def executions(self, **query: Unpack[ExecutionsQuery]) -> ExecutionsResponse:
        """Return one page of executions, newest first unless sorted: ``{"executions": […], "next_cursor"}``."""
        return self._send(requests.get("api", "executions", **query))

    def label(self, execution_id: str, labels: Mapping[str, Any]) -> LabelsResponse:
        """Change what people call an execution: ``name``, ``tags``, ``note``, ``starred``; return all of it."""
        path = ("api", "executions", execution_id)
        return self._send(requests.patch(*path, body=labels))

    def spend(
        self, by: str = "day", since: str | None = None, until: str | None = None
    ) -> SpendResponse:
        """Return what was spent by ``day``, ``flow`` or ``model``; of the last 30 days by default."""
        return self._send(requests.get("api", "spend", by=by, since=since, until=until))

    def execution(self, execution_id: str) -> ExecutionResponse:
        """Return the state of an execution."""
        return self._send(requests.get("api", "executions", execution_id))

    def result(self, execution_id: str) -> ResultResponse:
        """Return the results of an execution: ``{"status", "node_results", "execution_logs", …}``."""
        return self._send(requests.get("api", "executions", execution_id, "result"))

    def document(self, execution_id: str) -> DocumentResponse:
        """Return the JSON document of an execution."""
        return self._send(requests.get("api", "executions", execution_id, "document"))

    def explain(self, execution_id: str, path: str) -> ExplainResponse:
        """Explain why a node ran, did not run, or waits."""
        return self._send(requests.get("api", "executions", execution_id, "explain", path))

    def diff(self, execution_id: str, other_id: str) -> DifferenceResponse:
        """Compare two executions node by node."""
        return self._send(requests.get("api", "executions", execution_id, "diff", other_id))

    def requests(self, execution_id: str) -> OpenRequestsResponse:
        """Return the open requests of an execution: ``{"requests": […]}``, oldest first."""
        return self._send(requests.get("api", "executions", execution_id, "requests"))

    def answer(self, execution_id: str, request_id: str, answer: Any) -> ExecutionCreated:
        """Answer an open request; the answer is durable when this returns.

        Args:
            execution_id: The execution that waits.
            request_id: The id of one of ``requests``.
            answer: For requests with actions: ``{"decision", "note"?, "value"?, "form"?}``.

        Raises:
            Conflict: ``request-answered``.
            Gone: ``request-closed``: the request timed out, or its node or execution was cancelled.
            InputError: The answer does not fit the request, which stays open.
        """
        return self._send(requests.answer(execution_id, request_id, answer))

    def pause(self, execution_id: str) -> ExecutionCreated:
        """Pause an execution: start no more nodes; running nodes continue to their end."""
        return self._send(requests.post("api", "executions", execution_id, "pause"))

    def resume(self, execution_id: str) -> ExecutionCreated:
        """Resume a paused or interrupted execution."""
        return self._send(requests.post("api", "executions", execution_id, "resume"))

    def cancel(
        self, execution_id: str, cause: str | None = None, *, node: str | None = None
    ) -> ExecutionCreated:
        """Cancel an execution, or the node with this path; durable when this returns."""
        return self._send(requests.cancel(execution_id, cause, node))

    def retry(
        self, execution_id: str, *, start: bool = True, idempotency_key: str | None = None
    ) -> ExecutionCreated:
        """Create an execution that runs the failed, blocked and cancelled nodes again."""
        path = ("api", "executions", execution_id, "retry")
        return self._send(requests.post(*path, body={"start": start}, key=idempotency_key))

    def fork(
        self,
        execution_id: str,
        *,
        rerun: Sequence[str] = (),
        changes: Mapping[str, Any] | None = None,
        graph: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        start: bool = True,
        idempotency_key: str | None = None,
    ) -> ExecutionCreated:
        """Create an execution of the same graph, or of a new one, that reuses every result that is still valid.

        Args:
            execution_id: An execution that has ended or is paused.
            rerun: Ids of nodes that run in any case, with their nested runs.
            changes: ``{node_id: {"description"?: text, "data"?: merge patch} | {"outputs": {handle:
                value}}}``.
            graph: ``{"nodes", "edges"}``, or a plan, to run in place of that of the original.
            options: As in ``execute``, without ``policies``; by default those of the original.
            start: Queue the execution now; if False, call ``Client.start`` later.
            idempotency_key: Repeating the call with the same key and arguments creates one
                execution.
        """
        changed = requests.fork_changes(rerun, changes, graph, options)
        return self._send(requests.fork(execution_id, changed, start, idempotency_key))

    def preview_fork(
        self,
        execution_id: str,
        *,
        rerun: Sequence[str] = (),
        changes: Mapping[str, Any] | None = None,
        graph: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> ForkPreviewResponse:
        """Return which nodes ``fork`` would reuse and which it would run; nothing is created."""
        changed = requests.fork_changes(rerun, changes, graph, options)
        return self._send(requests.preview_fork(execution_id, changed))

    def revise(
        self,
        execution_id: str,
        graph: Mapping[str, Any],
        *,
        note: str = "",
        if_match: str | None = None,
    ) -> PlanChangeResponse:
        """Let an execution that runs or waits go on with a changed graph; return the change.

        What has begun stays as it is; all else may be changed, added and dropped.

        Args:
            execution_id: The execution.
            graph: ``{"nodes", "edges"}``, or a plan; nodes are the same by their ids.
            note: Why; kept with the change.
            if_match: The hash that the graph must have (``plan_hash`` of the execution); None for any.
        """
        body = {"graph": graph, "note": note}
        path = ("api", "executions", execution_id, "revise")
        return self._send(requests.post(*path, body=body, if_match=if_match))

    @overload
    def replan(
        self,
        execution_id: str,
        request: str | None = None,
        *,
        provider: str | None = None,
        model: str | None = None,
        dry_run: Literal[False] = False,
        if_match: str | None = None,
        timeout_s: float | None = None,
    ) -> ReplanAccepted: ...
    @overload
    def replan(
        self,
        execution_id: str,
        request: str | None = None,
        *,
        provider: str | None = None,
        model: str | None = None,
        dry_run: Literal[True],
        if_match: str | None = None,
        timeout_s: float | None = None,
    ) -> ReplanResponse: ...
    def replan(
        self,
        execution_id: str,
        request: str | None = None,
        *,
        provider: str | None = None,
        model: str | None = None,
        dry_run: bool = False,
        if_match: str | None = None,
        timeout_s: float | None = None,
    ) -> ReplanAccepted | ReplanResponse:
        """Have a model change the plan of an execution that runs or waits; nothing of it starts meanwhile.

        The events ``plan.revised`` or ``plan.refused`` say what comes of it; a change that reaches something new is among
        the open requests first.

        Args:
            execution_id: The execution.
            request: What is to be different, in words; None for what replaces the steps that failed.
            provider: Who writes it; by default the provider of the service.
            model: A model of that provider.
            dry_run: Return the change that a model proposes, and change nothing: ``revise`` takes its graph, and
                ``fork`` that of an execution that has ended.
            if_match: The hash that the graph must have (``plan_hash`` of the execution); None for any.
            timeout_s: Time limit of the response; None for that of the client.
        """
        body = {"request": request, "provider": provider, "model": model, "dry_run": dry_run}
        path = ("api", "executions", execution_id, "replan")
        call = requests.post(*path, body=body, if_match=if_match)
        return self._send(call._replace(timeout_s=timeout_s))

    def delete_execution(self, execution_id: str) -> None:
        """Delete an execution that has ended."""
        self._send(requests.delete("api", "executions", execution_id))

    def wait(self, execution_id: str) -> ResultResponse:
        """Wait until an execution ends and return its result."""
        for _ in self.events(execution_id):
            pass
        return self.result(execution_id)

    # -- catalog ------------------------------------------------------------------------------------

    def providers(self) -> ProvidersResponse:
        """Return the providers, and for each whether it is available."""
        return self._send(requests.get("api", "providers"))

    def node_types(self) -> NodeTypesResponse:
        """Return the node types with their ports and the JSON Schemas of their data."""
        return self._send(requests.get("api", "node-types"))

    def tools(self) -> ToolsResponse:
        """Return the tools that agents may be given."""
        return self._send(requests.get("api", "tools"))

    def limits(self) -> LimitsResponse:
        """Return the limits that the service enforces."""
        return self._send(requests.get("api", "limits"))
