"""Events, logs and final state of executions of every kind equal their golden files.

``python -m tests.contract.engine.golden_logs.write_logs`` writes the files.
"""

from __future__ import annotations

import pytest

from tests.contract.engine.golden_logs.scenarios import SCENARIOS
from tests.contract.engine.golden_logs.write_logs import LOGS, log_of


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_events_logs_and_state_of_a_scenario_equal_its_golden_file(name: str) -> None:
    assert log_of(name) == (LOGS / f"{name}.json").read_text("utf-8")


def test_every_golden_file_has_a_scenario() -> None:
    assert {path.stem for path in LOGS.glob("*.json")} == SCENARIOS.keys()
