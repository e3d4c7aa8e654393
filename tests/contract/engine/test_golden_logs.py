"""Events, logs and final state of executions of every kind equal their golden files.

``python -m tests.contract.engine.golden_logs.write_logs`` writes the files.
"""

from __future__ import annotations

import json
import re
from functools import partial
from operator import itemgetter
from typing import Any

import pytest

from planwave.storage.postgres.store import PostgresStore
from tests.contract.engine.golden_logs.scenarios import SCENARIOS
from tests.contract.engine.golden_logs.write_logs import LOGS, log_of
from tests.support.virtual_loop import VirtualLoop


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_events_logs_and_state_of_a_scenario_equal_its_golden_file(name: str) -> None:
    assert log_of(name) == (LOGS / f"{name}.json").read_text("utf-8")


CALLED_AT_ONCE = ("agents",)
"""Models of these call tools in one reply, side by side: the order of their events, of their lines in the logs and of the
nodes that they start is that in which the store answers, and no promise. The id of a request counts the events before it."""
_REQUEST_ID = re.compile(r'"r\d+"')


def in_any_order(text: str) -> list[dict[str, Any]]:
    """Return the executions of a golden file, whole but for the order, and for ids that follow from it."""
    found: list[dict[str, Any]] = []
    decoder, at = json.JSONDecoder(), 0
    text = _REQUEST_ID.sub('"r"', text)
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        state = document.pop("state")
        nodes = sorted(state.pop("nodes"), key=itemgetter("path"))
        lists = {name: sorted(map(json.dumps, lines)) for name, lines in document.items()}
        found.append({**lists, "state": state, "nodes": nodes})
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
