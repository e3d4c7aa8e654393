"""What people call executions: which names, tags and notes are accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from planwave.errors import InputError
from planwave.storage.records import ExecutionLabels

if TYPE_CHECKING:
    from planwave.shapes.executions import LabelsResponse

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
