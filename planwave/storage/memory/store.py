"""A store in memory, for tests and for runs that need no durability."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from planwave.errors import StoreError
from planwave.events import Event
from planwave.ids import new_id
from planwave.principals import OPERATOR
from planwave.providers.protocols import CallKey
from planwave.storage.errors import (
    append_to_unknown,
    execution_not_ended,
    in_use,
    not_found,
    stale_epoch,
    store_closed,
    unexpected_seq,
)
from planwave.storage.event_codec import (
    ACTIVE_STATUSES,
    ENDED_STATUSES,
    OPEN_STATUSES,
    EncodedBatch,
    asks_person,
    decode_events,
    encode_batch,
    encode_document,
    storable_text,
)
from planwave.storage.memory.access_tokens import MemoryAccessTokens
from planwave.storage.memory.approved_tools import MemoryApprovedTools
from planwave.storage.memory.chats import MemoryChats
from planwave.storage.memory.flows import MemoryFlows
from planwave.storage.memory.lists import matches_text, newest_first
from planwave.storage.memory.notifications import MemoryNotifications
from planwave.storage.memory.revisions import MemoryRevisions, stored_plan
from planwave.storage.memory.triggers import MemoryTriggers
from planwave.storage.records import (
    AnsweredRequest,
    ExecutionRecord,
    IdempotencyRecord,
    PageCursor,
    PlanRecord,
    Projected,
    Projection,
    RecordedCalls,
    StoredCall,
    StoreStats,
)


@dataclass(slots=True)
class _StoredExecution:
    record: ExecutionRecord
    batches: list[EncodedBatch]
    answered: list[AnsweredRequest] = field(default_factory=list[AnsweredRequest])


class MemoryStore:
    """The ``Store`` port over dictionaries.

    Values are stored as JSON text, as on disk: reads return copies, and values that are not JSON are
    rejected. Only :meth:`project_each` suspends.
    """

    def __init__(self) -> None:
        self._plans: dict[str, tuple[PlanRecord, str]] = {}
        self._executions: dict[str, _StoredExecution] = {}
        self._calls = RecordedCalls[str]()
        self._idempotency_records: dict[str, IdempotencyRecord] = {}
        self._revisions = MemoryRevisions(self._plans, self._check_open)
        self._flows = MemoryFlows(self._check_open, self._release_flow)
        self._triggers = MemoryTriggers(self._check_open, self._flows.has)
        self._notifications = MemoryNotifications(self._check_open, self._flows.has)
        self._access_tokens = MemoryAccessTokens(self._check_open)
        self._approved_tools = MemoryApprovedTools(self._check_open)
        self._chats = MemoryChats(self._check_open)
        self._closed = False

    @property
    def stats(self) -> StoreStats:
        return StoreStats()

    @property
    def flows(self) -> MemoryFlows:
        return self._flows

    @property
    def revisions(self) -> MemoryRevisions:
        return self._revisions

    @property
    def triggers(self) -> MemoryTriggers:
        return self._triggers

    @property
    def notifications(self) -> MemoryNotifications:
        return self._notifications

    @property
    def access_tokens(self) -> MemoryAccessTokens:
        return self._access_tokens

    @property
    def approved_tools(self) -> MemoryApprovedTools:
        return self._approved_tools

    @property
    def chats(self) -> MemoryChats:
        return self._chats

    async def save_plan(self, plan: PlanRecord) -> None:
        self._check_open()
        self._plans[plan.plan_id] = stored_plan(plan)

    async def plan(self, plan_id: str) -> PlanRecord | None:
        kept = self._plans.get(plan_id)
        return None if kept is None else replace(kept[0], document=json.loads(kept[1]))

    async def plans(
        self, *, text: str | None = None, before: str | PageCursor | None = None, limit: int = 50
    ) -> list[PlanRecord]:
        found = newest_first((kept for kept, _ in self._plans.values()), _sort_key, before)
        page = [p for p in found if matches_text(text, p.title, p.user_prompt)][: max(limit, 0)]
        return [replace(p, document=json.loads(self._plans[p.plan_id][1])) for p in page]

    async def plan_statuses(self, plan_ids: Sequence[str]) -> dict[str, str]:
        asked = set(plan_ids)
        kept = sorted((kept.record for kept in self._executions.values()), key=_sort_key)
        return {r.plan_id: r.status for r in kept if r.plan_id is not None and r.plan_id in asked}

    async def delete_plan(self, plan_id: str) -> None:
        self._check_open()
        self._require_unused("plan", plan_id)
        if self._plans.pop(plan_id, None) is None:
            raise not_found("plan", plan_id)
        self._revisions.delete(plan_id)

    async def create_execution(
        self, record: ExecutionRecord, events: Sequence[Event], plan: PlanRecord | None = None
    ) -> None:
        self._check_open()
        batch = encode_batch(record.execution_id, events)
        if record.execution_id in self._executions:
            raise StoreError("an execution of that id is stored", code="duplicate-execution")
        if plan is not None and plan.plan_id not in self._plans:
            await self.save_plan(plan)
        kept = _StoredExecution(
            replace(
                record,
                title=storable_text(record.title),
                user_prompt=storable_text(record.user_prompt),
                last_seq=0,
            ),
            [],
        )
        if batch is not None:
            _append_batch(kept, batch)
        self._executions[record.execution_id] = kept
        self._notify(kept, batch)

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        self._check_open()
        batch = encode_batch(execution_id, events)
        if batch is None:
            return
        kept = self._executions.get(execution_id)
        if kept is None:
            raise append_to_unknown(execution_id)
        if epoch < kept.record.epoch:
            raise stale_epoch(execution_id, epoch, kept.record.epoch)
        _append_batch(kept, batch)
        self._notify(kept, batch)

    def _notify(self, kept: _StoredExecution, batch: EncodedBatch | None) -> None:
        if batch is not None and batch.notices:
            record = kept.record
            self._notifications.add(record.execution_id, record.plan_id, batch.notices)

    async def claim(self, execution_id: str, *, queued: bool | None = None) -> int:
        self._check_open()
        kept = self._require_execution(execution_id)
        if queued is None:
            queued = kept.record.queued
        kept.record = replace(kept.record, epoch=kept.record.epoch + 1, queued=queued)
        return kept.record.epoch

    async def events(
        self, execution_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        kept = self._executions.get(execution_id)
        return [] if kept is None else _decode_batches(execution_id, kept.batches, after, limit)

    async def execution(self, execution_id: str) -> ExecutionRecord | None:
        kept = self._executions.get(execution_id)
        return None if kept is None else kept.record

    async def executions(
        self,
        *,
        status: str | None = None,
        text: str | None = None,
        since: str | None = None,
        before: str | PageCursor | None = None,
        limit: int = 50,
        plan_id: str | None = None,
        plan_id: str | None = None,
    ) -> list[ExecutionRecord]:
        found = newest_first((kept.record for kept in self._executions.values()), _sort_key, before)
        return [
            record
            for record in found
            if (status is None or record.status == status)
            and (since is None or record.created_at >= since)
            and (plan_id is None or record.plan_id == plan_id)
            and (plan_id is None or record.plan_id == plan_id)
            and matches_text(text, record.title, record.user_prompt)
        ][: max(limit, 0)]

    async def count_executions(
        self,
        *,
        text: str | None = None,
        since: str | None = None,
        plan_id: str | None = None,
        plan_id: str | None = None,
    ) -> dict[str, int]:
        found = await self.executions(
            text=text, since=since, plan_id=plan_id, plan_id=plan_id, limit=len(self._executions)
        )
        return dict(Counter(record.status for record in found))

    async def count_open(self, account: str) -> int:
        records = (kept.record for kept in self._executions.values())
        accounts = (
            (r.created_by or OPERATOR).account for r in records if r.status in OPEN_STATUSES
        )
        return sum(each == account for each in accounts)

    async def count_forks(self, execution_id: str) -> int:
        return sum(kept.record.parent_id == execution_id for kept in self._executions.values())

    async def open_executions(self) -> list[ExecutionRecord]:
        records = sorted((kept.record for kept in self._executions.values()), key=_sort_key)
        return [
            r
            for r in records
            if r.status in ACTIVE_STATUSES or (r.status == "starting" and r.queued)
        ]

    async def answered_requests(
        self, *, before: tuple[str, str, int] | None = None, limit: int = 50
    ) -> list[AnsweredRequest]:
        found = sorted(self._answered_requests(), reverse=True)
        return [each for each in found if before is None or each[:3] < before][: max(limit, 0)]

    async def count_answered_requests(self) -> int:
        return sum(1 for _ in self._answered_requests())

    def _answered_requests(self) -> Iterable[AnsweredRequest]:
        for kept in self._executions.values():
            yield from kept.answered

    async def delete_execution(self, execution_id: str) -> None:
        self._check_open()
        record = self._require_execution(execution_id).record
        if record.status not in ENDED_STATUSES:
            raise execution_not_ended(execution_id, record.status)
        self._delete(execution_id)

    async def prune(self, before: str, limit: int) -> list[str]:
        self._check_open()
        records = sorted((kept.record for kept in self._executions.values()), key=_sort_key)
        ended = (
            r for r in records if r.status in ENDED_STATUSES and (r.completed_at or before) < before
        )
        ids = [r.execution_id for r in ended][:limit]
        for execution_id in ids:
            self._delete(execution_id)
        return ids

    async def project_each(
        self, execution_ids: Sequence[str], project: Projection[Projected]
    ) -> dict[str, Projected]:
        self._check_open()
        chosen = [self._executions[each] for each in execution_ids if each in self._executions]
        lagging = [(k.record, list(k.batches)) for k in chosen if k.record.is_behind]

        def project_all() -> dict[str, Projected]:
            return {
                of.execution_id: project(of, partial(_decode_batches, of.execution_id, batches))
                for of, batches in lagging
            }

        return await asyncio.to_thread(project_all)

    async def set_document_seqs(self, seqs: Mapping[str, int]) -> list[str]:
        self._check_open()
        for execution_id in seqs.keys() & self._executions.keys():
            kept = self._executions[execution_id]
            seq = max(kept.record.document_seq, seqs[execution_id])
            kept.record = replace(kept.record, document_seq=seq)
        return [each for each in seqs if each not in self._executions]

    async def lagging_documents(self) -> list[str]:
        records = sorted((kept.record for kept in self._executions.values()), key=_sort_key)
        return [record.execution_id for record in records if record.is_behind]

    async def recorded(self, key: CallKey) -> dict[str, Any] | None:
        reply = self._calls.find(key)
        return None if reply is None else json.loads(reply)

    async def has_calls(self, key: CallKey) -> bool:
        return self._calls.has_calls(key)

    async def has_other(self, key: CallKey) -> bool:
        return self._calls.has_other(key)

    async def calls(self, execution_ids: Sequence[str]) -> dict[str, list[StoredCall]]:
        found: dict[str, list[StoredCall]] = {}
        for key, reply in self._calls.of(execution_ids):
            found.setdefault(key.execution_id, []).append(StoredCall(key, json.loads(reply)))
        return found

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        self._check_open()
        self._calls.add(key, encode_document(reply, "a recorded reply"))

    async def idempotency_record(self, key: str) -> IdempotencyRecord | None:
        return self._idempotency_records.get(key)

    async def claim_idempotency_key(
        self, key: str, digest: str, at: str, *, expired: str
    ) -> IdempotencyRecord:
        self._check_open()
        found = self._idempotency_records.get(key)
        if found is None or self._has_expired(found, expired):
            found = self._idempotency_records[key] = IdempotencyRecord(digest, at, new_id())
            return replace(found, is_new=True)
        return found

    async def store_response(self, key: str, status: int, body: str) -> None:
        self._check_open()
        found = self._idempotency_records.get(key)
        if found is not None and found.status is None:
            self._idempotency_records[key] = replace(found, status=status, body=body)

    async def release_idempotency_key(self, key: str) -> None:
        self._check_open()
        found = self._idempotency_records.get(key)
        if found is not None and found.status is None:
            del self._idempotency_records[key]

    async def delete_expired_keys(self, expired: str) -> int:
        self._check_open()
        old = [
            key
            for key, kept in self._idempotency_records.items()
            if self._has_expired(kept, expired)
        ]
        for key in old:
            del self._idempotency_records[key]
        return len(old)

    def publish_address(
        self, url: str | None, token: str | None = None, *, is_service: bool = True
    ) -> None:
        """Do nothing: other processes cannot use this store."""

    async def close(self) -> None:
        """Refuse writes from now on; reads still work."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise store_closed()

    def _require_unused(self, kind: str, own_id: str) -> None:
        """Raise if an execution of a plan or flow has not ended."""
        for kept in self._executions.values():
            record = kept.record
            used = record.plan_id if kind == "plan" else record.plan_id
            if used == own_id and record.status not in ENDED_STATUSES:
                raise in_use(kind, own_id, record.execution_id)

    def _release_flow(self, plan_id: str) -> None:
        self._require_unused("flow", plan_id)
        self._triggers.delete_of_flow(plan_id)
        self._notifications.delete_of_flow(plan_id)

    def _require_execution(self, execution_id: str) -> _StoredExecution:
        kept = self._executions.get(execution_id)
        if kept is None:
            raise not_found("execution", execution_id)
        return kept

    def _delete(self, execution_id: str) -> None:
        del self._executions[execution_id]
        for place in [place for place in self._calls if place[0] == execution_id]:
            del self._calls[place]

    def _has_expired(self, kept: IdempotencyRecord, expired: str) -> bool:
        made = self._executions.get(kept.subject)
        is_open = made is not None and made.record.status not in ENDED_STATUSES
        return kept.created_at < expired and not is_open


def _decode_batches(
    execution_id: str, batches: Sequence[EncodedBatch], after: int = 0, limit: int | None = None
) -> list[Event]:
    rows = [(batch.first, batch.text) for batch in batches if batch.last > after]
    return decode_events(execution_id, rows, after, limit)


def _append_batch(kept: _StoredExecution, batch: EncodedBatch) -> None:
    last = kept.record.last_seq
    if batch.first != last + 1:
        raise unexpected_seq(kept.record.execution_id, batch.first, last)
    kept.batches.append(batch)
    for request, answer, at in batch.answers:
        asked = next((each for each in kept.batches if each.last >= request), batch)
        if asks_person(asked.text, asked.first, request):
            execution_id = kept.record.execution_id
            kept.answered.append(AnsweredRequest(at, execution_id, answer, request))
    progress = batch.status_change
    kept.record = replace(
        kept.record,
        last_seq=batch.last,
        status=progress.status or kept.record.status,
        started_at=kept.record.started_at or progress.started_at,
        completed_at=progress.completed_at or kept.record.completed_at,
    )


def _sort_key(record: PlanRecord | ExecutionRecord) -> tuple[str, str]:
    """Return the sort key of lists."""
    own = record.plan_id if isinstance(record, PlanRecord) else record.execution_id
    return record.created_at, own
