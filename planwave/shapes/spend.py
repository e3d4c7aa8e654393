"""Shapes of what was spent."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class SpendAmounts(TypedDict):
    """What calls of models used. Tokens are those of prompts and replies."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """The known part; null where no call has a known price."""
    unpriced_calls: int
    """Calls without a known price, whose cost is not in the sum."""
    planning_tokens: int
    """Those of these tokens that wrote plans."""
    planning_cost_usd: float | None
    """That of these costs that wrote plans; null where none is known."""
    runs: int
    """Executions, and plans that models wrote."""


class SpendGroup(SpendAmounts):
    """The sums of one day, flow or model."""

    key: str
    """The day, the id of the flow, or `provider/model`; empty for all that belongs to no flow."""
    name: str | None
    """The name of a flow."""


class SpendWarning(TypedDict):
    """More was spent today than the operator wants to be warned of; nothing was stopped."""

    day: str
    cost_usd: float
    warn_usd: float
    """The setting `spend_warn_usd_per_day`."""


class SpendResponse(TypedDict):
    """What was spent from one day to another, both included, UTC; of executions up to their last pause or their end."""

    since: str
    until: str
    by: Literal["day", "flow", "model"]
    groups: list[SpendGroup]
    """Days: the newest first; others: the most tokens first, 1,000 at most."""
    total: SpendAmounts
    warning: SpendWarning | None
    """Of today."""
