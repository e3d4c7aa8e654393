"""Routes: the providers, node types and limits of this service."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from fastapi import APIRouter
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, ServiceDep
from planwave.api.responses import json_response
from planwave.api.schemas.catalog import LimitsResponse, NodeTypesResponse, ProvidersResponse
from planwave.api.schemas.examples import LIMITS, NODE_TYPES, PROVIDERS, example_response
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


@router.get(
    "/api/providers",
    operation_id="listProviders",
    summary="List providers and models",
    response_model=ProvidersResponse,
    responses=example_response("What there is.", PROVIDERS),
)
async def list_providers(service: ServiceDep) -> Response:
    """Return the available providers with their models, and why the others are not available."""
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
    """Return every node type with its ports and the JSON Schema of its `data`."""
    return json_response({"node_types": service.node_types()})


@router.get(
    "/api/limits",
    operation_id="listLimits",
    summary="List limits",
    response_model=LimitsResponse,
    responses=example_response("What holds here.", LIMITS),
)
async def list_limits(service: ServiceDep) -> Response:
    """Return every limit with its value, its default and its hard cap."""
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
