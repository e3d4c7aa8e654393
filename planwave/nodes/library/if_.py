"""``if``: send the input to the handle of the first condition that holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from planwave.expressions import to_text
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
from planwave.nodes.conditions import LENIENT, MISSING, UNARY, Operator, evaluate, value_at

_BRANCH_PREFIX = "condition-"
_ELSE_HANDLE = "false"


class Condition(NodeData):
    """One test of the input, or of its part at a dotted path (``field``).

    ``equal`` and ``contains`` compare texts, ignore case and white space around ``value``, and an empty
    text never matches; all other operators compare values. ``caseSensitive`` applies to every operator.
    """

    operator: Operator = Field(description="How the two are compared.")
    value: Json = Field(
        default_factory=lambda: MISSING,
        validate_default=True,
        description="What the input is compared with.",
    )
    field: str | None = Field(
        None, min_length=1, description="The part of the input, as user.age; without it, all of it."
    )
    case_sensitive: bool | None = Field(None, description="Whether upper and lower case differ.")

    @field_validator("value")
    @classmethod
    def _is_there(cls, value: Json, info: ValidationInfo) -> Json:
        if value is not MISSING:
            return value
        if info.data.get("operator", "") in UNARY:
            return None
        raise PydanticCustomError("missing", "Field required")

    @property
    def never_matches(self) -> bool:
        """Whether it looks for an empty text in a way that never finds one."""
        is_loose = self.operator in LENIENT and self.case_sensitive is None
        return is_loose and not to_text(self.value).strip()

    def describe(self) -> str:
        """Return the condition for display: ``contains "x"``, ``user.age greaterThan "5"``."""
        field = f"{self.field} " if self.field else ""
        operand = "" if self.operator in UNARY else f' "{to_text(self.value)}"'
        return f"{field}{self.operator}{operand}"


class IfData(NodeData):
    """The conditions, tried in order."""

    conditions: list[Condition] = template(
        written=True, min_length=1, description="Tried in order; each has an output of its own."
    )


class If(NodeType):
    """Passes its input on to ``condition-<i>`` of the first condition that holds, or ``false``."""

    node_type = "if"
    purpose = (
        "Choose a branch by the input: the first condition that holds (equal, contains, "
        "greaterThan, …) sends it to condition-0, condition-1, …; none sends it to false."
    )
    summary = "Choose a branch by comparing the input."
    Data = IfData
    plan_fields = ("conditions",)
    fails_permanently = True
    outputs = (Port(_BRANCH_PREFIX + "{i}", label="True"), Port(_ELSE_HANDLE, label="False"))

    async def run(self, data: IfData, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        passed = pass_through(inputs)
        tried: list[str] = []
        handle = _ELSE_HANDLE
        for i, condition in enumerate(data.conditions):
            holds = _evaluate_condition(condition, passed.value, inputs)
            tried.append(
                f"Condition {i + 1} ({condition.describe()}) evaluated as {str(holds).lower()}"
            )
            if holds:
                handle = f"{_BRANCH_PREFIX}{i}"
                break
        log = {"message": "; ".join(tried), "handle": handle}
        event = NodeEvent(context.node_id, self.node_type, "logic_check", context.run_id, log)
        return ExecutionResult({handle: passed}, [event])

    def configured_ports(self, data: Mapping[str, Json], leaving: Sequence[str]) -> NodePorts:
        count = branch_count(data.get("conditions"), _BRANCH_PREFIX, leaving)
        if count == 1:
            return NodePorts(
                outputs=ports_named([(f"{_BRANCH_PREFIX}0", "True"), (_ELSE_HANDLE, "False")])
            )
        branches = [(f"{_BRANCH_PREFIX}{i}", f"Condition {i + 1}") for i in range(count)]
        return NodePorts(outputs=ports_named([*branches, (_ELSE_HANDLE, "Otherwise")]))

    def check(self, data: IfData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None:
            return
        if not view.is_wired("conditions"):
            yield from _check_never_matches(data.conditions)
            yield from check_numbered_handles(
                _BRANCH_PREFIX, len(data.conditions), _ELSE_HANDLE, view
            )


def _evaluate_condition(condition: Condition, value: Json, inputs: Inputs) -> bool:
    if condition.field is not None:
        value = value_at(value, condition.field.split("."))
    elif not inputs.all(DEFAULT_TARGET_HANDLE):
        value = MISSING if condition.operator not in LENIENT else ""
    elif condition.operator in LENIENT:
        value = inputs.text(DEFAULT_TARGET_HANDLE)
    return evaluate(
        condition.operator, value, condition.value, case_sensitive=condition.case_sensitive
    )


def _check_never_matches(conditions: list[Condition]) -> Iterator[NodeFinding]:
    for i, condition in enumerate(conditions):
        if condition.never_matches:
            yield NodeFinding(
                "never-matches",
                f"condition {i} has an empty value and never holds",
                f"/data/conditions/{i}/value",
                severity="warning",
            )
