"""The loop of an agent: ask the model, make the calls it asks for, ask again, until it replies.

The loop is planwave's own, not that of pydantic-ai's ``Agent``: the tasks of parallel calls belong to
``context.task_group()``, so that an agent that waits for approvals can leave memory, and every request
goes through ``ModelClient``, which records, limits and retries it. See docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, NamedTuple, cast

from planwave.errors import GraphInvalid, PermanentError, ResultNotJson
from planwave.events.types import CALLER_TOOL_CALLS
from planwave.graph.model import Json
from planwave.graph.protocols import FlowContext, NodeEvent
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.nodes.agents.caller import calls_of_caller, check_names
from planwave.nodes.agents.tool_calls import ToolCalls
from planwave.nodes.llm_calls import PROMPT_EVENT, call_model
from planwave.providers.protocols import (
    ModelReply,
    ModelRequest,
    PromptMessage,
    Source,
    ToolCall,
    ToolSpec,
)
from planwave.providers.reply_text import json_text

_BETWEEN_ROUNDS = "\n\n"
"""Streamed between the texts of two rounds."""


class AgentResult(NamedTuple):
    """What an agent gives.

    Attributes:
        text: Its last reply.
        value: That reply as JSON; None without a schema.
        messages: The whole conversation, the last reply included; without the system prompt.
        sources: The pages that its replies cite, each once.
    """

    text: str
    value: Json
    messages: tuple[PromptMessage, ...]
    sources: tuple[Source, ...]


class AgentLoop:
    """One attempt of an agent.

    Args:
        requests: The first request, once for each model, in the order in which they are tried.
        calls: Makes the calls of the model.
        max_steps: The most replies of a model, the last one included.
        schema: The JSON Schema that the last reply has to fit; None for text.
        continue_cut: Whether a cut reply is continued; see ``call_model``.
        caller_tools: Tools of the caller of the flow; a call of one ends the agent.
        must_call: Whether each reply is to be a call, until one ends the agent.
    """

    def __init__(
        self,
        requests: Sequence[ModelRequest],
        calls: ToolCalls,
        *,
        max_steps: int,
        schema: Mapping[str, Any] | None = None,
        continue_cut: bool = False,
        caller_tools: Sequence[ToolSpec] = (),
        must_call: bool = False,
    ) -> None:
        check_names(calls.specs, caller_tools)
        self._caller_tools = caller_tools
        tools = (*calls.specs, *caller_tools)
        self._requests = [
            replace(each, tools=tools, schema=schema, must_call=must_call) for each in requests
        ]
        self._calls = calls
        self._max_steps = max_steps
        self._schema = schema
        self._continue_cut = continue_cut
        self._messages = _conversation(requests[0])
        self._sources: dict[str, Source] = {}

    async def run(
        self, node_type: str, context: FlowContext
    ) -> AsyncGenerator[NodeEvent | AgentResult]:
        """Run to the last reply; yield the events, then the result.

        Raises:
            NodeError: A request failed; ``max-steps``: the model still asks for calls; ``invalid-output``:
                the last reply does not fit the schema; see ``ToolCalls.run``.
        """
        is_repaired = False
        for step in range(self._max_steps):
            reply: ModelReply | None = None
            async with aclosing(self._ask(node_type, context, step)) as items:
                async for item in items:
                    if isinstance(item, ModelReply):
                        reply = item
                    else:
                        yield item
            assert reply is not None  # noqa: S101 - call_model ends with a reply or raises
            self._add(reply)
            if handed_over := calls_of_caller(reply.tool_calls, self._caller_tools):
                yield _hand_over(handed_over, node_type, context)
                yield self._result(reply, None)
                return
            if reply.tool_calls:
                self._messages += await self._calls.run(reply.tool_calls)
                continue
            value, errors = _checked_value(reply, self._schema)
            if not errors:
                yield self._result(reply, value)
                return
            if is_repaired or step + 1 == self._max_steps:
                raise _invalid_output(errors, reply)
            is_repaired = True
            self._messages.append(PromptMessage("user", _repair_prompt(errors)))
        raise PermanentError(
            f"the agent still asks for calls after {self._max_steps} replies of its model",
            code="max-steps",
            hint="raise maxSteps, or give it a smaller task",
        )

    async def _ask(
        self, node_type: str, context: FlowContext, step: int
    ) -> AsyncGenerator[NodeEvent | ModelReply]:
        """Ask the model for its next reply; the prompt is an event in the first step only."""
        requests = self._requests
        if step:
            turns = tuple(self._messages)
            requests = [
                replace(each, prompt="", messages=turns, fixed_chars=0) for each in requests
            ]
            break_line: dict[str, Json] = {"text": _BETWEEN_ROUNDS}
            yield NodeEvent(context.node_id, node_type, "delta", context.run_id, break_line)
        reply = call_model(requests, node_type, context, continue_cut=self._continue_cut)
        async with aclosing(reply) as items:
            async for item in items:
                is_prompt = isinstance(item, NodeEvent) and item.event_type == PROMPT_EVENT
                if not (is_prompt and step):
                    yield item

    def _result(self, reply: ModelReply, value: Json) -> AgentResult:
        sources = tuple(self._sources.values())
        return AgentResult(reply.text, value, tuple(self._messages), sources)

    def _add(self, reply: ModelReply) -> None:
        self._messages.append(
            PromptMessage("assistant", reply.text, tool_calls=reply.tool_calls, native=reply.native)
        )
        self._sources.update((source.url, source) for source in reply.sources)


def _hand_over(calls: Sequence[ToolCall], node_type: str, context: FlowContext) -> NodeEvent:
    data: dict[str, Json] = {"calls": [call._asdict() for call in calls]}
    return NodeEvent(context.node_id, node_type, CALLER_TOOL_CALLS, context.run_id, data)


def _conversation(request: ModelRequest) -> list[PromptMessage]:
    """Return the turns of a request, its prompt as the last one."""
    turns = list(request.messages)
    if request.prompt:
        turns.append(PromptMessage("user", request.prompt))
    return turns


def _checked_value(reply: ModelReply, schema: Mapping[str, Any] | None) -> tuple[Json, list[str]]:
    """Return the value of a last reply, and what is wrong with it."""
    if schema is None:
        return None, []
    # Lazy: test_the_schema_library_is_loaded_only_for_forms
    from planwave.nodes.json_schema import validate

    try:
        value = parse_strict_json(json_text(reply.text))
    except GraphInvalid as error:
        return None, [f"it is not JSON: {error.message}"]
    errors = validate(cast("Json", schema), value)
    return value, [f"{error.pointer or 'the value'}: {error.message}" for error in errors]


def _repair_prompt(errors: Sequence[str]) -> str:
    return "Your reply does not fit the schema: {}. Reply again with the JSON only.".format(
        "; ".join(errors)
    )


def _invalid_output(errors: Sequence[str], reply: ModelReply) -> ResultNotJson:
    cut = reply.finish_reason == "length"
    return ResultNotJson(
        f"the agent's last reply does not fit outputSchema: {'; '.join(errors)}"
        + ("; it was cut off" if cut else ""),
        code="invalid-output",
        hint="raise maxTokens"
        if cut
        else "describe the fields in the prompt, or loosen the schema",
    )
