"""Hash of everything a node's result depends on.

Two runs of a node with the same key are entitled to the same result, so a fork reuses the results
that its parent has paid for. Never computed in a normal run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from planwave.executor.node_api.readonly import ReadonlyRuntime
from planwave.executor.node_api.runtime import GraphRuntime
from planwave.executor.node_api.templates import resolve_data
from planwave.executor.program import BoundNode
from planwave.executor.state import NO_ONCE_VALUES, HowMade
from planwave.graph.inputs import Inputs
from planwave.graph.model import Json
from planwave.graph.plan import canonical_json
from planwave.graph.protocols import FlowContext, ReusableResult

_GOAL: Final = "goal"


async def result_key(
    runtime: GraphRuntime,
    node: int,
    variables: Mapping[str, Json],
    renderer: Any,
    *,
    services: Any = None,
    how_made: HowMade | None = None,
) -> str:
    """Return the key of the result that a node has, or would have, with its current inputs.

    The key covers the node's type and its version, the task (``description``), the data with
    expressions resolved, the arrivals (input, source and value), the goal if the type reads it, the
    further dependencies that the type declares (see ``graph.capabilities.ReusableResult``), and the
    same for every link dependency, direct and indirect. Names in a template (``goal``, ``trigger``,
    earlier nodes) count with their values. Names and positions that the node cannot see, and its
    policy, do not count. O(size of all this).

    Args:
        runtime: Holds the outputs that were settled, and the winners of ``join: any``.
        node: Number of the node; its sources are settled.
        variables: Names that expressions may use besides inputs, as in the execution.
        renderer: Renders expressions that are more than plain paths.
        services: The ``context.services`` of the type.
        how_made: The origin of the node's stored result; None for a result it would produce now.

    Returns:
        A SHA-256, in hexadecimal.

    Raises:
        PlanwaveError: An expression cannot be resolved, or the type cannot name its dependencies;
            no result can be reused then.
    """
    of_node = _KeyParts(runtime, variables, renderer, services, how_made)
    program = runtime.program
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

    def __init__(
        self,
        runtime: GraphRuntime,
        variables: Mapping[str, Json],
        renderer: Any,
        services: Any,
        how_made: HowMade | None,
    ) -> None:
        self._runtime, self._variables = runtime, variables
        self._renderer, self._services, self._how_made = renderer, services, how_made
        self.digests: dict[str, str] = {}

    async def parts_of(self, node: int, once_values: Mapping[str, Json] | None) -> dict[str, Json]:
        """Return the key parts of one node; requires the digests of its link dependencies."""
        runtime, program = self._runtime, self._runtime.program
        step, arrivals = program.steps[node], runtime.arrivals_at(node)
        inputs = Inputs(arrivals)
        data = await resolve_data(program, node, runtime, inputs, self._variables, self._renderer)
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
            facts[_GOAL] = self._variables.get(_GOAL)
        if isinstance(step.implementation, ReusableResult):
            onlooker = ReadonlyRuntime(runtime, node, self._variables, self._renderer, once_values)
            path = runtime.prefix + step.node.id
            context = FlowContext(step.node.id, "", path, 1, None, None, onlooker, self._services)
            facts["besides"] = await step.implementation.result_depends_on(data, inputs, context)
        return facts

    def _version(self, step: BoundNode) -> int:
        if self._how_made is None or self._how_made.type_versions is None:
            return step.facts.version
        return self._how_made.type_versions.get(step.node.type, 1)


def _digest(value: Json) -> str:
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()
