"""The records of the service, read from the JSON that a running one answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from planwave.principals import Principal
from planwave.service.flows.flow_queries import Flow
from planwave.storage.records import (
    Approval,
    ExecutionLabels,
    ExecutionRecord,
    InputSet,
    PlanRecord,
    PlanRevision,
)


def plan_from_json(plan: Mapping[str, Any]) -> PlanRecord:
    """Return the record of a plan; of one of a list, its approval and its editor are not known."""
    approval = plan.get("approval")
    return PlanRecord(
        plan["plan_id"],
        plan["created_at"],
        plan["user_prompt"],
        plan["title"],
        plan["hash"],
        {**plan},
        name=plan["name"],
        description=plan["description"],
        published=tuple(plan["published"]),
        sound_revision=plan["live_revision"],
        approvals={} if approval is None else {plan["hash"]: Approval.from_json(approval)},
    )


_EXECUTION_FIELDS: Final = frozenset(ExecutionRecord.__slots__) - {"created_by"}


def execution_from_json(execution: Mapping[str, Any]) -> ExecutionRecord:
    """Return the record of an execution."""
    fields = {name: value for name, value in execution.items() if name in _EXECUTION_FIELDS}
    labels = ExecutionLabels(
        execution.get("name"),
        tuple(execution.get("tags", ())),
        execution.get("note", ""),
        execution.get("starred", False),
    )
    return ExecutionRecord(**fields, created_by=principal_of(execution), labels=labels)


def principal_of(item: Mapping[str, Any]) -> Principal | None:
    """Return who created an item; None where that is not known."""
    return Principal.from_json(item["created_by"])


def revision_from_json(revision: Mapping[str, Any]) -> PlanRevision:
    """Return a revision of a list."""
    approval = revision["approval"]
    fields: dict[str, Any] = {
        **revision,
        "created_by": principal_of(revision),
        "approval": None if approval is None else Approval.from_json(approval),
    }
    return PlanRevision(**fields)


def flow_record_from_json(flow: Mapping[str, Any]) -> PlanRecord:
    """Return the record of a flow of a list; its document is the JSON."""
    return PlanRecord(
        flow["plan_id"],
        flow["created_at"],
        "",
        flow["title"],
        "",
        {**flow},
        name=flow["name"],
        description=flow["description"],
        sound_revision=flow["live_revision"],
    )


def input_set_from_json(plan_id: str, saved: Mapping[str, Any]) -> InputSet:
    """Return saved inputs of a list."""
    return InputSet(
        plan_id,
        saved["name"],
        saved["inputs"],
        saved["created_at"],
        saved["updated_at"],
        principal_of(saved),
    )


def flow_from_json(flow: Mapping[str, Any]) -> Flow:
    """Return a flow in one of its revisions."""
    fields = {name: flow[name] for name in Flow.__slots__}
    fields["published"] = tuple(flow["published"])
    return Flow(**fields)
