"""The result of an execution: the value that its graph gives, as a nested run of it would."""

from __future__ import annotations

from planwave.events import ExecutionState
from planwave.graph.model import Json
from planwave.graph.outputs import outputs_from_json
from planwave.graph.protocols import Catalogue
from planwave.graph.reading.documents import read_graph
from planwave.nodes.subgraphs import prepare


def result_value(state: ExecutionState, catalogue: Catalogue) -> Json:
    """Return the value of the ``end`` node, or else of the only last node.

    Several completed ones give an object by node id, none gives null.

    Raises:
        GraphInvalid: The stored graph cannot be read.
    """
    if state.graph is None:
        return None
    graph, _ = read_graph({"nodes": state.graph["nodes"], "edges": state.graph["edges"]})
    outputs = {
        node.id: outputs_from_json(own.outputs)
        for node in graph.nodes
        if (own := state.nodes.get(node.id)) is not None
        and own.status == "completed"
        and own.outputs
    }
    return prepare(graph, catalogue).result(outputs).value
