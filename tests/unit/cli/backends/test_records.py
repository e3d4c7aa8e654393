"""The JSON of the service is read back as the records that it was made of."""

from __future__ import annotations

from dataclasses import replace

from planwave.api.routes.executions import _summary
from planwave.cli.backends.records import (
    execution_from_json,
    flow_from_json,
    flow_record_from_json,
    plan_from_json,
)
from planwave.principals import Principal
from planwave.service.flows.flow_queries import Flow, flow_summary
from planwave.service.plans.documents import plan_json
from planwave.storage.records import ExecutionRecord, PlanRecord

AT = "2026-01-01T00:00:00.000000+00:00"
BY = Principal("token", "t1", "Grüße")
PLAN = PlanRecord(
    "p",
    AT,
    "goal",
    "T",
    "h",
    {
        "plan_id": "p",
        "created_at": AT,
        "user_prompt": "goal",
        "title": "T",
        "hash": "h",
        "nodes": [{}],
        "revision": 3,
    },
    name="F",
    description="why",
    published=("model",),
    live_revision=2,
)


def test_a_plan_is_read_back() -> None:
    read = plan_from_json(plan_json(PLAN, "draft"))
    assert replace(read, document=PLAN.document) == PLAN
    assert read.document["status"] == "draft"


def test_a_flow_of_a_list_is_read_back_but_for_its_graph() -> None:
    stored = replace(PLAN, updated_at=AT, edited_by=BY)
    read = flow_record_from_json(flow_summary(stored))
    assert flow_summary(read) == flow_summary(stored)
    assert (read.live_revision, read.edited_by) == (2, BY)


def test_a_flow_is_read_back() -> None:
    flow = Flow("p", "F", "T", "why", 2, "h", AT, AT, {"nodes": [], "edges": []}, ("tool",))
    assert flow_from_json(flow.as_json()) == flow


def test_an_execution_is_read_back() -> None:
    record = ExecutionRecord(
        "x", "p", "T", "goal", "paused", AT, AT, revision=2, flow="F", created_by=BY
    )
    assert execution_from_json(_summary(record, None)) == record
