"""Capabilities: what a process can do for executions that others may not, and which of them an execution needs.

A carrier of several processes hands an execution only to processes that have what it needs, as far as that is known
before it runs: from the models that its steps name or use by default, those of nested graphs and of the flows that they
name included. What only a run shows is handed on by the process that lacks it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from planwave.errors import PlanwaveError
from planwave.graph.reading.documents import read_graph
from planwave.graph.subgraphs import all_nodes
from planwave.nodes.subgraphs import named_flow
from planwave.planner.cost_estimate import called_providers
from planwave.providers.protocols import EMBEDDED, Providers
from planwave.service.flows.flow_references import startable_flow

if TYPE_CHECKING:
    from planwave.graph.model import Graph
    from planwave.graph.protocols import NodeTypes
    from planwave.service.flows.flow_references import FlowLookup

_MOST_FLOWS = 50
"""Flows that are read to find what an execution needs."""


async def needed_capability(
    graph: Graph, catalogue: NodeTypes, providers: Providers, flows: FlowLookup
) -> str | None:
    """Return the capability that a process needs to drive a graph; None where any process can.

    There is one: ``local``, the embedded model can be run.

    Args:
        graph: A graph without errors.
        catalogue: The node types.
        providers: Choose the model of each step.
        flows: Where the flows are that nodes name.
    """
    graphs, seen = [graph], set[str]()
    while graphs:
        following = graphs.pop()
        if EMBEDDED in called_providers(following, catalogue, providers):
            return EMBEDDED
        for _, node in all_nodes(following, catalogue):
            flow = named_flow(node, catalogue)
            name = "" if flow is None else flow.model_dump_json()
            if flow is None or name in seen or len(seen) >= _MOST_FLOWS:
                continue
            seen.add(name)
            with suppress(PlanwaveError):  # the run says what is wrong with it
                found = await startable_flow(flow, flows)
                graphs.append(read_graph(found.graph)[0])
    return None
