"""Routes: what there is here to work with: providers, node types, limits."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from planwave.api.examples import LIMITS, NODE_TYPES, PROVIDERS, answered
from planwave.api.models import Answer
from planwave.api.rendering import rendered
from planwave.api.state import ADMITTED, ServiceDep
from planwave.settings import Limits

router = APIRouter(tags=["catalogues"], dependencies=ADMITTED)

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


class ProviderDetails(Answer):
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


class ProvidersAnswer(Answer):
    """The providers that can be used, by name, and details of all."""

    providers: list[str]
    default_models: dict[str, str | None]
    models: dict[str, list[str]]
    details: list[ProviderDetails]


class PortAnswer(Answer):
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


class NodeTypeAnswer(Answer):
    """One node type."""

    node_type: str
    purpose: str
    inputs: list[PortAnswer]
    outputs: list[PortAnswer]
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


class NodeTypesAnswer(Answer):
    """The node types there are."""

    node_types: list[NodeTypeAnswer]


class LimitAnswer(Answer):
    """One limit."""

    name: str
    value: float
    default: float
    hard_cap: float
    unit: str
    what: str
    variable: str
    """The environment variable that sets it."""


class LimitsAnswer(Answer):
    """What may not be passed here."""

    limits: list[LimitAnswer]


@router.get(
    "/api/providers",
    operation_id="listProviders",
    summary="List providers and models",
    response_model=ProvidersAnswer,
    responses=answered("What there is.", PROVIDERS),
)
async def list_providers(service: ServiceDep) -> Response:
    """Give the providers that can be used, their models, and why the others cannot be used."""
    infos = service.providers.list()
    here = [info for info in infos if info.available]
    return rendered(
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
    response_model=NodeTypesAnswer,
    responses=answered("What there is.", NODE_TYPES),
)
async def list_node_types(service: ServiceDep) -> Response:
    """Give every node type with its ports and the JSON Schema of its `data`."""
    return rendered({"node_types": service.node_types()})


@router.get(
    "/api/limits",
    operation_id="listLimits",
    summary="List limits",
    response_model=LimitsAnswer,
    responses=answered("What holds here.", LIMITS),
)
async def list_limits(service: ServiceDep) -> Response:
    """Give every limit: what it is here, by default, and at most."""
    return rendered({"limits": [_limit(name, service.limits) for name in Limits.model_fields]})


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
