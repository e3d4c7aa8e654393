"""``tool_approval``: wait for a person's decision about one call of a tool. Agents run it; no graph has it."""

from __future__ import annotations

from typing import Any, cast

from pydantic import Field

from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Json, Port
from planwave.graph.protocols import FlowContext, Suspension
from planwave.nodes.authoring.data_fields import POLICY
from planwave.nodes.authoring.node_type import NodeData, ResumableType


class ToolApprovalData(NodeData):
    """The question, and the call it is about."""

    kind: str = Field("approval", description="The kind of the request.")
    prompt: str = Field(description="What the person is to decide.")
    actions: list[str] = Field(description="The decisions there are.")
    value: Json = Field(None, title="Value", description="The arguments of the call.")
    value_schema: dict[str, Json] | None = Field(
        None, description="The JSON Schema that changed arguments have to fit."
    )
    editable: bool = Field(False, description="Whether the person may change the arguments.")
    tool: dict[str, Json] = Field({}, description="The tool that is called.")
    execution_id: str | None = Field(
        None, description="The execution for which alone the answer holds: a fork of it asks again."
    )
    timeout_s: float | None = Field(
        None, description="How long it waits, in seconds.", json_schema_extra=POLICY
    )
    timeout_action: str | None = Field(
        None, description="The decision when that time is over.", json_schema_extra=POLICY
    )


class ToolApproval(ResumableType):
    """Gives the answer: ``{"decision", "note", "value"?}``; after the time limit its ``timeoutAction``.

    The request has the tool (``{"name", "kind", "effect", "call_id"}``), the arguments as ``value``, and
    as ``valueSchema`` the schema that changed arguments have to fit.
    """

    node_type = "tool_approval"
    purpose = "Ask a person about one call of a tool; agents run it by themselves."
    summary = "Ask about one call of a tool."
    Data = ToolApprovalData
    inputs = ()
    outputs = (Port("output", "json"),)
    fails_permanently = True
    planned = False
    run_by_nodes = True

    async def run(self, data: ToolApprovalData, inputs: Inputs, context: FlowContext) -> Suspension:
        request = data.model_dump(
            by_alias=True, exclude_none=True, exclude={"value", "execution_id"}
        )
        request["value"] = data.value
        if data.timeout_s is None:
            return Suspension(request)
        unanswered = {"decision": data.timeout_action, "note": "nobody answered in time"}
        return Suspension(request, None, data.timeout_s, cast("Json", unanswered))

    async def on_answer(
        self, data: ToolApprovalData, inputs: Inputs, context: FlowContext, state: Any, answer: Any
    ) -> DataValue:
        return DataValue("json", answer)
