"""A graph made ready to run: integers for the kernel, one prepared step for each node."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from planwave.errors import InputError
from planwave.executor.options import RunOptions
from planwave.executor.scheduling.types import SchedulingRules
from planwave.expressions import TaskTemplate, Template, compile_task, compile_template
from planwave.graph.flow_inputs import NO_INPUTS, flow_inputs_of
from planwave.graph.model import FLOW, LINK, Edge, Graph, Node
from planwave.graph.ports import fixed_outputs
from planwave.graph.protocols import NodeTypeInfo, NodeTypes, ReusableResult, strongest_effect
from planwave.graph.subgraphs import effects_of
from planwave.graph.suggestions import LOAD_OWN_TYPE
from planwave.graph.topology import topology_of

_CHANGES: Final = ("write", "once")
"""The effects that change something outside."""


class BoundType(NamedTuple):
    """One node type of a graph."""

    facts: NodeTypeInfo
    implementation: Any
    handles: frozenset[str]
    """The outputs with a fixed name; ``ports.has_output`` knows the others."""


@dataclass(slots=True)  # read several times a node, where a named tuple is slow
class BoundNode:
    """One node with the parts of its type, looked up once; treat as immutable.

    Attributes:
        template: The expressions in ``node.data``, or None if there are none.
        handles: The outputs with a fixed name, as in ``BoundType``.
        task: Its description, compiled; None for one without braces.
    """

    node: Node
    facts: NodeTypeInfo
    implementation: Any
    template: Template | None
    handles: frozenset[str]
    task: TaskTemplate | None = None


class Program:
    """A checked graph bound to a catalogue; immutable and shared by concurrent executions.

    Args:
        graph: A graph without error diagnostics.
        catalogue: The node types.
        has_entries: Whether inputs may choose among its entry nodes.

    Attributes:
        types: The node types of the graph by name.
        dependent: Nodes whose type, or a type that is linked to them, declares what results depend on.
        disposable: Nodes without a side effect to come, in themselves, in graphs inside them, and in
            what is linked to them; none where no node has ``join: any``.
        versions: ``{type name: version}`` of the types whose version is not 1.
        inputs: The inputs of the flow by name.

    Raises:
        InputError: A node's type is unknown.
        TemplateError: An expression cannot be parsed.
    """

    def __init__(self, graph: Graph, catalogue: NodeTypes, *, has_entries: bool = True) -> None:
        self.graph = graph
        self.catalogue = catalogue
        self.types: dict[str, BoundType] = {}
        self.steps = [self._bind_node(node) for node in graph.nodes]
        kinds = self.types.items()
        passive = self._nodes_of(name for name, kind in kinds if not kind.facts.executes)
        self.topology = topology_of(graph, {graph.nodes[i].id for i in passive})
        self.entry_nodes = frozenset(
            self._nodes_of(name for name, kind in kinds if has_entries and kind.facts.entry)
        )
        self.inputs = flow_inputs_of(graph, catalogue) if self.entry_nodes else NO_INPUTS
        self.join_any = frozenset(
            i for i, s in enumerate(self.steps) if s.node.policy.join == "any"
        )
        needy = {
            name: handles for name, kind in kinds if (handles := _required_handles(kind.facts))
        }
        self.required = {i: needy[graph.nodes[i].type] for i in self._nodes_of(needy)}
        self.flow_edges_into = self._flow_edges()
        self.dependent = self._with_link_users(
            self._nodes_of(
                n for n, kind in kinds if isinstance(kind.implementation, ReusableResult)
            )
        )
        self.disposable = self._without_effects() if self.join_any else frozenset[int]()
        self.has_timeouts = any(s.node.policy.timeout_s is not None for s in self.steps)
        self.versions = {n: kind.facts.version for n, kind in kinds if kind.facts.version != 1}

    def scheduling_rules(self, options: RunOptions) -> SchedulingRules:
        """Return the kernel's scheduling rules for some options."""
        return SchedulingRules(
            self.join_any,
            self.required,
            barrier=options.scheduling == "waves",
            stop_on_failure=options.on_failure == "stop",
            disposable=self.disposable.difference(map(self.topology.index.get, options.run_to)),
        )

    def ancestors(self, node: int) -> frozenset[int]:
        """Return the ancestors of a node along effective edges."""
        return frozenset(self.walk({node}, forward=False) - {node})

    def linked_into(self, node: int) -> list[int]:
        """Return a node and its link dependencies, direct and indirect, dependencies first."""
        members: list[int] = []
        begun: set[int] = set()
        stack = [(node, False)]
        while stack:
            each, is_ready = stack.pop()
            if is_ready:
                members.append(each)
            elif each not in begun:
                begun.add(each)
                stack.append((each, True))
                stack += [(self.topology.index[e.source], False) for e in self.links_into(each)]
        return members

    def links_into(self, node: int) -> list[Edge]:
        """Return the link edges into a node, in graph order."""
        incoming = self.graph.incoming.get(self.topology.ids[node], ())
        return [edge for edge in incoming if edge.channel == LINK]

    def type_versions(self, node: int) -> dict[str, int]:
        """Return the entries of ``versions`` that a node's result depends on."""
        if not self.versions:
            return {}
        types = [self.steps[each].node.type for each in self.linked_into(node)]
        return {each: self.versions[each] for each in types if each in self.versions}

    def walk(
        self, starts: Collection[int], *, forward: bool, stops: Collection[int] = ()
    ) -> set[int]:
        """Return some nodes with their descendants or ancestors along effective edges.

        The walk includes the nodes of ``stops`` but does not continue past them.
        """
        topology = self.topology
        ends = topology.targets if forward else topology.sources
        edges = topology.outgoing if forward else topology.incoming
        seen, stack = set(starts), list(starts)
        while stack:
            node = stack.pop()
            for edge in () if node in stops else edges[node]:
                if ends[edge] not in seen:
                    seen.add(ends[edge])
                    stack.append(ends[edge])
        return seen

    def _without_effects(self) -> frozenset[int]:
        """Return the nodes that change nothing outside, whatever they still do."""
        changing = [
            number
            for number, step in enumerate(self.steps)
            if strongest_effect(effects_of(step.node, self.graph, self.catalogue)) in _CHANGES
        ]
        return frozenset(range(len(self.steps))) - self._with_link_users(changing)

    def _with_link_users(self, nodes: Iterable[int]) -> frozenset[int]:
        """Return some nodes, and those that they are linked to, directly or not."""
        stack = list(nodes)
        members, index = set(stack), self.topology.index
        while stack:
            for edge in self.graph.outgoing.get(self.topology.ids[stack.pop()], ()):
                user = index[edge.target]
                if edge.channel == LINK and user not in members:
                    members.add(user)
                    stack.append(user)
        return frozenset(members)

    def _flow_edges(self) -> list[list[int]]:
        """Return the flow edges into each node, in edge order; arrivals come along these."""
        incoming = self.topology.incoming
        if True not in self.topology.linked:
            return incoming
        edges = self.graph.edges
        return [[e for e in numbers if edges[e].channel == FLOW] for numbers in incoming]

    def _nodes_of(self, types: Iterable[str]) -> list[int]:
        """Return the nodes of some types."""
        names = {*types}
        return [i for i, node in enumerate(self.graph.nodes) if node.type in names] if names else []

    def _bind_node(self, node: Node) -> BoundNode:
        kind = self.types.get(node.type)
        if kind is None:
            kind = self.types[node.type] = _bind_type(node, self.catalogue)
        facts, implementation, handles = kind
        template = None
        if node.data:
            template = compile_template(dict(node.data), fields=facts.template_fields)
        task = compile_task(node.description) if node.description else None
        return BoundNode(node, facts, implementation, template, handles, task)


def _bind_type(node: Node, catalogue: NodeTypes) -> BoundType:
    facts = catalogue.type_info(node.type)
    if facts is None:
        raise InputError(
            f"node {node.id!r} has the unknown type {node.type!r}; "
            f"known types are {', '.join(catalogue.names())}",
            code="unknown-node-type",
            hint=f"use one of the known types; {LOAD_OWN_TYPE}",
        )
    return BoundType(facts, catalogue.implementation(node.type), fixed_outputs(facts))


def _required_handles(facts: NodeTypeInfo) -> frozenset[str]:
    return frozenset(p.name for p in facts.inputs if p.required and p.channel == FLOW)
