"""Node types that mean nothing, a journal that can stop or fail, and a harness to run them on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from planwave.errors import StoreError
from planwave.events import Event
from planwave.executor.driver.execution import Execution
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.inputs import Inputs
from planwave.graph.model import LINK, DataValue, Graph, Node, Port
from planwave.graph.protocols import ExecutionResult, FlowContext, NodeEvent, NodeTypeInfo

Behavior = Callable[..., Any]
DEFAULT_OPTIONS = RunOptions()
OPEN_PORTS = (Port("{name}", multiple=True),)
OPEN_AND_LINK_PORTS = (*OPEN_PORTS, Port("{name}", channel=LINK, multiple=True))


def result_with(value: Any = None, handle: str = "output") -> ExecutionResult:
    """A result with one value."""
    return ExecutionResult({handle: DataValue("any", value)})


def node_event(context: FlowContext, kind: str, data: Any) -> NodeEvent:
    """An event that a node emits."""
    return NodeEvent(context.node_id, "step", kind, context.run_id, data)


class GenericNode:
    """Does what the harness has for the node's id: a result, or a function of (inputs, context)."""

    node_type = "step"

    def __init__(self, behaviors: Mapping[str, Any]) -> None:
        self.behaviors = behaviors

    def execute(self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext) -> Any:
        act = self.behaviors.get(context.node_id)
        if callable(act):
            return act(inputs, context)
        return _ready(act if isinstance(act, ExecutionResult) else result_with(context.node_id))

    def resume(
        self, data: Any, inputs: Inputs, context: FlowContext, state: Any, answer: Any
    ) -> Any:
        resumed = self.behaviors.get(f"{context.node_id}:resume")
        if resumed is not None:
            return resumed(inputs, context, state, answer)
        return _ready(result_with([state, answer]))

    async def materialize(self, data: Any, output_handle: str, context: FlowContext) -> Any:
        make = self.behaviors.get(f"{context.node_id}:make")
        if make is not None:
            return await make(data, context)
        return f"made {context.node_id}.{output_handle}"


async def _ready(result: Any) -> Any:
    return result


class GenericNodeTypes:
    """A catalogue of four meaningless types."""

    def __init__(self, behaviors: Mapping[str, Any]) -> None:
        self._node = GenericNode(behaviors)
        both = {"materializes": True, "replayable": True}
        self._facts = {
            "step": NodeTypeInfo("step", "", OPEN_AND_LINK_PORTS, OPEN_AND_LINK_PORTS, **both),
            "door": NodeTypeInfo("door", "", OPEN_PORTS, OPEN_PORTS, entry=True),
            "vein": NodeTypeInfo(
                "vein",
                "",
                OPEN_AND_LINK_PORTS,
                OPEN_AND_LINK_PORTS,
                executes=False,
                materializes=True,
            ),
            "picky": NodeTypeInfo(
                "picky", "", (Port("need", required=True), *OPEN_PORTS), OPEN_PORTS
            ),
            "plain": NodeTypeInfo("plain", "", OPEN_PORTS, OPEN_PORTS),
        }

    def type_info(self, node_type: str) -> NodeTypeInfo | None:
        return self._facts.get(node_type)

    def implementation(self, node_type: str) -> Any:
        return self._node

    def names(self) -> Sequence[str]:
        return sorted(self._facts)

    def accepts(self, target_type: str, source_type: str) -> bool:
        return True

    def check(self, node: Node, graph: Graph) -> Sequence[Diagnostic]:
        return ()


class MemoryJournal:
    """A journal in memory. ``hold`` makes appends wait; ``fail_at`` refuses that batch (from 1)."""

    def __init__(self, *, hold: bool = False, fail_at: int | None = None) -> None:
        self.batches: list[list[Event]] = []
        self.appends_started = 0
        self._fail_at = fail_at
        self._free = asyncio.Event()
        if not hold:
            self._free.set()

    def hold(self) -> None:
        self._free.clear()

    def release(self) -> None:
        self._free.set()

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        self.appends_started += 1
        if self.appends_started == self._fail_at:
            raise StoreError("the disk is full")
        await asyncio.sleep(0)
        await self._free.wait()
        self.batches.append(list(events))

    async def events(self, execution_id: str) -> list[Event]:
        return self.appended

    @property
    def appended(self) -> list[Event]:
        return [event for batch in self.batches for event in batch]


class ExecutionHarness:
    """One execution of a graph of generic nodes, with everything it published."""

    def __init__(
        self,
        graph: Graph,
        behaviors: Mapping[str, Any] | None = None,
        options: RunOptions = DEFAULT_OPTIONS,
        **more: Any,
    ) -> None:
        self.behaviors = dict(behaviors or {})
        self.published: list[Event] = []
        self.batches: list[list[Event]] = []
        self.listeners: list[Callable[[Event], None]] = []
        self.program = Program(graph, GenericNodeTypes(self.behaviors))
        self.execution = Execution(
            self.program,
            execution_id="x1",
            options=options,
            on_events=self._record,
            **{"now": lambda: "2026-01-01T00:00:00.000000+00:00", **more},
        )

    def _record(self, events: list[Event]) -> None:
        self.batches.append(events)
        self.published += events
        for event in events:
            for listener in self.listeners:
                listener(event)

    async def run(self) -> str:
        return await self.execution.run()

    @property
    def stored(self) -> list[Event]:
        return [e for e in self.published if e.seq]

    def event_names(self, *types: str) -> list[str]:
        """The events as ``type path``, optionally of some types only."""
        return [
            f"{e.type} {e.path}" if e.path else e.type
            for e in self.stored
            if not types or e.type in types
        ]

    def data_of(self, event_type: str, path: str | None = None) -> list[dict[str, Any]]:
        """The data of all events of a type, in order."""
        return [e.data for e in self.published if e.type == event_type and path in (None, e.path)]

    def request_id(self, number: int = 0) -> str:
        """The id of a request, by the order in which they were made."""
        return self.data_of("node.waiting")[number]["request_id"]

    def answer_after(self, delay_s: float, answer: Any = "yes", number: int = 0) -> None:
        """Answer a request some seconds from now."""

        def answer_now() -> None:
            self.execution.answer(self.request_id(number), answer)

        asyncio.get_running_loop().call_later(delay_s, answer_now)

    def answer_every_request(
        self, delay_s: float, answer: Any, open_requests: Iterable[str] = ()
    ) -> None:
        """Answer each request some seconds after it was made; those already open, from now on."""
        call_later = asyncio.get_running_loop().call_later

        def answer_if_open(request_id: str) -> None:
            if request_id in self.execution._run.requests:
                self.execution.answer(request_id, answer)

        def listen(event: Event) -> None:
            if event.type == "node.waiting":
                call_later(delay_s, answer_if_open, event.data["request_id"])

        self.listeners.append(listen)
        for request_id in open_requests:
            call_later(delay_s, answer_if_open, request_id)

    def interrupt_after(self, delay_s: float) -> None:
        """End the execution some seconds from now without an outcome, as a crash does."""
        loop = asyncio.get_running_loop()
        loop.call_later(delay_s, lambda: self.execution.interrupt(at_once=True))

    def check_sequence(self, first: int = 1) -> None:
        numbers = [e.seq for e in self.stored]
        assert numbers == list(range(first, first + len(numbers)))
        ends = [e.type for e in self.stored if e.type in TERMINAL_TYPES]
        assert len(ends) <= 1
        assert not ends or self.stored[-1].type == ends[0]


TERMINAL_TYPES = ("execution.completed", "execution.failed", "execution.cancelled")
