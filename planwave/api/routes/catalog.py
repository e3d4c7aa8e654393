"""Routes: the providers, MCP servers, node types and limits of this service."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, ServiceDep
from planwave.api.responses import json_response
from planwave.api.schemas.examples import (
    LIMITS,
    MCP_SERVERS,
    NODE_TYPES,
    PROVIDERS,
    TOOLS,
    success,
)
from planwave.settings import Limits
from planwave.shapes.catalog import (
    LimitResponse,
    LimitsResponse,
    McpServersResponse,
    NodeTypesResponse,
    ProvidersResponse,
    ToolsResponse,
)

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
    responses=success(ProvidersResponse, "What there is.", PROVIDERS),
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
    "/api/mcp-servers",
    operation_id="listMcpServers",
    summary="List MCP servers",
    responses=success(McpServersResponse, "What there is.", MCP_SERVERS),
)
async def list_mcp_servers(service: ServiceDep) -> Response:
    """Return the MCP servers that `mcp_server` nodes may name; none is started for this."""
    kinds = service.mcp_servers
    return json_response({"servers": [{"name": name, "kind": kinds[name]} for name in kinds]})


@router.get(
    "/api/node-types",
    operation_id="listNodeTypes",
    summary="List node types",
    responses=success(NodeTypesResponse, "What there is.", NODE_TYPES),
)
async def list_node_types(service: ServiceDep) -> Response:
    """Return every node type with its ports and the JSON Schema of its `data`.

    A `{…}` in the name of a port stands for a number (`{i}`) or any text: `POST /api/check` says which
    ports a configured node has. Keywords of the schema besides those of JSON Schema: `template` (may
    hold `{{ … }}`; fields without it are used as written), `expression` (is an expression itself),
    `graph` (a graph run inside the node), `names` and `namesOf` (variables of that graph or
    expression), `limit` (the limit that bounds a number), `planned` (`false`: not for plans written
    by models), `sameAs` (another name of that field).
    """
    return json_response(
        {"node_types": service.node_types(), "socket_types": service.socket_types()}
    )


@router.get(
    "/api/tools",
    operation_id="listTools",
    summary="List tools",
    responses=success(ToolsResponse, "What there is.", TOOLS),
)
async def list_tools(service: ServiceDep) -> Response:
    """Return the tools that `tool` and `toolset` nodes may name: those that the operator made available."""
    return json_response({"tools": service.tools()})


@router.get(
    "/api/limits",
    operation_id="listLimits",
    summary="List limits",
    responses=success(LimitsResponse, "What holds here.", LIMITS),
)
async def list_limits(service: ServiceDep) -> Response:
    """Return every limit with its value, its default and its hard cap."""
    return json_response({"limits": [_limit(name, service.limits) for name in Limits.model_fields]})


def _limit(name: str, limits: Limits) -> LimitResponse:
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
