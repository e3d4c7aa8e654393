"""Events, logs and final state of executions of every kind equal their golden files.

``python -m tests.contract.engine.golden_logs.write_logs`` writes the files.
"""

from __future__ import annotations

import json
from functools import partial

import pytest

from planwave.storage.postgres.store import PostgresStore
from tests.contract.engine.golden_logs.scenarios import SCENARIOS
from tests.contract.engine.golden_logs.write_logs import LOGS, log_of
from tests.support.virtual_loop import VirtualLoop


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_events_logs_and_state_of_a_scenario_equal_its_golden_file(name: str) -> None:
    assert log_of(name) == (LOGS / f"{name}.json").read_text("utf-8")


CALLED_AT_ONCE = ("agents",)
"""Models of these call two tools in one reply: which one ends first depends on how long the store takes."""


def in_any_order(text: str) -> list[list[list[str]]]:
    """Return what happened to which nodes in each execution of a golden file."""
    found: list[list[list[str]]] = []
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        found.append(sorted([str(part) for part in each[:3]] for each in document["events"]))
        at += len("\n")
    return found


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.usefixtures("stands_still_for_writes")
def test_a_scenario_on_postgresql_equals_the_same_golden_file(name: str, database_url: str) -> None:
    written = log_of(name, partial(PostgresStore.open, database_url), VirtualLoop)
    golden = (LOGS / f"{name}.json").read_text("utf-8")
    if name in CALLED_AT_ONCE:
        assert in_any_order(written) == in_any_order(golden)
    else:
        assert written == golden


def test_every_golden_file_has_a_scenario() -> None:
    assert {path.stem for path in LOGS.glob("*.json")} == SCENARIOS.keys()
