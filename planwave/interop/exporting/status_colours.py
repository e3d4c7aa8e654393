"""The colours of the statuses of nodes in pictures: fill and outline, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

STATUS_COLOURS: Final[Mapping[str, tuple[str, str]]] = {
    "pending": ("#eef1f4", "#8a949e"),
    "running": ("#d7e6fd", "#2457d0"),
    "retrying": ("#fdeccb", "#a85d00"),
    "waiting": ("#fff3b8", "#8f7400"),
    "completed": ("#d9f2e1", "#1c7c3c"),
    "failed": ("#fbdcdc", "#c02626"),
    "skipped": ("#f4f4f4", "#b9bfc6"),
    "blocked": ("#f2e2e2", "#8f5050"),
    "cancelled": ("#ece7f5", "#6f5aa8"),
    "linked": ("#e6f1f4", "#3f7f92"),
    "not_reached": ("#f4f4f4", "#b9bfc6"),
}
"""Every status that a node can have."""
