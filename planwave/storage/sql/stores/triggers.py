"""The triggers of the store, and their statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection, delete, func, insert, select, update

from planwave.principals import Principal, principal_text
from planwave.storage.errors import not_found
from planwave.storage.event_codec import storable_text
from planwave.storage.records import PageCursor
from planwave.storage.sql.dialects import insert_new
from planwave.storage.sql.flow_names import require_flows, require_revision
from planwave.storage.sql.lists import ListQuery, query_parameter
from planwave.storage.sql.locks import LostClaims, is_alive, lock
from planwave.storage.sql.readers import Read, Write
from planwave.storage.sql.schema import deliveries, triggers
from planwave.storage.triggers import DELIVERIES_SHOWN, DeliveryRecord, TriggerRecord, claimed

TRIGGERS: Final = ListQuery(
    [
        triggers.c.trigger_id,
        triggers.c.plan_id,
        triggers.c.node_id,
        triggers.c.kind,
        triggers.c.created_at,
        triggers.c.revision,
        triggers.c.enabled,
        triggers.c.position,
        triggers.c.created_by,
    ],
    triggers,
    triggers.c.created_at,
    triggers.c.trigger_id,
    {"plan_id": triggers.c.plan_id == query_parameter("plan_id")},
)
_DELIVERY: Final = (
    deliveries.c.trigger_id,
    deliveries.c.key,
    deliveries.c.received_at,
    deliveries.c.execution_id,
    deliveries.c.outcome,
    deliveries.c.note,
    deliveries.c.reply,
)
_RANK: Final = func.row_number().over(
    partition_by=deliveries.c.trigger_id,
    order_by=(deliveries.c.received_at.desc(), deliveries.c.id.desc()),
)


class SqlTriggers:
    """Triggers and their deliveries, in the tables ``triggers`` and ``deliveries``.

    Args:
        read: Runs a query beside the writer.
        write: Commits a change, which is durable on return where there is a disk.
        holder: The opening of the store, which claims deliveries.
    """

    def __init__(
        self,
        read: Read,
        write: Write,
        holder: str,
    ) -> None:
        self._read = read
        self._write = write
        self._holder = holder
        self._lost_claims = LostClaims()

    async def create(self, trigger: TriggerRecord) -> bool:
        """Store a trigger; return False if its id, or the entry node, has one already.

        Raises:
            NotFound: There is no such flow, or the revision that it is bound to was removed.
        """
        return await self._write(lambda connection: _create(connection, trigger))

    async def get(self, trigger_id: str) -> TriggerRecord | None:
        row = await self._read(lambda connection: TRIGGERS.one(connection, trigger_id))
        return None if row is None else _trigger(row)

    async def page(
        self, *, plan_id: str | None = None, before: PageCursor | None = None, limit: int = 50
    ) -> Sequence[TriggerRecord]:
        """Return triggers, newest first; those of deleted flows were deleted with them."""
        own = {"plan_id": plan_id}
        rows = await self._read(lambda connection: TRIGGERS.page(connection, own, before, limit))
        return [_trigger(row) for row in rows]

    async def count(self) -> int:
        statement = select(func.count()).select_from(triggers)
        return await self._read(lambda connection: connection.execute(statement).scalar_one())

    async def set_enabled(self, trigger_id: str, *, enabled: bool) -> bool:
        """Enable or disable a trigger; return whether there is one of this id."""
        return await self._change(trigger_id, enabled=int(enabled))

    async def set_position(self, trigger_id: str, position: str) -> None:
        """Store where the adapter continues; a trigger that was deleted has none."""
        await self._change(trigger_id, position=storable_text(position))

    async def _change(self, trigger_id: str, **values: Any) -> bool:
        statement = (
            update(triggers)
            .where(triggers.c.trigger_id == storable_text(trigger_id))
            .values(**values)
        )
        return await self._write(lambda connection: bool(connection.execute(statement).rowcount))

    async def delete(self, trigger_id: str) -> bool:
        """Delete a trigger with its deliveries; return whether there was one of this id."""
        own = storable_text(trigger_id)
        return await self._write(lambda connection: _delete(connection, own))

    async def claim(self, trigger_id: str, key: str, at: str, *, expired: str) -> DeliveryRecord:
        """Claim a delivery for the caller, or return its record; only one caller claims it.

        A delivery whose process ended before it was settled is free, and keeps its
        ``execution_id``; one from before ``expired`` counts as another one.

        Raises:
            NotFound: There is no such trigger.
        """
        own, key = storable_text(trigger_id), storable_text(key)
        claim = partial(_claim, holder=self._holder)
        return await self._lost_claims.claim(
            (own, key), self._write, lambda c, lost: claim(c, own, key, at, expired, is_lost=lost)
        )

    async def settle(
        self, trigger_id: str, key: str, outcome: str, *, note: str = "", reply: str | None = None
    ) -> None:
        """Store what became of a claimed delivery; one that is settled, or claimed elsewhere, stays as it is."""
        statement = (
            update(deliveries)
            .where(*self._is_claimed(trigger_id, key))
            .values(outcome=outcome, note=storable_text(note), reply=reply)
        )
        await self._write(lambda connection: connection.execute(statement))

    async def release(self, trigger_id: str, key: str) -> None:
        """Delete a claimed delivery that is not settled, as if it had never come."""
        statement = delete(deliveries).where(*self._is_claimed(trigger_id, key))
        releasing = self._write(lambda connection: connection.execute(statement))
        await self._lost_claims.release((storable_text(trigger_id), storable_text(key)), releasing)

    def _is_claimed(self, trigger_id: str, key: str) -> tuple[Any, ...]:
        # A process that was frozen may have lost the delivery to another one.
        is_own = deliveries.c.holder == self._holder
        return *_is(trigger_id, key), is_own, deliveries.c.outcome.is_(None)

    async def deliveries(
        self, trigger_ids: Sequence[str], limit: int = DELIVERIES_SHOWN
    ) -> Mapping[str, Sequence[DeliveryRecord]]:
        """Return the last deliveries of each trigger, newest first; those without any are left out."""
        own = [storable_text(each) for each in trigger_ids]
        ranked = (
            select(*_DELIVERY, _RANK.label("rank"))
            .where(deliveries.c.trigger_id.in_(own))
            .subquery()
        )
        statement = select(ranked).where(ranked.c.rank <= limit).order_by(ranked.c.rank)
        by_trigger: dict[str, list[DeliveryRecord]] = {}
        for *fields, _ in await self._read(lambda c: list(c.execute(statement))):
            record = DeliveryRecord(*fields)
            by_trigger.setdefault(record.trigger_id, []).append(record)
        return by_trigger

    async def delete_expired(self, expired: str) -> int:
        """Delete settled deliveries from before a time, but the last ones of each trigger."""
        ranked = select(
            deliveries.c.id, deliveries.c.outcome, deliveries.c.received_at, _RANK.label("rank")
        ).subquery()
        old = select(ranked.c.id).where(
            ranked.c.rank > DELIVERIES_SHOWN,
            ranked.c.outcome.is_not(None),
            ranked.c.received_at < expired,
        )
        statement = delete(deliveries).where(deliveries.c.id.in_(old))
        return await self._write(lambda connection: connection.execute(statement).rowcount)


def _trigger(row: Any) -> TriggerRecord:
    *fields, enabled, position, created_by = row
    by = Principal.from_text(created_by)
    return TriggerRecord(*fields, enabled=bool(enabled), position=position, created_by=by)


def _is(trigger_id: str, key: str) -> tuple[Any, ...]:
    return (
        deliveries.c.trigger_id == storable_text(trigger_id),
        deliveries.c.key == storable_text(key),
    )


def _create(connection: Connection, trigger: TriggerRecord) -> bool:
    require_flows(connection, [trigger.plan_id])
    require_revision(connection, trigger.plan_id, trigger.revision)
    row = {
        "trigger_id": trigger.trigger_id,
        "plan_id": trigger.plan_id,
        "node_id": trigger.node_id,
        "kind": trigger.kind,
        "created_at": trigger.created_at,
        "revision": trigger.revision,
        "enabled": int(trigger.enabled),
        "position": trigger.position,
        "created_by": principal_text(trigger.created_by),
    }
    return insert_new(connection, triggers, row)


def _delete(connection: Connection, trigger_id: str) -> bool:
    own = select(triggers.c.trigger_id).where(triggers.c.trigger_id == trigger_id)
    connection.execute(own.with_for_update())  # no delivery is claimed meanwhile
    connection.execute(delete(deliveries).where(deliveries.c.trigger_id == trigger_id))
    gone = delete(triggers).where(triggers.c.trigger_id == trigger_id)
    return bool(connection.execute(gone).rowcount)


def _claim(
    connection: Connection,
    trigger_id: str,
    key: str,
    at: str,
    expired: str,
    *,
    holder: str,
    is_lost: bool,
) -> DeliveryRecord:
    """Claim a delivery or return its record; see ``SqlTriggers.claim``."""
    lock(connection, "delivery", trigger_id, key)
    trigger = select(triggers.c.trigger_id).where(triggers.c.trigger_id == trigger_id)
    # It is not deleted meanwhile.
    if connection.execute(trigger.with_for_update(read=True, key_share=True)).first() is None:
        raise not_found("trigger", trigger_id)
    own = _is(trigger_id, key)
    connection.execute(
        delete(deliveries).where(
            *own, deliveries.c.outcome.is_not(None), deliveries.c.received_at < expired
        )
    )
    row = connection.execute(select(*_DELIVERY, deliveries.c.holder).where(*own)).first()
    if row is None:
        record = claimed(trigger_id, key, at, None)
        connection.execute(
            insert(deliveries).values(
                trigger_id=trigger_id,
                key=key,
                received_at=at,
                execution_id=record.execution_id,
                note="",
                holder=holder,
            )
        )
        return record
    *fields, last_holder = row
    delivery = DeliveryRecord(*fields)
    is_claimed = not is_lost if last_holder == holder else is_alive(connection, last_holder)
    if delivery.outcome is not None or is_claimed:
        return delivery
    connection.execute(update(deliveries).where(*own).values(holder=holder))
    return claimed(trigger_id, key, at, delivery)
