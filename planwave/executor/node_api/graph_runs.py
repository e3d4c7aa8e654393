"""Creation of graph runs: a program with its preset nodes, a new schedule and a runtime."""

from __future__ import annotations

from collections.abc import Mapping

from planwave.executor.inputs import plan_inputs
from planwave.executor.node_api.runtime import GraphRuntime, Host
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.executor.scheduling.schedule import Schedule
from planwave.executor.state import GraphRun
from planwave.executor.values import GraphValues
from planwave.graph.model import DataValue, Json
from planwave.graph.protocols import WrittenBy


def create_graph_run(
    program: Program,
    host: Host,
    options: RunOptions,
    inputs: Mapping[str, Mapping[str, Json]] | None,
    prefix: str = "",
    variables: Mapping[str, Json] | None = None,
    written_by: WrittenBy | None = None,
) -> GraphRun:
    """Create the run of an execution's own graph, or of one nested in a node.

    Args:
        program: The graph to run.
        host: The services of the execution's nodes.
        options: Scheduling and failure policy; for the execution's own graph, also its part.
        inputs: ``{node_id: {handle: value}}``: nodes settled with these values.
        prefix: Goes before the ids of nested nodes in their paths.
        variables: Names for expressions of a nested graph; None for those of the execution.
        written_by: Who wrote the graph, if no person did.
    """
    # Node ids of options are those of the execution's own graph.
    entry = plan_inputs(program, inputs, RunOptions() if prefix else options)
    names = host.variables if variables is None else variables
    values = GraphValues(program, prefix, names, written_by)
    for node, preset in entry.preset.items():
        values.outputs[node] = {h: DataValue("any", v) for h, v in preset.items()}
    schedule = Schedule(
        program.topology,
        program.scheduling_rules(options),
        preset={node: preset.keys() for node, preset in entry.preset.items()},
        part=entry.part,
        dropped=entry.dropped,
    )
    return GraphRun(values, schedule, GraphRuntime(values, host))
