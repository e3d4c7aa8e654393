"""``switch``: send the input to the branch of the first case that its value is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from planwave.expressions import text_of
from planwave.graph.capabilities import ExecutionResult, FlowContext, NodeEvent
from planwave.graph.json_values import shown
from planwave.graph.model import DEFAULT_TARGET_HANDLE, Json, Port
from planwave.graph.values import Inputs
from planwave.nodes.branches import numbered_handle_faults
from planwave.nodes.node_type import Finding, NodeData, NodeType, passed_on, template
from planwave.nodes.wiring import Wiring

_BRANCH: Final = "case-"
_OTHERWISE: Final = "default"


class SwitchData(NodeData):
    """What is compared, the input as text where nothing is said, and with what."""

    value: str | None = template(None)
    cases: list[Json] = template(min_length=1)
    case_sensitive: bool = True


class Switch(NodeType):
    """Passes its input on to ``case-<i>`` of the first case that its value is, or ``default``.

    Both are read as text, without the white space around it.
    """

    node_type = "switch"
    purpose = (
        "Choose a branch by a value, the input if none is given: the first of cases that it is "
        "sends the input to case-0, case-1, …; none sends it to default."
    )
    Data = SwitchData
    outputs = (Port(_BRANCH + "{i}"), Port(_OTHERWISE))
    example: Mapping[str, Json] = {
        "nodes": [
            {"id": "start", "type": "start", "data": {"initialInput": {"kind": "refund"}}},
            {
                "id": "kind",
                "type": "switch",
                "data": {"value": "{{ input.kind }}", "cases": ["order", "refund"]},
            },
            {"id": "sell", "type": "text", "data": {"text": "To sales."}},
            {"id": "repay", "type": "text", "data": {"text": "To accounting."}},
            {"id": "read", "type": "text", "data": {"text": "To the front desk."}},
        ],
        "edges": [
            {"source": "start", "target": "kind", "data": {"channel": "flow"}},
            {
                "source": "kind",
                "sourceHandle": "case-0",
                "target": "sell",
                "data": {"channel": "flow"},
            },
            {
                "source": "kind",
                "sourceHandle": "case-1",
                "target": "repay",
                "data": {"channel": "flow"},
            },
            {
                "source": "kind",
                "sourceHandle": "default",
                "target": "read",
                "data": {"channel": "flow"},
            },
        ],
    }

    async def run(self, data: SwitchData, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        met = inputs.text(DEFAULT_TARGET_HANDLE) if data.value is None else data.value
        cases = [_read(case, data) for case in data.cases]
        wanted = _read(met, data)
        handle = f"{_BRANCH}{cases.index(wanted)}" if wanted in cases else _OTHERWISE
        said = {"message": f"{shown(met)} goes to {handle}", "handle": handle}
        event = NodeEvent(context.node_id, self.node_type, "logic_check", context.run_id, said)
        return ExecutionResult({handle: passed_on(inputs)}, [event])

    def find_faults(self, data: SwitchData | None, wiring: Wiring) -> Iterable[Finding]:
        if data is None or wiring.is_wired("cases"):
            return
        cases = [_read(case, data) for case in data.cases]
        for number, case in enumerate(cases):
            if cases.index(case) != number:
                message = f"case {number} is that of case-{cases.index(case)} and never met"
                pointer = f"/data/cases/{number}"
                yield Finding("never-matches", message, pointer, "remove it", "warning")
        pointer = "/data/cases"
        yield from numbered_handle_faults(_BRANCH, len(cases), _OTHERWISE, pointer, wiring)


def _read(case: Json, data: SwitchData) -> str:
    text = text_of(case).strip()
    return text if data.case_sensitive else text.lower()
