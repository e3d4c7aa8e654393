"""The inputs of a flow by name: what its tasks, its goal and the templates in its data may name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from planwave.graph.model import DEFAULT_TARGET_HANDLE, Graph
from planwave.graph.protocols import DeclaresInputs, NodeTypes


class FlowInputs(NamedTuple):
    """Where the inputs of a graph come from.

    Attributes:
        fields: By the id of an entry node, the names of the fields that it declares.
        whole: The only entry node, where it declares no fields: ``input`` is what it is given.
    """

    fields: Mapping[str, tuple[str, ...]]
    whole: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all inputs."""
        declared = dict.fromkeys(name for names in self.fields.values() for name in names)
        return (*declared, *(() if self.whole is None else (DEFAULT_TARGET_HANDLE,)))

    @property
    def goal_names(self) -> tuple[str, ...] | None:
        """The names that the goal may use; None where it is plain text, as nothing declares a field."""
        return self.names if self.fields else None


NO_INPUTS = FlowInputs({})


def flow_inputs_of(graph: Graph, catalogue: NodeTypes) -> FlowInputs:
    """Return the inputs that a graph declares; a node of an unknown type declares none."""
    entries: list[str] = []
    fields: dict[str, tuple[str, ...]] = {}
    for node in graph.nodes:
        facts = catalogue.type_info(node.type)
        if facts is None or not facts.entry:
            continue
        entries.append(node.id)
        if not node.data:
            continue  # it declares nothing
        implementation = catalogue.implementation(node.type)
        if isinstance(implementation, DeclaresInputs) and (
            names := implementation.input_fields(node.data)
        ):
            fields[node.id] = tuple(names)
    if len(entries) == 1 and not fields:
        return FlowInputs({}, entries[0])
    return FlowInputs(fields) if fields else NO_INPUTS
