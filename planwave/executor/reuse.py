"""Results a fork takes over from the execution before it, instead of paying for them again.

A node runs again where what its result follows from has changed, or where it has none. What ran
inside it is gone through in the same way, node by node: each graph it asks for is laid beside what it
had run under that key, if that had the same inputs and variables. The graphs may differ: what a change
does not reach has the same identity in both.

That execution may be a fork itself, which need not have come to all it had a right to. So what was before
it counts too, the latest first; but for nodes that it was to run anew, or to have set.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from planwave.errors import PlanwaveError
from planwave.events.reading import reading
from planwave.executor.earlier import Earlier, Life
from planwave.executor.flight import Flight, Scope, Shadow
from planwave.executor.identity import Then
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.executor.replay import replay
from planwave.executor.requests import Requests
from planwave.executor.runtime import Host, Outputs, Runtime
from planwave.executor.scope import open_scope
from planwave.graph.capabilities import Catalogue
from planwave.graph.model import Json
from planwave.graph.read import read_graph
from planwave.graph.values import DataValue

_log = logging.getLogger(__name__)


class KeyHost(Host, Protocol):
    """A host that knows what results follow from."""

    async def key_of(self, runtime: Runtime, node: int, then: Then | None = None) -> str: ...


class TakenOver(NamedTuple):
    """A result that a node has without having run, and what its ``node.completed`` says of that."""

    outputs: Outputs
    facts: dict[str, Any]


class Found(NamedTuple):
    """A value that a node had kept; it may be null."""

    value: Json


class Before(NamedTuple):
    """The execution before a fork.

    Attributes:
        execution_id: Its id.
        program: Its graph.
        earlier: What is stored of all its graphs.
        host: What its nodes found around them.
        options, inputs: As it had them.
        passed_over: Ids of the nodes of which nothing is taken, as an execution since then was to run
            them anew, or to have them set.
    """

    execution_id: str
    program: Program
    earlier: Earlier
    host: KeyHost
    options: RunOptions
    inputs: Mapping[str, Mapping[str, Json]] | None
    passed_over: frozenset[str] = frozenset()


class Reuse:
    """What a fork has from the execution before it.

    Args:
        execution_id: The execution before.
        before: What is known of it, and of what it was a fork of itself, the latest first; nothing
            where it is gone.
        rerun: Ids of nodes that run in any case.
        given: ``{node_id: {handle: value}}``: what nodes are settled with, whatever they had.
        is_retry: The nodes of ``rerun`` go on with what they had come to inside; else they begin
            anew, whatever runs inside them.

    Attributes:
        execution_id: The execution before.
        own: What the fork's own graph goes by; nothing where what is stored makes no sense.
    """

    def __init__(
        self,
        execution_id: str,
        before: Sequence[Before],
        rerun: Collection[str],
        given: Mapping[str, Mapping[str, Json]],
        *,
        is_retry: bool = False,
    ) -> None:
        self.execution_id, self._before = execution_id, before
        self._rerun, self._given = frozenset(rerun), given
        self._anew = frozenset[str]() if is_retry else self._rerun
        self._programs: dict[str, Program] = {}
        self._gone_on_with: dict[str, int] = {}
        self.own: Sequence[Shadow] = [*self._own_graphs()]

    def within(
        self, flight: Flight, scope: Scope, identity: tuple[str, str], given: Any, variables: Any
    ) -> Sequence[Shadow]:
        """Give what a graph that a node asks for goes by.

        Args:
            flight: Who asks.
            scope: The graph.
            identity: Hashes of the graph, and of inputs and variables.
            given: Its inputs.
            variables: What its expressions may name besides those of the graph around it.
        """
        outside = {shadow.life: shadow for shadow in self._beside(flight)}
        if not outside or self._begins_anew(flight):
            return ()
        found: list[Shadow] = []
        for number, life in self._lives(scope.prefix, identity[1]):
            around = None if life.around is None else outside.get(life.around)
            if around is None or life.identity is None:
                continue
            before, is_same = self._before[number], life.identity[0] == identity[0]
            with suppress(PlanwaveError):  # it runs as if it never had
                program = scope.program if is_same else self._program_of(before, life.identity[0])
                seen = {**around.scope.runtime.variables, **variables}
                host, options = before.host, before.options
                then = open_scope(program, host, options, given, scope.prefix, seen)
                found.append(self._as_left(Shadow(life, then, number)))
                if is_same and then.is_whole:
                    break  # nothing older has more
        return found

    def _lives(self, prefix: str, of_inputs: str) -> Iterator[tuple[int, Life]]:
        """Give what ran under a key with the same inputs, by generation, the latest first."""
        for number, before in enumerate(self._before):
            for life in before.earlier.lives(prefix):
                if life.identity is not None and life.identity[1] == of_inputs:
                    yield number, life

    def _own_graphs(self) -> Iterator[Shadow]:
        for number, before in enumerate(self._before):
            with suppress(PlanwaveError):
                scope = open_scope(before.program, before.host, before.options, before.inputs)
                yield self._as_left(Shadow(before.earlier.own, scope, number))

    def _beside(self, flight: Flight) -> Iterator[Shadow]:
        """Give the graphs that a node goes by, the latest first."""
        node_id = flight.scope.program.topology.ids[flight.node]
        for shadow in flight.scope.earlier:
            passed_over = self._before[shadow.generation].passed_over
            if flight.scope.run is not None or node_id not in passed_over:
                yield shadow

    def _same_nodes(self, flight: Flight) -> Iterator[_Same]:
        """Give the nodes of the same path, the latest first."""
        node_id = flight.scope.program.topology.ids[flight.node]
        for shadow in self._beside(flight):
            number = shadow.scope.program.topology.index.get(node_id)
            if number is not None:
                yield _Same(shadow, number, shadow.life.then(flight.path))

    def _program_of(self, before: Before, named: str) -> Program:
        """Give a graph that ran inside a node of the execution before, by its hash."""
        if named not in self._programs:
            with reading(before.execution_id):
                graph, _ = read_graph(before.earlier.documents[named])
            self._programs[named] = Program(graph, before.program.catalogue)
        return self._programs[named]

    async def result_of(self, flight: Flight, host: KeyHost) -> TakenOver | None:
        """Give the result of a node that is about to run, or None where it has to run.

        Taken over is the result of the node of the same path, where both follow from the same; see
        ``executor/identity.py``.
        """
        scope, node = flight.scope, flight.node
        if scope.run is None:
            node_id = scope.program.topology.ids[node]
            if (given := self._given.get(node_id)) is not None:
                outputs = {handle: DataValue("any", value) for handle, value in given.items()}
                return TakenOver(outputs, {"changed": True})
            if node_id in self._anew:
                return None
        then = [each for each in self._same_nodes(flight) if self._has_result(flight, each)]
        same = await self._first_that_holds(flight, host, then)
        if same is None:
            return await self._go_on(flight, host)
        outputs = same.shadow.scope.runtime.outputs[same.node]
        before = self._before[same.shadow.generation]
        made = set(before.earlier.made_with(same.shadow.life, flight.path))
        if outputs is None or not _are_of_today(made, scope.program.catalogue):
            return None
        facts: dict[str, Any] = {"reused": {"execution_id": before.execution_id}}
        return TakenOver(outputs, {**facts, "versions": dict(made)} if made else facts)

    async def _go_on(self, flight: Flight, host: KeyHost) -> None:
        """Note whether a node that has to run goes on with what it had come to.

        Only its first attempt does: what made that fail may be what it had come to.
        """
        if flight.attempt > 1 or self._begins_anew(flight):
            return
        last = [each for each in self._same_nodes(flight) if not each.shadow.generation]
        then = [each for each in last if each.under_way(flight) is not None]
        same = await self._first_that_holds(flight, host, then)
        attempt = None if same is None else same.under_way(flight)
        if attempt is not None:
            self._gone_on_with[flight.path] = attempt

    def attempt_gone_on_with(self, path: str, attempt: int) -> int | None:
        """Give the attempt in the execution before that an attempt of a node goes on with, if any."""
        return self._gone_on_with.get(path) if attempt == 1 else None

    def was_told(self, path: str, attempt: int, usage: Mapping[str, Json]) -> bool:
        """Say whether an attempt in the execution before told of a call it made, by what that used."""
        return bool(self._before) and self._before[0].earlier.take_usage(path, attempt, usage)

    async def kept_by(self, flight: Flight, key: str, host: KeyHost) -> Found | None:
        """Give a value that a node had kept, where its result would follow from the same as then."""
        if self._begins_anew(flight):
            return None
        then = [each for each in self._same_nodes(flight) if key in each.then.kept]
        same = await self._first_that_holds(flight, host, then)
        return None if same is None else Found(same.then.kept[key])

    async def _first_that_holds(
        self, flight: Flight, host: KeyHost, then: Sequence[_Same]
    ) -> _Same | None:
        if not then:
            return None
        try:
            now = await host.key_of(flight.scope.runtime, flight.node)
            for each in then:
                host_then = self._before[each.shadow.generation].host
                runtime = each.shadow.scope.runtime
                if now == await host_then.key_of(runtime, each.node, each.then):
                    return each
        except PlanwaveError:
            pass  # an expression cannot be resolved: running the node says so better
        except Exception:  # noqa: BLE001 - a type may raise anything; the node can run all the same
            where = f"{flight.path!r} of execution {self.execution_id}"
            _log.exception("%s runs: what its result follows from cannot be said", where)
        return None

    def _has_result(self, flight: Flight, same: _Same) -> bool:
        """Say whether a node had a result; of one that is to run again, what is older may hold."""
        if not same.shadow.generation and flight.scope.run is None:
            node_id = flight.scope.program.topology.ids[flight.node]
            if node_id in self._rerun:
                return False
        return same.shadow.scope.has_completed(same.node)

    def _begins_anew(self, flight: Flight) -> bool:
        if flight.scope.run is not None:
            return False
        return flight.scope.program.topology.ids[flight.node] in self._anew

    def _as_left(self, shadow: Shadow) -> Shadow:
        """Bring a graph to where its stored events left it."""
        facts = shadow.life.facts
        with reading(self._before[shadow.generation].execution_id):
            replay(shadow.scope, facts, Requests(), facts[-1].at if facts else "")
        return shadow


async def result_to_reuse(reuse: Reuse, flight: Flight, host: KeyHost) -> TakenOver | None:
    """Return the result that a fork's node takes over, or None where the node has to run.

    It has to run, too, where looking for the result fails: the stored parent may be damaged.
    """
    try:
        return await reuse.result_of(flight, host)
    except Exception:  # noqa: BLE001 - whatever is wrong with the parent, the node can run
        return None


def _are_of_today(made: Iterable[tuple[str, int]], catalogue: Catalogue) -> bool:
    """Say whether these types are there now in these versions."""
    facts = ((catalogue.facts(each), version) for each, version in made)
    return all(fact is not None and fact.version == version for fact, version in facts)


class _Same(NamedTuple):
    """The same node in the execution before."""

    shadow: Shadow
    node: int
    then: Then

    def under_way(self, flight: Flight) -> int | None:
        """Give its attempt that came to no end, if any."""
        return self.shadow.life.under_way(flight.path)
