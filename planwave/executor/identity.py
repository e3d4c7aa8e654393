"""What a node's result follows from, as one text: the identity of the result.

Two runs of a node with the same key have the same right to its result, so a fork takes over what
the execution before it has paid for. Never worked out in a normal run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from planwave.executor.attempt import resolved_data
from planwave.executor.runtime import Runtime
from planwave.graph.model import LINK, Edge, Json
from planwave.graph.plan import canonical_json
from planwave.graph.values import Inputs

_GOAL: Final = "goal"


async def result_key(
    runtime: Runtime, node: int, variables: Mapping[str, Json], renderer: Any
) -> str:
    """Give the identity of the result a node has, or would have, with what has reached it by now.

    It covers the node's type, the type's version, the task (``description``), the data with their
    expressions resolved, what arrived (input, source, and value), the goal where the type reads it,
    and the same of everything linked in, links of links included. What a template names (``goal``,
    ``trigger``, earlier nodes) counts by what it comes to. Names and positions that the node cannot
    see do not count; neither does its policy. O(size of all this).

    Args:
        runtime: Holds the outputs that were settled, and the winners of ``join: any``.
        node: Number of the node; what it needs is settled.
        variables: What expressions see besides inputs, as the execution has it.
        renderer: Renders what plain paths cannot.

    Returns:
        A SHA-256, in hexadecimal.

    Raises:
        TemplateError: An expression cannot be resolved: there is no result to take over.
    """
    signed: dict[int, str] = {}
    for each in _innermost_first(runtime, node):
        signed[each] = _digest(await _facts_of(runtime, each, variables, renderer, signed))
    return signed[node]


async def _facts_of(
    runtime: Runtime,
    node: int,
    variables: Mapping[str, Json],
    renderer: Any,
    signed: Mapping[int, str],
) -> dict[str, Json]:
    program = runtime.program
    step, index = program.steps[node], program.topology.index
    arrivals = runtime.arrivals_at(node)
    facts: dict[str, Json] = {
        "type": step.node.type,
        "version": step.facts.version,
        "description": step.node.description,
        "data": await resolved_data(program, node, runtime, Inputs(arrivals), variables, renderer),
        # Not the socket type: a value that is given from outside has none of its own.
        "arrivals": [
            [a.target_handle, a.source_id, a.source_name, _digest(a.value.value)] for a in arrivals
        ],
        "links": [
            [e.target_handle, e.source, e.source_handle, signed[index[e.source]]]
            for e in _links_into(runtime, node)
        ],
    }
    if step.facts.reads_goal:
        facts[_GOAL] = variables.get(_GOAL)
    return facts


def _links_into(runtime: Runtime, node: int) -> list[Edge]:
    return [edge for edge in runtime.program.edges_of(node)[0] if edge.channel == LINK]


def _innermost_first(runtime: Runtime, node: int) -> list[int]:
    """Give a node and all that is linked into it, each after what is linked into that."""
    index = runtime.program.topology.index
    found: list[int] = []
    begun: set[int] = set()
    stack = [(node, False)]
    while stack:
        each, is_ready = stack.pop()
        if is_ready:
            found.append(each)
        elif each not in begun:
            begun.add(each)
            stack.append((each, True))
            stack += [(index[edge.source], False) for edge in _links_into(runtime, each)]
    return found


def _digest(value: Json) -> str:
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()
