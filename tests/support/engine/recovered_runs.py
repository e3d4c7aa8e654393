"""Executions that another process loads from their stored events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from planwave.events import Event
from planwave.executor.driver.execution import Execution
from planwave.executor.recovery.history import History
from tests.support.engine.generic_nodes import ExecutionHarness, MemoryJournal


def recovered(rig: ExecutionHarness, stored: Sequence[Event]) -> ExecutionHarness:
    """Load an execution from its stored events, as another process does."""
    history = History(stored)
    return ExecutionHarness(
        rig.program.graph,
        rig.behaviors,
        rig.execution.options,
        journal=MemoryJournal(),
        history=history,
        is_recovery=history.pause_reason is None,
        parks=True,
    )


async def events_after_command(
    rig: ExecutionHarness, stored: Sequence[Event], command: Callable[[Execution], Awaitable[None]]
) -> list[Event]:
    """Load an execution for one command only; return all events that are stored then."""
    loaded = recovered(rig, stored)
    done = command(loaded.execution)
    loaded.execution.interrupt(at_once=True)
    await loaded.run()
    await done
    return [*stored, *loaded.stored]
