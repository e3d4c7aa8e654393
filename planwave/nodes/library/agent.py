"""``agent``: one task for a language model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from pydantic import ConfigDict, Field

from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_TARGET_HANDLE, DataValue, Port
from planwave.graph.protocols import FlowContext, NodeEvent
from planwave.graph.upstream_text import labelled_arrivals
from planwave.nodes.authoring.data_fields import HIDDEN_FROM_PLANNER
from planwave.nodes.authoring.node_type import INPUT, NodeData, NodeFinding, NodeType, template
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.conversation import ChatMessage, with_messages
from planwave.nodes.library.model import MODEL_SOCKET, Effort
from planwave.nodes.llm_calls import Prompt, call_model, check_unused_input, has_prompt_input
from planwave.nodes.services import NodeServices, goal_of, services_of
from planwave.prompts.render import agent_prompt, small_agent_prompt
from planwave.providers.protocols import ModelReply, ModelRequest

BRIEF_SYSTEM_PROMPT = "Answer briefly and to the point, in a few sentences."
"""System prompt for models with the ``small`` profile; without it they write until the token limit."""


class AgentTools(NodeData):
    """Tools that the agent may use."""

    model_config = ConfigDict(alias_generator=None)

    web_search: bool = False
    subagents: bool = False


class AgentData(NodeData):
    """Data of an agent; all fields are optional, since a ``description`` can serve as the prompt."""

    agent_name: str | None = Field(None, json_schema_extra=HIDDEN_FROM_PLANNER)
    system_prompt: str | None = None
    user_prompt: Prompt = template(None)
    messages: list[ChatMessage] | None = Field(None, json_schema_extra=HIDDEN_FROM_PLANNER)
    provider: str | None = Field(None, min_length=1)
    model: str | None = Field(None, min_length=1)
    temperature: float | None = Field(None, ge=0, le=2)
    reasoning_effort: Effort | None = None
    max_tokens: int | None = Field(None, ge=1)
    tools: AgentTools = Field(AgentTools(), json_schema_extra=HIDDEN_FROM_PLANNER)


class Agent(NodeType):
    """Calls a model once and outputs its text, streamed.

    The prompt: ``userPrompt`` exactly as resolved; without one, a planned node's goal, task
    (``description``) and inputs in natural language; without both, its input as text. ``messages``
    are a conversation before the prompt; with them the prompt may be empty.
    """

    node_type = "agent"
    purpose = "Do one task with a language model: reads its inputs, gives text."
    Data = AgentData
    inputs = (INPUT, MODEL_SOCKET)
    outputs = (Port("output", "text"),)
    reads_goal = True
    calls_model = True

    async def run(
        self, data: AgentData, inputs: Inputs, context: FlowContext
    ) -> AsyncGenerator[NodeEvent | DataValue]:
        request = agent_request(data, inputs, context, services_of(context))
        request = with_messages(request, data.messages)
        async with aclosing(call_model(request, self.node_type, context)) as items:
            async for item in items:
                if isinstance(item, ModelReply):
                    yield DataValue("text", item.text)
                else:
                    yield item

    def check(self, data: AgentData | None, view: NodeView) -> Iterable[NodeFinding]:
        described = view.node.description.strip()
        fed = has_prompt_input(view, "userPrompt")
        asks = data is not None and (data.user_prompt or data.messages)
        if data is not None and not (asks or described or fed):
            yield NodeFinding(
                "missing-required-input",
                "an agent needs a description, a userPrompt, messages or an input",
                hint="describe the task in the node's description",
            )
        if data is not None and data.user_prompt:
            yield from check_unused_input(view, "userPrompt")
        if data is not None and (data.tools.web_search or data.tools.subagents):
            can = view.profile is None or view.profile.tools
            yield NodeFinding(
                "tools-unavailable",
                "tools are not offered to models by this version; the agent answers without them"
                if can
                else "the chosen model cannot use tools; the agent answers without them",
                "/data/tools",
                hint="remove data.tools" if can else "choose a larger model, or remove data.tools",
                severity="warning",
            )


def agent_request(
    data: AgentData, inputs: Inputs, context: FlowContext, services: NodeServices
) -> ModelRequest:
    """Return the model call of an agent.

    Raises:
        NodeError: The provider or model is unknown or unavailable.
    """
    provider, model = services.model_for(data.provider, data.model)
    profile = services.providers.profile(provider, model)
    system, prompt = _system_and_prompt(
        data, inputs, context, goal_of(context), small=profile.small
    )
    cap = profile.max_output_tokens
    if cap is not None and not context.runtime.outgoing_edges(context.node_id):
        cap *= 2  # no node reads this result, so a person does: leave room for a proper end
    return ModelRequest(
        provider,
        model,
        prompt,
        system=data.system_prompt or system,
        temperature=data.temperature,
        max_tokens=data.max_tokens or cap,
        reasoning_effort=data.reasoning_effort,
    )


def _system_and_prompt(
    data: AgentData, inputs: Inputs, context: FlowContext, goal: str, *, small: bool
) -> tuple[str | None, str]:
    """Return the default system prompt for the model, and the prompt."""
    brief = BRIEF_SYSTEM_PROMPT if small else None
    if data.user_prompt:
        return brief, data.user_prompt
    task = context.runtime.get_node(context.node_id).description.strip()
    if not task:
        return brief, inputs.text(DEFAULT_TARGET_HANDLE)
    arrived = tuple(a for a in inputs.arrivals if a.target_handle == DEFAULT_TARGET_HANDLE)
    if small:
        return small_agent_prompt(goal, task, labelled_arrivals(arrived))
    return None, agent_prompt(goal, task, labelled_arrivals(arrived))
