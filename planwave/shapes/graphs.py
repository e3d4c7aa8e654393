"""Shapes of graphs: nodes, edges and ports, and what is known of a graph before it runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from planwave.shapes.common import EdgeDocument, GraphDocument, JsonSchema


class UpdateNodeSuggestion(TypedDict):
    """The operation that changes fields of a node."""

    op: Literal["update_node"]
    id: str
    set: dict[str, Any]
    """A merge patch (RFC 7396) for the node: null removes a field."""


class AddEdgeSuggestion(TypedDict):
    """The operation that adds an edge at the end."""

    op: Literal["add_edge"]
    edge: EdgeDocument


class RemoveEdgeSuggestion(TypedDict):
    """The operation that removes an edge."""

    op: Literal["remove_edge"]
    id: str


class SuggestionResponse(TypedDict):
    """The one way to correct a finding, for a person to accept."""

    label: Annotated[str, JsonSchema(examples=["Use type text"])]
    operations: list[UpdateNodeSuggestion | AddEdgeSuggestion | RemoveEdgeSuggestion]
    """For `PATCH`, of the plan or the flow that has the graph."""


class DiagnosticResponse(TypedDict):
    """One finding about a graph."""

    code: Annotated[str, JsonSchema(examples=["flow-cycle"])]
    severity: Literal["error", "warning", "info"]
    """`error` stops a graph from running."""
    message: str
    pointer: Annotated[str, JsonSchema(examples=["/nodes/1/data/model"])]
    """JSON pointer into the graph."""
    node: NotRequired[str]
    edge: NotRequired[str]
    path: NotRequired[list[str]]
    """The nodes around a cycle."""
    hint: NotRequired[str]
    """The way out."""
    fix: NotRequired[str]
    """Corrections of the document, made only if its meaning was certain."""
    suggestion: NotRequired[SuggestionResponse]
    """Only where there is one way to correct it."""


class Span(TypedDict):
    """From terse to talkative answers."""

    low: float
    high: float


class Effect(TypedDict):
    """A node that changes the world."""

    node: str
    type: str
    effect: Literal["write", "once"]


class ForecastModel(TypedDict):
    """A model that the steps of a plan call."""

    provider: str
    model: str
    calls: int
    reason: NotRequired[str]
    """Why it is the embedded one, though no step names it."""


class ForecastResponse(TypedDict):
    """The forecast of a plan: calls, tokens and cost, before anything runs."""

    waves: int
    nodes: int
    width: int
    """Nodes in the widest wave."""
    depth: int
    critical_path: list[str]
    calls: int
    """Model calls; those of a graph inside a node count once."""
    at_least: NotRequired[bool]
    """Whether a node runs graphs, so that it may be more."""
    tokens: Span
    cost_usd: Span | None
    """Null where a price is unknown."""
    effects: list[Effect]
    models: NotRequired[list[ForecastModel]]
    """The models that its steps call, that of most calls first; left out where none does."""
    uncounted_tools: NotRequired[list[str]]
    """The nodes of MCP servers, whose tools only a run knows: `tokens` leaves out what models read of them."""


class PortResponse(TypedDict):
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
    side: Annotated[str, JsonSchema(examples=["left"])]
    """`left`, `right`, `top` or `bottom`; the same for all ports of a name."""
    color: Annotated[str, JsonSchema(examples=["#2457d0"])]
    """That of the socket type on light pages."""
    shape: Annotated[str, JsonSchema(examples=["circle"])]
    """That of the socket type: `circle`, `square`, `diamond`, `tab`."""
    schema: NotRequired[dict[str, Any]]
    """JSON Schema of its values, where it says more than `type`."""


class NodePortsResponse(TypedDict):
    """The ports of one node."""

    inputs: list[PortResponse]
    outputs: list[PortResponse]


class CheckResponse(TypedDict):
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


class ForkPreviewResponse(TypedDict):
    """The nodes of a fork by what it would do with them."""

    reused: list[str]
    """Their results are reused, or set by the fork; they cost nothing."""
    runs: list[str]
    """They run."""
    undecided: list[str]
    """They are reused if what comes before them gives the same as before; else they run or are left out."""
