"""What a type is given to say what its results follow from: it may look around, and do nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from planwave.errors import PermanentError
from planwave.executor.node_api.lookups import GraphLookups
from planwave.executor.node_api.runtime import Host
from planwave.executor.values import GraphValues
from planwave.graph.model import DataValue, Graph, Json
from planwave.graph.protocols import RuntimeApi, WrittenBy


class ReadonlyRuntime(GraphLookups):
    """Satisfies ``graph.protocols.RuntimeApi`` for one node that is not run.

    Args:
        values: The values of its graph run, as far as that is settled.
        node: Its number.
        host: Resolves expressions.
        once_values: What the node has kept. Other values are made for this once, and not kept.
        links: Makes what is linked to nodes; None where nothing may be made.

    Attributes:
        link_error: What making a linked object raised last.
    """

    def __init__(
        self,
        values: GraphValues,
        node: int,
        host: Host,
        once_values: Mapping[str, Json],
        links: RuntimeApi | None = None,
    ) -> None:
        super().__init__(values)
        self._node, self._host, self._once_values = node, host, once_values
        self._links = links
        self.link_error: Exception | None = None

    def cache_get(self, namespace: str, key: str) -> None:
        """Return nothing: caches are for nodes that run."""
        return None

    def cache_set(self, namespace: str, key: str, value: object) -> None:
        """Keep nothing."""

    async def resolve(self, value: Json, variables: Mapping[str, Json]) -> Json:
        """Return a value with its expressions resolved; see ``GraphRuntime``."""
        return await self._host.resolve_value(self.values, self._node, value, variables)

    async def once(self, key: str, fn: Callable[[], Awaitable[Json]]) -> Json:
        """Return what the node has kept under a key, or would keep now."""
        return self._once_values[key] if key in self._once_values else await fn()

    async def run_graph(
        self,
        key: str,
        graph: Graph,
        inputs: Mapping[str, Mapping[str, Json]],
        *,
        variables: Mapping[str, Json] | None = None,
        written_by: WrittenBy | None = None,
    ) -> Mapping[str, Mapping[str, DataValue]]:
        """Refuse: nothing is run."""
        raise self._not_running_error(f"run {key!r}")

    async def run_linked(
        self,
        key: str,
        node_id: str,
        inputs: Mapping[str, Json],
        *,
        variables: Mapping[str, Json] | None = None,
    ) -> Mapping[str, DataValue]:
        """Refuse: nothing is run."""
        raise self._not_running_error(f"run {key!r}")

    async def resolve_links(self, node_id: str, target_handle: str) -> list[object]:
        """Return what is linked into a handle, as the node gets it when it runs."""
        if self._links is None:
            raise self._not_running_error(f"resolve {target_handle!r}")
        try:
            return await self._links.resolve_links(node_id, target_handle)
        except Exception as error:
            self.link_error = error
            raise

    def _not_running_error(self, what: str) -> PermanentError:
        node_id = self.values.program.topology.ids[self._node]
        return PermanentError(f"node {node_id!r} cannot {what} where it is not run")
