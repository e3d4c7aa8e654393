"""Rules of the tests and of the package as a whole: names, assertions, imports without circles."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from tests.support.paths import ROOT

UNIT, PACKAGE = ROOT / "tests" / "unit", ROOT / "planwave"
TEST_FILES = sorted(
    path.relative_to(UNIT) for path in UNIT.rglob("test_*.py") if path.name != "test_layout.py"
)


@pytest.mark.parametrize("path", TEST_FILES, ids=str)
def test_a_test_file_is_named_after_a_module_of_the_folder_it_mirrors(path: Path) -> None:
    """``test_NAME.py`` or ``test_NAME_ASPECT.py``; NAME may be a package of that folder too."""
    folder = PACKAGE / path.parent
    names = {each.stem.strip("_") for each in folder.iterdir() if each.name != "__pycache__"}
    named = path.stem.removeprefix("test_").strip("_")
    assert any(named == name or named.startswith(f"{name}_") for name in names), sorted(names)


@pytest.mark.slow
def test_every_test_asserts_something() -> None:
    """By itself, or by a function of the tests that does and that it calls."""
    functions = [
        (path, each, *_asserted(each))
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for each in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    asserting = {each.name for _, each, is_asserted, _ in functions if is_asserted}
    idle = [
        f"{path.relative_to(ROOT)}:{each.lineno} {each.name}"
        for path, each, is_asserted, called in functions
        if each.name.startswith("test_") and not is_asserted and not called & asserting
    ]
    assert idle == []


def _asserted(function: ast.AST) -> tuple[bool, set[str]]:
    """Return whether a function asserts something itself, and the names that it calls."""
    inside = list(ast.walk(function))
    called = {
        each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", "")
        for each in inside
        if isinstance(each, ast.Call)
    }
    is_asserted = any(isinstance(each, ast.Assert) for each in inside)
    return is_asserted or bool(called & {"raises", "warns", "fail", "expect"}), called


def test_the_same_literals_have_one_order() -> None:
    # typing returns what it made first for ``X | None`` of equal literals, so that the order in the
    # OpenAPI document would follow the order of imports.
    orders: dict[frozenset[str], set[tuple[str, ...]]] = {}
    for path in (ROOT / "planwave").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal"):
                values = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                order = tuple(map(ast.unparse, values))
                orders.setdefault(frozenset(order), set()).add(order)
    assert len(orders) > 20
    assert [each for each in orders.values() if len(each) > 1] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports for the type checker alone do not count; ``CycleError`` names the modules."""
    graph = grimp.build_graph("planwave", exclude_type_checking_imports=True, cache_dir=None)
    TopologicalSorter(
        {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    ).prepare()
