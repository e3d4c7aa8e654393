"""What a stored execution needs to run on, read from its events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from planwave.errors import Conflict, InputError, LimitExceeded, PlanwaveError
from planwave.events import TERMINAL, Event
from planwave.events.types import SET_ASIDE, typed_event
from planwave.events.unreadable import guard_stored, unreadable_error
from planwave.executor.options import RunOptions
from planwave.executor.recovery.history import History
from planwave.graph.json_values import size_of
from planwave.graph.model import Json
from planwave.graph.reading.documents import read_graph
from planwave.service.executions.queue_entry import QueuedExecution, RunSpec
from planwave.settings import Limits
from planwave.storage.records import StoredCall

if TYPE_CHECKING:
    from planwave.storage.sqlite.sql_store import Store


PROGRESS_EVENTS: Final = frozenset(
    {
        "node.completed", "node.failed", "node.retrying", "node.waiting", "node.answered",
        "node.parked", "node.cancelled", "execution.paused",
    }
)  # fmt: skip


async def claim(store: Store, execution_id: str, entry: QueuedExecution) -> None:
    """Claim an execution whose turn has come, unless it is claimed already."""
    if entry.epoch is None:
        entry.epoch = await store.claim(execution_id)


async def load_run_spec(
    store: Store, execution_id: str, entry: QueuedExecution, limits: Limits
) -> RunSpec:
    """Return the run spec of an execution that the caller owns, read from its stored events.

    Raises:
        GraphInvalid: It was tampered with, or passes limits that were lowered since.
        Conflict: It has ended; ``unreadable``.
        LimitExceeded: ``recoveries``: its process ended too often without any progress.
    """
    await claim(store, execution_id, entry)
    epoch = entry.epoch or 1
    events = await store.events(execution_id)
    if events and events[-1].type in TERMINAL:  # the caller has missed its end
        raise Conflict(f"execution {execution_id} has ended already")
    met = attempts_without_progress(events, epoch) if entry.is_recovery else 0
    order = run_spec_from_events(execution_id, events, limits)
    with guard_stored(execution_id):
        past = History(events)
    if met > limits.recoveries:
        raise LimitExceeded(
            "recoveries", limits.recoveries, met, what="recoveries without any progress"
        )
    return replace(
        order,
        epoch=epoch,
        history=past,
        stored_bytes=await recorded_bytes(store, execution_id, order.options),
        last_seq=past.last_seq,
        is_recovery=entry.is_recovery and past.is_started,
        accepted_at=entry.accepted_at,
        cancel_cause=entry.cancel_cause,
    )


class _CallReader(Protocol):
    async def calls(self, execution_ids: Sequence[str]) -> dict[str, list[StoredCall]]: ...


async def recorded_bytes(store: _CallReader, execution_id: str, options: RunOptions) -> int:
    """Return the size of the recorded calls of an execution; 0 where no option bounds it."""
    if options.max_state_bytes is None:
        return 0
    found = await store.calls([execution_id])
    return sum(size_of(call.reply) for call in found.get(execution_id, ()))


def attempts_without_progress(events: Sequence[Event], epoch: int) -> int:
    """Return the number of owners since the last owner under which a node made progress.

    An owner says its epoch when it takes an execution up; one that did not get to that counts too.
    """
    of_progress = said = 1
    for event in events:
        if event.type == "execution.resumed":
            said = event.data.get("epoch", said)
            if event.data.get("reason") != "recovery":  # a command continued it
                of_progress = said
        elif event.type in PROGRESS_EVENTS:
            of_progress = said
    return epoch - of_progress


def run_spec_from_events(
    execution_id: str, events: Sequence[Event], limits: Limits | None
) -> RunSpec:
    """Return the run spec of an execution, read from the first of its events.

    Raises:
        GraphInvalid: The graph was changed from outside, or passes limits that were lowered since.
        Conflict: ``unreadable``.
    """
    created = typed_event(events[0]) if events else None
    if created is None or created.type != "execution.created":
        raise unreadable_error(execution_id, "its first event is missing")
    facts = created.data
    graph, _ = read_graph(facts.get("graph") or {}, limits=limits)
    options = cast("Mapping[str, Any]", facts.get("options") or {})
    try:
        run_options = RunOptions(**options)
    except (InputError, TypeError) as error:  # of another version, or changed from outside
        raise unreadable_error(execution_id, str(error)) from error
    return RunSpec(
        graph=graph,
        goal=facts.get("goal") or "",
        inputs=facts.get("inputs") or {},
        options=run_options,
        trigger=facts.get("trigger"),
        last_seq=created.seq,
        parent=facts.get("parent"),
        approval=facts.get("approval"),
        policies=facts.get("policies"),
        written_by=facts.get("written_by"),
        flows=facts.get("flows"),
        trace_context=facts.get("trace_context") or {},
        is_checked=False,
    )


def set_aside_data(error: PlanwaveError) -> dict[str, Json]:
    """Return the data of the ``execution.paused`` of an execution that cannot run now.

    The hint is part of the reason: nothing else says how the execution can run again.
    """
    hint = f"; {error.hint}" if error.hint else ""
    return {"reason": f"set aside: {error.message}{hint}", "kind": SET_ASIDE}
