"""Shapes of imports: what became of a file of another program."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from planwave.shapes.common import GraphDocument, JsonSchema
from planwave.shapes.graphs import DiagnosticResponse

ImportOutcome = Literal["mapped", "changed", "placeholder", "dropped"]


class ImportNote(TypedDict):
    """What differs from the source, and where."""

    code: Annotated[str, JsonSchema(examples=["import-changed"])]
    message: str
    pointer: Annotated[str, JsonSchema(examples=["/nodes/2/data/code"])]
    """JSON pointer into the source."""
    hint: NotRequired[str]


class ImportedNode(TypedDict):
    """What became of one node of the source."""

    source: Annotated[str, JsonSchema(examples=["/nodes/2"])]
    """JSON pointer of the node in the source; of a Mermaid flowchart the line."""
    source_kind: Annotated[str, JsonSchema(examples=["code"])]
    source_name: str
    outcome: ImportOutcome
    """`changed`: it runs, and differs as the notes say. `placeholder`: it has no counterpart and must be
    replaced. `dropped`: it is not in the graph."""
    target: list[str]
    """The nodes it became; those in the graph of another one as `loop/step`."""
    notes: list[ImportNote]


class ImportedEdge(TypedDict):
    """What became of one edge of the source."""

    source: Annotated[str, JsonSchema(examples=["/connections/0"])]
    outcome: ImportOutcome
    target: list[str]
    """The edges it became; those in the graph of another node as `loop/e1`."""
    notes: list[ImportNote]


class LostPart(TypedDict):
    """A part of the source that is not in the graph."""

    pointer: str
    code: str
    text: str
    """The part as it was written, at most 200 characters, without secrets."""
    message: str


class RemovedSecret(TypedDict):
    """A secret that stood in the source and was not copied."""

    pointer: str
    name: Annotated[str, JsonSchema(examples=["Authorization"])]


class ImportSetup(TypedDict):
    """What the operator provides before the graph can run."""

    what: Literal["provider", "mcp", "secret", "flow", "tool"]
    name: str
    used_by: list[str]
    """The nodes of the graph that need it."""


class ImportSummary(TypedDict):
    """How many nodes of the source came over, and how."""

    mapped: int
    changed: int
    placeholder: int
    dropped: int


class ImportReport(TypedDict):
    """What became of a file: every node and edge of the source once."""

    kind: Annotated[str, JsonSchema(examples=["agentflow"])]
    kind_version: str | None
    title: str
    source_sha256: str
    options: dict[str, Any]
    """Options of the run that the source had in its graph, such as `scheduling`."""
    nodes: list[ImportedNode]
    edges: list[ImportedEdge]
    notes: list[ImportNote]
    """What is said of the file as a whole."""
    lost: list[LostPart]
    secrets: list[RemovedSecret]
    setup: list[ImportSetup]
    summary: ImportSummary


class ImportRecord(TypedDict):
    """Where a plan comes from: a file of another program, whose text is not kept."""

    imported_at: str
    report: ImportReport
    """What became of the file, as `POST /api/import` gave it; `source_sha256` tells the file again."""


class ImportedDocument(GraphDocument):
    """The graph, with its title and goal where the source has them."""

    title: NotRequired[str]
    user_prompt: NotRequired[str]


class ImportResponse(TypedDict):
    """A file of another program as a graph."""

    report: ImportReport
    document: ImportedDocument
    diagnostics: list[DiagnosticResponse]
    """The check of the graph; a placeholder is an error."""
    code: str
    """A Python module with the programs of the file as node types, if asked for; else empty."""
    saved: str | None
    """The id of the flow it was saved as."""
