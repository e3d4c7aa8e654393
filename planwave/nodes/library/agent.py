"""``agent``: one task for a language model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Final, Literal, cast

from pydantic import ConfigDict, Field, model_validator

from planwave.graph.inputs import Inputs, labelled_arrivals
from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    FLOW,
    LINK,
    DataValue,
    Json,
    Node,
    Port,
)
from planwave.graph.protocols import (
    ExecutionResult,
    FlowContext,
    NodeEvent,
    NodeTypes,
    SchemaOutput,
)
from planwave.nodes.agents.caller import NO_OPTIONS, CallerOptions
from planwave.nodes.agents.delegation import agent_as_tool, delegation_of, is_called, usable_tools
from planwave.nodes.agents.linked_tools import linked_tools, plan_tools
from planwave.nodes.agents.loop import AgentLoop, AgentResult
from planwave.nodes.agents.tool import TOOL, TOOLS_HANDLE, TOOLS_OUT, Approval, Tool
from planwave.nodes.agents.tool_calls import ToolCalls
from planwave.nodes.authoring.data_fields import (
    FIELD_PORT_SIDE,
    HIDDEN_FROM_PLANNER,
    POLICY,
)
from planwave.nodes.authoring.node_type import INPUT, NodeData, NodeFinding, NodeType, template
from planwave.nodes.checking.agent_links import check_delegation, check_tools
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.conversation import (
    Conversation,
    Images,
    chat_message,
    with_images,
    with_messages,
)
from planwave.nodes.library.model import (
    MODEL_SOCKET,
    Effort,
    MaxTokens,
    Temperature,
)
from planwave.nodes.llm_calls import (
    Prompt,
    check_unused_input,
    has_prompt_input,
    request_facts,
)
from planwave.nodes.model_choice import Fallback, ModelName, ProviderName, with_each_model
from planwave.nodes.services import NodeServices, goal_of, limits_of, services_of
from planwave.prompts.render import agent_prompt, small_agent_grammar, small_agent_prompt
from planwave.providers.protocols import ModelRequest

TOOLS_PORT: Final = Port(TOOLS_HANDLE, TOOL, channel=LINK, multiple=True, side=FIELD_PORT_SIDE)
_MESSAGES: Final = "messages"
_SOURCES: Final = "sources"
_DEFAULT_STEPS: Final = 20
"""Without limits."""
BRIEF_SYSTEM_PROMPT = "Answer briefly and to the point, in a few sentences."
"""System prompt for models with the ``small`` profile; without it they write until the token limit."""


class AgentTools(NodeData):
    """Tools of the provider, and whether the agent may call other agents."""

    model_config = ConfigDict(alias_generator=None)

    web_search: bool = Field(
        default=False, description="Let the provider search the web while the model replies."
    )
    subagents: bool | None = Field(
        default=None, description="Whether agents may be linked to it as tools; unset allows it."
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_list(cls, value: object) -> object:
        if isinstance(value, list):
            raise ValueError(
                "tools are linked to an agent: add a node of the type 'tool' or 'toolset', and a link "
                "from its handle 'tools' to the handle 'tools' of the agent"
            )
        return value


class AgentData(NodeData):
    """Data of an agent; all fields are optional, since a ``description`` can serve as the prompt."""

    system_prompt: str | None = template(
        None,
        description="Who the model is and how it replies. In a plan of a model it is literal.",
    )
    user_prompt: Prompt = template(
        None, description="The prompt, used as it is; without one, goal, task and inputs become it."
    )
    messages: Conversation | None = Field(
        None,
        description="The conversation before the prompt.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    )
    provider: ProviderName = None
    model: ModelName = None
    temperature: Temperature = None
    reasoning_effort: Effort = None
    max_tokens: MaxTokens = None
    fallback: Fallback = None
    tools: AgentTools = Field(
        AgentTools(),
        title="Tools",
        description="Tools of the provider; others are linked to it.",
        json_schema_extra=POLICY,
    )
    images: Images | None = Field(
        None,
        description="Images that go with the prompt.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    )
    output_schema: dict[str, Json] | None = Field(
        None,
        description="A JSON Schema that the result has to fit; the output is JSON then.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    )
    max_steps: int | None = Field(
        None,
        ge=1,
        le=100,
        description="The most replies of the model, in which it may call tools.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    )
    parallel_tools: bool = Field(
        True,
        description="Whether calls of one reply are made at the same time.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    )
    approval: Approval = Field(
        "never",
        description="When a person approves calls of its tools; write: those that change something.",
        json_schema_extra=POLICY,
    )
    delegate: Literal["shared", "exclusive"] = Field(
        "shared",
        description="As a tool of other agents: whether several may share it.",
        json_schema_extra=POLICY,
    )
    caller: CallerOptions | None = Field(
        None,
        title="Caller",
        description="What the caller of the flow asks: tools of its own, a schema of the reply; wire what an "
        "entry node gives.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    )
    agent_name: str | None = Field(
        None,
        description="Its name in another tool; planwave shows the name of the step.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    )


class Agent(NodeType):
    """Calls a model and outputs its text, streamed.

    The prompt: ``userPrompt`` exactly as resolved; without one, a planned node's goal, task
    (``description``) and inputs in natural language; without both, its input as text. ``messages``
    are a conversation before the prompt; with them the prompt may be empty.

    The tools and agents that are linked to ``tools`` are offered to the model, which may call them until
    it replies; a link from ``tools-out`` makes the agent itself a tool of another one. With
    ``outputSchema`` the last reply is JSON that fits it. ``messages`` gives the whole conversation,
    ``sources`` the pages that a reply with the provider's web search cites.

    ``caller`` is what an entry node gives of a request from outside: its own tools, a schema, limits. A call of
    such a tool ends the agent; the caller makes it, and comes back with the result in ``messages``.

    Where a call has failed for good, the models in ``fallback`` are called in this order, until one
    replies; not after errors of the request itself.

    Without ``maxTokens``, an embedded model writes at most 220 tokens, 440 in a last step. A reply that
    reaches this limit is continued once, by half as many tokens. Without ``temperature``, it writes the
    most probable words: the same prompt has the same reply, but for rounding. Where the goal asks for a
    number of things ("give me ten ideas", "in five sentences"), the last step has exactly that many lines or sentences.
    """

    node_type = "agent"
    purpose = "Do one task with a language model: reads its inputs, gives text."
    summary = "Have a language model do one task."
    Data = AgentData
    plan_fields = (
        "systemPrompt", "userPrompt", "provider", "model", "temperature", "reasoningEffort",
        "maxTokens", "tools.web_search",
    )  # fmt: skip
    plan_literals = ("systemPrompt",)
    inputs = (INPUT, MODEL_SOCKET, TOOLS_PORT)
    outputs = (
        Port(DEFAULT_SOURCE_HANDLE, "text"),
        Port(_MESSAGES, "json", schema={"type": "array"}),
        Port(_SOURCES, "json", schema={"type": "array"}),
        Port(TOOLS_OUT, TOOL, channel=LINK),
    )
    schema_output = SchemaOutput("outputSchema", Port(DEFAULT_SOURCE_HANDLE, "json"))
    reads_goal = True
    calls_model = True
    knows_tools = True
    replayable = True  # every call is recorded
    materializes_unresolved = True

    async def run(
        self, data: AgentData, inputs: Inputs, context: FlowContext
    ) -> AsyncGenerator[NodeEvent | ExecutionResult]:
        services = services_of(context)
        caller = data.caller or NO_OPTIONS
        conversation = data.messages or caller.messages
        requests = [with_messages(each, conversation) for each in _requests(data, inputs, context)]
        requests = [caller.applied_to(each, limits_of(context)) for each in requests]
        schema = data.output_schema or caller.output_schema
        if data.images:
            requests = [with_images(each, data.images) for each in requests]
        delegation = delegation_of(context)
        tools = usable_tools(await linked_tools(context), delegation, services.limits)
        may_replan = context.may_replan and _max_steps(data, services) > 1
        if may_replan and _can_replan(requests, services):
            taken = {each.name for each in (*tools, *caller.specs)}
            tools = [*tools, *plan_tools(context, taken)]
        calls = ToolCalls(
            tools,
            context,
            delegation,
            approval=data.approval,
            parallel=data.parallel_tools,
        )
        loop = AgentLoop(
            requests,
            calls,
            max_steps=_max_steps(data, services),
            schema=schema,
            continue_cut=data.max_tokens is None and not (tools or caller.tools or schema),
            caller_tools=caller.specs,
            must_call=caller.must_call and bool(caller.tools),
        )
        async with aclosing(loop.run(self.node_type, context)) as items:
            async for item in items:
                yield _as_outputs(item, data, context) if isinstance(item, AgentResult) else item

    async def result_depends_on(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> Json:
        wired = await self.read_wires(data, inputs, context)
        ready, rest = self.prepare(data, inputs, wired, context)
        tools = usable_tools(
            await linked_tools(context), delegation_of(context), services_of(context).limits
        )
        # Without ``change_plan``: what it asks for is no part of the result.
        offered = [[each.name, each.description, dict(each.parameters)] for each in tools]
        return [request_facts(_requests(ready, rest, context)), offered]

    def decided_by_edges(self, data: Mapping[str, Json], leaving: Sequence[str]) -> Json:
        """Return whether the conversation is given; see ``_as_outputs``."""
        return _MESSAGES in leaving

    async def materialize(
        self, data: Mapping[str, Json], output_handle: str, context: FlowContext
    ) -> Tool:
        """Return the agent as a tool of the agents that it is linked to."""
        return agent_as_tool(context.runtime.get_node(context.node_id))

    def tool_texts(self, node: Node, catalogue: NodeTypes) -> Sequence[str]:
        """Return what the model of another agent reads of this one, as a tool."""
        return agent_as_tool(node).spec.texts

    def check(self, data: AgentData | None, view: NodeView) -> Iterable[NodeFinding]:
        described = view.node.description.strip()
        is_called = any(edge.source_handle == TOOLS_OUT for edge in view.outgoing)
        fed = is_called or has_prompt_input(view, "userPrompt")
        asks = data is not None and (data.user_prompt or data.messages)
        if data is not None and not (asks or described or fed):
            yield NodeFinding(
                "missing-required-input",
                "an agent needs a description, a userPrompt, messages or an input",
                hint="describe the task in the node's description",
            )
        if data is not None and data.user_prompt:
            yield from check_unused_input(view, "userPrompt")
        if data is not None:
            yield from check_tools(view, web_search=data.tools.web_search)
            yield from check_delegation(view, data.tools.subagents, data.delegate)
            yield from _check_output_schema(data)


def _check_output_schema(data: AgentData) -> Iterator[NodeFinding]:
    if data.output_schema is None:
        return
    # Lazy: test_importing_the_node_library_loads_no_sdk
    from planwave.nodes.json_schema import check_schema

    if data.output_schema.get("type") != "object":
        message = "data.outputSchema has to describe an object: models reply with one"
        hint = 'set "type": "object", and put other values into a field of it'
        yield NodeFinding("invalid-data", message, "/data/outputSchema", hint)
    for error in check_schema(cast("Json", data.output_schema)):
        message = f"data.outputSchema is no usable JSON Schema: {error.message}"
        yield NodeFinding("invalid-data", message, f"/data/outputSchema{error.pointer}", error.hint)


def _max_steps(data: AgentData, services: NodeServices) -> int:
    limits = services.limits
    most = _DEFAULT_STEPS if limits is None else limits.tool_rounds
    return most if data.max_steps is None else min(data.max_steps, most)


def _can_replan(requests: Iterable[ModelRequest], services: NodeServices) -> bool:
    """Return whether the models may be offered to ask for changes of the plan: all call tools, none is small."""
    profiles = (services.providers.profile(each.provider, each.model) for each in requests)
    return all(profile.tools and not profile.small for profile in profiles)


def _as_outputs(result: AgentResult, data: AgentData, context: FlowContext) -> ExecutionResult:
    """Return the outputs; the conversation only where an edge takes it, because it is long."""
    value = DataValue("text", result.text)
    if result.value is not None:
        value = DataValue("json", result.value)
    outputs = {DEFAULT_SOURCE_HANDLE: value}
    if context.runtime.outgoing_edges(context.node_id, source_handle=_MESSAGES):
        outputs[_MESSAGES] = DataValue(
            "json", [chat_message(turn).as_json() for turn in result.messages]
        )
    if data.tools.web_search:
        outputs[_SOURCES] = DataValue("json", [source._asdict() for source in result.sources])
    return ExecutionResult(outputs)


def _requests(data: AgentData, inputs: Inputs, context: FlowContext) -> list[ModelRequest]:
    """Return the first call of an agent, once for each model, in the order in which they are tried."""
    services = services_of(context)
    models = with_each_model(data, data.fallback)
    return [agent_request(each, inputs, context, services) for each in models]


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
    if cap is not None and _is_last(context):
        cap *= 2  # leave room for a proper end
    return ModelRequest(
        provider,
        model,
        prompt,
        system=data.system_prompt or system,
        temperature=data.temperature,
        max_tokens=data.max_tokens or cap,
        reasoning_effort=data.reasoning_effort,
        web_search=data.tools.web_search,
        grammar=_grammar(data, context) if profile.grammars else None,
    )


def _grammar(data: AgentData, context: FlowContext) -> str | None:
    """Return the grammar of a planned step's reply; other prompts are used as they are."""
    task = context.runtime.get_node(context.node_id).description.strip()
    if data.user_prompt or data.output_schema is not None or not task or is_called(context):
        return None
    return small_agent_grammar(goal_of(context), task, is_last=_is_last(context))


def _is_last(context: FlowContext) -> bool:
    """Return whether no node reads the result, so that it is for people."""
    is_read = context.runtime.outgoing_edges(context.node_id, channel=FLOW) or is_called(context)
    return not is_read


def _system_and_prompt(
    data: AgentData, inputs: Inputs, context: FlowContext, goal: str, *, small: bool
) -> tuple[str | None, str]:
    """Return the default system prompt for the model, and the prompt."""
    brief = BRIEF_SYSTEM_PROMPT if small else None
    if data.user_prompt:
        return brief, data.user_prompt
    task = context.runtime.get_node(context.node_id).description.strip()
    if not task or is_called(context):
        return brief, inputs.text(DEFAULT_TARGET_HANDLE)
    arrived = tuple(a for a in inputs.arrivals if a.target_handle == DEFAULT_TARGET_HANDLE)
    if small:
        return small_agent_prompt(goal, task, labelled_arrivals(arrived), is_last=_is_last(context))
    return None, agent_prompt(goal, task, labelled_arrivals(arrived))
