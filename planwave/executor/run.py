"""The mailbox and the driver: one loop decides everything about one execution.

Outcomes, commands, answers and timers enter one queue. The loop takes all that is queued, settles
the schedule, numbers the resulting events, appends them as one batch, and only when that is durable
publishes them, starts nodes and answers callers. Nothing else assigns ``seq``; place in the mailbox
decides every race. Node tasks never touch the store, and a late word from an attempt that was
settled without it is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from types import CoroutineType
from typing import Any

from planwave.errors import Conflict, NodeError, PlanwaveError
from planwave.events import Event
from planwave.executor.attempt import heard, resolved_data, vetted
from planwave.executor.clock import utc_now
from planwave.executor.deadlines import Deadlines
from planwave.executor.entry import entry_of, own_inputs
from planwave.executor.flight import OVER, Flight, Scope, current_flight
from planwave.executor.options import RunOptions
from planwave.executor.outcomes import Outcomes
from planwave.executor.ports import Journal
from planwave.executor.program import Program
from planwave.executor.publisher import Publisher
from planwave.executor.runtime import Outputs, Runtime
from planwave.executor.schedule import Schedule
from planwave.executor.slots import Slots
from planwave.graph.capabilities import FlowContext, NodeEvent
from planwave.graph.model import Graph, Json
from planwave.graph.values import DataValue, Inputs

GRACE_S = 2.0
"""How long a finished execution waits for cancelled node tasks to clean up (DESIGN: cancel ≤ 2 s)."""
_abandoned: set[asyncio.Task[None]] = set()
"""Tasks that ignored cancellation; kept only so that they are not collected while they run."""


class Execution:
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
    ) -> None:
        self.execution_id = execution_id
        self.options = options
        self.publisher = Publisher(execution_id, last_seq, journal, epoch, on_events, now)
        self._variables = dict(variables or {})
        self._services, self._chat_id, self._state = services, chat_id, state
        self._renderer = renderer
        self._inbox: list[tuple[Callable[[Any, Any], None], Any, Any]] = []
        self._wake: asyncio.Future[None] | None = None
        self.slots = Slots(options.max_parallel)
        self._launching: list[Flight] = []
        self._answers: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._nested: dict[tuple[str, str], Mapping[str, Outputs]] = {}
        self._outcomes = Outcomes(self)
        self.root = self.open_scope(program, inputs)
        self.status: str = "starting"

    # -- for callers -------------------------------------------------------------------------------

    def events(self) -> Any:
        """Give an async iterable of every event from now on, ended by the terminal one."""
        return self.publisher.subscribe()

    def use(self, services: Any) -> None:
        """Set what nodes find as ``context.services``; before :meth:`run`."""
        self._services = services

    @property
    def outputs(self) -> dict[str, Outputs]:
        """The outputs of every node that has any so far, by id."""
        return self.root.results()

    @property
    def error(self) -> dict[str, Any] | None:
        """Why the execution failed, ``{"code", "message", "hint"?}``, or None."""
        return self._outcomes.error

    def cancel(self, cause: str) -> None:
        """Cancel the execution; :meth:`run` ends with ``cancelled`` unless it finished before."""
        self.post(self._outcomes.cancelled, self.root, cause)

    def answer(self, request_id: str, answer: Json) -> None:
        """Answer a waiting node; it goes on with its ``resume``.

        Raises:
            Conflict: No request of that id is open.
        """
        if not self._outcomes.claim(request_id):
            raise Conflict(f"request {request_id!r} is not open", code="request-not-open")
        self.post(self._outcomes.answered, request_id, answer)

    async def run(self) -> str:
        """Drive the execution to its end.

        Returns:
            ``completed``, ``failed`` or ``cancelled``; the terminal event is durable by then.

        Raises:
            StoreError: The journal refused a batch; nothing of it was published.
        """
        self._loop = asyncio.get_running_loop()
        self.time = self._loop.time
        self.deadlines = Deadlines[tuple[Callable[[Any, Any], None], Any, Any]](
            self._loop, lambda due: self.post(*due)
        )
        if self.options.run_timeout_s is not None:
            limit = self.options.run_timeout_s
            self.deadlines.after(limit, (self._outcomes.out_of_time, self.root, limit))
        self.status = "executing"
        self._outcomes.begin(self.root)
        try:
            while True:
                await self._turn()
                if self._outcomes.final is None and not self._inbox:
                    self._wake = wake = self._loop.create_future()
                    await wake
                if self._outcomes.final is not None:
                    self.status = self._outcomes.final
                    return self.status
        finally:
            self._wake = None  # nothing that comes from now on takes a turn
            self.deadlines.close()
            await self._land()
            self.publisher.close()
            # What remains is what callers may ask for; without these circles it is freed at once.
            del self.deadlines
            self._outcomes.let_go()

    # -- the loop ----------------------------------------------------------------------------------

    def post(self, take: Callable[[Any, Any], None], about: Any, what: Any) -> None:
        """Put a message into the mailbox: ``take(about, what)`` is called in its turn."""
        self._inbox.append((take, about, what))
        if self._wake is not None:
            self._rouse()

    async def _turn(self) -> None:
        """Take all that is queued: settle, number, commit, publish, start, answer."""
        events = self._settle()
        if self.publisher.durable and events:
            await self.publisher.append(events)
        self._release(events)

    def _settle(self) -> list[Event]:
        inbox, self._inbox = self._inbox, []
        for take, about, what in inbox:
            take(about, what)
        self._outcomes.decide()
        self._fill_slots()
        self._outcomes.conclude()
        return self.publisher.take()

    def _release(self, events: list[Event]) -> None:
        if events:
            self.publisher.publish(events)
        if self._launching:
            launching, self._launching = self._launching, []
            for flight in launching:
                self._launch(flight)
        if self._answers:
            answers, self._answers = self._answers, []
            for answer in answers:
                answer()

    def _report(self, take: Callable[[Any, Any], None], flight: Flight, what: Any) -> None:
        """Post an outcome; take the turn at once where nothing else could join it.

        Without a journal a turn never suspends, so the last node in the air may take it from its
        own task. In a chain that saves waking the driver for every node.
        """
        self._inbox.append((take, flight, what))
        if self._wake is None:
            return  # the driver is in the middle of a turn and will look again
        if self.publisher.durable or len(self._inbox) > 1 or not self.slots.alone:
            self._rouse()
            return
        try:
            self._release(self._settle())
        except Exception as error:  # noqa: BLE001 - a broken driver ends run(), not this node
            self._rouse(error)
            return
        if self._outcomes.final is not None or self._inbox:
            self._rouse()

    def _rouse(self, error: Exception | None = None) -> None:
        wake, self._wake = self._wake, None
        if wake is None or wake.done():
            return
        if error is None:
            wake.set_result(None)
        else:
            wake.set_exception(error)

    def after_commit(self, call: Callable[[], None]) -> None:
        """Call something once this turn's events are durable and published."""
        self._answers.append(call)

    # -- attempts ----------------------------------------------------------------------------------

    def _fill_slots(self) -> None:
        for answer in self.slots.returning():
            self.after_commit(lambda answer=answer: _settle(answer.asked, answer.result))
        for flight in self.slots.starting():
            self._outcomes.started(flight)
            self._launching.append(flight)

    def watch_time(self, flight: Flight) -> None:
        """Set the deadline of an attempt's own time, where it has one."""
        policy = flight.scope.program.steps[flight.node].node.policy
        limit = self.options.node_timeout_s if policy.timeout_s is None else policy.timeout_s
        if limit is not None:
            left = limit - flight.own_time(self.time())
            self.deadlines.after(max(left, 0), (self._outcomes.overdue, flight, limit))

    def _launch(self, flight: Flight) -> None:
        if flight.phase is OVER:
            return
        flight.started = self.time()
        if self.options.node_timeout_s is not None or flight.scope.program.timed:
            self.watch_time(flight)
        # Not a TaskGroup: an attempt that ignores cancellation must not hold up the end of the run,
        # and one failing node must not cancel the others. ``_land`` waits for every task here.
        flight.task = self._loop.create_task(self._fly(flight))

    async def _fly(self, flight: Flight) -> None:
        """The task of one attempt; the one place where any exception becomes a fact."""
        scope, node = flight.scope, flight.node
        step = scope.program.steps[node]
        current_flight.set(flight)
        try:
            inputs = Inputs(scope.runtime.arrivals_at(node))
            data = step.node.data
            if step.template is not None:
                data = await self.data_of(scope.runtime, node, inputs)
            context = FlowContext(
                step.node.id, self.execution_id, flight.path, flight.attempt, self._chat_id,
                self._state, scope.runtime, self._services,
            )  # fmt: skip

            say = partial(self._say, flight)
            if flight.resume is None:
                given = step.implementation.execute(data, inputs, context)
                # A coroutine, the usual case, is awaited here: one frame less for each node.
                usual = type(given) is CoroutineType
                result = vetted(step, await (given if usual else heard(given, say)), say)
            else:
                resumed = await step.implementation.resume(data, inputs, context, *flight.resume)
                result = vetted(step, resumed, say)
        except asyncio.CancelledError:
            if flight.phase is OVER:
                raise
            self._report(self._outcomes.failed, flight, NodeError("the node cancelled itself"))
        except BaseException as error:  # whatever a node raises is its failure
            if asyncio.current_task(self._loop) is not flight.task:
                raise  # closed from outside, with a loop that has ended: there is nobody to tell
            self._report(self._outcomes.failed, flight, error)
            if isinstance(error, KeyboardInterrupt):
                raise
        else:
            self._report(self._outcomes.gave, flight, result)
        finally:
            flight.task = None  # a task, its context and its flight would keep each other alive

    def _say(self, flight: Flight, event: NodeEvent) -> None:
        if flight.phase is OVER:
            return
        if event.event_type == "delta":
            self.publisher.delta(flight, event.data)
        else:
            self.post(self._outcomes.said, flight, event)

    async def _land(self) -> None:
        """Cancel what still runs and wait for it, but no longer than the grace time."""
        for task in [f.task for f in self.root.airborne() if f.task is not None]:
            task.cancel()
            self._tasks.add(task)
        if self._tasks:
            _, stubborn = await asyncio.wait(self._tasks, timeout=GRACE_S)
            for task in stubborn:
                _abandoned.add(task)
                task.add_done_callback(_abandoned.discard)

    def abort(self, flight: Flight) -> None:
        """Cancel the task of a flight that was settled without it."""
        if flight.task is not None and not flight.task.done():
            flight.task.cancel()
            self._tasks.add(flight.task)
            flight.task.add_done_callback(self._tasks.discard)

    # -- what runtimes need ------------------------------------------------------------------------

    def open_scope(
        self,
        program: Program,
        inputs: Mapping[str, Mapping[str, Json]] | None,
        prefix: str = "",
        parent: Flight | None = None,
        asked: asyncio.Future[Any] | None = None,
    ) -> Scope:
        """Make a program ready to be driven, its inputs already settled."""
        entry = entry_of(program, inputs)
        runtime = Runtime(program, self, prefix)
        for node, values in entry.given.items():
            runtime.outputs[node] = {h: DataValue("any", v) for h, v in values.items()}
        schedule = Schedule(
            program.topology,
            program.rules(self.options),
            given={node: values.keys() for node, values in entry.given.items()},
            part=entry.part,
            dropped=entry.dropped,
        )
        return Scope(program, schedule, runtime, parent, asked)

    async def nested(
        self, runtime: Runtime, key: str, graph: Graph, inputs: Mapping[str, Any]
    ) -> Mapping[str, Outputs]:
        """Run a graph inside a running node; see ``RuntimeApi.run_graph``."""
        flight = current_flight.get()
        if flight.phase is OVER:
            raise NodeError(f"attempt {flight.attempt} of node {flight.path!r} is over")
        place = (flight.path, key)
        if place not in self._nested:
            program = Program(graph, runtime.program.catalogue)
            given = own_inputs(program, inputs)
            asked: asyncio.Future[Any] = self._loop.create_future()
            scope = self.open_scope(program, given, f"{flight.path}[{key}]/", flight, asked)
            self.post(self._outcomes.nest, flight, scope)
            try:
                self._nested[place] = await asked
            except asyncio.CancelledError:
                self.post(self._outcomes.unnest, flight, scope)
                raise
        return self._nested[place]

    async def data_of(self, runtime: Runtime, node: int, inputs: Inputs) -> Mapping[str, Json]:
        """Give a node's data with its expressions resolved."""
        return await resolved_data(
            runtime.program, node, runtime, inputs, self._variables, self._renderer
        )

    def asking(self) -> int:
        """Give the number of the node whose task this is called in."""
        return current_flight.get().node

    def context(self, runtime: Runtime, node: int, attempt: int) -> FlowContext:
        """Give the context of one attempt."""
        node_id = runtime.program.topology.ids[node]
        return FlowContext(
            node_id, self.execution_id, runtime.prefix + node_id, attempt, self._chat_id,
            self._state, runtime, self._services,
        )  # fmt: skip


def _settle(asked: asyncio.Future[Any], result: Any) -> None:
    if asked.done():
        return
    if isinstance(result, PlanwaveError):
        asked.set_exception(result)
    else:
        asked.set_result(result)
