"""Spans of executions, read from the exporter of the OpenTelemetry SDK."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from opentelemetry import context
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes, server_attributes
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from planwave.bootstrap import open_service
from planwave.errors import InputError, NodeError, PlanInvalid
from planwave.events import TERMINAL
from planwave.graph.model import DataValue, Node, Policy, Retry
from planwave.graph.operations import AddNode
from planwave.graph.protocols import ExecutionResult
from planwave.graph.reading.documents import read_graph
from planwave.nodes.agents.tool import Tool
from planwave.nodes.services import NodeServices
from planwave.planner.planner import Planner
from planwave.providers.protocols import CallReport, ModelReply, ModelRequest, Usage
from planwave.redaction import Redactor
from planwave.service import tracing, tracing_content
from planwave.service.dependencies import ServiceDependencies
from planwave.service.flows.flow_queries import FlowRef
from planwave.service.service import Service
from planwave.service.tracing_content import SpanContent
from planwave.settings import Settings
from planwave.storage.sqlite.store import SqliteStore
from tests.support.graph.builders import make_edge, make_graph, make_plan, text_node
from tests.support.llm.client_harness import MODELS, ModelClientHarness, model_client_harness
from tests.support.llm.fake_llm_server import ErrorReply, ReplyStep, TextReply, ToolCallReply
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.nodes.agent_runs import Kit, Script, agent_graph, calls, scripted, tool
from tests.support.nodes.held_nodes import FailingNode, HeldNode
from tests.support.nodes.nested_graphs import graph_document, node_document
from tests.support.nodes.node_context import services_with
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies, execute_goal
from tests.support.service.spans import KeptSpans, context_of, in_order, traceparent_of
from tests.unit.service.executions.test_changes import CHAIN, Held, running
from tests.unit.service.executions.test_fork_graphs import edited, opened

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
STATUS = ("planwave.execution.status", "planwave.node.status", "planwave.call.outcome")


class FlakyNode:
    """Fails in its first attempt."""

    node_type = "flaky"
    template_fields = None

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        if context.attempt == 1:
            raise NodeError("SECRET of an error", code="made-up")
        return ExecutionResult({"output": DataValue("text", "SECRET result")})


def asking(node_id: str, provider: str = "openai", **more: Any) -> Node:
    data = {"provider": provider, "model": MODELS[provider], "prompt": "SECRET prompt"}
    return Node(node_id, "llm", node_id, data={**data, "maxTokens": 9}, **more)


def loop_over(items: list[str]) -> Node:
    body = graph_document(node_document("louder", "text", text="{{ item }}!"))
    return Node("shout", "loop", "Shout", data={"items": items, "body": body})


@asynccontextmanager
async def models(
    *replies: ReplyStep,
    content: SpanContent | None = None,
) -> AsyncGenerator[tuple[KeptSpans, ModelClientHarness, dict[str, Any]]]:
    """Give kept spans, a fake provider whose calls are among them, and what a service needs of both."""
    kept = KeptSpans(content)
    async with model_client_harness(*replies, open_trace=kept.tracer.open_call) as harness:

        def services(goal: str) -> NodeServices:
            return NodeServices(harness.client, AnyProvider(), goal)

        yield kept, harness, {"tracer": kept.tracer, "node_services": services}


def scripted_models(script: Script) -> Callable[[str], NodeServices]:
    """Return the services of nodes whose models are a function, for a service."""
    services, _ = services_with(lambda request: [script(request)])
    return lambda goal: services


class AnyProvider(FakeProviders):
    """Every provider and model is available."""

    def resolve(self, provider: str | None, model: str | None) -> tuple[str, str]:
        return provider or "openai", model or "gpt"


async def test_spans_show_nested_runs_retries_failures_and_model_calls() -> None:
    graph = make_graph(
        asking("ask"),
        loop_over(["a", "b"]),
        Node("again", "flaky", "Again", policy=Policy(retry=Retry(attempts=2))),
        Node("never", "broken", "Never"),
        text_node("after"),
        edges=[("never", "after")],
    )
    overloaded = ErrorReply(503, "server_error")
    async with models(overloaded, TextReply("SECRET reply")) as (kept, _, parts):
        service = Service(dependencies(types=[FlakyNode(), FailingNode()], **parts))
        async with service:
            record = await service.executions.execute(make_plan(graph))
            await service.executions.wait(record.execution_id)
    root = "invoke_workflow"
    assert kept.tree(*STATUS, "planwave.node.attempt", "error.type") == [
        (root, "failed", None, None, None, "node-failed"),
        (f"{root} / node again", None, "completed", None, 2, None),
        (f"{root} / node again", None, "retrying", None, 1, "made-up"),
        (f"{root} / node ask", None, "completed", None, 1, None),
        (f"{root} / node ask / chat gpt-4o-mini", None, None, "completed", None, None),
        (
            f"{root} / node ask / chat gpt-4o-mini",
            None,
            None,
            "provider-overloaded",
            None,
            "provider-overloaded",
        ),
        (f"{root} / node never", None, "failed", None, 1, "node-failed"),
        (f"{root} / node shout", None, "completed", None, 1, None),
        (f"{root} / node shout / node louder", None, "completed", None, 1, None),
        (f"{root} / node shout / node louder", None, "completed", None, 1, None),
    ]


async def test_spans_follow_the_conventions_and_hold_no_text() -> None:
    async with models(TextReply("SECRET reply")) as (kept, _, parts):
        graph = make_graph(asking("ask"), Node("again", "flaky", "Again"))
        async with Service(dependencies(types=[FlakyNode()], **parts)) as service:
            record = await service.executions.execute(make_plan(graph))
            await service.executions.wait(record.execution_id)
    (call,), (node,), (execution,) = map(
        kept.named, ("chat gpt-4o-mini", "node ask", "invoke_workflow")
    )
    assert call.kind is SpanKind.CLIENT
    known: dict[str, Any] = {**(call.attributes or {})}
    assert 0 < known.pop("planwave.call.cost_usd") < 1
    assert known.pop("server.port") > 0
    assert known == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.stream": True,
        "gen_ai.output.type": "text",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.model": "gpt-4o-mini",
        "gen_ai.response.time_to_first_chunk": 0.0,
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7,
        "planwave.call.outcome": "completed",
        "server.address": "127.0.0.1",
    }
    assert node.attributes == {
        "planwave.node.path": "ask",
        "planwave.node.name": "ask",
        "planwave.node.type": "llm",
        "planwave.node.attempt": 1,
        "planwave.node.status": "completed",
    }
    assert execution.attributes == {
        "gen_ai.operation.name": "invoke_workflow",
        "planwave.execution.id": record.execution_id,
        "planwave.execution.title": "A title",
        "planwave.execution.status": "failed",
        "planwave.plan.id": record.plan_id,
        "planwave.plan.hash": make_plan(graph).hash,
        "planwave.plan.revision": 1,
        "error.type": "made-up",
    }
    assert (execution.status.status_code, call.status.status_code) == (
        StatusCode.ERROR,
        StatusCode.UNSET,
    )
    assert execution.resource.attributes["service.name"] == "planwave"
    assert _ascend(execution.start_time, node.start_time, call.start_time)
    assert _ascend(call.end_time, node.end_time, execution.end_time)
    assert not [span.name for span in kept.ended if "SECRET" in span.to_json()]


def _ascend(*times: int | None) -> bool:
    return list(times) == sorted(time or 0 for time in times)


async def test_tool_calls_have_spans_with_what_other_agents_do_below_them() -> None:
    async def broken(**arguments: Any) -> Any:
        raise RuntimeError("SECRET error of a tool")

    def reply(request: ModelRequest) -> ModelReply | str:
        if any(turn.role == "tool" for turn in request.messages):
            return "SECRET reply"
        if request.prompt.startswith("Find out"):
            return calls(("look", {"where": "SECRET"}), ("break", {}), ("nothing", {}))
        return calls(("look", {"where": "SECRET"}), ("delegate_expert", {"task": "SECRET"}))

    lead = node_document("lead", "agent", userPrompt="Go")
    expert = node_document("expert", "agent", userPrompt="Find out: {{ input }}")
    document = agent_graph(lead, expert, edges=[("expert", "lead")], kit_of=("lead", "expert"))
    kept, kit = KeptSpans(), Kit([tool("look"), tool("break", broken)])
    parts = dependencies(types=[kit], tracer=kept.tracer, node_services=scripted_models(reply))
    async with Service(parts) as service:
        record = await service.executions.execute(make_plan(read_graph(document)[0]))
        await service.executions.wait(record.execution_id)
    lead_span = "invoke_workflow / invoke_agent lead"
    expert_span = f"{lead_span} / execute_tool delegate_expert / invoke_agent expert"
    about = ("gen_ai.tool.call.id", "planwave.tool.kind", "error.type")
    assert kept.tree(*about) == [
        ("invoke_workflow", None, None, None),
        (lead_span, None, None, None),
        (f"{lead_span} / execute_tool delegate_expert", "c2", "agent", None),
        (expert_span, None, None, None),
        (f"{expert_span} / execute_tool break", "c2", "tool", "tool-failed"),
        (f"{expert_span} / execute_tool look", "c1", "tool", None),
        (f"{lead_span} / execute_tool look", "c1", "tool", None),
    ]
    (failed,) = kept.named("execute_tool break")
    assert (failed.kind, failed.status.status_code) == (SpanKind.INTERNAL, StatusCode.ERROR)
    assert failed.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "break",
        "gen_ai.tool.call.id": "c2",
        "gen_ai.tool.type": "function",
        "planwave.tool.kind": "tool",
        "error.type": "tool-failed",
    }
    assert not [span.name for span in kept.ended if "SECRET" in span.to_json()]


def scripted_agent(reply: Script, kept: KeptSpans, *tools: Tool) -> ServiceDependencies:
    return dependencies(
        types=[Kit([*tools])], tracer=kept.tracer, node_services=scripted_models(reply)
    )


async def test_agent_has_its_own_operation() -> None:
    kept = KeptSpans()
    async with Service(scripted_agent(lambda request: "Done", kept)) as service:
        document = agent_graph(node_document("lead", "agent", userPrompt="Go"), kit_of=())
        document["nodes"][0]["name"] = "Support clerk"
        record = await service.executions.execute(make_plan(read_graph(document)[0]))
        await service.executions.wait(record.execution_id)
    (agent,) = kept.named("invoke_agent Support clerk")
    assert agent.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "Support clerk",
        "planwave.node.path": "lead",
        "planwave.node.name": "Support clerk",
        "planwave.node.type": "agent",
        "planwave.node.attempt": 1,
        "planwave.node.status": "completed",
    }


async def test_with_content_spans_hold_what_was_said_without_secrets() -> None:
    content = SpanContent(Redactor({"SHOP_KEY": "sk-shop-1234567890"}))
    told: list[str] = []

    async def look(**arguments: Any) -> Any:
        return {"found": "the key is sk-shop-1234567890", "where": arguments["where"]}

    async with models(TextReply("It is blue."), content=content) as (kept, _, parts):
        ask = asking("ask")
        ask = ask._replace(data={**ask.data, "system": "Be brief.", "prompt": "Which colour?"})
        async with Service(dependencies(**parts)) as service:
            record = await service.executions.execute(make_plan(make_graph(ask)))
            await service.executions.wait(record.execution_id)
    (call,) = kept.named("chat gpt-4o-mini")
    assert content_of(call) == {
        "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
        "gen_ai.input.messages": [
            {"role": "user", "parts": [{"type": "text", "content": "Which colour?"}]}
        ],
        "gen_ai.output.messages": [
            {
                "role": "assistant",
                "parts": [{"type": "text", "content": "It is blue."}],
                "finish_reason": "stop",
            }
        ],
    }
    kept = KeptSpans(content)
    replies = scripted(calls(("look", {"where": "shelf sk-shop-1234567890"})), "Found")
    async with Service(scripted_agent(replies, kept, tool("look", look))) as service:
        document = agent_graph(node_document("lead", "agent", userPrompt="Go"), kit_of=("lead",))
        record = await service.executions.execute(make_plan(read_graph(document)[0]))
        await service.executions.wait(record.execution_id)
    (called,) = kept.named("execute_tool look")
    assert content_of(called) == {
        "gen_ai.tool.call.arguments": {"where": "shelf [secret SHOP_KEY]"},
        "gen_ai.tool.call.result": {
            "found": "the key is [secret SHOP_KEY]",
            "where": "shelf [secret SHOP_KEY]",
        },
    }
    told += [span.to_json() for span in kept.ended]
    assert not [text for text in told if "sk-shop" in text]


def content_of(span: ReadableSpan) -> dict[str, Any]:
    """Return the attributes of a span that hold JSON."""
    held = (span.attributes or {}).items()
    return {name: json.loads(value) for name, value in held if str(value)[:1] in '[{"'}


def test_names_of_attributes_are_those_of_the_conventions() -> None:
    pattern = re.compile(r'"((?:gen_ai|server|error)\.[a-z_.]+)"')
    sources = [Path(module.__file__ or "") for module in (tracing, tracing_content)]
    names = {name for path in sources for name in pattern.findall(path.read_text("utf-8"))}
    conventions = {
        value
        for module in (gen_ai_attributes, server_attributes, error_attributes)
        for value in vars(module).values()
        if isinstance(value, str)
    }
    assert len(names) > 20
    assert names <= conventions


async def test_with_content_the_span_of_a_run_holds_what_it_was_given_and_gave() -> None:
    kept = KeptSpans(SpanContent(Redactor({"SHOP_KEY": "sk-shop-1234567890"})))
    graph = make_graph(text_node("a"), text_node("z", "{{ input }}!"), edges=[("a", "z")])
    async with Service(dependencies(tracer=kept.tracer)) as service:
        inputs = {"a": {"output": "Ada, sk-shop-1234567890"}}
        record = await service.executions.execute(make_plan(graph), inputs=inputs)
        await service.executions.wait(record.execution_id)
    (run,) = kept.named("invoke_workflow")
    held = content_of(run)
    (asked,), (gave,) = held["gen_ai.input.messages"], held["gen_ai.output.messages"]
    assert [part["content"] for part in asked["parts"]] == [
        "a goal", '{"a":{"output":"Ada, [secret SHOP_KEY]"}}',
    ]  # fmt: skip
    assert gave == {
        "role": "assistant",
        "parts": [{"type": "text", "content": "Ada, [secret SHOP_KEY]!"}],
        "finish_reason": "stop",
    }


async def test_spans_of_a_reply_in_a_chat_name_the_chat_and_say_what_a_tool_is_for() -> None:
    look, said = ToolCallReply([("look", {"where": "here"})]), TextReply("Done")
    lead = node_document(
        "lead", "agent", userPrompt="Go", provider="openai", model="gpt-4o-mini", maxTokens=9
    )
    triggers = ({"id": "chat1", "kind": "chat_start"}, {"id": "t1", "kind": "schedule"})
    async with (
        models(look, said, look, said) as (kept, _, parts),
        Service(dependencies(types=[Kit([tool("look")])], **parts)) as service,
    ):
        for trigger in triggers:
            plan = make_plan(read_graph(agent_graph(lead, kit_of=("lead",)))[0])
            record = await service.executions.execute(plan, trigger=trigger)
            await service.executions.wait(record.execution_id)
    names: dict[str, list[Mapping[str, Any]]] = {}
    for span in kept.ended:
        names.setdefault(span.name.partition(" ")[0], []).append(span.attributes or {})
    told = {
        name: [each.get("gen_ai.conversation.id") for each in all_] for name, all_ in names.items()
    }
    assert told == {
        "chat": ["chat1", "chat1", None, None],
        "execute_tool": [None, None],
        "invoke_agent": ["chat1", None],
        "invoke_workflow": ["chat1", None],
    }
    assert [each["gen_ai.tool.description"] for each in names["execute_tool"]] == ["Does look."] * 2


def test_tokens_of_the_reasoning_are_told_where_there_are_any() -> None:
    kept = KeptSpans()
    for usage in (Usage(9, 8, reasoning_tokens=5), Usage(9, 8)):
        span = kept.tracer.open_call(ModelRequest("openai", "gpt", "Go"), None)
        reply = ModelReply("Done", "openai", "gpt", "stop", usage)
        span.end(CallReport("openai", "gpt", "completed", reply=reply))
    name = "gen_ai.usage.reasoning.output_tokens"
    assert [(span.attributes or {}).get(name) for span in kept.ended] == [5, None]


async def test_plan_has_a_span_with_its_model_calls_below_it() -> None:
    async with models(TextReply("no plan"), TextReply("no plan"), TextReply("no plan")) as kit:
        kept, harness, parts = kit
        planner = Planner(harness.client, AnyProvider(), library_registry())
        async with Service(replace(dependencies(**parts), planner=planner)) as service:
            with pytest.raises(PlanInvalid):
                await service.plans.create("SECRET goal", "openai", "gpt-4o-mini")
    assert kept.tree("gen_ai.operation.name", "gen_ai.agent.name", "error.type") == [
        ("plan planner", "plan", "planner", "plan-invalid"),
        ("plan planner / chat gpt-4o-mini", "chat", None, None),
        ("plan planner / chat gpt-4o-mini", "chat", None, None),
        ("plan planner / chat gpt-4o-mini", "chat", None, None),
    ]
    assert not [span.name for span in kept.ended if "SECRET" in span.to_json()]


async def test_tool_call_that_is_cut_off_ends_with_its_node() -> None:
    began, kept = asyncio.Event(), KeptSpans()

    async def hang(**arguments: Any) -> Any:
        began.set()
        await asyncio.Event().wait()

    kit, hanging = Kit([tool("hang", hang)]), scripted_models(scripted(calls(("hang", {}))))
    parts = dependencies(types=[kit], tracer=kept.tracer, node_services=hanging)
    async with Service(parts) as service:
        record = await service.executions.execute(make_plan(read_graph(agent_graph())[0]))
        await began.wait()
        await service.executions.cancel(record.execution_id)
        await service.executions.wait(record.execution_id)
    (call,), (node,) = kept.named("execute_tool hang"), kept.named("invoke_agent a")
    assert call.end_time == node.end_time
    assert (node.attributes or {})["planwave.node.status"] == "cancelled"


async def test_paused_execution_continues_in_its_trace() -> None:
    kept = KeptSpans()
    approved = make_edge("ask", "after", source_handle="approve")
    graph = make_graph(
        Node("ask", "approval", "Ask", data={"prompt": "Go on?"}),
        text_node("after"),
        edges=[approved],
    )
    async with Service(dependencies(tracer=kept.tracer)) as service:
        record = await service.executions.execute(make_plan(graph))
        await service.executions.wait(record.execution_id)
        root = "invoke_workflow"
        before = [(root, "paused", None), (f"{root} / node ask", None, "waiting")]
        assert kept.tree(*STATUS[:2]) == before
        (request,) = await service.executions.requests(record.execution_id)
        await service.executions.answer(
            record.execution_id, request.request_id, {"decision": "approve"}
        )
        await service.executions.wait(record.execution_id)
    after = [
        (root, "completed", None),
        (f"{root} / node after", None, "completed"),
        (f"{root} / node ask", None, "completed"),
    ]
    assert kept.tree(*STATUS[:2]) == in_order([*before, *after])
    traces = {context_of(span).trace_id for span in kept.ended}
    assert traces == {UUID(record.execution_id).int}


async def test_a_step_that_a_change_has_brought_is_traced_as_the_others_are() -> None:
    kept, work = KeptSpans(SpanContent(Redactor({}))), Held()
    async with opened(CHAIN, work, tracer=kept.tracer) as service:
        execution_id = await running(service, work)
        more = {"id": "more", "type": "joins", "name": "More", "data": {}}
        await service.changes.revise(execution_id, edited(CHAIN.to_document(), AddNode(more)))
        work.gate.set()
        await service.executions.wait(execution_id)
    (run,) = kept.named("invoke_workflow")
    (gave,) = content_of(run)["gen_ai.output.messages"]
    assert gave["parts"][0]["content"] == "a+b+c\n\nmore"
    types = {span.name: (span.attributes or {}).get("planwave.node.type") for span in kept.ended}
    assert types["node more"] == types["node a"] == "joins"


async def test_interrupted_execution_ends_its_spans_and_continues_in_its_trace(
    tmp_path: Path,
) -> None:
    kept, held = KeptSpans(), HeldNode()
    more: dict[str, Any] = {"types": [held], "tracer": kept.tracer}
    async with Service(dependencies(store=SqliteStore.open(tmp_path), **more)) as service:
        record = await service.executions.execute(make_plan(make_graph(Node("h", "held", "H"))))
        await held.started.wait()
        await service.drain(0)
    root = "invoke_workflow"
    cut_off = [(root, "executing", None), (f"{root} / node h", None, "running")]
    assert kept.tree(*STATUS[:2]) == cut_off
    held.release.set()
    async with Service(dependencies(store=SqliteStore.open(tmp_path), **more)) as service:
        await service.recover()
        assert [event.type async for event in service.executions.watch(record.execution_id)][
            -1
        ] in TERMINAL
    done = [(root, "completed", None), (f"{root} / node h", None, "completed")]
    assert kept.tree(*STATUS[:2]) == in_order([*cut_off, *done])
    assert len({context_of(span).trace_id for span in kept.ended}) == 1


async def test_execution_that_cannot_start_has_a_failed_span(tmp_path: Path) -> None:
    kept = KeptSpans()
    parts = dependencies(store=SqliteStore.open(tmp_path), types=[FailingNode()])
    async with Service(parts) as service:
        record = await service.executions.create(make_plan(make_graph(Node("x", "broken", "X"))))
    parts = dependencies(store=SqliteStore.open(tmp_path), tracer=kept.tracer)
    async with Service(parts) as service:
        await service.executions.start(record.execution_id)
        await service.executions.wait(record.execution_id)
    assert kept.tree(STATUS[0], "error.type") == [
        ("invoke_workflow", "failed", "unknown-node-type")
    ]


@asynccontextmanager
async def api(parts: dict[str, Any]) -> AsyncGenerator[InProcessClient]:
    made = dependencies(**parts)
    made = replace(made, catalogue=library_registry(AnyProvider()), providers=AnyProvider())
    async with in_process_client(made, tracing=True) as client:
        yield client


@pytest.mark.parametrize("provider", ["openai", "anthropic", "box"])
async def test_trace_context_goes_from_the_request_to_the_model_call(provider: str) -> None:
    document = make_graph(asking("ask", provider)).document
    async with models(TextReply("fine")) as (kept, harness, parts), api(parts) as client:
        body = {"graph": document, "start": True}
        headers = {"traceparent": CALLER, "tracestate": "shop=1"}
        made = await client.post("/api/execute", json=body, headers=headers)
        assert made.status_code == 202, made.text
        await client.service.executions.wait(made.json()["execution_id"])
    (execution,) = kept.named("invoke_workflow")
    assert execution.parent is not None
    assert (execution.parent.is_remote, f"{execution.parent.span_id:016x}") == (True, CALLER[36:52])
    (call,) = kept.named(f"chat {MODELS[provider]}")
    sent = harness.llm.requests[0].headers
    assert sent["traceparent"] == traceparent_of(call)
    assert sent["traceparent"][:35] == CALLER[:35]
    assert sent["tracestate"] == "shop=1"


async def test_span_of_a_flow_has_its_name_and_revision() -> None:
    kept = KeptSpans()
    async with Service(dependencies(tracer=kept.tracer)) as service:
        flow = await service.flows.create(
            "Weekly report", graph=make_graph(text_node("a")).document
        )
        record = await service.executions.execute(FlowRef(flow.plan_id))
        await service.executions.wait(record.execution_id)
    (execution,) = kept.named("invoke_workflow Weekly report")
    attributes = execution.attributes or {}
    assert attributes["planwave.flow"] == "Weekly report"
    assert attributes["planwave.plan.id"] == flow.plan_id
    assert attributes["planwave.plan.revision"] == 1


@pytest.mark.parametrize(
    ("sent", "is_parent"), [(CALLER, True), (CALLER[:-2] + "xx", False), (None, False)]
)
async def test_execution_started_later_has_the_parent_of_its_creation(
    sent: str | None, is_parent: bool
) -> None:
    kept = KeptSpans()
    async with api({"tracer": kept.tracer}) as client:
        headers = {} if sent is None else {"traceparent": sent}
        body = {"graph": make_graph(text_node("a")).document}
        made = (await client.post("/api/execute", json=body, headers=headers)).json()
        path = f"/api/execute/{made['execution_id']}/start"
        await client.post(path, headers={"traceparent": CALLER.replace("b7ad", "ffff")})
        await client.service.executions.wait(made["execution_id"])
        forking = f"/api/executions/{made['execution_id']}/fork"
        fork = await client.post_json(forking, {"start": True}, 202)
        await client.service.executions.wait(fork["execution_id"])
    execution, forked = kept.named("invoke_workflow")
    parent = None if execution.parent is None else f"{execution.parent.span_id:016x}"
    assert parent == (CALLER[36:52] if is_parent else None)
    assert forked.parent is None, "the request that forks has no trace"
    assert (forked.attributes or {})["planwave.execution.parent_id"] == made["execution_id"]


@pytest.mark.parametrize("sent", [None, CALLER, CALLER[:-2] + "00"])
async def test_the_operator_gets_the_page_of_the_trace_that_the_spans_are_in(
    sent: str | None,
) -> None:
    kept = KeptSpans()
    async with in_process_client(
        dependencies(tracer=kept.tracer),
        tracing=True,
        tracing_url_template="https://t.example/{trace_id}?of={trace_id}",
    ) as client:
        headers = {} if sent is None else {"traceparent": sent}
        body = {"graph": make_graph(text_node("a")).document, "start": True}
        made = (await client.post("/api/execute", json=body, headers=headers)).json()
        await client.service.executions.wait(made["execution_id"])
        looked = (await client.get(f"/api/executions/{made['execution_id']}")).json()
        (created, *_) = await client.service.executions.events(made["execution_id"])
    ids = {f"{context_of(span).trace_id:032x}" for span in kept.ended}
    if sent is not None and sent.endswith("00"):
        assert (ids, "trace_url" in looked) == (set(), False), "the caller's trace is not sampled"
    else:
        (trace_id,) = ids
        assert looked["trace_url"] == f"https://t.example/{trace_id}?of={trace_id}"
    assert "trace_id" not in created.data, "only the operator sees it"


async def test_a_run_that_was_not_traced_has_no_page_of_a_trace() -> None:
    template = "https://t.example/{trace_id}"
    async with in_process_client(dependencies(), tracing_url_template=template) as client:
        body = {"graph": make_graph(text_node("a")).document}
        made = (await client.post("/api/execute", json=body)).json()
        looked = (await client.get(f"/api/executions/{made['execution_id']}")).json()
    assert "trace_url" not in looked


async def test_model_call_outside_of_executions_belongs_to_the_trace_of_its_caller() -> None:
    async with models(TextReply("a plan")) as (kept, harness, _):
        token = context.attach(TraceContextTextMapPropagator().extract({"traceparent": CALLER}))
        try:
            await harness.ask("openai")
        finally:
            context.detach(token)
    (call,) = kept.named("chat gpt-4o-mini")
    assert call.parent is not None
    assert f"{call.parent.span_id:016x}" == CALLER[36:52]


async def test_spans_are_sent_to_the_collector_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collector() as (url, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        settings = Settings(storage_dir=tmp_path / "storage", tracing=True)
        async with open_service(settings) as service:
            record = await service.executions.execute(make_plan(make_graph(text_node("a"))))
            await service.executions.wait(record.execution_id)
    (path, body), *more = received
    assert (path, more) == ("/v1/traces", [])
    (sent,) = ExportTraceServiceRequest.FromString(body).resource_spans
    assert [span.name for span in sent.scope_spans[0].spans] == ["node a", "invoke_workflow"]
    names = {each.key: each.value.string_value for each in sent.resource.attributes}
    assert names["service.name"] == "planwave"


@contextmanager
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """Serve as an OTLP collector; give its URL, and what it has received."""
    received: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", received
        finally:
            server.shutdown()
            thread.join()


def test_missing_extra_is_an_error_that_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "planwave.service.tracing", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(InputError, match=r"opentelemetry\.sdk\.trace is not installed") as caught:
        open_service(Settings(storage_dir=tmp_path / "storage", tracing=True))
    assert caught.value.code == "tracing-unavailable"
    assert "planwave[otel]" in (caught.value.hint or "")
    assert not (tmp_path / "storage").exists()


async def test_lines_of_the_log_name_the_spans_of_an_execution() -> None:
    spans = KeptSpans()
    held = HeldNode()
    async with Service(
        dependencies(make_graph(Node("h", "held", "H")), types=[held], tracer=spans.tracer)
    ) as service:
        execution_id = (await execute_goal(service)).execution_id
        await held.started.wait()
        of_node = spans.tracer.span_ids(execution_id, "h")
        of_execution = spans.tracer.span_ids(execution_id, None)
        held.release.set()
        await service.executions.wait(execution_id)
    assert spans.tracer.span_ids(execution_id, None) == {}
    ids = {
        (f"{context_of(span).trace_id:032x}", f"{context_of(span).span_id:016x}")
        for span in spans.ended
    }
    assert {tuple(of_node.values()), tuple(of_execution.values())} <= ids
    assert of_node["trace_id"] == of_execution["trace_id"]
