"""Node modules: what is registered, where they are looked for, and what an operator reads of a broken one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from planwave.errors import InputError
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Origin, Registry, default_registry

TYPES = """
import planwave
from planwave import NodeType
from planwave.nodes.library.text import Text

class Base(NodeType):
    async def run(self, data, inputs, context):
        return 1

class Loud(Base):
    node_type = "loud"

class _Hidden(Base):
    node_type = "hidden"

class Table(planwave.LinkType):
    node_type = "table"
    async def make(self, data, inputs, context):
        return {}
"""
SINGLE = """
import planwave

class Single(planwave.NodeType):
    node_type = "%s"
    def run(self, data, inputs, context):
        return 1
"""


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in an empty directory, and forget the modules that were imported from it."""
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield
    assert str(tmp_path) not in sys.path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", "").startswith(str(tmp_path)):
            del sys.modules[name]


def write(name: str, text: str) -> None:
    Path(name).write_text(text, "utf-8")


def error_of(name: str, *, is_installed: bool = False) -> InputError:
    with pytest.raises(InputError) as caught:
        Registry(LIBRARY).with_modules([name], installed=[name] if is_installed else ())
    assert caught.value.code == "broken-node-module"
    return caught.value


def test_named_classes_of_a_module_in_the_working_directory_are_registered() -> None:
    write("pw_types.py", TYPES)
    registry = Registry().with_modules(["pw_types"]).with_modules(["pw_types"])
    assert registry.names() == ["loud", "table"]
    file = str(Path.cwd() / "pw_types.py")
    assert registry.origin("loud") == Origin("module", "pw_types", file)


def test_classes_that_a_module_imports_are_registered_once() -> None:
    write("pw_types.py", TYPES)
    write("pw_all.py", "from pw_types import Loud, Table")
    registry = Registry().with_modules(["pw_all", "pw_types"])
    assert registry.names() == ["loud", "table"]
    assert registry.origin("loud").name == "pw_types"


def test_a_registry_with_providers_shares_the_modules() -> None:
    write("pw_types.py", TYPES)
    first = Registry()
    second = first.with_providers(None)
    second.with_modules(["pw_types"])
    assert first.with_modules(["pw_types"]).names() == ["loud", "table"]


def test_a_module_of_the_installed_environment_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site" / "pw_site").mkdir(parents=True)
    write("site/pw_site/__init__.py", SINGLE % "installed")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert Registry().with_modules(["pw_site"]).names() == ["installed"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nimport pw_gone\n", "ModuleNotFoundError: No module named 'pw_gone' (pw_broken.py:2)"),
        ("x = 1 +\n", "SyntaxError: invalid syntax (pw_broken.py:1)"),
        ("import sys\nsys.exit('too old')\n", "SystemExit: too old (pw_broken.py:2)"),
        ("def f():\n    return y\n\nf()\n", "NameError: name 'y' is not defined (pw_broken.py:2)"),
        (
            "import json\n\njson.loads('x')\n",
            "JSONDecodeError: Expecting value: line 1 column 1 (char 0) (pw_broken.py:3)",
        ),
        (
            SINGLE % "start",
            "ValueError: node type 'start' is registered already, by "
            "planwave.nodes.library.start.Start; choose another name or pass replace=True "
            "(pw_broken.py:4)",
        ),
        (
            "import planwave\n\n@planwave.node('x')\nasync def x(*all): ...\n",
            "TypeError: node type 'x': parameter 'all' cannot be filled by name; use plain "
            "parameters (annotate one with Inputs to get all that arrives) (pw_broken.py:3)",
        ),
    ],
)
def test_a_broken_module_is_named_with_its_error_and_line(text: str, message: str) -> None:
    write("pw_broken.py", text)
    error = error_of("pw_broken")
    assert error.message == f"module 'pw_broken' cannot be loaded: {message}"
    assert error.hint == (
        "correct it, or take it out of --import, PLANWAVE_NODE_MODULES and node_modules in "
        "planwave.toml"
    )


@pytest.mark.parametrize("name", ["pw_type", "pw_types.py", "./pw_types", "./pw_types.py"])
def test_a_module_that_does_not_exist_is_named_with_the_nearest_one(name: str) -> None:
    write("pw_types.py", TYPES)
    error = error_of(name)
    assert error.message == (
        f"there is no module {name!r} in the working directory or the installed packages"
    )
    assert error.hint == "did you mean 'pw_types'?"


def test_a_module_of_a_settings_file_elsewhere_is_looked_for_in_the_installed_packages() -> None:
    write("pw_types.py", TYPES)
    error = error_of("pw_types", is_installed=True)
    assert error.message == "there is no module 'pw_types' in the installed packages"
    assert "--import pw_types" in (error.hint or "")


@pytest.mark.parametrize("name", ["", ".types", "pw_gone_entirely"])
def test_an_impossible_name_is_an_error(name: str) -> None:
    assert repr(name) in error_of(name).message


def test_a_module_without_node_types_is_an_error() -> None:
    write("pw_empty.py", "class Other: ...\n")
    error = error_of("pw_empty")
    assert error.message == "module 'pw_empty' (pw_empty.py) declares no node type and no tool"
    assert error.hint == (
        "declare one with @planwave.node() or @planwave.tool(), or as a class derived from planwave.NodeType"
    )


def test_a_module_may_register_its_types_itself() -> None:
    write(
        "pw_own.py",
        "from planwave.nodes.registry import default_registry\n" + SINGLE % "pw-own"
        + "\n_own = default_registry().register(Single(), replace=True)\ndel Single\n",
    )  # fmt: skip
    assert "pw-own" in default_registry().with_modules(["pw_own"]).names()
