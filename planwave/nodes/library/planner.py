"""``planner``: plan a goal while the graph runs, and run that plan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

from pydantic import Field

from planwave.errors import PermanentError, PlanInvalid, ProviderError
from planwave.events.types import PLANNING
from planwave.graph.inputs import Inputs
from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    LINK,
    DataValue,
    Json,
    Port,
)
from planwave.graph.plan import Plan
from planwave.graph.protocols import (
    ExecutionResult,
    FlowContext,
    NodeEvent,
    Reservation,
    WrittenBy,
)
from planwave.graph.reading.documents import read_graph
from planwave.nodes.authoring.data_fields import POLICY
from planwave.nodes.authoring.node_type import INPUT, NodeData, NodeFinding, NodeType, template
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.library.model import (
    MODEL_SOCKET,
    Effort,
    MaxTokens,
    Temperature,
)
from planwave.nodes.llm_calls import CallBudget, Prompt, has_prompt_input, request_facts
from planwave.nodes.model_choice import ModelName, ProviderName
from planwave.nodes.recorded_calls import call_scope
from planwave.nodes.services import GoalPlanner, PlanEvent, services_of
from planwave.nodes.subgraphs import prepare
from planwave.prompts.render import template_hash
from planwave.providers.protocols import CallSettings

_RUN_KEY: Final = "plan"


class PlannerData(NodeData):
    """The goal, the model that plans it, and the node types that the plan may use."""

    goal: Prompt = template(None, description="What to plan and do; without one, the input.")
    provider: ProviderName = None
    model: ModelName = None
    temperature: Temperature = None
    reasoning_effort: Effort = None
    max_tokens: MaxTokens = None
    allowed_node_types: list[str] | None = Field(
        None,
        description="The node types that the plan may have; without them, all for planners.",
        json_schema_extra=POLICY,
    )
    max_nodes: int | None = Field(None, ge=1, description="The most nodes that the plan may have.")


class PlannerNode(NodeType):
    """Plans ``data.goal``, or its input, and runs the plan inside; gives its result and the plan."""

    node_type = "planner"
    purpose = (
        "Let a language model write a plan for a goal that is only known while the graph runs, and "
        "run that plan; gives its result."
    )
    summary = "Have a model plan a goal and run that plan."
    Data = PlannerData
    plan_fields = (
        "goal", "provider", "model", "temperature", "reasoningEffort", "maxTokens", "maxNodes",
    )  # fmt: skip
    inputs = (INPUT, MODEL_SOCKET)
    outputs = (Port(DEFAULT_SOURCE_HANDLE), Port("plan", "json"))
    calls_model = True
    reads_goal = True
    runs_graphs = True
    replayable = True
    planned = False

    async def run(
        self, data: PlannerData, inputs: Inputs, context: FlowContext
    ) -> AsyncGenerator[NodeEvent | ExecutionResult]:
        planning = _PlanStream(data, inputs, context)
        async with aclosing(planning.events()) as events:
            async for event in events:
                yield event
        document = planning.document
        graph, _ = read_graph({"nodes": document["nodes"], "edges": document["edges"]})
        nested = prepare(graph, context.runtime.catalogue)
        result = nested.result(
            await nested.run(
                _RUN_KEY,
                None,
                {"goal": document["goal"]},
                context,
                WrittenBy(node_types=_types_for_plan(data, context)),
            )
        )
        outputs = {DEFAULT_SOURCE_HANDLE: result, "plan": DataValue("json", document)}
        yield ExecutionResult(outputs)

    async def result_depends_on(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> Json:
        """Return what the plan is made of, and the variables, as expressions of the plan may use them."""
        wired = await self.read_wires(data, inputs, context)
        ready, rest = self.prepare(data, inputs, wired, context)
        services = services_of(context)
        provider, model = services.model_for(ready.provider, ready.model)
        request = _planner_of(context).request_for(
            _goal(ready, rest),
            provider,
            model,
            node_types=_types_for_plan(ready, context),
            max_nodes=ready.max_nodes,
        )
        facts = [request_facts([request]), request.schema, template_hash("planner")]
        return [*facts, dict(context.runtime.variables)]

    def check(self, data: PlannerData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None:
            return
        if data.goal is None and not has_prompt_input(view, "goal"):
            yield NodeFinding(
                "missing-required-input",
                "a planner needs a goal or an input",
                "/data/goal",
                hint="write data.goal, or connect an edge to 'input'",
            )
        yield from _check_linked_fallback(view)


def _types_for_plan(data: PlannerData, context: FlowContext) -> tuple[str, ...] | None:
    """Return the only types that a plan may have: inside another plan, none that it may not have."""
    own, around = data.allowed_node_types, context.runtime.written_by
    if around is None or around.node_types is None:
        return None if own is None else tuple(own)
    within = around.node_types
    return within if own is None else tuple(name for name in own if name in within)


def _check_linked_fallback(view: NodeView) -> Iterator[NodeFinding]:
    for edge in view.incoming:
        source = view.index.by_id.get(edge.source)
        linked = edge.channel == LINK and edge.target_handle == MODEL_SOCKET.name
        if linked and source is not None and source.data.get("fallback"):
            yield NodeFinding(
                "type-mismatch",
                f"{source.id!r} sets a fallback, which a planner cannot call",
                hint=f"link another model, or remove the fallback of {source.id!r}",
            )


def _planner_of(context: FlowContext) -> GoalPlanner:
    planner = services_of(context).planner
    if planner is None:
        raise PermanentError(
            f"node {context.node_id!r} needs a planner, but this run has none",
            code="no-planner",
            hint="run it through a service",
        )
    return planner


def _goal(data: PlannerData, inputs: Inputs) -> str:
    return inputs.text(DEFAULT_TARGET_HANDLE) if data.goal is None else data.goal


class _PlanStream:
    """The planning of a node's goal; reads the stored plan if there is one.

    Attributes:
        document: The plan as it is stored: ``{"goal", "title", "nodes", "edges"}``.
    """

    def __init__(self, data: PlannerData, inputs: Inputs, context: FlowContext) -> None:
        self.document: Json = None
        self._data, self._inputs, self._context = data, inputs, context
        self._model = "", ""
        self._plan_result: Plan | None = None
        self._events: asyncio.Queue[tuple[NodeEvent, list[Reservation]] | None] = asyncio.Queue()
        self._scope = call_scope(context)
        providers = services_of(context).providers
        self._budget = CallBudget(context.budget, providers, self._scope)
        self._repairs = 0

    async def events(self) -> AsyncGenerator[NodeEvent]:
        """Plan, and yield events while the plan is written; ``document`` is set at the end.

        Raises:
            PlanwaveError: There is no plan; the usage of the calls has been emitted.
        """
        # Not a TaskGroup: leaving early raises GeneratorExit here, which a group would report as an
        # ExceptionGroup.
        planning = asyncio.get_running_loop().create_task(
            self._context.runtime.once(_RUN_KEY, self._plan)
        )
        planning.add_done_callback(lambda _: self._events.put_nowait(None))
        try:
            while (item := await self._events.get()) is not None:
                event, reservations = item
                yield event
                for reservation in reservations:
                    reservation.release()
                self._events.task_done()
        finally:
            planning.cancel()
            await asyncio.wait([planning])
            failure = None if planning.cancelled() else planning.exception()
        if isinstance(failure, PlanInvalid | ProviderError):
            for attempt in failure.attempts[self._repairs :]:
                yield self._usage_event(attempt["usage"])
        self.document = planning.result()
        if self._plan_result is not None:
            nodes = len(self._plan_result.graph.nodes)
            summary = {
                "title": self._plan_result.title,
                "hash": self._plan_result.hash,
                "nodes": nodes,
            }
            yield self._event("plan", summary)

    async def _plan(self) -> Json:
        data, context = self._data, self._context
        planner = _planner_of(context)
        self._model = services_of(context).model_for(data.provider, data.model)
        types = _types_for_plan(data, context)
        plan = await planner.create_plan(
            _goal(data, self._inputs),
            *self._model,
            on_progress=self._on_progress,
            node_types=None if types is None else [*types],
            max_nodes=data.max_nodes,
            settings=CallSettings(data.temperature, data.max_tokens, data.reasoning_effort),
            scope=self._scope,
        )
        self._plan_result = plan
        # Emit before the plan is stored: a later run reads the stored plan and repeats no call.
        for attempt in plan.attempts[self._repairs :]:
            self._emit(self._usage_event(attempt["usage"]), self._budget.take())
        await self._events.join()
        asked = {"questions": [*plan.questions]} if plan.questions else {}
        return {"goal": plan.user_prompt, "title": plan.title, **asked, **plan.graph.to_document()}

    def _on_progress(self, progress: PlanEvent) -> None:
        if progress.usage is not None:
            self._repairs += 1
            self._emit(self._usage_event(progress.usage), self._budget.take())
        if progress.kind != "delta":
            self._emit(self._event(PLANNING, {"kind": progress.kind, **progress.data}))
        elif progress.data["reasoning"]:  # the rest is JSON of the reply, not for display
            piece = {"text": progress.data["text"], "kind": "reasoning"}
            self._emit(self._event("delta", piece))

    def _emit(self, event: NodeEvent, reservations: Sequence[Reservation] = ()) -> None:
        """Emit an event; what was reserved for the calls that it reports is released after it."""
        self._events.put_nowait((event, [*reservations]))

    def _usage_event(self, usage: Mapping[str, Any]) -> NodeEvent:
        provider, model = self._model
        return self._event("usage", {"provider": provider, "model": model, **usage})

    def _event(self, event_type: str, data: Json) -> NodeEvent:
        context = self._context
        return NodeEvent(context.node_id, PlannerNode.node_type, event_type, context.run_id, data)
