"""Results a fork takes over from the execution before it, instead of paying for them again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from planwave.errors import PlanwaveError
from planwave.events.reading import reading
from planwave.executor.flight import Flight, Scope
from planwave.executor.host import NodeHost
from planwave.executor.runtime import Outputs
from planwave.graph.model import Json
from planwave.graph.values import DataValue


class TakenOver(NamedTuple):
    """A result that a node has without having run, and what its ``node.completed`` says of that."""

    outputs: Outputs
    facts: dict[str, Any]


class Reuse:
    """What a fork has from the execution before it.

    Args:
        execution_id: The execution before.
        before: Its graph, where its stored events leave it; None where it is gone.
        host: What its nodes found around them.
        rerun: Ids of nodes that run in any case.
        given: ``{node_id: {handle: value}}``: what nodes are settled with, whatever they had.
    """

    def __init__(
        self,
        execution_id: str,
        before: Scope | None,
        host: NodeHost,
        rerun: Collection[str],
        given: Mapping[str, Mapping[str, Json]],
    ) -> None:
        self._execution_id, self._before, self._host = execution_id, before, host
        self._rerun, self._given = frozenset(rerun), given

    async def result_of(self, flight: Flight, host: NodeHost) -> TakenOver | None:
        """Give the result of a node that is about to run, or None where it has to run.

        Taken over is the result of the node of the same id, where both follow from the same; see
        ``executor/identity.py``.
        """
        node_id = flight.scope.program.topology.ids[flight.node]
        if (given := self._given.get(node_id)) is not None:
            outputs = {handle: DataValue("any", value) for handle, value in given.items()}
            return TakenOver(outputs, {"changed": True})
        if self._before is None or node_id in self._rerun:
            return None
        number = self._before.program.topology.index.get(node_id)
        if number is None or not self._before.has_completed(number):
            return None
        had = self._before.runtime.outputs[number]
        if had is None:
            return None
        try:
            with reading(self._execution_id):
                now = await host.key_of(flight.scope.runtime, flight.node)
                then = await self._host.key_of(self._before.runtime, number)
        except PlanwaveError:
            return None  # an expression cannot be resolved: running the node says so better
        return (
            TakenOver(had, {"reused": {"execution_id": self._execution_id}})
            if now == then
            else None
        )
