"""The mailbox and the driver: one loop decides everything about one execution.

Results, commands, answers and timers enter one mailbox. The loop takes all queued messages, updates the
schedule, numbers the resulting events, appends them as one batch, and only when the batch is durable
publishes them, starts nodes and replies to callers. Nothing else assigns ``seq``; the position in the
mailbox decides every race. Node tasks never use the store. A late message of an attempt that has already
ended is dropped.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from types import CoroutineType
from typing import Any, Final, Literal, cast

from planwave.errors import Conflict, NodeError, PlanwaveError
from planwave.events import Event
from planwave.events.types import PAUSE_REASONS, REQUESTED
from planwave.executor.driver.attempt_tasks import CancelledTasks
from planwave.executor.driver.clock import utc_now
from planwave.executor.driver.deadlines import DeadlineTimers
from planwave.executor.driver.futures import resolve_future
from planwave.executor.driver.parking import Parking
from planwave.executor.driver.publisher import Publisher
from planwave.executor.driver.reducer import Reducer
from planwave.executor.driver.slots import Slots
from planwave.executor.node_api.host import NodeHost
from planwave.executor.node_api.once import OnceValues
from planwave.executor.node_api.own_work import OwnWork
from planwave.executor.node_api.results import read_result, validate_result
from planwave.executor.node_api.runtime import Outputs
from planwave.executor.options import RunOptions
from planwave.executor.ports import Journal
from planwave.executor.program import Program
from planwave.executor.recovery.history import History, is_paused_by_request
from planwave.executor.reuse.reuse import Reuse, result_to_reuse
from planwave.executor.state import DONE, Attempt, GraphRun, create_graph_run, current_attempt
from planwave.graph.inputs import Inputs
from planwave.graph.model import Json
from planwave.graph.protocols import ExecutionResult, FlowContext, NodeEvent, Suspension, unlimited

ALREADY_ENDED: Final = "at-rest"
"""The code of a refusal that came too late: what is stored of the execution has the last word."""
TurnCallback = Callable[[Any, Any], None]
"""How a message is taken in its turn: called with what it is about, and what it says."""


class PendingCommands:
    """The commands of one execution that nobody has been told about yet.

    Args:
        post: Puts a message into the mailbox.
        after_commit: Has something called once the turn's events are durable.
    """

    __slots__ = ("_after_commit", "_open", "_post")

    def __init__(
        self,
        post: Callable[[TurnCallback, Any, Any], None],
        after_commit: Callable[[Callable[[], None]], None],
    ) -> None:
        self._post: Callable[[TurnCallback, Any, Any], None] | None = post
        self._after_commit: Callable[[Callable[[], None]], None] | None = after_commit
        self._open: set[asyncio.Future[None]] = set()

    def send(self, callback: TurnCallback, about: Any, what: Any) -> asyncio.Future[None]:
        """Put a command into the mailbox.

        Returns:
            Done once what it led to is durable; has the error where it was refused. Nobody has to
            look at it.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.add_done_callback(_retrieve_exception)
        post, after_commit = self._post, self._after_commit
        if post is None or after_commit is None:
            resolve_future(done, _already_ended())
            return done
        self._open.add(done)

        def taken(about: Any, what: Any) -> None:
            refusal: PlanwaveError | None = None
            try:
                callback(about, what)
            except PlanwaveError as error:
                refusal = error
            after_commit(lambda: self._reply(done, refusal))

        post(taken, about, what)
        return done

    def _reply(self, done: asyncio.Future[None], refusal: PlanwaveError | None) -> None:
        self._open.discard(done)
        resolve_future(done, refusal)

    def close(self) -> None:
        """Refuse what came too late for a turn, now and later."""
        for done in self._open:
            resolve_future(done, _already_ended())
        self._open.clear()
        self._post = self._after_commit = None  # they would keep the execution alive


def _already_ended() -> Conflict:
    return Conflict("the execution has just come to rest", code=ALREADY_ENDED)


def _retrieve_exception(done: asyncio.Future[None]) -> None:
    """Have nobody complain of an error that nobody asked for."""
    if not done.cancelled():
        done.exception()


class CommandSender:
    """What an execution can be told; each command takes its turn in the mailbox."""

    root: GraphRun
    _reducer: Reducer
    _commands: PendingCommands
    _has_begun: bool

    def post(self, callback: Callable[[Any, Any], None], subject: Any, payload: Any) -> None:
        """Put a message into the mailbox: ``take(about, what)`` is called in its turn."""
        raise NotImplementedError

    def cancel(self, cause: str) -> None:
        """Cancel the execution; :meth:`run` ends with ``cancelled`` unless it finished before."""
        self.post(self._reducer.commands.cancel_all, self.root, cause)

    def cancel_node(self, path: str, cause: str) -> asyncio.Future[None]:
        """Cancel one node; done once that is durable, ``Conflict`` where it cannot be."""
        return self._commands.send(self._reducer.commands.cancel_node, path, cause)

    def pause(self, reason: str = PAUSE_REASONS[REQUESTED]) -> asyncio.Future[None]:
        """Start nothing more until :meth:`resume_args`; nodes at work go on to their end."""
        return self._commands.send(self._reducer.commands.request_pause, self.root, reason)

    def resume(self, reason: str = "resumed by request") -> asyncio.Future[None]:
        """Go on after :meth:`pause`; ``Conflict`` where it is not paused."""
        return self._commands.send(self._reducer.commands.request_resume, self.root, reason)

    def expire(self, request_id: str) -> None:
        """Have a waiting node go on with what it wants where nobody answers in time."""
        self.post(self._reducer.commands.expire_request, request_id, None)

    def answer(self, request_id: str, answer: Json) -> asyncio.Future[None]:
        """Answer a waiting node; it goes on with its ``resume``. Done once that is durable.

        Raises:
            Conflict, Gone: No request of that id is open (any more); the code says why.
        """
        requests = self._reducer.requests
        if self._has_begun and not requests.claim(request_id):
            raise requests.refusal_error(request_id)
        return self._commands.send(self._reducer.commands.answer_request, request_id, answer)


class Execution(CommandSender):
    """One execution of a program, driven by :meth:`run`.

    Args:
        program: The graph, ready to run.
        execution_id: Its id; also ``run_id`` of node contexts.
        inputs: ``{node_id: {handle: value}}``: nodes settled with these values, not executed.
        options: Scheduling, failure policy, bounds.
        journal: Where events become durable; None keeps them nowhere and never suspends.
        epoch: The owner's epoch, passed to every append.
        last_seq: Number of the last event already stored (``execution.created``).
        variables: Names expressions may use besides the node's inputs (``goal``, ``trigger``).
        services, chat_id, state: Opaque; node contexts carry them.
        renderer: Renders what plain paths cannot; see ``expressions.Renderer``.
        on_events: Called with every published batch, after it is durable.
        now: Gives the UTC time of a batch as text.
        history: What is stored of it, where it is taken up again; ``last_seq`` is not heeded then.
        is_recovery: It is taken up because its process ended; that is told.
        reuse: Results it takes over from the execution it is a fork of.
        parks: Leave, instead of waiting in memory, when it is paused and nothing is at work.
    """

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
        services: Any = None,
        chat_id: str | None = None,
        state: Any = None,
        renderer: Any = None,
        on_events: Callable[[list[Event]], None] | None = None,
        now: Callable[[], str] = utc_now,
        history: History | None = None,
        is_recovery: bool = False,
        parks: bool = False,
        reuse: Reuse | None = None,
    ) -> None:
        self.execution_id = execution_id
        self.options = options
        last_seq = last_seq if history is None else history.last_seq
        self.publisher = Publisher(execution_id, last_seq, journal, epoch, on_events, now)
        self.history, self._is_recovery, self._parks = history, is_recovery, parks
        self.reuse = reuse
        self.host = NodeHost(execution_id, variables, services, chat_id, state, renderer)
        self._mailbox: list[tuple[Callable[[Any, Any], None], Any, Any]] = []
        self._wake: asyncio.Future[None] | None = None
        self.slots = Slots(options.max_parallel)
        self._to_start: list[Attempt] = []
        self._replies: list[Callable[[], None]] = []
        self._cancelled_tasks = CancelledTasks()
        self.cancel_task = self._cancelled_tasks.cancel
        self._stop_mode: Literal["soon", "now"] | None = None
        self._reducer = Reducer(self)
        self._commands = PendingCommands(self.post, self.after_commit)
        self.host.nested_runs = self._reducer.nested_runs
        self.host.once_values = OnceValues(self, self._reducer)
        self.root = create_graph_run(program, self.host, options, inputs)
        self.root.parent_runs = () if reuse is None else reuse.own_runs
        self._has_begun = False
        self._final_status: str | None = None

    # -- for callers -------------------------------------------------------------------------------

    def events(self) -> Any:
        """Give an async iterable of every event from now on, ended by the terminal one."""
        return self.publisher.subscribe()

    @property
    def status(self) -> str:
        """How it stands: ``starting executing paused``, or what :meth:`run` gave."""
        if self._final_status is not None:
            return self._final_status
        if not self._has_begun:
            return "starting"
        return "executing" if self._reducer.pause_reason is None else "paused"

    def use_services(self, services: Any) -> None:
        """Set what nodes find as ``context.services``; before :meth:`run`."""
        self.host.services = services

    @property
    def result_bytes(self) -> int:
        """The size of all results so far, 0 where nothing bounds that."""
        return 0 if self._reducer.limits is None else self._reducer.limits.result_bytes

    @property
    def outputs(self) -> dict[str, Outputs]:
        """The outputs of every node that has any so far, by id."""
        return self.root.results()

    @property
    def error(self) -> dict[str, Any] | None:
        """Why the execution failed, ``{"code", "message", "hint"?}``, or None."""
        return self._reducer.error

    def interrupt(self, *, at_once: bool = False) -> None:
        """Start nothing more, and leave once the nodes at work have finished, or at once.

        No terminal event is written: what is stored can be taken up again. :meth:`run` then ends
        with ``interrupted``. Called before :meth:`run`, with commands in the mailbox, these are
        settled and kept, and nothing is started.
        """
        self._stop_mode = "now" if at_once else self._stop_mode or "soon"
        self._wake_up()

    async def run(self) -> str:
        """Drive the execution to its end.

        Returns:
            ``completed``, ``failed`` or ``cancelled``; the terminal event is durable by then.
            ``interrupted`` after :meth:`interrupt`, where it had not ended by itself. ``paused``
            where it parks: nothing can go on before a command, which has to find it in the store.

        Raises:
            StoreError: The journal refused a batch; nothing of it was published.
        """
        self._loop = asyncio.get_running_loop()
        self.time = self._loop.time
        self.deadlines: DeadlineTimers[tuple[Callable[[Any, Any], None], Any, Any]]
        self.deadlines = DeadlineTimers(self._loop, lambda due: self.post(*due))
        if self.options.run_timeout_s is not None:
            limit = self.options.run_timeout_s
            left = limit - (self.history.active_s if self.history is not None else 0.0)
            self.deadlines.after(
                max(left, 0.0), (self._reducer.commands.time_out, self.root, limit)
            )
        self._begin()
        try:
            await self._run_turn()
            while not self._has_ended():
                if self._mailbox:
                    await self._run_turn()
                else:
                    self._wake = self._loop.create_future()
                    await self._wake
            return self.status
        finally:
            self._wake = None  # nothing that comes from now on takes a turn
            self.deadlines.close()
            await self._cancelled_tasks.wait_cancelled(self.root.active_attempts())
            self.publisher.close()
            self._commands.close()
            # What remains is what callers may ask for; without these circles it is freed at once.
            del self.deadlines, self.cancel_task
            self.host.nested_runs = self.host.once_values = None
            self._reducer.release()

    def _begin(self) -> None:
        self._has_begun = True
        if is_paused_by_request(self._reducer.pause_reason):
            self.slots.close()
        self._reducer.commands.begin()
        if self._is_recovery:
            self._reducer.commands.resume_recovered()
        self._reducer.begin(self.root)

    def _has_ended(self) -> bool:
        """Say whether there is nothing more to drive, and note how it was left."""
        if self._reducer.outcome is not None:
            self._final_status = self._reducer.outcome
        elif self._stop_mode is not None and self._must_stop():
            self._final_status = "interrupted"
        elif self._parks and self._is_parked():
            self._final_status = "paused"
        return self._final_status is not None

    def _is_parked(self) -> bool:
        """Say whether nothing can happen before a command comes."""
        if self._reducer.pause_reason is None or self._mailbox or self.slots.has_running:
            return False
        return not self.slots.has_nested  # a node that runs a graph has to be there for that

    def _must_stop(self) -> bool:
        if self._stop_mode == "soon":
            return not (self.slots.has_running or self._mailbox)
        return self._stop_mode == "now"

    # -- the loop ----------------------------------------------------------------------------------

    def post(self, callback: Callable[[Any, Any], None], subject: Any, payload: Any) -> None:
        """Put a message into the mailbox: ``take(about, what)`` is called in its turn."""
        self._mailbox.append((callback, subject, payload))
        if self._wake is not None:
            self._wake_up()

    async def _run_turn(self) -> None:
        """Take all that is queued: settle, number, commit, publish, start, answer."""
        events = self._reduce_all()
        if self.publisher.durable and events:
            await self.publisher.append(events)
        self._perform(events)

    def _reduce_all(self) -> list[Event]:
        inbox, self._mailbox = self._mailbox, []
        for take, about, what in inbox:
            take(about, what)
        self._reducer.decide()
        self._fill_slots()
        self._reducer.conclude()
        return self.publisher.drain()

    def _perform(self, events: list[Event]) -> None:
        if events:
            self.publisher.publish(events)
        if self._to_start:
            launching, self._to_start = self._to_start, []
            now = self.time()
            for attempt in launching:
                self._start_attempt(attempt, now)
        if self._replies:
            answers, self._replies = self._replies, []
            for answer in answers:
                answer()

    def _wake_up(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None and not wake.done():
            wake.set_result(None)

    def after_commit(self, call: Callable[[], None]) -> None:
        """Call something once this turn's events are durable and published."""
        self._replies.append(call)

    # -- attempts ----------------------------------------------------------------------------------

    def _fill_slots(self) -> None:
        if self._stop_mode is not None:
            return
        slots = self.slots
        if slots.has_returns:
            for answer in slots.grant_returns():
                self.after_commit(partial(self._reducer.nested_runs.deliver, answer))
        while (attempt := slots.next_start()) is not None:
            if self._reducer.started(attempt):
                self._to_start.append(attempt)

    def start_timeout_timer(self, attempt: Attempt) -> None:
        """Set the deadline of an attempt's own time, where it is bounded and none is set."""
        if attempt.limit_s is not None and not attempt.has_deadline:
            attempt.has_deadline = True
            left = attempt.limit_s - attempt.own_time(self.time())
            due = (self._reducer.timed_out, attempt, attempt.limit_s)
            self.deadlines.after(max(left, 0), due)

    def _timeout_s(self, attempt: Attempt) -> float | None:
        program = attempt.graph_run.program
        own = program.steps[attempt.node].node.policy.timeout_s if program.has_timeouts else None
        return self.options.node_timeout_s if own is None else own

    def _start_attempt(self, attempt: Attempt, now: float) -> None:
        if attempt.phase is DONE:
            return
        attempt.started = attempt.own_since = now
        attempt.limit_s = self._timeout_s(attempt)
        self.start_timeout_timer(attempt)
        # Not a TaskGroup: an attempt that ignores cancellation must not hold up the end of the run,
        # and one failing node must not cancel the others. ``_land`` waits for every task here.
        attempt.task = self._loop.create_task(self._run_attempt(attempt), name=attempt.path)

    async def _run_attempt(self, attempt: Attempt) -> None:
        """The task of one attempt; the one place where any exception becomes a fact."""
        graph_run, node, host = attempt.graph_run, attempt.node, self.host
        step = graph_run.program.steps[node]
        current_attempt.set(attempt)
        try:
            # What was answered goes on with that, whatever the execution before came to meanwhile.
            if self.reuse is not None and not attempt.was_started:
                found = await result_to_reuse(self.reuse, attempt, host)
                if found is not None:
                    return self.post(self._reducer.reused, attempt, found)
            inputs = Inputs(graph_run.runtime.arrivals_at(node))
            data = step.node.data
            if step.template is not None:
                data = await host.resolve_data(graph_run.runtime, node, inputs)
            result = validate_result(
                step, await self._call(attempt, data, inputs), self._emit, attempt
            )
        except asyncio.CancelledError:
            if attempt.phase is DONE:
                raise
            self.post(self._reducer.failed, attempt, NodeError("the node cancelled itself"))
        except BaseException as error:  # whatever a node raises is its failure
            if asyncio.current_task(self._loop) is not attempt.task:
                raise  # closed from outside, with a loop that has ended: there is nobody to tell
            self.post(self._reducer.failed, attempt, error)
            if isinstance(error, KeyboardInterrupt):
                self.post(self._interrupted, attempt, error)
        else:
            self.post(self._reducer.succeeded, attempt, result)
        finally:
            attempt.task = None  # a task, its context and its flight would keep each other alive

    def _call(
        self, attempt: Attempt, data: Mapping[str, Json], inputs: Inputs
    ) -> Awaitable[ExecutionResult | Suspension]:
        """Call the node's ``execute``, or its ``resume`` after an answer."""
        graph_run, host = attempt.graph_run, self.host
        step = graph_run.program.steps[attempt.node]
        context = FlowContext(
            step.node.id, self.execution_id, attempt.path, attempt.number, host.chat_id,
            host.state, graph_run.runtime, host.services, attempt.answer_count,
            unlimited if attempt.limit_s is None else partial(self._time_left_s, attempt),
            self.own_work,
        )  # fmt: skip
        if attempt.resume_args is not None:
            return step.implementation.resume(data, inputs, context, *attempt.resume_args)
        given: Awaitable[ExecutionResult | Suspension] | AsyncIterator[Any]
        given = step.implementation.execute(data, inputs, context)
        if type(given) is CoroutineType:  # the usual case needs one frame less
            return cast("Awaitable[ExecutionResult | Suspension]", given)
        return read_result(given, self._emit, attempt)

    def _interrupted(self, _: Attempt, error: KeyboardInterrupt) -> None:
        """Raise a node's KeyboardInterrupt out of :meth:`run` once its failure is durable."""

        def interrupt() -> None:
            raise error

        self.after_commit(interrupt)

    def own_work(self) -> OwnWork:
        """Give what goes around a call of its own that the node makes in whose task this is called."""
        return OwnWork(current_attempt.get(), self.note_activity)

    def note_activity(self, attempt: Attempt) -> None:
        """Look whether a node that has done something can only wait from now on."""
        self.post(Parking.park_if_idle, self._reducer.parking, attempt)

    def _time_left_s(self, attempt: Attempt) -> float:
        limit_s = math.inf if attempt.limit_s is None else attempt.limit_s
        return max(limit_s - attempt.own_time(self.time()), 0.0)

    def _emit(self, attempt: Attempt, event: NodeEvent) -> None:
        if attempt.phase is DONE:
            return
        if event.event_type == "delta":
            self.publisher.publish_delta(attempt, event.data)
        else:
            self.post(self._reducer.emitted, attempt, event)
