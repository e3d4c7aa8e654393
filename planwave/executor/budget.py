"""State of the budget of a running execution: amounts used, reservations of calls, and waiting calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from planwave.events.budget import WALL_S, Budget, Spending, budget_request, warning_text
from planwave.events.types import Event, TypedEvent, WarnedData, typed_event
from planwave.executor.state import DONE, Attempt, ReplyTo
from planwave.graph.model import Json


class BudgetCall(NamedTuple):
    """A call that holds amounts of the budget, or waits for them."""

    attempt: Attempt
    amounts: Mapping[str, float]


class RunBudget:
    """The budget of one execution; changed only by the driver.

    Attributes:
        budget: The limits, and the open request for more.
        spending: The usage that was paid.
        held: The calls that are being made, by the token with which each was reserved.
        waiting: The calls that wait, in the order in which they asked.
        stored_waits: The paths of nodes that waited in a process that has ended.
        has_timer: A timer for the time in the budget is set.
        is_out_of_time: The time in the budget is used up: nothing starts.
    """

    __slots__ = (
        "_has_news", "budget", "has_timer", "held", "is_out_of_time", "spending", "stored_waits", "waiting"
    )  # fmt: skip

    def __init__(self, limits: Mapping[str, float]) -> None:
        self.budget = Budget(limits)
        self.spending = Spending()
        self.held: dict[ReplyTo, BudgetCall] = {}
        self.waiting: dict[ReplyTo, BudgetCall] = {}
        self.stored_waits: dict[str, None] = {}
        self.is_out_of_time = self.has_timer = self._has_news = False

    @property
    def limits(self) -> Mapping[str, float]:
        """The limits that hold now."""
        return self.budget.limits

    @property
    def is_waited_for(self) -> bool:
        """Whether anything can only go on with a higher budget, or once a call has ended."""
        return self.is_out_of_time or bool(self.waiting or self.stored_waits)

    def restore(self, spending: Spending, own_events: Iterable[TypedEvent]) -> None:
        """Take over what an earlier process has used, and what was answered then."""
        self.spending = spending
        for event in own_events:
            self._observe(event)

    def observe(self, event: Event) -> None:
        """Follow an event that the execution emits."""
        typed = typed_event(event)
        self._observe(typed)
        self.spending.observe(typed)
        self._has_news = self._has_news or typed.type in ("usage", "execution.resumed")

    def _observe(self, event: TypedEvent) -> None:
        match event.type:
            case "execution.paused" | "execution.resumed" | "execution.warned":
                self.budget.observe(event)
            case _:
                pass

    def used(self, wall_s: float) -> dict[str, float]:
        """Return what is used of each limited amount; ``wall_s`` is the time not paused so far."""
        return self.budget.used(self.spending.total, wall_s)

    def fits(self, amounts: Mapping[str, float]) -> bool:
        """Return whether a call may be made, besides what is used and what other calls hold."""
        if self.is_out_of_time:
            return False
        used = self.used(0.0)
        held = [call.amounts for call in self.held.values()]
        return all(
            used[name] + sum(each.get(name, 0.0) for each in held) + amounts[name] <= most
            for name, most in self.limits.items()
            if amounts.get(name, 0.0) > 0.0
        )

    def calls_of(self, attempt: Attempt) -> list[ReplyTo]:
        """Return the tokens of what an attempt holds or waits for."""
        calls = (*self.held.items(), *self.waiting.items())
        return [reply for reply, call in calls if call.attempt is attempt]

    def due_warning(self, wall_s: float) -> WarnedData | None:
        """Return the data of a warning, once an amount is nearly used up."""
        if not self._has_news and WALL_S not in self.limits:
            return None
        self._has_news = False
        used = self.used(wall_s)
        names = self.budget.due_warnings(used)
        if not names:
            return None
        message = warning_text(names, self.limits, used)
        return {"message": message, "amounts": names}

    def request(self, wall_s: float) -> Json:
        """Return the request for a higher budget."""
        waiting: dict[str, Mapping[str, float]] = {}
        for call in self.waiting.values():
            if call.attempt.phase is not DONE:
                waiting.setdefault(call.attempt.path, call.amounts)
        return budget_request(self.budget, self.used(wall_s), self.spending, waiting)
