"""Revisions of plans in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import islice

from planwave.storage.event_codec import encode_document, storable_text
from planwave.storage.records import PlanRecord, PlanRevision


class MemoryRevisions:
    """The ``RevisionStore`` port over dictionaries.

    Args:
        plans: The plans of the store, with their documents as text.
        check_open: Raises if the store is closed.
    """

    def __init__(
        self, plans: dict[str, tuple[PlanRecord, str]], check_open: Callable[[], None]
    ) -> None:
        self._plans = plans
        self._check_open = check_open
        self._revisions: dict[str, dict[int, tuple[PlanRevision, str]]] = {}

    async def save(
        self, plan: PlanRecord, superseded: PlanRevision | None = None, *, after: int
    ) -> bool:
        self._check_open()
        changed = stored_plan(plan)
        kept = self._plans.get(plan.plan_id)
        revision = None if superseded is None else _stored_revision(superseded)
        if kept is None or kept[0].edits != after:
            return False
        self._plans[plan.plan_id] = changed
        if revision is not None:
            own = self._revisions.setdefault(plan.plan_id, {})
            own[revision[0].revision] = revision
        return True

    async def get(self, plan_id: str, revision: int) -> PlanRevision | None:
        kept = self._revisions.get(plan_id, {}).get(revision)
        return None if kept is None else replace(kept[0], document=json.loads(kept[1]))

    async def page(
        self, plan_id: str, *, before: int | None = None, limit: int = 50
    ) -> list[PlanRevision]:
        own = self._revisions.get(plan_id, {})
        chosen = (n for n in sorted(own, reverse=True) if before is None or n < before)
        return [own[number][0] for number in islice(chosen, max(limit, 0))]

    def delete(self, plan_id: str) -> None:
        """Delete the revisions of a plan."""
        self._revisions.pop(plan_id, None)


def stored_plan(plan: PlanRecord) -> tuple[PlanRecord, str]:
    """Return a plan as it is stored: the record, and its document as text.

    Raises:
        StoreError: The document is not JSON.
    """
    document = encode_document(plan.document, f"plan {plan.plan_id!r}", plain=plan.plain)
    record = replace(
        plan,
        title=storable_text(plan.title),
        user_prompt=storable_text(plan.user_prompt),
        note=storable_text(plan.note),
        document={},
    )
    return record, document


def _stored_revision(revision: PlanRevision) -> tuple[PlanRevision, str]:
    what = f"revision {revision.revision} of plan {revision.plan_id!r}"
    document = encode_document(revision.document or {}, what)
    title, note = storable_text(revision.title), storable_text(revision.note)
    return replace(revision, title=title, note=note, document=None), document
