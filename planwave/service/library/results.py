"""Results of runs: computed from their events when they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from planwave.errors import NESTED_FAILED, ExecutionFailed
from planwave.events import Event, ExecutionState, fold
from planwave.events.node_state import OpenRequest
from planwave.events.usage import UsageTotal
from planwave.executor.driver.run_state import MAX_CAUSES
from planwave.graph.model import DataValue, Graph
from planwave.graph.outputs import outputs_from_json
from planwave.service.library.sources import LoadedRun
from planwave.source_locations import trimmed
from planwave.storage.documents import build_document

if TYPE_CHECKING:
    from planwave.service.library.runs import Run
    from planwave.shapes.executions import DocumentResponse


_FAILURES_SHOWN: Final = 20


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
            (:attr:`requests`) or was paused; ``executing`` if its process ended before it did.
        outputs: The results of the nodes: ``{node_id: {handle: DataValue}}``.
        error: ``{"code", "message", "hint"?}`` of a failed run, else None.
        run: The run, to continue it, or to retry or fork it.
    """

    execution_id: str
    status: str
    outputs: Mapping[str, Mapping[str, DataValue]]
    error: Mapping[str, Any] | None
    run: Run = field(repr=False, compare=False)
    _loaded: LoadedRun = field(repr=False, compare=False)
    _events: Sequence[Event] = field(repr=False, compare=False)

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
    def requests(self) -> tuple[OpenRequest, ...]:
        """The open requests, oldest first; answer them with :meth:`Run.answer`."""
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


def stored_outputs(state: ExecutionState, graph: Graph) -> dict[str, Mapping[str, DataValue]]:
    """Return the results of the nodes of a graph, from the state of its execution."""
    return {
        node.id: outputs_from_json(outputs)
        for node in graph.nodes
        if (outputs := state.nodes[node.id].outputs) is not None
    }
