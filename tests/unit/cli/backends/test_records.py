"""The JSON of the service is read back as the records that it was made of."""

from __future__ import annotations

from dataclasses import replace

from planwave.cli.backends.records import (
    execution_from_json,
    flow_from_json,
    flow_record_from_json,
    plan_from_json,
    revision_from_json,
)
from planwave.principals import Principal
from planwave.service.executions.labels import execution_summary
from planwave.service.flows.flow_queries import Flow, FlowQueries
from planwave.service.plans.documents import plan_json
from planwave.service.plans.revisions import revision_summary
from planwave.storage.records import Approval, ExecutionRecord, PlanRecord, PlanRevision
from planwave.storage.sqlite.memory import MemoryStore

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
    sound_revision=2,
)


def test_a_plan_is_read_back() -> None:
    read = plan_from_json(plan_json(PLAN, "draft"))
    assert replace(read, document=PLAN.document) == PLAN
    assert read.document["status"] == "draft"


async def test_a_flow_of_a_list_is_read_back_with_its_json() -> None:
    (listed,) = await FlowQueries(MemoryStore()).summaries([PLAN])
    read = flow_record_from_json(listed)
    assert (read.plan_id, read.name, read.document) == ("p", "F", listed)


def test_a_revision_is_read_back() -> None:
    revision = PlanRevision(
        "p", 2, "h", "T", "person", "why", AT, 1, 0, created_by=BY, approval=Approval(AT, BY)
    )
    assert revision_from_json(revision_summary(revision)) == revision
    bare = replace(revision, approval=None)
    assert revision_from_json(revision_summary(bare)) == bare


def test_a_flow_is_read_back() -> None:
    flow = Flow("p", "F", "T", "why", 2, "h", AT, AT, {"nodes": [], "edges": []}, ("tool",))
    assert flow_from_json(flow.as_json()) == flow


def test_an_execution_is_read_back() -> None:
    record = ExecutionRecord(
        "x", "p", "T", "goal", "paused", AT, AT, revision=2, flow="F", created_by=BY
    )
    assert execution_from_json(execution_summary(record, is_interrupted=False)) == record
