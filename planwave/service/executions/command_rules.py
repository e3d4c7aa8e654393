"""The commands for an execution, and when each is refused: one rule and one sentence for each.

The service sends them, and so does the Python library. A rule reads the state after the stored events.
What came in the meantime is for the driver to judge, which takes the commands one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from planwave.errors import Conflict, Gone, InputError, NotFound, PreconditionFailed
from planwave.events import ENDED_NODE, ENDED_STATUS, ExecutionState
from planwave.events.plan_changes import NO_GRAPH
from planwave.events.request_text import field_of, is_change_request
from planwave.events.types import REQUESTED, WAITING
from planwave.executor.driver.commands import not_paused
from planwave.executor.driver.execution import ALREADY_ENDED
from planwave.executor.driver.revisions import approval_open, change_requested, paused
from planwave.executor.recovery.history import is_paused_by_request
from planwave.graph.diagnostics import short_repr
from planwave.graph.editing.revision import graph_change, revision_findings
from planwave.graph.plan import graph_hash
from planwave.graph.reading.documents import read_graph
from planwave.graph.suggestions import closest_match
from planwave.service.executions.answers import (
    open_request,
    require_answer_size,
    validate_answer,
)
from planwave.service.executions.plan_approval import change_request
from planwave.service.queries.digest import deadline_of

if TYPE_CHECKING:
    import asyncio

    from planwave.events import Event
    from planwave.events.node_state import NodeState
    from planwave.events.plan_payloads import PlanRequestedData, PlanRevisedData
    from planwave.executor.driver.execution import Execution
    from planwave.graph.diagnostics import Diagnostic
    from planwave.graph.model import Graph, Json
    from planwave.graph.protocols import NodeTypes
    from planwave.principals import PrincipalDocument
    from planwave.shapes.common import GraphDocument
    from planwave.shapes.graphs import ForecastResponse
    from planwave.shapes.plans import AdditionDocument

NOTE_CHARS: Final = 1_000
"""The characters of the note of a change."""
_NODES_SHOWN: Final = 8
_FORK_HINT: Final = "fork it with the changed graph"


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop the execution.

    Attributes:
        cause: Why; kept with it.
    """

    cause: str

    def check(self, state: ExecutionState) -> None:
        """Raise if the execution cannot be cancelled.

        Raises:
            Conflict: ``already-ended``.
        """
        require_not_ended(state.execution_id, state.status)

    def send(self, execution: Execution, state: ExecutionState) -> None:
        """Give the command to the driver."""
        execution.cancel(self.cause)


@dataclass(frozen=True, slots=True)
class CancelNode:
    """Stop one node; what depends on it is blocked.

    Attributes:
        path: Which.
        cause: Why; kept with it.
    """

    path: str
    cause: str

    def check(self, state: ExecutionState) -> None:
        """Raise if the node cannot be cancelled.

        Raises:
            NotFound: There is no such node.
            Conflict: ``already-ended``; ``not-running``: so has the node.
        """
        require_not_ended(state.execution_id, state.status)
        node = state.nodes.get(self.path)
        if node is None:
            raise NotFound(
                f"execution {state.execution_id} has no node {short_repr(self.path)}",
                hint=_nodes_hint(self.path, state.nodes),
            )
        if node.status in ENDED_NODE:
            raise Conflict(
                f"node {self.path!r} is already {node.status}",
                code="not-running",
                hint="only a node that runs or waits can be cancelled",
            )
        _require_started(state)

    def send(self, execution: Execution, state: ExecutionState) -> asyncio.Future[None]:
        """Give the command to the driver; done once it is durable."""
        return execution.cancel_node(self.path, self.cause)


@dataclass(frozen=True, slots=True)
class Pause:
    """Start no further node; running nodes continue to their end."""

    def check(self, state: ExecutionState) -> None:
        """Raise if the execution cannot be paused.

        Raises:
            Conflict: ``already-ended``, ``not-started``.
        """
        require_not_ended(state.execution_id, state.status)
        _require_started(state)

    def send(self, execution: Execution, state: ExecutionState) -> asyncio.Future[None]:
        """Give the command to the driver; done once it is durable."""
        return execution.pause()


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on: after a pause, or where a process that ended left the execution.

    Attributes:
        waits: Whether who resumes it stays until the time limits of its requests are over. In a service
            these run in any case, so there is nothing to resume.
    """

    waits: bool = False

    def check(self, state: ExecutionState) -> None:
        """Raise if the execution cannot be resumed.

        Raises:
            Conflict: ``already-ended``, ``not-started``; ``not-paused``: only an answer helps.
        """
        require_not_ended(state.execution_id, state.status)
        _require_started(state)
        needed = [
            (each.request_id, each.request)
            for each in state.requests.values()
            if each.timeout_s is None or not self.waits
        ]
        if state.pause == WAITING and needed:
            raise not_paused(needed)

    def send(self, execution: Execution, state: ExecutionState) -> asyncio.Future[None] | None:
        """Give the command to the driver; done once it is durable. Nothing to give where it only waits."""
        return None if state.pause in (None, WAITING) and self.waits else execution.resume()


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer a request, once.

    Attributes:
        request_id: Which.
        answer: ``{decision, note?, value?, form?}`` for requests with actions.
        answered_by: Who answers.
        max_bytes: The size of the largest result of a node here; None for no limit.
    """

    request_id: str
    answer: Json
    answered_by: PrincipalDocument
    max_bytes: int | None = None

    def check(self, state: ExecutionState) -> None:
        """Raise if the request cannot be answered, or not so.

        Raises:
            NotFound: The execution never made such a request.
            Conflict: ``request-answered``.
            Gone: ``request-closed``: its time was over, or its node or execution was cancelled.
            InvalidAnswer: It is no answer to this request.
        """
        self._validated(state)

    def send(self, execution: Execution, state: ExecutionState) -> asyncio.Future[None]:
        """Give the command to the driver; done once it is durable.

        Raises:
            PlanwaveError: As ``check``; ``Conflict``, ``Gone``: something else came first.
        """
        return execution.answer(self.request_id, self._validated(state), self.answered_by)

    def _validated(self, state: ExecutionState) -> Json:
        """Return the answer in the form in which it is stored."""
        answer = validate_answer(open_request(state, self.request_id).request, self.answer)
        own: int | None = (state.options or {}).get("max_result_bytes")  # as it was then
        limits = [most for most in (own, self.max_bytes) if most is not None]
        if limits:
            require_answer_size(answer, min(limits))
        return answer


@dataclass(frozen=True, slots=True)
class Expire:
    """End the time of the requests whose deadline has come.

    Attributes:
        until: The latest deadline that has come.
    """

    until: datetime

    def check(self, state: ExecutionState) -> None:
        """Raise if no request is open any more.

        Raises:
            Conflict: ``already-ended``.
        """
        require_not_ended(state.execution_id, state.status)

    def send(self, execution: Execution, state: ExecutionState) -> None:
        """Give the command to the driver: each node resumes with its request's timeout answer."""
        for request in list(state.requests.values()):
            end = deadline_of(request)
            if end is not None and end <= self.until:
                execution.expire(request.request_id)


@dataclass(frozen=True, slots=True)
class Revise:
    """Change the graph that is run: what has begun stays, all else may change.

    Attributes:
        graph: The document of the graph that it becomes, without errors.
        expected: The hashes of which the graph that is run must have one; None for any.
        note: Why, in the words of who asked for it.
        revised_by: Who asked for it.
        additions: What it reaches that the graph that is run does not: for who approves it, where the plan needs that.
        forecast: What the nodes will take that have not begun: likewise.
        most: See ``require_changeable``.
    """

    graph: GraphDocument
    expected: Sequence[str] | None
    note: str
    revised_by: PrincipalDocument
    additions: Sequence[AdditionDocument] = ()
    forecast: ForecastResponse | None = None
    most: int | None = None

    def check(self, state: ExecutionState) -> None:
        """Raise if the graph of the execution cannot be changed now.

        Raises:
            Conflict: See ``require_changeable``.
            PreconditionFailed: ``plan-changed``: the graph has another hash.
        """
        require_changeable(state, self.most)
        require_version(state, self.expected)

    def send(self, execution: Execution, state: ExecutionState) -> asyncio.Future[None]:
        """Give the command to the driver; done once it, or the request for its approval, is durable.

        Raises:
            PlanwaveError: As ``check``.
        """
        self.check(state)
        before, _ = read_graph(state.graph or NO_GRAPH)
        graph, _ = read_graph(self.graph)
        data: PlanRevisedData = {
            "change": len(state.changes) + 1,
            "base": hash_of_graph(state),
            "hash": graph_hash(graph),
            "graph_change": graph_change(state.graph or NO_GRAPH, graph.document),
            "floor": 1,
            "by": "person",
            "revised_by": self.revised_by,
        }
        if self.note:
            data["note"] = self.note
        if state.approval is None:
            return execution.revise(graph, data)
        asked: PlanRequestedData = {"change": data["change"], "by": "person"}
        request = change_request(asked, data, (before, graph), self.additions, self.forecast)
        return execution.revise(graph, data, request)


@dataclass(frozen=True, slots=True)
class Replan:
    """Have a model write a change of the graph that is run; nothing starts until it is made or refused.

    Attributes:
        request: What is to be different, in words; None to replace the steps that failed.
        expected: The hashes of which the graph that is run must have one; None for any.
        requested_by: Who asks for it.
        provider: Who writes it; None for the default.
        model: See ``provider``.
        most: See ``require_changeable``.
    """

    request: str | None
    expected: Sequence[str] | None
    requested_by: PrincipalDocument
    provider: str | None = None
    model: str | None = None
    most: int | None = None

    def check(self, state: ExecutionState) -> None:
        """Raise if no model can write a change of the execution now.

        Raises:
            Conflict: See ``require_changeable``; ``paused``: a person has to resume it first; ``change-requested``,
                ``approval-open``: there is another change.
            PreconditionFailed: ``plan-changed``: the graph has another hash.
            InputError: ``nothing-failed``: there are no words, and no step has failed.
        """
        require_changeable(state, self.most)
        require_version(state, self.expected)
        if is_paused_by_request(state.pause):
            raise paused(state.execution_id)
        if state.changes.open is not None:
            asked = (i for i, each in state.requests.items() if is_change_request(each.request))
            request_id = next(asked, None)
            raise change_requested() if request_id is None else approval_open(request_id)
        if self.request is None:
            require_failed(state)

    def send(self, execution: Execution, state: ExecutionState) -> asyncio.Future[None]:
        """Give the command to the driver; done once it is durable that a model writes it.

        Raises:
            PlanwaveError: As ``check``.
        """
        self.check(state)
        asked: PlanRequestedData = {
            "change": len(state.changes) + 1,
            "by": "person",
            "requested_by": self.requested_by,
            "writer": {"provider": self.provider, "model": self.model},
        }
        if self.request is not None:
            asked["request"] = self.request
        return execution.request_change(asked)


Command: TypeAlias = Cancel | CancelNode | Pause | Resume | Answer | Expire | Revise | Replan
"""A command; ``check`` raises if the state does not allow it, ``send`` gives it to a driver."""


def has_done(event: Event, command: Command) -> bool:
    """Return whether an event is what a command brings about."""
    data = event.data
    match command:
        case Cancel(cause):
            return event.type == "execution.cancelled" and data.get("cause") == cause
        case CancelNode(path, cause):
            is_node = event.type == "node.cancelled" and event.path == path
            return is_node and data.get("cause") == cause
        case Pause():
            return event.type == "execution.paused" and data.get("kind") == REQUESTED
        case Resume():
            is_command = data.get("reason") != "recovery" and "request_id" not in data
            return event.type == "execution.resumed" and is_command
        case Answer(request_id, answer, answered_by):
            is_answer = "answer" in data and data.get("request_id") == request_id
            is_same = field_of(data.get("answer"), "decision") == field_of(answer, "decision")
            return is_answer and is_same and data.get("answered_by") == answered_by
        case Revise(graph, note=note, revised_by=revised_by):
            # The change itself, or the request for its approval.
            change = data.get("request") if event.type == "execution.paused" else data
            is_change = event.type == "plan.revised" or is_change_request(change)
            is_same = is_change and field_of(change, "revised_by") == revised_by
            said = field_of(change, "note") or field_of(change, "answer") or ""
            wanted = is_same and said == note and graph_hash(read_graph(graph)[0])
            return bool(wanted) and field_of(change, "hash") == wanted
        case Replan(request, requested_by=requested_by):
            is_request = event.type == "plan.requested" and "writer" in data
            is_same = data.get("request") == request
            return is_request and is_same and data.get("requested_by") == requested_by
        case Expire():
            return False


@contextmanager
def told_by_rule(command: Command, state: Callable[[], ExecutionState]) -> Generator[None]:
    """Tell what a driver refuses by the rule of the command, where the events by then say why.

    Args:
        command: The command.
        state: Returns the state of the execution by then.
    """
    try:
        yield
    except (Conflict, Gone) as error:
        if error.code != ALREADY_ENDED:
            command.check(state())
        raise


def require_not_ended(execution_id: str, status: str) -> None:
    """Raise if an execution has ended.

    Raises:
        Conflict: ``already-ended``.
    """
    if status not in ENDED_STATUS:
        return
    hint = (
        "fork it to run its steps again"
        if status == "completed"
        else f"retry it to run its {status} steps again"
    )
    message = f"execution {execution_id} is already {status}"
    raise Conflict(message, code="already-ended", hint=hint)


def hash_of_graph(state: ExecutionState) -> str:
    """Return the hash of the graph that is run."""
    return graph_hash(read_graph(state.graph or NO_GRAPH)[0])


def version_of(state: ExecutionState) -> str:
    """Return the hash that callers see of the graph that is run, for ``require_version``."""
    return state.plan_hash or hash_of_graph(state)


def require_version(state: ExecutionState, expected: Collection[str] | None) -> None:
    """Raise if the graph that is run is another one than the caller has seen.

    Raises:
        PreconditionFailed: ``plan-changed``.
    """
    present = version_of(state)
    if expected is not None and present not in expected:
        raise PreconditionFailed(
            f"the graph of the execution has the hash {present!r} by now",
            code="plan-changed",
            hint="read the execution again, and make the change for what it runs now",
        )


def require_changeable(state: ExecutionState, most: int | None) -> None:
    """Raise if the graph of an execution cannot be changed now, whatever it is to become.

    Args:
        state: The state of the execution.
        most: How often the graph of one execution may be changed (``plan_revisions``); None for any number.

    Raises:
        Conflict: ``already-ended``, ``not-started``; ``restricted-run``: only a part of the graph is run;
            ``revision-limit``: it was changed that often.
    """
    if state.status in ENDED_STATUS:
        message = f"execution {state.execution_id} is already {state.status}"
        raise Conflict(message, code="already-ended", hint=_FORK_HINT)
    _require_started(state)
    options = state.options or {}
    if options.get("run_to") or options.get("run_from"):
        message = "the execution runs a part of its graph only"
        raise Conflict(message, code="restricted-run", hint=_FORK_HINT)
    if most is not None and len(state.changes) >= most:
        message = f"the graph of execution {state.execution_id} was changed as often as the limit plan_revisions allows, {most}"
        raise Conflict(message, code="revision-limit", hint=_FORK_HINT)


def failed_steps(state: ExecutionState) -> list[NodeState]:
    """Return the steps of the own graph of an execution that failed, and that no policy handled."""
    return [
        node
        for node in state.nodes.values()
        if node.status == "failed" and not node.handled and "[" not in node.path
    ]


def require_failed(state: ExecutionState) -> None:
    """Raise if there is nothing to replace.

    Raises:
        InputError: ``nothing-failed``.
    """
    if not failed_steps(state):
        raise InputError(
            f"no step of execution {state.execution_id} has failed",
            code="nothing-failed",
            hint="say in words what is to be different",
        )


def change_findings(state: ExecutionState, graph: Graph, catalogue: NodeTypes) -> list[Diagnostic]:
    """Return why an execution cannot go on with a graph: what has begun would change; empty if it can, or has ended.

    Args:
        state: The state of the execution.
        graph: The graph, perhaps with errors of its own.
        catalogue: The node types.
    """
    if state.status in ENDED_STATUS:
        return []
    before, _ = read_graph(state.graph or NO_GRAPH)
    return revision_findings(before, graph, state.changes.progress(state.nodes, before), catalogue)


def _require_started(state: ExecutionState) -> None:
    if state.started_at is None:
        raise Conflict(
            f"execution {state.execution_id} has not started yet",
            code="not-started",
            hint="wait for its turn, or cancel it",
        )


def _nodes_hint(path: str, nodes: Collection[str]) -> str:
    if near := closest_match(path, nodes):
        return f"did you mean {near!r}?"
    more = ", …" if len(nodes) > _NODES_SHOWN else ""
    return f"its nodes are {', '.join(islice(nodes, _NODES_SHOWN))}{more}"
