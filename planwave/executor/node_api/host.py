"""What the nodes of one execution find around them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from planwave.errors import NodeError
from planwave.executor.driver.nested_runs import NestedRuns
from planwave.executor.node_api.once import OnceValues
from planwave.executor.node_api.runtime import GraphRuntime, LinkStats, Outputs
from planwave.executor.node_api.templates import resolve_data, resolve_value
from planwave.executor.reuse.result_key import result_key
from planwave.executor.state import HowMade, current_attempt
from planwave.graph.inputs import Inputs
from planwave.graph.model import Graph, Json
from planwave.graph.protocols import FlowContext


class NodeHost:
    """Satisfies ``executor.runtime.Host``; see ``run.py`` for the arguments.

    Attributes:
        services: What nodes find as ``context.services``.
        links: How links were used.
        nested_runs: Runs nested graphs; None once the execution is over.
        once_values: Keeps what nodes have to find again; None likewise.
        variables: What expressions of the execution's own graph may name besides inputs.
    """

    def __init__(
        self,
        execution_id: str,
        variables: Mapping[str, Json] | None,
        services: Any,
        chat_id: str | None,
        state: Any,
        renderer: Any,
    ) -> None:
        self.links = LinkStats()
        self.services = services
        self.nested_runs: NestedRuns | None = None
        self.once_values: OnceValues | None = None
        self.execution_id, self.chat_id, self.state = execution_id, chat_id, state
        self.variables: Mapping[str, Json] = dict(variables or {})
        self._renderer = renderer

    async def run_nested(
        self,
        runtime: GraphRuntime,
        key: str,
        graph: Graph,
        inputs: Mapping[str, Any],
        variables: Mapping[str, Json],
    ) -> Mapping[str, Outputs]:
        """Run a graph inside a running node; see ``RuntimeApi.run_graph``."""
        if self.nested_runs is None:
            raise NodeError("the execution this node belongs to is over")
        return await self.nested_runs.run(runtime, key, graph, inputs, variables)

    async def resolve_data(
        self, runtime: GraphRuntime, node: int, inputs: Inputs
    ) -> Mapping[str, Json]:
        """Give a node's data with its expressions resolved."""
        return await resolve_data(
            runtime.program, node, runtime, inputs, runtime.variables, self._renderer
        )

    async def resolve_value(
        self, runtime: GraphRuntime, node: int, value: Json, variables: Mapping[str, Json]
    ) -> Json:
        """Give a value with its expressions resolved as in a node's data, with names added."""
        seen = {**runtime.variables, **variables}
        return await resolve_value(value, runtime, node, seen, self._renderer)

    async def result_key(
        self, runtime: GraphRuntime, node: int, how_made: HowMade | None = None
    ) -> str:
        """Give the identity of a node's result; see ``executor/identity.py``."""
        return await result_key(
            runtime,
            node,
            runtime.variables,
            self._renderer,
            services=self.services,
            how_made=how_made,
        )

    def current_node(self) -> int:
        """Give the number of the node whose task this is called in."""
        return current_attempt.get().node

    async def once(self, key: str, fn: Callable[[], Awaitable[Json]]) -> Json:
        """Give a value that a node has to find again; see ``RuntimeApi.once``."""
        if self.once_values is None:
            raise NodeError("the execution this node belongs to is over")
        return await self.once_values.once(key, fn)

    def context(self, runtime: GraphRuntime, node: int, attempt: int) -> FlowContext:
        """Give the context of one attempt."""
        node_id = runtime.program.topology.ids[node]
        return FlowContext(
            node_id, self.execution_id, runtime.prefix + node_id, attempt, self.chat_id,
            self.state, runtime, self.services,
        )  # fmt: skip
