"""``conditional``: a template says through which handle the input goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pydantic import Field

from planwave.errors import PermanentError
from planwave.expressions import has_template
from planwave.graph.diagnostics import short_repr
from planwave.graph.inputs import Inputs
from planwave.graph.model import ERROR_HANDLE, FLOW, Json, Port
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.nodes.authoring.node_type import (
    NodeData,
    NodeFinding,
    NodePorts,
    NodeType,
    pass_through,
    template,
)
from planwave.nodes.checking.branch_handles import check_named_handles, ports_named, texts_in
from planwave.nodes.checking.node_view import NodeView

_TRUE_FALSE: Final = ("true", "false")
"""The handles of a condition that is true or false."""
_MAX_HINT_CHARS: Final = 80
_HINT: Final = "let data.condition give one of them, or name a data.defaultHandle"


class ConditionalData(NodeData):
    """What names the handle. Without ``outputHandles`` those that edges leave through are meant."""

    condition: str = template(
        written=True, description="Gives the name of the output, such as true or false."
    )
    output_handles: list[str] = Field(
        [], max_length=100, description="The outputs there are; without them, those with an edge."
    )
    default_handle: str | None = Field(None, description="The output for every other name.")


class Conditional(NodeType):
    """Passes its input on to the handle that ``data.condition`` evaluates to, without outer white space.

    A branch without an edge ends there: ``true`` and ``false`` are both outputs where an edge, or
    ``outputHandles``, names one of them; with other names an edge or ``outputHandles`` declares each.
    """

    node_type = "conditional"
    purpose = (
        "Choose a branch by a template that gives its handle's name, such as "
        "{{ 'long' if input | length > 99 else 'short' }}; the input goes on through it."
    )
    summary = "Choose a branch by an expression."
    Data = ConditionalData
    plan_fields = ("condition", "outputHandles", "defaultHandle")
    fails_permanently = True
    outputs = (Port("true"), Port("false"), Port("{handle}"))
    chooses = True
    depends_outside = False

    async def run(
        self, data: ConditionalData, inputs: Inputs, context: FlowContext
    ) -> ExecutionResult:
        return ExecutionResult({_choose_handle(data, context): pass_through(inputs)})

    async def result_depends_on(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> Json:
        ready, _ = self.prepare(data, inputs, await self.read_wires(data, inputs, context), context)
        return _choose_handle(ready, context)

    def decided_by_edges(self, data: Mapping[str, Json], leaving: Sequence[str]) -> Json:
        """Return the handles that the condition may choose."""
        names = texts_in(data.get("outputHandles")) or [h for h in leaving if h != ERROR_HANDLE]
        if names and set(names) <= set(_TRUE_FALSE):
            return [*_TRUE_FALSE]
        return sorted({*names})  # pyright: ignore[reportReturnType]

    def configured_ports(self, data: Mapping[str, Json], leaving: Sequence[str]) -> NodePorts:
        names = texts_in(data.get("outputHandles")) or [h for h in leaving if h != ERROR_HANDLE]
        if set(names) <= set(_TRUE_FALSE):
            names = [*_TRUE_FALSE]
        names += texts_in([data.get("defaultHandle")])
        labels = ((name, name.capitalize() if name in _TRUE_FALSE else name) for name in names)
        return NodePorts(outputs=ports_named(labels))

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
        if not any(map(view.is_wired, ("condition", "outputHandles", "defaultHandle"))):
            yield from _check_literal(data, view)
        if any(map(view.is_wired, ("outputHandles", "defaultHandle"))):
            return
        if listed and default is not None and default not in listed:
            message = f"data.defaultHandle: {short_repr(default)} is none of data.outputHandles"
            hint = f"use one of {', '.join(listed)}, or add it there"
            yield NodeFinding("invalid-data", message, "/data/defaultHandle", hint)
        elif listed:
            yield from check_named_handles(listed, view)


def _check_literal(data: ConditionalData, view: NodeView) -> Iterator[NodeFinding]:
    """Find a condition that nothing evaluates and that names no handle, such as ``score > 3``."""
    written = data.condition.strip()
    leaving = [edge.source_handle for edge in view.outgoing if edge.channel == FLOW]
    handles = _known_handles(data, leaving) or _TRUE_FALSE
    if not written or has_template(written) or written in handles:
        return
    default = data.default_handle
    effect = "fails" if default is None else f"always chooses {short_repr(default)}"
    message = (
        f"data.condition is the text {short_repr(written)}, which is no output and is not "
        f"evaluated without braces: the node {effect}"
    )
    is_short = len(written) <= _MAX_HINT_CHARS
    hint = f"write {{{{ {written} }}}}" if is_short else "put {{ and }} around it"
    yield NodeFinding("literal-condition", message, "/data/condition", hint, "warning")


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
    handles = _known_handles(data, [edge.source_handle for edge in leaving])
    chosen = data.condition.strip()
    if chosen in handles:
        return chosen
    if data.default_handle is None:
        raise _unknown_handle(context.node_id, chosen, handles)
    return data.default_handle


def _known_handles(data: ConditionalData, leaving: Sequence[str]) -> list[str]:
    """Return the handles that the condition may choose: both of a condition that is true or false."""
    names = data.output_handles or [name for name in leaving if name != ERROR_HANDLE]
    if names and set(names) <= set(_TRUE_FALSE):
        names = _TRUE_FALSE
    more = [] if data.default_handle is None else [data.default_handle]
    return list(dict.fromkeys([*names, *more]))


def _unknown_handle(node_id: str, chosen: str, handles: Sequence[str]) -> PermanentError:
    what = f"names the handle {short_repr(chosen)}" if chosen else "names no handle"
    there = f"there are {', '.join(handles)}" if handles else "no edge leaves the node"
    return PermanentError(
        f"the condition of {node_id!r} {what}; {there}",
        code="unknown-handle",
        hint=_HINT if handles else "connect an edge, or declare data.outputHandles",
    )
