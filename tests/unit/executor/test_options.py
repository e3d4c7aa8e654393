"""Run options as they are stored."""

from __future__ import annotations

import json

from planwave.executor.options import RunOptions


def test_only_options_that_differ_from_the_defaults_are_stored() -> None:
    assert RunOptions().as_json() == {}
    options = RunOptions(scheduling="waves", max_parallel=4, run_timeout_s=60)
    assert options.as_json() == {"scheduling": "waves", "max_parallel": 4, "run_timeout_s": 60}


def test_options_survive_json() -> None:
    options = RunOptions(max_parallel=2, run_to=("a", "b"), run_from=("c",))
    stored = json.loads(json.dumps(options.as_json()))
    assert stored == {"max_parallel": 2, "run_to": ["a", "b"], "run_from": ["c"]}
    assert RunOptions(**stored).as_json() == stored
    assert RunOptions(run_to=[], run_from=[]).as_json() == {}
