from __future__ import annotations

from planwave.cli.views.flow import flow_lines, show_flow
from planwave.service.flows.flow_queries import Flow
from planwave.storage.records import FlowRecord, FlowVersion
from tests.support.cli.fake_console import (
    console_output,
    plain_console,
    terminal_console,
    visible_lines,
)
from tests.support.graph.builders import make_graph, text_node

ID, NEW, OLD = "01911111-0000-7000-8000-000000000001", "a" * 64, "b" * 64
AT = "2026-01-15T12:00:00+00:00"
GRAPH = make_graph(text_node("a"), text_node("b"), edges=[("a", "b")]).to_document()


def test_flow_line_has_full_id_in_a_pipe_and_short_id_on_a_terminal() -> None:
    flow = FlowRecord(ID, "two\nlines \x1b[2J", "", NEW, 12, AT, AT, 1)
    plain, pretty = plain_console(), terminal_console()
    for console in (plain, pretty):
        console.lines(flow_lines(console, [flow]))
    (line,) = console_output(plain).splitlines()
    assert line.startswith(f"{ID}  2026-01-1")
    assert "revision 12      1 step  two lines" in line
    assert "\x1b" not in line
    assert visible_lines(pretty)[0].startswith(f"…{ID[-6:]}  2026-01-1")


def test_show_flow_lists_waves_and_versions() -> None:
    console = plain_console()
    flow = Flow(ID, "Name", "why", NEW, 2, AT, AT, GRAPH)
    show_flow(console, flow, [FlowVersion(ID, NEW, 2, AT, 2), FlowVersion(ID, OLD, 1, AT, 1)])
    lines = console_output(console).splitlines()
    assert lines[:4] == ["Name", "For       why", f"Flow      {ID}", f"Version   {NEW}"]
    assert lines[4].endswith(", revision 2")
    assert "  b  text  ← a" in lines
    assert lines[-3] == "Versions"
    assert lines[-2].startswith(f"  ✓ {NEW}  2026-01-1")
    assert lines[-1].startswith(f"    {OLD}  ")
    assert lines[-1].endswith("revision 1, 1 step")
