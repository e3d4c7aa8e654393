"""The unit tests mirror the package, and no modules of the package import each other in a circle."""

from __future__ import annotations

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


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports for the type checker alone do not count; ``CycleError`` names the modules."""
    graph = grimp.build_graph("planwave", exclude_type_checking_imports=True, cache_dir=None)
    TopologicalSorter(
        {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    ).prepare()
