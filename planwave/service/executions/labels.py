"""What people call executions: which names, tags and notes are accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from planwave.errors import InputError
from planwave.principals import principal_json
from planwave.storage.records import ExecutionLabels, ExecutionRecord

if TYPE_CHECKING:
    from planwave.events.usage import UsageTotal
    from planwave.service.queries.digest import ExecutionDigest
    from planwave.shapes.executions import ExecutionSummary, LabelsResponse, WaitsForResponse

MAX_NAME_CHARS: Final = 200
MAX_TAG_CHARS: Final = 40
MAX_TAGS: Final = 20
MAX_NOTE_CHARS: Final = 2_000


def checked_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes of some fields of ``ExecutionLabels`` as they are stored.

    Names and tags are one line each, without white space around them; an empty name is none, a tag is kept once.

    Raises:
        InputError: ``invalid-labels``.
    """
    checked = dict(changes)
    if "name" in checked:
        name = " ".join((checked["name"] or "").split())
        checked["name"] = _bounded("name", name, MAX_NAME_CHARS) or None
    if "tags" in checked:
        checked["tags"] = _checked_tags(checked["tags"])
    if "note" in checked:
        checked["note"] = _bounded("note", checked["note"].strip(), MAX_NOTE_CHARS)
    return checked


def labels_json(labels: ExecutionLabels) -> LabelsResponse:
    """Return labels in the JSON form of the API."""
    return {
        "name": labels.name,
        "tags": list(labels.tags),
        "note": labels.note,
        "starred": labels.starred,
    }


def execution_summary(
    record: ExecutionRecord,
    *,
    is_interrupted: bool,
    digest: ExecutionDigest | None = None,
    planning: UsageTotal | None = None,
    waits_for: WaitsForResponse | None = None,
) -> ExecutionSummary:
    """Return an execution as lists show it.

    Args:
        record: Its record.
        is_interrupted: Whether it was cut off.
        digest: How far it is; None leaves it out.
        planning: What the calls used that wrote its plan.
        waits_for: The capability that it waits for; None for none.
    """
    document: ExecutionSummary = {
        "execution_id": record.execution_id,
        "plan_id": record.plan_id,
        "revision": record.revision,
        "flow": record.flow,
        "created_by": principal_json(record.created_by),
        "title": record.title,
        "user_prompt": record.user_prompt,
        "status": record.status,
        "outcome": record.outcome if digest is None else digest.outcome,
        "timestamp": record.created_at,
        "created_at": record.created_at,
        "started_at": record.started_at,
        "completed_at": record.completed_at,
        **labels_json(record.labels),
        "planning": None if planning is None else planning.as_json(),
    }
    if digest is not None:
        document["digest"] = digest.as_json()
    if is_interrupted:
        document["interrupted"] = True
    if waits_for is not None:
        document["waits_for"] = waits_for
    return document


def _checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    lines = (" ".join(tag.split()) for tag in tags)
    own = tuple(dict.fromkeys(_bounded("tag", tag, MAX_TAG_CHARS) for tag in lines if tag))
    if len(own) > MAX_TAGS:
        raise InputError(
            f"{len(own)} tags are too many",
            code="invalid-labels",
            hint=f"an execution has {MAX_TAGS} tags at most",
        )
    return own


def _bounded(what: str, text: str, most: int) -> str:
    if len(text) > most:
        raise InputError(
            f"a {what} of {len(text)} characters is too long",
            code="invalid-labels",
            hint=f"use {most} characters at most",
        )
    return text
