"""Shapes of providers, MCP servers, node types, tools and limits."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from planwave.shapes.graphs import PortResponse


class ModelDownload(TypedDict):
    """A download of a model that is going on."""

    model: str
    done_bytes: int
    size_bytes: int


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
    """Whether names outside `models` are accepted too."""
    download: ModelDownload | None
    """Of the embedded model, while it is downloaded; null: it is not."""


class ProvidersResponse(TypedDict):
    """The providers that can be used, by name, and details of all."""

    providers: list[str]
    default_models: dict[str, str | None]
    models: dict[str, list[str]]
    details: list[ProviderDetails]


class McpServerResponse(TypedDict):
    """An MCP server that the operator has set up."""

    name: str
    """What `mcp_server` nodes name it."""
    kind: Literal["stdio", "http"]
    """Whether it is a program, or at a URL."""


class McpServersResponse(TypedDict):
    """The MCP servers, sorted by name."""

    servers: list[McpServerResponse]


class SocketTypeResponse(TypedDict):
    """How sockets of one type are drawn, and the types they accept."""

    type: str
    label: str
    color: str
    """On light pages, as `#rrggbb`."""
    dark_color: str
    """On dark pages."""
    shape: str
    accepts: list[str]
    """Other types whose values it takes."""


class NodeTypeResponse(TypedDict):
    """One node type."""

    node_type: str
    purpose: str
    """When to use it, as planners are told."""
    summary: str
    """A few words for people who choose a type."""
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
    policy: NotRequired[dict[str, Any]]
    """The policy to write into a new node of the type, where it has one."""
    schema: dict[str, Any]
    """JSON Schema of `data`."""
    example: dict[str, Any]
    """A small graph that shows it at work and can be run; empty where there is none."""


class NodeTypesResponse(TypedDict):
    """The node types there are, and the types of their sockets."""

    node_types: list[NodeTypeResponse]
    socket_types: list[SocketTypeResponse]


class ToolOriginResponse(TypedDict):
    """Where a tool comes from."""

    kind: Literal["module", "package"]
    name: str
    """The name of the module or of the installed package."""


class ToolResponse(TypedDict):
    """One tool that `tool` and `toolset` nodes may name."""

    name: str
    description: str
    """What models read about it."""
    effect: Literal["none", "read", "write", "once"]
    """What a call does to the world; `once` must not happen twice."""
    approval: Literal["never", "always", "write"]
    """When a person approves a call; `write`: where it may change something."""
    timeout_s: float | None
    parameters: dict[str, Any]
    """JSON Schema of the arguments."""
    origin: ToolOriginResponse


class ToolsResponse(TypedDict):
    """The tools that the operator made available."""

    tools: list[ToolResponse]


class LimitResponse(TypedDict):
    """One limit."""

    name: str
    value: float
    default: float
    hard_cap: float
    unit: str
    what: str
    variable: str
    """The environment variable that sets it."""


class LimitsResponse(TypedDict):
    """The limits of the service."""

    limits: list[LimitResponse]
