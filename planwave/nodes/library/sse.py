"""``sse``: begin with an event of a stream of another service."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Json, Port
from planwave.graph.protocols import FlowContext
from planwave.nodes.authoring.data_fields import NO_SOCKET
from planwave.nodes.authoring.node_type import NodeData, NodeFinding, NodeType
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.tools.secret_headers import SecretHeadersField, check_secret_headers


class SseData(NodeData):
    """The stream, and which of its events count."""

    url: str = Field(
        min_length=1,
        max_length=2_000,
        description="The address of the stream (server-sent events).",
        json_schema_extra=NO_SOCKET,
    )
    headers: dict[str, str] = Field(
        {}, description="Headers of the request; no secrets.", json_schema_extra=NO_SOCKET
    )
    secret_headers: SecretHeadersField = Field({})
    events: list[str] = Field(
        [],
        max_length=50,
        description="The types of events that start a run; an empty list for all.",
        json_schema_extra=NO_SOCKET,
    )
    max_parallel: int = Field(
        1,
        ge=1,
        le=20,
        description="Runs at once; the stream is read no further meanwhile.",
        json_schema_extra=NO_SOCKET,
    )


class Sse(NodeType):
    """Outputs the event that started the run: ``{"event", "id", "data"}``.

    ``data`` is parsed where it is JSON, else text. A run that no event started has none of them.
    """

    node_type = "sse"
    purpose = "Begin with an event of a stream of another service; its content is at output.data."
    summary = "Begin with an event of a stream."
    Data = SseData
    fails_permanently = True
    inputs: tuple[Port, ...] = ()
    outputs = (Port(DEFAULT_SOURCE_HANDLE, "json"),)
    entry = expects_input = True
    planned = False

    async def run(self, data: SseData, inputs: Inputs, context: FlowContext) -> Json:
        return {"event": None, "id": None, "data": None}

    def check(self, data: SseData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None:
            return
        # A stream may be set up before its secret is.
        yield from check_secret_headers(data.secret_headers, view, "warning")
