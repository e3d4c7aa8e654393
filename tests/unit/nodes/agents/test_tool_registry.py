"""Registered tools: names, origins, the tools of packages and modules."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from planwave.graph.model import Json
from planwave.nodes.agents.tool import Tool, ToolCallContext
from planwave.nodes.agents.tool_function import tool
from planwave.nodes.agents.tool_registry import ToolRegistry
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry, default_registry

MODULE = """
import planwave
from planwave.nodes.registry import Registry

@planwave.tool(effect="read", registry=Registry())
def look_up(number: int) -> str:
    "Look a customer up."
    return "Ada"

@planwave.tool(registry=Registry())
def send() -> None:
    "Send it."

BOTH = [look_up, send]
TWICE = [send, planwave.tool("send", registry=Registry())(lambda: None)]
"""


async def _nothing(arguments: Mapping[str, Json], context: ToolCallContext) -> Json:
    return None


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"tools_of_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def points(module: str, *values: str) -> list[EntryPoint]:
    return [EntryPoint(value, f"{module}:{value}", "planwave.tools") for value in values]


def test_a_tool_is_registered_by_its_decorator_with_its_line() -> None:
    registry = Registry(LIBRARY)

    @tool(effect="read", registry=registry)
    def look_up(number: int) -> str:
        """Look a customer up."""
        return "Ada"

    (name,) = registry.tools.names()
    found = registry.tools.get(name)
    assert found is not None
    assert found.origin.name == __name__
    assert str(found.origin).endswith("test_tool_registry.py:57)")
    assert found.as_document() == {
        "name": "look_up",
        "description": "Look a customer up.",
        "effect": "read",
        "approval": "never",
        "timeout_s": None,
        "parameters": dict(look_up.tool.parameters),
        "origin": {"kind": "module", "name": __name__},
    }


def test_two_tools_of_one_name_are_an_error_that_names_both_places() -> None:
    registry = Registry()

    @tool(registry=registry)
    def send() -> None: ...

    with pytest.raises(ValueError, match="is registered already, by") as caught:

        @tool("send", registry=registry)
        def other() -> None: ...

    assert str(caught.value).count("test_tool_registry.py:") == 2
    assert registry.tools.register(send) is send  # the same again is none
    assert len(registry.tools) == 1


def test_a_tool_can_be_registered_without_a_function() -> None:
    tools = ToolRegistry()
    made = tools.register(Tool("ask", "Ask.", {"type": "object"}, _nothing, "read"))
    assert (tools.get("ask") or ("",))[0] is made
    assert tools.get("other") is None
    assert tools.closest("asks") == "ask"


@pytest.mark.parametrize("name", ["", "a b", "größe", "x" * 65, "a.b"])
def test_a_name_that_models_do_not_take_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a tool cannot be called"):
        ToolRegistry().register(Tool(name, "", {}, _nothing))


@pytest.mark.parametrize("source", [print, "look_up", None])
def test_what_is_no_tool_is_refused(source: Any) -> None:
    with pytest.raises(TypeError, match="is no tool"):
        ToolRegistry().register(source)


def test_entry_points_give_one_tool_or_a_list(module: str) -> None:
    tools = ToolRegistry()
    assert tools.with_entry_points(points(module, "look_up", "BOTH")) == []
    assert tools.names() == ["look_up", "send"]
    assert {name: tools.effects[name] for name in tools.effects} == {
        "look_up": "read", "send": "once",
    }  # fmt: skip
    found = tools.get("send")
    assert found is not None
    assert (found.origin.kind, found.origin.name) == ("package", "BOTH")


@pytest.mark.parametrize("value", ["TWICE", "missing", "__name__"])
def test_a_broken_entry_point_adds_nothing_and_is_a_warning(module: str, value: str) -> None:
    tools = ToolRegistry()
    broken = points(module, "look_up", value)
    (warning,) = tools.with_entry_points(broken)
    assert (warning.code, warning.severity) == ("broken-node-package", "warning")
    assert value in warning.message
    assert tools.names() == ["look_up"]
    assert tools.with_entry_points(broken) == []  # read once


def test_a_module_may_declare_tools_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"only_tools_{tmp_path.name.replace('-', '_')}"
    text = f"import planwave\n\n@planwave.tool()\ndef act_{name}() -> None: ...\n"
    (tmp_path / f"{name}.py").write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    before = {**default_registry().tools._tools}
    try:
        registry = default_registry().with_providers(None).with_modules([name])
        found = registry.tools.get(f"act_{name}"[:64])
        assert found is not None
        assert str(found.origin) == f"module {name} ({name}.py:3)"
    finally:
        default_registry().tools._tools.clear()
        default_registry().tools._tools.update(before)
        sys.modules.pop(name, None)
