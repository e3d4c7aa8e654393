"""Graphs that run inside nodes: opened when a node asks, ended with the node at the latest."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Protocol

from planwave.errors import NodeError
from planwave.executor.decisions import Decisions
from planwave.executor.decisions import Final as Ended
from planwave.executor.entry import own_inputs
from planwave.executor.flight import OVER, Flight, Scope, current_flight
from planwave.executor.options import RunOptions
from planwave.executor.past import Past
from planwave.executor.program import Program
from planwave.executor.runtime import Host, Outputs, Runtime
from planwave.executor.scope import open_scope
from planwave.executor.slots import NestedAnswer, Slots
from planwave.graph.capabilities import Catalogue
from planwave.graph.model import Graph, Json

_PROGRAMS_KEPT: Final = 64
"""Of so many graphs, those asked for last, it is known how to run them."""


class _Driver(Protocol):
    """What nested runs need of the execution they are part of."""

    @property
    def host(self) -> Host: ...

    slots: Slots
    options: RunOptions
    past: Past | None

    def time(self) -> float: ...
    def post(self, take: Any, about: Any, what: Any) -> None: ...
    def watch_time(self, flight: Flight) -> None: ...


class _Settler(Protocol):
    """What nested runs need of those who settle outcomes."""

    def decide(self) -> None: ...
    def begin_nested(self, scope: Scope) -> None: ...
    def follow(self, scope: Scope, decisions: Decisions) -> None: ...
    def cancel_scope(self, scope: Scope, cause: str) -> None: ...


class Nesting:
    """The nested runs of one execution; what is not a coroutine runs inside a turn of the driver."""

    def __init__(self, driver: _Driver, settler: _Settler) -> None:
        self._driver, self._settler = driver, settler
        self._results: dict[tuple[str, str], Mapping[str, Outputs]] = {}
        self._programs: dict[int, Program] = {}

    async def run(
        self,
        runtime: Runtime,
        key: str,
        graph: Graph,
        inputs: Mapping[str, Any],
        variables: Mapping[str, Json],
    ) -> Mapping[str, Outputs]:
        """Run a graph inside a running node; see ``RuntimeApi.run_graph``."""
        flight = current_flight.get()
        if flight.phase is OVER:
            raise NodeError(f"attempt {flight.attempt} of node {flight.path!r} is over")
        place = (flight.path, key)
        if place not in self._results:
            program = self._program_of(graph, runtime.program.catalogue)
            given = own_inputs(program, inputs)
            asked: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            prefix = f"{flight.path}[{key}]/"
            driver = self._driver
            seen = {**runtime.variables, **variables} if variables else runtime.variables
            scope = open_scope(
                program, driver.host, driver.options, given, prefix, flight, asked, seen
            )
            driver.post(self.nest, flight, scope)
            try:
                self._results[place] = await asked
            except asyncio.CancelledError:
                driver.post(self.unnest, flight, scope)
                raise
        return self._results[place]

    def _program_of(self, graph: Graph, catalogue: Catalogue) -> Program:
        """Give a graph made ready to run; a loop asks for the same one again and again."""
        program = self._programs.pop(id(graph), None)
        if program is None:
            program = Program(graph, catalogue)
            if len(self._programs) >= _PROGRAMS_KEPT:
                del self._programs[next(iter(self._programs))]
        self._programs[id(graph)] = program  # it has the graph, so nothing else gets its id
        return program

    def nest(self, flight: Flight, scope: Scope) -> None:
        """A running node asked for a nested run: it gives its slot back until that has ended."""
        if flight.phase is OVER:
            return
        if not flight.nesting:
            flight.nested_since = self._driver.time()
        self._driver.slots.enter_nested(flight)
        flight.nesting += 1
        flight.children = [*(flight.children or ()), scope]
        self._settler.begin_nested(scope)

    def unnest(self, flight: Flight, scope: Scope) -> None:
        """A node no longer waits for its nested run."""
        self._settler.decide()
        if flight.phase is not OVER and scope in (flight.children or ()):
            self._settler.cancel_scope(scope, "its node does not wait for it any more")

    def ended(self, scope: Scope, ended: Ended) -> None:
        """A nested run has come to its end: its node may go on."""
        flight, asked = scope.parent, scope.asked
        if flight is None or flight.phase is OVER:
            return
        if flight.children:
            flight.children.remove(scope)
        result: Mapping[str, Outputs] | NodeError = scope.results()
        if ended != "completed":
            error = scope.first_failure()
            result = NodeError(error["message"], code="nested-run-failed", hint=error.get("hint"))
        flight.nesting -= 1
        if not flight.nesting:
            flight.nested_s += self._driver.time() - flight.nested_since
            self._driver.watch_time(flight)
        self._driver.slots.come_back(NestedAnswer(flight, asked, result))
