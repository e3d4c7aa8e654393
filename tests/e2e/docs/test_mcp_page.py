"""The blocks of docs/mcp.md: the settings can be read, and the graph can run with them."""

from __future__ import annotations

from pathlib import Path

from planwave.config.files import load_settings
from planwave.graph.checking.checker import read_and_check
from planwave.nodes.registry import default_registry
from tests.support.cli.doc_page import blocks
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "mcp.md").read_text("utf-8")


def test_the_settings_can_be_read_and_the_graph_can_run_with_them(tmp_path: Path) -> None:
    by_kind = {block["kind"]: block["text"] for block in blocks(PAGE)}
    assert by_kind.keys() == {"toml", "json"}
    file = tmp_path / "planwave.toml"
    file.write_text(by_kind["toml"])
    servers = load_settings(file).mcp
    assert {name: table.kind for name, table in servers.items()} == {
        "tickets": "stdio",
        "wiki": "http",
    }
    catalogue = default_registry().with_providers(None, mcp_servers=dict.fromkeys(servers))
    graph, found = read_and_check(by_kind["json"], catalogue)
    assert (graph is None, found) == (False, [])
