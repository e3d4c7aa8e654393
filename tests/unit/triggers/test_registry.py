"""Adapters of installed packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint

from planwave.triggers.adapter import TriggerAdapter
from planwave.triggers.registry import ENTRY_POINTS, LIBRARY, installed_adapters, with_entry_points


class Other(TriggerAdapter):
    node_type = "other"


class SecondOther(TriggerAdapter):
    node_type = "other"


class Deaf(TriggerAdapter):
    node_type = "deaf"
    listens = True


BOTH = [Other, SecondOther]
A_TEXT = "no adapter"


def point(name: str) -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{name}", ENTRY_POINTS)


def test_adapter_of_a_package_is_added() -> None:
    assert with_entry_points(LIBRARY, [point("Other")]) == (*LIBRARY, Other)


def test_broken_package_is_left_out(caplog) -> None:  # type: ignore[no-untyped-def]
    broken = [point("A_TEXT"), point("BOTH"), point("gone"), point("Deaf")]
    assert with_entry_points(LIBRARY, broken) == LIBRARY
    assert len(caplog.records) == 4
    assert "has listens = True and no method listen" in caplog.text


def test_first_adapter_of_a_type_stays() -> None:
    found = with_entry_points(LIBRARY, [point("Other"), point("SecondOther")])
    assert found == (*LIBRARY, Other)


def test_adapters_of_planwave_are_installed() -> None:
    assert set(LIBRARY) <= set(installed_adapters())
