from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from planwave.graph.model import Graph, Node, Port
from planwave.graph.protocols import NodeTypeInfo, NodeTypes
from planwave.nodes.authoring.node_type import BaseNode
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.text import Text
from planwave.nodes.registry import Origin, Registry, default_registry
from tests.support.llm.fake_providers import ListedProviders


class Bare:
    """The least a third party can register."""

    def __init__(self, node_type: Any = "bare") -> None:
        self.node_type = node_type

    async def execute(self, data: Any, inputs: Any, context: Any) -> Any: ...


class Source:
    node_type = "source"
    template_fields = None

    async def materialize(self, data: Any, output_handle: str, context: Any) -> Any: ...


def test_a_registered_type_has_info_and_implementation() -> None:
    catalogue: NodeTypes = Registry([Bare(), Source()])
    assert catalogue.type_info("bare") == NodeTypeInfo(
        "bare", "", (Port("input", multiple=True),), (Port("output"),), template_fields=()
    )
    source = catalogue.type_info("source")
    assert source is not None
    assert (source.executes, source.materializes, source.template_fields) == (False, True, None)
    assert isinstance(catalogue.implementation("source"), Source)
    assert catalogue.names() == ["bare", "source"]


def test_an_unknown_type_has_no_info_and_no_implementation() -> None:
    registry = Registry()
    assert registry.type_info("python") is None
    with pytest.raises(KeyError):
        registry.implementation("os.system")
    node = Node("a", "os.system", "A")
    assert list(registry.check(node, Graph((node,), ()))) == []


def test_register_instantiates_a_class_and_returns_it() -> None:
    registry = Registry()
    assert registry.register(Text) is Text
    assert isinstance(registry.implementation("text"), Text)


def test_a_name_can_be_registered_once_unless_it_is_replaced() -> None:
    first, second = Bare(), Bare()
    registry = Registry([first])
    with pytest.raises(ValueError, match=r"'bare' is registered already, by .*replace=True"):
        registry.register(second)
    assert registry.implementation("bare") is first
    registry.register(second, replace=True)
    assert registry.implementation("bare") is second


@pytest.mark.parametrize("name", ["", "1x", "a b", None, 3, "x" * 65])
def test_a_type_needs_a_usable_name(name: Any) -> None:
    with pytest.raises(TypeError, match="cannot be a node type"):
        Registry([Bare(name)])


def test_a_type_needs_a_capability() -> None:
    class Idle:
        node_type = "idle"

    with pytest.raises(TypeError, match="'idle' has neither execute nor materialize"):
        Registry([Idle()])


def test_the_schema_is_camel_case_and_marks_templates() -> None:
    registry = Registry(LIBRARY)
    properties = registry.schema("agent")["properties"]
    assert properties["userPrompt"]["template"] is True
    assert "template" not in properties["provider"]
    assert registry.schema("agent")["additionalProperties"] is False
    assert "jsonOutput" in registry.schema("llm")["properties"]
    assert Registry([Bare()]).schema("bare") == {"type": "object"}


def test_registries_with_other_providers_share_their_types() -> None:
    first = Registry()
    second = first.with_providers(ListedProviders({"openai": ["m"]}))
    first.register(Bare())
    second.register(Source())
    assert first.names() == second.names() == ["bare", "source"]


def test_the_default_registry_is_shared_and_holds_the_library() -> None:
    assert default_registry() is default_registry()
    assert {"start", "agent", "llm", "text", "parser", "if", "end"} <= {*default_registry().names()}


PACKAGE = """
from planwave.nodes.authoring.node_type import NodeType

class Good(NodeType):
    node_type = "good"
    async def run(self, data, inputs, context):
        return 1

class Better(Good):
    node_type = "better"

class Thief(Good):
    node_type = "start"

both = [Good, Better]
some = [Better, Thief]

from planwave.nodes.authoring.function import node

@node("planwave_test_decorated", replace=True)
async def decorated(input):
    return input
"""


def _points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **points: str) -> list[EntryPoint]:
    name = f"planwave_points_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(PACKAGE, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return [EntryPoint(key, value.format(name), "planwave.nodes") for key, value in points.items()]


def test_installed_packages_add_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = _points(tmp_path, monkeypatch, both="{}:both")
    registry = Registry().with_entry_points(points).with_entry_points(points)
    assert registry.names() == ["better", "good"]
    assert registry.warnings == []
    assert registry.origin("better")[:2] == ("package", "both")


def test_a_broken_package_is_a_warning_and_does_not_affect_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    points = _points(
        tmp_path,
        monkeypatch,
        gone="no_such_module_at_all:x",
        misnamed="{}:missing",
        no_type="sys:path",
        thief="{}:some",
        good="{}:Good",
    )
    registry = Registry(LIBRARY).with_entry_points(points)
    assert "good" in registry.names()
    assert "better" not in registry.names(), "a package is there with all its types, or not at all"
    assert type(registry.implementation("start")).__name__ == "Start"
    assert [w.code for w in registry.warnings] == ["broken-node-package"] * 4
    assert "ModuleNotFoundError" in registry.warnings[0].message
    start = "'start' is registered already, by planwave.nodes.library.start.Start;"
    assert start in registry.warnings[3].message
    assert (
        len([r for r in caplog.records if r.name == "planwave.nodes.authoring.entry_points"]) == 4
    )


def test_a_decorated_function_may_also_be_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (point,) = _points(tmp_path, monkeypatch, decorated="{}:decorated")
    registry = Registry()
    registry.register(point.load())
    assert registry.with_entry_points([point]).warnings == []
    assert registry.implementation("planwave_test_decorated") is point.load()


def test_a_package_that_exits_on_import_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planwave_quitter.py").write_text("raise SystemExit('too old')", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("quitter", "planwave_quitter:x", "planwave.nodes")
    (warning,) = Registry().with_entry_points([point]).warnings
    assert "SystemExit: too old" in warning.message


def test_without_packages_entry_points_add_nothing() -> None:
    assert Registry().with_entry_points([]).names() == []


def test_the_group_is_read_from_installed_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (point,) = _points(tmp_path, monkeypatch, good="{}:Good")
    info = tmp_path / "good-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: good\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(f"[planwave.nodes]\ngood = {point.value}\n", "utf-8")
    registry = Registry(LIBRARY).with_entry_points()
    file = str(tmp_path / f"{point.module}.py")
    assert registry.origin("good") == Origin("package", "good", file)
    assert registry.with_providers(None).origin("good").name == "good"
    assert registry.origin("text")[:2] == ("library", "planwave")


def test_a_class_is_registered_once() -> None:
    registry = Registry([Source])
    assert registry.register(Source) is Source


def test_importing_the_node_library_loads_no_sdk() -> None:
    code = (
        "import sys, planwave.nodes.library, planwave.nodes.authoring.function\n"
        "heavy = {'openai', 'anthropic', 'pydantic_ai', 'jinja2', 'minijinja', 'sqlalchemy',"
        " 'jsonschema_rs', 'httpx2', 'httpcore2'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_library_types_are_node_types_with_distinct_names() -> None:
    assert all(issubclass(kind, BaseNode) for kind in LIBRARY)
    assert len({kind.node_type for kind in LIBRARY}) == len(LIBRARY)
