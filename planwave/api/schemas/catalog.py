"""Response models of providers, node types and limits."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planwave.api.schemas.common import ResponseModel


class ProviderDetails(ResponseModel):
    """One provider, and why it can or cannot be used."""

    name: str
    kind: str
    available: bool
    reason: str
    how_to_enable: str
    models: list[str]
    default_model: str | None
    open_models: bool
    """Whether names outside `models` are accepted too."""


class ProvidersResponse(ResponseModel):
    """The providers that can be used, by name, and details of all."""

    providers: list[str]
    default_models: dict[str, str | None]
    models: dict[str, list[str]]
    details: list[ProviderDetails]


class PortResponse(ResponseModel):
    """A named socket of a node type."""

    name: str
    type: str
    label: str
    channel: Literal["flow", "link"]
    multiple: bool
    required: bool
    side: str
    color: str
    shape: str


class NodeTypeResponse(ResponseModel):
    """One node type."""

    node_type: str
    purpose: str
    inputs: list[PortResponse]
    outputs: list[PortResponse]
    entry: bool
    """Whether executions may be given values for it."""
    executes: bool
    """Whether it runs as a step."""
    materializes: bool
    """Whether it can be a dependency of other nodes, over a link."""
    effect: Literal["none", "read", "write", "once"]
    template_fields: list[str] | None
    """Fields of `data` in which `{{ … }}` is resolved; null means all."""
    version: int
    """Raised where the same data and inputs give something else from then on."""
    reads_goal: bool
    """Whether its result depends on the execution's goal by itself."""
    chooses: bool
    """Whether one of its outputs alone carries a value."""
    schema_: dict[str, Any] = Field(alias="schema")
    """JSON Schema of `data`."""
    example: dict[str, Any]
    """A small graph that shows it at work and can be run; empty where there is none."""


class NodeTypesResponse(ResponseModel):
    """The node types there are."""

    node_types: list[NodeTypeResponse]


class LimitResponse(ResponseModel):
    """One limit."""

    name: str
    value: float
    default: float
    hard_cap: float
    unit: str
    what: str
    variable: str
    """The environment variable that sets it."""


class LimitsResponse(ResponseModel):
    """What may not be passed here."""

    limits: list[LimitResponse]
