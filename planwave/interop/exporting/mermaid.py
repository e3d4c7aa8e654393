"""A graph as a Mermaid flowchart: text that README files, pull requests and chats draw by themselves.

Importers may rely on what is written here: the outline says what a node does (``SHAPES``), the label of a line
has the handles that are not the default ones, a dotted line is a link, a subgraph the graph inside a node. All
text stands in quotes, with what Mermaid or HTML could read written as entities, so that no text can be a command.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from planwave.interop.exporting.drawing import Box, Drawing, Line, Shape, one_line
from planwave.interop.exporting.status_colours import STATUS_COLOURS

SHAPES: Final[Mapping[Shape, tuple[str, str]]] = {
    Shape.ENTRY: ("([", "])"),
    Shape.END: ("((", "))"),
    Shape.MODEL: ("[", "]"),
    Shape.BRANCH: ("{", "}"),
    Shape.PERSON: ("[/", "/]"),
    Shape.NESTED: ("[[", "]]"),
    Shape.GIVER: ("{{", "}}"),
    Shape.UNKNOWN: (">", "]"),
    Shape.STEP: ("(", ")"),
}
"""What stands around the label of a node."""
_ESCAPED: Final = re.compile(r"[\"#<>&`{}%;\\]")
_NAMES: Final = {'"': "quot", "<": "lt", ">": "gt", "&": "amp"}
_REWRITTEN: Final = re.compile("style|classdef", re.IGNORECASE)
"""In a line with one of these words and a colon, Mermaid drops the semicolon of an entity."""


def mermaid(drawing: Drawing, title: str = "", statuses: Mapping[str, str] | None = None) -> str:
    """Return a drawing as a Mermaid flowchart.

    Args:
        drawing: The drawing.
        title: A title above it; "" for none.
        statuses: The status of each node of an execution by its path; None without one.
    """
    lines = [*_front_matter(title), "flowchart TD", *_body(drawing, "  ")]
    lines += _classes(drawing, statuses or {})
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Return a text as it stands in quotes."""
    special = _ESCAPED.sub(_entity, text)
    return special.replace(":", "#58;") if _REWRITTEN.search(text) else special


def _entity(found: re.Match[str]) -> str:
    character = found.group()
    return f"#{_NAMES.get(character, ord(character))};"


def _front_matter(title: str) -> Iterator[str]:
    if shown := one_line(title):
        quoted = json.dumps(shown, ensure_ascii=False).replace("%%", "%\\u0025")
        yield from ("---", f"title: {quoted}", "---")


def _body(drawing: Drawing, indent: str) -> Iterator[str]:
    for box in drawing.boxes:
        yield f"{indent}{_box(box)}"
    for line in drawing.lines:
        yield f"{indent}{_line(line)}"
    for group in drawing.groups:
        yield f'{indent}subgraph {group.key}["{escaped(group.box.label)}"]'
        yield from _body(group.inside, f"{indent}  ")
        yield f"{indent}end"
        yield f"{indent}{group.box.key} -.- {group.key}"


def _box(box: Box) -> str:
    before, after = SHAPES[box.shape]
    return f'{box.key}{before}"{escaped(box.label)}"{after}'


def _line(line: Line) -> str:
    arrow = "-.->" if line.is_link else "-->"
    label = f'|"{escaped(line.label)}"|' if line.label else ""
    return f"{line.source} {arrow}{label} {line.target}"


def _classes(drawing: Drawing, statuses: Mapping[str, str]) -> Iterator[str]:
    keys: dict[str, list[str]] = {}
    for box in drawing.all_boxes():
        status = statuses.get(box.path, "")
        if status in STATUS_COLOURS:
            keys.setdefault(status, []).append(box.key)
    for status in sorted(keys):
        fill, stroke = STATUS_COLOURS[status]
        yield f"  classDef {status} fill:{fill},stroke:{stroke},color:#1b1f24"
    for status in sorted(keys):
        yield f"  class {','.join(keys[status])} {status}"
