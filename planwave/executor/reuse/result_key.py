"""Hash of everything a node's result depends on.

Two runs of a node with the same key have the same right to its result, so a fork reuses what its parent
has paid for. Never computed in a normal run.
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
    """Give the identity of the result a node has, or would have, with what has reached it by now.

    It covers the node's type, the type's version, the task (``description``), the data with their
    expressions resolved, what arrived (input, source, and value), the goal where the type reads it,
    what the type itself says it follows from besides (see ``graph.capabilities.ReusableResult``), and the
    same of everything linked in, links of links included. What a template names (``goal``,
    ``trigger``, earlier nodes) counts by what it comes to. Names and positions that the node cannot
    see do not count; neither does its policy. O(size of all this).

    Args:
        runtime: Holds the outputs that were settled, and the winners of ``join: any``.
        node: Number of the node; what it needs is settled.
        variables: What expressions see besides inputs, as the execution has it.
        renderer: Renders what plain paths cannot.
        services: What the type finds as ``context.services``.
        how_made: How the node came to the result it has; None where it would come to it now.

    Returns:
        A SHA-256, in hexadecimal.

    Raises:
        PlanwaveError: An expression cannot be resolved, or the type cannot tell what it follows
            from: there is no result to take over.
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
    """Works out what the nodes of one graph follow from.

    Attributes:
        digests: The digests of those done, by id.
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
        """Give what one node follows from; what is linked into it is done."""
        runtime, program = self._runtime, self._runtime.program
        step, arrivals = program.steps[node], runtime.arrivals_at(node)
        inputs = Inputs(arrivals)
        data = await resolve_data(program, node, runtime, inputs, self._variables, self._renderer)
        facts: dict[str, Json] = {
            "type": step.node.type,
            "version": self._version(step),
            "description": step.node.description,
            "data": data,
            # Not the socket type: a value that is given from outside has none of its own.
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
