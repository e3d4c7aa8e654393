"""``if``: send the input one way or another, by what its text says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from planwave.graph.capabilities import ExecutionResult, FlowContext, NodeEvent
from planwave.graph.model import DEFAULT_TARGET_HANDLE, Port
from planwave.graph.values import Inputs
from planwave.nodes.node_type import Finding, NodeData, NodeType, passed_on
from planwave.nodes.wiring import Wiring

_OTHERWISE = "false"


class Condition(NodeData):
    """One test of the input's text; upper and lower case are the same."""

    operator: Literal["equal", "contains"]
    value: str

    def holds(self, lowered: str) -> bool:
        """Say whether it is true of a lower-cased text; an empty value never is."""
        wanted = self.value.strip().lower()
        if not wanted:
            return False
        return lowered == wanted if self.operator == "equal" else wanted in lowered


class IfData(NodeData):
    """The conditions, tried in order."""

    conditions: list[Condition] = Field(min_length=1)


class If(NodeType):
    """Passes its input on to ``condition-<i>`` of the first condition that holds, or ``false``."""

    node_type = "if"
    purpose = (
        "Choose a branch by the input's text: the first condition (equal or contains) that holds "
        "sends the input to condition-0, condition-1, …; none sends it to false."
    )
    Data = IfData
    outputs = (Port("condition-{i}"), Port(_OTHERWISE))

    async def run(self, data: IfData, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        lowered = inputs.text(DEFAULT_TARGET_HANDLE).lower()
        tried: list[str] = []
        handle = _OTHERWISE
        for i, condition in enumerate(data.conditions):
            held = condition.holds(lowered)
            tried.append(
                f'Condition {i + 1} ({condition.operator} "{condition.value}") evaluated as '
                f"{str(held).lower()}"
            )
            if held:
                handle = f"condition-{i}"
                break
        said = {"message": "; ".join(tried), "handle": handle}
        event = NodeEvent(context.node_id, self.node_type, "logic_check", context.run_id, said)
        return ExecutionResult({handle: passed_on(inputs)}, [event])

    def find_faults(self, data: IfData | None, wiring: Wiring) -> Iterable[Finding]:
        if data is None:
            return
        for i, condition in enumerate(data.conditions):
            if not condition.value.strip():
                yield Finding(
                    "never-matches",
                    f"condition {i} has an empty value and never holds",
                    f"/data/conditions/{i}/value",
                    severity="warning",
                )
        known = {_OTHERWISE, "error", *(f"condition-{i}" for i in range(len(data.conditions)))}
        for edge in wiring.outgoing:
            if edge.channel == "flow" and edge.source_handle.startswith("condition-"):
                if edge.source_handle in known:
                    continue
                yield Finding(
                    "unknown-handle",
                    f"edge {edge.id!r} leaves through {edge.source_handle!r}, but there are only "
                    f"{len(data.conditions)} condition(s)",
                    "/data/conditions",
                    hint=f"use one of {', '.join(sorted(known - {'error'}))}",
                )
