"""Run options as they are stored."""

from __future__ import annotations

from planwave.executor.options import RunOptions


def test_only_what_differs_from_the_defaults_is_stored() -> None:
    assert RunOptions().as_json() == {}
    options = RunOptions(scheduling="waves", max_parallel=4, run_timeout_s=60)
    assert options.as_json() == {"scheduling": "waves", "max_parallel": 4, "run_timeout_s": 60}
