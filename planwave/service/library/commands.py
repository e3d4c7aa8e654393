"""The commands that a run was given: those that wait until it is driven, and the replies to those that were sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from planwave.events import ExecutionState
from planwave.events.plan_payloads import is_for_model
from planwave.events.request_text import is_timer
from planwave.executor.driver.execution import Execution
from planwave.executor.program import Program
from planwave.graph.protocols import NodeTypes, Suspension
from planwave.graph.reading.documents import read_graph
from planwave.service.executions.command_rules import Command, Replan, Resume, Revise, told_by_rule

CommandT = TypeVar("CommandT", bound=Command)
_RESUME: Final = Resume(waits=True)


class RunCommands:
    """The commands of a run.

    Args:
        is_due: See the attribute.

    Attributes:
        pending: Those that are sent as soon as the run is driven.
        is_due: Whether the run goes on when it is driven, also without a command.
    """

    def __init__(self, *, is_due: bool) -> None:
        self.pending: list[Command] = []
        self.is_due, self._may_end_before = is_due, False
        self._waits_for_time_limits = False
        self._replies: list[tuple[Command, asyncio.Future[None]]] = []

    def have_work(self, is_over: Callable[[], bool]) -> bool:
        """Return whether there is something to drive the run for.

        Args:
            is_over: Returns whether the run has ended.
        """
        return bool(self.pending) or (self.is_due and not (self._may_end_before and is_over()))

    def resume(self, *, may_end_before: bool) -> None:
        """Let the run go on, and wait for the time limits of its requests.

        Args:
            may_end_before: Whether it is driven just now, so that it may end before it could be resumed.
        """
        self.is_due = self._waits_for_time_limits = True
        self._may_end_before = may_end_before

    def waits_for(self, request: Suspension) -> bool:
        """Return whether the run waits for the end of a request, and does not rest as paused."""
        if self._waits_for_time_limits:
            return request.timeout_s is not None
        return is_timer(request.request)

    def of(self, kind: type[CommandT]) -> list[CommandT]:
        """Return the pending commands of a kind."""
        return [each for each in self.pending if isinstance(each, kind)]

    def changed_programs(self, catalogue: NodeTypes) -> list[Program]:
        """Return the graphs that the pending commands make of that of the run."""
        return [Program(read_graph(each.graph)[0], catalogue) for each in self.of(Revise)]

    def needs_planner(self, state: ExecutionState) -> bool:
        """Return whether a model is to write a change of the run once it is driven."""
        asked = state.changes.open
        return bool(self.of(Replan)) or (asked is not None and is_for_model(asked))

    def clear(self) -> None:
        """Forget what is pending; the run rests until it is told to go on."""
        self.pending, self.is_due = [], False

    def check(self, state: ExecutionState) -> None:
        """Raise if a pending command is refused.

        Raises:
            PlanwaveError: See the commands.
        """
        for command in self.pending:
            command.check(state)
        if state.is_over or (self.is_due and not self.pending and state.last_seq > 1):
            _RESUME.check(state)

    def send_pending(self, execution: Execution, state: ExecutionState) -> None:
        """Give the pending commands to the driver of the run; without any, it resumes the run."""
        commands = self.pending or ([_RESUME] if self.is_due else [])
        self.clear()
        self._replies = []
        for command in commands:
            self.send(command, execution, state)

    def send(self, command: Command, execution: Execution, state: ExecutionState) -> None:
        """Give a command to the driver of the run."""
        reply = command.send(execution, state)
        if reply is not None:
            self._replies.append((command, reply))

    def raise_refused(self, state: Callable[[], ExecutionState]) -> None:
        """Raise why the driver, which is at rest, has refused a command.

        Args:
            state: Returns the state of the run by now.

        Raises:
            PlanwaveError: See the commands.
        """
        replies, self._replies = self._replies, []
        for command, reply in replies:
            if not reply.done() or reply.cancelled():
                continue
            if isinstance(
                command, Revise | Replan
            ):  # what it was refused for then, also where the run has ended since
                reply.result()
            with told_by_rule(command, state):
                reply.result()
