"""The base class of node types that give tools to the nodes they are linked to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import Field, StringConstraints

from planwave.graph.model import LINK, Edge, Json, Node, Port
from planwave.graph.plan import canonical_json
from planwave.graph.protocols import NodeTypes
from planwave.nodes.agents.tool import TOOL, TOOLS_HANDLE, Approval
from planwave.nodes.agents.tool_names import LinkedName, first_duplicate, tool_name, unique_names
from planwave.nodes.agents.tool_registry import HasTools, ToolRegistry
from planwave.nodes.authoring.data_fields import POLICY
from planwave.nodes.authoring.node_type import LinkType, NodeFinding
from planwave.nodes.checking.node_view import NodeView

ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
"""A name that models may give a tool."""
ApprovalField = Annotated[
    Approval | None,
    Field(
        description="When a person approves a call: never, always, or write (where it may change "
        "something). The stricter of this and what the tool and the agent say holds.",
        json_schema_extra=POLICY,
    ),
]
TOOLS_OUTPUT: Final = Port(TOOLS_HANDLE, TOOL, channel=LINK)
_STRICTNESS: Final[tuple[Approval, ...]] = ("never", "write", "always")


class ToolNode(LinkType, ABC):
    """Base class of node types that give one tool or several.

    Its nodes are linked from ``tools`` into the handle ``tools`` of agents. ``make`` returns a
    ``Tool`` or a list of them.
    """

    inputs = ()
    outputs = (TOOLS_OUTPUT,)
    planned = False
    knows_tools = True
    """Whether ``tool_texts`` is all of it."""

    @abstractmethod
    def tool_names(self, data: Mapping[str, Json]) -> Sequence[str]:
        """Return the names of its tools, as far as the data of a node show them; never fails.

        Args:
            data: The data as written: perhaps incomplete, invalid, or templates.
        """

    def tool_texts(self, node: Node, catalogue: NodeTypes) -> Sequence[str]:
        """Return what a model reads of its tools, as far as it is known before a run.

        Args:
            node: A node of this type.
            catalogue: The node types, with the registered tools.
        """
        tools = catalogue.tools if isinstance(catalogue, HasTools) else ToolRegistry()
        entries = (tools.get(name) for name in self.tool_names(node.data))
        specs = [entry.tool.spec for entry in entries if entry is not None]
        return [canonical_json(dict(node.data)), *(text for spec in specs for text in spec.texts)]

    def check_data(self, data: Any, view: NodeView) -> Iterable[NodeFinding]:
        """Yield errors and warnings about a node's data; see ``check``."""
        return ()

    def check(self, data: Any, view: NodeView) -> Iterable[NodeFinding]:
        yield from self.check_data(data, view)
        yield from check_tool_links(view)


def stricter_approval(first: Approval, second: Approval | None) -> Approval:
    """Return the stricter of two rules; None is no rule."""
    levels = [_STRICTNESS.index(each) for each in (first, second) if each is not None]
    return _STRICTNESS[max(levels)]


def name_in(data: Mapping[str, Json], field: str = "name") -> Sequence[str]:
    """Return the name of a tool that a field holds, if it is text."""
    name = data.get(field)
    return (name,) if isinstance(name, str) else ()


def check_tool_links(view: NodeView) -> Iterator[NodeFinding]:
    """Find a node whose tools no node gets, and tools that cannot be told apart."""
    links = [edge for edge in view.outgoing if edge.channel == LINK]
    if not links:
        yield NodeFinding(
            "unused-tool",
            "it is linked to nothing, so no agent has its tools",
            "",
            hint=f"link it into the handle {TOOLS_HANDLE!r} of an agent",
            severity="warning",
        )
    targets = {edge.target: edge for edge in links if edge.target_handle == TOOLS_HANDLE}
    for last_link in targets.values():
        yield from _check_names(last_link, view)


def _check_names(link: Edge, view: NodeView) -> Iterator[NodeFinding]:
    """Find two tools of one name at the target of a link, of which the second is this node's."""
    names = [
        LinkedName(tool_name(name), edge.source)
        for edge in view.index.incoming.get(link.target, ())
        if edge.channel == LINK and edge.target_handle == TOOLS_HANDLE
        for name in view.index.tool_names_of(edge.source)
    ]
    pair = first_duplicate(unique_names(names))
    if pair is None or pair[1].node_id != view.node.id:
        return
    first, second = pair
    yield NodeFinding(
        "duplicate-tool",
        f"{link.target!r} would have two tools of the name {second.name!r}: of the links from "
        f"{first.node_id!r} and from {second.node_id!r}",
        "",
        hint="remove one of the two links, or give one of the tools another name",
        edge=link.id,
    )
