"""The events of the golden logs, numbered and with times."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from planwave.events import TRANSIENT, Event
from tests.contract.engine.golden_logs.write_logs import LOGS

NAMES = sorted(path.stem for path in LOGS.glob("*.json"))
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def golden_documents(name: str) -> list[dict[str, Any]]:
    """Return the executions of a golden file, which holds one JSON document after the other."""
    text = (LOGS / f"{name}.json").read_text("utf-8").replace('"<seconds>"', "1.5")
    found: list[dict[str, Any]] = []
    while text := text.strip():
        document, end = json.JSONDecoder().raw_decode(text)
        found.append(document)
        text = text[end:]
    return found


def golden_events(document: dict[str, Any]) -> list[Event]:
    """Return the events of one execution."""
    return list(_numbered(document))


def _numbered(document: dict[str, Any]) -> Iterator[Event]:
    last = 0
    for index, (kind, path, attempt, data) in enumerate(document["events"]):
        at = (_BEGAN + timedelta(seconds=index)).isoformat(timespec="microseconds")
        is_stored = kind not in TRANSIENT
        last += is_stored
        seq = last if is_stored else 0
        yield Event(document["state"]["execution_id"], seq, at, kind, path, attempt, data)
