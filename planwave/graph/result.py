"""The result of a run: what its last nodes that delivered something delivered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Self

from planwave.expressions.json_text import to_text
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, ERROR_HANDLE, FLOW, DataValue, Graph, Json

_END_TYPE: Final = "end"
_START_TYPE: Final = "start"

OutputsByNode = Mapping[str, Mapping[str, DataValue]]


class Result(NamedTuple):
    """The result of a run.

    Attributes:
        outputs: The outputs of the nodes that it comes from, by node id, in the order of the graph.
    """

    outputs: OutputsByNode

    @property
    def values(self) -> dict[str, Json]:
        """The value of each of these nodes, by its id."""
        return {node_id: main_output(each).value for node_id, each in self.outputs.items()}

    @property
    def value(self) -> DataValue:
        """The value of the only node; several give an object by node id, none gives null."""
        if len(self.outputs) == 1:
            return main_output(*self.outputs.values())
        return DataValue("json", self.values or None)

    @property
    def text(self) -> str:
        """The texts of the nodes, separated by blank lines."""
        texts = (result_text(each) for each in self.outputs.values())
        return "\n\n".join(filter(None, texts))


class LastNodes(NamedTuple):
    """The nodes of a graph that its result can come from.

    Attributes:
        ends: Its ``end`` nodes.
        sinks: Its other nodes that no flow edge leaves, apart from edges of the handle ``error``.
        starts: Its ``start`` nodes that none leaves, which only declare the inputs of the flow.
    """

    ends: tuple[str, ...]
    sinks: tuple[str, ...]
    starts: tuple[str, ...] = ()

    @property
    def deliverers(self) -> tuple[str, ...]:
        """Those that the run is made for: its other last nodes only declare inputs."""
        return tuple(dict.fromkeys((*self.sinks, *self.ends)))

    @classmethod
    def of(cls, graph: Graph) -> Self:
        """Find the last nodes of a graph."""
        edges = ((each.source, each.source_handle, each.channel) for each in graph.edges)
        return cls._find(((node.id, node.type) for node in graph.nodes), edges)

    @classmethod
    def of_document(cls, graph: Mapping[str, Any]) -> Self:
        """Find the last nodes of the JSON document of a graph."""
        edges = (
            (each["source"], each.get("sourceHandle"), each["data"]["channel"])
            for each in graph["edges"]
        )
        return cls._find(((node["id"], node["type"]) for node in graph["nodes"]), edges)

    @classmethod
    def _find(
        cls, nodes: Iterable[tuple[str, str]], edges: Iterable[tuple[str, str | None, str]]
    ) -> Self:
        followed = {
            source
            for source, handle, channel in edges
            if channel == FLOW and handle != ERROR_HANDLE
        }
        types = dict(nodes)
        return cls(
            tuple(node_id for node_id, kind in types.items() if kind == _END_TYPE),
            tuple(n for n, kind in types.items() if n not in followed and kind != _START_TYPE),
            tuple(n for n, kind in types.items() if n not in followed and kind == _START_TYPE),
        )

    def result(self, outputs: OutputsByNode) -> Result:
        """Return the result of a run.

        It comes from the ``end`` nodes that delivered something, or else from the last nodes that did;
        what a ``start`` that leads nowhere was given is no result, unless there is no other.
        An error that a node delivered is not its result.

        Args:
            outputs: The outputs of the completed nodes, by node id.
        """
        for node_ids in (self.ends, self.sinks, self.starts):
            delivered = {
                node_id: own
                for node_id in node_ids
                if (own := without_error(outputs.get(node_id, {})))
            }
            if delivered:
                return Result(delivered)
        return Result({})


def main_output(outputs: Mapping[str, DataValue]) -> DataValue:
    """Return a node's value: its ``output``, or else its first output."""
    return outputs.get(DEFAULT_SOURCE_HANDLE) or next(iter(outputs.values()))


def result_text(outputs: Mapping[str, DataValue]) -> str:
    """Return a node's value as text; without one the empty text."""
    return to_text(main_output(outputs).value) if outputs else ""


def without_error(outputs: Mapping[str, DataValue]) -> Mapping[str, DataValue]:
    """Return the outputs of a node without the error that it handed on."""
    return {handle: value for handle, value in outputs.items() if handle != ERROR_HANDLE}
