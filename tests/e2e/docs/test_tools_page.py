"""docs/tools.md is true: its command and its functions are run, its graphs are checked."""

from __future__ import annotations

import asyncio
import re
import shlex
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from planwave.errors import ToolError
from planwave.graph.checking.checker import read_and_check
from planwave.nodes.agents.tool_registry import default_tools
from planwave.nodes.registry import default_registry
from tests.support.cli.doc_page import blocks, commands
from tests.support.llm.fake_providers import ListedProviders
from tests.support.nodes.node_packages import run_command
from tests.support.nodes.tool_calls import call_context
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "tools.md").read_text("utf-8")


@pytest.mark.timeout(300)
def test_every_block_runs_and_prints_its_output(tmp_path: Path) -> None:
    followed = 0
    for block in blocks(PAGE):
        if block["kind"] != "console":
            (tmp_path / block["file"]).write_text(block["text"], "utf-8")
            continue
        for command in commands(block["text"]):
            done = run_command(shlex.split(command.line), tmp_path)
            assert (done.returncode, done.stdout.strip()) == (0, command.output.strip()), done
            followed += 1
    assert followed == 1
    assert len(blocks(PAGE)) * 2 == len(re.findall(r"^```", PAGE, re.M))


def test_the_functions_of_the_page_are_called_and_its_graphs_checked(tmp_path: Path) -> None:
    (text,) = [block["text"] for block in blocks(PAGE) if block["kind"] == "python"]
    file = tmp_path / "page_shop_tools.py"
    file.write_text(text, "utf-8")
    before = dict(default_tools()._tools)
    try:
        spec = spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        registry = default_registry().with_providers(ListedProviders({"openai": ["m"]}))
        for block in blocks(PAGE):
            if block["kind"] == "json":
                assert read_and_check(block["text"], registry)[1] == []
    finally:
        default_tools()._tools.clear()
        default_tools()._tools.update(before)

    async def call() -> None:
        refund = module.refund.tool
        assert await refund.call({"number": "7", "percent": 50}, call_context()) == (
            "50 % of 7 refunded under the key call_1"
        )
        assert list(refund.parameters["properties"]) == ["number", "percent", "reason"]
        with pytest.raises(ToolError, match="there is no order 9"):
            await module.look_up_order.tool.call({"number": "9"}, call_context())

    asyncio.run(call())
