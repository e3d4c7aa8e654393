"""Run options as they are stored."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from planwave.errors import InputError
from planwave.executor.options import RunOptions


def test_only_options_that_differ_from_the_defaults_are_stored() -> None:
    assert RunOptions().as_json() == {}
    options = RunOptions(scheduling="waves", max_parallel=4, run_timeout_s=60)
    assert options.as_json() == {"scheduling": "waves", "max_parallel": 4, "run_timeout_s": 60}


def test_a_budget_limits_the_amounts_that_it_has() -> None:
    options = RunOptions(budget={"usd": 0.5, "tokens": None})
    assert options.budget_limits == {"usd": 0.5}
    assert RunOptions(**options.as_json()) == options
    assert RunOptions().budget_limits == {}


def test_options_survive_json() -> None:
    options = RunOptions(max_parallel=2, run_to=("a", "b"), run_from=("c",))
    stored = json.loads(json.dumps(options.as_json()))
    assert stored == {"max_parallel": 2, "run_to": ["a", "b"], "run_from": ["c"]}
    assert RunOptions(**stored).as_json() == stored
    assert RunOptions(run_to=[], run_from=[]).as_json() == {}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"scheduling": "fast"}, "scheduling must be 'eager' or 'waves', not 'fast'"),
        ({"on_failure": None}, "on_failure must be 'continue' or 'stop', not None"),
        ({"max_parallel": 0}, "max_parallel must be a whole number of at least 1, not 0"),
        ({"max_steps": True}, "max_steps must be a whole number of at least 0, not True"),
        ({"max_events": 1.5}, "max_events must be a whole number of at least 0, not 1.5"),
        ({"run_timeout_s": -1}, "run_timeout_s must be a number above 0, not -1"),
        ({"run_timeout_s": math.inf}, "run_timeout_s must be a number above 0, not inf"),
        ({"node_timeout_s": math.nan}, "node_timeout_s must be a number above 0, not nan"),
        ({"run_to": "a"}, "run_to must be a list of node ids, not 'a'"),
        ({"budget": 5}, "budget must be an object such as {'usd': 0.5}, not 5"),
        ({"budget": {"eur": 5}}, "budget limits usd, tokens, calls, wall_s, not 'eur'"),
        ({"budget": {"usd": 0}}, "budget must have a number above 0 as usd, not 0"),
        ({"budget": {"calls": 1.5}}, "budget must have a whole number above 0 as calls, not 1.5"),
        ({"run_from": [1]}, "run_from must be a list of node ids, not [1]"),
    ],
)
def test_an_invalid_option_is_refused_with_what_it_must_be(
    option: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        RunOptions(**option)
    assert (caught.value.code, caught.value.message) == ("invalid-option", f"the option {message}")


@pytest.mark.parametrize("option", [{"run_timeout_s": 10**400}, {"budget": {"usd": 10**400}}])
def test_numbers_too_large_for_a_time_or_an_amount_are_invalid(option: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        RunOptions(**option)
    assert caught.value.code == "invalid-option"
