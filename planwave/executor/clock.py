"""The wall clock as event times: UTC, ISO 8601, microseconds."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> str:
    """Give the time now, e.g. ``2026-01-31T12:00:00.000000+00:00``."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
