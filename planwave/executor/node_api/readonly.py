"""What a type is given to say what its results follow from: it may look around, and do nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from planwave.errors import NodeError
from planwave.executor.node_api.runtime import GraphRuntime
from planwave.executor.node_api.templates import resolve_value
from planwave.graph.model import Arrival, Channel, DataValue, Edge, Graph, Json, Node
from planwave.graph.protocols import Catalogue


class ReadonlyRuntime:
    """Satisfies ``graph.capabilities.RuntimeApi`` for one node that is not run.

    Args:
        runtime: The graph it stands in, as far as that is settled.
        node: Its number.
        variables: What expressions in that graph may name besides inputs.
        renderer: Renders what plain paths cannot.
        once_values: What the node kept when it ran; None where it did not: then values are made, for this
            once, and not kept.
    """

    def __init__(
        self,
        runtime: GraphRuntime,
        node: int,
        variables: Mapping[str, Json],
        renderer: Any,
        once_values: Mapping[str, Json] | None,
    ) -> None:
        self._runtime, self._node = runtime, node
        self._variables, self._renderer, self._once_values = variables, renderer, once_values

    def get_node(self, node_id: str) -> Node:
        """Return a node; InputError ``unknown-node`` if there is none."""
        return self._runtime.get_node(node_id)

    def incoming_edges(
        self, node_id: str, *, channel: Channel | None = None, target_handle: str | None = None
    ) -> Sequence[Edge]:
        """Return the edges into a node; see ``GraphRuntime``."""
        return self._runtime.incoming_edges(node_id, channel=channel, target_handle=target_handle)

    def outgoing_edges(
        self, node_id: str, *, channel: Channel | None = None, source_handle: str | None = None
    ) -> Sequence[Edge]:
        """Return the edges out of a node; see ``GraphRuntime``."""
        return self._runtime.outgoing_edges(node_id, channel=channel, source_handle=source_handle)

    def arrivals(self, node_id: str, target_handle: str | None = None) -> tuple[Arrival, ...]:
        """Return what reached a node; see ``GraphRuntime``."""
        return self._runtime.arrivals(node_id, target_handle)

    def cache_get(self, namespace: str, key: str) -> Any:
        """Return nothing: caches are for nodes that run."""
        return None

    def cache_set(self, namespace: str, key: str, value: Any) -> None:
        """Keep nothing."""

    @property
    def variables(self) -> Mapping[str, Json]:
        """What expressions may name besides inputs."""
        return self._variables

    @property
    def catalogue(self) -> Catalogue:
        """The node types."""
        return self._runtime.catalogue

    async def resolve(self, value: Json, variables: Mapping[str, Json]) -> Json:
        """Return a value with its expressions resolved; see ``GraphRuntime``."""
        seen = {**self._variables, **variables}
        return await resolve_value(value, self._runtime, self._node, seen, self._renderer)

    async def once(self, key: str, fn: Callable[[], Awaitable[Json]]) -> Json:
        """Return what the node kept under a key, or, where it did not run, would keep now.

        Raises:
            NodeError: It ran, and kept nothing under it.
        """
        if self._once_values is None:
            return await fn()
        if key not in self._once_values:
            raise self._not_running_error(f"find {key!r}")
        return self._once_values[key]

    async def run_graph(
        self,
        key: str,
        graph: Graph,
        inputs: Mapping[str, Mapping[str, Json]],
        *,
        variables: Mapping[str, Json] | None = None,
    ) -> Mapping[str, Mapping[str, DataValue]]:
        """Refuse: nothing is run."""
        raise self._not_running_error(f"run {key!r}")

    async def resolve_links(self, node_id: str, target_handle: str) -> list[Any]:
        """Refuse: nothing is made."""
        raise self._not_running_error(f"resolve {target_handle!r}")

    def _not_running_error(self, what: str) -> NodeError:
        node_id = self._runtime.program.topology.ids[self._node]
        return NodeError(f"node {node_id!r} cannot {what} where it is not run")
