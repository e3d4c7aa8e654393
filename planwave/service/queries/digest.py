"""Digests: the progress and the open requests of executions, which lists show beside the records."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from planwave.errors import PlanwaveError
from planwave.events import ExecutionState, NodeState, OpenRequest, fold
from planwave.events.outcome import outcome_of
from planwave.events.request_text import is_timer
from planwave.expressions.json_text import to_text
from planwave.graph.plan import title_of_text
from planwave.graph.reading.documents import read_graph
from planwave.graph.topology import topology_of
from planwave.storage.records import ExecutionRecord

if TYPE_CHECKING:
    from planwave.shapes.common import Outcome
    from planwave.shapes.executions import ExecutionDigest as DigestResponse
    from planwave.shapes.executions import ForkedFrom
    from planwave.shapes.executions import PendingRequest as PendingRequestResponse
    from planwave.shapes.nodes import UsageResponse
    from planwave.storage.sql.store import Store


_CAPACITY: Final = 5_000
"""Digests in memory; one is a few hundred bytes, and the requests."""
_INPUTS_CHARS: Final = 120
EVENTS_AT_ONCE: Final = 20_000
"""Events read for one page of a list; the digests of the other executions are missing until a later page."""


class ExecutionDigest(NamedTuple):
    """The progress and the open requests of an execution.

    Attributes:
        steps: The number of nodes in the waves, without nodes of nested graphs.
        waves: The number of nodes by status, for each wave.
        models: The models that it has called, in the order of its nodes.
        usage: The tokens and the cost of all model calls.
        parent: ``{"execution_id", "retry"}`` of the execution that it forks, or None.
        requests: The open requests to people, oldest first, with the names of their nodes,
            or the title of the plan that is to be approved.
        outcome: What its status leaves open; see ``planwave.events.outcome``.
        inputs: The values of its inputs on one line, which tell runs of one flow apart.
    """

    steps: int
    waves: list[dict[str, int]]
    models: list[str]
    usage: UsageResponse
    parent: ForkedFrom | None
    requests: tuple[tuple[OpenRequest, str], ...]
    outcome: Outcome | None = None
    inputs: str = ""

    def as_json(self) -> DigestResponse:
        """Return the digest as lists show it."""
        return {
            "steps": self.steps,
            "waves": self.waves,
            "models": self.models,
            "usage": self.usage,
            "parent": self.parent,
            "waitingForInput": bool(self.requests),
            "inputs": self.inputs,
        }


class PendingRequest(NamedTuple):
    """An open request, with the execution that waits for it."""

    execution: ExecutionRecord
    request: OpenRequest
    node_name: str
    deadline: str | None

    @classmethod
    def of(cls, execution: ExecutionRecord, request: OpenRequest, node_name: str) -> PendingRequest:
        """Return a request with its deadline."""
        deadline = deadline_of(request)
        text = None if deadline is None else deadline.isoformat(timespec="microseconds")
        return cls(execution, request, node_name, text)

    @property
    def order(self) -> tuple[str, str, str, str]:
        """The sort key: the soonest deadline first, then requests without one, oldest first."""
        request = self.request
        deadline = self.deadline or "~"  # after all times
        return deadline, request.since, self.execution.execution_id, request.request_id

    def as_json(self) -> PendingRequestResponse:
        """Return the request as JSON."""
        return {
            "execution_id": self.execution.execution_id,
            "title": self.execution.title,
            "user_prompt": self.execution.user_prompt,
            "node_name": self.node_name,
            "deadline": self.deadline,
            **self.request.as_json(),
        }


class DigestCache:
    """Computes digests, and caches each until its execution has another event.

    Args:
        store: The store of the events.
        live_state: Returns the state of an execution that this process has in memory, or None.
    """

    def __init__(self, store: Store, live_state: Callable[[str], ExecutionState | None]) -> None:
        self._store = store
        self._live_state = live_state
        self._cached: OrderedDict[tuple[str, int], ExecutionDigest] = OrderedDict()

    async def of(
        self, records: Sequence[ExecutionRecord], *, most_events: float = EVENTS_AT_ONCE
    ) -> dict[str, ExecutionDigest]:
        """Return digests by execution id, of as many executions as need not too many events."""
        digests: dict[str, ExecutionDigest] = {}
        for record in records:
            state = self._live_state(record.execution_id)
            digest = self._cached_digest(record, state)
            if digest is None and state is not None:
                digest = self._keep(digest_of(state), state)
                await asyncio.sleep(0)  # milliseconds for a large graph, and there may be many
            elif digest is None and most_events > 0:
                most_events -= record.last_seq
                digest = await self._read(record)
            if digest is not None:
                digests[record.execution_id] = digest
        return digests

    def _cached_digest(
        self, record: ExecutionRecord, state: ExecutionState | None
    ) -> ExecutionDigest | None:
        key = (record.execution_id, record.last_seq if state is None else state.last_seq)
        digest = self._cached.get(key)
        if digest is not None:
            self._cached.move_to_end(key)
        return digest

    async def _read(self, record: ExecutionRecord) -> ExecutionDigest | None:
        try:
            events = await self._store.events(record.execution_id)
            state = await asyncio.to_thread(fold, events)
        except PlanwaveError:
            return None  # it was deleted meanwhile, or changed from outside
        return self._keep(digest_of(state), state)

    def _keep(self, digest: ExecutionDigest, state: ExecutionState) -> ExecutionDigest:
        self._cached[state.execution_id, state.last_seq] = digest
        if len(self._cached) > _CAPACITY:
            self._cached.popitem(last=False)
        return digest


def deadline_of(request: OpenRequest) -> datetime | None:
    """Return the deadline of a request, or None."""
    if request.timeout_s is None:
        return None
    since = datetime.fromisoformat(request.since)
    try:
        return since + timedelta(seconds=request.timeout_s)
    except (OverflowError, TypeError):  # too far in the future, or changed from outside
        return None


def digest_of(state: ExecutionState) -> ExecutionDigest:
    """Return the digest of a state."""
    waves = _waves(state)
    models = (node.model for node in state.nodes.values() if node.model)
    parent = state.parent
    return ExecutionDigest(
        steps=sum(sum(wave.values()) for wave in waves),
        waves=waves,
        models=list(dict.fromkeys(map(str, models))),
        usage=state.usage.as_json(),
        parent=None
        if parent is None
        else {"execution_id": parent["execution_id"], "retry": bool(parent.get("retry"))},
        requests=tuple(
            (request, asker_name(state, request.path))
            for request in state.requests.values()
            if not is_timer(request.request)
        ),
        outcome=outcome_of(state)["outcome"],
        inputs=title_of_text("; ".join(_input_texts(state)), _INPUTS_CHARS),
    )


def _input_texts(state: ExecutionState) -> Iterator[str]:
    """Yield the values of the inputs; of an object each field with its name."""
    for given in (state.inputs or {}).values():
        for value in given.values():
            if isinstance(value, dict):
                fields = cast("dict[str, Any]", value)
                yield from (
                    f"{name}: {to_text(each)[:_INPUTS_CHARS]}" for name, each in fields.items()
                )
            else:
                yield to_text(value)[:_INPUTS_CHARS]


def pending_requests(
    records: Sequence[ExecutionRecord], digests: Mapping[str, ExecutionDigest]
) -> list[PendingRequest]:
    """Return the open requests of executions, in their order."""
    pending: list[PendingRequest] = []
    for record in records:
        digest = digests.get(record.execution_id)
        for request, name in digest.requests if digest else ():
            pending.append(PendingRequest.of(record, request, name))
    return sorted(pending, key=lambda each: each.order)


def _waves(state: ExecutionState) -> list[dict[str, int]]:
    """Count the nodes of each wave by status; linked and left out nodes are in none."""
    if state.graph is None:
        return []
    topology = topology_of(read_graph(state.graph)[0])
    nodes = [state.nodes.get(each) or NodeState(each) for each in topology.ids]
    outside = {n for n, node in enumerate(nodes) if node.status in ("linked", "not_reached")}
    part = set(range(len(nodes))) - {n for n in outside if nodes[n].status == "not_reached"}
    depths = topology.depths(part)
    waves: list[Counter[str]] = []
    for number, node in enumerate(nodes):
        if number in outside or topology.linked[number]:
            continue
        depth = depths[number] if node.wave is None else node.wave - 1
        while depth >= len(waves):
            waves.append(Counter())
        waves[depth][node.status] += 1
    return [dict(wave) for wave in waves]


def asker_name(state: ExecutionState, path: str | None) -> str:
    """Return the name of the node that asks, or the title of the plan that is to be approved."""
    if path is None:
        return state.title
    node = state.nodes.get(path)
    if node is not None and node.name:
        return node.name
    documents = state.graph["nodes"] if state.graph else ()
    names = (each.get("name") for each in documents if each["id"] == path)
    return next(names, None) or path
