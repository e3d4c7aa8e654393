"""What came of an execution: the last steps' texts, then one line of facts and where it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from planwave.cli.screen import Screen
from planwave.cli.wording import (
    STATUS_WIDTH,
    counted,
    duration,
    error_text,
    money,
    one_line,
    state,
    status_words,
    table,
)

Document = Mapping[str, Any]


def show_result(screen: Screen, document: Document, path: Path | None) -> None:
    """Write an execution's outcome; with ``--json`` the document itself."""
    if screen.json:
        screen.result({**document, "document_path": None if path is None else str(path)})
    results = final_results(document)
    for name, text in results:
        screen.line()
        if len(results) > 1:
            screen.line(Text(one_line(name), style="bold"))
        screen.markdown(text)
    show_failures(screen, document)
    screen.line()
    screen.line(summary(screen, document))
    if path is not None and path.is_file():
        screen.text(f"Kept in {path}")


def final_results(document: Document) -> list[tuple[str, str]]:
    """Give name and text of each completed node whose result no other node took."""
    taken = {edge.get("source") for edge in _edges(document) if _is_flow(edge)}
    results = table(document.get("node_results"))
    return [
        (str(node.get("name") or node["id"]), str(results.get(node["id"]) or ""))
        for node in nodes_of(document)
        if node.get("status") == "completed" and node["id"] not in taken and not _is_nested(node)
    ]


def show_failures(screen: Screen, document: Document) -> None:
    """Name every node that failed, and why; or why the whole execution did."""
    failed = [node for node in nodes_of(document) if node.get("status") == "failed"]
    said = error_text(document.get("error"))
    if failed or said:
        screen.line()
    if said and not failed:
        screen.line(Text(f"{screen.glyph('failed')} {one_line(said)}", style="red"))
    for node in failed:
        screen.line(
            Text.assemble(
                (
                    f"{screen.glyph('failed')} {one_line(str(node.get('name') or node['id']))}: ",
                    "red",
                ),
                one_line(error_text(node.get("error"))),
            )
        )
        hint = table(node.get("error")).get("hint")
        if hint:
            screen.line(Text(f"  {screen.sign('→', '->')} {one_line(str(hint))}", style="dim"))


def node_lines(screen: Screen, document: Document) -> list[Text]:
    """Give one line a node: state, name, time, and why it did not run."""
    lines: list[Text] = []
    for node in nodes_of(document):
        status = str(node.get("status"))
        took = node.get("execution_time")
        seconds = duration(float(took)) if isinstance(took, int | float) else ""
        line = Text.assemble(
            "  ",
            (
                f"{screen.glyph(status)} {status_words(status):<{STATUS_WIDTH}} ",
                state(status).style,
            ),
            (f"{seconds:>12}  ", "dim"),
            one_line(str(node.get("name") or node["id"])),
        )
        if node.get("error"):
            line.append(f"  {one_line(error_text(node['error']))}", style="dim")
        lines.append(line)
    return lines


def summary(screen: Screen, document: Document) -> Text:
    """Give one line: status, nodes, time, tokens, cost."""
    status = str(document.get("status"))
    nodes = nodes_of(document)
    done = sum(node.get("status") == "completed" for node in nodes)
    parts = [f"{done} of {counted(len(nodes), 'step')} completed"]
    seconds = document.get("execution_time") or _seconds(document)
    if isinstance(seconds, int | float):
        parts.append(duration(float(seconds)))
    parts += _usage(table(document.get("usage")))
    dot = f" {screen.sign('·', '-')} "
    return Text.assemble(
        (f"{screen.glyph(status)} {status_words(status)}", f"bold {state(status).style}"),
        f"{dot}{dot.join(parts)}",
    )


def nodes_of(document: Document) -> list[Mapping[str, Any]]:
    """Give the nodes of a document."""
    return [node for node in map(table, document.get("nodes") or ()) if node.get("id")]


def _usage(usage: Mapping[str, Any]) -> list[str]:
    parts: list[str] = []
    read, told = usage.get("input_tokens") or 0, usage.get("output_tokens") or 0
    if read or told:
        parts.append(f"{read:,} + {told:,} tokens")
        cost = usage.get("cost_usd")
        parts.append("price unknown" if cost is None else "free" if cost == 0 else money(cost))
    return parts


def _seconds(document: Document) -> float | None:
    from datetime import datetime

    started, completed = document.get("started_at"), document.get("completed_at")
    if not (isinstance(started, str) and isinstance(completed, str)):
        return None
    try:
        return (datetime.fromisoformat(completed) - datetime.fromisoformat(started)).total_seconds()
    except ValueError:
        return None


def _is_nested(node: Mapping[str, Any]) -> bool:
    return "/" in str(node.get("path") or "")


def _edges(document: Document) -> list[Mapping[str, Any]]:
    graph = table(document.get("graph"))
    return [table(edge) for edge in graph.get("edges") or ()]


def _is_flow(edge: Mapping[str, Any]) -> bool:
    return table(edge.get("data")).get("channel") == "flow"
