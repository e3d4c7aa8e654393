"""Edges made in code."""

from __future__ import annotations

from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    FLOW,
    Channel,
    Edge,
)


def make_edge(
    source: str,
    target: str,
    *,
    channel: Channel = FLOW,
    source_handle: str = DEFAULT_SOURCE_HANDLE,
    target_handle: str = DEFAULT_TARGET_HANDLE,
    edge_id: str | None = None,
) -> Edge:
    """Make an edge; the id defaults to one made from its two ends."""
    name = edge_id or f"{source}.{source_handle}-{target}.{target_handle}"
    return Edge(name, source, source_handle, target, target_handle, channel, {"channel": channel})
