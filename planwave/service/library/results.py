"""Results of runs: computed from their events when they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar, cast, overload

from planwave.errors import NESTED_FAILED, ExecutionFailed
from planwave.events import Event, ExecutionState, fold
from planwave.events.node_state import OpenRequest
from planwave.events.outcome import outcome_of
from planwave.events.usage import UsageTotal
from planwave.executor.driver.run_state import MAX_CAUSES
from planwave.graph.builder import Endpoint, NodeRef
from planwave.graph.model import DataValue, Graph, Json
from planwave.graph.outputs import outputs_from_json
from planwave.graph.result import main_output, without_error
from planwave.graph.suggestions import closest_match
from planwave.service.executions.session import is_driven_here
from planwave.service.library.sources import LoadedRun
from planwave.service.library.stores import is_owned_elsewhere
from planwave.source_locations import trimmed
from planwave.storage.documents import build_document
from planwave.storage.records import is_interrupted

if TYPE_CHECKING:
    from planwave.executor.driver.execution import Execution
    from planwave.service.library.runs import Run
    from planwave.shapes.executions import DocumentResponse


T = TypeVar("T")

_FAILURES_SHOWN: Final = 20


class Missing(NamedTuple):
    """A last node that should have delivered a result and did not.

    Attributes:
        path: Its id.
        name: Its name.
        status: ``failed``, ``blocked`` or ``cancelled``; ``pending`` if the run ended before it.
        cause: The path of the node that failed: its own, of the node that blocked it, or of one inside of
            these; None if something else ended the run.
        code: The stable code of that failure.
        message: That failure in one sentence.
        hint: How to correct it, or None.
    """

    path: str
    name: str
    status: str
    cause: str | None
    code: str
    message: str
    hint: str | None


class Failure(NamedTuple):
    """A node that failed.

    Attributes:
        path: Its id; ``loop[2]/summarise`` for a node of a nested graph.
        code: The stable code of the error.
        message: The error in one sentence.
        hint: How to correct it, or None.
        attempt: The number of the last attempt.
        handled: Whether the run continued: the policy of the node handled the failure, or the node
            around a nested node completed, such as a loop that skips failed items.
    """

    path: str
    code: str
    message: str
    hint: str | None
    attempt: int
    handled: bool


@dataclass(frozen=True)
class RunResult:
    """How a run ended, or how far it is.

    Attributes:
        execution_id: Its id.
        status: ``completed``, ``failed`` or ``cancelled``; ``paused`` if it waits for an answer
            ([requests][planwave.RunResult.requests]) or was paused; ``executing`` while it runs.
        outputs: The results of the nodes: ``{node_id: {handle: DataValue}}``.
        error: ``{"code", "message", "hint"?}`` of a failed run, else None.
        interrupted: Whether it was cut off: its status says that it runs, and no live process runs it.
            ``run.resume()`` continues it.
        run: The run, to continue it, or to retry or fork it.
    """

    execution_id: str
    status: str
    outputs: Mapping[str, Mapping[str, DataValue]]
    error: Mapping[str, Any] | None
    interrupted: bool
    run: Run = field(repr=False, compare=False)
    _loaded: LoadedRun = field(repr=False, compare=False)
    _events: Sequence[Event] = field(repr=False, compare=False)

    @overload
    def __getitem__(self, node: NodeRef[T]) -> T: ...
    @overload
    def __getitem__(self, node: str | Endpoint) -> Json: ...
    def __getitem__(self, node: str | Endpoint) -> Any:
        """Return the result of a node.

        Args:
            node: What ``GraphBuilder`` returned for it: the result as the node's own type, also for a
                run that was opened again. Its id, or one handle of it: the JSON value.

        Raises:
            KeyError: The node has no result, or there is none of this id.
            NodeError: ``type-mismatch``: what is stored is not of the node's type.
        """
        node_id, handle = (node.id, node.handle) if isinstance(node, Endpoint) else (node, None)
        outputs = self.outputs.get(node_id, {})
        if handle is None:
            outputs = without_error(outputs)
        if not outputs or (handle is not None and handle not in outputs):
            raise KeyError(self._missing_result(node_id, handle))
        value = (main_output(outputs) if handle is None else outputs[handle]).value
        reader = cast("NodeRef[Any]", node).result_type if isinstance(node, NodeRef) else None
        return value if reader is None else reader.read(value, f"the result of {node_id!r}")

    def _missing_result(self, node_id: str, handle: str | None) -> str:
        state = self._state.nodes.get(node_id)
        if state is None:
            near = closest_match(node_id, [*self._state.nodes])
            return f"there is no node {node_id!r}" + (f"; did you mean {near!r}?" if near else "")
        what = (
            f"node {node_id!r}" if handle is None else f"the handle {handle!r} of node {node_id!r}"
        )
        return f"{what} has no result: the node is {state.status}"

    @property
    def output(self) -> Json:
        """The result as JSON: the value of the last node; of several an object by node id."""
        return self._state.result().value.value

    @cached_property
    def text(self) -> str:
        """The result as text: what the last nodes delivered, separated by blank lines.

        If the run failed without a result, the error in one line.
        """
        text = self._state.result().text
        if not text and self.error is not None:
            return f"{self.status}: {self.error['message']}"
        return text

    @cached_property
    def _state(self) -> ExecutionState:
        return fold(self._events)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The nodes that failed, in the order of the graph, nested nodes last."""
        return tuple(
            Failure(
                node.path,
                node.error["code"],
                node.error["message"],
                node.error.get("hint"),
                node.attempt,
                self._state.is_handled(node),
            )
            for node in self._state.nodes.values()
            if node.status == "failed" and node.error is not None
        )

    @property
    def outcome(self) -> Literal["partial"] | None:
        """``partial`` if the run failed and delivered results all the same, else None; see ``missing``."""
        return outcome_of(self._state)["outcome"]

    @property
    def missing(self) -> tuple[Missing, ...]:
        """The last nodes of a run with a partial outcome that have no result, each with the failure that is the reason."""
        return tuple(
            Missing(
                each["path"],
                each["name"],
                each["status"],
                each["cause"]["node"],
                each["cause"]["error"]["code"],
                each["cause"]["error"]["message"],
                each["cause"]["error"].get("hint"),
            )
            for each in outcome_of(self._state)["missing"]
        )

    @property
    def requests(self) -> tuple[OpenRequest, ...]:
        """The open requests, oldest first; answer them with [Run.answer][planwave.Run.answer]."""
        return tuple(self._state.requests.values())

    @property
    def usage(self) -> UsageTotal:
        """Model calls, tokens and cost."""
        return self._state.usage

    @cached_property
    def document(self) -> DocumentResponse:
        """The run as the JSON document that a service writes to ``{execution_id}.json``."""
        return build_document(self._events, self._loaded.record, self._loaded.calls)

    def raise_for_status(self) -> RunResult:
        """Return this result, unless the run failed.

        Raises:
            ExecutionFailed: The status is ``failed``; ``result`` is this result. Its ``__cause__`` is
                what the node raised, an ``ExceptionGroup`` for several nodes, the first 20; None for
                a run that failed in another process. The frames of these exceptions keep what the
                nodes had alive as long as this result, or the exception, is referred to.
        """
        if self.status != "failed":
            return self
        error = self.error or {}
        failed = _without_wrappers([each for each in self.failures if not each.handled])
        lines = [f"{each.path}: {each.message}" for each in failed[:_FAILURES_SHOWN]]
        if len(failed) > _FAILURES_SHOWN:
            lines.append(f"and {len(failed) - _FAILURES_SHOWN} more")
        message = "; ".join(lines) or str(error.get("message", "the execution failed"))
        failure = ExecutionFailed(
            message, hint=error.get("hint"), result=self, failures=self.failures
        )
        for each in failed[:_FAILURES_SHOWN]:
            if each.hint:
                failure.add_note(f"{each.path}: {each.hint}")  # a traceback shows it
        raise failure from self._cause(failed)

    def _cause(self, failed: Sequence[Failure]) -> BaseException | None:
        """Return what failed nodes raised in this process: one exception or a group; None if nothing."""
        causes = self._loaded.causes
        raised = [trimmed(causes[each.path]) for each in failed if each.path in causes]
        raised = raised[:MAX_CAUSES]
        if len(raised) < 2:
            return raised[0] if raised else None
        return BaseExceptionGroup(f"{len(raised)} steps failed", raised)


def _without_wrappers(failed: Sequence[Failure]) -> list[Failure]:
    """Return failures without those that only say that a node inside failed, which is there too."""
    paths = [each.path for each in failed]
    return [
        each
        for each in failed
        if each.code != NESTED_FAILED or not any(path.startswith(f"{each.path}[") for path in paths)
    ]


def result_of(run: Run, loaded: LoadedRun, execution: Execution | None) -> RunResult:
    """Return the result of a run so far.

    Args:
        run: The run.
        loaded: What is known of it.
        execution: Its driver, where this process drives it or has driven it to its rest.
    """
    execution_id = loaded.record.execution_id
    if execution is not None:
        status, outputs, error = execution.status, execution.outputs, execution.error
    else:
        state = loaded.state()
        status, error = state.status, state.error
        outputs = stored_outputs(state, loaded.spec.graph)
    is_owned = is_driven_here(execution_id) or is_owned_elsewhere(run.environment.store)
    interrupted = is_interrupted(status, is_owned=is_owned, was_accepted=loaded.record.queued)
    events = tuple(loaded.events)
    return RunResult(execution_id, status, outputs, error, interrupted, run, loaded, events)


def stored_outputs(state: ExecutionState, graph: Graph) -> dict[str, Mapping[str, DataValue]]:
    """Return the results of the nodes of a graph, from the state of its execution."""
    return {
        node.id: outputs_from_json(outputs)
        for node in graph.nodes
        if (outputs := state.nodes[node.id].outputs) is not None
    }
