"""Routes: what there is here to work with: providers, node types, limits."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from planwave.api.examples import LIMITS, NODE_TYPES, PROVIDERS, example_response
from planwave.api.models import ResponseModel
from planwave.api.rendering import json_response
from planwave.api.state import AUTHENTICATED, ServiceDep
from planwave.settings import Limits

router = APIRouter(tags=["catalogues"], dependencies=AUTHENTICATED)

_UNITS: Final = {
    "_per_s": "per second",
    "_per_minute": "per minute",
    "_bytes": "bytes",
    "_chars": "characters",
    "_tokens": "tokens",
    "_hours": "hours",
    "_s": "seconds",
}
"""By the end of a limit's name; all others count things."""


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


@router.get(
    "/api/providers",
    operation_id="listProviders",
    summary="List providers and models",
    response_model=ProvidersResponse,
    responses=example_response("What there is.", PROVIDERS),
)
async def list_providers(service: ServiceDep) -> Response:
    """Give the providers that can be used, their models, and why the others cannot be used."""
    infos = service.providers.list()
    here = [info for info in infos if info.available]
    return json_response(
        {
            "providers": [info.name for info in here],
            "default_models": {info.name: info.default_model for info in here},
            "models": {info.name: list(info.models) for info in here},
            "details": [asdict(info) for info in infos],
        }
    )


@router.get(
    "/api/node-types",
    operation_id="listNodeTypes",
    summary="List node types",
    response_model=NodeTypesResponse,
    responses=example_response("What there is.", NODE_TYPES),
)
async def list_node_types(service: ServiceDep) -> Response:
    """Give every node type with its ports and the JSON Schema of its `data`."""
    return json_response({"node_types": service.node_types()})


@router.get(
    "/api/limits",
    operation_id="listLimits",
    summary="List limits",
    response_model=LimitsResponse,
    responses=example_response("What holds here.", LIMITS),
)
async def list_limits(service: ServiceDep) -> Response:
    """Give every limit: what it is here, by default, and at most."""
    return json_response({"limits": [_limit(name, service.limits) for name in Limits.model_fields]})


def _limit(name: str, limits: Limits) -> dict[str, Any]:
    field = Limits.model_fields[name]
    cap = next(rule.le for rule in field.metadata if hasattr(rule, "le"))
    return {
        "name": name,
        "value": getattr(limits, name),
        "default": field.default,
        "hard_cap": cap,
        "unit": next((unit for end, unit in _UNITS.items() if name.endswith(end)), "count"),
        "what": (field.description or "").replace("``", "`"),
        "variable": f"PLANWAVE_LIMIT_{name.upper()}",
    }
