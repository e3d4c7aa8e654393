"""Values in one graph run: the outputs of its nodes, what arrived at a node, the names of expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from planwave.executor.program import Program
from planwave.expressions import FLOW_INPUTS
from planwave.graph.model import Arrival, Json
from planwave.graph.outputs import Outputs
from planwave.graph.protocols import WrittenBy

_NO_VARIABLES: Final[Mapping[str, Json]] = {}


class GraphValues:
    """The values of one graph run; the driver sets them, and nodes read them.

    Attributes:
        program: The graph.
        prefix: Goes before the ids of its nodes in their paths.
        variables: Names that its expressions may use besides inputs, including those of the graphs
            around it.
        outputs: The outputs of each node, None for a node that has none.
        join_winners: The edges that won ``join: any``, by node.
        written_by: Who wrote the graph, if no person did.
    """

    __slots__ = ("join_winners", "outputs", "prefix", "program", "variables", "written_by")

    def __init__(
        self,
        program: Program,
        prefix: str = "",
        variables: Mapping[str, Json] = _NO_VARIABLES,
        written_by: WrittenBy | None = None,
    ) -> None:
        self.program, self.prefix, self.variables = program, prefix, variables
        self.written_by = written_by
        self.outputs: list[Outputs | None] = [None] * len(program.steps)
        self.join_winners: dict[int, int] = {}

    def number_of(self, path: str) -> int:
        """Return the number of a node of this run by its path.

        The number of an attempt is another one where the graph was changed while its node ran.
        """
        return self.program.topology.index[path[len(self.prefix) :]]

    def task_of(self, node: int) -> str:
        """Return the task of a node, with the inputs of the flow in place of their names.

        Raises:
            TemplateError: An input has no value.
        """
        step = self.program.steps[node]
        if step.task is None:
            return step.node.description
        return step.task.render(cast("Mapping[str, Json]", self.variables.get(FLOW_INPUTS, {})))

    def arrivals_at(self, node: int) -> tuple[Arrival, ...]:
        """Return what reached a node so far, in edge order; of ``join: any``, only the winner's."""
        program, outputs = self.program, self.outputs
        graph, sources = program.graph, program.topology.sources
        edges, nodes = graph.edges, graph.nodes
        incoming = program.flow_edges_into[node]
        if self.join_winners and node in self.join_winners:
            incoming = [self.join_winners[node]]
        arrivals: list[Arrival] = []
        for number in incoming:
            source = sources[number]
            of_source = outputs[source]
            if of_source is None:
                continue
            edge_id, source_id, handle, _, target_handle, _, _, _ = edges[number]
            value = of_source.get(handle)
            if value is not None:
                source_name = nodes[source].name
                arrivals.append(
                    Arrival(edge_id, source_id, source_name, handle, target_handle, value)
                )
        return tuple(arrivals)
