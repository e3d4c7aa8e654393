"""``llm``: one plain model call, as text or as JSON."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing

from pydantic import AliasChoices, Field

from planwave.errors import GraphInvalid, ResultNotJson
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_TARGET_HANDLE, DataValue, Json
from planwave.graph.protocols import FlowContext, NodeEvent
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.nodes.authoring.data_fields import HIDDEN_FROM_PLANNER
from planwave.nodes.authoring.node_type import INPUT, NodeData, NodeFinding, NodeType, template
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.conversation import Conversation, with_messages
from planwave.nodes.library.agent import BRIEF_SYSTEM_PROMPT
from planwave.nodes.library.model import (
    MODEL_SOCKET,
    Effort,
    MaxTokens,
    Temperature,
)
from planwave.nodes.llm_calls import (
    Prompt,
    call_model,
    check_unused_input,
    has_prompt_input,
    request_facts,
)
from planwave.nodes.model_choice import Fallback, ModelName, ProviderName, with_each_model
from planwave.nodes.services import NodeServices, services_of
from planwave.providers.protocols import ModelReply, ModelRequest
from planwave.providers.reply_text import json_text

JSON_ONLY = "Answer with one JSON value and nothing else."


class LlmData(NodeData):
    """One call; without a prompt the node's input is the prompt, which follows ``messages``."""

    provider: ProviderName = None
    model: ModelName = None
    prompt: Prompt = template(None, description="The prompt; without one, the input.")
    system: str | None = template(
        None, description="The system prompt. In a plan of a model it is literal."
    )
    messages: Conversation | None = Field(
        None,
        description="The conversation before the prompt.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    )
    temperature: Temperature = None
    reasoning_effort: Effort = None
    max_tokens: MaxTokens = None
    fallback: Fallback = None
    json_output: bool = Field(
        False,
        description="Whether the reply is JSON.",
        validation_alias=AliasChoices("jsonOutput", "json_mode"),
        serialization_alias="jsonOutput",
    )
    stream: bool = Field(True, description="Whether the reply is shown while it is written.")


class Llm(NodeType):
    """Sends ``prompt`` unchanged, or else its input; outputs the text, or the JSON value in it.

    ``messages`` are a conversation before the prompt; with them the prompt may be empty. Where a call
    has failed for good, the models in ``fallback`` are called in this order, until one replies; not
    after errors of the request itself, nor after a reply that is not JSON.
    """

    node_type = "llm"
    purpose = "Call a language model with exactly this prompt; with jsonOutput the reply is JSON."
    summary = "Send exactly this prompt to a model."
    Data = LlmData
    plan_fields = (
        "provider", "model", "prompt", "system", "temperature", "reasoningEffort", "maxTokens",
        "jsonOutput", "stream",
    )  # fmt: skip
    plan_literals = ("system",)
    inputs = (INPUT, MODEL_SOCKET)
    calls_model = True
    replayable = True

    async def run(
        self, data: LlmData, inputs: Inputs, context: FlowContext
    ) -> AsyncGenerator[NodeEvent | DataValue]:
        requests = [with_messages(each, data.messages) for each in _requests(data, inputs, context)]
        async with aclosing(
            call_model(
                requests,
                self.node_type,
                context,
                deltas=data.stream,
                continue_cut=data.max_tokens is None,
            )
        ) as items:
            async for item in items:
                if isinstance(item, ModelReply):
                    yield _reply_value(item, data.json_output)
                else:
                    yield item

    async def result_depends_on(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> Json:
        wired = await self.read_wires(data, inputs, context)
        return request_facts(_requests(*self.prepare(data, inputs, wired, context), context))

    def check(self, data: LlmData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is not None and data.prompt is not None:
            yield from check_unused_input(view, "prompt")
        elif data is not None and not (data.messages or has_prompt_input(view, "prompt")):
            yield NodeFinding(
                "missing-required-input",
                "an llm node needs a prompt, messages or an input",
                "/data/prompt",
                hint="write data.prompt or connect an edge to 'input'",
            )


def _requests(data: LlmData, inputs: Inputs, context: FlowContext) -> list[ModelRequest]:
    """Return the call of a node, once for each model, in the order in which they are tried."""
    services = services_of(context)
    return [_request(each, inputs, services) for each in with_each_model(data, data.fallback)]


def _request(data: LlmData, inputs: Inputs, services: NodeServices) -> ModelRequest:
    """Return the model call of a node, without its conversation.

    Raises:
        NodeError: The provider or model is unknown or unavailable.
    """
    provider, model = services.model_for(data.provider, data.model)
    profile = services.providers.profile(provider, model)
    parts = [
        data.system or (BRIEF_SYSTEM_PROMPT if profile.small and not data.json_output else None)
    ]
    parts.append(JSON_ONLY if data.json_output else None)
    return ModelRequest(
        provider,
        model,
        inputs.text(DEFAULT_TARGET_HANDLE) if data.prompt is None else data.prompt,
        system="\n\n".join(filter(None, parts)) or None,
        temperature=data.temperature,
        max_tokens=data.max_tokens or profile.max_output_tokens,
        reasoning_effort=data.reasoning_effort,
    )


def _reply_value(reply: ModelReply, as_json: bool) -> DataValue:
    if not as_json:
        return DataValue("text", reply.text)
    cut = reply.finish_reason == "length"
    try:
        value = parse_strict_json(json_text(reply.text))
    except GraphInvalid as error:
        raise ResultNotJson(
            f"the model's reply is not JSON: {error.message}" + ("; it was cut off" if cut else ""),
            hint="raise maxTokens" if cut else "say in the prompt which JSON is wanted",
            retryable=not cut,
        ) from error
    return DataValue("json", value)
