"""Commands for executions that another process drives: stored, carried out by their owner, answered by an outcome."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from planwave.errors import (
    Conflict,
    Gone,
    GraphInvalid,
    InputError,
    NotFound,
    PlanwaveError,
    PreconditionFailed,
    ShuttingDown,
    StoreError,
)
from planwave.graph.diagnostics import Diagnostic
from planwave.principals import Principal, acting_as, current_principal
from planwave.service.executions.command_rules import (
    Answer,
    Cancel,
    CancelNode,
    Command,
    Pause,
    Replan,
    Resume,
    Revise,
    has_done,
)
from planwave.storage.notices import MOST_BYTES

if TYPE_CHECKING:
    from planwave.events import Event
    from planwave.storage.notices import Notices
    from planwave.storage.postgres.owners import ExecutionOwners, OpenCommand

_log = logging.getLogger(__name__)

COMMAND_S: Final = 15.0
"""How long a caller waits for the process that drives the execution: longer than it takes another one to take over."""
POLL_S: Final = 0.5
"""How often outcomes and commands are looked for although no note came: a note may be lost."""
_KINDS: Final[dict[str, type[Command]]] = {
    kind.__name__: kind for kind in (Cancel, CancelNode, Pause, Resume, Answer, Revise, Replan)
}
_REFUSALS: Final[tuple[type[PlanwaveError], ...]] = (
    NotFound, Conflict, Gone, PreconditionFailed, InputError,
)  # fmt: skip
"""What an owner refuses with; the sender has checked all that needs more than these say."""


class CommandRelay:
    """Sends commands to the owners of executions, and carries out those for executions that are driven here.

    Args:
        owners: Who drives what, and the commands.
        notices: Tells the others that there is something to read.
        carry_out: Carries out a command in this process.
        events: Reads the events of an execution after one: whether an owner that is gone has carried out a command.
    """

    def __init__(
        self,
        owners: ExecutionOwners,
        notices: Notices,
        carry_out: Callable[[str, Command], Awaitable[object]],
        events: Callable[[str, int], Awaitable[Sequence[Event]]],
    ) -> None:
        self._owners, self._notices, self._carry_out = owners, notices, carry_out
        self._events = events
        self._waiting: dict[int, asyncio.Queue[str]] = {}
        self._under_way: set[int] = set()
        self._settled: set[int] = set()
        self._lines: dict[str, deque[OpenCommand]] = {}
        self._late: list[OpenCommand] = []
        self._noted = asyncio.Event()
        notices.subscribe("commands", lambda _: self._noted.set())
        notices.subscribe("outcomes", self._receive_outcome)

    async def send(self, execution_id: str, command: Command, after: int = 0) -> bool:
        """Have the owner of an execution carry out a command; False where no other process drives it.

        Args:
            execution_id: Which execution.
            command: The command.
            after: The last event of the execution before it; 0 for any.

        Raises:
            PlanwaveError: What the command was refused with.
            StoreError: ``command-pending``: no owner has answered.
        """
        document = {
            "kind": type(command).__name__,
            "fields": asdict(command),
            "by": current_principal().as_json(),
            "after": after,
        }
        command_id = await self._owners.add_command(execution_id, document)
        if command_id is None:
            return False
        self._notices.publish("commands", execution_id)
        outcome = await self._outcome(execution_id, command_id)
        if outcome["error"] is not None:
            raise _refusal(**outcome["error"])
        return True

    async def _outcome(self, execution_id: str, command_id: int) -> dict[str, Any]:
        notes = self._waiting[command_id] = asyncio.Queue()
        deadline = asyncio.get_running_loop().time() + COMMAND_S
        try:
            while asyncio.get_running_loop().time() <= deadline:
                noted = ""
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        noted = await notes.get()
                outcome = json.loads(noted) if noted else await self._owners.outcome(command_id)
                if outcome is not None:
                    return outcome
        finally:
            del self._waiting[command_id]
        raise StoreError(
            f"the process that drives execution {execution_id} does not answer; the command is "
            "stored, and is carried out as soon as a process drives the execution",
            code="command-pending",
            hint="look at the execution again in some seconds",
        )

    def _receive_outcome(self, note: str) -> None:
        command_id, _, outcome = note.partition(" ")
        if (notes := self._waiting.get(int(command_id))) is not None:
            notes.put_nowait(outcome)

    def look(self) -> None:
        """Look for commands soon: this process drives something that it did not drive before."""
        self._noted.set()

    def carry_out_soon(self, commands: list[OpenCommand]) -> None:
        """Carry out commands that came too late for who drove their execution: this process did."""
        self._late += commands
        self._noted.set()

    async def run(self) -> None:
        """Carry out the commands for executions that are driven here, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await self._noted.wait()
                self._noted.clear()
                late, self._late = self._late, []
                settled = set(self._settled)
                try:
                    await self.carry_out_all(tasks, late)
                    late.clear()
                    await self.carry_out_all(tasks, await self._owners.own_commands())
                except StoreError:  # the next look finds them
                    self._late += late
                    continue
                # Not before: a look that began earlier may have found them open.
                self._under_way -= settled
                self._settled -= settled

    async def carry_out_all(self, tasks: asyncio.TaskGroup, commands: list[OpenCommand]) -> None:
        """Carry out commands: those of one execution in order, of several side by side.

        The end of an execution does not wait for what was commanded before.

        Raises:
            StoreError: It cannot be noted now that they are begun.
        """
        new = [each for each in commands if each.command_id not in self._under_way]
        ids = {each.command_id for each in new}
        self._under_way |= ids
        try:
            if begun := [each.command_id for each in new if not each.was_begun]:
                await self._owners.begin(begun)
        except BaseException:
            self._under_way -= ids
            raise
        for each in new:
            is_end = each.command.get("kind") == Cancel.__name__
            name = f"{each.execution_id} end" if is_end else each.execution_id
            if name in self._lines:
                self._lines[name].append(each)
            else:
                self._lines[name] = deque([each])
                tasks.create_task(self._carry_out_line(name))

    async def _carry_out_line(self, name: str) -> None:
        line = self._lines[name]
        try:
            while line:
                await self._settle(line[0])
                self._settled.add(line.popleft().command_id)
        except Exception as error:  # noqa: BLE001 - a task boundary: it stays open, and is found again
            _log.warning("a command for execution %s waits: %s", line[0].execution_id, error)
        finally:
            del self._lines[name]
            self._under_way.difference_update(each.command_id for each in line)

    async def _settle(self, each: OpenCommand) -> None:
        error: dict[str, Any] | None = None
        try:
            command = _read_command(each.command)
            await self._carry_out_once(each, command)
        except (StoreError, ShuttingDown):
            raise  # it stays open: for a later look, or for the next owner
        except PlanwaveError as refused:
            kinds = (kind.__name__ for kind in _REFUSALS if isinstance(refused, kind))
            error = {"kind": next(kinds, InputError.__name__), "message": refused.message}
            error |= {"code": refused.code, "hint": refused.hint}
            if isinstance(refused, GraphInvalid):
                error["findings"] = [each.as_json() for each in refused.diagnostics]
        outcome = {"error": error}
        await self._owners.settle(each.command_id, outcome)
        note = f"{each.command_id} {json.dumps(outcome)}"
        # The sender reads an outcome that is too long for a note from the database.
        self._notices.publish("outcomes", note if len(note) <= MOST_BYTES else str(each.command_id))

    async def _carry_out_once(self, each: OpenCommand, command: Command) -> None:
        """Carry out a command, unless the events show that an owner has, which ended before it could say so."""
        if each.was_begun:
            events = await self._events(each.execution_id, each.command.get("after", 0))
            if any(has_done(event, command) for event in events):
                return
        by = Principal.from_json(each.command["by"])
        with acting_as(by or current_principal()):
            await self._carry_out(each.execution_id, command)


def _read_command(document: dict[str, Any]) -> Command:
    """Return a command as it was stored.

    Raises:
        InputError: ``unknown-command``: a process of another version sent it.
    """
    try:
        return _KINDS[document["kind"]](**document["fields"])
    except (KeyError, TypeError) as error:
        raise InputError(
            "the process that drives the execution does not know this command",
            code="unknown-command",
            hint="upgrade all workers, then try again",
        ) from error


def _refusal(
    kind: str,
    message: str,
    code: str,
    hint: str | None = None,
    findings: Sequence[Mapping[str, Any]] = (),
) -> PlanwaveError:
    if findings:
        return GraphInvalid([Diagnostic(**each) for each in findings], message)
    refusal = next((each for each in _REFUSALS if each.__name__ == kind), InputError)
    return refusal(message, code=code, hint=hint)
