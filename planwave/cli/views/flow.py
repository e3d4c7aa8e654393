"""Views of flows: a line in a list, or one flow with its waves and revisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from planwave.cli.console import CommandConsole, Line
from planwave.cli.formatting import counted, facts_lines, local_time, truncate
from planwave.cli.views.plan import inputs_text, show_plan
from planwave.cli.views.revisions import revision_lines
from planwave.service.flows.flow_queries import PUBLICATIONS, plan_of_flow

if TYPE_CHECKING:
    from planwave.service.flows.flow_queries import Flow
    from planwave.storage.records import PlanRevision

_NAME_CHARS = 200


def flow_lines(console: CommandConsole, flows: Sequence[Mapping[str, Any]]) -> Iterable[Line]:
    """Return the lines of a list of flows, each in the JSON form of the API."""
    ids = console.short_ids(flow["plan_id"] for flow in flows)
    return (_flow_line(flow, ids[flow["plan_id"]]) for flow in flows)


def _flow_line(flow: Mapping[str, Any], shown_id: str) -> Line:
    return Text.assemble(
        (shown_id, "cyan"),
        f"  {local_time(flow['updated_at'])}  ",
        (f"revision {flow['revision']:<4} {counted(flow['node_count'], 'step'):>9}  ", "dim"),
        truncate(flow["name"], _NAME_CHARS),
        (f"  ({_published(flow['published'])})" if flow["published"] else "", "dim"),
        ("" if flow["draft"] is None else f"  {draft_text(flow['draft'])}", "yellow"),
    )


def draft_text(draft: Mapping[str, Any]) -> str:
    """Return why callers of a flow do not start its newest revision, in words."""
    errors = draft["error_count"]
    why = f"has {counted(errors, 'error')}" if errors else "is not approved"
    return f"revision {draft['revision']} of {local_time(draft['created_at'])} {why}"


def publication_lines(publication: Mapping[str, Any]) -> Iterable[Line]:
    """Return the lines of what a flow is published as."""
    names = [each for each in PUBLICATIONS if publication[each]]
    hooks = [each["path"] for each in publication["hooks"] if each["enabled"]]
    yield from facts_lines(
        {"Published": _published(names) or "as nothing", "Webhooks": ", ".join(hooks)}
    )


def _published(names: Iterable[str]) -> str:
    return " and ".join(f"as a {name}" for name in names)


def show_flow(console: CommandConsole, flow: Flow, revisions: Sequence[PlanRevision]) -> None:
    """Write a flow: its description, its waves, its revisions, newest first."""
    facts = {
        "For": flow.description,
        "Flow": flow.plan_id,
        "Revision": f"{flow.revision}, {local_time(flow.updated_at)}",
        "Draft": None if flow.draft is None else draft_text(flow.draft),
        "Inputs": inputs_text(flow.inputs),
        "Published": _published(flow.published),
    }
    show_plan(console, plan_of_flow(flow), facts_lines(facts))
    console.line("Revisions")
    console.lines(revision_lines(revisions))
