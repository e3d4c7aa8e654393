"""The data model: immutable nodes, edges, ports and graphs, and the values that move along edges.

In JSON the fields are camelCase (``sourceHandle``), here snake_case. ``reading/documents.py`` reads the
JSON form, and [Graph.to_document][planwave.Graph.to_document] writes it back without loss.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal, NamedTuple, cast

Json = Any
"""Any JSON value; the only place where ``Any`` enters the graph."""

Channel = Literal["flow", "link"]
FLOW: Channel = "flow"
LINK: Channel = "link"
DEFAULT_SOURCE_HANDLE = "output"
DEFAULT_TARGET_HANDLE = "input"
ERROR_HANDLE = "error"
"""The only reserved handle: with ``onError: continue`` a failed node sends its error from it."""

ID_PATTERN = r"[A-Za-z0-9_.-]{1,64}"
is_id = re.compile(ID_PATTERN).fullmatch
ID_HINT = "ids are 1 to 64 of the characters A-Z a-z 0-9 _ . -"

_LONGEST_WAIT_S = 86_400

OnError = Literal["fail", "continue", "default"]
Join = Literal["all", "any"]
Effect = Literal["none", "read", "write", "once"]


@dataclass(frozen=True, init=False)
class Retry:
    """How often the driver starts a node again after a failure that is not permanent.

    ``on`` and ``not_on`` are error codes and names of exception classes. With ``on`` only the
    failures it names are retried; failures that ``not_on`` names are not.
    """

    attempts: int
    backoff_s: float
    on: tuple[str, ...]
    not_on: tuple[str, ...]

    def __init__(
        self,
        attempts: int = 1,
        backoff_s: float = 0.0,
        on: str | type[BaseException] | Iterable[str | type[BaseException]] = (),
        not_on: str | type[BaseException] | Iterable[str | type[BaseException]] = (),
    ) -> None:
        """Take the fields of a policy; a graph with it is checked as its document is.

        Args:
            attempts: How often the node is started at most.
            backoff_s: The seconds before the second attempt; they double with each other one.
            on: Error codes, and exception classes or their names.
            not_on: The same.

        Raises:
            TypeError: ``on`` or ``not_on`` has something else.
        """
        object.__setattr__(self, "attempts", attempts)
        object.__setattr__(self, "backoff_s", backoff_s)
        object.__setattr__(self, "on", _error_names(on))
        object.__setattr__(self, "not_on", _error_names(not_on))

    def to_document(self) -> dict[str, Json]:
        """Return the form that ``policy.retry`` of a node has in a document."""
        document: dict[str, Json] = {"attempts": self.attempts}
        if self.backoff_s:
            document["backoffS"] = self.backoff_s
        for name, errors in (("on", self.on), ("notOn", self.not_on)):
            if errors:
                document[name] = list(errors)
        return document

    def wait_s(self, attempt: int) -> float:
        """Return the seconds between a failed attempt and the next: doubling, at most a day."""
        doubled = self.backoff_s * 2.0 ** min(attempt - 1, 1_000)
        return min(doubled, max(self.backoff_s, _LONGEST_WAIT_S))


def _error_names(errors: object) -> tuple[str, ...]:
    listed = (errors,) if isinstance(errors, str | type) else errors
    if not isinstance(listed, Iterable):
        raise TypeError(f"error codes and exception classes are expected, not {errors!r}")
    return tuple(map(_error_name, cast("Iterable[object]", listed)))


def _error_name(error: object) -> str:
    if isinstance(error, type):
        return error.__name__
    if not isinstance(error, str):
        raise TypeError(f"an error code or an exception class is expected, not {error!r}")
    return error


class Policy(NamedTuple):
    """How the driver treats a node, independent of its type."""

    join: Join = "all"
    retry: Retry = Retry()
    timeout_s: float | None = None
    on_error: OnError = "fail"
    default: Mapping[str, Json] | None = None
    """``{"handle", "value"}`` for ``on_error: default``."""
    effect: Effect | None = None
    """Overrides the side-effect class of the type, if set."""


DEFAULT_POLICY = Policy()


class Node(NamedTuple):
    """One step. ``data`` belongs to its type; ``ui`` is stored for editors and otherwise ignored."""

    id: str
    type: str
    name: str
    description: str = ""
    data: Mapping[str, Json] = {}
    policy: Policy = DEFAULT_POLICY
    ui: Mapping[str, Json] | None = None
    policy_document: Mapping[str, Json] | None = None
    """The policy as written in the document, so that writing it back changes nothing."""


class Edge(NamedTuple):
    """One connection. ``data`` is stored as written; ``channel`` is ``data["channel"]``."""

    id: str
    source: str
    source_handle: str
    target: str
    target_handle: str
    channel: Channel
    data: Mapping[str, Json]
    type: str | None = None


class Port(NamedTuple):
    """A named socket of a node type.

    ``name`` is fixed (``input``), a numbered pattern (``condition-{i}``) or open (``{name}``: every
    handle name fits). ``type`` is an opaque socket type; the catalogue knows which fit together.
    """

    name: str
    type: str = "any"
    label: str = ""
    channel: Channel = FLOW
    multiple: bool = False
    required: bool = False
    side: str = ""
    color: str = ""
    shape: str = ""
    schema: Mapping[str, Json] | None = None
    """JSON Schema of its values, where it says more than the type; edges between two of them are checked by it."""


@dataclass(frozen=True)
class Graph:
    """Nodes and edges in document order; that order breaks every tie."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    by_id: Mapping[str, Node] = field(init=False, repr=False, compare=False)
    derived: dict[Any, Any] = field(init=False, repr=False, compare=False)
    """Cached results of pure functions of this graph; see ``topology_of``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "derived", {})
        object.__setattr__(self, "by_id", {node.id: node for node in self.nodes})

    @cached_property
    def incoming(self) -> Mapping[str, Sequence[Edge]]:
        """Edges by target, in graph order."""
        return _grouped(self.edges, attrgetter("target"))

    @cached_property
    def outgoing(self) -> Mapping[str, Sequence[Edge]]:
        """Edges by source, in graph order."""
        return _grouped(self.edges, attrgetter("source"))

    @cached_property
    def document(self) -> Mapping[str, Json]:
        """The wire form ``{"nodes": [...], "edges": [...]}``, built once.

        Callers share it, and it shares values with the graph: do not change it.
        """
        return {
            "nodes": [node_document(node) for node in self.nodes],
            "edges": [edge_document(edge) for edge in self.edges],
        }

    def to_document(self) -> dict[str, Json]:
        """Return the wire form; the objects of nodes and edges and their fields are copies."""
        return {
            kind: [_copy_fields(each) for each in listed] for kind, listed in self.document.items()
        }


def _grouped(edges: Iterable[Edge], end: Callable[[Edge], str]) -> dict[str, list[Edge]]:
    groups: dict[str, list[Edge]] = {}
    for edge in edges:
        groups.setdefault(end(edge), []).append(edge)
    return groups


def node_document(node: Node) -> dict[str, Json]:
    """Return the wire form of a node; it shares values with the node."""
    node_id, node_type, name, description, data, _, ui, policy = node
    document: dict[str, Json] = {"id": node_id, "type": node_type, "name": name}
    if description:
        document["description"] = description
    document["data"] = _as_dict(data)
    if policy is not None:
        document["policy"] = _as_dict(policy)
    if ui is not None:
        document["ui"] = _as_dict(ui)
    return document


def edge_document(edge: Edge) -> dict[str, Json]:
    """Return the wire form of an edge; ``data`` is not copied."""
    edge_id, source, source_handle, target, target_handle, _, data, edge_type = edge
    document: dict[str, Json] = {
        "id": edge_id,
        "source": source,
        "sourceHandle": source_handle,
        "target": target,
        "targetHandle": target_handle,
    }
    if edge_type is not None:
        document["type"] = edge_type
    document["data"] = _as_dict(data)
    return document


def _as_dict(fields: Mapping[str, Json]) -> dict[str, Json]:
    return fields if isinstance(fields, dict) else dict(fields)


def _copy_fields(document: Mapping[str, Json]) -> dict[str, Json]:
    return {
        name: dict(cast("dict[str, Json]", held)) if isinstance(held, dict) else held
        for name, held in document.items()
    }


def fixed_handles(ports: Iterable[Port]) -> tuple[str, ...]:
    """Return the names of ports, for messages."""
    return tuple(port.name for port in ports)


class DataValue(NamedTuple):
    """A JSON value and its socket type (``text``, ``json``, ``number`` … opaque to the kernel)."""

    type: str
    value: Json


class Arrival(NamedTuple):
    """One value that reached one node along one flow edge."""

    edge_id: str
    source_id: str
    source_name: str
    source_handle: str
    target_handle: str
    value: DataValue
