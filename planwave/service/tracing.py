"""Spans of executions for OpenTelemetry, made from published events and from attempts at model calls.

``invoke_workflow`` is an execution while it runs in this process; below it, ``node ID`` is an attempt of
a node (``invoke_agent NAME`` of an agent, ``plan NAME`` of a planner), those of a nested run below the
node, or the tool call, that opened it; ``chat MODEL`` is an attempt at a model call and
``execute_tool NAME`` a tool call, both below their node. ``plan planner`` is a plan that a request asks
for. The names of OpenTelemetry's GenAI conventions are written out here, as in other libraries: they are
in development, and so is the module of the package that has them.

No span holds text of prompts, replies, arguments or results, unless the operator wants it
(``tracing_content``); error messages are in the log, with the id of the trace.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any, Final, cast
from urllib.parse import urlsplit
from uuid import UUID

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    INVALID_SPAN,
    Span,
    SpanKind,
    StatusCode,
    format_span_id,
    format_trace_id,
    get_current_span,
    set_span_in_context,
    use_span,
)
from opentelemetry.trace import TracerProvider as ApiTracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from planwave.errors import PlanwaveError
from planwave.events import Event, ExecutionState
from planwave.events.graphs import GraphLookup, NestedGraphs, NodeLocation
from planwave.events.paths import nested_prefix
from planwave.events.plan_changes import NO_GRAPH
from planwave.events.request_text import field_of
from planwave.events.types import TOOL_CALL_ENDS, TOOL_CALL_STARTS, typed_event
from planwave.graph.editing.revision import changed_graph
from planwave.graph.outputs import outputs_from_json
from planwave.graph.result import LastNodes
from planwave.providers.protocols import CallReport, CallScope, ModelReply, ModelRequest
from planwave.service.tracing_content import SpanContent
from planwave.shapes.common import GraphDocument, OutputsDocument

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
"""The version of the conventions that the names of attributes are from."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PROPAGATOR: Final = TraceContextTextMapPropagator()
_OPERATION: Final = "gen_ai.operation.name"
_EXECUTION_STATUS: Final = "planwave.execution.status"
_NODE_STATUS: Final = "planwave.node.status"
_ERROR_TYPE: Final = "error.type"
_OTHER_ERROR: Final = "_OTHER"
"""The ``error.type`` of an error without a code, as the conventions have it."""
_PLAN: Final = "plan"
_AGENT_OPERATIONS: Final[Mapping[str, str]] = {"agent": "invoke_agent", "planner": _PLAN}
"""The operation of a node, by its type, where the conventions have one for it."""
_CHAT: Final = "chat_start"
"""The ``kind`` of the trigger of a reply in a chat; its id is that of the chat."""
_NO_CALLS: Final[Mapping[str, Span]] = {}


class _TraceIds(RandomIdGenerator):
    """Random ids; an execution without a parent gets its own id as the id of its trace.

    So the parts of an execution that was paused or interrupted are in one trace.
    """

    def __init__(self) -> None:
        self._preset: int | None = None

    def preset(self, execution_id: str) -> None:
        """Use the id of an execution for the next trace."""
        self._preset = _own_trace_id(execution_id)

    def generate_trace_id(self) -> int:
        preset, self._preset = self._preset, None
        return super().generate_trace_id() if preset is None else preset


def _own_trace_id(execution_id: str) -> int | None:
    """Return the id of the trace of an execution without a parent; None where a random one is used."""
    try:
        return UUID(execution_id).int or None
    except ValueError:
        return None


class _OwnProvider(TracerProvider):
    """The provider of a service, which closes it."""

    def __init__(self, processor: SpanProcessor) -> None:
        self.ids = _TraceIds()
        super().__init__(resource=_resource(), id_generator=self.ids, shutdown_on_exit=False)
        self.add_span_processor(processor)


class _TracedExecution:
    """An execution that runs in this process: its span, and the open spans of its nodes by path.

    Attributes:
        calls: The open spans of tool calls, by the path of their node and their id.
        callers: The open spans of tool calls that are nested runs, by the prefix of the run.
        conversation: The id of the chat that it replies in; None outside of chats.
        tool_texts: The descriptions of the tools that models were last offered, by path and name.
        last: The nodes that its result can come from.
        outputs: What these have delivered.
    """

    __slots__ = (
        "callers", "calls", "conversation", "ended_ns", "graph", "graphs", "last", "nested", "nodes", "outputs",
        "span", "tool_texts",
    )  # fmt: skip

    def __init__(self, span: Span, state: ExecutionState) -> None:
        nested = state.nested_graphs
        self.span = span
        self.conversation = _conversation_id(state)
        self.tool_texts: dict[str, Mapping[str, str]] = {}
        self.outputs: dict[str, OutputsDocument | None] = {
            path: node.outputs for path, node in state.nodes.items()
        }
        self.nested = NestedGraphs(dict(nested.documents), dict(nested.runs))
        self.set_graph(state.graph or NO_GRAPH)
        self.nodes: dict[str, Span] = {}
        self.calls: dict[str, dict[str, Span]] = {}
        self.callers: dict[str, Span] = {}
        self.ended_ns: int | None = None

    def set_graph(self, graph: GraphDocument) -> None:
        """Take the graph that it runs, from its beginning or after a change."""
        self.graph, self.last = graph, LastNodes.of_document(graph)
        self.graphs = GraphLookup(graph, self.nested)
        before = self.outputs
        ends = {*self.last.ends, *self.last.sinks, *self.last.starts}
        self.outputs = {path: before.get(path) for path in ends}

    def result(self) -> str:
        """Return what it gave, as text."""
        outputs = {path: outputs_from_json(each) for path, each in self.outputs.items()}
        return self.last.result(outputs).text

    def span_at(self, path: str | None) -> Span:
        """Return the open span of a node, or that of the execution."""
        return self.span if path is None else self.nodes.get(path, self.span)

    def span_around(self, location: NodeLocation) -> Span:
        """Return the open span that a node runs in: of a tool call, of a node, or of the execution."""
        return self.callers.get(location.prefix) or self.span_at(location.parent)

    def end_calls(self, path: str, ended_ns: int) -> None:
        """End the open spans of the tool calls of a node: it no longer runs."""
        for call_id in list(self.calls.get(path, _NO_CALLS)):
            self.take_call(path, call_id).end(ended_ns)

    def take_call(self, path: str, call_id: str) -> Span:
        """Return the span of a tool call, which is no longer open; one without effect if it was not."""
        span = self.calls.get(path, {}).pop(call_id, INVALID_SPAN)
        self.callers = {run: each for run, each in self.callers.items() if each is not span}
        return span


class ModelCallSpan:
    """The span of one attempt at a model call; satisfies ``providers.protocols.CallTrace``."""

    __slots__ = ("_content", "_span", "headers")

    def __init__(self, span: Span, content: SpanContent | None) -> None:
        self._span, self._content = span, content
        self.headers: Mapping[str, str] = _headers(set_span_in_context(span, Context()))

    def end(self, report: CallReport) -> None:
        """Add how the attempt ended, and end the span."""
        span = self._span
        span.set_attribute("planwave.call.outcome", report.outcome)
        if report.server is not None:
            span.set_attributes(_server_attributes(report.server))
        if report.first_token_s is not None:
            span.set_attribute("gen_ai.response.time_to_first_chunk", report.first_token_s)
        if (reply := report.reply) is not None:
            span.set_attributes(_reply_attributes(reply))
            if self._content is not None:
                span.set_attributes(self._content.of_reply(reply))
        if report.outcome not in ("completed", "cancelled"):
            _set_error(span, report.outcome)
        span.end()


class ExecutionTracer:
    """Makes the spans of all executions of a process; satisfies ``service.dependencies.Tracer``.

    Args:
        provider: Gives the tracer. One that a program has made is closed by the program.
        content: Makes the attributes that hold text; None for spans without text.
    """

    def __init__(self, provider: ApiTracerProvider, content: SpanContent | None = None) -> None:
        self._provider, self._content = provider, content
        self._tracer = provider.get_tracer("planwave", version("planwave"), SCHEMA_URL)
        self._running: dict[str, _TracedExecution] = {}
        self._reducers: dict[str, Callable[[_TracedExecution, Event], None]] = {
            "execution.paused": _execution_paused,
            "execution.resumed": _execution_resumed,
            "execution.completed": self._execution_completed,
            "execution.failed": _execution_ended,
            "execution.cancelled": _execution_ended,
            "plan.revised": _plan_revised,
            "node.started": self._node_entered,
            "node.answered": self._node_entered,
            "node.unparked": self._node_entered,
            "node.waiting": _node_waits,
            "node.parked": _node_waits,
            "node.completed": self._node_completed,
            "node.retrying": _node_ended,
            "node.failed": _node_ended,
            "node.cancelled": _node_ended,
            "node.event": self._node_emitted,
        }

    def current_context(self) -> dict[str, str]:
        """Return the trace context of the caller as headers; empty without one."""
        return _headers()

    def trace_id_of(self, execution_id: str, trace_context: Mapping[str, str]) -> str | None:
        """Return the id of the trace of all spans of an execution; see ``dependencies.Tracer``."""
        extracted = _PROPAGATOR.extract(trace_context, Context())
        caller = get_current_span(extracted).get_span_context()
        if caller.is_valid:
            return format_trace_id(caller.trace_id) if caller.trace_flags.sampled else None
        own = _own_trace_id(execution_id) if isinstance(self._provider, _OwnProvider) else None
        return None if own is None else format_trace_id(own)

    def started(self, state: ExecutionState, trace_context: Mapping[str, str]) -> None:
        """Open the span of an execution that begins to run, or runs again."""
        if isinstance(self._provider, _OwnProvider):
            self._provider.ids.preset(state.execution_id)
        parent = state.parent or {}
        span = self._tracer.start_span(
            f"invoke_workflow {state.flow}" if state.flow else "invoke_workflow",
            context=_PROPAGATOR.extract(trace_context, Context()),
            attributes=_present(
                {
                    _OPERATION: "invoke_workflow",
                    "gen_ai.workflow.name": state.flow,
                    "gen_ai.conversation.id": _conversation_id(state),
                    "planwave.execution.id": state.execution_id,
                    "planwave.execution.title": state.title or None,
                    "planwave.execution.parent_id": parent.get("execution_id"),
                    "planwave.plan.id": state.plan_id or None,
                    "planwave.plan.hash": state.plan_hash,
                    "planwave.plan.revision": state.revision,
                    "planwave.flow": state.flow,
                    _EXECUTION_STATUS: "executing",
                }
            ),
        )
        if self._content is not None:
            span.set_attributes(self._content.of_run(state.goal, state.inputs))
        execution = self._running[state.execution_id] = _TracedExecution(span, state)
        for node in state.nodes.values():
            if node.status == "running":  # answered while nothing ran, or cut off with its process
                self._open_node(execution, node.path, node.attempt, time.time_ns())

    def published(self, events: Sequence[Event]) -> None:
        """Open, change and end spans as a batch of events of one execution says."""
        execution = self._running.get(events[0].execution_id) if events else None
        if execution is None:
            return
        for event in events:
            reducer = self._reducers.get(event.type)
            if reducer is not None:
                reducer(execution, event)

    def execution_left(self, execution_id: str) -> None:
        """End the open spans of an execution that ended or no longer runs in this process."""
        execution = self._running.pop(execution_id, None)
        if execution is None:
            return
        ended_ns = time.time_ns() if execution.ended_ns is None else execution.ended_ns
        for path in execution.calls:
            execution.end_calls(path, ended_ns)
        for span in (*execution.nodes.values(), execution.span):
            span.end(ended_ns)

    def span_ids(self, execution_id: str, path: str | None) -> dict[str, str]:
        """Return the ids of the span of a node, or of its execution, as logs name them; {} without one."""
        execution = self._running.get(execution_id)
        if execution is None:
            return {}
        context = execution.span_at(path).get_span_context()
        return {
            "trace_id": format_trace_id(context.trace_id),
            "span_id": format_span_id(context.span_id),
        }

    def open_call(self, request: ModelRequest, scope: CallScope | None) -> ModelCallSpan:
        """Open the span of an attempt at a model call: below its node, or the caller's context."""
        execution = None if scope is None else self._running.get(scope.execution_id)
        node = None if scope is None or execution is None else execution.span_at(scope.path)
        span = self._tracer.start_span(
            f"chat {request.model}",
            context=None if node is None else set_span_in_context(node, Context()),
            kind=SpanKind.CLIENT,
            attributes=_present(
                {
                    _OPERATION: "chat",
                    "gen_ai.provider.name": request.provider,
                    "gen_ai.request.model": request.model,
                    "gen_ai.request.max_tokens": request.max_tokens,
                    "gen_ai.request.temperature": request.temperature,
                    "gen_ai.request.stream": True,
                    "gen_ai.output.type": "text" if request.schema is None else "json",
                    "gen_ai.conversation.id": None if execution is None else execution.conversation,
                }
            ),
        )
        if execution is not None and scope is not None:
            execution.tool_texts[scope.path] = {
                tool.name: tool.description for tool in request.tools
            }
        if self._content is not None and span.is_recording():
            span.set_attributes(self._content.of_request(request))
        return ModelCallSpan(span, self._content)

    @contextmanager
    def planning(self, goal: str) -> Generator[None]:
        """Open the span of a plan that is written outside of executions; its model calls are below it."""
        span = self._tracer.start_span(
            "plan planner", attributes={_OPERATION: _PLAN, "gen_ai.agent.name": "planner"}
        )
        if self._content is not None:
            span.set_attributes(self._content.of_goal(goal))
        # Without the SDK's own record of an exception, which has its text.
        with use_span(
            span, end_on_exit=True, record_exception=False, set_status_on_exception=False
        ):
            try:
                yield
            except PlanwaveError as error:
                _set_error(span, error.code)
                raise

    async def close(self) -> None:
        """Send what is left; without an answer of the collector that takes the exporter's timeout."""
        if isinstance(self._provider, _OwnProvider):
            await asyncio.to_thread(self._provider.shutdown)

    def _node_entered(self, execution: _TracedExecution, event: Event) -> None:
        """Open the span of an attempt that starts, or mark an open one as running again."""
        path = event.path or ""
        if path in execution.nodes:
            execution.nodes[path].set_attribute(_NODE_STATUS, "running")
        else:
            self._open_node(execution, path, event.attempt, _time_ns(event))

    def _open_node(
        self, execution: _TracedExecution, path: str, attempt: int | None, start_ns: int
    ) -> None:
        location = execution.graphs.locate(path)
        node_type, name = location.document.get("type"), location.document.get("name")
        operation = _AGENT_OPERATIONS.get(str(node_type))
        agent_name = None if operation is None else str(name or location.id)
        execution.nodes[path] = self._tracer.start_span(
            f"node {location.id}" if operation is None else f"{operation} {agent_name}",
            context=set_span_in_context(execution.span_around(location), Context()),
            start_time=start_ns,
            attributes=_present(
                {
                    _OPERATION: operation,
                    "gen_ai.agent.name": agent_name,
                    "gen_ai.conversation.id": operation and execution.conversation,
                    "planwave.node.path": path,
                    "planwave.node.name": name,
                    "planwave.node.type": node_type,
                    "planwave.node.attempt": attempt,
                    _NODE_STATUS: "running",
                }
            ),
        )

    def _node_completed(self, execution: _TracedExecution, event: Event) -> None:
        if self._content is not None and event.path in execution.outputs:
            execution.outputs[event.path] = event.data.get("outputs")
        _node_ended(execution, event)

    def _execution_completed(self, execution: _TracedExecution, event: Event) -> None:
        if self._content is not None:
            execution.span.set_attributes(self._content.of_result(execution.result()))
        _execution_ended(execution, event)

    def _node_emitted(self, execution: _TracedExecution, event: Event) -> None:
        kind = event.data.get("event_type")
        if kind in TOOL_CALL_STARTS:
            self._open_tool_call(execution, event)
        elif kind in TOOL_CALL_ENDS:
            self._tool_call_ended(execution, event)
        else:
            typed = typed_event(event)
            if typed.type == "nested_run.opened":
                execution.nested.record(typed.path, typed.data)

    def _open_tool_call(self, execution: _TracedExecution, event: Event) -> None:
        """Open the span of a tool call; one that goes on after a pause is open already."""
        path, call = event.path or "", _call_of(event)
        call_id, name, run_key = (
            str(call.get("call_id")),
            str(call.get("name")),
            call.get("run_key"),
        )
        if call_id in execution.calls.get(path, _NO_CALLS):
            return
        span = self._tracer.start_span(
            f"execute_tool {name}",
            context=set_span_in_context(execution.span_at(path), Context()),
            start_time=_time_ns(event),
            attributes=_present(
                {
                    _OPERATION: "execute_tool",
                    "gen_ai.tool.name": name,
                    "gen_ai.tool.description": execution.tool_texts.get(path, {}).get(name) or None,
                    "gen_ai.tool.call.id": call_id,
                    "gen_ai.tool.type": "function",
                    "planwave.tool.kind": str(call.get("kind")),
                }
            ),
        )
        if self._content is not None:
            span.set_attribute(
                "gen_ai.tool.call.arguments", self._content.text(call.get("arguments"))
            )
        execution.calls.setdefault(path, {})[call_id] = span
        if run_key is not None:
            execution.callers[nested_prefix(path, str(run_key))] = span

    def _tool_call_ended(self, execution: _TracedExecution, event: Event) -> None:
        path, call = event.path or "", _call_of(event)
        # Without effect where it was not made: rejected, not valid, or its result is a recorded one.
        span = execution.take_call(path, str(call.get("call_id")))
        error: Mapping[str, Any] | None = call.get("error")
        if error is not None:
            _set_error(span, str(error.get("code") or _OTHER_ERROR))
        elif self._content is not None and span.is_recording():
            span.set_attribute("gen_ai.tool.call.result", self._content.text(call.get("result")))
        span.end(_time_ns(event))


def open_tracer(processor: SpanProcessor, content: SpanContent | None) -> ExecutionTracer:
    """Return a tracer whose spans a processor receives when they end; closing the one closes the other."""
    return ExecutionTracer(_OwnProvider(processor), content)


def open_otlp_tracer(content: SpanContent | None) -> ExecutionTracer:
    """Return a tracer that sends spans over OTLP, as the environment variables ``OTEL_*`` say."""
    return open_tracer(BatchSpanProcessor(OTLPSpanExporter()), content)


def _plan_revised(execution: _TracedExecution, event: Event) -> None:
    execution.set_graph(changed_graph(execution.graph, event.data["graph_change"]))


def _execution_paused(execution: _TracedExecution, event: Event) -> None:
    execution.span.set_attribute(_EXECUTION_STATUS, "paused")


def _execution_resumed(execution: _TracedExecution, event: Event) -> None:
    execution.span.set_attribute(_EXECUTION_STATUS, "executing")


def _execution_ended(execution: _TracedExecution, event: Event) -> None:
    execution.span.set_attribute(_EXECUTION_STATUS, event.type.removeprefix("execution."))
    if event.type == "execution.failed":
        _set_error(execution.span, _error_code(event))
    execution.ended_ns = _time_ns(event)


def _node_waits(execution: _TracedExecution, event: Event) -> None:
    if event.path in execution.nodes:
        execution.nodes[event.path].set_attribute(_NODE_STATUS, "waiting")


def _node_ended(execution: _TracedExecution, event: Event) -> None:
    span = execution.nodes.pop(event.path or "", None)
    if span is None:
        return  # it did not run: its result was given or reused
    execution.end_calls(event.path or "", _time_ns(event))
    span.set_attribute(_NODE_STATUS, event.type.removeprefix("node."))
    if event.type in ("node.failed", "node.retrying"):
        _set_error(span, _error_code(event))
    if event.data.get("handled"):
        span.set_attribute("planwave.node.handled", True)
    span.end(_time_ns(event))


def _conversation_id(state: ExecutionState) -> str | None:
    """Return the id of the chat that an execution replies in; None outside of chats."""
    trigger: Any = state.trigger
    return str(field_of(trigger, "id")) if field_of(trigger, "kind") == _CHAT else None


def _call_of(event: Event) -> Mapping[str, Any]:
    data = event.data.get("data")
    return cast("Mapping[str, Any]", data) if isinstance(data, Mapping) else {}


def _reply_attributes(reply: ModelReply) -> dict[str, Any]:
    usage = reply.usage
    attributes: dict[str, Any] = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.response.finish_reasons": (reply.finish_reason,),
        "gen_ai.response.id": reply.response_id or None,
        "gen_ai.response.model": reply.response_model or None,
        "planwave.call.cost_usd": usage.cost_usd,
    }
    if usage.cache_read_tokens or usage.cache_write_tokens:
        attributes["gen_ai.usage.cache_read.input_tokens"] = usage.cache_read_tokens
        attributes["gen_ai.usage.cache_creation.input_tokens"] = usage.cache_write_tokens
    if usage.reasoning_tokens:
        attributes["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning_tokens
    return _present(attributes)


def _server_attributes(url: str) -> dict[str, str | int]:
    parts = urlsplit(url)
    port = parts.port or (80 if parts.scheme == "http" else 443)
    return {"server.address": parts.hostname or "", "server.port": port}


def _set_error(span: Span, code: str) -> None:
    span.set_attribute(_ERROR_TYPE, code)
    span.set_status(StatusCode.ERROR)


def _error_code(event: Event) -> str:
    error: Mapping[str, Any] = event.data.get("error") or {}
    return str(error.get("code") or _OTHER_ERROR)


def _time_ns(event: Event) -> int:
    since = datetime.fromisoformat(event.at) - _EPOCH
    return since // timedelta(microseconds=1) * 1_000


def _present(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def _headers(context: Context | None = None) -> dict[str, str]:
    headers: dict[str, str] = {}
    _PROPAGATOR.inject(headers, context)
    return headers


def _resource() -> Resource:
    """Return the resource; the environment names it, else it is ``planwave``."""
    resource = Resource.create({SERVICE_VERSION: version("planwave")})
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "planwave"}))
    return resource
