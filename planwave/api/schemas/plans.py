"""Response models of plans and graph checks.

Responses are written as they are stored, without being built from these models: the models document
them in OpenAPI, and tests compare the responses with the models.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planwave.api.schemas.catalog import NodePortsResponse
from planwave.api.schemas.common import (
    GraphDocument,
    PlanStatus,
    PrincipalResponse,
    ResponseModel,
)
from planwave.api.schemas.operations import (
    AddEdgeOperation,
    RemoveEdgeOperation,
    UpdateNodeOperation,
)

# -- plans ----------------------------------------------------------------------------------------


class SuggestionResponse(ResponseModel):
    """The one way to correct a finding, for a person to accept."""

    label: str = Field(examples=["Use type text"])
    operations: list[UpdateNodeOperation | AddEdgeOperation | RemoveEdgeOperation]
    """For `PATCH`, of the plan or the flow that has the graph."""


class DiagnosticResponse(ResponseModel):
    """One finding about a graph."""

    code: str = Field(examples=["flow-cycle"])
    severity: Literal["error", "warning", "info"]
    """`error` stops a graph from running."""
    message: str
    pointer: str = Field(examples=["/nodes/1/data/model"])
    """JSON pointer into the graph."""
    node: str | None = None
    edge: str | None = None
    path: list[str] | None = None
    """The nodes around a cycle."""
    hint: str | None = None
    """The way out."""
    fix: str | None = None
    """Corrections of the document, made only if its meaning was certain."""
    suggestion: SuggestionResponse | None = None
    """Only where there is one way to correct it."""


class Span(ResponseModel):
    """From terse to talkative answers."""

    low: float
    high: float


class Effect(ResponseModel):
    """A node that changes the world."""

    node: str
    type: str
    effect: Literal["write", "once"]


class ForecastResponse(ResponseModel):
    """The forecast of a plan: calls, tokens and cost, before anything runs."""

    waves: int
    nodes: int
    width: int
    """Nodes in the widest wave."""
    depth: int
    critical_path: list[str]
    calls: int
    """Model calls; those of a graph inside a node count once."""
    at_least: bool = False
    """Whether a node runs graphs, so that it may be more."""
    tokens: Span
    cost_usd: Span | None
    """Null where a price is unknown."""
    effects: list[Effect]


class CheckResponse(ResponseModel):
    """The result of checking a graph."""

    valid: bool
    """Whether it can run here, now."""
    diagnostics: list[DiagnosticResponse]
    graph: GraphDocument | None
    """As it is stored and run, with every handle and channel; null if a part cannot be read."""
    ports: dict[str, NodePortsResponse]
    """By node id, of the nodes whose data or edges decide about their ports; all others have those of
    their type. Without patterns: numbered and open ports are given by the handles there are."""
    forecast: ForecastResponse | None
    """Its forecast; null if it has errors other than those of providers."""


class ApprovalResponse(ResponseModel):
    """The approval of a revision, for all callers of a flow."""

    at: str
    by: PrincipalResponse


class RevisionSummary(ResponseModel):
    """A revision as lists show it."""

    plan_id: str
    revision: int
    """1 for the plan as it was made."""
    hash: str
    """Of the graph."""
    title: str
    author: Literal["person", "planner", "api"]
    note: str
    created_at: str
    created_by: PrincipalResponse | None
    """Who made it; null where an older planwave did."""
    node_count: int
    error_count: int
    """With any error it is a draft, which cannot be executed."""
    approval: ApprovalResponse | None
    """That of its hash; null where nobody approved it."""


class PlanOrigin(ResponseModel):
    """A revision of another plan."""

    plan_id: str
    revision: int


class PlanResponse(GraphDocument):
    """A plan in its newest revision: a titled graph made for a goal."""

    plan_id: str
    user_prompt: str
    title: str
    status: PlanStatus
    """That of its newest execution; `draft` without one."""
    revision: int
    hash: str
    """Of the graph; executions are bound to it."""
    created_at: str
    name: str | None
    """The name, for which it is a flow; null for a plan without one."""
    description: str
    """The purpose of a flow."""
    published: list[Literal["model", "tool"]]
    """What a flow is published as; see `PUT /api/flows/{plan_id}/publication`."""
    live_revision: int | None
    """The revision that callers of a flow start: the newest one without errors and, where the operator requires
    it, with an approval; null without one."""
    approval: ApprovalResponse | None
    """That of its hash; null where nobody approved it."""
    inputs: dict[str, Any] | None
    """The JSON Schema of its inputs, as its entry nodes declare them; null for a graph that cannot be read."""
    origin: PlanOrigin | None = None
    """The flow that it was copied from; left out for all others."""
    provider: str | None
    """The provider of the model that wrote it; null for a plan that no model wrote."""
    model: str | None
    diagnostics: list[DiagnosticResponse]
    fixes: list[str]
    """Corrections of the model's reply."""
    attempts: list[dict[str, Any]]
    """`{reply, finish_reason, diagnostics, usage}` of each model call."""
    forecast: dict[str, Any]
    """As of the revision, in the form of `GET …/forecast`; empty for a draft with errors."""


class PlanSummary(ResponseModel):
    """A plan as lists show it."""

    plan_id: str
    user_prompt: str
    title: str
    name: str | None
    """The name, for which it is a flow; null for a plan without one."""
    status: PlanStatus
    revision: int
    live_revision: int | None
    """The revision that callers of a flow start; a lower number than `revision`, or null, under a draft."""
    hash: str
    created_at: str
    provider: str | None
    model: str | None
    node_count: int


class PlansResponse(ResponseModel):
    """One page of plans, newest first."""

    plans: list[PlanSummary]
    next_cursor: str | None
    """For the next page; null on the last one."""
