"""Flows, graphs saved under a name with every content they ever had; and the port that keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from planwave.storage.records import PageCursor


@dataclass(frozen=True, slots=True)
class FlowRecord:
    """A flow as lists show it.

    Attributes:
        version: The hash of its present graph: what is the same is the same version.
        revision: Counts its changes; 1 for a new one.
        node_count: Of its present graph.
    """

    flow_id: str
    name: str
    description: str
    version: str
    revision: int
    created_at: str
    updated_at: str
    node_count: int


@dataclass(frozen=True, slots=True)
class FlowVersion:
    """One content of a flow.

    Attributes:
        revision: Of the flow, when this content was saved first.
        created_at: When that was, UTC.
        graph: The graph document as it was saved last; None in lists.
    """

    flow_id: str
    version: str
    revision: int
    created_at: str
    node_count: int
    graph: dict[str, Any] | None = None


class FlowStore(Protocol):
    """Flows and their versions. Writes are durable on return."""

    async def save(
        self, flow: FlowRecord, graph: dict[str, Any] | None = None, *, after: int = 0
    ) -> bool:
        """Keep a flow, and where ``graph`` is given its present content.

        Args:
            flow: As it is from now on.
            graph: The document that ``flow.version`` is the hash of; a new flow has one.
            after: The revision this one follows; 0 for a new flow.

        Returns:
            Whether it was kept: not where another revision, or another flow of that id, came first.
        """
        ...

    async def get(self, flow_id: str) -> FlowRecord | None: ...
    async def version(self, flow_id: str, version: str) -> FlowVersion | None:
        """Give one version, with its graph."""
        ...

    async def page(
        self, *, text: str | None = None, before: str | PageCursor | None = None, limit: int = 50
    ) -> Sequence[FlowRecord]:
        """Give flows, newest first; ``before`` is the last one already seen: its id, or its place.

        Raises:
            NotFound: ``before`` is nobody's id.
        """
        ...

    async def versions(
        self, flow_id: str, *, before: PageCursor | None = None, limit: int = 50
    ) -> Sequence[FlowVersion]:
        """Give the versions of a flow, newest first, without their graphs."""
        ...

    async def delete(self, flow_id: str) -> None:
        """Delete a flow with all its versions; its executions stay, they carry their graph.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``flow-in-use``: an execution of it has not ended.
        """
        ...
