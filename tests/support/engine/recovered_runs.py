"""Executions that another process loads from their stored events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from planwave.events import Event
from planwave.executor.driver.execution import Execution
from planwave.executor.recovery.history import History
from tests.support.engine.generic_nodes import ExecutionHarness, MemoryJournal


def recovered(harness: ExecutionHarness, stored: Sequence[Event]) -> ExecutionHarness:
    """Load an execution from its stored events, as another process does."""
    history = History(stored)
    return ExecutionHarness(
        harness.program.graph,
        harness.behaviors,
        harness.execution.options,
        journal=MemoryJournal(),
        history=history,
        is_recovery=history.pause_reason is None,
        parks="always",
    )


async def events_after_command(
    harness: ExecutionHarness,
    stored: Sequence[Event],
    command: Callable[[Execution], Awaitable[None]],
) -> list[Event]:
    """Load an execution for one command only; return all events that are stored then."""
    loaded = recovered(harness, stored)
    done = command(loaded.execution)
    loaded.execution.interrupt(at_once=True)
    await loaded.run()
    await done
    return [*stored, *loaded.stored]
