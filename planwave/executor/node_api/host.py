"""The services that the nodes of one execution share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from planwave.errors import PermanentError
from planwave.executor.node_api.budget import NodeBudget
from planwave.executor.node_api.link_artefacts import LinkArtefacts, OpenLinks
from planwave.executor.node_api.mailbox import Mailbox
from planwave.executor.node_api.nested import Admit, NestedGraphs, ParentRuns
from planwave.executor.node_api.once import OnceValues
from planwave.executor.node_api.runtime import GraphRuntime, LinkStats, Outputs
from planwave.executor.node_api.templates import resolve_data, resolve_value
from planwave.executor.options import RunOptions
from planwave.executor.ports import Redacting
from planwave.executor.state import Attempt, current_attempt
from planwave.executor.values import GraphValues
from planwave.expressions.templates import TemplateEngine
from planwave.graph.inputs import Inputs
from planwave.graph.model import Graph, Json
from planwave.graph.protocols import FlowContext, WrittenBy


class ParentResults(ParentRuns, Protocol):
    """The results that a fork reuses from its parent execution."""

    async def once_value(
        self, attempt: Attempt, key: str, host: NodeHost
    ) -> tuple[Json] | None: ...


class NodeHost:
    """The services of one execution's nodes; see ``Execution`` for the arguments.

    It is a ``Host`` of graph runtimes. It changes no state: it posts messages into ``mailbox``.

    Attributes:
        services: What nodes find as ``context.services``.
        links: How often links were materialized, and how often a materialized one was used again.
        open_links: What links have opened, to be closed with their graph runs.
        budget: The budget of the execution; None where nothing limits it.
        variables: What expressions of the execution's own graph may name besides inputs.
    """

    def __init__(
        self,
        execution_id: str,
        variables: Mapping[str, Json] | None,
        services: object,
        chat_id: str | None,
        state: object,
        renderer: TemplateEngine | None,
        *,
        options: RunOptions = RunOptions(),  # noqa: B008 - immutable
        parent: ParentResults | None = None,
        admit: Admit | None = None,
    ) -> None:
        self.links, self.open_links = LinkStats(), OpenLinks()
        self.services = services
        self.mailbox = Mailbox()
        limits = options.budget_limits
        self.budget = NodeBudget(self.mailbox, limits) if limits else None
        self.execution_id, self.chat_id, self.state = execution_id, chat_id, state
        self.variables: Mapping[str, Json] = dict(variables or {})
        self._renderer = renderer
        self._nested_graphs = NestedGraphs(self.mailbox, options, parent, admit)
        self._parent = parent
        self._once_values = OnceValues(self.mailbox)

    async def run_nested(
        self,
        values: GraphValues,
        key: str,
        graph: Graph,
        inputs: Mapping[str, Json],
        variables: Mapping[str, Json],
        written_by: WrittenBy | None,
    ) -> Mapping[str, Outputs]:
        """Run a graph inside a running node; see ``RuntimeApi.run_graph``."""
        self._require_open()
        return await self._nested_graphs.run(
            self, values, key, graph, inputs, variables, written_by
        )

    async def run_linked(
        self,
        values: GraphValues,
        key: str,
        target: int,
        inputs: Mapping[str, Json],
        variables: Mapping[str, Json],
    ) -> Outputs:
        """Run a linked node inside a running node; see ``RuntimeApi.run_linked``."""
        self._require_open()
        return await self._nested_graphs.run_linked(self, values, key, target, inputs, variables)

    def _require_open(self) -> None:
        if self.mailbox.is_closed:
            raise PermanentError("the execution this node belongs to is over")

    def artefacts_of(self, values: GraphValues) -> LinkArtefacts:
        """Return what links have opened in a graph run."""
        self._require_open()
        return self.open_links.of(values)

    async def resolve_data(
        self, values: GraphValues, node: int, inputs: Inputs
    ) -> Mapping[str, Json]:
        """Return a node's data with its expressions resolved."""
        return await resolve_data(values, node, inputs, self._renderer)

    async def resolve_value(
        self, values: GraphValues, node: int, value: Json, variables: Mapping[str, Json]
    ) -> Json:
        """Return a value with its expressions resolved as in a node's data, with names added."""
        return await resolve_value(values, node, value, variables, self._renderer)

    def redact(self, value: Json) -> Json:
        """Return JSON without the secrets that the services of the nodes know."""
        return self.services.redact(value) if isinstance(self.services, Redacting) else value

    def current_node(self) -> int:
        """Return the number of the node whose task this is called in."""
        return current_attempt.get().node

    async def once(self, key: str, fn: Callable[[], Awaitable[Json]]) -> Json:
        """Return a value that a node finds again; see ``RuntimeApi.once``."""
        self._require_open()

        async def make() -> Json:
            return self.redact(await fn())

        return await self._once_values.once(key, make, self._once_value_of_parent)

    async def _once_value_of_parent(self, attempt: Attempt, key: str) -> tuple[Json] | None:
        return None if self._parent is None else await self._parent.once_value(attempt, key, self)

    def context(self, runtime: GraphRuntime, node: int, attempt: int) -> FlowContext:
        """Return the context of one attempt."""
        node_id = runtime.values.program.topology.ids[node]
        return FlowContext(
            node_id, self.execution_id, runtime.values.prefix + node_id, attempt, self.chat_id,
            self.state, runtime, self.services, budget=self.budget,
        )  # fmt: skip
