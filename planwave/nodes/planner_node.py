"""``planner``: plan a goal while the graph runs, and run that plan."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic import Field

from planwave.errors import NodeError, PlanInvalid
from planwave.graph.capabilities import ExecutionResult, FlowContext, NodeEvent
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DEFAULT_TARGET_HANDLE, Json, Port
from planwave.graph.plan import Plan
from planwave.graph.read import read_graph
from planwave.graph.values import DataValue, Inputs
from planwave.nodes.model_call import Prompt, is_fed
from planwave.nodes.nested import prepared
from planwave.nodes.node_type import INPUT, Finding, NodeData, NodeType, template
from planwave.nodes.services import services_of
from planwave.nodes.wiring import Wiring
from planwave.providers.api import CallScope

_KEY: Final = "plan"


class PlannerData(NodeData):
    """The goal, who plans it, and what the plan may use."""

    goal: Prompt = template(None)
    provider: str | None = Field(None, min_length=1)
    model: str | None = Field(None, min_length=1)
    allowed_node_types: list[str] | None = None
    max_nodes: int | None = Field(None, ge=1)


class PlannerNode(NodeType):
    """Plans ``data.goal``, or its input, and runs the plan inside; gives its result and the plan."""

    node_type = "planner"
    purpose = (
        "Let a language model write a plan for a goal that is only known while the graph runs, and "
        "run that plan; gives its result."
    )
    Data = PlannerData
    inputs = (INPUT,)
    outputs = (Port(DEFAULT_SOURCE_HANDLE), Port("plan", "json"))
    calls_model = True
    reads_goal = True
    runs_graphs = True
    planned = False
    example: Mapping[str, Json] = {
        "nodes": [
            {
                "id": "solve",
                "type": "planner",
                "data": {"goal": "Explain in two steps why the sky is blue", "maxNodes": 3},
            }
        ],
        "edges": [],
    }

    async def run(
        self, data: PlannerData, inputs: Inputs, context: FlowContext
    ) -> AsyncGenerator[NodeEvent | ExecutionResult]:
        planning = _Planning(data, inputs, context)
        try:
            document = await context.runtime.once(_KEY, planning.document)
        except PlanInvalid as invalid:
            for event in self._told(planning, invalid.attempts):
                yield event
            raise
        if planning.made is not None:
            for event in self._told(planning, planning.made.attempts):
                yield event
        graph, _ = read_graph({"nodes": document["nodes"], "edges": document["edges"]})
        nested = prepared(graph, context.runtime.catalogue)
        result = nested.result(await nested.run(_KEY, None, {"goal": document["goal"]}, context))
        outputs = {DEFAULT_SOURCE_HANDLE: result, "plan": DataValue("json", document)}
        yield ExecutionResult(outputs)

    def _told(
        self, planning: _Planning, attempts: Iterable[Mapping[str, Any]]
    ) -> Iterator[NodeEvent]:
        """Say what the calls took, and which plan was made."""
        context, made = planning.context, planning.made

        def told(event_type: str, data: Json) -> NodeEvent:
            return NodeEvent(context.node_id, self.node_type, event_type, context.run_id, data)

        provider, model = planning.who
        for attempt in attempts:
            yield told("usage", {"provider": provider, "model": model, **attempt["usage"]})
        if made is not None:
            nodes = len(made.graph.nodes)
            yield told("plan", {"title": made.title, "hash": made.hash, "nodes": nodes})

    def find_faults(self, data: PlannerData | None, wiring: Wiring) -> Iterable[Finding]:
        if data is None:
            return
        if data.goal is None and not is_fed(wiring, "goal"):
            yield Finding(
                "missing-required-input",
                "a planner needs a goal or an input",
                "/data/goal",
                hint="write data.goal, or connect an edge to 'input'",
            )


class _Planning:
    """Plans what a node wants planned; ``made`` stays None where that was done before."""

    def __init__(self, data: PlannerData, inputs: Inputs, context: FlowContext) -> None:
        self.context = context
        self.made: Plan | None = None
        self.who = "", ""
        self._data, self._inputs = data, inputs

    async def document(self) -> Json:
        """Give the plan as it is kept: ``{"goal", "title", "nodes", "edges"}``."""
        data, context, services = self._data, self.context, services_of(self.context)
        if services.planner is None:
            raise NodeError(
                f"node {context.node_id!r} plans, and this run has no planner",
                code="no-planner",
                hint="run it through a service",
            )
        self.who = services.model_for(data.provider, data.model)
        made = await services.planner.create_plan(
            self._inputs.text(DEFAULT_TARGET_HANDLE) if data.goal is None else data.goal,
            *self.who,
            node_types=data.allowed_node_types,
            max_nodes=data.max_nodes,
            scope=CallScope(
                context.run_id, context.path, context.attempt, context.answers, context.left_s
            ),
        )
        self.made = made
        return {"goal": made.user_prompt, "title": made.title, **made.graph.to_document()}
