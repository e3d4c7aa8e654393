"""All mutable state of one execution, and what a turn leaves to be done: events and effects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, cast

from planwave.errors import ErrorDocument
from planwave.events import Event
from planwave.events.types import EventType, PauseKind, PayloadT
from planwave.executor.budget import RunBudget
from planwave.executor.driver.effects import Effect
from planwave.executor.driver.slots import Slots
from planwave.executor.limits import RunLimits
from planwave.executor.messages import IdleEnded
from planwave.executor.options import RunOptions
from planwave.executor.recovery.history import History
from planwave.executor.requests import PendingRequests
from planwave.executor.scheduling.decisions import RunOutcome
from planwave.executor.state import Attempt, GraphRun
from planwave.graph.model import Json

Place = Literal["held", "wanted", "none"]


class Now(NamedTuple):
    """The time of a turn.

    Attributes:
        loop_s: By the clock of the event loop, in seconds.
        at: In UTC, as events carry it.
    """

    loop_s: float
    at: str


class RunState:
    """The state of one execution; changed only by the functions of this package, within a turn.

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
        cancel_cause: Why it was cancelled, "" where it was not.
        paused_since: When it was paused, by the event loop's clock; None where it is not.
        paused_s: How long it was paused, or waited for a running place, before.
        extended_s: By how much of that the time limit of the execution was extended.
        began_s: When this process began to drive it, by the event loop's clock.
        budget: What it may use; None where nothing limits it.
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
    ) -> None:
        self.execution_id, self.root, self.options = execution_id, root, options
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
        self.cancel_cause = ""
        self.pause_reason: PauseKind | None = None if history is None else history.pause_reason
        self.paused_since: float | None = None
        self.wanted_since: float | None = None
        self.shares_places = False
        self.idle: dict[Attempt, None] = {}
        self.returning: list[IdleEnded] = []
        self.place: Place = "held"
        self.paused_s = self.extended_s = self.began_s = 0.0
        limits = options.budget_limits
        self.budget = RunBudget(limits) if limits else None
        if history is not None and self.budget is not None:
            self.budget.restore(history.spending, history.own_events)
        if history is not None and self.limits is not None:
            self.limits.restore(history.state_bytes, history.start_count)

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
        self.graph_runs.clear()

    def mark_changed(self, graph_run: GraphRun) -> None:
        """Record that the schedule of a graph run has new facts."""
        self.changed[graph_run] = None

    def graph_run_at(self, prefix: str) -> GraphRun | None:
        """Return the running graph whose node paths begin with a prefix."""
        return self.graph_runs.get(prefix) if prefix else self.root
