"""``placeholder``: keeps the place of a step of another system that has no counterpart here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import Field, JsonValue

from planwave.errors import PermanentError
from planwave.graph.inputs import Inputs
from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    FLOW,
    LINK,
    Json,
    Port,
)
from planwave.graph.protocols import FlowContext
from planwave.nodes.authoring.data_fields import NO_SOCKET
from planwave.nodes.authoring.node_type import NodeData, NodeFinding, NodeType
from planwave.nodes.checking.node_view import NodeView

CODE: Final = "placeholder"
_HINT: Final = "replace it by steps that do the same, or remove it"


class PlaceholderData(NodeData):
    """What the step was; nothing of it is resolved or run."""

    kind: str = Field(
        min_length=1,
        description="The type of the step in the system that it came from.",
        json_schema_extra=NO_SOCKET,
    )
    name: str = Field("", description="Its name there.", json_schema_extra=NO_SOCKET)
    parameters: dict[str, JsonValue] = Field(
        {},
        description="Its settings there, as they were, without secrets.",
        json_schema_extra=NO_SOCKET,
    )
    code: str = Field(
        "",
        description="The program text of the step, if it had one.",
        json_schema_extra=NO_SOCKET,
    )


class Placeholder(NodeType):
    """Keeps the place of a step that has no counterpart here, with its settings and edges.

    It takes edges at any handle, flow and link, so that it may stand where a tool, a model, an entry or a branch was.
    The check reports each one as an error, so a graph with one can be saved as a draft, and cannot run.
    What ``parameters`` and ``code`` hold is literal: braces in it are no templates.
    """

    node_type = "placeholder"
    purpose = "Keep the place of a step of another system until somebody replaces it."
    summary = "A step that has no counterpart here."
    Data = PlaceholderData
    inputs = (
        Port(DEFAULT_TARGET_HANDLE, multiple=True),
        Port("{handle}", channel=FLOW, multiple=True),
        Port("{handle}", channel=LINK, multiple=True),
    )
    outputs = (
        Port(DEFAULT_SOURCE_HANDLE),
        Port("{handle}", channel=FLOW),
        Port("{handle}", channel=LINK),
    )
    chooses = True
    stands_in = True
    planned = False
    plan_fields = ()
    fails_permanently = True

    async def run(self, data: PlaceholderData, inputs: Inputs, context: FlowContext) -> Any:
        raise _refusal(data, context)

    async def materialize(
        self, data: Mapping[str, Json], output_handle: str, context: FlowContext
    ) -> Any:
        """Refuse to be linked, as to be run."""
        raise _refusal(PlaceholderData.model_validate(data), context)

    def check(self, data: PlaceholderData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is not None:
            yield NodeFinding(CODE, _message(data, view.node.name), "", _HINT)


def _refusal(data: PlaceholderData, context: FlowContext) -> PermanentError:
    """Return the error of a run that no check has stopped."""
    message = f"node {context.node_id!r}: {_message(data, context.node_id)}"
    return PermanentError(message, code=CODE, hint=_HINT)


def _message(data: PlaceholderData, name: str) -> str:
    step = data.name or name
    return f"step {step!r} was {data.kind}, which has no counterpart here"
