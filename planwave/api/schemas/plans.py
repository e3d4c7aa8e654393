"""Response models of plans and graph checks.

Responses are written as they are stored, without being built from these models: the models document
them in OpenAPI, and tests compare the responses with the models.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planwave.api.schemas.common import (
    GraphDocument,
    PlanStatus,
    ResponseModel,
)

# -- plans ----------------------------------------------------------------------------------------


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
    """What was changed, where the meaning was certain."""


class CheckResponse(ResponseModel):
    """The result of checking a graph."""

    valid: bool
    """Whether it can run here, now."""
    diagnostics: list[DiagnosticResponse]
    graph: GraphDocument | None
    """As it is stored and run, with every handle and channel; null if a part cannot be read."""


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
    """What a plan will take, estimated before anything is run or paid."""

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


class PlanResponse(GraphDocument):
    """A plan: a titled graph made for a goal."""

    plan_id: str
    user_prompt: str
    title: str
    status: PlanStatus
    """That of its newest execution; `draft` without one."""
    revision: int
    hash: str
    """Of the graph; executions are bound to it."""
    created_at: str
    provider: str | None
    """Who wrote it; null for a plan made by hand."""
    model: str | None
    diagnostics: list[DiagnosticResponse]
    fixes: list[str]
    """What was changed in the model's reply."""
    attempts: list[dict[str, Any]]
    """`{reply, finish_reason, diagnostics, usage}` of each model call."""
    forecast: dict[str, Any]


class PlanSummary(ResponseModel):
    """A plan as lists show it."""

    plan_id: str
    user_prompt: str
    title: str
    status: PlanStatus
    revision: int
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
