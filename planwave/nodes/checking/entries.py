"""Entry nodes that begin with nothing, because an execution brings no input for them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from planwave.expressions import compile_template
from planwave.graph.model import Edge, Graph
from planwave.graph.protocols import NodeTypes

_MODEL_INPUTS: Final = ("input", "inputs", "nodes", "PREVIOUS_OUTPUT")
_MAX_NODES: Final = 3


def entries_without_input(
    graph: Graph, catalogue: NodeTypes, input_ids: Collection[str]
) -> list[str]:
    """Return the ids of entry nodes whose value is read, and that have none.

    A node with ``data`` has its value there. Inputs for one entry node leave out the others.

    Args:
        graph: A graph without errors.
        catalogue: The node types; unknown ones are passed over.
        input_ids: The ids of the nodes that the execution has inputs for.
    """
    entries = [
        node.id
        for node in graph.nodes
        if (facts := catalogue.type_info(node.type)) is not None
        and facts.entry
        and getattr(catalogue.implementation(node.type), "expects_input", False)
    ]
    if any(each in input_ids for each in entries):
        return []
    return [
        node_id
        for node_id in entries
        if not graph.by_id[node_id].data
        and not graph.incoming.get(node_id)
        and any(_is_read(edge, graph, catalogue) for edge in graph.outgoing.get(node_id, ()))
    ][:_MAX_NODES]


def _is_read(edge: Edge, graph: Graph, catalogue: NodeTypes) -> bool:
    """Return whether the value of an edge is used: a model with a prompt may ignore it."""
    node = graph.by_id[edge.target]
    facts = catalogue.type_info(node.type)
    if facts is None or not getattr(catalogue.implementation(node.type), "calls_model", False):
        return True
    fields = facts.template_fields or ()
    # Beside a system prompt alone, the input is the prompt.
    if not any(node.data.get(name) for name in fields if name not in facts.plan_literals):
        return True
    template = compile_template(dict(node.data), fields=fields)
    names = (*_MODEL_INPUTS, edge.target_handle)
    return template is not None and any(use.root in names for use in template.references)
