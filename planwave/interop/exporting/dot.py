"""A graph as Graphviz DOT: ``dot -Tsvg graph.dot``; the same drawing as the Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from planwave.interop.exporting.drawing import Box, Drawing, Line, Shape, one_line
from planwave.interop.exporting.status_colours import STATUS_COLOURS

SHAPES: Final[Mapping[Shape, str]] = {
    Shape.ENTRY: "oval",
    Shape.END: "doublecircle",
    Shape.MODEL: "box",
    Shape.BRANCH: "diamond",
    Shape.PERSON: "parallelogram",
    Shape.NESTED: "box3d",
    Shape.GIVER: "hexagon",
    Shape.UNKNOWN: "note",
    Shape.STEP: "ellipse",
}
"""The name of each outline."""
_PLAIN_FILL: Final = ("#ffffff", "#5c6874")


def dot(drawing: Drawing, title: str = "", statuses: Mapping[str, str] | None = None) -> str:
    """Return a drawing as a directed graph of DOT.

    Args:
        drawing: The drawing.
        title: A title above it; "" for none.
        statuses: The status of each node of an execution by its path; None without one.
    """
    lines = ["digraph {", "  compound=true", '  node [style=filled, fontname="sans-serif"]']
    lines.append('  edge [fontname="sans-serif"]')
    if shown := one_line(title):
        lines += [f"  label={_quoted(shown)}", "  labelloc=t"]
    lines += [*_body(drawing, statuses or {}, "  "), "}"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _attributes(**values: str) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items() if value)


def _body(drawing: Drawing, statuses: Mapping[str, str], indent: str) -> Iterator[str]:
    for box in drawing.boxes:
        yield f"{indent}{_box(box, statuses)}"
    for line in drawing.lines:
        yield f"{indent}{_line(line)}"
    for group in drawing.groups:
        cluster = _quoted(f"cluster_{group.key}")
        yield f"{indent}subgraph {cluster} {{"
        yield f"{indent}  label={_quoted(group.box.label)}"
        yield from _body(group.inside, statuses, f"{indent}  ")
        yield f"{indent}}}"
        ends = f"{_quoted(group.box.key)} -> {_quoted(group.inside.boxes[0].key)}"
        yield f"{indent}{ends} [{_attributes(style='dotted', arrowhead='none', lhead=cluster)}]"


def _box(box: Box, statuses: Mapping[str, str]) -> str:
    fill, stroke = STATUS_COLOURS.get(statuses.get(box.path, ""), _PLAIN_FILL)
    attributes = _attributes(
        label=_quoted(box.label),
        shape=SHAPES[box.shape],
        fillcolor=_quoted(fill),
        color=_quoted(stroke),
    )
    return f"{_quoted(box.key)} [{attributes}]"


def _line(line: Line) -> str:
    label = _quoted(line.label) if line.label else ""
    attributes = _attributes(label=label, style="dotted" if line.is_link else "")
    ends = f"{_quoted(line.source)} -> {_quoted(line.target)}"
    return f"{ends} [{attributes}]" if attributes else ends
