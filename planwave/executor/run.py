"""The mailbox and the driver: one loop decides everything about one execution.

Outcomes, commands, answers and timers enter one queue. The loop takes all that is queued, settles
the schedule, numbers the resulting events, appends them as one batch, and only when that is durable
publishes them, starts nodes and answers callers. Nothing else assigns ``seq``; place in the mailbox
decides every race. Node tasks never touch the store, and a late word from an attempt that was
settled without it is dropped.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from types import CoroutineType
from typing import Any, Literal, cast

from planwave.errors import NodeError
from planwave.events import Event
from planwave.executor.asked import Asked
from planwave.executor.attempt import heard, vetted
from planwave.executor.clock import utc_now
from planwave.executor.commanded import Commanded
from planwave.executor.deadlines import Deadlines
from planwave.executor.flight import OVER, Flight, current_flight
from planwave.executor.host import NodeHost
from planwave.executor.keeping import Keeping
from planwave.executor.landing import Landing
from planwave.executor.options import RunOptions
from planwave.executor.outcomes import Outcomes
from planwave.executor.parking import Busy, Parking
from planwave.executor.past import Past, is_held
from planwave.executor.ports import Journal
from planwave.executor.program import Program
from planwave.executor.publisher import Publisher
from planwave.executor.reuse import Reuse, result_to_reuse
from planwave.executor.runtime import Outputs
from planwave.executor.scope import open_scope
from planwave.executor.slots import Slots
from planwave.graph.capabilities import (
    ExecutionResult,
    FlowContext,
    NodeEvent,
    Suspension,
    unlimited,
)
from planwave.graph.model import Json
from planwave.graph.values import Inputs


class Execution(Commanded):
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
        past: What is stored of it, where it is taken up again; ``last_seq`` is not heeded then.
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
        past: Past | None = None,
        is_recovery: bool = False,
        parks: bool = False,
        reuse: Reuse | None = None,
    ) -> None:
        self.execution_id = execution_id
        self.options = options
        last_seq = last_seq if past is None else past.last_seq
        self.publisher = Publisher(execution_id, last_seq, journal, epoch, on_events, now)
        self.past, self._is_recovery, self._parks = past, is_recovery, parks
        self.reuse = reuse
        self.host = NodeHost(execution_id, variables, services, chat_id, state, renderer)
        self._inbox: list[tuple[Callable[[Any, Any], None], Any, Any]] = []
        self._wake: asyncio.Future[None] | None = None
        self.slots = Slots(options.max_parallel)
        self._launching: list[Flight] = []
        self._answers: list[Callable[[], None]] = []
        self._landing = Landing()
        self.abort = self._landing.abort
        self._leaving: Literal["soon", "now"] | None = None
        self._outcomes = Outcomes(self)
        self._asked = Asked(self.post, self.after_commit)
        self.host.nesting = self._outcomes.nesting
        self.host.keeping = Keeping(self, self._outcomes)
        self.root = open_scope(program, self.host, options, inputs)
        self.root.earlier = () if reuse is None else reuse.own
        self._has_begun = False
        self._left: str | None = None

    # -- for callers -------------------------------------------------------------------------------

    def events(self) -> Any:
        """Give an async iterable of every event from now on, ended by the terminal one."""
        return self.publisher.subscribe()

    @property
    def status(self) -> str:
        """How it stands: ``starting executing paused``, or what :meth:`run` gave."""
        if self._left is not None:
            return self._left
        if not self._has_begun:
            return "starting"
        return "executing" if self._outcomes.pause is None else "paused"

    def use(self, services: Any) -> None:
        """Set what nodes find as ``context.services``; before :meth:`run`."""
        self.host.services = services

    @property
    def held_bytes(self) -> int:
        """The size of all results so far, 0 where nothing bounds that."""
        return 0 if self._outcomes.bounds is None else self._outcomes.bounds.held

    @property
    def outputs(self) -> dict[str, Outputs]:
        """The outputs of every node that has any so far, by id."""
        return self.root.results()

    @property
    def error(self) -> dict[str, Any] | None:
        """Why the execution failed, ``{"code", "message", "hint"?}``, or None."""
        return self._outcomes.error

    def interrupt(self, *, at_once: bool = False) -> None:
        """Start nothing more, and leave once the nodes at work have finished, or at once.

        No terminal event is written: what is stored can be taken up again. :meth:`run` then ends
        with ``interrupted``. Called before :meth:`run`, with commands in the mailbox, these are
        settled and kept, and nothing is started.
        """
        self._leaving = "now" if at_once else self._leaving or "soon"
        self._rouse()

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
        self.deadlines: Deadlines[tuple[Callable[[Any, Any], None], Any, Any]]
        self.deadlines = Deadlines(self._loop, lambda due: self.post(*due))
        if self.options.run_timeout_s is not None:
            limit = self.options.run_timeout_s
            left = limit - (self.past.active_s if self.past is not None else 0.0)
            self.deadlines.after(
                max(left, 0.0), (self._outcomes.commands.out_of_time, self.root, limit)
            )
        self._begin()
        try:
            await self._turn()
            while not self._has_left():
                if self._inbox:
                    await self._turn()
                else:
                    self._wake = self._loop.create_future()
                    await self._wake
            return self.status
        finally:
            self._wake = None  # nothing that comes from now on takes a turn
            self.deadlines.close()
            await self._landing.land(self.root.airborne())
            self.publisher.close()
            self._asked.close()
            # What remains is what callers may ask for; without these circles it is freed at once.
            del self.deadlines, self.abort
            self.host.nesting = self.host.keeping = None
            self._outcomes.let_go()

    def _begin(self) -> None:
        self._has_begun = True
        if is_held(self._outcomes.pause):
            self.slots.close()
        self._outcomes.commands.begin()
        if self._is_recovery:
            self._outcomes.commands.recovered()
        self._outcomes.begin(self.root)

    def _has_left(self) -> bool:
        """Say whether there is nothing more to drive, and note how it was left."""
        if self._outcomes.final is not None:
            self._left = self._outcomes.final
        elif self._leaving is not None and self._is_leaving():
            self._left = "interrupted"
        elif self._parks and self._is_parking():
            self._left = "paused"
        return self._left is not None

    def _is_parking(self) -> bool:
        """Say whether nothing can happen before a command comes."""
        if self._outcomes.pause is None or self._inbox or self.slots.at_work:
            return False
        return not self.slots.nesting  # a node that runs a graph has to be there for that

    def _is_leaving(self) -> bool:
        if self._leaving == "soon":
            return not (self.slots.at_work or self._inbox)
        return self._leaving == "now"

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
            now = self.time()
            for flight in launching:
                self._launch(flight, now)
        if self._answers:
            answers, self._answers = self._answers, []
            for answer in answers:
                answer()

    def _rouse(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None and not wake.done():
            wake.set_result(None)

    def after_commit(self, call: Callable[[], None]) -> None:
        """Call something once this turn's events are durable and published."""
        self._answers.append(call)

    # -- attempts ----------------------------------------------------------------------------------

    def _fill_slots(self) -> None:
        if self._leaving is not None:
            return
        slots = self.slots
        if slots.has_returning:
            for answer in slots.returning():
                self.after_commit(partial(self._outcomes.nesting.hand_over, answer))
        while (flight := slots.next_start()) is not None:
            if self._outcomes.started(flight):
                self._launching.append(flight)

    def watch_time(self, flight: Flight) -> None:
        """Set the deadline of an attempt's own time, where it is bounded and none is set."""
        if flight.limit_s is not None and not flight.has_deadline:
            flight.has_deadline = True
            left = flight.limit_s - flight.own_time(self.time())
            due = (self._outcomes.overdue, flight, flight.limit_s)
            self.deadlines.after(max(left, 0), due)

    def _limit_s(self, flight: Flight) -> float | None:
        program = flight.scope.program
        own = program.steps[flight.node].node.policy.timeout_s if program.timed else None
        return self.options.node_timeout_s if own is None else own

    def _launch(self, flight: Flight, now: float) -> None:
        if flight.phase is OVER:
            return
        flight.started = flight.own_since = now
        flight.limit_s = self._limit_s(flight)
        self.watch_time(flight)
        # Not a TaskGroup: an attempt that ignores cancellation must not hold up the end of the run,
        # and one failing node must not cancel the others. ``_land`` waits for every task here.
        flight.task = self._loop.create_task(self._fly(flight), name=flight.path)

    async def _fly(self, flight: Flight) -> None:
        """The task of one attempt; the one place where any exception becomes a fact."""
        scope, node, host = flight.scope, flight.node, self.host
        step = scope.program.steps[node]
        current_flight.set(flight)
        try:
            # What was answered goes on with that, whatever the execution before came to meanwhile.
            if self.reuse is not None and not flight.begun:
                found = await result_to_reuse(self.reuse, flight, host)
                if found is not None:
                    return self.post(self._outcomes.took_over, flight, found)
            inputs = Inputs(scope.runtime.arrivals_at(node))
            data = step.node.data
            if step.template is not None:
                data = await host.data_of(scope.runtime, node, inputs)
            result = vetted(step, await self._call(flight, data, inputs), self._say, flight)
        except asyncio.CancelledError:
            if flight.phase is OVER:
                raise
            self.post(self._outcomes.failed, flight, NodeError("the node cancelled itself"))
        except BaseException as error:  # whatever a node raises is its failure
            if asyncio.current_task(self._loop) is not flight.task:
                raise  # closed from outside, with a loop that has ended: there is nobody to tell
            self.post(self._outcomes.failed, flight, error)
            if isinstance(error, KeyboardInterrupt):
                self.post(self._interrupted, flight, error)
        else:
            self.post(self._outcomes.gave, flight, result)
        finally:
            flight.task = None  # a task, its context and its flight would keep each other alive

    def _call(
        self, flight: Flight, data: Mapping[str, Json], inputs: Inputs
    ) -> Awaitable[ExecutionResult | Suspension]:
        """Call the node's ``execute``, or its ``resume`` after an answer."""
        scope, host = flight.scope, self.host
        step = scope.program.steps[flight.node]
        context = FlowContext(
            step.node.id, self.execution_id, flight.path, flight.attempt, host.chat_id,
            host.state, scope.runtime, host.services, flight.answers,
            unlimited if flight.limit_s is None else partial(self._left_s, flight),
            self.busy,
        )  # fmt: skip
        if flight.resume is not None:
            return step.implementation.resume(data, inputs, context, *flight.resume)
        given: Awaitable[ExecutionResult | Suspension] | AsyncIterator[Any]
        given = step.implementation.execute(data, inputs, context)
        if type(given) is CoroutineType:  # the usual case needs one frame less
            return cast("Awaitable[ExecutionResult | Suspension]", given)
        return heard(given, self._say, flight)

    def _interrupted(self, _: Flight, error: KeyboardInterrupt) -> None:
        """Raise a node's KeyboardInterrupt out of :meth:`run` once its failure is durable."""

        def interrupt() -> None:
            raise error

        self.after_commit(interrupt)

    def busy(self) -> Busy:
        """Give what goes around a call of its own that the node makes in whose task this is called."""
        return Busy(current_flight.get(), self.stirred)

    def stirred(self, flight: Flight) -> None:
        """Look whether a node that has done something can only wait from now on."""
        self.post(Parking.consider, self._outcomes.parking, flight)

    def _left_s(self, flight: Flight) -> float:
        limit_s = math.inf if flight.limit_s is None else flight.limit_s
        return max(limit_s - flight.own_time(self.time()), 0.0)

    def _say(self, flight: Flight, event: NodeEvent) -> None:
        if flight.phase is OVER:
            return
        if event.event_type == "delta":
            self.publisher.delta(flight, event.data)
        else:
            self.post(self._outcomes.said, flight, event)
