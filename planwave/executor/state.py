"""State of one execution: graph runs, node runs, attempts, nested runs, and how a graph run is made.

Data and bookkeeping only. The code that changes this state is in ``driver/``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from enum import Enum
from typing import NamedTuple, NewType

from planwave.errors import NESTED_FAILED, ErrorCause, ErrorDocument, NodeError, PermanentError
from planwave.events.streamed_text import KeptText
from planwave.events.types import BlockedCause, NodeParkedData
from planwave.executor.scheduling.schedule import Schedule
from planwave.executor.scheduling.types import Cause, NodeStatus
from planwave.executor.stored_runs import UNKNOWN_DEPENDENCIES, StoredGraphRun
from planwave.executor.values import GraphValues
from planwave.graph.model import Json
from planwave.graph.outputs import Outputs
from planwave.graph.protocols import RuntimeApi, effect_of

NestedOutcome = Mapping[str, Outputs] | NodeError
"""Outcome of a nested run: the outputs of its nodes by id, or its error."""
ReplyTo = NewType("ReplyTo", int)
"""Names the caller or node that waits for the reply to a message; see ``node_api/mailbox.py``."""


class Phase(Enum):
    """Where an attempt is; only ``RUNNING`` holds a slot.

    ``NESTED``: graphs run inside the node, and its code does no own work. ``PARKED``: those graphs all
    wait for answers, and so does its code; after a restart of the process it has no task any more.
    """

    QUEUED = "queued"
    RUNNING = "flying"
    NESTED = "nested"
    BACKOFF = "backoff"
    PARKED = "parked"
    DONE = "over"


QUEUED, RUNNING, NESTED, BACKOFF, PARKED, DONE = Phase
"""The phases as names of this module: a look-up on the enum costs more, several times a node."""


class GraphRun:
    """One running graph: the execution's own (``prefix`` ""), or one nested inside a node.

    Attributes:
        runtime: What its nodes find as ``context.runtime``.
        nested_run: The nested run that this graph belongs to; None for the execution's own graph.
        depth: Number of graphs around this one.
        failures: The error of every unhandled failed node by its path, in order of failing.
        attempt_offset: The highest attempt number of its nodes, nested ones included, before this
            graph was restarted; attempt numbers continue from there.
        highest_attempt: The highest attempt number of its nodes so far, the next attempt included.
        is_retryable: The first failure is retryable.
        is_idle: Nothing in it can proceed before a request of one of its nodes is answered.
        parent_runs: For a fork: earlier runs to reuse results from, the latest first; see
            ``reuse/reuse.py``.
        holds_stop: A failure stops it only once ``stop`` is called: the graph may be changed instead.
        unstarted_waves: The ids of the nodes of each wave that has not begun, in graph order.
    """

    __slots__ = (
        "attempt_offset",
        "attempts",
        "depth",
        "failures",
        "handled_failures",
        "has_presets",
        "held_stop",
        "highest_attempt",
        "holds_stop",
        "is_idle",
        "is_retryable",
        "join_winners",
        "nested_run",
        "outputs",
        "parent_runs",
        "path",
        "prefix",
        "program",
        "runtime",
        "schedule",
        "unstarted_waves",
        "values",
    )  # fmt: skip

    def __init__(self, values: GraphValues, schedule: Schedule, runtime: RuntimeApi) -> None:
        self.values = values
        self.schedule = schedule
        self.runtime = runtime
        self.program, self.prefix = values.program, values.prefix
        self.outputs, self.join_winners = values.outputs, values.join_winners
        self.path = values.prefix[:-1] or None
        self.nested_run: NestedRun | None = None
        self.depth = self.attempt_offset = self.highest_attempt = 0
        self.is_idle = self.is_retryable = self.holds_stop = False
        self.held_stop: Cause | None = None
        self.parent_runs: Sequence[ParentGraphRun] = ()
        self.has_presets = self.outputs.count(None) < len(self.outputs)
        self.attempts: dict[int, Attempt] = {}
        self.failures: dict[str, ErrorDocument] = {}
        self.handled_failures: list[str] = []
        self.unstarted_waves: dict[int, list[str]] = {}
        for node, wave in enumerate(schedule.waves.number):
            if self.outputs[node] is None:  # a preset node does not start
                self.unstarted_waves.setdefault(wave, []).append(self.program.topology.ids[node])

    def results(self) -> dict[str, Outputs]:
        """Return the outputs of every node that has any, by id."""
        ids = self.program.topology.ids
        return {ids[n]: outputs for n, outputs in enumerate(self.outputs) if outputs is not None}

    def record_failure(self, path: str, error: ErrorDocument, retryable: bool) -> None:
        """Record the failure of a node whose error policy did not handle it."""
        if not self.failures:
            self.is_retryable = retryable
        self.failures[path] = error

    def fail(self, node: int, reason: str, outputs: Outputs | None) -> None:
        """Fail a node; ``outputs`` are those of its error policy, if that handles the failure."""
        self.schedule.failed(node, reason, outputs)
        if outputs is None and self.holds_stop:
            self.held_stop = self.held_stop or Cause(node, reason)

    def stop(self) -> None:
        """Cancel what has not begun, if a failure that is to stop the graph was held."""
        if self.held_stop is not None:
            self.schedule.stop(self.held_stop)

    @property
    def is_stopped(self) -> bool:
        """Whether nothing of it starts any more, after a failure or a cancel."""
        return self.schedule.stop_cause is not None

    def first_failure(self) -> ErrorDocument:
        """Return the error of this graph: its first unhandled failure, naming the node it began at.

        A failure that passes through several nested graphs is named once.
        """
        for path, error in self.failures.items():
            message = error["message"]
            if error["code"] != NESTED_FAILED:
                message = f"node {path!r} failed: {message}"
            return {**error, "message": message, "node": path}
        return {"code": "node-cancelled", "message": "a node was cancelled"}

    def failure_origin(self) -> ErrorCause | None:
        """Return the first unhandled failure where it began, with its own code; None if there is none."""
        for path, error in self.failures.items():
            if "cause" in error:
                return error["cause"]
            origin: ErrorCause = {
                "node": path, "code": error["code"], "message": error["message"]
            }  # fmt: skip
            if "hint" in error:
                origin["hint"] = error["hint"]
            return origin
        return None

    def first_cause(self, cause: Cause) -> BlockedCause:
        """Return the failure that blocked a node."""
        if cause.node is None:
            return {"node": None, "error": {"code": "blocked", "message": cause.reason}}
        path = self.prefix + self.program.topology.ids[cause.node]
        unknown: ErrorDocument = {"code": "node-cancelled", "message": cause.reason}
        return {"node": path, "error": self.failures.get(path, unknown)}

    def has_completed(self, node: int) -> bool:
        """Return whether a node completed; a result from its error policy does not count."""
        return self.schedule.status[node] is NodeStatus.COMPLETED

    @property
    def is_complete(self) -> bool:
        """Whether every node either completed or was skipped; linked nodes are ignored."""
        ran = (NodeStatus.COMPLETED, NodeStatus.SKIPPED)
        linked, statuses = self.program.topology.linked, self.schedule.status
        return all(on or each in ran for on, each in zip(linked, statuses, strict=True))

    def record_cancelled(self, path: str, cause: str) -> None:
        """Record that a node was cancelled by itself, which fails this graph."""
        self.failures[path] = {"code": "node-cancelled", "message": cause}


class ParentGraphRun(NamedTuple):
    """A graph run of an execution before a fork, restored from its events; a source of results.

    Attributes:
        generation: Number of executions between that execution and the fork.
    """

    record: StoredGraphRun
    graph_run: GraphRun
    generation: int = 0


class Attempt:
    """One attempt of one node, from its start to its outcome.

    Once its phase is ``DONE`` it has ended; later messages of its task are dropped.

    Attributes:
        resume_args: ``(state, answer)`` of an attempt that resumes after an answer; ``answer_count``
            counts the answers of this attempt.
        reentries: How often the end of a process has interrupted this attempt.
        was_started: It resumes after a wait; its ``node.started`` was emitted before.
        started: Loop time of its launch; below 0 while it does not run.
        elapsed_s: Seconds it ran before the last wait or parking.
        own_s: Seconds of own work, without waits for nested runs, when the own clock last stopped.
        own_since: Loop time when the own clock started; below 0 while that clock is stopped.
        decision: A person's decision after an interruption, until it is carried out.
        limit_s: Limit of own work, in seconds; None for no limit.
        has_deadline: A timer for ``limit_s`` is set.
        open_nested_runs: Number of nested runs that the node waits for.
        budget_waits: Number of its calls that wait for the budget of the execution.
        idle_waits: The waits of its counted tasks for something that comes only after a while.
        loading: Number of its tasks that load what the process needs once; see ``context.loading()``.
        loading_since: Loop time when the first of them began.
        due_outcomes: Number of nested outcomes and grants of the budget that its tasks have not yet taken.
        task: The task that runs its code; None before, after its end, and after a restart of the process.
        group_tasks: The unfinished tasks of its task groups (``context.task_group()``).
        own_calls: Number of open ``OwnWork`` blocks. The node's tasks count this and the next
            three; the driver only reads them.
        covered: How many of these blocks surround a wait for a nested run, summed over the waits.
        active_tasks: Number of its counted tasks, which are its own task and those of its task groups;
            without those that only wait for the end of a task group.
        has_other_tasks: A nested run was asked for by a task that is not counted.
        depends_on: The hash of what the types declare that its result depends on, as it was when the
            node began; "" where that is not known, None where nothing is declared.
        waits: The reply tokens of the counted tasks that wait for nested runs, or for the budget.
        node_run: The nested runs and once values of its node, or None if there are none.
        replan: The change of the graph that its node asks for once it has completed, in words; None for none.
        streamed: The text that it has streamed so far, by kind, as far as it may be stored; None before the first
            piece.
    """

    __slots__ = (
        "active_tasks",
        "answer_count",
        "budget_waits",
        "covered",
        "decision",
        "depends_on",
        "due_outcomes",
        "elapsed_s",
        "graph_run",
        "group_tasks",
        "has_deadline",
        "has_other_tasks",
        "idle_waits",
        "limit_s",
        "loading",
        "loading_since",
        "node",
        "node_run",
        "number",
        "open_nested_runs",
        "own_calls",
        "own_s",
        "own_since",
        "path",
        "phase",
        "reentries",
        "replan",
        "resume_args",
        "started",
        "streamed",
        "task",
        "waits",
        "was_started",
    )  # fmt: skip

    def __init__(
        self,
        graph_run: GraphRun,
        node: int,
        number: int = 1,
        resume_args: tuple[Json, Json] | None = None,
        answer_count: int = 0,
        reentries: int = 0,
    ) -> None:
        self.graph_run = graph_run
        self.node = node
        self.number = number
        if number > graph_run.highest_attempt:  # it may be cancelled before it begins
            graph_run.highest_attempt = number
        self.path = graph_run.prefix + graph_run.program.topology.ids[node]
        self.resume_args = resume_args
        self.answer_count = answer_count
        self.reentries = reentries
        self.phase = QUEUED
        self.started = -1.0
        self.elapsed_s = self.own_s = 0.0
        self.own_since = -1.0
        self.limit_s: float | None = None
        self.was_started = self.has_deadline = False
        self.decision: Json = None
        self.depends_on: str | None = None
        self.replan: str | None = None
        self.open_nested_runs = self.due_outcomes = self.budget_waits = 0
        self.loading, self.loading_since = 0, 0.0
        self.idle_waits: set[object] = set()
        self.task: object | None = None
        self.group_tasks: set[object] | None = None
        self.own_calls = self.covered = 0
        self.active_tasks = 1
        self.has_other_tasks = False
        self.waits: set[ReplyTo] | None = None
        self.node_run: NodeRun | None = None
        self.streamed: dict[str, KeptText] | None = None

    def replaced_by(self, successor: Attempt) -> Attempt:
        """Pass the node run on to the attempt that replaces this one; return the successor."""
        if successor.number == self.number:
            successor.elapsed_s, successor.own_s = self.elapsed_s, self.own_s
            successor.replan = self.replan
        if successor.number == self.number or (self.node_run and self.node_run.once_values):
            successor.depends_on = self.depends_on
        successor.node_run, self.node_run = self.node_run, None
        if successor.node_run is not None:
            successor.node_run.attempt = successor
            successor.node_run.is_between_attempts = False
        return successor

    def close(self) -> None:
        """Drop what refers back to it, when its node has ended: the cycle would keep them all."""
        self.task = None
        if self.node_run is not None:
            self.node_run.nested_runs.clear()
            self.node_run = None

    def ended_error(self) -> PermanentError:
        """Return the error of calls made for this attempt after it has ended."""
        return PermanentError(f"attempt {self.number} of node {self.path!r} is over")

    def add_dependencies(self, depends_on: str) -> None:
        """Take note of what its result depends on now; it is not known if that changed meanwhile."""
        is_same = self.depends_on in (None, depends_on)
        self.depends_on = depends_on if is_same else UNKNOWN_DEPENDENCIES

    @property
    def has_begun(self) -> bool:
        """Whether it has started, or another attempt of its node has; else it only waits for its first slot."""
        is_first = self.number == self.graph_run.attempt_offset + 1 and not self.reentries
        return (
            self.phase is not QUEUED or self.was_started or bool(self.resume_args) or not is_first
        )

    @property
    def at_most_once(self) -> bool:
        """Whether its effect must not happen twice, and its code does not see to that itself."""
        step = self.graph_run.program.steps[self.node]
        if step.facts.guards_effect and step.node.policy.effect is None:
            return False
        return effect_of(step.node, step.facts, self.graph_run.program.graph) == "once"

    def elapsed(self, now: float) -> float:
        """Return the seconds this attempt has run by now, without its waits."""
        ran_s = self.elapsed_s + (now - self.started if self.started >= 0.0 else 0.0)
        return _microseconds(ran_s)

    def stop_clock(self, now: float) -> NodeParkedData:
        """Stop both clocks before a wait; return their times."""
        self.elapsed_s, self.started = self.elapsed(now), -1.0
        self.stop_own_clock(now)
        return {"duration_s": self.elapsed_s, "own_time_s": _microseconds(self.own_s)}

    def start_own_clock(self, now: float) -> None:
        """Start the own clock, if it is stopped."""
        if self.own_since < 0.0:
            self.own_since = now

    def stop_own_clock(self, now: float) -> None:
        """Stop the own clock."""
        self.own_s, self.own_since = self.own_time(now), -1.0

    def begin_loading(self, now: float) -> None:
        """Take note that one more of its tasks loads something."""
        if not self.loading:
            self.loading_since = now
        self.loading += 1

    def end_loading(self, now: float) -> None:
        """Take note that one of its tasks has loaded something; the last one sets both clocks back."""
        self.loading -= 1
        if self.loading:
            return
        if self.started >= 0.0:
            self.started += now - max(self.loading_since, self.started)
        if self.own_since >= 0.0:
            self.own_since += now - max(self.loading_since, self.own_since)

    def own_time(self, now: float) -> float:
        """Return the seconds of own work of this attempt, those before its waits included."""
        return self.own_s + (now - self.own_since if self.own_since >= 0.0 else 0.0)

    @property
    def replayable(self) -> bool:
        """Whether its type may be executed again from the top in place of a task that was ended."""
        return self.graph_run.program.steps[self.node].facts.replayable

    def counts(self, task: object | None) -> bool:
        """Return whether a task is counted: its own task, or one of its task groups."""
        return task is self.task or (self.group_tasks is not None and task in self.group_tasks)

    @property
    def does_own_work(self) -> bool:
        """Whether an own-work block is open, other than one around a wait for a nested run."""
        return self.own_calls > self.covered

    @property
    def is_idle(self) -> bool:
        """Whether all its tasks wait, and one of them for something that comes only after a while."""
        waiting = len(self.idle_waits) + len(self.waits or ())
        return bool(self.idle_waits) and waiting >= self.active_tasks

    @property
    def has_waits(self) -> bool:
        """Whether any of its tasks waits for a nested run, or for the budget."""
        return self.open_nested_runs > 0 or self.budget_waits > 0

    @property
    def only_nests(self) -> bool:
        """Whether it waits for nested runs or for the budget, and neither works nor gets an outcome."""
        return self.has_waits and not self.due_outcomes and not self.does_own_work

    @property
    def only_waits(self) -> bool:
        """Whether its code waits for nested runs, all of which wait for answers, or for the budget.

        Where a task that is not counted asked for one, only own-work blocks tell that its code works.
        """
        node_run = self.node_run
        opened, waiting = (0, 0) if node_run is None else (node_run.open_count, node_run.waiting)
        return (
            (self.budget_waits > 0 or (opened > 0 and self.open_nested_runs > 0))
            and opened == waiting
            and not self.due_outcomes
            and not self.own_calls
            and (self.has_other_tasks or self.active_tasks <= len(self.waits or ()))
        )

    @property
    def may_lose_task(self) -> bool:
        """Whether ending its task while it is parked changes nothing: another one replays it."""
        return self.task is None or (self.replayable and not self.has_other_tasks)


class NestedRun:
    """One graph that a node runs, or ran, inside itself under a key.

    Attributes:
        key: Its name within the node.
        node_run: The nested runs and once values of that node.
        identity: Hashes of the graph, and of inputs and variables.
        attempt_number: The node's attempt in which it was opened.
        graph_run: The running graph, None before and after.
        outcome: Its outcome; None if it has not ended, or ended without one.
        attempt_offset: The highest attempt number of its nodes before a restart.
        waiters: The reply tokens that get its outcome.
        is_abandoned: The node stopped waiting for it while it ran.
    """

    __slots__ = (
        "attempt_number",
        "attempt_offset",
        "graph_run",
        "identity",
        "is_abandoned",
        "key",
        "node_run",
        "outcome",
        "waiters"
    )  # fmt: skip

    def __init__(
        self, key: str, node_run: NodeRun, identity: tuple[str, str], attempt_number: int
    ) -> None:
        self.key = key
        self.node_run = node_run
        self.identity = identity
        self.attempt_number = attempt_number
        self.graph_run: GraphRun | None = None
        self.outcome: NestedOutcome | None = None
        self.attempt_offset = 0
        self.waiters: list[ReplyTo] = []
        self.is_abandoned = False

    def outcome_for(self, attempt_number: int) -> NestedOutcome | None:
        """Return its outcome, or None if an attempt of its node has to run it again."""
        is_spent = isinstance(self.outcome, NodeError) and self.attempt_number < attempt_number
        return None if is_spent or self.is_abandoned else self.outcome


class NodeRun:
    """The nested runs and once values of one node, shared by all its attempts.

    Attributes:
        attempt: The current or next attempt of the node.
        nested_runs: The nested runs by key, including ended ones.
        open_count: Number of nested runs that have not ended.
        waiting: Number of open nested runs that can only wait for answers.
        once_values: The values of ``once`` by key.
        is_between_attempts: The node waits for an answer itself: its last attempt has ended, and the
            answer begins the next one.
    """

    __slots__ = (
        "attempt",
        "is_between_attempts",
        "nested_runs",
        "once_values",
        "open_count",
        "waiting",
    )

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.nested_runs: dict[str, NestedRun] = {}
        self.open_count = self.waiting = 0
        self.is_between_attempts = False
        self.once_values: dict[str, Json] = {}

    def open_graph_runs(self) -> list[GraphRun]:
        """Return the running graphs."""
        if not self.open_count:
            return []
        return [run.graph_run for run in self.nested_runs.values() if run.graph_run is not None]

    def drop_waiters(self) -> list[ReplyTo]:
        """Drop everything that waits for nested runs; return what was dropped."""
        dropped: list[ReplyTo] = []
        for run in self.nested_runs.values() if self.open_count else ():
            dropped += run.waiters
            run.waiters.clear()
        return dropped


def _microseconds(seconds: float) -> float:
    return round(seconds, 6)


current_attempt: ContextVar[Attempt] = ContextVar("current_attempt")
"""The attempt that a task works for; its child tasks inherit it, so late calls are recognised."""
