"""The budget of an execution: its limits, the amounts used, and the request for higher limits.

A budget is a limit for each of some amounts, such as ``{"usd": 5, "tokens": 200000}``. What is used is
the sum of the paid ``usage`` events and the time in which the execution was not paused. An answer to
the request raises limits. All of it is computed from events.
"""

from __future__ import annotations

import sys
from calendar import timegm
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any, Final

from planwave.events.request_text import BUDGET, RAISE, STOP, field_of
from planwave.events.types import ExecutionPaused, ExecutionResumed, ExecutionWarned, TypedEvent
from planwave.events.usage import NO_USAGE, UsageLedger, UsageTotal

if TYPE_CHECKING:
    from planwave.shapes.executions import BudgetResponse

AMOUNTS: Final = ("usd", "tokens", "calls", "wall_s")
"""What a budget may limit: US dollars, tokens in and out, calls of models, seconds not paused."""
WALL_S: Final = "wall_s"
WHOLE: Final = frozenset({"tokens", "calls"})
"""Amounts that are whole numbers."""
WARNED_AT: Final = 0.8
"""The share of a limit after which a warning is emitted."""
_SMALL_USD: Final = 0.0001
"""Smaller amounts would have an exponent."""
_MOST_STEPS: Final = 3
"""How many steps the request names, those that used most."""
_PLANNING: Final = "changes of its plan"
"""What used what no step has used."""


def amount_text(name: str, amount: float) -> str:
    """Return an amount for people, such as ``$0.50`` or ``12,000 tokens``."""
    if name == "usd":
        if amount >= 0.1 or amount == 0:
            return f"${amount:.2f}"
        return f"${amount:.8f}".rstrip("0") if amount < _SMALL_USD else f"${amount:.4g}"
    if name == WALL_S:
        return f"{amount:,.4g} s"
    word = name[:-1] if amount == 1 else name
    return f"{amount:,.0f} {word}"


class Budget:
    """The limits of an execution as its events leave them.

    Attributes:
        limits: The limits that hold now, by the name of the amount.
        warned: The amounts whose use has reached the share of their limit for a warning.
        request_id: The open request for more.
    """

    __slots__ = ("limits", "request_id", "warned")

    def __init__(self, limits: Mapping[str, float]) -> None:
        self.limits = dict(limits)
        self.warned: set[str] = set()
        self.request_id: str | None = None

    def observe(self, event: ExecutionPaused | ExecutionResumed | ExecutionWarned) -> None:
        """Apply an event of the execution; others change nothing here."""
        if event.type == "execution.warned":
            self.warned.update(event.data.get("amounts") or ())
        elif event.type == "execution.paused":
            if field_of(event.data.get("request"), "kind") == BUDGET:
                self.request_id = event.data.get("request_id")
        elif self.request_id is not None and event.data.get("request_id") == self.request_id:
            self.request_id = None
            raised = raised_limits(self.limits, event.data.get("answer"))
            self.limits.update(raised)
            self.warned.difference_update(raised)

    def used(self, usage: UsageTotal, wall_s: float) -> dict[str, float]:
        """Return what is used of each limited amount.

        Args:
            usage: The paid usage of the execution.
            wall_s: The seconds in which it was not paused.
        """
        all_used: dict[str, float] = {
            "usd": usage.cost_usd or 0.0,
            "tokens": usage.input_tokens + usage.output_tokens,
            "calls": usage.calls,
            WALL_S: round(wall_s, 3),
        }
        return {name: all_used[name] for name in self.limits}

    def due_warnings(self, used: Mapping[str, float]) -> list[str]:
        """Return the amounts to warn of: nearly used up, and not warned of yet."""
        return [
            name
            for name, limit in self.limits.items()
            if name not in self.warned and used[name] >= WARNED_AT * limit
        ]

    def as_json(self, used: Mapping[str, float]) -> BudgetResponse:
        """Return ``{"limits", "used", "warned"}``."""
        warned = [name for name in self.limits if name in self.warned]
        return {"limits": dict(self.limits), "used": dict(used), "warned": warned}


class ActiveTime:
    """The time in which an execution was neither paused nor without a process, by event times.

    A time that cannot be read counts nothing: the store refuses to resume such an execution.
    """

    __slots__ = ("_since_s", "_total_s")

    def __init__(self) -> None:
        self._since_s: float | None = None
        self._total_s = 0.0

    def start(self, at: str) -> None:
        """Begin to count, at the time of an event."""
        self._since_s = _seconds(at)

    def stop(self, at: str) -> None:
        """Stop counting; nothing changes where nothing is counted."""
        self._total_s, self._since_s = self.until(at), None

    def until(self, at: str) -> float:
        """Return the seconds counted until the time of an event."""
        now_s, since_s = _seconds(at), self._since_s
        if now_s is None or since_s is None:
            return self._total_s
        return self._total_s + max(now_s - since_s, 0.0)


def _seconds(at: str) -> float | None:
    """Return the time of an event, UTC in ISO 8601, in seconds; None where it is no such time."""
    try:
        date, clock = map(int, at[:10].split("-")), map(int, at[11:19].split(":"))
        fraction = at[20:26] if at[19:20] == "." else "0"
        return timegm((*date, *clock)) + int(fraction) / 10 ** len(fraction)
    except ValueError:
        return None


class Spending:
    """The paid usage of an execution, in all and by the path of the node."""

    __slots__ = ("_ledger", "by_path", "total")

    def __init__(self) -> None:
        self._ledger = UsageLedger()
        self.total = NO_USAGE
        self.by_path: dict[str, UsageTotal] = {}

    def observe(self, event: TypedEvent) -> bool:
        """Apply an event; return whether it added to the sums. All but ``usage`` only show what is paid."""
        if event.type != "usage":
            self._ledger.observe(event)
            return False
        if not self._ledger.is_paid(event):
            return False
        self.total = self.total.plus(event.data)
        path = event.path or ""
        self.by_path[path] = self.by_path.get(path, NO_USAGE).plus(event.data)
        return True


def used_text(limits: Mapping[str, float], used: Mapping[str, float]) -> str:
    """Return what is used of what, such as ``$4.10 of $5.00, 180,000 of 200,000 tokens``."""
    parts: list[str] = []
    for name, limit in limits.items():
        amount = amount_text(name, used.get(name, 0))
        parts.append(f"{amount.partition(' ')[0]} of {amount_text(name, limit)}")
    return ", ".join(parts)


def warning_text(
    names: Iterable[str], limits: Mapping[str, float], used: Mapping[str, float]
) -> str:
    """Return the message of a warning of amounts that are nearly used up."""
    return f"the budget is nearly used up: {used_text({n: limits[n] for n in names}, used)}"


def budget_request(
    budget: Budget,
    used: Mapping[str, float],
    spending: Spending,
    waiting: Mapping[str, Sequence[Mapping[str, float]]],
    *,
    is_out_of_time: bool = False,
) -> dict[str, Any]:
    """Return the request for a higher budget.

    Args:
        budget: The limits.
        used: The amounts used so far.
        spending: Which node used what.
        waiting: What the next calls of each waiting node may need, by path.
        is_out_of_time: The time in the budget is used up.
    """
    calls = [amounts for each in waiting.values() for amounts in each]
    proposed = _sufficient_limits(budget.limits, used, calls)
    if is_out_of_time:
        proposed[WALL_S] = _rounded_up(used[WALL_S] + budget.limits[WALL_S])
    message = f"The budget of this run does not suffice: used {used_text(budget.limits, used)}."
    if steps := _most_used(spending.by_path):
        message += f" Most was used by {steps}."
    if waiting:
        message += f" {_waiting_text(waiting, budget.limits)}"
    return {
        "kind": BUDGET,
        "message": f"{message} Raise the budget, or stop the run?",
        "actions": [RAISE, STOP],
        "limits": dict(budget.limits),
        "used": dict(used),
        "waiting": list(waiting),
        "proposed": proposed,
    }


def _sufficient_limits(
    limits: Mapping[str, float], used: Mapping[str, float], calls: Sequence[Mapping[str, float]]
) -> dict[str, float]:
    """Return limits with which all waiting calls can be made, of the amounts that do not suffice."""
    raised: dict[str, float] = {}
    for name, most in limits.items():
        needed = sum(amounts.get(name, 0.0) for amounts in calls)
        if needed and used[name] + needed > most:
            amount = _rounded_up(used[name] + needed)
            raised[name] = int(amount) if name in WHOLE else amount
    return raised


def _rounded_up(amount: float) -> float:
    """Return an amount that is at least as large and has one digit that is not 0, such as 5,000 for 4,318."""
    exact = Decimal(repr(amount))
    unit = Decimal(1).scaleb(exact.adjusted())
    return float((exact / unit).to_integral_value(ROUND_CEILING) * unit)


def _most_used(by_path: Mapping[str, UsageTotal]) -> str:
    def weight(item: tuple[str, UsageTotal]) -> tuple[float, int]:
        usage = item[1]
        return usage.cost_usd or 0.0, usage.input_tokens + usage.output_tokens

    most = sorted(by_path.items(), key=weight, reverse=True)[:_MOST_STEPS]
    return ", ".join(
        f"{repr(path) if path else _PLANNING} "
        f"({amount_text('tokens', usage.input_tokens + usage.output_tokens)})"
        for path, usage in most
    )


def _waiting_text(
    waiting: Mapping[str, Sequence[Mapping[str, float]]], limits: Mapping[str, float]
) -> str:
    path, (needed, *_) = next(iter(waiting.items()))
    what = ", ".join(amount_text(n, each) for n, each in needed.items() if n in limits)
    more = len(waiting) - 1
    others = f", and {more} more {'waits' if more == 1 else 'wait'}" if more else ""
    return f"The next call of {path!r} may use {what or 'more'}{others}."


def is_raised(answer: Any) -> bool:
    """Return whether an answer raises the budget; any other one stops the execution."""
    return field_of(answer, "decision") == RAISE


def raised_limits(limits: Mapping[str, float], answer: Any) -> dict[str, float]:
    """Return the limits that an answer sets; amounts that this budget does not limit are left out."""
    value = field_of(answer, "value") if is_raised(answer) else None
    raised = {name: field_of(value, name) for name in limits}
    return {name: most for name, most in raised.items() if is_amount(name, most)}


def is_amount(name: str, value: Any) -> bool:
    """Return whether a value can limit an amount: a number above 0, whole where it is counted."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 < value <= sys.float_info.max and (name not in WHOLE or value == int(value))


def over_budget(forecast: Mapping[str, Any], limits: Mapping[str, float]) -> dict[str, float]:
    """Return the limits that a plan may exceed, by the upper ends of its forecast."""
    expected = {
        "usd": field_of(forecast.get("cost_usd"), "high"),
        "tokens": field_of(forecast.get("tokens"), "high"),
        "calls": forecast.get("calls"),
    }
    return {name: most for name, most in limits.items() if (expected.get(name) or 0) > most}


def stop_cause(answer: Any) -> str:
    """Return why an execution ends whose budget was not raised."""
    note = field_of(answer, "note")
    return f"the budget was not raised: {note}" if note else "the budget was not raised"
