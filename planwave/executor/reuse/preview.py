"""Which results a fork would reuse, as far as that is known before it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from planwave.executor.node_api.host import NodeHost
from planwave.executor.node_api.nested import create_graph_run
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.executor.reuse.result_key import ReadonlyRuntime
from planwave.executor.reuse.reuse import Reuse, result_to_reuse
from planwave.executor.scheduling.types import Decisions, NodeStatus
from planwave.executor.state import Attempt, GraphRun
from planwave.executor.stored_runs import NO_ONCE_VALUES
from planwave.graph.model import Json


class ReusePreview(NamedTuple):
    """The nodes of a fork by what it would do with them, each list in graph order.

    Nodes that are settled with inputs, that are only linked, or that a branch leaves out are in none.

    Attributes:
        reused: Ids of nodes whose results are reused, or set by the fork.
        runs: Ids of nodes that run.
        undecided: Ids of nodes that run, are reused or are left out, by what the nodes before them
            give, or by what links give them.
    """

    reused: Sequence[str]
    runs: Sequence[str]
    undecided: Sequence[str]


async def preview_of(
    program: Program,
    host: NodeHost,
    options: RunOptions,
    inputs: Mapping[str, Mapping[str, Json]] | None,
    reuse: Reuse | None,
) -> ReusePreview:
    """Return which nodes a fork would reuse and which it would run.

    The schedule of the fork is given the results that can be reused; no node runs, and nothing that is
    linked is made. In which order nodes start does not matter for that, so no wave is waited for.

    Args:
        program: The graph of the fork.
        host: The services of its nodes.
        options: How it runs.
        inputs: Its inputs.
        reuse: The results of its parent; None reuses nothing.
    """
    graph_run = create_graph_run(program, host, replace(options, scheduling="eager"), inputs)
    graph_run.parent_runs = () if reuse is None else reuse.own_runs
    graph_run.runtime = ReadonlyRuntime(graph_run.values, 0, host, NO_ONCE_VALUES)
    reused: set[int] = set()
    decisions = graph_run.schedule.start()
    while decisions.starts:
        reused |= await _reused_of(graph_run, decisions, host, reuse)
        decisions = graph_run.schedule.decide()
    status, ids = graph_run.schedule.status, program.topology.ids
    started = {n for n, each in enumerate(status) if each is NodeStatus.RUNNING}
    undecided = {n for n in started if _is_made_of_links(program, n)}
    undecided |= {
        n
        for n, each in enumerate(status)
        if each < NodeStatus.RUNNING and not program.topology.linked[n]
    }
    lists = (reused, started - undecided, undecided)
    return ReusePreview(*([ids[n] for n in sorted(each)] for each in lists))


async def _reused_of(
    graph_run: GraphRun, decisions: Decisions, host: NodeHost, reuse: Reuse | None
) -> set[int]:
    """Settle those of some nodes that may start whose results can be reused; return them."""
    reused: set[int] = set()
    for node, via in decisions.starts:
        if via is not None:
            graph_run.join_winners[node] = via
        attempt = graph_run.attempts[node] = Attempt(graph_run, node, 1)
        result = None if reuse is None else await result_to_reuse(reuse, attempt, host)
        if result is not None:
            graph_run.outputs[node] = result.outputs
            graph_run.schedule.completed(node, result.outputs)
            reused.add(node)
    return reused


def _is_made_of_links(program: Program, node: int) -> bool:
    """Return whether what a node depends on is known only once what is linked to it is made."""
    return node in program.dependent and len(program.linked_into(node)) > 1
