"""One execution: its mailbox loop, and the commands of callers.

Results, commands, answers and timers enter one mailbox. Each round of the loop takes all queued messages,
makes a turn of them (``turn.py``), appends its events as one batch, and only when that is durable
publishes them, starts nodes and replies to callers. The position in the mailbox decides every race.
Node tasks never use the store. A late message of an attempt that has already ended is dropped.

This module alone waits, reads clocks, sets timers and performs effects.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, Literal, assert_never, cast

from planwave.errors import ErrorDocument, InputError, PlanwaveError, StoreError
from planwave.events import Event, fold
from planwave.events.plan_changes import NO_GRAPH
from planwave.events.plan_payloads import WRITTEN, PlanRequestedData, PlanRevisedData, revision_of
from planwave.events.request_text import is_approved
from planwave.events.types import PAUSE_REASONS, REQUESTED
from planwave.executor.driver.attempt_tasks import AttemptTasks
from planwave.executor.driver.plan_requests import events_until_request
from planwave.executor.driver.publisher import ChangeSource, Publisher, Subscription
from planwave.executor.driver.run_state import Now, RunState
from planwave.executor.driver.turn import Turn, commit, turn
from planwave.executor.limits import most_text
from planwave.executor.messages import (
    AnswerChange,
    AnswerRequest,
    BytesStored,
    CancelExecution,
    CancelNode,
    CancelReply,
    CancelTask,
    CancelTimer,
    ChangePlace,
    ChangeWritten,
    CloseLinks,
    DeliverOutcome,
    Effect,
    InterruptExecution,
    KeepOnceValue,
    Message,
    OutcomeTaken,
    PauseExecution,
    PlaceChange,
    PlaceGranted,
    RaiseInterrupt,
    Reply,
    RequestChange,
    RequestTimer,
    ResumeExecution,
    RevisePlan,
    SetTimer,
    StartAttempt,
    StartExecution,
    Timer,
    WriteChange,
    outline,
)
from planwave.executor.node_api.context import ChangeCalls
from planwave.executor.node_api.host import NodeHost
from planwave.executor.node_api.mailbox import ALREADY_ENDED as ALREADY_ENDED
from planwave.executor.node_api.nested import NO_FLOORS, Admit, create_graph_run
from planwave.executor.options import RunOptions
from planwave.executor.ports import ChangeWriter, Journal, WrittenChange
from planwave.executor.program import Program
from planwave.executor.recovery.history import History
from planwave.executor.reuse.reuse import Reuse
from planwave.executor.state import DONE, Outputs
from planwave.expressions.templates import TemplateEngine
from planwave.graph.editing.revision import changed_graph
from planwave.graph.model import Graph, Json
from planwave.graph.protocols import Suspension, WrittenBy
from planwave.graph.reading.documents import read_graph
from planwave.principals import PrincipalDocument

_log: Final = logging.getLogger(__name__)
_turns_log: Final = logging.getLogger("planwave.turns")
"""Says, at level DEBUG, what went into each turn and what came of it."""
Parking = Literal["never", "replayable", "always"]
"""When a paused execution ends the tasks of its parked nodes, to be taken up from the store.

``replayable``: once all of them can be replayed; others keep it in memory. ``always``: others are
interrupted, as by the end of the process.
"""
_SETTLING_S: Final = 1.0
"""How long nodes that are not replayable have to go on by themselves, before they are interrupted."""


def utc_now() -> str:
    """Return the UTC time as events carry it: ISO 8601 with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _log_turn(execution_id: str, messages: Sequence[Message], outcome: Turn) -> None:
    """Log a turn; what its messages, events and effects carry may be secret, and is left out."""
    events = (
        f"{event.seq} {event.type}" + (f" {event.path}" if event.path else "")
        for event in outcome.events
    )
    _turns_log.debug(
        "execution %s: messages %s; events %s; effects %s", execution_id,
        ", ".join(map(outline, messages)) or "none", ", ".join(events) or "none",
        ", ".join(map(outline, outcome.effects)) or "none",
    )  # fmt: skip


def _with_events(message: Message, stored: Sequence[Event]) -> Message:
    """Return a message; a change of the graph with all events of the execution."""
    if isinstance(message, RevisePlan):
        return replace(message, stored=stored)
    if isinstance(message, ChangeWritten) and message.revision is not None:
        return replace(message, revision=replace(message.revision, stored=stored))
    return message


class _Timers:
    """The timers of one execution; those that are due at the same time fire in the order they were set.

    The event loop alone would fire timers of one time in any order, and so give other events.
    """

    def __init__(self, post: Callable[[Timer], None]) -> None:
        self._post = post
        self._due_at: dict[Timer, float] = {}
        self._timers_at: dict[float, dict[Timer, None]] = {}
        self._handles: dict[float, asyncio.TimerHandle] = {}

    def set(self, loop: asyncio.AbstractEventLoop, timer: Timer, at_s: float) -> None:
        """Set a timer, in place of an equal one."""
        self.cancel(timer)
        self._due_at[timer] = at_s
        if at_s not in self._handles:
            self._handles[at_s] = loop.call_at(at_s, self._fire, at_s)
        self._timers_at.setdefault(at_s, {})[timer] = None

    def cancel(self, timer: Timer) -> None:
        """Cancel a timer, if it is set."""
        at_s = self._due_at.pop(timer, None)
        if at_s is not None:
            del self._timers_at[at_s][timer]
            if not self._timers_at[at_s]:
                del self._timers_at[at_s]
                self._handles.pop(at_s).cancel()

    def close(self) -> None:
        """Cancel all timers."""
        for timer in list(self._due_at):
            self.cancel(timer)

    def _fire(self, at_s: float) -> None:
        del self._handles[at_s]
        for timer in self._timers_at.pop(at_s):
            del self._due_at[timer]
            self._post(timer)


class Execution:
    """One execution of a program, driven by ``run``.

    Args:
        program: The graph, ready to run.
        execution_id: Its id; also ``run_id`` of node contexts.
        inputs: ``{node_id: {handle: value}}``: nodes settled with these values, not executed.
        options: Scheduling, failure policy, bounds.
        journal: Stores the events; None stores nothing and never suspends.
        epoch: The owner's epoch, passed to every append.
        last_seq: Number of the last event already stored (``execution.created``).
        variables: Names expressions may use besides the node's inputs (``goal``, ``trigger``).
        services, chat_id, state: Opaque; node contexts carry them.
        renderer: Renders expressions that are more than plain paths; see ``expressions.renderer``.
        on_events: Called with every published batch, after it is durable.
        now: Returns the UTC time of a batch as text.
        history: The stored events to resume from; ``last_seq`` is ignored then.
        is_recovery: It resumes because its process ended; an event records that.
        reuse: For a fork: the results to reuse from its parent execution.
        parks: Return from ``run`` when it is paused and idle, instead of waiting in memory; see
            ``Parking``.
        waits_for: It does not park while an open request satisfies this.
        approval: The request that a person answers before any node starts; ignored once started.
        on_place: Called when nothing of it runs any more, and when something wants to; it holds a
            running place at first, and then starts nodes once ``grant_place`` is called.
        written_by: Who wrote the graph, if no person did.
        wave_floors: The waves of nodes of a graph that was changed while it was run; see ``WaveProgress``.
        admit: Decides about graphs that such a graph runs and that do not stand in it.
        write_change: Has a model write the changes of its graph that it asks for; None refuses them.
        causes: Gets what failed nodes raised, by path, for a caller in this process.
    """

    _stop_mode: Literal["soon", "now"] | None = None
    _final_status: str | None = None
    _has_begun = _has_settled = False

    def __init__(
        self,
        program: Program,
        *,
        execution_id: str,
        inputs: Mapping[str, Mapping[str, Json]] | None = None,
        options: RunOptions = RunOptions(),  # noqa: B008 - immutable
        journal: Journal | None = None,
        epoch: int = 1,
        last_seq: int = 0,
        variables: Mapping[str, Json] | None = None,
        services: object = None,
        chat_id: str | None = None,
        state: object = None,
        renderer: TemplateEngine | None = None,
        on_events: Callable[[list[Event]], None] | None = None,
        now: Callable[[], str] = utc_now,
        history: History | None = None,
        is_recovery: bool = False,
        parks: Parking = "never",
        waits_for: Callable[[Suspension], bool] = lambda _: False,
        reuse: Reuse | None = None,
        approval: Json | None = None,
        on_place: Callable[[PlaceChange], None] | None = None,
        written_by: WrittenBy | None = None,
        wave_floors: Mapping[str, tuple[int, bool]] = NO_FLOORS,
        admit: Admit | None = None,
        causes: dict[str, BaseException] | None = None,
        write_change: ChangeWriter | None = None,
    ) -> None:
        self.execution_id, self.options = execution_id, options
        self.publisher = Publisher(execution_id, journal, epoch, on_events, now, most_text(options))
        self.host = NodeHost(
            execution_id, variables, services, chat_id, state, renderer, options=options,
            parent=reuse, admit=admit,
        )  # fmt: skip
        self._create_root = partial(
            create_graph_run, host=self.host, options=options, inputs=inputs, written_by=written_by
        )
        root = self._create_root(program, floors=wave_floors)
        root.parent_runs = () if reuse is None else reuse.own_runs
        self._run = RunState(
            execution_id, root, options, epoch=epoch, last_seq=last_seq, history=history,
            shares_places=on_place is not None, causes=causes, redact=self.host.redact,
        )  # fmt: skip
        self._mailbox, self._utc_now, self._on_place = self.host.mailbox, now, on_place
        self._tasks = AttemptTasks(self.host, reuse, self.publisher.publish_delta)
        self._timers = _Timers(self._mailbox.post)
        self._parks, self._waits_for, self._write_change = parks, waits_for, write_change
        self._start = StartExecution(is_recovery, approval)

    # -- for callers -------------------------------------------------------------------------------

    def events(self) -> Subscription:
        """Return an async iterable of every event from now on, ended by the terminal one."""
        return self.publisher.subscribe()

    @property
    def status(self) -> str:
        """The status: ``starting executing paused``, or what ``run`` returned."""
        if self._final_status is not None:
            return self._final_status
        if not self._has_begun:
            return "starting"
        return "executing" if self._run.pause_reason is None else "paused"

    @property
    def has_ended(self) -> bool:
        """Whether ``run`` has returned, or is about to; commands have no effect then."""
        return self._final_status is not None

    @property
    def open_requests(self) -> list[str]:
        """The ids of the requests that wait for an answer, in the order they were made."""
        return list(self._run.requests.by_id)

    def count_stored(self, size: int) -> None:
        """Count bytes that were stored for it beside its events towards ``max_state_bytes``."""
        if size and self._run.limits is not None:
            self._mailbox.post(BytesStored(size))

    @property
    def result_bytes(self) -> int:
        """The size of all results so far, 0 where no limit needs it."""
        return 0 if self._run.limits is None else self._run.limits.state_bytes

    @property
    def outputs(self) -> dict[str, Outputs]:
        """The outputs of every node that has any so far, by id."""
        return self._run.root.results()

    @property
    def error(self) -> ErrorDocument | None:
        """Why the execution failed, or None."""
        return self._run.error

    def cancel(self, cause: str) -> None:
        """Cancel the execution; ``run`` ends with ``cancelled`` unless it finished before."""
        self._mailbox.post(CancelExecution(cause))

    def cancel_node(self, path: str, cause: str) -> asyncio.Future[None]:
        """Cancel one node; done once that is durable, ``Conflict`` where it cannot be."""
        reply, done = self._mailbox.expect_command_reply()
        self._mailbox.post(CancelNode(path, cause, reply))
        return done

    def pause(self, reason: str = PAUSE_REASONS[REQUESTED]) -> asyncio.Future[None]:
        """Start no more nodes until ``resume``; running nodes finish."""
        reply, done = self._mailbox.expect_command_reply()
        self._mailbox.post(PauseExecution(reason, reply))
        return done

    def resume(self, reason: str = "resumed by request") -> asyncio.Future[None]:
        """Go on after ``pause``; ``Conflict`` where it is not paused."""
        reply, done = self._mailbox.expect_command_reply()
        self._mailbox.post(ResumeExecution(reason, reply))
        return done

    def revise(
        self, graph: Graph, data: PlanRevisedData, request: Json = None
    ) -> asyncio.Future[None]:
        """Change the graph that is run; done once that is durable.

        Args:
            graph: The graph that it becomes, without errors.
            data: What the event of the change says: ``change`` is one more than the changes before, ``base`` and
                ``hash`` are of the graphs; the driver adds the waves.
            request: What a person is asked first, a ``plan-change``; None to make the change at once.

        Raises (from the future):
            Conflict: ``plan-changed``, ``approval-open``; it has just ended.
            GraphInvalid: The graph cannot become that one, as something of it has begun.
        """
        change = self._change(graph, data)
        reply, done = self._mailbox.expect_command_reply()
        self._mailbox.post(replace(change, reply=reply, request=request))
        return done

    def request_change(self, asked: PlanRequestedData) -> asyncio.Future[None]:
        """Have a model write a change as a person asks; done once that is durable, ``Conflict`` where it cannot be."""
        reply, done = self._mailbox.expect_command_reply()
        self._mailbox.post(RequestChange(asked, reply))
        return done

    def expire(self, request_id: str) -> None:
        """Expire a request: its node resumes with the request's timeout answer."""
        self._mailbox.post(RequestTimer(request_id))

    def answer(
        self, request_id: str, answer: Json, answered_by: PrincipalDocument | None = None
    ) -> asyncio.Future[None]:
        """Answer a waiting node, which then runs ``resume``; the future is done once durable.

        Raises:
            Conflict, Gone: No request of that id is open (any more); the code says why.
        """
        requests = self._run.requests
        if self._has_begun and not requests.claim(request_id):
            raise requests.refusal_error(request_id)
        reply, done = self._mailbox.expect_command_reply()
        self._mailbox.post(AnswerRequest(request_id, answer, reply, answered_by))
        return done

    def grant_place(self) -> None:
        """Let nodes start that have waited for a running place."""
        self._mailbox.post(PlaceGranted())

    def interrupt(self, *, at_once: bool = False) -> None:
        """Start no more nodes; end ``run`` once the running nodes have finished, or at once.

        No terminal event is written, so the stored execution can be resumed. ``run`` then
        returns ``interrupted``. If this is called before ``run``, commands in the mailbox are
        still applied and stored, but no node starts.
        """
        self._stop_mode = "now" if at_once else self._stop_mode or "soon"
        self._mailbox.post(InterruptExecution())

    # -- the loop ----------------------------------------------------------------------------------

    async def run(self) -> str:
        """Drive the execution to its end.

        Returns:
            ``completed``, ``failed`` or ``cancelled``; the terminal event is durable by then.
            ``interrupted`` after ``interrupt``, unless it had ended before. ``paused`` if it
            parks: only a command can resume it, and has to load it from the store.

        Raises:
            StoreError: The journal refused a batch; nothing of it was published.
        """
        self._loop = asyncio.get_running_loop()
        self._has_begun = True
        try:
            await self._run_turn([self._start, *self._mailbox.take()])
            while not self._has_ended():
                if self._mailbox:
                    await self._run_turn(self._mailbox.take())
                else:
                    await self._wait()
            return self.status
        finally:
            self._timers.close()
            await self._tasks.wait_cancelled()
            await self.host.open_links.close_all()
            self.publisher.close()
            self._mailbox.close()
            self._run.close()

    def _now(self) -> Now:
        return Now(self._loop.time(), self._utc_now())

    def _has_ended(self) -> bool:
        """Return whether there is nothing more to drive; set the final status."""
        if self._run.outcome is not None:
            self._final_status = self._run.outcome
        elif self._stop_mode is not None and self._must_stop():
            self._final_status = "interrupted"
        elif self._parks != "never" and self._is_parked() and self._may_end_tasks():
            self._final_status = "paused"
        return self._final_status is not None

    def _is_parked(self) -> bool:
        """Return whether nothing can happen before a command comes, as far as one can see."""
        slots = self._run.slots
        if self._run.pause_reason is None or self._mailbox or slots.has_running:
            return False
        if self._run.planning.open is not None and self._run.planning.request_id is None:
            return False
        if any(self._waits_for(request.suspension) for _, request in self._run.requests):
            return False
        return not slots.has_nested  # a node that runs a graph has to be there for that

    def _may_end_tasks(self) -> bool:
        """Return whether the tasks of parked nodes may be ended."""
        return self._run.slots.may_lose_tasks or self._has_settled

    async def _wait(self) -> None:
        """Wait for a message, or until nodes that cannot be seen to wait have had time to go on."""
        if self._parks != "always" or not self._is_parked():
            return await self._mailbox.wait()
        timer = self._loop.call_later(_SETTLING_S, self._settle)
        try:
            await self._mailbox.wait()
        finally:
            timer.cancel()

    def _settle(self) -> None:
        self._has_settled = True
        self._mailbox.wake_up()

    def _must_stop(self) -> bool:
        if self._stop_mode == "soon":
            return not (self._run.slots.has_running or self._mailbox)
        return self._stop_mode == "now"

    async def _run_turn(self, messages: list[Message]) -> None:
        """Take messages: change the state, append the events, publish them, perform the effects."""
        self._has_settled = False
        if any(map(self._changes_graph, messages)):
            messages = await self._with_stored(messages)
        outcome = turn(self._run, messages, self._now())
        if _turns_log.isEnabledFor(logging.DEBUG):
            _log_turn(self.execution_id, messages, outcome)
        events, effects = outcome
        for effect in effects:
            if isinstance(effect, CancelTask):
                self._tasks.cancel(effect.attempt)
        if self.publisher.durable and events:
            await self.publisher.append(events)
        if events:
            self.publisher.publish(events)
        if effects:
            self._perform_all(effects)

    async def _with_stored(self, messages: list[Message]) -> list[Message]:
        """Return the messages with what is stored, for changes of the graph; these are refused if it cannot be read."""
        try:
            stored = await self.publisher.stored()
        except StoreError as error:
            return [each for each in messages if not self._is_refused(each, error)]
        return [
            self._decided(each, stored)
            if isinstance(each, AnswerRequest) and self._changes_graph(each)
            else _with_events(each, stored)
            for each in messages
        ]

    def _changes_graph(self, message: Message) -> bool:
        if isinstance(message, AnswerRequest):
            return message.request_id == self._run.planning.request_id
        return isinstance(message, RevisePlan | ChangeWritten)

    def _decided(self, answer: AnswerRequest, stored: Sequence[Event]) -> AnswerChange:
        """Return the answer to the request about a change, with the change that was recorded with the request."""
        revision, error = None, None
        try:
            revision = self._recorded_change(answer, stored)
        except PlanwaveError as refusal:  # such as of a node type that there is no longer
            error = refusal
        return AnswerChange(
            answer.request_id, answer.answer, answer.reply, answer.answered_by, revision, error
        )

    def _recorded_change(self, answer: AnswerRequest, stored: Sequence[Event]) -> RevisePlan | None:
        state = fold(stored)
        asked = state.requests.get(answer.request_id)
        if asked is None or not is_approved(answer.answer):
            return None
        data = revision_of(asked.request)
        if answer.answered_by is not None:
            data.setdefault("revised_by", answer.answered_by)
        document = changed_graph(state.graph or NO_GRAPH, data["graph_change"])
        graph, _ = read_graph(cast("Mapping[str, Json]", document))
        return replace(self._change(graph, data), stored=stored)

    def _is_refused(self, message: Message, error: StoreError) -> bool:
        """Refuse a change of the graph by a caller; one that a model wrote needs an answer in a turn."""
        if isinstance(message, ChangeWritten) and message.revision is not None:
            raise error
        if isinstance(message, AnswerRequest) and self._changes_graph(message):
            self._run.requests.release(message.request_id)
        elif not isinstance(message, RevisePlan):
            return False
        if message.reply is not None:
            self._mailbox.resolve(message.reply, error)
        return message.reply is not None

    async def _change_written(self, number: int, asked: PlanRequestedData) -> None:
        """Have a model write a change, and post what came of it."""
        written, change = WrittenChange(), None
        try:
            if self._write_change is None:
                raise InputError("no model writes changes of plans here", code="no-planner")
            stored = events_until_request(await self.publisher.stored())
            publish = partial(self._publish_written, ChangeSource(number))
            calls = ChangeCalls(self._mailbox, number, self.options.budget_limits, publish)
            written = await self._write_change(asked, number, stored, calls)
            if written.graph is not None and written.data is not None:
                change = self._change(written.graph, written.data)
        except PlanwaveError as error:
            written = written._replace(error=error)
        except Exception as error:  # noqa: BLE001 - the execution goes on without the change
            _log.exception("execution %s: change %s cannot be written", self.execution_id, number)
            refusal = PlanwaveError(f"it cannot be written: {error}", code="change-failed")
            written = written._replace(error=refusal)
        self._mailbox.post(ChangeWritten(number, change, written.error, written.request))

    def _publish_written(self, change: ChangeSource, part: Json) -> None:
        """Publish a part of a change that a model writes: for those who watch, and not stored."""
        line = json.dumps(self.host.redact(part), ensure_ascii=False) + "\n"
        self.publisher.publish_delta(change, {"kind": WRITTEN, "text": line})

    def _change(self, graph: Graph, data: PlanRevisedData) -> RevisePlan:
        program = Program(graph, self._run.root.program.catalogue)
        return RevisePlan(graph, data, partial(self._create_root, program))

    def _perform_all(self, effects: list[Effect]) -> None:
        """Perform what waits until the events are durable: starts first, then the rest in order."""
        following = commit(self._run, effects, Now(self._loop.time(), self._run.now.at))
        for effect in effects:
            if isinstance(effect, StartAttempt) and effect.attempt.phase is not DONE:
                self._tasks.start(effect.attempt)
        for effect in effects:
            self._perform(effect)
        for effect in following:
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:  # noqa: C901 - one case an effect
        match effect:
            case StartAttempt() | CancelTask():
                pass  # performed before
            case WriteChange(number, asked):
                if self._stop_mode is None:  # else who takes it up asks for it
                    self._tasks.start_beside(self._change_written(number, asked))
            case SetTimer(timer, at_s):
                self._timers.set(self._loop, timer, at_s)
            case CancelTimer(timer):
                self._timers.cancel(timer)
            case Reply(reply, error):
                self._mailbox.resolve(reply, error)
            case CancelReply(reply):
                self._mailbox.cancel(reply)
            case DeliverOutcome(_, reply, outcome):
                self._mailbox.resolve(reply, outcome)
                # After the task that waits has gone on: only then one sees what it does.
                self._loop.call_soon(self._mailbox.post, OutcomeTaken(effect.attempt))
            case KeepOnceValue(reply=reply):
                self._mailbox.resolve(reply, None)
            case CloseLinks(graph_run, users):
                close = partial(self.host.open_links.close, graph_run.values)
                self._tasks.call_after(users, close)
            case RaiseInterrupt(error):
                raise error
            case ChangePlace(change):
                if self._on_place is not None:
                    self._on_place(change)
            case _:
                assert_never(effect)
