"""Runs of graphs in this process: started, watched, answered, resumed, retried and forked."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, cast, overload

from typing_extensions import Unpack

from planwave.errors import PlanwaveError
from planwave.events import Event, ExecutionState
from planwave.events.types import TypedEvent, typed_event
from planwave.executor.driver.execution import Execution
from planwave.executor.driver.publisher import Subscription
from planwave.executor.driver.revisions import plan_changed
from planwave.graph.model import Graph, Json
from planwave.planner.cost_estimate import require_default_model
from planwave.planner.plan_check import require_for_author
from planwave.principals import LIBRARY
from planwave.service.executions.answers import request_answered
from planwave.service.executions.command_rules import Answer, Cancel, Replan, Revise
from planwave.service.executions.fork import ForkRequest, NodeChanges, failed_nodes
from planwave.service.executions.session import ExecutionSession
from planwave.service.library import proposals
from planwave.service.library.arguments import (
    NOT_GIVEN,
    ProposalArguments,
    ReplanArguments,
    answer_of,
    check_fork_arguments,
    check_replan_arguments,
    check_text,
    known_arguments,
)
from planwave.service.library.commands import RunCommands
from planwave.service.library.environment import (
    OnEvents,
    RunDependencies,
    RunEnvironment,
    observe_run,
)
from planwave.service.library.event_loops import require_no_loop, run_now, running_loop
from planwave.service.library.graphs import GraphSource, build_graph, uses_services
from planwave.service.library.results import RunResult, result_of
from planwave.service.library.sources import (
    LoadedRun,
    RunJournal,
    create_fork,
    first_graph,
    fork_request,
)
from planwave.service.library.stores import RunStore, open_store
from planwave.source_locations import cause_of, hides_inner_frames, shortened

if TYPE_CHECKING:
    from planwave.nodes.services import PlanEvent

_STOPPED: Final = "the caller stopped listening"

Loader = Callable[[RunStore], Awaitable[LoadedRun]]
"""Loads what a run executes, from its open store."""

_Subscribed = asyncio.Future[tuple[Sequence[Event], Subscription]]
"""The events that are not stored yet, and all later ones; set once the run can be driven."""


class Run:
    """One run: await it for its result, iterate over it for its events, or both.

    It is awaitable, not a coroutine: ``asyncio.ensure_future(run)`` makes a task of it. The events can
    be read once, from the start; the result can be awaited any number of times. The
    run continues while events are being read and does not wait for a slow reader. Leaving the
    iteration early cancels it, and so does cancelling a task that awaits it.

    A run that waits for an answer is ``paused`` and ends the iteration. [answer][planwave.Run.answer] it, then await
    it or iterate over it again. A run that only waits for a time continues by itself.

    Args:
        environment: The store and settings that it shares with its retries and forks.
        source: The execution, or how to load it from the store.
        is_due: Whether awaiting it drives it; otherwise only [resume][planwave.Run.resume] and commands do.
    """

    def __init__(
        self, environment: RunEnvironment, source: LoadedRun | Loader, *, is_due: bool = True
    ) -> None:
        self.environment, self._source = environment, source
        self._commands = RunCommands(is_due=is_due)
        self._dependencies: RunDependencies | None = None
        self._execution: Execution | None = None
        self._task: asyncio.Task[None] | None = None
        self._starting = threading.Lock()

    if not TYPE_CHECKING:  # a type checker knows what is missing

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or name not in {*dir(RunResult), *RunResult.__annotations__}:
                raise AttributeError(f"a run has no {name!r}")
            raise AttributeError(
                f"{name!r} is of the result: (await run).{name}, run.wait().{name}"
            )

        def __iter__(self) -> Any:
            raise TypeError("iterate over a run with 'async for'; run.wait() returns its result")

    def __repr__(self) -> str:
        if not isinstance(self._source, LoadedRun):
            return "<Run: a fork that has not begun>"
        return f"<Run {self.execution_id}>"

    def __del__(self) -> None:
        is_idle = self.__dict__.get("_task", self) is None and self._has_work
        if is_idle and not self._commands.of(Cancel):
            warnings.warn(
                f"{self!r} was never awaited, so it did not begin; await it or iterate over it",
                RuntimeWarning,
                stacklevel=2,
                source=self,
            )

    # -- commands ----------------------------------------------------------------------------------

    def cancel(self, cause: str = "cancelled by the caller") -> None:
        """Cancel the run, from any thread; it ends with the status ``cancelled``."""
        if (execution := self._running_execution) is not None:
            self._send(partial(execution.cancel, cause))
        elif self._task is None or not self._is_over:
            self._commands.pending.append(Cancel(cause))

    @overload
    def answer(self, request_id: str, answer: Json) -> Run: ...
    @overload
    def answer(
        self,
        request_id: str,
        *,
        decision: str,
        value: Json = ...,
        note: str = ...,
        form: Mapping[str, Json] = ...,
    ) -> Run: ...
    @hides_inner_frames
    @known_arguments
    def answer(
        self,
        request_id: str,
        answer: Json = NOT_GIVEN,
        *,
        decision: str = NOT_GIVEN,
        value: Json = NOT_GIVEN,
        note: str = NOT_GIVEN,
        form: Mapping[str, Json] = NOT_GIVEN,
    ) -> Run:
        """Answer an open request, from any thread; the run continues when it is awaited or iterated over again.

        Args:
            request_id: The id in ``RunResult.requests``, or in the event ``node.waiting``.
            answer: Any JSON value, for a request without actions.
            decision: The chosen action, for a request with actions.
            value: What the step goes on with, where the request shows a value that may be changed.
            note: A text for the steps after it.
            form: The values of the form that the request shows.

        Raises:
            InvalidAnswer: It is not a valid answer to this request.
            NotFound, Conflict, Gone: The run has no such request, or it is closed. For a stored run
                that is not loaded yet, all of these are raised when it is awaited.
            TypeError: There is no answer, or one in both ways.
        """
        fields = {"decision": decision, "value": value, "note": note, "form": form}
        answer = answer_of(answer, fields)
        check_text("the id of a request", request_id)
        if any(each.request_id == request_id for each in self._commands.of(Answer)):
            raise request_answered(request_id)
        command = Answer(request_id, answer, LIBRARY.as_json())
        if isinstance(self._source, LoadedRun):
            state = self._source.state()
            command.check(state)
            if (execution := self._running_execution) is not None:
                self._send(partial(command.send, execution, state))
                return self
        self._commands.pending.append(command)
        return self

    @hides_inner_frames
    @known_arguments
    def revise(self, graph: GraphSource | proposals.Proposal, *, note: str = "") -> Run:
        """Let this run go on with a changed graph, and return it; call it from any thread.

        What has begun stays as it is, with the edges into it; all else may be changed, added and dropped,
        and so may steps that failed. A run that rests continues when it is awaited or iterated over again.
        One whose plan needed an approval stays ``paused``, with a request about the change: ``answer`` decides.

        Args:
            graph: The graph that it becomes, or what [replan][planwave.Run.replan] proposed; nodes are the
                same by their ids.
            note: Why; kept with the change.

        Raises:
            GraphInvalid: The graph has errors, or what has begun would change; also when it is awaited.
            InputError: ``invalid-inputs``: the graph needs what the run was not given.
            Conflict, PreconditionFailed: The run has ended or not begun, or was changed meanwhile.
        """
        check_text("a note", note)
        parts = self._loaded, self.environment.catalogue, self._dependencies
        return self._give(proposals.revise_command(graph, note, *parts, self._commands))

    def _give(self, command: Revise | Replan) -> Run:
        """Send a command to the driver of this run, or keep it until the run is driven."""
        if (execution := self._running_execution) is None:
            self._commands.pending.append(command)
            return self
        proposals.require_services(command, self._dependencies, self.environment.catalogue)
        self._send(partial(self._commands.send, command, execution, self._loaded.state()))
        return self

    @overload
    async def replan(self, words: str | None = ..., **more: Unpack[ReplanArguments]) -> Run: ...
    @overload
    async def replan(
        self, words: str | None = ..., *, dry_run: Literal[True], **more: Unpack[ProposalArguments]
    ) -> proposals.Proposal: ...
    @hides_inner_frames
    @known_arguments
    async def replan(
        self,
        words: str | None = None,
        *,
        provider: str | None = None,
        model: str | None = None,
        dry_run: bool = False,
        on_progress: Callable[[PlanEvent], None] | None = None,
    ) -> Run | proposals.Proposal:
        """Have a model change this run, which starts nothing meanwhile, and return it; or propose a change.

        ``plan.revised`` or ``plan.refused`` is what comes of it. A change that reaches something new leaves the run
        ``paused``: ``answer`` decides. A run that rests continues when it is awaited again.

        Args:
            words: What is to be different; None for what replaces the steps that failed.
            provider: See [plan][planwave.plan].
            model: See [plan][planwave.plan].
            dry_run: Return what a model proposes: [revise][planwave.Run.revise] takes it, and of a run that has ended
                ``run.fork(graph=proposal.graph)``.
            on_progress: See [plan][planwave.plan]; with ``dry_run`` only.

        Raises:
            InputError, Conflict, PlanInvalid, ProviderError, TypeError: See ``revise``, and ``planwave.plan``.
        """
        check_replan_arguments(words, provider, model, on_progress, dry_run=dry_run)
        state, chosen = self._loaded.state(), (provider, model)
        if dry_run:
            return await proposals.propose(self.environment, state, words, chosen, on_progress)
        return self._give(proposals.replan_command(words, chosen, state, self._commands))

    @overload
    def replan_sync(self, words: str | None = ..., **more: Unpack[ReplanArguments]) -> Run: ...
    @overload
    def replan_sync(
        self, words: str | None = ..., *, dry_run: Literal[True], **more: Unpack[ProposalArguments]
    ) -> proposals.Proposal: ...
    def replan_sync(self, words: str | None = None, **arguments: Any) -> Run | proposals.Proposal:
        """Do what [replan][planwave.Run.replan] does, from code without an event loop."""
        require_no_loop("run.replan_sync", "run.replan(…)")
        return asyncio.run(cast("Any", self.replan)(words, **arguments))

    def resume(self) -> Run:
        """Continue a run that was interrupted or paused; await it or iterate over it.

        If all its open requests have a time limit, it waits for these instead of ending as ``paused``.
        A run that is awaited just now continues anyway, and may end before it could be resumed.

        Raises:
            Conflict: When it is awaited: it has ended, or waits for an answer without a time limit.
        """
        self._commands.resume(may_end_before=self._running_execution is not None)
        return self

    def retry(self) -> Run:
        """Return a new run of the failed, blocked and cancelled nodes; other results are reused.

        Raises:
            Conflict: When it is awaited: ``nothing-to-retry``, or this run has not ended.
        """
        return self._fork(lambda state: ForkRequest(failed_nodes(state), is_retry=True))

    @known_arguments
    def fork(
        self,
        *,
        set: Mapping[str, Json] | None = None,
        changes: NodeChanges | None = None,
        rerun: Sequence[str] = (),
        graph: GraphSource | None = None,
    ) -> Run:
        """Return a new run of the changed graph that reuses every result that is still valid.

        Args:
            set: ``{"node.field": value}``: new values in the data of nodes; ``node.description`` is
                the node's task.
            changes: ``{node_id: {"description"?, "data"?: merge patch} | {"outputs": {…}}}``.
            rerun: Ids of nodes that run in any case, with all nested runs.
            graph: The graph to run in place of this run's; nodes are the same by their ids.

        Raises:
            GraphInvalid, InputError, Conflict: When it is awaited: the changes are invalid, or this
                run has not ended and is not paused. At once: ``graph`` has errors.
        """
        check_fork_arguments(set, changes, rerun)
        new = None if graph is None else build_graph(graph, self.environment.catalogue)
        return self._fork(partial(fork_request, set or {}, changes or {}, rerun, new))

    def _fork(self, request: Callable[[ExecutionState], ForkRequest]) -> Run:
        async def load(store: RunStore) -> LoadedRun:
            parent = await self._load(store)
            return await create_fork(store, self.environment.catalogue, parent, request)

        return Run(self.environment, load)

    # -- results -----------------------------------------------------------------------------------

    @hides_inner_frames
    def wait(self) -> RunResult:
        """Run to the end, or until an answer is needed, from code without an event loop.

        Raises:
            ExecutionFailed: The run failed, unless it was made with ``check=False``.
            RuntimeError: Called inside a running event loop: await the run there.
        """
        require_no_loop("run.wait()", "run")
        return asyncio.run(self._finish())

    def __await__(self) -> Generator[Any, None, RunResult]:
        return self._finish().__await__()

    async def _finish(self) -> RunResult:
        try:
            await asyncio.shield(self._start())
            while self._has_work:  # answered while its driver was ending
                await asyncio.shield(self._start())
        except asyncio.CancelledError:
            await self._stop("the caller was cancelled")
            raise
        except PlanwaveError as error:
            raise shortened(error) from cause_of(error)
        result = self.result()
        return result.raise_for_status() if self.environment.check else result

    def result(self) -> RunResult:
        """Return the result so far, without running anything; the whole result once the run has ended.

        Of a run that another process drives, it is what is stored now.

        Raises:
            RuntimeError: The run has not started yet.
            NotFound, Conflict, StoreError: It cannot be read.
        """
        if self._execution is None and (self._task is None or self._task.done()):
            run_now(self._read)
        if self._task is None and not self._loaded.is_stored:
            raise RuntimeError("the run has not started yet; await it, or call run.wait()")
        return result_of(self, self._loaded, self._execution)

    @property
    def execution_id(self) -> str:
        """The id of its execution; see [graph][planwave.Run.graph] for the errors."""
        return self._loaded.record.execution_id

    @property
    def graph(self) -> Graph:
        """The graph that is run.

        Raises:
            NotFound, Conflict, StoreError: It is a fork, and its parent cannot be read.
            GraphInvalid, InputError: It is a fork, and its changes are invalid.
        """
        return self._loaded.spec.graph

    @property
    def _loaded(self) -> LoadedRun:
        if not isinstance(self._source, LoadedRun):
            return run_now(self._read)
        return self._source

    async def _read(self) -> LoadedRun:
        """Read what is stored of the run, without owning its directory."""
        if isinstance(self._source, LoadedRun) and not self._source.is_stored:
            return self._source
        async with open_store(self.environment.store, read_only=True) as store:
            loaded = await self._load(store)
            if loaded.is_stored:
                await loaded.catch_up(store)
                await loaded.read_calls(store)
            return loaded

    # -- events ------------------------------------------------------------------------------------

    async def __aiter__(self) -> AsyncGenerator[TypedEvent]:
        """Yield every event as it happens, up to the terminal event or a pause.

        The type checker knows the ``data`` of an event by its ``type``. What the engine stores of nested
        runs and once values has types of its own: ``nested_run.opened``, ``once.stored``.

        Raises:
            RuntimeError: The run has begun already, so its first events are gone.
        """
        if self._task is not None and not (self._task.done() and self._has_work):
            raise RuntimeError(
                "the events of a run can be read once, from the start, and this one has begun; "
                "call planwave.run(…) again for a new run, or keep its events with store=…"
            )
        try:
            is_first = True
            while is_first or self._has_work:
                is_first = False
                async for event in self._read_events():
                    yield typed_event(event)
        finally:
            await self._stop(_STOPPED)

    async def _read_events(self) -> AsyncGenerator[Event]:
        subscribed: _Subscribed = asyncio.get_running_loop().create_future()
        driver = self._start(subscribed)
        await asyncio.wait([driver, subscribed], return_when=asyncio.FIRST_COMPLETED)
        if subscribed.done():
            earlier, events = subscribed.result()
            driver.add_done_callback(lambda _: events.close())
            async for batch in events.batches():
                for event in (*earlier, *batch):  # stored together
                    yield event
                earlier = ()
        await driver

    # -- driving -----------------------------------------------------------------------------------

    @property
    def _running_execution(self) -> Execution | None:
        execution = self._execution
        return None if execution is None or execution.has_ended else execution

    @property
    def _is_over(self) -> bool:
        return isinstance(self._source, LoadedRun) and self._source.state().is_over

    @property
    def _has_work(self) -> bool:
        return self._commands.have_work(lambda: self._is_over)

    def _send(self, command: Callable[[], object]) -> None:
        """Call a command of the running execution in the thread of its event loop."""
        loop = None if self._task is None else self._task.get_loop()
        if loop is None or loop is running_loop():
            command()
        else:
            loop.call_soon_threadsafe(command)

    def _start(self, subscribed: _Subscribed | None = None) -> asyncio.Task[None]:
        """Return the task that drives the run; start it if there is something to drive.

        Raises:
            RuntimeError: It runs in another event loop.
        """
        loop = asyncio.get_running_loop()
        with self._starting:
            if self._task is None or (self._task.done() and self._has_work):
                # Not a TaskGroup: leaving the loop early raises GeneratorExit in the reader, and a
                # group would wrap it in an ExceptionGroup.
                self._task = loop.create_task(self._drive(subscribed))
            elif not self._task.done() and self._task.get_loop() is not loop:
                raise RuntimeError(
                    "another thread or event loop awaits the run already, so it cannot be awaited "
                    "here; answer() and cancel() can be called from any thread"
                )
            return self._task

    async def _stop(self, cause: str) -> None:
        """Cancel the run, and wait until its end is published and durable."""
        driver = self._task
        if driver is None:
            return
        if not driver.done():
            if self._execution is None or not self._execution.has_ended:
                self.cancel(cause)
            await asyncio.wait([driver])
        if not driver.cancelled():
            driver.exception()  # no other caller retrieves it, and asyncio would log it as lost

    async def _drive(self, subscribed: _Subscribed | None) -> None:
        environment, self._execution = self.environment, None
        async with AsyncExitStack() as resources:
            opening = open_store(environment.store, read_only=not self._has_work)
            store = await resources.enter_async_context(opening)
            loaded = await self._load(store)
            if loaded.is_stored and loaded.epoch is None:
                await loaded.catch_up(store)
            dependencies = self._dependencies = RunDependencies(environment, store)
            may_have_calls = loaded.is_stored
            if self._has_work:
                resources.push_async_callback(environment.renderer.close)
                session = await self._open_session(dependencies, loaded, resources)
                observed = observe_run(environment, loaded.state(), resources)
                execution = await self._prepare(session, store, loaded, observed)
                with self._rejected_once():
                    self._commands.check(self._loaded.state())
                self._commands.send_pending(execution, self._loaded.state())
                if subscribed is not None:
                    earlier = () if loaded.is_stored else tuple(loaded.events)
                    subscribed.set_result((earlier, execution.events()))
                self._execution = execution
                await session.drive()
            if may_have_calls or dependencies.services is not None:
                await loaded.read_calls(store)
        with self._rejected_once():
            self._commands.raise_refused(loaded.state)

    @contextmanager
    def _rejected_once(self) -> Generator[None]:
        """Raise the error of a rejected command once; the run can be awaited again then."""
        try:
            yield
        except PlanwaveError:
            self._commands.clear()
            self._task = None
            raise

    async def _load(self, store: RunStore) -> LoadedRun:
        if not isinstance(self._source, LoadedRun):
            self._source = await self._source(store)
        return self._source

    async def _open_session(
        self, dependencies: RunDependencies, loaded: LoadedRun, resources: AsyncExitStack
    ) -> ExecutionSession:
        """Return the session of the run, with the services that it needs; it is claimed by then."""
        if loaded.is_stored and loaded.epoch is None:
            await loaded.catch_up(dependencies.store)
        spec, environment = loaded.spec, self.environment
        session = ExecutionSession(
            dependencies,
            self.execution_id,
            spec=spec,
            program=loaded.program,
            epoch=loaded.epoch,
            is_recovery=loaded.is_stored,
        )
        with self._rejected_once():
            loaded.program = session.bind()
        programs = [loaded.program, *self._commands.changed_programs(environment.catalogue)]
        may_replan = spec.options.max_replans or self._commands.needs_planner(loaded.state())
        needs_planner = spec.written_by or may_replan
        if dependencies.services is None and (needs_planner or any(map(uses_services, programs))):
            opening = dependencies.open_services(spec.goal)
            providers = (await resources.enter_async_context(opening)).providers
            with self._rejected_once():
                for each in programs:
                    require_default_model(each.graph, environment.catalogue, providers)
        if spec.written_by and len(loaded.events) == 1:
            first = await first_graph(dependencies.store, spec.parent)
            with self._rejected_once():
                require_for_author(environment.catalogue, dependencies.planner, spec.graph, first)
        if loaded.is_stored:
            await self._take_up(session, dependencies.store, loaded)
        loaded.epoch = session.epoch
        return session

    async def _take_up(self, session: ExecutionSession, store: RunStore, loaded: LoadedRun) -> None:
        """Go on from the stored events; take the execution over from another run that owned it last.

        Raises:
            Conflict, Gone, NotFound, InvalidAnswer: There is nothing to do then; its owner keeps it.
        """
        if loaded.epoch is None:
            await loaded.catch_up(store)
            with self._rejected_once():
                self._commands.check(loaded.state())
            await session.claim()
            await loaded.catch_up(store)
            if loaded.program is None:
                with self._rejected_once():
                    raise plan_changed()
        session.is_recovery = loaded.state().status == "executing"
        await session.take_up(loaded.events)

    async def _prepare(
        self, session: ExecutionSession, store: RunStore, loaded: LoadedRun, observed: OnEvents
    ) -> Execution:
        return await session.prepare(
            RunJournal(store, loaded),
            parks="always",
            waits_for=self._commands.waits_for,
            approval=loaded.approval_request(session.hash_to_approve()),
            causes=loaded.causes,
            on_events=observed,
        )
