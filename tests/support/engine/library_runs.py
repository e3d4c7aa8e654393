"""Executions that are changed while they run, some of whose nodes are loops and agents of the library."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

from planwave.bootstrap import open_models, open_providers
from planwave.events import Event, ExecutionState
from planwave.executor.driver.execution import Execution
from planwave.graph.model import LINK, Edge, Graph, Node
from planwave.nodes.agents.tool import TOOLS_HANDLE, Tool, ToolCallContext
from planwave.nodes.agents.tool_registry import ToolRegistry
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.nodes.services import NodeServices
from planwave.providers.protocols import (
    CallKey,
    CallScope,
    Delta,
    ModelReply,
    ModelRequest,
    ToolCall,
    Usage,
)
from planwave.settings import Settings
from planwave.testing import FakeModel
from tests.support.engine.generic_nodes import OPEN_AND_LINK_PORTS, MemoryJournal
from tests.support.engine.random_schedules import ByteChoices
from tests.support.engine.revised_runs import RevisedRun, TellingNode
from tests.support.graph.builders import make_edge
from tests.support.llm.notebook import Notebook
from tests.support.nodes.nested_graphs import graph_document, node_document

TYPES = {"loops": ("step", "loop"), "agents": ("step", "agent", "agent", "tool")}
"""The types of random nodes."""
INSIDE = ("", "", "fails", "fails once", "asks")
"""What a step inside a loop does."""
TOOLS = {"look": "read", "save": "write", "send": "once"}
"""The effects of the tools; a person approves the calls of those that change something."""


class Call(NamedTuple):
    """A call of a model or a tool.

    Attributes:
        path: The node that makes it.
        attempt: The attempt that makes it.
        name: The hash of the request to a model, or the number of the call of a tool in the attempt.
        tool: The tool, "" for a model.
    """

    path: str
    attempt: int
    name: str
    tool: str = ""


def _calls_of(key: CallKey) -> Iterator[Call]:
    """Yield the calls that a record can be of; none for the note that a call has begun."""
    if "/" not in key.request_hash:
        names = ("", key.request_hash), *((each, str(key.ordinal)) for each in TOOLS)
        yield from (Call(key.path, key.attempt, name, tool) for tool, name in names)


class ScriptedModel(FakeModel):
    """A model that calls each of its tools, once or twice, and then says what it has read."""

    def __init__(self, calls: list[Call]) -> None:
        super().__init__(_written)
        self._calls = calls

    async def stream(
        self, request: ModelRequest, scope: CallScope | None = None
    ) -> AsyncGenerator[Delta | ModelReply]:
        assert scope is not None
        self._calls.append(Call(scope.path, scope.attempt, request.hash()))
        async with aclosing(super().stream(request, scope)) as items:
            async for each in items:
                yield each


async def _written(request: ModelRequest) -> ModelReply:
    """Reply after a while; the same to the same request."""
    read = crc32("|".join(request.texts).encode())
    await asyncio.sleep(1 + read % 3)
    turn = sum(each.role == "assistant" for each in request.messages)
    names = request.tool_names if turn <= crc32((request.system or "").encode()) % 2 else ()
    wanted = [ToolCall(f"c{turn}-{name}", name, f'{{"turn": {turn}}}') for name in names]
    text = "" if wanted else f"read {read}"
    return ModelReply(text, "", "", "stop", Usage(3, 2), tool_calls=tuple(wanted))


class MarkingJournal(MemoryJournal):
    """A journal that knows what was recorded of calls when each of its batches was durable."""

    def __init__(self, notebook: Notebook) -> None:
        super().__init__()
        self.marks: list[int] = []
        self._notebook = notebook

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        await super().append(execution_id, epoch, events)
        self.marks.append(len(self._notebook.kept))


class LibraryStep(TellingNode):
    """The node with made-up behaviour, as a registered type."""

    inputs = outputs = OPEN_AND_LINK_PORTS
    replayable = True


class LibraryRun(RevisedRun):
    """An execution of steps, and of loops or agents of the library, that is changed at random moments.

    Args:
        choices: What decides everything.
        types: ``loops``, or ``agents`` with tools, some of which a person approves.

    Attributes:
        notebook: What is recorded of calls.
        calls: The calls of models and tools that were made, in their order.
        paid: Those that are recorded of the processes before; see ``recoveries``.
    """

    def __init__(self, choices: ByteChoices, types: str = "loops") -> None:
        self._types = types
        self.notebook, self.calls, self.paid = Notebook(), list[Call](), set[Call]()
        super().__init__(choices)
        self.graph = self._with_tools(self.graph)
        tools = ToolRegistry()
        for name, effect in TOOLS.items():
            act = partial(self._act, name)
            known: Any = {"effect": effect, "approval": "write"}
            tools.register(Tool(name, f"Does {name}.", {"type": "object"}, act, **known))
        step = LibraryStep(self.started, self.lines)
        self.catalogue = Registry([*LIBRARY, step], tools=tools)
        providers, _ = open_providers(Settings(), ScriptedModel(self.calls))
        models = open_models(Settings(), providers, self.notebook)
        self._services = NodeServices(models, providers, recorder=self.notebook)
        self.journal = MarkingJournal(self.notebook)
        self.journal.batches.append([self._created()])

    async def _act(self, name: str, arguments: Any, context: ToolCallContext) -> str:
        number = context.idempotency_key.rpartition("/")[2]
        self.calls.append(Call(context.flow.path, context.flow.attempt, number, name))
        await asyncio.sleep(2)
        return f"{context.idempotency_key} {arguments}"

    def _with_tools(self, graph: Graph) -> Graph:
        """Return a graph each of whose agents has a tool of its own."""
        nodes, edges = list(graph.nodes), list(graph.edges)
        for agent in (each for each in graph.nodes if each.type == "agent"):
            tool = Node(f"{agent.id}t", "tool", f"{agent.id}t")
            nodes.insert(0, tool._replace(data=self._data(tool)))
            edges.append(make_edge(tool.id, agent.id))
        return self._graph(nodes, edges)

    def _type(self) -> str:
        types = TYPES[self._types]
        return types[self.choices.below(len(types))]

    def _node(self) -> Node:
        node = super()._node()
        return node._replace(description=f"Do {node.id}.") if node.type == "agent" else node

    def _data(self, node: Node) -> dict[str, Any]:
        choices = self.choices
        match node.type:
            case "loop":
                on_error = ("skip", "null", "fail")[choices.below(3)]
                items = [*range(choices.below(4)), *(["{{ input }}"] if choices.one_in(5) else [])]
                # Which of several items at a time fails first, and ends the others, depends on time.
                parallel = 1 if on_error == "fail" else 1 + choices.below(3)
                body = {"items": items, "parallel": parallel, "onItemError": on_error}
                return body | {"body": self._body()}
            case "agent":
                return {"systemPrompt": f"You are {choices.below(9)}.", "maxSteps": 3}
            case "tool":
                return {"name": sorted(TOOLS)[choices.below(len(TOOLS))]}
            case _:
                return super()._data(node)

    def _body(self) -> dict[str, Any]:
        """Return what a loop runs for each item: two steps, one of which may ask or fail."""
        choices = self.choices
        retry = {"retry": {"attempts": 2, "backoffS": 1}}
        does = INSIDE[choices.below(len(INSIDE))]
        first = node_document("i", "step", tag=choices.below(9), delay=choices.below(4))
        second = node_document("j", "step", does=does, delay=choices.below(3))
        nodes = node_document("s", "start"), first, {**second, "policy": retry}
        return graph_document(*nodes, edges=[("s", "i"), ("i", "j")])

    def _graph(self, nodes: Sequence[Node], edges: Sequence[Edge]) -> Graph:
        """Return a graph whose links are of steps, or of tools into agents; tools have no other edges."""
        types = {each.id: each.type for each in nodes}
        fitting = [self._fitting(each, types[each.source], types[each.target]) for each in edges]
        return super()._graph(nodes, [each for each in fitting if each is not None])

    def _fitting(self, edge: Edge, source: str, target: str) -> Edge | None:
        if source == "tool" and target == "agent":
            return edge._replace(
                channel=LINK, data={"channel": LINK},
                source_handle=TOOLS_HANDLE, target_handle=TOOLS_HANDLE,
            )  # fmt: skip
        if "tool" in (source, target):
            return None
        if (source, target) == ("step", "step"):
            return edge
        return make_edge(
            edge.source, edge.target, source_handle=edge.source_handle, edge_id=edge.id
        )

    async def recoveries(self, every: int) -> AsyncGenerator[ExecutionState]:
        """Cut the run off after some of its batches; yield the state at the end of each process that goes on.

        Such a process finds what was recorded of calls when the last of these batches was durable, or else all
        that was recorded before the next one.
        """
        batches, marks = list(self.journal.batches), [0, *self.journal.marks]
        records = list(self.notebook.kept.items())
        for cut in range(1, len(batches), every):
            found = records[: marks[cut - cut % 2]]
            self.notebook.kept.clear()
            self.notebook.kept.update(found)
            self.paid = {each for key, _ in found for each in _calls_of(key)}
            self.calls.clear()
            yield await self.recovered([event for batch in batches[:cut] for event in batch])

    def _execution(self, graph: Graph, **more: Any) -> Execution:
        return super()._execution(graph, services=self._services, **more)

    def _answer_to(self, request_id: str) -> Any:
        """Return an answer; the same where it asks the same, in whichever run."""
        (waiting,) = (
            each
            for each in self.journal.appended
            if each.type == "node.waiting" and each.data["request_id"] == request_id
        )
        request: Any = waiting.data["request"]
        actions = request.get("actions")
        if actions is None:
            return "yes"
        if "run_again" in actions:
            return {"decision": "run_again"}
        return {"decision": "reject" if crc32(str(waiting.path).encode()) % 4 == 0 else "approve"}
