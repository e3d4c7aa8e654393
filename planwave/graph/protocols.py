"""What a node type can do, as protocols satisfied by shape; ``executor`` and ``nodes`` meet here.

A type has ``execute`` (it runs as a stage), ``materialize`` (it is a dependency of others, given on
demand), or both; a leaf that waits for an answer also has ``resume``.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from planwave.graph.diagnostics import Diagnostic
from planwave.graph.inputs import Inputs
from planwave.graph.model import Arrival, Channel, DataValue, Edge, Effect, Graph, Json, Node, Port


class NodeEvent(NamedTuple):
    """Something a node says while it runs.

    ``event_type`` ``delta`` (``data: {"text", "kind"?}``) streams text and is not stored; ``log``
    (``{"message", "level"?}``) and ``usage`` become events of their own; all others are stored as
    ``node.event``.
    """

    node_id: str
    node_type: str
    event_type: str
    run_id: str
    data: Json


class ExecutionResult(NamedTuple):
    """What a node gives: the handles that carry a value. Handles left out are skipped."""

    outputs: Mapping[str, DataValue]
    events: Sequence[NodeEvent] = ()


class Suspension(NamedTuple):
    """A node waits for an answer: ``request`` is shown to the person, ``state`` comes back.

    Where ``timeout_s`` seconds pass without one, it goes on with ``timeout_answer``.
    """

    request: Json
    state: Json = None
    timeout_s: float | None = None
    timeout_answer: Json = None


class RuntimeApi(Protocol):
    """What a running node may ask about its graph."""

    def get_node(self, node_id: str) -> Node: ...
    def incoming_edges(
        self, node_id: str, *, channel: Channel | None = None, target_handle: str | None = None
    ) -> Sequence[Edge]: ...
    def outgoing_edges(
        self, node_id: str, *, channel: Channel | None = None, source_handle: str | None = None
    ) -> Sequence[Edge]: ...
    def arrivals(self, node_id: str, target_handle: str | None = None) -> tuple[Arrival, ...]: ...
    async def resolve_links(self, node_id: str, target_handle: str) -> list[Any]: ...
    def cache_get(self, namespace: str, key: str) -> Any: ...
    def cache_set(self, namespace: str, key: str, value: Any) -> None: ...
    async def run_graph(
        self,
        key: str,
        graph: Graph,
        inputs: Mapping[str, Mapping[str, Json]],
        *,
        variables: Mapping[str, Json] | None = None,
    ) -> Mapping[str, Mapping[str, DataValue]]: ...
    async def once(self, key: str, fn: Callable[[], Awaitable[Json]]) -> Json: ...
    async def resolve(self, value: Json, variables: Mapping[str, Json]) -> Json: ...
    @property
    def variables(self) -> Mapping[str, Json]: ...
    @property
    def catalogue(self) -> Catalogue: ...


def unlimited() -> float:
    """Give the time an attempt without a timeout has left, in seconds."""
    return math.inf


@dataclass(slots=True)
class FlowContext:
    """Where a node runs. ``services`` and ``state`` are opaque to the executor.

    ``answers`` counts how often this attempt has been answered so far; ``time_left_s`` gives the seconds
    it still has before its timeout, infinitely many without one. ``with context.own_work():`` goes
    around what a node does itself while graphs run inside it: where it does nothing and these only
    wait for answers, its task ends, and it is executed again from the top when one has come.
    """

    node_id: str
    run_id: str
    path: str
    attempt: int
    chat_id: str | None
    state: Any
    runtime: RuntimeApi
    services: Any
    answers: int = 0
    time_left_s: Callable[[], float] = unlimited
    own_work: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def busy(self) -> Callable[[], AbstractContextManager[None]]:
        """The former name of ``own_work``; it goes with the next release."""
        return self.own_work

    @property
    def left_s(self) -> Callable[[], float]:
        """The former name of ``time_left_s``; it goes with the next release."""
        return self.time_left_s


@runtime_checkable
class FlowExecutor(Protocol):
    """A type that runs as a stage: a coroutine, or an async generator ending in its result."""

    node_type: str

    def execute(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> (
        Awaitable[ExecutionResult | Suspension]
        | AsyncIterator[NodeEvent | ExecutionResult | Suspension]
    ): ...


@runtime_checkable
class LinkMaterializer(Protocol):
    """A type that gives an artefact (a tool, a model, a connector) to link consumers."""

    node_type: str

    async def materialize(
        self, data: Mapping[str, Json], output_handle: str, context: FlowContext
    ) -> Any: ...


@runtime_checkable
class Resumable(Protocol):
    """A leaf type that goes on after its suspension was answered."""

    async def resume(
        self,
        data: Mapping[str, Json],
        inputs: Inputs,
        context: FlowContext,
        state: Json,
        answer: Json,
    ) -> ExecutionResult | Suspension: ...


@runtime_checkable
class InputAdapter(Protocol):
    """An entry type that has a say in what executions give its nodes, before anything is kept."""

    def adapt_inputs(self, values: Mapping[str, Json]) -> Mapping[str, Json]:
        """Give the values a node is settled with, by output handle.

        What it gave, given again, has to stay as it is.

        Raises:
            InputError: They cannot be taken.
        """
        ...


@runtime_checkable
class ReusableResult(Protocol):
    """A type whose results follow from more than its nodes' data and inputs."""

    async def result_depends_on(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> Json:
        """Give that, as JSON: the same where the result is, as far as the rest is the same.

        Asked of a node that may be spared running, as a result it had before may still hold, and of
        that it had then: there ``context.runtime.once`` finds what was kept. Nothing is run, resolved
        over links or kept for it.

        Raises:
            PlanwaveError: It cannot be told; no result is taken over.
        """
        ...


class NodeTypeInfo(NamedTuple):
    """What the checker, the planner and the driver need to know of a type; no behaviour.

    ``inputs`` and ``outputs`` are matched in order: fixed names before patterns before open ones.
    ``template_fields`` are the top-level ``data`` fields in which ``{{ … }}`` is resolved before
    the node runs; None means every field, () means none. ``chooses`` says that one output alone carries
    a value in any run; of a numbered family of outputs that is known without it. ``version`` and
    ``reads_goal`` are part of what a result follows from; see ``executor/identity.py``.
    ``graph_fields`` are the top-level ``data`` fields that hold graph documents run inside the node.
    """

    node_type: str
    purpose: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    entry: bool = False
    executes: bool = True
    materializes: bool = False
    effect: Effect = "none"
    template_fields: tuple[str, ...] | None = None
    chooses: bool = False
    version: int = 1
    reads_goal: bool = False
    graph_fields: tuple[str, ...] = ()


class Catalogue(Protocol):
    """The closed registry of node types, as ``graph/`` and ``executor/`` see it."""

    def type_info(self, node_type: str) -> NodeTypeInfo | None:
        """Give what is known of a type, or None if there is no such type."""
        ...

    def implementation(self, node_type: str) -> Any:
        """Give the object that has the type's capabilities; KeyError if there is none."""
        ...

    def names(self) -> Sequence[str]:
        """Give all type names, sorted."""
        ...

    def accepts(self, target_type: str, source_type: str) -> bool:
        """Say whether a value of one socket type may go into a socket of another."""
        ...

    def for_subgraph(self, names: Iterable[str]) -> Catalogue:
        """Give the same types for checking a graph that a node of theirs runs inside.

        Args:
            names: What expressions in it may name besides what those around it may.
        """
        ...

    def check(self, node: Node, graph: Graph) -> Iterable[Diagnostic]:
        """Find faults of one node that only its type can see: data, templates, providers.

        Pointers are relative to the node (``/data/model``); the checker adds ``/nodes/{i}``.
        """
        ...
