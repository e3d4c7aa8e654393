"""Placeholders for unreadable parts of a document, so that the rest can be checked at the same time."""

from __future__ import annotations

from typing import Final, cast

from planwave.graph.model import Channel, Edge

UNREADABLE: Final = "\0"
"""Placeholder in a node or an edge for a name that could not be read; no valid name contains NUL."""

UNREADABLE_CHANNEL: Final = cast("Channel", UNREADABLE)

UNREADABLE_EDGE: Final = Edge(
    "", UNREADABLE, UNREADABLE, UNREADABLE, UNREADABLE, UNREADABLE_CHANNEL, {}
)
"""Placeholder for an edge of which nothing could be read."""

ALREADY_REPORTED: Final = object()
"""Placeholder in a document for a node, an edge or a field whose error the caller has already
reported: it is not reported again, and counts as unreadable."""

PLACEHOLDER_PREFIX: Final = "#"
"""Start of the placeholder id of a node without a readable id; no valid id starts with it."""
