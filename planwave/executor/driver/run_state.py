"""All mutable state of one execution, and what a turn leaves to be done: events and effects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, NamedTuple, cast

from planwave.errors import ErrorDocument
from planwave.events import Event
from planwave.events.budget import WALL_S, Budget, Spending, budget_request, warning_text
from planwave.events.plan_payloads import PlanRequestedData
from planwave.events.types import (
    EventType,
    PauseKind,
    PayloadT,
    TypedEvent,
    WarnedData,
    typed_event,
)
from planwave.executor.driver.slots import Slots
from planwave.executor.limits import RunLimits
from planwave.executor.messages import Effect, IdleEnded
from planwave.executor.options import RunOptions
from planwave.executor.recovery.history import History
from planwave.executor.requests import PendingRequests
from planwave.executor.scheduling.types import RunOutcome
from planwave.executor.state import DONE, Attempt, GraphRun, ReplyTo
from planwave.graph.model import Json

Place = Literal["held", "wanted", "none"]
MAX_CAUSES: Final = 20
"""How many exceptions of failed nodes are kept, of the graph and of what is nested in it."""


class Now(NamedTuple):
    """The time of a turn.

    Attributes:
        loop_s: By the clock of the event loop, in seconds.
        at: In UTC, as events carry it.
    """

    loop_s: float
    at: str


class BudgetCall(NamedTuple):
    """A call of a node that holds amounts of the budget, or waits for them."""

    attempt: Attempt
    amounts: Mapping[str, float]


class ChangeCall(NamedTuple):
    """A call of the model that writes a change of the graph, as a ``BudgetCall``; it is of no attempt."""

    amounts: Mapping[str, float]
    attempt: None = None


class RunBudget:
    """The budget of one execution; changed only by the driver.

    Attributes:
        budget: The limits, and the open request for more.
        spending: The usage that was paid.
        held: The calls that are being made, by the token with which each was reserved.
        waiting: The calls of nodes that wait, in the order in which they asked.
        change_waiting: The call that waits, of the model that writes a change of the graph; None without one.
        stored_waits: The paths of nodes that waited in a process that has ended.
        has_timer: A timer for the time in the budget is set.
        is_out_of_time: The time in the budget is used up: nothing starts.
    """

    __slots__ = (
        "_has_news", "budget", "change_waiting", "has_timer", "held", "is_out_of_time", "spending",
        "stored_waits", "waiting",
    )  # fmt: skip

    def __init__(self, limits: Mapping[str, float]) -> None:
        self.budget = Budget(limits)
        self.spending = Spending()
        self.held: dict[ReplyTo, BudgetCall | ChangeCall] = {}
        self.waiting: dict[ReplyTo, BudgetCall] = {}
        self.change_waiting: tuple[ReplyTo, ChangeCall] | None = None
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
        waiting: dict[str, list[Mapping[str, float]]] = {}
        for call in self.waiting.values():
            if call.attempt.phase is not DONE:
                waiting.setdefault(call.attempt.path, []).append(call.amounts)
        return budget_request(
            self.budget,
            self.used(wall_s),
            self.spending,
            waiting,
            is_out_of_time=self.is_out_of_time,
        )


class Planning:
    """The changes of its own graph that one execution asks for; changed only by the driver.

    Args:
        most: How many it may ask for.

    Attributes:
        count: How many were requested of a model so far.
        own: How many of these it has asked for itself.
        made: How many changes its graph had, those by people too.
        open: The one that is being written, or waits for a person; None without one.
        request_id: The request to a person about it, once it is written; None without one.
        is_new: No event says of the open one yet.
        later: What asks for the next one: nodes that failed, and nodes that want one.
        is_due: Whether the next one is to be requested, or a failure to stop the run, before anything is decided.
    """

    __slots__ = (
        "count", "is_due", "is_new", "later", "made", "most", "open", "own", "request_id",
    )  # fmt: skip

    def __init__(self, most: int, history: History | None) -> None:
        self.most, self.count, self.own, self.made = most, 0, 0, 0
        self.open: PlanRequestedData | None = None
        self.request_id = None if history is None else history.change_request_id
        self.later: list[PlanRequestedData] = []
        self.is_due = self.is_new = False


class Causes:
    """What the nodes raised whose failure nothing has handled so far, by path; the first ones.

    Args:
        kept: Where they are kept, for a caller in this process; None keeps none: the frames of an
            exception keep everything alive that the node had.
    """

    __slots__ = ("_kept",)

    def __init__(self, kept: dict[str, BaseException] | None) -> None:
        self._kept = kept

    def add(self, path: str, error: BaseException) -> None:
        """Keep what a node raised, unless there are enough; nested nodes take no place of the others."""
        if self._kept is None:
            return
        alike = [each for each in self._kept if ("[" in each) == ("[" in path)]
        if path in self._kept or len(alike) < MAX_CAUSES:
            self._kept[path] = error

    def discard(self, path: str) -> None:
        """Drop what a node raised that has a result now, and what was raised inside it."""
        for each in list(self._kept or ()):
            if self._kept is not None and (each == path or each.startswith(f"{path}[")):
                del self._kept[each]


class RunState:
    """The state of one execution; changed only within a turn, by the functions of this package.

    Attributes:
        root: The run of the execution's own graph.
        graph_runs: The running nested graphs by prefix.
        changed: The graph runs whose schedule has facts that it has not decided on.
        seq: The number of the last event.
        events: The events of this turn, which are appended as one batch.
        effects: What this turn wants done, in order.
        now: The time of this turn.
        recorded_graphs: Hashes of the nested graphs whose documents are in an event.
        is_stopping: Nothing more is started.
        pending_outcome: How the execution ends, before its last event is emitted.
        outcome: How the execution ended.
        error: Why it failed.
        causes: What its nodes raised.
        redact: Returns JSON without secrets.
        cancel_cause: Why it was cancelled, "" where it was not.
        paused_since: When it was paused, by the event loop's clock; None where it is not.
        paused_s: How long it was paused, or waited for a running place, before.
        extended_s: By how much of that the time limit of the execution was extended.
        began_s: When this process began to drive it, by the event loop's clock.
        budget: What it may use; None where nothing limits it.
        planning: The changes of its own graph that it asks for.
        shares_places: Its running place is one of a bounded number.
        place: Whether it has its running place, or waits for it.
        idle: The attempts with tasks that wait for what comes only after a while, or then for the place.
        returning: What such tasks wait for now: the place.
        wanted_since: Since when it waits for it, by the event loop's clock; None where it does not.
    """

    def __init__(
        self,
        execution_id: str,
        root: GraphRun,
        options: RunOptions,
        *,
        epoch: int = 1,
        last_seq: int = 0,
        history: History | None = None,
        shares_places: bool = False,
        causes: dict[str, BaseException] | None = None,
        redact: Callable[[Json], Json] = lambda value: value,
    ) -> None:
        self.execution_id, self.root, self.options = execution_id, root, options
        self.redact = redact
        self.epoch, self.history = epoch, history
        self.seq = last_seq if history is None else history.last_seq
        self.now = Now(0.0, "")
        self.events: list[Event] = []
        self.effects: list[Effect] = []
        self.requests = PendingRequests()
        self.slots = Slots(options.max_parallel)
        self.limits = RunLimits(options) if options.has_bounds else None
        self.graph_runs: dict[str, GraphRun] = {}
        self.changed: dict[GraphRun, None] = {}
        self.recorded_graphs = set[str]() if history is None else set(history.nested_runs.documents)
        self.is_stopping = False
        self.pending_outcome: RunOutcome | None = None
        self.outcome: RunOutcome | None = None
        self.error: ErrorDocument | None = None
        self.causes = Causes(causes)
        self.cancel_cause = ""
        self.pause_reason: PauseKind | None = None if history is None else history.pause_reason
        self.paused_since: float | None = None
        self.wanted_since: float | None = None
        self.shares_places = shares_places
        self.idle: dict[Attempt, None] = {}
        self.returning: list[IdleEnded] = []
        self.place: Place = "held"
        self.paused_s = self.extended_s = self.began_s = 0.0
        limits = options.budget_limits
        self.budget = RunBudget(limits) if limits else None
        self.planning = Planning(options.max_replans, history)
        if history is not None and self.budget is not None:
            self.budget.restore(history.spending, history.own_events)
        if history is not None and self.limits is not None:
            self.limits.restore(history.state_bytes, history.start_count, history.streamed_bytes)

    @property
    def is_ending(self) -> bool:
        """Whether it is decided how the execution ends."""
        return self.pending_outcome is not None or self.outcome is not None

    def emit(
        self,
        event_type: EventType[PayloadT],
        data: PayloadT,
        path: str | None = None,
        attempt: int | None = None,
    ) -> None:
        """Add an event to this turn's batch; all events of a batch share one time."""
        self.seq += 1
        payload = cast("Mapping[str, Json]", data)
        event = Event(
            self.execution_id, self.seq, self.now.at, event_type.name, path, attempt, payload
        )
        self.events.append(event)
        if self.budget is not None:
            self.budget.observe(event)

    @property
    def is_out_of_time(self) -> bool:
        """Whether the time in its budget is used up, so that nothing starts."""
        return self.budget is not None and self.budget.is_out_of_time

    @property
    def waits_for_decision(self) -> bool:
        """Whether nothing starts before a person raises the budget, or decides about a change of the graph."""
        return self.is_out_of_time or self.planning.request_id is not None

    @property
    def active_s(self) -> float:
        """The seconds so far in which the execution was not paused, those of earlier processes too."""
        before_s = 0.0 if self.history is None else self.history.active_s
        return before_s + self.now.loop_s - self.began_s - self.idle_s

    @property
    def idle_s(self) -> float:
        """The seconds so far in which it was paused or waited for a running place, in this process."""
        began = (each for each in (self.paused_since, self.wanted_since) if each is not None)
        return self.paused_s + sum(self.now.loop_s - each for each in began)

    def change_place(self, place: Place, effect: Effect | None = None) -> None:
        """Note what becomes of the running place; the wait for it does not count as active time."""
        if self.wanted_since is not None:
            self.paused_s += self.now.loop_s - self.wanted_since
        self.place = place
        self.wanted_since = self.now.loop_s if place == "wanted" else None
        if effect is not None:
            self.effects.append(effect)

    def drain_events(self) -> list[Event]:
        """Return this turn's batch and begin a new one."""
        events, self.events = self.events, []
        return events

    def drain_effects(self) -> list[Effect]:
        """Return the effects to be performed and begin a new list."""
        effects, self.effects = self.effects, []
        return effects

    def close(self) -> None:
        """Drop what refers to attempts, so that a finished execution is freed at once."""
        self.requests = PendingRequests()
        self.effects.clear()
        for graph_run in (self.root, *self.graph_runs.values()):
            for (
                attempt
            ) in graph_run.attempts.values():  # there are some only where it was interrupted
                attempt.close()
            graph_run.attempts.clear()
            graph_run.nested_run = None
        self.graph_runs.clear()

    def mark_changed(self, graph_run: GraphRun) -> None:
        """Record that the schedule of a graph run has new facts."""
        self.changed[graph_run] = None

    def graph_run_at(self, prefix: str) -> GraphRun | None:
        """Return the running graph whose node paths begin with a prefix."""
        return self.graph_runs.get(prefix) if prefix else self.root
