"""``merge``: bring branches together."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planwave.expressions import copy_json
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DEFAULT_TARGET_HANDLE, DataValue, Json, Port
from planwave.graph.protocols import FlowContext, SourceKeys
from planwave.nodes.authoring.data_fields import HIDDEN_FROM_PLANNER
from planwave.nodes.authoring.node_type import NodeData, NodeType


class MergeData(NodeData):
    """How the values are combined."""

    mode: Literal["list", "object"] = Field(
        "list", description="A list in the order of the edges, or an object by node id."
    )
    keys: dict[str, str] = Field(
        {},
        description="In an object: other keys, by node id.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    )


class Merge(NodeType):
    """Outputs the values that arrived, in edge order; branches without a value are left out.

    In mode ``object`` the keys are the ids of the source nodes, or what ``keys`` has for them: it keeps the
    key of a node that is renamed. Several values with one key become a list.
    """

    node_type = "merge"
    purpose = (
        "Bring branches together: the list of what arrived, in edge order, or an object by node id; "
        "branches not taken are left out."
    )
    summary = "Bring branches together."
    Data = MergeData
    plan_fields = ("mode",)
    fails_permanently = True
    passes_on = True
    source_keys = SourceKeys("keys", when="mode", equals="object")
    outputs = (Port(DEFAULT_SOURCE_HANDLE, "json"),)

    async def run(self, data: MergeData, inputs: Inputs, context: FlowContext) -> DataValue:
        arrived = [a for a in inputs.arrivals if a.target_handle == DEFAULT_TARGET_HANDLE]
        if data.mode == "list":
            return DataValue("json", [copy_json(each.value.value) for each in arrived])
        by_source: dict[str, list[Json]] = {}
        for each in arrived:
            key = data.keys.get(each.source_id, each.source_id)
            by_source.setdefault(key, []).append(copy_json(each.value.value))
        merged = {
            key: members[0] if len(members) == 1 else members for key, members in by_source.items()
        }
        return DataValue("json", merged)
