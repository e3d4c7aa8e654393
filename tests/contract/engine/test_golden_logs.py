"""Executions of every kind are told as they always were: events, both logs, and the final state.

``python -m tests.contract.engine.golden_logs.write_logs`` writes the files anew.
"""

from __future__ import annotations

import pytest

from tests.contract.engine.golden_logs.scenarios import SCENARIOS
from tests.contract.engine.golden_logs.write_logs import LOGS, log_of


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_execution_is_told_as_it_always_was(name: str) -> None:
    assert log_of(name) == (LOGS / f"{name}.json").read_text("utf-8")


def test_every_file_has_its_scenario() -> None:
    assert {path.stem for path in LOGS.glob("*.json")} == SCENARIOS.keys()
