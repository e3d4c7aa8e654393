"""Recorded runs of other engines, and what is held against them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from tests.support.paths import SHARED

CASES = SHARED / "conformance"
EXPECTED = ".expected.json"


class Difference(NamedTuple):
    """Why a case does not match, and what is so here instead."""

    why: str
    here: dict[str, Any]


def cases_of(engine: str, pattern: str = f"*{EXPECTED}") -> list[str]:
    """Return the cases of one engine, as ``engine/name``; none where there are no recordings."""
    files = sorted((CASES / engine).glob(pattern))
    return [f"{engine}/{file.name.removesuffix(EXPECTED).removesuffix('.json')}" for file in files]


def loaded(case: str, suffix: str) -> dict[str, Any]:
    """Return a file of a case."""
    return json.loads((CASES / f"{case}{suffix}").read_text("utf-8"))


def compare(
    case: str,
    here: dict[str, Any],
    recorded: dict[str, Any],
    differences: Mapping[str, Difference],
) -> None:
    """Hold what happened here against the recording, or against the table."""
    difference = differences.get(case)
    if difference is None:
        assert here == recorded
        return
    print(f"\n{case}: {difference.why}")  # noqa: T201
    assert part_of(here, difference.here) == difference.here
    assert here != recorded, "it matches now: take it out of the table"


def part_of(whole: Any, like: Any) -> Any:
    """Return the fields of an object that another one names; an empty one selects itself."""
    if not (isinstance(whole, dict) and isinstance(like, dict) and like):
        return whole
    return {name: part_of(whole.get(name), each) for name, each in like.items()}


def echoing(engine: str, pattern: str = f"*{EXPECTED}") -> Callable[..., Any]:
    """Run a test for each case of an engine."""
    found = cases_of(engine, pattern)
    return pytest.mark.parametrize("case", found, ids=[case.rpartition("/")[2] for case in found])
