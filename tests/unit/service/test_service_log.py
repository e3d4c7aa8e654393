"""The lines of the service log: which there are, and what each says."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, get_args

import pytest

import planwave
from planwave.events import Event, fold
from planwave.events.types import TypedEvent
from planwave.graph.model import Node
from planwave.log_records import FIELDS, words_of
from planwave.nodes.authoring.function import node
from planwave.nodes.library import LIBRARY
from planwave.providers.protocols import CallReport, ModelReply, Usage
from planwave.service.dependencies import Observer
from planwave.service.service import Service
from planwave.service.service_log import LINES, WITHOUT_LINE, ServiceLog
from tests.support.graph.builders import make_graph
from tests.support.service.dependencies import dependencies, execute_goal

AT = "2026-01-01T00:00:00.000000+00:00"
LATER = "2026-01-01T00:00:02.500000+00:00"


@pytest.fixture(autouse=True)
def _everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "planwave")


def said(caplog: pytest.LogCaptureFixture, logger: str = "planwave.execution") -> list[Any]:
    """Return level, message and fields of the lines of a logger."""
    return [
        (each.levelname, words_of(each), getattr(each, FIELDS))
        for each in caplog.records
        if each.name == logger
    ]


def test_every_event_type_has_a_line_or_a_reason() -> None:
    types = {get_args(get_args(kind)[0])[0] for kind in get_args(TypedEvent)}
    assert LINES.keys().isdisjoint(WITHOUT_LINE)
    assert {*LINES, *WITHOUT_LINE} == types
    assert all(WITHOUT_LINE.values())


def test_the_log_is_told_of_all_that_observers_are_told_of() -> None:
    silent = {"link_cache_used", "delivered", "notification_attempted", "recovered"}
    told = {name for name in vars(Observer) if not name.startswith("_")}
    assert told - silent == {name for name in vars(ServiceLog) if name in told}


def created(**data: Any) -> Event:
    return Event("e1", 1, AT, "execution.created", None, None, {"graph": None, **data})


def event(event_type: str, path: str | None = None, /, at: str = LATER, **data: Any) -> Event:
    return Event("e1", 2, at, event_type, path, None if path is None else 1, data)


def test_the_first_line_says_what_runs_and_for_whom_and_the_last_what_it_took(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trigger = {"id": "t1", "kind": "webhook", "delivery": "d"}
    first = created(flow="Orders", plan_id="p1", trigger=trigger, created_by={"kind": "operator"})
    log = ServiceLog()
    log.started(fold([first]), 0.25)
    usage = {"input_tokens": 100, "output_tokens": 20, "cost_usd": 0.5}
    log.published([event("execution.started", at=AT), event("node.started", "a")])
    log.published([event("usage", "a", **usage), event("execution.completed")])
    begin, end = said(caplog)
    assert begin == (
        "INFO", "started",
        {"execution": "e1", "flow": "Orders", "plan": "p1", "trigger": "webhook", "trigger_id": "t1",
         "by": "operator", "nodes": 0, "queued_s": 0.25},
    )  # fmt: skip
    ended = {"execution": "e1", "tokens": 120, "cost_usd": 0.5, "duration_s": 2.5}
    assert end == ("INFO", "completed", ended)


def test_a_failure_has_its_error_and_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    error = {"code": "node-failed", "message": "KeyError: x", "hint": "raised at a.py:3"}
    log = ServiceLog()
    log.published([event("node.failed", "a", error=error, handled=False, traceback="in a")])
    log.published([event("node.failed", "b", error=error, handled=True)])
    log.published([event("node.retrying", "c", error=error, delay_s=2.0, next_attempt=2)])
    about = {"code": "node-failed", "error": "KeyError: x", "hint": "raised at a.py:3"}
    assert said(caplog) == [
        ("ERROR", "node failed", {"execution": "e1", "node": "a", "attempt": 1, **about}),
        ("WARNING", "node failed, handled", {"execution": "e1", "node": "b", "attempt": 1, **about}),
        (
            "WARNING", "node retries",
            {"execution": "e1", "node": "c", "attempt": 1, **about, "delay_s": 2.0, "next_attempt": 2},
        ),
    ]  # fmt: skip
    assert [each.exc_text for each in caplog.records] == ["in a", None, None]


SECRET_TEXT = "the words of a customer"
TEXTS = {"value": SECRET_TEXT, "text": SECRET_TEXT, "message": SECRET_TEXT, "prompt": SECRET_TEXT}


@pytest.mark.parametrize("event_type", [*LINES, *WITHOUT_LINE])
def test_no_line_at_info_has_text_of_prompts_or_results(
    caplog: pytest.LogCaptureFixture, event_type: str
) -> None:
    change = {
        "nodes": [{"id": "a", "name": SECRET_TEXT, "data": TEXTS}], "edges": [],
        "dropped_nodes": ["b"], "dropped_edges": [],
    }  # fmt: skip
    data = {
        "request_id": "r1", "request": TEXTS, "answer": TEXTS, "outputs": {"output": TEXTS}, "data": TEXTS,
        "change": 1, "by": "node", "error": {"code": "x", **TEXTS}, "note": SECRET_TEXT, "graph_change": change, **TEXTS,
    }  # fmt: skip
    path = "a" if event_type.startswith("node") else None
    ServiceLog().published([event(event_type, path, **data)])
    at_info = [each for each in said(caplog) if each[0] == "INFO"]
    assert SECRET_TEXT not in str(at_info)


def test_only_failures_are_logged_where_that_is_wanted(caplog: pytest.LogCaptureFixture) -> None:
    log = ServiceLog(lines="failures")
    log.started(fold([created()]), 0.0)
    log.published([event("execution.completed"), event("execution.failed", error={"code": "x"})])
    assert [words for _, words, _ in said(caplog)] == ["failed"]


def test_lines_name_the_span_of_their_node(caplog: pytest.LogCaptureFixture) -> None:
    tracer: Any = SimpleNamespace(
        span_ids=lambda own, path: {"trace_id": own, "span_id": str(path)}
    )
    ServiceLog(tracer).published([event("execution.completed"), event("node.waiting", "a")])
    spans = [(fields["trace_id"], fields["span_id"]) for _, _, fields in said(caplog)]
    assert spans == [("e1", "None"), ("e1", "a")]


def test_trouble_of_a_provider_is_a_line_and_success_none(caplog: pytest.LogCaptureFixture) -> None:
    log = ServiceLog()
    place = {"execution_id": "e1", "path": "a"}
    for outcome, will_retry in (
        ("rate-limited", True),
        ("provider-unreachable", False),
        ("completed", False),
    ):
        wait_s = 3.0 if will_retry else None
        log.model_called(
            CallReport(
                "openai", "gpt", outcome, 0.5, will_retry=will_retry, retry_after_s=wait_s, **place
            )
        )
    about = {
        "execution": "e1",
        "node": "a",
        "provider": "openai",
        "model": "gpt",
        "duration_s": 0.5,
    }
    assert said(caplog, "planwave.provider") == [
        (
            "WARNING",
            "call failed, tried again",
            {**about, "attempt": 1, "code": "rate-limited", "retry_after_s": 3.0},
        ),
        ("ERROR", "call failed", {**about, "code": "provider-unreachable"}),
    ]


@pytest.mark.parametrize(
    ("took_s", "level", "words"), [(7.0, "DEBUG", "call completed"), (7.1, "WARNING", "slow call")]
)
def test_a_call_that_completes_has_a_line_and_a_slow_one_a_warning(
    caplog: pytest.LogCaptureFixture, took_s: float, level: str, words: str
) -> None:
    caplog.set_level(logging.DEBUG, "planwave.provider")
    reply = ModelReply("hi", "openai", "gpt", "stop", Usage(100, 20))
    report = CallReport(
        "openai", "gpt", "completed", took_s, reply, first_token_s=0.25, execution_id="e1", path="a", number=2
    )  # fmt: skip
    ServiceLog(slow_call_s=7.0).model_called(report)
    assert said(caplog, "planwave.provider") == [
        (
            level, words,
            {"execution": "e1", "node": "a", "provider": "openai", "model": "gpt", "attempt": 2,
             "duration_s": took_s, "first_token_s": 0.25, "tokens": 120},
        )
    ]  # fmt: skip


def test_a_call_that_was_slow_until_it_was_cancelled_has_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ServiceLog(slow_call_s=7.0).model_called(CallReport("openai", "gpt", "cancelled", 9.0))
    ((level, words, fields),) = said(caplog, "planwave.provider")
    assert (level, words, fields["code"]) == ("WARNING", "slow call", "cancelled")


def test_lines_of_calls_name_the_span_of_their_node(caplog: pytest.LogCaptureFixture) -> None:
    tracer: Any = SimpleNamespace(
        span_ids=lambda execution_id, path: {"span_id": f"{execution_id}/{path}"}
    )
    for execution_id in ("e1", None):
        report = CallReport("openai", "gpt", "refused", execution_id=execution_id, path="a")
        ServiceLog(tracer).model_called(report)
    assert [fields.get("span_id") for *_, fields in said(caplog, "planwave.provider")] == [
        "e1/a",
        None,
    ]


@pytest.mark.parametrize("kind", ["tool_call_error", "subagent_call_error"])
def test_a_tool_that_fails_is_a_warning_with_its_traceback(
    caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    error = {"code": "tool-failed", "message": "KeyError: '1042'"}
    call = {"call_id": "c1", "name": "look_up", "error": error, "duration_s": 0.1}
    log = ServiceLog()
    log.published([event("node.event", "a", event_type=kind, data=call, traceback="in shop.py")])
    rejected = {**call, "error": {"code": "rejected", "message": "no"}}
    log.published([event("node.event", "a", event_type=kind, data=rejected)])
    log.published([event("node.event", "a", event_type="tool_call_end", data={"result": 1})])
    about = {"execution": "e1", "node": "a", "attempt": 1, "tool": "look_up", "code": "tool-failed"}
    said_of = {**about, "error": "KeyError: '1042'", "duration_s": 0.1}
    assert said(caplog) == [("WARNING", "tool failed", said_of)]
    assert caplog.records[0].exc_text == "in shop.py"


async def test_lines_of_strangers_are_bounded_for_each_hook(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planwave.service.service_log._MINUTE_S", 0.01)
    log = ServiceLog()

    def rejected(trigger_id: str) -> None:
        trigger: Any = SimpleNamespace(trigger_id=trigger_id, kind="webhook", flow="Orders")
        log.trigger_delivered(trigger, "rejected", "signature-mismatch", None)

    for _ in range(25):
        rejected("h1")
    rejected("h2")
    lines = said(caplog, "planwave.trigger")
    assert [fields["trigger"] for _, _, fields in lines] == ["h1"] * 10 + ["h2"]
    assert lines[0][2]["reason"] == "signature-mismatch"
    await asyncio.sleep(0.05)
    (more,) = said(caplog, "planwave.trigger")[11:]
    assert (more[0], more[2]["trigger"], more[2]["count"]) == ("WARNING", "h1", 15)
    rejected("h1")
    assert len(said(caplog, "planwave.trigger")) == 13


async def test_an_execution_that_nobody_starts_has_a_line(caplog: pytest.LogCaptureFixture) -> None:
    async with Service(dependencies(make_graph(Node("s", "start", "S")))) as service:
        service.observe(ServiceLog())
        plan = await service.plans.create("do it")
        record = await service.executions.create(plan.plan_id)
        ((level, words, fields),) = said(caplog)
        assert (level, words, fields["execution"]) == (
            "INFO",
            "created (not started)",
            record.execution_id,
        )
        await service.executions.start(record.execution_id)
        await service.executions.wait(record.execution_id)
        assert [words for _, words, _ in said(caplog)][1:] == ["started", "completed"]
        caplog.clear()
        ran = await execute_goal(service)
        await service.executions.wait(ran.execution_id)
        assert [words for _, words, _ in said(caplog)] == ["started", "completed"]


def test_a_python_program_gets_the_same_lines_where_it_configures_logging(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry = planwave.Registry(LIBRARY)

    @node("breaks", registry=registry)
    async def breaks(input: str) -> str:  # pyright: ignore[reportUnusedFunction]
        raise ValueError(input)

    edges = [{"source": "s", "target": "b", "data": {"channel": "flow"}}]
    graph = {"nodes": [{"id": "s", "type": "start"}, {"id": "b", "type": "breaks"}], "edges": edges}
    planwave.run_sync(graph, "x", registry=registry, check=False)
    assert [(level, words) for level, words, _ in said(caplog)] == [
        ("INFO", "started"), ("ERROR", "node failed"), ("ERROR", "failed"),
    ]  # fmt: skip
    assert "in breaks" in str(caplog.records[1].exc_text)
