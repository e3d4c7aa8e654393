"""The tasks of attempts: each calls its node and posts what came of it; cancelled ones are awaited."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from types import CoroutineType
from typing import Any, Final, cast

from planwave.errors import NodeError, PlanwaveError
from planwave.executor.messages import (
    AttemptFailed,
    AttemptSucceeded,
    AttemptSuspended,
    ResultReused,
)
from planwave.executor.node_api.context import Idle, Loading, NodeEvents, NodeTaskGroup, OwnWork
from planwave.executor.node_api.host import NodeHost
from planwave.executor.node_api.results import (
    error_without_secrets,
    read_result,
    validate_result,
    without_secrets,
)
from planwave.executor.reuse.result_key import LinkFailed, dependencies
from planwave.executor.reuse.reuse import Reuse, result_to_reuse
from planwave.executor.state import DONE, Attempt, current_attempt
from planwave.executor.stored_runs import UNKNOWN_DEPENDENCIES
from planwave.graph.inputs import Inputs
from planwave.graph.model import Json
from planwave.graph.protocols import ExecutionResult, FlowContext, Suspension, unlimited
from planwave.source_locations import traceback_of

_log = logging.getLogger(__name__)
GRACE_S: Final = 1.5
"""How long a finished execution waits for cancelled node tasks to clean up. A cancel must take effect
within two seconds, and what follows from it has to be stored in that time too."""
_abandoned: Final[set[asyncio.Task[None]]] = set()
"""Tasks that ignored cancellation; kept only so that they are not collected while they run."""
_NAMED: Final = "node of "
"""Begins the name of the task of an attempt; the id of the execution and the path of the node follow."""


def current_node(loop: asyncio.AbstractEventLoop) -> tuple[str, str] | None:
    """Return the path and execution id of the node whose task a loop runs at the moment, or None.

    Any thread may call this.
    """
    task = asyncio.current_task(loop)
    name = "" if task is None else task.get_name()
    if not name.startswith(_NAMED):
        return None
    execution_id, _, path = name.removeprefix(_NAMED).partition(" ")
    return path, execution_id


class AttemptTasks:
    """The tasks of one execution's attempts.

    Args:
        host: The services of the nodes; its mailbox gets the results.
        reuse: For a fork: the results to reuse from its parent execution.
        publish_delta: Publishes a piece of streamed text at once.
    """

    def __init__(
        self,
        host: NodeHost,
        reuse: Reuse | None,
        publish_delta: Callable[[Attempt, Json], None],
    ) -> None:
        self._host, self._reuse = host, reuse
        self._events = NodeEvents(host.execution_id, host.mailbox, host.redact, publish_delta)
        self._running: dict[Attempt, asyncio.Task[None]] = {}
        self._cancelled: set[asyncio.Task[None]] = set()
        self._beside: set[asyncio.Task[None]] = set()

    def start(self, attempt: Attempt) -> None:
        """Start the task of an attempt."""
        # Not a TaskGroup: an attempt that ignores cancellation must not hold up the end of the run,
        # and one failing node must not cancel the others. ``wait_cancelled`` waits for every task.
        loop = asyncio.get_running_loop()
        name = f"{_NAMED}{self._host.execution_id} {attempt.path}"
        attempt.task = self._running[attempt] = loop.create_task(self._run(attempt), name=name)

    def cancel(self, attempt: Attempt) -> None:
        """Cancel the task of an attempt that has ended without it, or whose execution stops."""
        task = self._running.pop(attempt, None)
        if task is not None and not task.done():
            task.cancel()
            self._cancelled.add(task)
            task.add_done_callback(self._cancelled.discard)

    def call_after(self, attempts: Iterable[Attempt], call: Callable[[], None]) -> None:
        """Call a function once the tasks of attempts have ended, and those that clean up as they were cancelled."""
        tasks = {self._running[each] for each in attempts if each in self._running}
        tasks |= self._cancelled

        def ended(task: asyncio.Task[None]) -> None:
            tasks.discard(task)
            if not tasks:
                call()

        for task in [*tasks]:
            task.add_done_callback(ended)
        if not tasks:
            call()

    def start_beside(self, work: Coroutine[object, object, None]) -> None:
        """Start a task that is of no attempt; it is cancelled at the end of the execution."""
        task = asyncio.get_running_loop().create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def wait_cancelled(self) -> None:
        """Cancel all tasks that still run and wait for them, but no longer than the grace time."""
        for task in self._beside:
            task.cancel()
            self._cancelled.add(task)
        for attempt in list(self._running):
            self.cancel(attempt)
        if self._cancelled:
            _, stubborn = await asyncio.wait(self._cancelled, timeout=GRACE_S)
            for task in stubborn:
                _abandoned.add(task)
                task.add_done_callback(_abandoned.discard)

    # -- in the task -------------------------------------------------------------------------------

    async def _run(self, attempt: Attempt) -> None:
        """Call the node; the one place where any exception becomes a message."""
        post = self._host.mailbox.post
        current_attempt.set(attempt)
        try:
            # After an answer the node resumes with the answer, whatever the parent's result was.
            if self._reuse is not None and not attempt.was_started:
                reusable = await result_to_reuse(self._reuse, attempt, self._host)
                if reusable is not None:
                    return post(ResultReused(attempt, reusable.outputs, reusable.event_data))
            result = await self._result_of(attempt)
        except asyncio.CancelledError:
            if attempt.phase is DONE:
                raise
            post(AttemptFailed(attempt, NodeError("the node cancelled itself")))
        except BaseException as error:  # whatever a node raises is its failure
            task = self._running.get(attempt)
            if task is not None and asyncio.current_task(task.get_loop()) is not task:
                raise  # closed after its event loop ended: the mailbox is not read any more
            redact = self._host.redact
            trace = traceback_of(error, lambda text: str(redact(text)))
            post(AttemptFailed(attempt, error_without_secrets(error, redact), error, trace))
        else:
            if isinstance(result, Suspension):
                post(AttemptSuspended(attempt, result))
            else:
                post(AttemptSucceeded(attempt, result))
        finally:
            self._running.pop(attempt, None)

    async def _result_of(self, attempt: Attempt) -> ExecutionResult | Suspension:
        graph_run, node = attempt.graph_run, attempt.node
        step, values = graph_run.program.steps[node], graph_run.values
        inputs = Inputs(values.arrivals_at(node))
        data = step.node.data
        if step.template is not None:
            data = await self._host.resolve_data(values, node, inputs)
        if node in graph_run.program.dependent:
            depends_on = await self._dependencies(attempt)
            if depends_on is not None:
                attempt.add_dependencies(depends_on)
        result = validate_result(
            step, await self._call(attempt, data, inputs), self._events.add, attempt
        )
        return without_secrets(result, self._host.redact)

    async def _dependencies(self, attempt: Attempt) -> str | None:
        """Return the hash of what the result depends on, before the node begins: it may change then."""
        try:
            return await dependencies(self._host, attempt)
        except LinkFailed as failure:
            raise failure.error from None
        except PlanwaveError:
            pass  # what is wrong, the node itself reports
        except Exception:  # noqa: BLE001 - a type may raise anything; the node can run all the same
            _log.exception("no fork reuses what %r gives: its dependencies fail", attempt.path)
        return UNKNOWN_DEPENDENCIES

    def _call(
        self, attempt: Attempt, data: Mapping[str, Json], inputs: Inputs
    ) -> Awaitable[ExecutionResult | Suspension]:
        """Call the node's ``execute``, or its ``resume`` after an answer."""
        graph_run, host = attempt.graph_run, self._host
        step = graph_run.program.steps[attempt.node]
        context = FlowContext(
            step.node.id, host.execution_id, attempt.path, attempt.number, host.chat_id,
            host.state, graph_run.runtime, host.services, attempt.answer_count,
            unlimited if attempt.limit_s is None else partial(_time_left_s, attempt),
            self._own_work, partial(self._events.emit, attempt, asyncio.get_running_loop()),
            partial(self._events.record, attempt), self._task_group,
            host.budget, idle=self._idle, loading=self._loading,
            may_replan=host.may_replan and graph_run.nested_run is None,
        )  # fmt: skip
        returned: Awaitable[ExecutionResult | Suspension] | AsyncIterator[Any]
        if attempt.resume_args is not None:
            returned = step.implementation.resume(data, inputs, context, *attempt.resume_args)
        else:
            returned = step.implementation.execute(data, inputs, context)
        if type(returned) is CoroutineType:  # most nodes: no events to read
            return cast("Awaitable[ExecutionResult | Suspension]", returned)
        return read_result(returned, self._events.add, attempt)

    def _task_group(self) -> NodeTaskGroup:
        """Return a task group of the current node."""
        return NodeTaskGroup(current_attempt.get(), self._host.mailbox)

    def _idle(self) -> Idle:
        """Return a context manager around a wait of the current node for what comes after a while."""
        return Idle(current_attempt.get(), self._host.mailbox)

    def _loading(self) -> Loading:
        """Return a context manager around what the current node's process loads once."""
        return Loading(current_attempt.get(), self._host.mailbox)

    def _own_work(self) -> OwnWork:
        """Return a context manager that marks a call of the current node as own work."""
        return OwnWork(current_attempt.get(), self._host.mailbox)


def _time_left_s(attempt: Attempt) -> float:
    limit_s = math.inf if attempt.limit_s is None else attempt.limit_s
    return max(limit_s - attempt.own_time(asyncio.get_running_loop().time()), 0.0)
