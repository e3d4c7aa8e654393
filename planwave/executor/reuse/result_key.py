"""Hash of everything a node's result depends on.

Two runs of a node with the same key are entitled to the same result, so a fork reuses the results
that its parent has paid for. Never computed in a normal run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from planwave.executor.node_api.host import NodeHost
from planwave.executor.node_api.readonly import ReadonlyRuntime
from planwave.executor.program import BoundNode
from planwave.executor.state import NO_ONCE_VALUES, HowMade
from planwave.executor.values import GraphValues
from planwave.graph.inputs import Inputs
from planwave.graph.model import Json
from planwave.graph.plan import canonical_json
from planwave.graph.protocols import FlowContext, ReusableResult

_GOAL: Final = "goal"


async def result_key(
    host: NodeHost, values: GraphValues, node: int, how_made: HowMade | None = None
) -> str:
    """Return the key of the result that a node has, or would have, with its current inputs.

    The key covers the node's type and its version, the task (``description``), the data with
    expressions resolved, the arrivals (input, source and value), the goal if the type reads it, the
    further dependencies that the type declares (see ``graph.protocols.ReusableResult``), and the
    same for every link dependency, direct and indirect. Names in a template (``goal``, ``trigger``,
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
        PlanwaveError: An expression cannot be resolved, or the type cannot name its dependencies;
            no result can be reused then.
    """
    of_node = _KeyParts(host, values, how_made)
    program = values.program
    for each in program.linked_into(node):
        kept = (
            None if how_made is None else how_made.once_values if each == node else NO_ONCE_VALUES
        )
        of_node.digests[program.topology.ids[each]] = _digest(await of_node.parts_of(each, kept))
    return of_node.digests[program.topology.ids[node]]


class _KeyParts:
    """The key parts of the nodes of one graph.

    Attributes:
        digests: The digests computed so far, by node id.
    """

    def __init__(self, host: NodeHost, values: GraphValues, how_made: HowMade | None) -> None:
        self._host, self._values, self._how_made = host, values, how_made
        self.digests: dict[str, str] = {}

    async def parts_of(self, node: int, once_values: Mapping[str, Json] | None) -> dict[str, Json]:
        """Return the key parts of one node; requires the digests of its link dependencies."""
        host, values, program = self._host, self._values, self._values.program
        step, arrivals = program.steps[node], values.arrivals_at(node)
        inputs = Inputs(arrivals)
        data = await host.resolve_data(values, node, inputs)
        facts: dict[str, Json] = {
            "type": step.node.type,
            "version": self._version(step),
            "description": step.node.description,
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
        if isinstance(step.implementation, ReusableResult):
            runtime = ReadonlyRuntime(values, node, host, once_values)
            path = values.prefix + step.node.id
            context = FlowContext(step.node.id, "", path, 1, None, None, runtime, host.services)
            facts["besides"] = await step.implementation.result_depends_on(data, inputs, context)
        return facts

    def _version(self, step: BoundNode) -> int:
        if self._how_made is None or self._how_made.type_versions is None:
            return step.facts.version
        return self._how_made.type_versions.get(step.node.type, 1)


def _digest(value: Json) -> str:
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()
