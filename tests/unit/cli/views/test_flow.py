from __future__ import annotations

from dataclasses import replace

from planwave.cli.views.flow import flow_lines, show_flow
from planwave.principals import OPERATOR
from planwave.service.flows.flow_queries import Flow
from planwave.storage.records import Approval, PlanRevision
from tests.support.cli.fake_console import (
    console_output,
    plain_console,
    terminal_console,
    visible_lines,
)
from tests.support.graph.builders import make_graph, text_node

ID = "01911111-0000-7000-8000-000000000001"
AT = "2026-01-15T12:00:00+00:00"
GRAPH = make_graph(text_node("a"), text_node("b"), edges=[("a", "b")]).to_document()


def test_flow_line_has_full_id_in_a_pipe_and_short_id_on_a_terminal() -> None:
    draft = {"revision": 13, "created_at": "2026-02-15T12:00:00+00:00", "error_count": 2}
    flow = {
        "plan_id": ID, "name": "two\nlines \x1b[2J", "revision": 12, "updated_at": AT,
        "node_count": 1, "published": [], "draft": draft,
    }  # fmt: skip
    plain, pretty = plain_console(), terminal_console()
    for console in (plain, pretty):
        console.lines(flow_lines(console, [flow]))
    (line,) = console_output(plain).splitlines()
    assert line.startswith(f"{ID}  2026-01-1")
    assert "revision 12      1 step  two lines" in line, "of the revision that callers start"
    assert line.partition("revision 13 of 2026-02-1")[2].endswith(" has 2 errors")
    assert "\x1b" not in line
    assert visible_lines(pretty)[0].startswith(f"…{ID[-6:]}  2026-01-1")


def test_show_flow_lists_waves_and_revisions() -> None:
    console = plain_console()
    inputs = {"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}
    flow = Flow(ID, "Name", "A title", "why", 2, "h", AT, AT, GRAPH, inputs=inputs)
    draft = PlanRevision(ID, 3, "i", "A title", "person", "unfinished", AT, 2, 1)
    live, first = (PlanRevision(ID, n, "h", "A title", "api", "", AT, n, 0) for n in (2, 1))
    live = replace(live, approval=Approval(AT, OPERATOR))
    show_flow(console, flow, [draft, live, first])
    lines = console_output(console).splitlines()
    assert lines[:3] == ["Name", "For       why", f"Flow      {ID}"]
    assert lines[3].startswith("Revision  2, 2026-01-1")
    assert lines[4] == "Inputs    a: string, b (optional)"
    assert "  b  text  ← a" in lines
    assert lines[-4] == "Revisions"
    revisions = [line.split("  ", 2) for line in lines[-3:]]
    assert [number for number, _, _ in revisions] == ["3", "2", "1"]
    assert [what for _, _, what in revisions] == [
        "person   2 steps  draft, 1 error  A title  unfinished",
        "api      2 steps  approved  A title",
        "api      1 step  A title",
    ]
