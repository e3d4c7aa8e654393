"""The steps and wires of a flow as its file has them, each announced to the report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from planwave.interop.importing.conversion import Conversion, SourceEdge, SourceNode
from planwave.interop.importing.reading import object_of, objects_in, position_of, text_of

LEGACY_HANDLE: Final = "handle_generated_end"
"""The handle that only files of the older version have."""
NAMES_OF_FLOW: Final = ("magic_flow", "flow", "graph", "subgraph")
_ENVIRONMENT: Final = re.compile(r"\{\{\s*env\.(\w+)\s*\}\}")


@dataclass(eq=False)
class Step:
    """A node of a flow.

    Attributes:
        id: Its id, which is unique in the flow.
        kind: Its type.
        data: Its fields, without secrets.
        node: Its account in the report.
    """

    id: str
    kind: str
    data: Mapping[str, Any]
    node: SourceNode
    _is_printing_noted: bool = False

    def note_printing(self, pointer: str) -> None:
        """Say once that a template writes values that are no text in another way than there."""
        if not self._is_printing_noted:
            self._is_printing_noted = True
            self.node.change(
                "values that are no text are written as JSON, none as nothing; there Python wrote them, such as True "
                "and ['a']",
                pointer,
            )


@dataclass(eq=False)
class Wire:
    """An edge of a flow.

    Attributes:
        source: The step that it leaves; never one that is not there.
        target: The step that it leads to.
        out: The handle that it leaves by; "" if the file names none.
        into: The handle that it leads to; "" if the file names none.
        edge: Its account in the report.
    """

    source: Step
    target: Step
    out: str
    into: str
    edge: SourceEdge


@dataclass
class Flow:
    """The steps and wires of one flow.

    Attributes:
        steps: In the order of the file.
        wires: In the order of the file; only those that carry something.
        is_legacy: Whether it is of the older version of the format.
    """

    steps: list[Step] = field(default_factory=list[Step])
    wires: list[Wire] = field(default_factory=list[Wire])
    is_legacy: bool = False


def is_legacy(document: Mapping[str, Any]) -> bool:
    """Return whether a flow is of the older version, where every handle is the default output."""
    return any(
        text_of(edge, "sourceHandle") == LEGACY_HANDLE for _, edge in objects_in(document, "edges")
    )


def read_flow(conversion: Conversion, document: Mapping[str, Any], pointer: str) -> Flow:
    """Announce the nodes and edges of a flow, and return those that count."""
    flow = Flow(is_legacy=is_legacy(document))
    by_id: dict[str, Step] = {}
    for number, entry in objects_in(document, "nodes"):
        step = _step(conversion, entry, f"{pointer}/nodes/{number}")
        if step.id in by_id:
            step.node.change(f"two steps have the id {step.id!r}", code="import-renamed")
            step.id = f"{step.id}#{number}"
        by_id[step.id] = step
        flow.steps.append(step)
    seen: set[tuple[str, str, str, str]] = set()
    for number, entry in objects_in(document, "edges"):
        wire = _wire(conversion, entry, f"{pointer}/edges/{number}", by_id, seen)
        if wire is not None:
            flow.wires.append(wire)
    return flow


def environment_names(text: str) -> list[str]:
    """Return the environment variables that a text names as ``{{env.NAME}}``."""
    return _ENVIRONMENT.findall(text)


def _step(conversion: Conversion, entry: Mapping[str, Any], pointer: str) -> Step:
    data = object_of(entry, "data")
    step_id, kind = text_of(entry, "id"), text_of(entry, "type")
    position = position_of(object_of(entry, "position"))
    shown = {k: v for k, v in data.items() if k not in ("code", *NAMES_OF_FLOW)}
    code = text_of(data, "code") or text_of(data, "function_template")
    node = conversion.source_node(
        pointer, kind or "unknown", step_id, parameters=shown, code=code, position=position
    )
    if object_of(data, "handles"):
        node.lose(
            "names of its own for its handles",
            str(dict(data["handles"])),
            f"{pointer}/data/handles",
        )
    return Step(step_id, kind, data, node)


def _wire(
    conversion: Conversion,
    entry: Mapping[str, Any],
    pointer: str,
    by_id: Mapping[str, Step],
    seen: set[tuple[str, str, str, str]],
) -> Wire | None:
    """Announce an edge; return None where it carries nothing, there as here."""
    source, target = (by_id.get(text_of(entry, end)) for end in ("source", "target"))
    edge = conversion.source_edge(pointer, source and source.node, target and target.node)
    if isinstance(entry.get("hooks"), dict):
        edge.note("import-ignored", "the hook on this wire is left out: it watched what passed")
    out, into = text_of(entry, "sourceHandle"), text_of(entry, "targetHandle")
    if source is None or target is None:
        edge.drop("import-dangling", "it leads to or from a step that is not there")
    elif source is target:
        edge.drop("import-cycle", "it leads from a step to itself, which was left out there too")
    elif (key := (source.id, target.id, out, into)) in seen:
        edge.drop("import-ignored", "the same wire is there twice")
    elif target.kind != "end" and target.kind != "void" and into in ("", "handle-void"):
        edge.drop(
            "import-ignored", "it names no handle of its target, so that nothing arrived there"
        )
    else:
        seen.add(key)
        return Wire(source, target, out, into, edge)
    return None


def flow_inside(data: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """Return the flow in the data of a step, with the name of its field, if it has one."""
    for name in NAMES_OF_FLOW:
        if isinstance(value := data.get(name), dict):
            return name, cast("Mapping[str, Any]", value)
    return None
