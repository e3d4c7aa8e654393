"""``llm``: one plain model call, as text or as JSON."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from pydantic import AliasChoices, Field

from planwave.errors import GraphInvalid, ResultNotJson
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_TARGET_HANDLE, DataValue
from planwave.graph.protocols import FlowContext, NodeEvent
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.nodes.authoring.data_fields import HIDDEN_FROM_PLANNER
from planwave.nodes.authoring.node_type import INPUT, NodeData, NodeFinding, NodeType, template
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.conversation import ChatMessage, with_messages
from planwave.nodes.library.agent import BRIEF_SYSTEM_PROMPT
from planwave.nodes.library.model import MODEL_SOCKET, Effort
from planwave.nodes.llm_calls import Prompt, call_model, check_unused_input, has_prompt_input
from planwave.nodes.services import services_of
from planwave.providers.protocols import ModelReply, ModelRequest

JSON_ONLY = "Answer with one JSON value and nothing else."


class LlmData(NodeData):
    """One call; without a prompt the node's input is the prompt, which follows ``messages``."""

    provider: str | None = Field(None, min_length=1)
    model: str | None = Field(None, min_length=1)
    prompt: Prompt = template(None)
    system: str | None = None
    messages: list[ChatMessage] | None = Field(None, json_schema_extra=HIDDEN_FROM_PLANNER)
    temperature: float | None = Field(None, ge=0, le=2)
    reasoning_effort: Effort | None = None
    max_tokens: int | None = Field(None, ge=1)
    json_output: bool = Field(
        False,
        validation_alias=AliasChoices("jsonOutput", "json_mode"),
        serialization_alias="jsonOutput",
    )
    stream: bool = True


class Llm(NodeType):
    """Sends ``prompt`` unchanged, or else its input; outputs the text, or the JSON value in it.

    ``messages`` are a conversation before the prompt; with them the prompt may be empty.
    """

    node_type = "llm"
    purpose = "Call a language model with exactly this prompt; with jsonOutput the reply is JSON."
    Data = LlmData
    inputs = (INPUT, MODEL_SOCKET)
    calls_model = True

    async def run(
        self, data: LlmData, inputs: Inputs, context: FlowContext
    ) -> AsyncGenerator[NodeEvent | DataValue]:
        services = services_of(context)
        provider, model = services.model_for(data.provider, data.model)
        profile = services.providers.profile(provider, model)
        parts = [
            data.system or (BRIEF_SYSTEM_PROMPT if profile.small and not data.json_output else None)
        ]
        parts.append(JSON_ONLY if data.json_output else None)
        request = ModelRequest(
            provider,
            model,
            inputs.text(DEFAULT_TARGET_HANDLE) if data.prompt is None else data.prompt,
            system="\n\n".join(filter(None, parts)) or None,
            temperature=data.temperature,
            max_tokens=data.max_tokens or profile.max_output_tokens,
            reasoning_effort=data.reasoning_effort,
        )
        request = with_messages(request, data.messages)
        async with aclosing(
            call_model(request, self.node_type, context, deltas=data.stream)
        ) as items:
            async for item in items:
                if isinstance(item, ModelReply):
                    yield _reply_value(item, data.json_output)
                else:
                    yield item

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


def _reply_value(reply: ModelReply, as_json: bool) -> DataValue:
    if not as_json:
        return DataValue("text", reply.text)
    cut = reply.finish_reason == "length"
    try:
        value = parse_strict_json(_strip_code_fence(reply.text))
    except GraphInvalid as error:
        raise ResultNotJson(
            f"the model's reply is not JSON: {error.message}" + ("; it was cut off" if cut else ""),
            hint="raise maxTokens" if cut else "say in the prompt which JSON is wanted",
            retryable=not cut,
        ) from error
    return DataValue("json", value)


def _strip_code_fence(text: str) -> str:
    """Take away the code fence where it is around the whole reply; many models add one."""
    inner = text.strip()
    opening, newline, rest = inner.partition("\n")
    is_fence = opening.rstrip().lower() in ("```", "```json")
    if is_fence and newline and rest.endswith("```"):
        return rest.removesuffix("```")
    return text
