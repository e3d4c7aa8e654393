"""The limits of a service for the options of an execution."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from planwave.errors import InputError
from planwave.executor.options import RunOptions
from planwave.settings import Limits

_LIMITS: Final = {
    "max_parallel": "parallel_nodes",
    "node_timeout_s": "node_timeout_s",
    "run_timeout_s": "run_timeout_s",
    "max_events": "events",
    "max_result_bytes": "largest_result_bytes",
    "max_event_bytes": "event_bytes",
    "max_state_bytes": "run_state_bytes",
    "max_steps": "steps",
    "max_depth": "nested_depth",
}
"""Options that bound an execution, each with the limit of the service that it must keep to."""


def lowered_options(options: RunOptions, limits: Limits) -> RunOptions:
    """Return options with every bound set, none of them above the service's limit."""
    bounds = {
        option: most if (bound := getattr(options, option)) is None else min(bound, most)
        for option, name in _LIMITS.items()
        for most in (getattr(limits, name),)
    }
    return replace(options, **bounds, budget=_complete_budget(options, limits))


def _complete_budget(options: RunOptions, limits: Limits) -> dict[str, float | None]:
    """Return the budget of the options, with the service's where they have no amount of that name."""
    usual = {"usd": limits.budget_usd, "tokens": limits.budget_tokens}
    return {**usual, **(options.budget or {})}


def require_within(options: RunOptions, limits: Limits) -> None:
    """Raise if an option is above the limit of the service.

    Raises:
        InputError: ``invalid-option``.
    """
    for option, name in _LIMITS.items():
        value, most = getattr(options, option), getattr(limits, name)
        if value is not None and value > most:
            error = InputError(
                f"the option {option} is {value}, at most {most} is allowed (limit {name})",
                code="invalid-option",
                hint=f"ask for less, or raise the limit {name}",
            )
            error.limit = name
            raise error
