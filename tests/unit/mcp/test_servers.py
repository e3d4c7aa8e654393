"""The operator's servers by name, and what `planwave doctor` finds out about them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from planwave.errors import McpError
from tests.support.mcp.servers import Marks, hostile_program, servers_of


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ticket", "did you mean 'tickets'?"),
        ("zzz", "there are: tickets; the operator sets one up with a table [mcp.zzz]"),
    ],
)
async def test_an_unknown_name_is_an_error_that_names_the_closest(name: str, hint: str) -> None:
    servers = servers_of(tickets={"url": "http://127.0.0.1:1/mcp"})
    with pytest.raises(McpError) as caught:
        async with servers.connection(name):
            pass
    assert caught.value.code == "unknown-mcp-server"
    assert hint in str(caught.value.hint)


async def test_without_the_sdk_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "planwave.mcp.connection", None)  # the first to need it
    with pytest.raises(McpError, match="not installed") as caught:
        async with servers_of(box={"command": "x"}).connection("box"):
            pass
    assert caught.value.code == "mcp-not-installed"
    assert caught.value.hint == "pip install 'planwave[mcp]'"


async def test_a_report_starts_every_server_and_stops_it_again(tmp_path: Path) -> None:
    marks = Marks(tmp_path / "marks")
    servers = servers_of(
        works=hostile_program(marks, "plain"),
        broken=hostile_program(marks, "exit"),
        lacks={"command": "x", "pass_env": ["NOT_SET"]},
    )
    broken, lacks, works = await servers.reports()
    assert (works.name, works.kind, works.tools, works.reason) == ("works", "stdio", 1, None)
    assert broken.tools is None
    assert "exited with status 7" in str(broken.reason)
    assert "NOT_SET, which is not set" in str(lacks.reason)
    await marks.all_gone()
    assert servers.kinds == {"broken": "stdio", "lacks": "stdio", "works": "stdio"}
