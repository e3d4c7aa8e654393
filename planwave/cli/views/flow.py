"""Views of flows: a line in a list, or one flow with its waves and versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from planwave.cli.console import CommandConsole, Line
from planwave.cli.formatting import counted, facts_lines, local_time, truncate
from planwave.cli.views.plan import show_plan
from planwave.service.flows.flow_queries import PUBLICATIONS, plan_of_flow

if TYPE_CHECKING:
    from planwave.service.flows.flow_queries import Flow
    from planwave.storage.records import FlowRecord, FlowVersion

_NAME_CHARS = 200
_VERSION_CHARS = 12
"""Characters of a version that a list shows; unique in practice."""


def flow_lines(console: CommandConsole, flows: Sequence[FlowRecord]) -> Iterable[Line]:
    """Return the lines of a list of flows."""
    ids = console.short_ids(flow.flow_id for flow in flows)
    return (_flow_line(flow, ids[flow.flow_id]) for flow in flows)


def _flow_line(flow: FlowRecord, shown_id: str) -> Line:
    return Text.assemble(
        (shown_id, "cyan"),
        f"  {local_time(flow.updated_at)}  ",
        (f"revision {flow.revision:<4} {counted(flow.node_count, 'step'):>9}  ", "dim"),
        truncate(flow.name, _NAME_CHARS),
        (f"  ({_published(flow.published)})" if flow.published else "", "dim"),
    )


def publication_lines(publication: Mapping[str, Any]) -> Iterable[Line]:
    """Return the lines of what a flow is published as."""
    names = [each for each in PUBLICATIONS if publication[each]]
    hooks = [each["path"] for each in publication["hooks"] if each["enabled"]]
    yield from facts_lines(
        {"Published": _published(names) or "as nothing", "Webhooks": ", ".join(hooks)}
    )


def _published(names: Iterable[str]) -> str:
    return " and ".join(f"as a {name}" for name in names)


def show_flow(console: CommandConsole, flow: Flow, versions: Sequence[FlowVersion]) -> None:
    """Write a flow: its description, its waves, its versions, newest first."""
    facts = {
        "For": flow.description,
        "Flow": flow.flow_id,
        "Version": flow.version,
        "Saved": f"{local_time(flow.updated_at)}, revision {flow.revision}",
        "Published": _published(flow.published),
    }
    show_plan(console, plan_of_flow(flow), facts_lines(facts))
    console.line("Versions")
    console.lines(_version_line(console, each, flow.version) for each in versions)


def _version_line(console: CommandConsole, version: FlowVersion, shown: str) -> Line:
    is_shown = version.version == shown
    name = version.version[:_VERSION_CHARS] if console.pretty else version.version
    return Text.assemble(
        f"  {console.glyph('completed') if is_shown else ' '} ",
        (name, "cyan"),
        f"  {local_time(version.created_at)}  ",
        (f"revision {version.revision}, {counted(version.node_count, 'step')}", "dim"),
    )
