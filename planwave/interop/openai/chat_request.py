"""The body of ``POST /v1/chat/completions``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from planwave.interop.openai.errors import InvalidParameter
from planwave.interop.openai.requests import (
    MAX_TOOLS,
    ClientModel,
    Effort,
    Format,
    FunctionTool,
    ModelSettings,
    called,
    chosen_tools,
    object_schema,
    stop_texts,
    turn_of,
    unusable_part,
)
from planwave.service.flows.chat_entries import ChatTurn


class _ChatPart(ClientModel):
    """A part of a content: ``{"type": "text", "text"}`` or ``{"type": "image_url", "image_url": {"url"}}``.

    The fields are checked where the part is used, so that the answer to any other part names its type.
    """

    type: Any = None
    text: Any = None
    image_url: Any = None


class _Function(ClientModel):
    name: str
    arguments: str = "{}"


class _Call(ClientModel):
    id: str
    type: Literal["function"] = "function"
    function: _Function


class _Message(ClientModel):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_ChatPart] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    function_call: Any = None


class _ChatTool(ClientModel):
    type: Literal["function"]
    function: FunctionTool


class _Schema(ClientModel):
    name: str = "reply"
    json_schema: dict[str, Any] | None = Field(None, alias="schema")


class _ResponseFormat(ClientModel):
    type: Format
    json_schema: _Schema | None = None


class _StreamOptions(ClientModel):
    include_usage: bool = False


class ChatCompletionRequest(ClientModel):
    """A conversation for a model: a published flow, or `planwave/planner`."""

    model: str = Field(description="A model of `GET /v1/models`.", examples=["triage"])
    messages: Annotated[
        list[_Message],
        Field(
            min_length=1,
            description="The conversation.",
            examples=[[{"role": "user", "content": "My printer burns."}]],
        ),
    ]
    stream: bool | None = Field(None, description="Send the answer as it comes.")
    stream_options: _StreamOptions | None = Field(
        None, description="`include_usage`: send the tokens in a last chunk."
    )
    tools: list[_ChatTool] | None = Field(
        None, max_length=MAX_TOOLS, description="Functions that the client calls itself."
    )
    tool_choice: Any = Field(None, description="`auto`, `none`, `required`, or a function.")
    response_format: _ResponseFormat | None = Field(None, description="The form of the answer.")
    stop: str | list[str] | None = Field(None, description="Texts before which the answer ends.")
    temperature: float | None = Field(None, ge=0, le=2)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    reasoning_effort: Effort | None = None
    functions: Any = Field(None, description="Not supported: send `tools`.")
    function_call: Any = Field(None, description="Not supported: send `tool_choice`.")
    n: int | None = None

    @property
    def includes_usage(self) -> bool:
        """Whether a stream ends with the tokens."""
        return self.stream_options is not None and self.stream_options.include_usage

    def settings(self) -> ModelSettings:
        """Return the settings of the answer.

        Raises:
            InvalidParameter: One cannot be satisfied.
        """
        if self.n not in (None, 1):
            raise InvalidParameter("n", "a flow gives one answer: n is 1")
        if self.functions is not None:
            raise _without_functions("functions")
        if self.function_call is not None:
            raise _without_functions("function_call")
        offered = [each.function for each in self.tools or ()]
        tools, must_call = chosen_tools(offered, self.tool_choice)
        return ModelSettings(
            tools=tools,
            must_call=must_call,
            output_schema=self._schema(),
            temperature=self.temperature,
            max_tokens=self.max_completion_tokens or self.max_tokens,
            effort=self.reasoning_effort,
            stop=stop_texts(self.stop),
        )

    def turn(self) -> ChatTurn:
        """Return the conversation.

        Raises:
            InvalidParameter: It cannot be used.
        """
        messages = [_as_message(each, index) for index, each in enumerate(self.messages)]
        return turn_of(messages, self.settings())

    def _schema(self) -> dict[str, Any] | None:
        form = self.response_format
        if form is None or form.type == "text":
            return None
        if form.type == "json_object":
            return {"type": "object"}
        if form.json_schema is None or form.json_schema.json_schema is None:
            raise InvalidParameter("response_format", "response_format.json_schema has a schema")
        return object_schema(form.json_schema.json_schema, "response_format")


def _as_message(message: _Message, index: int) -> dict[str, Any]:
    role = "system" if message.role == "developer" else message.role
    where = f"messages[{index}]"
    if role == "tool" and message.tool_call_id is None:
        raise InvalidParameter(f"{where}.tool_call_id", "a tool message has a tool_call_id")
    if message.function_call is not None:
        raise _without_functions(f"{where}.function_call")
    content = _content(message.content, role, where)
    document: dict[str, Any] = {"role": role, "content": content}
    if role == "tool":
        document["tool_call_id"] = message.tool_call_id
    if role == "assistant" and message.tool_calls:
        document["tool_calls"] = [
            called(each.id, each.function.name, each.function.arguments)
            for each in message.tool_calls
        ]
    elif content is None:
        raise InvalidParameter(f"{where}.content", "a message has a content")
    return document


def _without_functions(param: str) -> InvalidParameter:
    message = f"{param}: functions and function_call are not supported"
    return InvalidParameter(param, message, hint="send tools and tool_choice, which replaced them")


def _content(
    content: str | Sequence[_ChatPart] | None, role: str, where: str
) -> str | list[dict[str, Any]] | None:
    """Return the content of a message; that of the user may have images.

    Raises:
        InvalidParameter: A part cannot be used.
    """
    if content is None or isinstance(content, str):
        return content
    parts: list[dict[str, Any]] = []
    for index, part in enumerate(content):
        match part:
            case _ChatPart(type="image_url", image_url={"url": str(url)}) if role == "user":
                parts.append({"type": "image_url", "image_url": {"url": url}})
            case _ChatPart(type="text", text=str(text)):
                parts.append({"type": "text", "text": text})
            case _:
                raise unusable_part(f"{where}.content[{index}]", part.type)
    if role == "user":
        return parts
    return "\n".join(part["text"] for part in parts)
