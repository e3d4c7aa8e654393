"""docs/extending.md names every way by which code or an address of somebody else comes in."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
from pydantic import BaseModel

import planwave
from planwave.settings import Settings
from tests.support.paths import ROOT

PAGE = (ROOT / "docs/extending.md").read_text("utf-8")
NO_POINT = {"limits", "secrets", "temporal"}
"""Tables of ``planwave.toml`` that add nothing of anybody."""


def entry_point_groups() -> list[str]:
    """Return the groups that the code reads."""
    found: set[str] = set()
    for path in (ROOT / "planwave").rglob("*.py"):
        found.update(re.findall(r'^ENTRY_POINTS: Final = "(.+)"$', path.read_text("utf-8"), re.M))
    return sorted(found)


def test_there_are_groups() -> None:
    assert len(entry_point_groups()) >= 3


@pytest.mark.parametrize("group", entry_point_groups())
def test_every_group_of_entry_points_is_on_the_page(group: str) -> None:
    assert f"`{group}`" in PAGE


def test_every_table_of_the_settings_is_on_the_page() -> None:
    tables = {
        name
        for name, field in Settings.model_fields.items()
        if any(
            isinstance(each, type) and issubclass(each, BaseModel)
            for each in getattr(field.annotation, "__args__", (field.annotation,))
        )
    }
    assert tables > NO_POINT
    assert {name for name in tables - NO_POINT if f"`[{name}.NAME]`" not in PAGE} == set()


def test_the_names_of_the_library_exist() -> None:
    named = {each.partition("(")[0] for each in re.findall(r"`planwave\.([A-Z]\w+[^`]*)`", PAGE)}
    assert len(named) >= 5
    assert {name for name in named if not hasattr(planwave, name)} == set()
    protocols = {"graph.protocols": "FlowExecutor", "providers.protocols": "Recorder"}
    protocols |= {"service.library.stores": "RunStore", "service.dependencies": "Tracer"}
    for module, name in protocols.items():
        assert f"`{module.replace('.', '/')}.py`" in PAGE
        assert hasattr(import_module(f"planwave.{module}"), name)
