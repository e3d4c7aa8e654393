"""The records of triggers and their deliveries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from planwave.ids import new_id
from planwave.principals import Principal

DELIVERIES_SHOWN: Final = 20
"""Deliveries of a trigger that are kept for as long as the trigger; older ones expire."""


@dataclass(frozen=True, slots=True)
class TriggerRecord:
    """An entry node of a flow that is listened for.

    Attributes:
        node_id: The entry node; a flow has one trigger for each of its entry nodes at most.
        kind: The type of that node when the trigger was created.
        revision: The revision of the flow that it starts; None for the live one.
        enabled: Whether it starts executions.
        position: Where its adapter continues after a restart, such as the last slot of a schedule;
            its form is up to the adapter.
        created_by: Who set it up; None where an older planwave did.
    """

    trigger_id: str
    plan_id: str
    node_id: str
    kind: str
    created_at: str
    revision: int | None = None
    enabled: bool = True
    position: str = ""
    created_by: Principal | None = None


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """One thing that a trigger received: a request, a slot of a schedule, an event of a stream.

    Attributes:
        key: Its identity within its trigger: a repeated delivery has the same.
        received_at: When it was claimed first, UTC.
        execution_id: The id for the execution that it starts, chosen with the claim, so that a
            repetition after a crash starts the same one.
        outcome: What became of it; None while it is under way.
        note: A sentence about the outcome, or "".
        reply: What the adapter needs to answer a repetition.
        is_new: Whether the caller has just claimed it, and must process and settle it.
    """

    trigger_id: str
    key: str
    received_at: str
    execution_id: str
    outcome: str | None = None
    note: str = ""
    reply: str | None = None
    is_new: bool = False


def claimed(trigger_id: str, key: str, at: str, before: DeliveryRecord | None) -> DeliveryRecord:
    """Return the record of a delivery that is claimed now, perhaps after an interrupted process."""
    if before is not None:
        return replace(before, is_new=True)
    return DeliveryRecord(trigger_id, key, at, new_id(), is_new=True)
