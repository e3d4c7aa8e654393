"""``approval``: wait for a person's decision, which names the output for the input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from pydantic import Field

from planwave.errors import PermanentError
from planwave.graph.diagnostics import short_repr
from planwave.graph.inputs import Inputs
from planwave.graph.model import ERROR_HANDLE, FLOW, Json, Port
from planwave.graph.protocols import ExecutionResult, FlowContext, Suspension
from planwave.nodes.authoring.data_fields import HIDDEN_FROM_PLANNER, POLICY, to_data_value
from planwave.nodes.authoring.node_type import (
    NodeData,
    NodeFinding,
    NodePorts,
    ResumableType,
    pass_through,
    template,
)
from planwave.nodes.checking.branch_handles import check_named_handles, ports_named, texts_in
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.services import MAX_WAIT_S, limits_of

_MAX_ACTION_CHARS: Final = 64
_REJECT: Final = "reject"
"""The decision where nobody answers as long as approvals may wait."""
_DEFAULT_ACTIONS: Final = ["approve", _REJECT]


class ApprovalData(NodeData):
    """The question, and the answers it allows."""

    prompt: str = template(description="What the person is to decide.")
    actions: list[str] = Field(
        _DEFAULT_ACTIONS,
        min_length=1,
        max_length=20,
        description="The decisions there are; each is an output.",
    )
    form: dict[str, Json] | None = Field(
        None,
        description="A JSON Schema of what the person fills in besides.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    )
    editable: bool = Field(
        True,
        description="Whether the person may change the value that goes on.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    )
    timeout_s: float | None = Field(
        None,
        gt=0,
        le=MAX_WAIT_S,
        description="How long it waits, in seconds; without it, as long as approvals may wait.",
        json_schema_extra=POLICY,
    )
    timeout_action: str | None = Field(
        None,
        description="The decision when that time is over.",
        json_schema_extra=POLICY,
    )


class Approval(ResumableType):
    """Passes its input, or the value that the person edited, on to the handle named by the decision.

    Without an answer within ``timeoutS`` it decides ``timeoutAction``; without a ``timeoutS``, where the
    service limits how long approvals wait (``approval_timeout_s``), it rejects, or fails if there is no
    action ``reject``.

    Every action is a handle. The answer is ``{"decision", "note", "value"?, "form"?}``; only the value
    is passed on, note and form are stored with the answer.
    """

    node_type = "approval"
    purpose = (
        "Wait for a person's decision, only where the goal asks for one; the input goes on through "
        "the handle named like it: approve or reject, or one of data.actions."
    )
    summary = "Ask a person to decide before it goes on."
    Data = ApprovalData
    plan_fields = ("prompt", "actions")
    fails_permanently = True
    outputs = (Port("{action}"),)
    chooses = True

    async def run(self, data: ApprovalData, inputs: Inputs, context: FlowContext) -> Suspension:
        for finding in _check_data(data):  # values of wires were not checked before the run
            raise PermanentError(finding.message, code="invalid-data", hint=finding.hint)
        request: dict[str, Json] = {
            "kind": "approval",
            "prompt": data.prompt,
            "actions": list(data.actions),
            "form": data.form,
            "value": pass_through(inputs).value,
            "editable": data.editable,
        }
        state: dict[str, Json] = {"actions": list(data.actions), "editable": data.editable}
        timeout_s, action = data.timeout_s, data.timeout_action
        limits = limits_of(context)
        if timeout_s is None and limits is not None:
            timeout_s = limits.approval_timeout_s
            action = _REJECT if _REJECT in data.actions else None
        if timeout_s is None:
            return Suspension(request, state)
        request |= {"timeoutS": timeout_s, "timeoutAction": action}
        return Suspension(request, state, timeout_s, {"decision": action, "note": ""})

    async def on_answer(
        self, data: ApprovalData, inputs: Inputs, context: FlowContext, state: Any, answer: Any
    ) -> ExecutionResult:
        """Pass the input or the edited value on to the decision's handle.

        Raises:
            NodeError: The answer does not match the request; ``service.executions.answers`` rejects
                such answers before they get here.
        """
        fields = cast("dict[str, Json]", answer) if isinstance(answer, dict) else {}
        decision: Any = fields.get("decision")
        actions: list[str] = state["actions"]
        if decision is None and "decision" in fields:
            raise PermanentError(
                "nobody answered the request in time, and it has no action that rejects it",
                code="approval-timeout",
                hint="give the approval a timeoutS and a timeoutAction, or retry the execution",
            )
        if decision not in actions:
            raise PermanentError(
                f"the decision {short_repr(decision)} is none of {', '.join(actions)}",
                code="unknown-decision",
                hint='answer with {"decision": …}, one of these',
            )
        if "value" not in fields:
            return ExecutionResult({decision: pass_through(inputs)})
        if not state["editable"]:
            raise PermanentError("the value cannot be edited here", code="value-not-editable")
        value = fields["value"]
        return ExecutionResult({decision: to_data_value(value)})

    def configured_ports(self, data: Mapping[str, Json], leaving: Sequence[str]) -> NodePorts:
        actions = texts_in(data.get("actions", _DEFAULT_ACTIONS)) or [
            handle for handle in leaving if handle != ERROR_HANDLE
        ]
        return NodePorts(outputs=ports_named((action, action) for action in actions))

    def check(self, data: ApprovalData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None:
            return
        if not data.prompt.strip() and not view.is_wired("prompt"):
            hint = "write what the person is to decide"
            yield NodeFinding("invalid-data", "data.prompt is blank", "/data/prompt", hint)
        if not any(map(view.is_wired, ("actions", "form", "timeoutS", "timeoutAction"))):
            yield from _check_data(data)
        if not view.is_wired("actions"):
            yield from check_named_handles(data.actions, view)
            yield from _check_unused_decision(data.actions, view)


def _check_data(data: ApprovalData) -> Iterator[NodeFinding]:
    """Yield errors of data that satisfy the model."""
    counts = Counter(data.actions)
    for number, action in enumerate(data.actions):
        if action == ERROR_HANDLE:
            why = "is reserved for errors"
        elif not 0 < len(action) <= _MAX_ACTION_CHARS:
            why = f"has to have 1 to {_MAX_ACTION_CHARS} characters"
        elif action != action.strip() or not action.isprintable() or "{" in action:
            why = "has spaces around it, or characters no handle has"
        elif counts[action] > 1 and data.actions.index(action) != number:
            why = "is there already"
        else:
            continue
        message = f"data.actions.{number}: {short_repr(action)} {why}"
        yield NodeFinding("invalid-data", message, f"/data/actions/{number}", "name it otherwise")
    yield from _check_timeout(data)
    if data.form is not None:
        yield from _check_form(data.form)


def _check_form(form: dict[str, Json]) -> Iterator[NodeFinding]:
    # Lazy: test_importing_the_node_library_loads_no_sdk
    from planwave.nodes.json_schema import check_schema

    for error in check_schema(form):
        message = f"data.form is no usable JSON Schema: {error.message}"
        yield NodeFinding("invalid-data", message, f"/data/form{error.pointer}", error.hint)


def _check_timeout(data: ApprovalData) -> Iterator[NodeFinding]:
    action, hint = data.timeout_action, f"use one of {', '.join(data.actions)}"
    if action is None and data.timeout_s is not None:
        message = "data.timeoutS needs data.timeoutAction, the decision after the time limit"
        yield NodeFinding("invalid-data", message, "/data/timeoutAction", hint)
    elif action is not None and action not in data.actions:
        message = f"data.timeoutAction: {short_repr(action)} is none of the actions"
        yield NodeFinding("invalid-data", message, "/data/timeoutAction", hint)


def _check_unused_decision(actions: list[str], view: NodeView) -> Iterator[NodeFinding]:
    """Find a question whose answer leads nowhere."""
    if not any(edge.channel == FLOW for edge in view.outgoing):
        message = "nothing follows the decision: no edge leaves through any of the actions"
        hint = f"connect its output {actions[0]!r} to the step that follows"
        yield NodeFinding("unused-decision", message, "/data/actions", hint, "warning")
