"""The revisions of a plan on the terminal, and the differences between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from planwave.cli.formatting import (
    clean,
    counted,
    json_object,
    json_text,
    local_time,
    one_line,
    truncate,
)
from planwave.graph.editing.difference import field_differences

if TYPE_CHECKING:
    from planwave.cli.console import CommandConsole
    from planwave.shapes.plans import FieldDifference
    from planwave.storage.records import PlanRevision

_AUTHOR_WIDTH: Final = len("planner")
_TEXT_WIDTH: Final = 200
_CONTENT: Final[Mapping[str, Mapping[str, Any]]] = {
    "name": {},
    "description": {},
    "data": {"data": {}},
    "policy": {"policy": {}},
}
"""What a step does, each with the object that lacks it: data and policy are shown field by field."""
_HANDLES: Final = {"source": "output", "target": "input"}
_SIDES: Final = (("- ", "red", "before"), ("+ ", "green", "after"))
_MARKS: Final = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}


def revision_lines(revisions: Sequence[PlanRevision]) -> Iterator[Text]:
    """Yield a line for each revision: number, time, author, size, errors, approval, note."""
    width = max((len(str(each.revision)) for each in revisions), default=0)
    for each in revisions:
        line = Text.assemble(
            (f"{each.revision:>{width}}", "cyan"),
            f"  {local_time(each.created_at)}  {each.author:<{_AUTHOR_WIDTH}}  ",
            (counted(each.node_count, "step"), "dim"),
        )
        if each.error_count:
            line.append(f"  draft, {counted(each.error_count, 'error')}", "red")
        if each.approval is not None:
            line.append("  approved", "green")
        line.append(f"  {truncate(each.title, _TEXT_WIDTH)}")
        if each.note:
            line.append(f"  {truncate(each.note, _TEXT_WIDTH)}", "dim italic")
        if each.created_by is not None:
            line.append(f"  by {one_line(str(each.created_by))}", "dim")
        yield line


def show_revision_difference(console: CommandConsole, difference: Mapping[str, Any]) -> None:
    """Write the nodes and edges that distinguish two revisions of a plan."""
    arrow = console.symbol("→", "->")
    console.line(
        Text.assemble(
            (f"Revision {difference['a']} {arrow} {difference['b']}", "bold"),
            (f"  plan {difference['plan_id']}", "dim"),
        )
    )
    lines = list(_difference_lines(difference))
    console.lines(lines or [Text("The graph and the title are the same.")])


def proposal_lines(proposal: Mapping[str, Any]) -> Iterator[Text]:
    """Yield what a proposed change of a plan does, what the plan would reach by it, and what would guard it no more."""
    if proposal["answer"]:
        yield Text(one_line(proposal["answer"]), "bold")
    yield from _difference_lines(proposal["difference"])
    additions = [json_object(each) for each in proposal["additions"]]
    for words, is_lost in (
        ("New: the plan does not do or reach this yet", False),
        ("Lost: this guards the plan now", True),
    ):
        found = [each for each in additions if (each["kind"] == "safeguard") is is_lost]
        if found:
            yield Text(words, "bold yellow")
        for each in found:
            yield Text.assemble(
                (f"! {each['kind']} {one_line(str(each['name']))}", "yellow"),
                (f"  in {one_line(str(each['node']))}", "dim"),
            )


def _difference_lines(difference: Mapping[str, Any]) -> Iterator[Text]:
    if difference.get("title"):
        yield Text("title", "bold")
        for title, (sign, style, _) in zip(difference["title"], _SIDES, strict=True):
            yield Text(f"    {sign}{one_line(str(title))}", style)
    for kind in ("nodes", "edges"):
        for entry in map(json_object, difference[kind]):
            yield from _element_lines(kind[:-1], entry)
    for kind in difference["reordered"]:
        yield Text(f"The {kind} have another order.", "dim")


def _element_lines(what: str, entry: Mapping[str, Any]) -> Iterator[Text]:
    sign, style = _MARKS[entry["change"]]
    element = json_object(entry.get("after") or entry.get("before"))
    ends = _ends(element) if what == "edge" else ""  # a person does not know an edge by its id
    detail = element.get("type") if what == "node" else ""
    yield Text.assemble(
        (f"{sign} {what} {one_line(str(ends or entry['id']))}", style),
        (f"  {one_line(str(detail))}" if detail else "", "dim"),
    )
    fields = entry.get("fields") or (_content(entry) if what == "node" else ())
    for field in map(json_object, fields):
        yield Text(f"    {one_line(str(field['pointer']))}", "bold")
        for sign, style, side in _SIDES:
            if side in field:
                yield from (Text(f"    {sign}{line}", style) for line in _lines(field[side]))


def _content(entry: Mapping[str, Any]) -> Iterator[FieldDifference]:
    """Yield what an added or removed node does, as the fields of a changed one."""
    nodes = [json_object(entry.get(side)) for side in ("before", "after")]
    for name, missing in _CONTENT.items():
        before, after = ({name: node[name]} if node.get(name) else missing for node in nodes)
        yield from field_differences(before, after)


def _ends(edge: Mapping[str, Any]) -> str:
    """Return the ends of an edge, with what is not usual of them: ports and channel."""
    if "source" not in edge:
        return ""
    source, target = (
        f"{edge[end]}.{handle}"
        if (handle := edge.get(f"{end}Handle") or usual) != usual
        else str(edge[end])
        for end, usual in _HANDLES.items()
    )
    channel = json_object(edge.get("data")).get("channel", "flow")
    return f"{source} to {target}" + ("" if channel == "flow" else f" ({channel})")


def _lines(value: Any) -> Iterator[str]:
    """Return the lines of a value; unlike text in one line, they keep their indentation."""
    return iter(clean(value if isinstance(value, str) else json_text(value)).split("\n"))
