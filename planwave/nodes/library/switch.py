"""``switch``: send the input to the branch of the first case that its value is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from pydantic import Field

from planwave.expressions import to_text
from planwave.graph.diagnostics import short_repr
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_TARGET_HANDLE, Json, Port
from planwave.graph.protocols import ExecutionResult, FlowContext, NodeEvent
from planwave.nodes.authoring.node_type import (
    NodeData,
    NodeFinding,
    NodePorts,
    NodeType,
    pass_through,
    template,
)
from planwave.nodes.checking.branch_handles import (
    branch_count,
    check_numbered_handles,
    ports_named,
)
from planwave.nodes.checking.node_view import NodeView

_BRANCH_PREFIX: Final = "case-"
_DEFAULT_HANDLE: Final = "default"
_MAX_LABEL_CHARS: Final = 40


class SwitchData(NodeData):
    """The value to compare (by default the input as text) and the cases."""

    value: str | None = template(None, description="What is compared; without it, the input.")
    cases: list[Json] = template(
        written=True,
        min_length=1,
        description="The values, tried in order; each has an output of its own.",
    )
    case_sensitive: bool = Field(True, description="Whether upper and lower case differ.")


class Switch(NodeType):
    """Passes its input on to ``case-<i>`` of the first case that equals its value, or to ``default``.

    Both are compared as text, without outer white space.
    """

    node_type = "switch"
    purpose = (
        "Choose a branch by a value, the input if none is given: the first of cases that it is "
        "sends the input to case-0, case-1, …; none sends it to default."
    )
    summary = "Choose a branch by a value."
    Data = SwitchData
    plan_fields = ("value", "cases", "caseSensitive")
    fails_permanently = True
    outputs = (Port(_BRANCH_PREFIX + "{i}"), Port(_DEFAULT_HANDLE))

    async def run(self, data: SwitchData, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        value = inputs.text(DEFAULT_TARGET_HANDLE) if data.value is None else data.value
        cases = [_comparable_text(case, data) for case in data.cases]
        text = _comparable_text(value, data)
        handle = f"{_BRANCH_PREFIX}{cases.index(text)}" if text in cases else _DEFAULT_HANDLE
        log = {"message": f"{short_repr(value)} goes to {handle}", "handle": handle}
        event = NodeEvent(context.node_id, self.node_type, "logic_check", context.run_id, log)
        return ExecutionResult({handle: pass_through(inputs)}, [event])

    def configured_ports(self, data: Mapping[str, Json], leaving: Sequence[str]) -> NodePorts:
        cases = data.get("cases")
        count = branch_count(cases, _BRANCH_PREFIX, leaving)
        listed = cast("list[Json]", cases) if isinstance(cases, list) else []
        labels = [to_text(case)[:_MAX_LABEL_CHARS] for case in listed]
        labels = labels or [f"Case {i + 1}" for i in range(count)]
        branches = [(f"{_BRANCH_PREFIX}{i}", label) for i, label in enumerate(labels)]
        return NodePorts(outputs=ports_named([*branches, (_DEFAULT_HANDLE, "Default")]))

    def check(self, data: SwitchData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None or view.is_wired("cases"):
            return
        cases = [_comparable_text(case, data) for case in data.cases]
        for number, case in enumerate(cases):
            if cases.index(case) != number:
                message = f"case {number} is that of case-{cases.index(case)} and is never reached"
                pointer = f"/data/cases/{number}"
                yield NodeFinding("never-matches", message, pointer, "remove it", "warning")
        yield from check_numbered_handles(_BRANCH_PREFIX, len(cases), _DEFAULT_HANDLE, view)


def _comparable_text(case: Json, data: SwitchData) -> str:
    text = to_text(case).strip()
    return text if data.case_sensitive else text.lower()
