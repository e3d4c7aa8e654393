"""What a type is given to say what its results follow from: it may look around, and do nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from planwave.errors import PermanentError
from planwave.executor.node_api.lookups import GraphLookups
from planwave.executor.node_api.runtime import Host
from planwave.executor.values import GraphValues
from planwave.graph.model import DataValue, Graph, Json
from planwave.graph.protocols import WrittenBy


class ReadonlyRuntime(GraphLookups):
    """Satisfies ``graph.protocols.RuntimeApi`` for one node that is not run.

    Args:
        values: The values of its graph run, as far as that is settled.
        node: Its number.
        host: Resolves expressions.
        once_values: What the node kept when it ran; None where it did not: then values are made, for this
            once, and not kept.
    """

    def __init__(
        self,
        values: GraphValues,
        node: int,
        host: Host,
        once_values: Mapping[str, Json] | None,
    ) -> None:
        super().__init__(values)
        self._node, self._host, self._once_values = node, host, once_values

    def cache_get(self, namespace: str, key: str) -> None:
        """Return nothing: caches are for nodes that run."""
        return None

    def cache_set(self, namespace: str, key: str, value: object) -> None:
        """Keep nothing."""

    async def resolve(self, value: Json, variables: Mapping[str, Json]) -> Json:
        """Return a value with its expressions resolved; see ``GraphRuntime``."""
        return await self._host.resolve_value(self.values, self._node, value, variables)

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
        """Refuse: nothing is made."""
        raise self._not_running_error(f"resolve {target_handle!r}")

    def _not_running_error(self, what: str) -> PermanentError:
        node_id = self.values.program.topology.ids[self._node]
        return PermanentError(f"node {node_id!r} cannot {what} where it is not run")
