"""The body of ``POST /v1/responses``."""

from __future__ import annotations

from typing import Any, Literal

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
    turn_of,
    unusable_part,
)
from planwave.service.flows.chat_entries import ChatTurn


class _ResponsePart(ClientModel):
    """A part of a content; its fields are checked where it is used, so that the answer names its type."""

    type: Any = None
    text: Any = None
    image_url: Any = None


class _Item(ClientModel):
    type: str = "message"
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | list[_ResponsePart] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | list[_ResponsePart] | None = None


class _ResponseTool(FunctionTool):
    type: Literal["function"]


class _TextFormat(ClientModel):
    type: Format
    json_schema: dict[str, Any] | None = Field(None, alias="schema")


class _Text(ClientModel):
    format: _TextFormat | None = None


class _Reasoning(ClientModel):
    effort: Effort | None = None


class ResponsesRequest(ClientModel):
    """A conversation for a model: a published flow, or `planwave/planner`. Nothing of it is kept."""

    model: str = Field(description="A model of `GET /v1/models`.", examples=["triage"])
    input: str | list[_Item] = Field(
        description="A text, or the conversation.", examples=["My printer burns."]
    )
    instructions: str | None = Field(None, description="A system message before the conversation.")
    stream: bool | None = Field(None, description="Send the answer as it comes.")
    tools: list[_ResponseTool] | None = Field(
        None, max_length=MAX_TOOLS, description="Functions that the client calls itself."
    )
    tool_choice: Any = Field(None, description="`auto`, `none`, `required`, or a function.")
    text: _Text | None = Field(None, description="The form of the answer.")
    reasoning: _Reasoning | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    max_output_tokens: int | None = Field(None, ge=1)
    metadata: dict[str, Any] | None = None
    previous_response_id: str | None = Field(
        None, description="Not supported: send the conversation."
    )

    def settings(self) -> ModelSettings:
        """Return the settings of the answer.

        Raises:
            InvalidParameter: One cannot be satisfied.
        """
        if self.previous_response_id is not None:
            raise InvalidParameter(
                "previous_response_id",
                "responses are not stored",
                hint="send the whole conversation as input",
            )
        tools, must_call = chosen_tools(self.tools or (), self.tool_choice)
        return ModelSettings(
            tools=tools,
            must_call=must_call,
            output_schema=self._schema(),
            temperature=self.temperature,
            max_tokens=self.max_output_tokens,
            effort=None if self.reasoning is None else self.reasoning.effort,
        )

    def turn(self) -> ChatTurn:
        """Return the conversation.

        Raises:
            InvalidParameter: It cannot be used.
        """
        messages: list[dict[str, Any]] = []
        if self.instructions:
            messages.append({"role": "system", "content": self.instructions})
        if isinstance(self.input, str):
            messages.append({"role": "user", "content": self.input})
        else:
            for index, item in enumerate(self.input):
                _add_item(messages, item, f"input[{index}]")
        return turn_of(messages, self.settings())

    def _schema(self) -> dict[str, Any] | None:
        form = None if self.text is None else self.text.format
        if form is None or form.type == "text":
            return None
        if form.type == "json_object":
            return {"type": "object"}
        if form.json_schema is None:
            raise InvalidParameter("text.format", "text.format has a schema")
        return object_schema(form.json_schema, "text.format")


def _add_item(messages: list[dict[str, Any]], item: _Item, where: str) -> None:
    """Append an item to a conversation; calls of one reply become one message.

    Raises:
        InvalidParameter: It cannot be used.
    """
    match item.type:
        case "reasoning":
            return
        case "function_call" if item.call_id and item.name:
            call = called(item.call_id, item.name, item.arguments or "{}")
            last: dict[str, Any] = messages[-1] if messages else {"role": ""}
            if last["role"] == "assistant":
                last.setdefault("tool_calls", []).append(call)
            else:
                messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        case "function_call_output" if item.call_id and item.output is not None:
            text = _texts(item.output, f"{where}.output")
            messages.append({"role": "tool", "tool_call_id": item.call_id, "content": text})
        case "message" if item.role is not None and item.content is not None:
            role = "system" if item.role == "developer" else item.role
            if role == "user":
                content: Any = _user_content(item.content, f"{where}.content")
            else:
                content = _texts(item.content, f"{where}.content")
            messages.append({"role": role, "content": content})
        case _:
            raise InvalidParameter(where, f"an item {item.type!r} of this form cannot be used")


def _texts(content: str | list[_ResponsePart], where: str) -> str:
    if isinstance(content, str):
        return content
    for index, part in enumerate(content):
        if not isinstance(part.text, str):
            raise unusable_part(f"{where}[{index}]", part.type)
    return "\n".join(part.text for part in content)


def _user_content(content: str | list[_ResponsePart], where: str) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    parts: list[dict[str, Any]] = []
    for index, part in enumerate(content):
        if part.type == "input_image" and part.image_url and isinstance(part.image_url, str):
            parts.append({"type": "image_url", "image_url": {"url": part.image_url}})
        elif isinstance(part.text, str):
            parts.append({"type": "text", "text": part.text})
        else:
            raise unusable_part(f"{where}[{index}]", part.type)
    return parts
