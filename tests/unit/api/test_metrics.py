from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from prometheus_client import generate_latest
from prometheus_client.openmetrics import parser as openmetrics
from starlette.types import Message, Receive, Scope, Send

from planwave.api.app import create_app
from planwave.api.metrics import OTHER, BoundedLabel, PrometheusObserver
from planwave.api.middleware.request_context import RequestContextMiddleware
from planwave.errors import NodeError
from planwave.events import Event, ExecutionState
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Graph, Node
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.graph.reading.documents import read_graph
from planwave.providers.protocols import CallReport, ModelReply, Usage
from planwave.service.flows.flow_queries import FlowRef
from planwave.service.service import Service
from planwave.service.triggers.trigger_service import Trigger
from planwave.settings import Settings
from planwave.storage.notifications import NotificationRecord
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite.memory import MemoryStore
from planwave.storage.sqlite.store import SqliteStore
from tests.support.cpu_time import cpu_within
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.nodes.agent_runs import Kit, agent_graph, calls, scripted, tool
from tests.support.nodes.held_nodes import FailingNode, HeldNode
from tests.support.nodes.linked_nodes import LinkConsumer, LinkedSource, two_consumers_of_one_source
from tests.support.nodes.nested_graphs import graph_document, node_document
from tests.support.nodes.node_context import services_with
from tests.support.polling import until
from tests.support.server.in_process_client import asgi_client
from tests.support.server.metrics_scrape import MetricsScrape, scrape_metrics
from tests.support.service.dependencies import dependencies, execute_goal


class Flaky:
    """A node type that fails once and may be tried again."""

    node_type = "flaky"

    async def execute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> ExecutionResult:
        if context.attempt == 1:
            raise NodeError("not yet", retryable=True)
        return ExecutionResult({"output": DataValue("text", "there")})


def application(service: Service) -> FastAPI:
    """Make an application over a service that a test holds itself."""
    return create_app(Settings(), lambda _: service)


def state_of(execution_id: str, graph: Graph, flow: str | None = None) -> ExecutionState:
    document: Any = graph.to_document()
    return ExecutionState(execution_id, graph=document, flow=flow)


async def run(service: Service) -> str:
    record = await execute_goal(service)
    return (await service.executions.wait(record.execution_id)).status


async def test_executions_and_nodes_are_counted_by_type_and_status() -> None:
    once = Node("f", "flaky", "f", policy_document={"retry": {"attempts": 2}})
    nodes = (once, Node("b", "broken", "b"), text_node("t"), text_node("u"))
    graph = make_graph(*nodes, edges=[("f", "t"), ("b", "u")])
    service = Service(dependencies(graph, types=[Flaky(), FailingNode()]))
    async with asgi_client(application(service)) as client:
        assert await run(service) == "failed"
        found = await scrape_metrics(client)
    outcomes = {
        (node_type, status): found.value("planwave_nodes_total", type=node_type, status=status)
        for node_type in ("flaky", "broken", "text")
        for status in ("completed", "failed", "blocked")
    }
    assert {key: count for key, count in outcomes.items() if count} == {
        ("flaky", "completed"): 1,
        ("broken", "failed"): 1,
        ("text", "completed"): 1,
        ("text", "blocked"): 1,
    }
    assert found.value("planwave_node_retries_total", type="flaky") == 1
    assert found.value("planwave_node_duration_seconds_count", type="text") == 1
    assert found.value("planwave_executions_started_total") == 1
    assert found.value("planwave_executions_ended_total", status="failed", flow="") == 1
    assert found.value("planwave_execution_duration_seconds_count", status="failed", flow="") == 1
    assert found.value("planwave_execution_queue_seconds_count") == 1


async def test_steps_of_a_changed_plan_are_counted_by_their_types() -> None:
    graph = make_graph(Node("ask", "approval", "ask", data={"prompt": "Go on?"}))
    service = Service(dependencies(graph))
    async with asgi_client(application(service)) as client:
        execution_id = (await execute_goal(service)).execution_id
        await service.executions.wait(execution_id)
        wider = make_graph(*graph.nodes, text_node("more")).to_document()
        await service.changes.revise(execution_id, wider)
        await service.executions.wait(execution_id)
        found = await scrape_metrics(client)
    assert found.value("planwave_nodes_total", type="text", status="completed") == 1


async def test_link_cache_hits_and_misses_are_counted() -> None:
    service = Service(
        dependencies(two_consumers_of_one_source(), types=[LinkedSource(), LinkConsumer()])
    )
    async with asgi_client(application(service)) as client:
        assert await run(service) == "completed"
        found = await scrape_metrics(client)
    assert found.value("planwave_link_cache_hits_total") == 1
    assert found.value("planwave_link_cache_misses_total") == 1
    assert found.value("planwave_link_fan_out_sum") == 2, "nodes that used the one object"
    assert found.value("planwave_link_fan_out_count") == 1


async def test_gauges_show_current_executions_and_subscribers() -> None:
    held = HeldNode()
    service = Service(dependencies(make_graph(Node("h", "held", "h")), types=[held]))
    async with asgi_client(application(service)) as client:
        record = await execute_goal(service)
        await held.started.wait()
        async with service.executions.subscribe(record.execution_id) as following:
            found = await scrape_metrics(client)
            assert found.value("planwave_executions_running") == 1
            assert found.value("planwave_subscribers") == 1
            held.release.set()
            assert [frame.is_last async for frame in following][-1]
        await service.executions.wait(record.execution_id)
        await asyncio.sleep(0)  # how late they were is noted behind the subscribers
        found = await scrape_metrics(client)
        assert found.value("planwave_executions_running") == 0
        assert found.value("planwave_executions_queued") == 0
        assert found.value("planwave_subscribers") == 0
        assert found.value("planwave_event_lag_seconds_count") >= 1


async def test_executions_of_a_flow_have_its_name() -> None:
    service = Service(dependencies())
    async with asgi_client(application(service)) as client:
        flow = await service.flows.create(
            "shout", graph=graph_document(node_document("a", "text", text="x"))
        )
        record = await service.executions.execute(FlowRef(flow.plan_id))
        await service.executions.wait(record.execution_id)
        found = await scrape_metrics(client)
    labels = {"status": "completed", "flow": "shout"}
    assert found.value("planwave_executions_ended_total", **labels) == 1
    assert found.value("planwave_execution_duration_seconds_count", **labels) == 1


async def test_open_requests_are_counted_by_kind_also_those_of_an_earlier_process(
    tmp_path: Path,
) -> None:
    graph = make_graph(Node("ask", "approval", "Ask", data={"prompt": "Send it?"}))
    async with Service(dependencies(store=SqliteStore.open(tmp_path))) as first:
        record = await first.executions.execute(make_plan(graph))
        assert (await first.executions.wait(record.execution_id)).status == "paused"
    in_two_minutes = lambda: datetime.now(UTC) + timedelta(minutes=2)  # noqa: E731
    second = Service(dependencies(store=SqliteStore.open(tmp_path), now=in_two_minutes))
    async with asgi_client(application(second)) as client:
        await second.recover()
        (request,) = await second.executions.requests(record.execution_id)
        await until(lambda: second.executions._answer_deadlines.requests() != [])
        found = await scrape_metrics(client)
        assert found.value("planwave_requests_open", kind="approval") == 1
        assert 120 <= found.value("planwave_request_age_seconds") < 300
        assert found.value("planwave_store_bytes") > 4_096
        await second.executions.answer(
            record.execution_id, request.request_id, {"decision": "approve"}
        )
        await second.executions.wait(record.execution_id)
        found = await scrape_metrics(client)
        assert found.labels("planwave_requests_open", "kind") == set()
        assert found.value("planwave_request_age_seconds") == 0


async def test_executions_that_wait_for_another_process_are_counted() -> None:
    store = MemoryStore()
    created = datetime(2026, 1, 1, tzinfo=UTC)
    later = lambda: created + timedelta(seconds=90)  # noqa: E731
    for name in ("one", "two"):
        record = ExecutionRecord(name, None, "t", "g", "starting", created.isoformat(), queued=True)
        await store.create_execution(record, [])
    async with asgi_client(application(Service(dependencies(store=store, now=later)))) as client:
        found = await scrape_metrics(client)
        assert found.value("planwave_executions_waiting") == 2
        assert found.value("planwave_executions_waiting_age_seconds") == 90
        assert found.value("planwave_executions_queued") == 0, "this process has none of them"


async def test_calls_of_tools_are_counted_by_kind_and_outcome() -> None:
    async def broken(**arguments: Any) -> Any:
        raise RuntimeError("no such shelf")

    replies = scripted(calls(("look", {}), ("break", {}), ("nothing", {})), "Done")
    services, _ = services_with(lambda request: [replies(request)])
    kit = Kit([tool("look"), tool("break", broken)])
    service = Service(dependencies(types=[kit], node_services=lambda goal: services))
    async with asgi_client(application(service)) as client:
        record = await service.executions.execute(make_plan(read_graph(agent_graph())[0]))
        await service.executions.wait(record.execution_id)
        found = await scrape_metrics(client)
    count = partial(found.value, "planwave_tool_calls_total", kind="tool")
    assert [count(outcome=each) for each in ("completed", "tool-failed", "unknown-tool")] == [1] * 3
    assert found.value("planwave_tool_call_duration_seconds_count", kind="tool") == 3


async def test_event_of_a_stranger_that_looks_like_a_call_of_a_tool_breaks_nothing() -> None:
    metrics = PrometheusObserver()
    odd = [None, "text", {"kind": {}, "error": "x", "duration_s": "y"}, {"error": {"code": []}}]
    for data in odd:
        event = {"event_type": "tool_call_end", "data": data}
        metrics.published([Event("e", 1, "now", "node.event", "a", 1, event)])
    assert (
        metrics_of(metrics).value("planwave_tool_calls_total", kind="other", outcome="other") == 2
    )


def test_pauses_for_a_budget_notifications_and_recoveries_are_counted() -> None:
    metrics = PrometheusObserver()
    for request in ({"kind": "budget"}, {"kind": "plan-approval"}, None):
        metrics.published(
            [Event("e", 1, "now", "execution.paused", None, None, {"request": request})]
        )
    sent = NotificationRecord("m", "t", "e", 1, "execution.completed", "now", "now", "now")
    for status in ("pending", "pending", "delivered", "dead"):
        metrics.notification_attempted(replace(sent, status=status))
    metrics.recovered("e", "resumed")
    trigger = Trigger("t", "p", "n", "webhook", "now", None, True, "", "flow")
    metrics.trigger_delivered(trigger, "rejected", "it is not authenticated", None)
    found = metrics_of(metrics)
    assert found.value("planwave_budget_pauses_total") == 1
    count = partial(found.value, "planwave_notifications_total")
    assert [count(outcome=each) for each in ("pending", "delivered", "dead")] == [2, 1, 1]
    assert found.value("planwave_recoveries_total", outcome="resumed") == 1
    rejected = {"kind": "webhook", "outcome": "rejected"}
    assert found.value("planwave_trigger_deliveries_total", **rejected) == 1


async def test_execution_cancelled_before_start_is_counted_as_ended() -> None:
    service = Service(dependencies(make_graph(text_node("a"))))
    async with asgi_client(application(service)) as client:
        plan = await service.plans.create("do it")
        record = await service.executions.create(plan.plan_id)
        await service.executions.cancel(record.execution_id)
        found = await scrape_metrics(client)
    assert found.value("planwave_executions_started_total") == 0
    assert found.value("planwave_executions_ended_total", status="cancelled", flow="") == 1
    assert found.labels("planwave_nodes_total", "type") == set()


async def test_preset_nodes_are_not_counted() -> None:
    service = Service(dependencies(make_graph(text_node("a"), text_node("b"), edges=[("a", "b")])))
    async with asgi_client(application(service)) as client:
        record = await execute_goal(service, inputs={"a": {"output": "given"}})
        await service.executions.wait(record.execution_id)
        found = await scrape_metrics(client)
    assert found.value("planwave_nodes_total", type="text", status="completed") == 1


async def test_counters_never_decrease() -> None:
    service = Service(dependencies(make_graph(Node("b", "broken", "b")), types=[FailingNode()]))
    async with asgi_client(application(service)) as client:
        before = await scrape_metrics(client)
        for _ in range(2):
            await run(service)
            after = await scrape_metrics(client)
            assert all(after.monotonic[key] >= value for key, value in before.monotonic.items())
            assert after.monotonic != before.monotonic
            before = after


async def test_applications_have_separate_metrics() -> None:
    one, other = (Service(dependencies(make_graph(text_node("a")))) for _ in range(2))
    async with asgi_client(application(one)) as client, asgi_client(application(other)) as quiet:
        await run(one)
        assert (await scrape_metrics(client)).value("planwave_executions_started_total") == 1
        assert (await scrape_metrics(quiet)).value("planwave_executions_started_total") == 0


def test_bounded_label_maps_later_names_to_other() -> None:
    label = BoundedLabel(2)
    assert [label.value(name) for name in ("a", "b", "c", "a", "c")] == [
        "a",
        "b",
        OTHER,
        "a",
        OTHER,
    ]


def metrics_of(metrics: PrometheusObserver) -> MetricsScrape:
    return MetricsScrape(generate_latest(metrics).decode())


def reply(usage: Usage) -> ModelReply:
    return ModelReply("text", "openai", "gpt", "stop", usage)


def test_model_calls_are_counted_with_duration_tokens_and_cost() -> None:
    metrics = PrometheusObserver()
    for call in (
        CallReport("openai", "gpt", "rate-limited", 0.2, will_retry=True),
        CallReport("openai", "gpt", "completed", 2.0, reply(Usage(11, 7, 0.25)), first_token_s=0.3),
        CallReport("openai", "gpt", "recorded"),
        CallReport("local", "qwen", "completed", 2.0, reply(Usage(5, 5, None))),
    ):
        metrics.model_called(call)
    found, gpt = metrics_of(metrics), {"provider": "openai", "model": "gpt"}
    for outcome in ("rate-limited", "completed", "recorded"):
        assert found.value("planwave_provider_calls_total", **gpt, outcome=outcome) == 1
    assert found.value("planwave_provider_retries_total", **gpt) == 1
    seconds = "planwave_provider_call_duration_seconds"
    assert found.value(f"{seconds}_count", **gpt) == 2
    assert found.value(f"{seconds}_sum", **gpt) == 2.2
    assert [found.value(f"{seconds}_bucket", **gpt, le=le) for le in ("0.1", "1.0", "2.5")] == [
        0, 1, 2,
    ]  # fmt: skip
    assert found.value("planwave_provider_first_token_seconds_sum", **gpt) == 0.3
    assert found.value("planwave_provider_tokens_total", **gpt, direction="input") == 11
    assert found.value("planwave_provider_tokens_total", **gpt, direction="output") == 7
    assert found.value("planwave_provider_cost_usd_total", **gpt) == 0.25
    assert found.value("planwave_provider_cost_usd_total", provider="local", model="qwen") == 0


def test_unbounded_names_do_not_create_unbounded_series() -> None:
    metrics = PrometheusObserver()
    for n in range(1_000):
        metrics.model_called(CallReport("box", f"model-{n}", "completed", 1.0))
    graph = Graph(tuple(Node(f"n{n}", f"type-{n}", "") for n in range(1_000)), ())
    metrics.started(state_of("x", graph), 0.0)
    ends = [Event("x", n, "", "node.skipped", f"n{n}", None, {}) for n in range(1_000)]
    nested = Event("x", 1, "", "node.skipped", "n1[0]/inner", None, {})
    metrics.published([*ends, nested])
    found = metrics_of(metrics)
    assert len(found.labels("planwave_provider_calls_total", "model")) == 101
    assert len(found.labels("planwave_nodes_total", "type")) == 101
    assert found.value("planwave_nodes_total", type="other", status="skipped") == 901


async def test_http_requests_are_counted_by_route_template() -> None:
    app = application(Service(dependencies(make_graph(text_node("a")))))

    @app.get("/things/{thing}")
    async def thing(thing: str) -> str:
        if thing == "broken":
            raise ZeroDivisionError
        return thing

    async with asgi_client(app) as client:
        for path in ("/things/1", "/things/2", "/things/broken", "/nowhere/1", "/nowhere/2"):
            await client.get(path)
        await client.post("/things/1")
        await client.request("BREW", "/things/1")
        found = await scrape_metrics(client)
    name, route = "planwave_http_requests_total", "/things/{thing}"
    assert found.value(name, route=route, method="GET", status="200") == 2
    assert found.value(name, route=route, method="GET", status="500") == 1
    assert found.value(name, route=route, method="POST", status="405") == 1
    assert found.value(name, route=route, method="other", status="405") == 1
    assert found.value(name, route="other", method="GET", status="404") == 2
    seconds = "planwave_http_request_duration_seconds_count"
    assert found.value(seconds, route=route, method="GET") == 3
    assert found.labels(name, "route") == {route, "other"}


async def test_websockets_are_counted_by_handshake_status() -> None:
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": scope["first"], "headers": []})
        await send({"type": "websocket.close"})

    async def receive() -> Message:
        return {}

    async def send(message: Message) -> None:
        sent.append(message)

    metrics = PrometheusObserver()
    counted = RequestContextMiddleware(app, metrics)
    for first in ("websocket.accept", "websocket.close"):
        scope = {"type": "websocket", "headers": [], "first": first}
        await counted(scope, receive, send)
    found = metrics_of(metrics)
    for status in ("101", "403"):
        labels = {"route": "other", "method": "WEBSOCKET", "status": status}
        assert found.value("planwave_http_requests_total", **labels) == 1
    assert len(sent) == 4


async def test_openmetrics_format_is_negotiated() -> None:
    async with asgi_client(
        application(Service(dependencies(make_graph(text_node("a")))))
    ) as client:
        plain = await client.get("/metrics", headers={"accept": "*/*"})
        modern = await client.get(
            "/metrics", headers={"accept": "application/openmetrics-text;version=1.0.0"}
        )
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert modern.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert modern.text.endswith("# EOF\n")
    families = {family.name for family in openmetrics.text_string_to_metric_families(modern.text)}
    assert "planwave_nodes" in families


async def test_metric_names_follow_conventions() -> None:
    async with asgi_client(
        application(Service(dependencies(make_graph(text_node("a")))))
    ) as client:
        found = await scrape_metrics(client)
    assert len(found.types) > 20
    assert {name for name in found.types if not name.startswith("planwave_")} == set()
    assert {"counter", "gauge", "histogram"} == set(found.types.values())


def test_recording_an_event_is_cheap() -> None:
    metrics = PrometheusObserver()
    graph = make_graph(*(text_node(f"n{n}") for n in range(30)))
    batch = [
        Event("x", n, "", kind, f"n{n % 30}", 1, {"duration_s": 0.5, "wave": 1})
        for n in range(100)
        for kind in ("node.started", "node.completed")
    ]
    delta = [Event("x", 0, "", "node.delta", "n1", 1, {"kind": "text", "text": "a", "offset": 0})]
    with cpu_within(1.0):  # 10 microseconds each
        metrics.started(state_of("x", graph), 0.0)
        for _ in range(250):
            metrics.published(batch)
        for _ in range(50_000):
            metrics.published(delta)
    assert (
        metrics_of(metrics).value("planwave_nodes_total", type="text", status="completed") == 25_000
    )


def test_removed_execution_is_not_counted() -> None:
    metrics = PrometheusObserver()
    metrics.started(state_of("x", make_graph(text_node("a"))), 0.0)
    metrics.execution_left("x")
    metrics.published([Event("x", 5, "", "node.skipped", "a", None, {})])
    assert metrics_of(metrics).value("planwave_nodes_total", type="text", status="skipped") == 0
