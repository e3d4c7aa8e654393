"""Response models of providers, MCP servers, node types and limits."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planwave.api.schemas.common import ResponseModel


class ModelDownload(ResponseModel):
    """A download of a model that is going on."""

    model: str
    done_bytes: int
    size_bytes: int


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
    download: ModelDownload | None
    """Of the embedded model, while it is downloaded; null: it is not."""


class ProvidersResponse(ResponseModel):
    """The providers that can be used, by name, and details of all."""

    providers: list[str]
    default_models: dict[str, str | None]
    models: dict[str, list[str]]
    details: list[ProviderDetails]


class McpServerResponse(ResponseModel):
    """An MCP server that the operator has set up."""

    name: str
    """What `mcp_server` nodes name it."""
    kind: Literal["stdio", "http"]
    """Whether it is a program, or at a URL."""


class McpServersResponse(ResponseModel):
    """The MCP servers, sorted by name."""

    servers: list[McpServerResponse]


class PortResponse(ResponseModel):
    """A named socket of a node type; one that takes flow and link edges is listed once for each."""

    name: str
    """The handle; `{i}` in it stands for a number, any other `{word}` for any text."""
    type: str
    """The socket type; `socket_types` lists them."""
    label: str
    channel: Literal["flow", "link"]
    multiple: bool
    """Whether several flow edges may lead into it."""
    required: bool
    side: str = Field(examples=["left"])
    """`left`, `right`, `top` or `bottom`; the same for all ports of a name."""
    color: str = Field(examples=["#2457d0"])
    """That of the socket type on light pages."""
    shape: str = Field(examples=["circle"])
    """That of the socket type: `circle`, `square`, `diamond`, `tab`."""


class NodePortsResponse(ResponseModel):
    """The ports of one node."""

    inputs: list[PortResponse]
    outputs: list[PortResponse]


class SocketTypeResponse(ResponseModel):
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


class NodeTypeResponse(ResponseModel):
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
    schema_: dict[str, Any] = Field(alias="schema")
    """JSON Schema of `data`."""
    example: dict[str, Any]
    """A small graph that shows it at work and can be run; empty where there is none."""


class NodeTypesResponse(ResponseModel):
    """The node types there are, and the types of their sockets."""

    node_types: list[NodeTypeResponse]
    socket_types: list[SocketTypeResponse]


class ToolOriginResponse(ResponseModel):
    """Where a tool comes from."""

    kind: Literal["module", "package"]
    name: str
    """The name of the module or of the installed package."""


class ToolResponse(ResponseModel):
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


class ToolsResponse(ResponseModel):
    """The tools that the operator made available."""

    tools: list[ToolResponse]


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
    """The limits of the service."""

    limits: list[LimitResponse]
