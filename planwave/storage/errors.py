"""Errors that every store raises, with their codes. Errors of the database and the disk are classified in `sqlite/errors.py`."""

from __future__ import annotations

from collections.abc import Sequence

from planwave.errors import Conflict, NotFound, StaleEpoch, StoreError


def unexpected_seq(execution_id: str, seq: int, last: int) -> StoreError:
    """Return the error for a ``seq`` that does not follow ``last``."""
    if seq <= last:
        return StoreError(
            f"event {seq} of {execution_id!r} is already stored (last is {last})",
            code="duplicate-seq",
        )
    return StoreError(f"event {seq} of {execution_id!r} leaves a gap after {last}", code="seq-gap")


def append_to_unknown(execution_id: str) -> StoreError:
    """Return the error for an append to an unknown execution."""
    return StoreError(
        f"no execution {execution_id!r} is stored, so it cannot take events",
        code="unknown-execution",
    )


def stale_epoch(execution_id: str, epoch: int, owner: int) -> StaleEpoch:
    """Return the error for an append with an old epoch."""
    return StaleEpoch(
        f"execution {execution_id!r} was taken over by another process or run: it is in epoch "
        f"{owner}, and epoch {epoch} can write no more",
        hint="open the execution again and continue from its stored state",
    )


def not_found(kind: str, own_id: str) -> NotFound:
    """Return the error for an unknown execution or plan."""
    return NotFound(f"no {kind} {own_id!r} is stored")


def execution_not_ended(execution_id: str, status: str) -> Conflict:
    """Return the error for deleting an execution that has not ended."""
    return Conflict(
        f"execution {execution_id} is {status}; only one that has ended can be deleted",
        code="execution-running",
        hint="cancel it first, or wait until it ends; one that was interrupted ends once it is resumed",
    )


def plan_in_use(plan_id: str, execution_id: str) -> Conflict:
    """Return the error for deleting a plan that an execution still runs."""
    return Conflict(
        f"plan {plan_id} is in use: its execution {execution_id} has not ended",
        code="plan-in-use",
        hint="cancel that execution first, or wait until it ends",
    )


def input_set_taken(name: str) -> Conflict:
    """Return the error for a name under which a flow has other inputs already."""
    return Conflict(
        f"the flow has inputs saved as {name!r} already",
        code="name-taken",
        hint="choose another name, or delete those first",
    )


def too_many_input_sets(most: int) -> Conflict:
    """Return the error for more saved inputs than a flow may have."""
    return Conflict(
        f"the flow has {most} sets of saved inputs, which is as many as it may have",
        code="too-many-input-sets",
        hint="delete one, or save these in place of one",
    )


def flow_in_use(name: str, uses: Sequence[str]) -> Conflict:
    """Return the error for taking away the name of a flow that others lead to."""
    return Conflict(
        f"flow {name!r} is in use: {'; '.join(uses)}",
        code="flow-in-use",
        hint="take these away first, or all at once with force; graphs that name it stay as they are",
    )


def name_taken(name: str, plan_id: str) -> Conflict:
    """Return the error for a name that another flow has."""
    return Conflict(
        f"another flow has the name {name!r}: {plan_id}",
        code="name-taken",
        hint="choose another name, or change that flow",
    )


def unknown_cursor(before: str) -> NotFound:
    """Return the error for a page that starts after an unknown id."""
    return NotFound(f"nothing with id {before!r} is stored, so no page can follow it")


def store_closed() -> StoreError:
    """Return the error for a use after ``close``."""
    return StoreError("the store was closed", code="store-closed", hint="open the store again")
