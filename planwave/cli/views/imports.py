"""View of an import: what came over, what changed, what has to be replaced or set up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from rich.text import Text

from planwave.cli.console import CommandConsole, Line
from planwave.cli.formatting import counted, one_line, truncate
from planwave.foreign_formats import NOUNS

if TYPE_CHECKING:
    from planwave.shapes.imports import ImportedEdge, ImportedNode, ImportNote, ImportReport

_TEXT_CHARS: Final = 120
_SECTIONS: Final = (
    ("changed", "Changed", "yellow"),
    ("placeholder", "To be replaced", "red"),
    ("dropped", "Left out", "dim"),
)


def import_lines(console: CommandConsole, report: ImportReport) -> Iterable[Line]:
    """Return the lines of a report: a summary, and a line for each thing that a person has to know."""
    summary, title = report["summary"], report["title"]
    total = sum(summary[each] for each in ("mapped", "changed", "placeholder", "dropped"))
    version = f" {report['kind_version']}" if report["kind_version"] else ""
    named = f": {one_line(truncate(title, _TEXT_CHARS))}" if title else ""
    yield Text.assemble((f"This is {NOUNS[report['kind']]}{version}{named}", "bold"))
    yield (
        f"{counted(total, 'step')}: {summary['mapped']} as they were, {summary['changed']} changed, "
        f"{summary['placeholder']} to be replaced, {summary['dropped']} left out"
    )
    if report["notes"] or report["options"]:
        yield Text("\nThe whole file", style="bold")
        yield from _notes(report["notes"], "")
        for name, value in report["options"].items():
            yield f"  run it with {name.replace('_', '-')} {value}"
    for outcome, heading, colour in _SECTIONS:
        nodes = [each for each in report["nodes"] if each["outcome"] == outcome]
        if nodes:
            yield Text(f"\n{heading}", style=f"bold {colour}")
            for node in nodes:
                yield from _node_lines(node)
    yield from _edge_lines([each for each in report["edges"] if each["outcome"] != "mapped"])
    yield from _lost_lines(report)
    yield from _setup_lines(report)


def _node_lines(node: ImportedNode) -> Iterable[Line]:
    name = one_line(node["source_name"] or node["source_kind"])
    yield Text.assemble("  ", (name, "bold"), (f"  {one_line(node['source_kind'])}", "dim"))
    yield from _notes(node["notes"], "  ")


def _notes(notes: Iterable[ImportNote], indent: str) -> Iterable[Line]:
    for note in notes:
        place = f"  {one_line(note['pointer'])}" if note["pointer"] else ""
        yield Text.assemble(f"{indent}  {one_line(note['message'])}", (place, "dim"))
        if hint := note.get("hint"):
            yield Text(f"{indent}    {one_line(hint)}", style="dim")


def _edge_lines(edges: Sequence[ImportedEdge]) -> Iterable[Line]:
    """Return a line for each thing that is said of edges, with all places that it is said of."""
    places: dict[str, list[str]] = {}
    for note in (note for edge in edges for note in edge["notes"]):
        places.setdefault(note["message"], []).append(note["pointer"])
    if places:
        yield Text("\nEdges", style="bold")
    for message, pointers in places.items():
        where = truncate(", ".join(map(one_line, pointers)), _TEXT_CHARS)
        yield Text.assemble(f"  {one_line(message)}", (f"  {where}", "dim"))


def _lost_lines(report: ImportReport) -> Iterable[Line]:
    if report["lost"]:
        yield Text("\nLost", style="bold red")
    for part in report["lost"]:
        text = truncate(one_line(part["text"]), _TEXT_CHARS)
        yield Text.assemble(
            f"  {one_line(part['message'])}: ",
            (text, "cyan"),
            (f"  {one_line(part['pointer'])}", "dim"),
        )


def _setup_lines(report: ImportReport) -> Iterable[Line]:
    if report["setup"] or report["secrets"]:
        yield Text("\nTo set up", style="bold")
    for each in report["setup"]:
        used_by = ", ".join(map(one_line, each["used_by"]))
        yield Text.assemble(
            f"  {each['what']} {one_line(each['name'])}",
            (f"  for {used_by}" if used_by else "", "dim"),
        )
    for secret in report["secrets"]:
        yield Text.assemble(
            f"  the secret {one_line(secret['name'])} was not copied",
            (f"  {one_line(secret['pointer'])}", "dim"),
        )
