from __future__ import annotations

import json
from dataclasses import replace

from typer.testing import CliRunner, Result

from planwave.cli.app import app
from planwave.nodes.agents.tool_function import tool
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from tests.support.cli.fake_factories import fake_factories

REGISTRY = Registry(LIBRARY)


@tool(effect="read", timeout_s=2, registry=REGISTRY)
def look_up(number: int) -> str:
    """Look an order up."""
    return ""


@tool(approval="always", registry=REGISTRY)
def cancel() -> None:
    """Cancel
    everything.
    """  # noqa: D205


def tools(*args: str) -> Result:
    factories = replace(fake_factories(), catalogue=lambda _: REGISTRY)
    return CliRunner().invoke(app, ["tools", *args], obj=factories)


def test_tools_are_listed_by_origin_with_effect_and_description() -> None:
    lines = tools().stdout.splitlines()
    assert lines[0] == f"module {__name__}"
    assert "  cancel   once    Cancel everything." in lines
    assert "  look_up  read    Look an order up." in lines
    listed = json.loads(tools("--json").stdout)["tools"]
    assert listed == REGISTRY.describe_tools()


def test_one_tool_is_shown_with_its_arguments() -> None:
    shown = tools("look_up").stdout
    assert shown.startswith("look_up  Look an order up.")
    for line in (
        f"From      module {__name__}",
        "Effect    read",
        "Approval  never",
        "Time      2 s",
    ):
        assert line in shown.splitlines()
    assert json.loads(shown[shown.index("{") :]) == look_up.tool.parameters
    assert "Time" not in tools("cancel").stdout
    assert json.loads(tools("look_up", "--json").stdout)["name"] == "look_up"


def test_an_unknown_tool_is_an_error_with_the_nearest_name() -> None:
    done = tools("lookup")
    assert done.exit_code == 2
    assert "there is no tool 'lookup'" in done.stderr
    assert "did you mean 'look_up'?" in done.stderr


def test_without_tools_it_says_how_to_get_one() -> None:
    done = CliRunner().invoke(app, ["tools"], obj=fake_factories())
    assert "There are no tools here" in done.stdout
    assert "@planwave.tool()" in done.stdout
