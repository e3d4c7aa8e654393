"""``conditional``: a template says through which handle the input goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pydantic import Field

from planwave.errors import PermanentError
from planwave.graph.diagnostics import short_repr
from planwave.graph.inputs import Inputs
from planwave.graph.model import ERROR_HANDLE, FLOW, Json, Port
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.nodes.authoring.node_type import (
    NodeData,
    NodeFinding,
    NodeType,
    pass_through,
    template,
)
from planwave.nodes.checking.branch_handles import check_named_handles
from planwave.nodes.checking.node_view import NodeView

_HINT: Final = "let data.condition give one of them, or name a data.defaultHandle"


class ConditionalData(NodeData):
    """What names the handle. Without ``outputHandles`` those that edges leave through are meant."""

    condition: str = template()
    output_handles: list[str] = Field([], max_length=100)
    default_handle: str | None = None


class Conditional(NodeType):
    """Passes its input on to the handle that ``data.condition`` evaluates to, without outer white space."""

    node_type = "conditional"
    purpose = (
        "Choose a branch by a template that gives its handle's name, such as "
        "{{ 'long' if input | length > 99 else 'short' }}; the input goes on through it."
    )
    Data = ConditionalData
    fails_permanently = True
    outputs = (Port("{handle}"),)
    chooses = True

    async def run(
        self, data: ConditionalData, inputs: Inputs, context: FlowContext
    ) -> ExecutionResult:
        return ExecutionResult({_choose_handle(data, context): pass_through(inputs)})

    async def result_depends_on(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> Json:
        ready, _ = self.prepare(data, inputs, await self.read_wires(data, inputs, context), context)
        return _choose_handle(ready, context)

    def check(self, data: ConditionalData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None:
            return
        for field, name in _declared_handles(data):
            if not name.strip() or name != name.strip() or name == ERROR_HANDLE or "{" in name:
                why = "is reserved for errors" if name == ERROR_HANDLE else "cannot be a handle"
                pointer = f"/data/{field}"
                yield NodeFinding(
                    "invalid-data", f"{short_repr(name)} {why}", pointer, "name it otherwise"
                )
        default, listed = data.default_handle, data.output_handles
        if any(map(view.is_wired, ("outputHandles", "defaultHandle"))):
            return
        if listed and default is not None and default not in listed:
            message = f"data.defaultHandle: {short_repr(default)} is none of data.outputHandles"
            hint = f"use one of {', '.join(listed)}, or add it there"
            yield NodeFinding("invalid-data", message, "/data/defaultHandle", hint)
        elif listed:
            yield from check_named_handles(listed, "/data/outputHandles", view)


def _declared_handles(data: ConditionalData) -> Iterable[tuple[str, str]]:
    for number, name in enumerate(data.output_handles):
        yield f"outputHandles/{number}", name
    if data.default_handle is not None:
        yield "defaultHandle", data.default_handle


def _choose_handle(data: ConditionalData, context: FlowContext) -> str:
    """Return the handle that the condition evaluates to.

    Raises:
        NodeError: There is no such handle (``unknown-handle``) and no default.
    """
    leaving = context.runtime.outgoing_edges(context.node_id, channel=FLOW)
    known = _known_handles(data, [edge.source_handle for edge in leaving])
    chosen = data.condition.strip()
    if chosen in known:
        return chosen
    if data.default_handle is None:
        raise _unknown_handle(context.node_id, chosen, known)
    return data.default_handle


def _known_handles(data: ConditionalData, leaving: Sequence[str]) -> list[str]:
    """Return the handles that the condition may choose."""
    names = data.output_handles or [name for name in leaving if name != ERROR_HANDLE]
    more = [] if data.default_handle is None else [data.default_handle]
    return list(dict.fromkeys([*names, *more]))


def _unknown_handle(node_id: str, chosen: str, known: Sequence[str]) -> PermanentError:
    what = f"names the handle {short_repr(chosen)}" if chosen else "names no handle"
    there = f"there are {', '.join(known)}" if known else "no edge leaves the node"
    return PermanentError(
        f"the condition of {node_id!r} {what}; {there}",
        code="unknown-handle",
        hint=_HINT if known else "connect an edge, or declare data.outputHandles",
    )
