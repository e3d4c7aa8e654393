"""What a service answers about what it offers, as types; see ``answers.py``."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class ProviderDetails(TypedDict):
    """One provider, and why it can or cannot be used."""

    name: str
    kind: str
    available: bool
    reason: str
    how_to_enable: str
    models: list[str]
    default_model: str | None
    open_models: bool


class ProvidersResponse(TypedDict):
    """The providers that can be used, by name, and details of all."""

    providers: list[str]
    default_models: dict[str, str | None]
    models: dict[str, list[str]]
    details: list[ProviderDetails]


class PortResponse(TypedDict):
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


class NodeTypeResponse(TypedDict):
    """One node type; ``schema`` is the JSON Schema of its ``data``, ``example`` a graph to run."""

    node_type: str
    purpose: str
    inputs: list[PortResponse]
    outputs: list[PortResponse]
    entry: bool
    executes: bool
    materializes: bool
    effect: Literal["none", "read", "write", "once"]
    template_fields: list[str] | None
    version: int
    reads_goal: bool
    chooses: bool
    schema: dict[str, Any]
    example: dict[str, Any]


class NodeTypesResponse(TypedDict):
    """The node types there are."""

    node_types: list[NodeTypeResponse]


class LimitResponse(TypedDict):
    """One limit; ``variable`` is the environment variable that sets it."""

    name: str
    value: float
    default: float
    hard_cap: float
    unit: str
    what: str
    variable: str


class LimitsResponse(TypedDict):
    """What may not be passed there."""

    limits: list[LimitResponse]
