"""Hashes of everything a node's result depends on.

Two runs of a node with the same key and the same dependencies are entitled to the same result, so a
fork reuses the results that its parent has paid for. The key follows from what is stored of an
execution, and is never computed in a normal run. The dependencies that a type declares are looked up
outside (files, settings, the models and tools there are), so they are stored with the result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

from planwave.errors import PermanentError
from planwave.executor.node_api.host import NodeHost
from planwave.executor.node_api.runtime import GraphLookups
from planwave.executor.program import BoundNode
from planwave.executor.state import Attempt
from planwave.executor.stored_runs import NO_ONCE_VALUES, OF_GRAPH, HowMade
from planwave.executor.values import GraphValues
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Graph, Json
from planwave.graph.plan import canonical_json
from planwave.graph.protocols import FlowContext, ReusableResult, RuntimeApi, WrittenBy

_GOAL: Final = "goal"


async def result_key(
    host: NodeHost, values: GraphValues, node: int, how_made: HowMade | None = None
) -> str:
    """Return the key of the result that a node has, or would have, with its current inputs.

    The key covers the node's type and its version, the task (``description``), the data with
    expressions resolved, the arrivals (input, source and value), the goal if the type reads it, and
    the same for every link dependency, direct and indirect. Names in a template (``goal``, ``trigger``,
    earlier nodes) count with their values. Names and positions that the node cannot see, and its
    policy, do not count. O(size of all this).

    Args:
        host: The services of the execution's nodes.
        values: The settled outputs, and the winners of ``join: any``.
        node: Number of the node; its sources are settled.
        how_made: The origin of the node's stored result; None for a result it would produce now.

    Returns:
        A SHA-256, in hexadecimal.

    Raises:
        PlanwaveError: An expression cannot be resolved; no result can be reused then.
    """
    of_node = _KeyParts(host, values, how_made)
    program = values.program
    for each in program.linked_into(node):
        of_node.digests[program.topology.ids[each]] = _digest(await of_node.parts_of(each))
    return of_node.digests[program.topology.ids[node]]


class LinkFailed(Exception):
    """Making what is linked to a node failed with ``error``, as it would when the node runs."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


async def dependencies(host: NodeHost, attempt: Attempt) -> str | None:
    """Return the hash of what the types say that a node's result depends on besides its key.

    That are the type of the node and those of all that is linked to it (see
    ``graph.protocols.ReusableResult``). A linked node that runs by itself stores its own.

    Returns:
        A SHA-256, in hexadecimal, after ``OF_GRAPH`` where nothing outside of the graph and its
        variables counts; None where no type declares anything.

    Raises:
        LinkFailed: What is linked to the node cannot be made.
        Exception: A type cannot name its dependencies.
    """
    graph_run = attempt.graph_run
    program, values = graph_run.program, graph_run.values
    own_values = NO_ONCE_VALUES if attempt.node_run is None else attempt.node_run.once_values
    by_node: dict[str, Json] = {}
    prefix = OF_GRAPH
    for node in program.linked_into(attempt.node) if attempt.node in program.dependent else ():
        step, is_own = program.steps[node], node == attempt.node
        if not isinstance(step.implementation, ReusableResult) or (
            step.facts.materializes_unresolved and not is_own
        ):
            continue
        prefix = "" if step.facts.depends_outside else prefix
        inputs = Inputs(values.arrivals_at(node))
        once_values = own_values if is_own else NO_ONCE_VALUES
        runtime = ReadonlyRuntime(values, node, host, once_values, graph_run.runtime)
        path = values.prefix + step.node.id
        context = FlowContext(step.node.id, "", path, 1, None, None, runtime, host.services)
        try:
            data = await host.resolve_data(values, node, inputs)
            by_node[step.node.id] = await step.implementation.result_depends_on(
                data, inputs, context
            )
        except Exception as error:
            if runtime.link_error is not None:
                raise LinkFailed(runtime.link_error) from error
            raise
    return prefix + _digest(by_node) if by_node else None


class ReadonlyRuntime(GraphLookups):
    """Satisfies ``graph.protocols.RuntimeApi`` for one node that is not run: it looks around, and does nothing.

    A type is given it to say what its results follow from.

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
        host: NodeHost,
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

    async def open_once(
        self, key: str, make: Callable[[], AbstractAsyncContextManager[object]]
    ) -> object:
        """Refuse: nothing is opened."""
        raise self._not_running_error(f"open {key!r}")

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


class _KeyParts:
    """The key parts of the nodes of one graph.

    Attributes:
        digests: The digests computed so far, by node id.
    """

    def __init__(self, host: NodeHost, values: GraphValues, how_made: HowMade | None) -> None:
        self._host, self._values, self._how_made = host, values, how_made
        self.digests: dict[str, str] = {}

    async def parts_of(self, node: int) -> dict[str, Json]:
        """Return the key parts of one node; requires the digests of its link dependencies."""
        host, values, program = self._host, self._values, self._values.program
        step, arrivals = program.steps[node], values.arrivals_at(node)
        inputs = Inputs(arrivals)
        data = await host.resolve_data(values, node, inputs)
        facts: dict[str, Json] = {
            "type": step.node.type,
            "version": self._version(step),
            "description": values.task_of(node),
            "data": data,
            # The socket type is left out: an input value from outside the graph has no socket type.
            "arrivals": [
                [a.target_handle, a.source_id, a.source_name, _digest(a.value.value)]
                for a in arrivals
            ],
            "links": [
                [e.target_handle, e.source, e.source_handle, self.digests[e.source]]
                for e in program.links_into(node)
            ],
        }
        if step.facts.reads_goal:
            facts[_GOAL] = values.variables.get(_GOAL)
        return facts

    def _version(self, step: BoundNode) -> int:
        if self._how_made is None or self._how_made.type_versions is None:
            return step.facts.version
        return self._how_made.type_versions.get(step.node.type, 1)


def _digest(value: Json) -> str:
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()
