"""A graph as one node's check sees it: its wires, and what lies before it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from planwave.expressions import VariableRef
from planwave.graph.model import FLOW, Edge, Graph, Node
from planwave.graph.protocols import NodeTypeInfo
from planwave.graph.suggestions import closest_match
from planwave.graph.topology import materialized_ids
from planwave.providers.protocols import ModelProfile

if TYPE_CHECKING:
    from planwave.nodes.agents.tool_registry import ToolRegistry
    from planwave.nodes.spec import RegisteredType

_MAX_WALK_STEPS = 2_000_000
"""How many edges all ancestor walks of one graph may follow together (about a second). Past that a
reference counts as good; the run itself still refuses one that is not an ancestor."""
_MAX_SUGGESTIONS = 20
"""How many misspelt ids of one graph get a guess; each costs a comparison with every id."""


class GraphIndex:
    """The parts of one graph that the checks of its nodes read.

    ``specs`` are the node types by name, ``names`` the variables of its expressions besides inputs,
    ``inputs`` the inputs of the flow, which tasks may name too,
    ``tools`` the tools that nodes may name, ``secrets`` the names of secrets that have a value,
    ``mcp_servers`` those of MCP servers, ``redirect_hosts`` the hosts that answers may redirect to; None where
    that is not known.
    """

    def __init__(
        self,
        graph: Graph,
        specs: Mapping[str, RegisteredType],
        names: Sequence[str] = (),
        inputs: Sequence[str] = (),
        *,
        tools: ToolRegistry | None = None,
        secrets: Collection[str] | None = None,
        mcp_servers: Sequence[str] | None = None,
        redirect_hosts: Collection[str] | None = None,
    ) -> None:
        # Keep parts of the graph, not the graph: the index is cached by a weak reference to it.
        self.by_id, self.incoming, self.outgoing = graph.by_id, graph.incoming, graph.outgoing
        self._linked = materialized_ids(graph)
        self._specs = specs
        self.inputs = inputs
        self.variable_names = (*names, *inputs)
        self.mcp_servers, self.redirect_hosts = mcp_servers, redirect_hosts
        self.tools, self.secrets = tools, secrets
        self._steps_left = _MAX_WALK_STEPS
        self._suggestions_left = _MAX_SUGGESTIONS

    def type_info_of(self, node_id: str) -> NodeTypeInfo | None:
        """Return the type of a node; None if nothing is known of the node or its type."""
        node = self.by_id.get(node_id)
        return None if node is None else self.type_info_by_name(node.type)

    def spec_of(self, node_id: str) -> RegisteredType | None:
        """Return the registered type of a node; None if the node or its type is unknown."""
        node = self.by_id.get(node_id)
        return None if node is None else self._specs.get(node.type)

    def type_info_by_name(self, node_type: str) -> NodeTypeInfo | None:
        """Return a type by name; None if there is none, or it stands in for one that is not known."""
        spec = self._specs.get(node_type)
        return None if spec is None or spec.type_info.stands_in else spec.type_info

    def tool_names_of(self, node_id: str) -> Sequence[str]:
        """Return the names of the tools that a node gives, as far as its data show them."""
        node, spec = self.by_id.get(node_id), self.spec_of(node_id)
        names = None if spec is None else getattr(spec.implementation, "tool_names", None)
        return () if node is None or names is None else names(node.data)

    def is_ancestor(self, candidate: str, node_id: str) -> bool:
        """Return whether edges lead from one node to another; the search visits the nearest nodes first.

        A linked node (never executed) is not an ancestor, but the sources of its flow edges are
        ancestors of its consumers.
        """
        incoming = self.incoming
        seen = {node_id}
        queue = [node_id]
        for current in queue:
            for edge in incoming.get(current, ()):
                if edge.channel == FLOW:
                    if edge.source == candidate:
                        return True
                elif edge.source not in self._linked:
                    continue
                if edge.source not in seen:
                    seen.add(edge.source)
                    queue.append(edge.source)
            self._steps_left -= len(incoming.get(current, ()))
            if self._steps_left < 0:
                return True
        return False

    def closest_id(self, node_id: str) -> str | None:
        """Guess which node was meant; None without a close one, or after too many guesses."""
        self._suggestions_left -= 1
        return closest_match(node_id, self.by_id) if self._suggestions_left >= 0 else None


class CheckedModel(NamedTuple):
    """A known model that a node may call.

    Attributes:
        pointer: Where the node's data name it; empty for one of a linked node.
        what: What it is to the node, for messages.
        profile: What it can do.
    """

    pointer: str
    what: str
    profile: ModelProfile


class NodeView:
    """One node and its edges, as its type sees them.

    Attributes:
        models: The known models that it may call, its own first, then its fallbacks.
        references: The references of the templates in its data.
    """

    __slots__ = ("index", "models", "node", "references")

    def __init__(self, node: Node, index: GraphIndex) -> None:
        self.node = node
        self.index = index
        self.models: list[CheckedModel] = []
        self.references: Sequence[VariableRef] = ()

    def add_model(self, pointer: str, what: str, profile: ModelProfile | None) -> None:
        """Add a model that the node may call, if it is known."""
        if profile is not None:
            self.models.append(CheckedModel(pointer, what, profile))

    @property
    def incoming(self) -> Sequence[Edge]:
        """Edges into the node, in graph order."""
        return self.index.incoming.get(self.node.id, ())

    @property
    def outgoing(self) -> Sequence[Edge]:
        """Edges out of the node, in graph order."""
        return self.index.outgoing.get(self.node.id, ())

    @property
    def mcp_servers(self) -> Sequence[str] | None:
        """The names of the operator's MCP servers; None where they are not known."""
        return self.index.mcp_servers

    def is_wired(self, handle: str) -> bool:
        """Return whether an edge of either channel leads into a handle."""
        return any(edge.target_handle == handle for edge in self.incoming)
