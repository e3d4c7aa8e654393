"""What running nodes may ask of their graph: neighbours, arrivals, links, nested runs.

One [GraphRuntime][planwave.GraphRuntime] serves one running graph (the execution's, or a nested one). Which node is
asking is known from a context variable that the driver sets in the node's task; tasks a node starts
inherit it.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    contextmanager,
    nullcontext,
)
from contextvars import ContextVar
from itertools import pairwise
from typing import TYPE_CHECKING, Final, cast

from planwave.errors import InputError, PermanentError
from planwave.executor.node_api.link_artefacts import LinkArtefacts
from planwave.executor.state import current_attempt
from planwave.executor.values import GraphValues
from planwave.graph.inputs import Inputs
from planwave.graph.model import LINK, Arrival, Channel, Edge, Graph, Json, Node
from planwave.graph.outputs import Outputs
from planwave.graph.plan import canonical_json
from planwave.graph.protocols import NodeTypes, WrittenBy

if TYPE_CHECKING:  # it is built on this module
    from planwave.executor.node_api.host import NodeHost

_IS_OVER: Final = "the execution this node belongs to is over"
_link_chain: ContextVar[tuple[str, ...]] = ContextVar("asking", default=())
"""The open ``resolve``/``materialize`` steps of this task, outermost first, for cycle messages."""
_SharedKey = tuple[int, str, str]
"""Node, handle and signature of an artefact of a link."""
_OPENED: Final = -1
"""In the place of a node: what nodes have opened under a name, see ``GraphRuntime.open_once``."""


class LinkStats:
    """How often links of one execution were served from what was made before, and how often made."""

    __slots__ = ("hits", "misses")

    def __init__(self) -> None:
        self.hits = 0
        self.misses = 0


class GraphLookups:
    """The part of ``graph.protocols.RuntimeApi`` that only reads.

    Attributes:
        values: The values of the graph run.
    """

    __slots__ = ("values",)

    def __init__(self, values: GraphValues) -> None:
        self.values = values

    @property
    def written_by(self) -> WrittenBy | None:
        """Who wrote the graph, if no person did."""
        return self.values.written_by

    def get_node(self, node_id: str) -> Node:
        """Return a node, its task as the run reads it; InputError ``unknown-node`` if there is none."""
        number = self._node_number(node_id)
        step = self.values.program.steps[number]
        if step.task is None:
            return step.node
        return step.node._replace(description=self.values.task_of(number))

    def incoming_edges(
        self, node_id: str, *, channel: Channel | None = None, target_handle: str | None = None
    ) -> Sequence[Edge]:
        """Return the edges into a node in graph order, of one channel or handle if asked."""
        graph = self.values.program.graph
        return [
            e
            for e in graph.incoming.get(self._checked_id(node_id), ())
            if channel in (None, e.channel) and target_handle in (None, e.target_handle)
        ]

    def outgoing_edges(
        self, node_id: str, *, channel: Channel | None = None, source_handle: str | None = None
    ) -> Sequence[Edge]:
        """Return the edges out of a node in graph order, of one channel or handle if asked."""
        graph = self.values.program.graph
        return [
            e
            for e in graph.outgoing.get(self._checked_id(node_id), ())
            if channel in (None, e.channel) and source_handle in (None, e.source_handle)
        ]

    def arrivals(self, node_id: str, target_handle: str | None = None) -> tuple[Arrival, ...]:
        """Return what reached a node so far, in edge order; for linked nodes too."""
        arrivals = self.values.arrivals_at(self._node_number(node_id))
        if target_handle is None:
            return arrivals
        return tuple(a for a in arrivals if a.target_handle == target_handle)

    @property
    def variables(self) -> Mapping[str, Json]:
        """The names that expressions may use besides inputs."""
        return self.values.variables

    @property
    def catalogue(self) -> NodeTypes:
        """The node types."""
        return self.values.program.catalogue

    def _checked_id(self, node_id: str) -> str:
        self._node_number(node_id)
        return node_id

    def _node_number(self, node_id: str) -> int:
        number = self.values.program.topology.index.get(node_id)
        if number is None:
            raise InputError(f"no node {node_id!r} in this graph", code="unknown-node")
        return number


class GraphRuntime(GraphLookups):
    """Satisfies ``graph.protocols.RuntimeApi``; look-ups are indexed, caches live for one run."""

    __slots__ = ("_cache", "_host_ref", "_links", "_waits_for")

    def __init__(self, values: GraphValues, host: NodeHost) -> None:
        super().__init__(values)
        self._host_ref = weakref.ref(host)  # the driver owns its runtimes, not the other way round
        self._cache: dict[tuple[str, str], object] = {}
        self._links: dict[_SharedKey, asyncio.Future[object]] = {}
        self._waits_for: dict[str, list[str]] = {}

    @property
    def _host(self) -> NodeHost:
        host = self._host_ref()
        if host is None:
            raise PermanentError(_IS_OVER)
        return host

    @property
    def _open_host(self) -> NodeHost:
        """The services of an execution that has not ended: what is asked of it could still be done."""
        host = self._host
        if host.mailbox.is_closed:
            raise PermanentError(_IS_OVER)
        return host

    def cache_get(self, namespace: str, key: str) -> object:
        """Return what a node cached for this run, or None."""
        return self._cache.get((namespace, key))

    def cache_set(self, namespace: str, key: str, value: object) -> None:
        """Keep something for the rest of this run; never stored."""
        self._cache[namespace, key] = value

    # -- links -------------------------------------------------------------------------------------

    async def resolve_links(self, node_id: str, target_handle: str) -> list[object]:
        """Materialise everything linked into a handle, in edge order.

        Each artefact is made once for ``(node, handle, signature)`` and run; concurrent callers
        share the call. The signature covers the linked node's resolved data and its arrivals. One
        that is an async context manager is entered, and exited when the graph run ends; its users
        get what entering it returned.

        Raises:
            NodeError: ``link-cycle`` with the full path, or what ``materialize`` raised.
        """
        step = f"resolve({node_id}.{target_handle})"
        chain = _link_chain.get()
        if step in chain:
            raise _cycle_error((*chain[chain.index(step) :], step))
        token = _link_chain.set((*chain, step))
        try:
            edges = self.incoming_edges(node_id, channel=LINK, target_handle=target_handle)
            return [await self._materialize(edge, node_id) for edge in edges]
        finally:
            _link_chain.reset(token)

    async def _materialize(self, edge: Edge, user: str) -> object:
        node = self._node_number(edge.source)
        step = f"materialize({edge.source}.{edge.source_handle})"
        chain = _link_chain.get()
        if step in chain:
            raise _cycle_error((*chain[chain.index(step) :], step))
        arrivals = self.values.arrivals_at(node)
        bound = self.values.program.steps[node]
        data = bound.node.data
        if not bound.facts.materializes_unresolved:
            data = await self._host.resolve_data(self.values, node, Inputs(arrivals))
        arrived = [[a.edge_id, a.value.value] for a in arrivals]
        key = (node, edge.source_handle, canonical_json([data, arrived]))
        artefacts = self._open_host.open_links.of(self.values)
        artefact, is_shared = await self._shared(
            key,
            lambda: self._materialize_new(key, data, step, artefacts),
            lambda: self._waiting_for((*chain, step)),
        )
        self._host.links.hits += is_shared
        artefacts.count_user(key, user)
        return artefact

    async def _shared(
        self,
        key: _SharedKey,
        make: Callable[[], Awaitable[object]],
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> tuple[object, bool]:
        """Return what is made once for a key and run, and whether another caller has begun to make it.

        Concurrent callers share the call. One that fails is made again by the next caller.

        Args:
            key: What it is.
            make: Makes it.
            waiting: Entered while another caller makes it.
        """
        while True:
            shared = self._links.get(key)
            if shared is None:
                return await self._make_shared(key, make), False
            try:
                with waiting():
                    return await asyncio.shield(shared), True
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if not shared.cancelled() or (task is not None and task.cancelling()):
                    raise

    async def _make_shared(self, key: _SharedKey, make: Callable[[], Awaitable[object]]) -> object:
        shared = self._links[key] = asyncio.get_running_loop().create_future()
        try:
            made = await make()
        except BaseException as error:
            del self._links[key]  # a later caller tries again
            if isinstance(error, asyncio.CancelledError):
                shared.cancel()
            else:
                shared.set_exception(error)
                shared.exception()  # may have no other listener
            raise
        shared.set_result(made)
        return made

    async def open_once(
        self, key: str, make: Callable[[], AbstractAsyncContextManager[object]]
    ) -> object:
        """Return what entering an async context manager gives, such as a connection.

        It is entered once for the run of the graph, whichever of its nodes asks first, and exited when
        that run ends, in a task of its own. Concurrent callers share it; if entering fails, the next
        caller tries again.

        Args:
            key: Its name, the same for all nodes that share it.
            make: Returns the context manager.
        """
        artefacts = self._open_host.open_links.of(self.values)

        async def enter() -> object:
            return await artefacts.enter(make(), key)

        opened, _ = await self._shared((_OPENED, key, ""), enter)
        return opened

    async def _materialize_new(
        self,
        key: _SharedKey,
        data: Mapping[str, Json],
        step: str,
        artefacts: LinkArtefacts,
    ) -> object:
        node, handle, _ = key
        bound = self.values.program.steps[node]
        if not bound.facts.materializes:
            raise PermanentError(
                f"node {bound.node.id!r} is linked but its type cannot be materialised",
                code="channel-mismatch",
                hint="connect it with a flow edge",
            )
        self._host.links.misses += 1
        token = _link_chain.set((*_link_chain.get(), step))
        try:
            context = self._host.context(self, node, 1)
            artefact = await bound.implementation.materialize(data, handle, context)
            if isinstance(artefact, AbstractAsyncContextManager):
                manager = cast("AbstractAsyncContextManager[object]", artefact)
                artefact = await artefacts.enter(manager, bound.node.id)
        finally:
            _link_chain.reset(token)
        return artefact

    @contextmanager
    def _waiting_for(self, chain: tuple[str, ...]) -> Generator[None]:
        """Register a wait for the last step, another task's call; raise if the wait closes a cycle.

        A step may wait for several others, because a linked node may resolve several links at once.
        """
        steps = [*pairwise(chain)]
        for asking, following in steps:
            self._waits_for.setdefault(asking, []).append(following)
        try:
            if (circle := self._cycle_through(chain[-1])) is not None:
                raise _cycle_error(circle)
            yield
        finally:
            for asking, following in steps:
                self._waits_for[asking].remove(following)
                if not self._waits_for[asking]:
                    del self._waits_for[asking]

    def _cycle_through(self, step: str) -> tuple[str, ...] | None:
        """Return the path from a step back to itself along the waiting calls, or None."""
        came_from: dict[str, str] = {}
        reached = [step]
        for current in reached:
            for following in self._waits_for.get(current, ()):
                if following not in came_from:
                    came_from[following] = current
                    reached.append(following)
        if step not in came_from:
            return None
        path = [step, came_from[step]]
        while path[-1] != step:
            path.append(came_from[path[-1]])
        return tuple(reversed(path))

    # -- nested runs and remembered values ---------------------------------------------------------

    async def run_graph(
        self,
        key: str,
        graph: Graph,
        inputs: Mapping[str, Mapping[str, Json]],
        *,
        variables: Mapping[str, Json] | None = None,
        written_by: WrittenBy | None = None,
    ) -> Mapping[str, Outputs]:
        """Run a graph inside this node; ``key`` is unique within the node.

        Inside a graph that a model wrote, one that does not stand in this node's data is admitted first.

        Args:
            key: Name of the run; the same whenever the node runs again. The name of the data field that
                holds the graph means that its result is the node's: its text is streamed as the node's.
            graph: The graph to run.
            inputs: ``{node_id: {handle: value}}``: nodes of it settled with these values.
            variables: Names for its expressions, besides those of the enclosing graph; visible to
                deeper graphs too.
            written_by: Who wrote it; None for the author of the graph around it.

        Returns:
            The outputs of every completed node of the graph, by node id. If the key has completed
            for this node before, in any attempt or process, its stored result is returned. An
            interrupted run resumes; a later attempt restarts a failed run.

        Raises:
            NodeError: ``field-not-for-plans``, ``type-not-allowed``: a plan of a model may not hold it;
                ``nested-run-failed``, naming the first node of it that failed;
                ``resume-mismatch``: the key stands for another graph, or other inputs or variables;
                ``limit-exceeded``: graphs are nested too deep; ``invalid-key``.
            TypeError: ``graph`` is no ``Graph``.
        """
        if not isinstance(graph, Graph):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"graph must be a planwave.Graph, not {type(graph).__name__}; "
                "planwave.build(document).graph makes one"
            )
        host = self._open_host
        return await host.nested.run(
            host, self.values, key, graph, inputs, variables or {}, written_by
        )

    async def run_linked(
        self,
        key: str,
        node_id: str,
        inputs: Mapping[str, Json],
        *,
        variables: Mapping[str, Json] | None = None,
    ) -> Outputs:
        """Run a node that is linked to this one, with everything linked into it, inside this node.

        In that run the node is a stage; its policy applies. What flow edges bring to it, and to what
        is linked into it, is there too.

        Args:
            key: As in [run_graph][planwave.GraphRuntime.run_graph]; both have the same keys.
            node_id: The node; a link, or a chain of links, leads from it to this one.
            inputs: ``{handle: value}``: the values that arrive at its handles, from this node.
            variables: As in [run_graph][planwave.GraphRuntime.run_graph].

        Returns:
            The outputs of the node, by handle.

        Raises:
            InputError: ``unknown-node``.
            NodeError: As in [run_graph][planwave.GraphRuntime.run_graph], and ``not-linked``;
                ``channel-mismatch``: the type of the node cannot be executed; ``invalid-inputs``.
        """
        node, host = self._node_number(node_id), self._open_host
        return await host.nested.run_linked(host, self.values, key, node, inputs, variables or {})

    async def resolve(self, value: Json, variables: Mapping[str, Json]) -> Json:
        """Return a value with its expressions resolved, as in this node's data, with names added.

        Raises:
            TemplateError: An expression cannot be read or resolved.
        """
        attempt, values = current_attempt.get(), self.values
        is_own = attempt.graph_run.prefix == values.prefix
        node = values.number_of(attempt.path) if is_own else attempt.node
        return await self._host.resolve_value(values, node, value, variables)

    async def once(self, key: str, fn: Callable[[], Awaitable[Json]]) -> Json:
        """Return the value of the first successful ``fn`` call of this node for a key.

        The value is stored before it is returned, and read back whenever the node runs again: after
        the end of its process, a retry, an answer. Concurrent callers share one call; if ``fn``
        fails, the next caller calls it again.

        Raises:
            ResultNotJson: The value cannot be stored.
        """
        return await self._open_host.once(key, fn)


def _cycle_error(path: tuple[str, ...]) -> PermanentError:
    return PermanentError(
        f"Link dependency cycle detected: {' -> '.join(path)}",
        code="link-cycle",
        hint="remove one of these link edges",
    )
