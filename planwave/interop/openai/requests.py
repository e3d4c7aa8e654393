"""What both protocols read from a request: texts, images and tools, as planwave's conversations have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from planwave.graph.diagnostics import short_repr
from planwave.graph.model import Json
from planwave.interop.openai.errors import InvalidParameter
from planwave.service.flows.chat_entries import ChatTurn

_MAX_STOPS = 4


class ClientModel(BaseModel):
    """A part of a request; fields that planwave does not know are ignored, as clients send many."""

    model_config = ConfigDict(extra="ignore", strict=True)


class FunctionTool(ClientModel):
    """A function of the client."""

    name: str = Field(pattern="^[A-Za-z0-9_-]{1,64}$")
    description: str | None = None
    parameters: dict[str, Any] | None = None

    def as_option(self) -> dict[str, Json]:
        """Return the tool as an agent takes it."""
        return {
            "name": self.name,
            "description": self.description or "",
            "parameters": self.parameters or {"type": "object", "properties": {}},
        }


class ModelSettings(ClientModel):
    """The settings of an answer.

    Attributes:
        tools: The client's own tools; none if it wants no calls.
        must_call: Whether the answer has to be a call of one of them.
        output_schema: The JSON Schema of the answer.
        stop: Texts before which the answer ends.
    """

    tools: list[FunctionTool] = []
    must_call: bool = False
    output_schema: dict[str, Any] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    effort: str | None = None
    stop: list[str] = []

    def options(self) -> dict[str, Json]:
        """Return what an agent takes, without what was not asked for."""
        options: dict[str, Json] = {
            "tools": [tool.as_option() for tool in self.tools] or None,
            "mustCall": self.must_call or None,
            "outputSchema": self.output_schema,
        }
        return {name: value for name, value in options.items() if value is not None}

    def hints(self) -> dict[str, Json]:
        """Return what an agent may take, and other flows ignore."""
        hints: dict[str, Json] = {
            "temperature": self.temperature,
            "maxTokens": self.max_tokens,
            "reasoningEffort": self.effort,
        }
        return {name: value for name, value in hints.items() if value is not None}


def chosen_tools(tools: Sequence[FunctionTool], choice: Any) -> tuple[list[FunctionTool], bool]:
    """Return the tools that the model may call, and whether it has to call one.

    Args:
        tools: Those of the client.
        choice: None, ``auto``, ``none``, ``required``, or the one function that is to be called.

    Raises:
        InvalidParameter: It is something else, or there is no such tool.
    """
    match choice:
        case None | "auto":
            return list(tools), False
        case "none":
            return [], False
        case "required":
            callable_tools = list(tools)
        case {"type": "function", "function": {"name": str(name)}}:
            callable_tools = [tool for tool in tools if tool.name == name]
        case {"type": "function", "name": str(name)}:
            callable_tools = [tool for tool in tools if tool.name == name]
        case _:
            message = "tool_choice is 'auto', 'none', 'required', or a function, here"
            raise InvalidParameter("tool_choice", message)
    if not callable_tools:
        raise InvalidParameter(
            "tool_choice", "tool_choice asks for a call, and there is no such tool"
        )
    return callable_tools, True


def stop_texts(stop: str | list[str] | None) -> list[str]:
    """Return the texts before which an answer ends.

    Raises:
        InvalidParameter: There are too many.
    """
    texts = [stop] if isinstance(stop, str) else list(stop or ())
    if len(texts) > _MAX_STOPS:
        raise InvalidParameter("stop", f"stop has at most {_MAX_STOPS} texts")
    return [text for text in texts if text]


def turn_of(messages: Sequence[Mapping[str, Any]], settings: ModelSettings) -> ChatTurn:
    """Return a conversation as the message that it ends with, and what came before.

    Raises:
        InvalidParameter: It is empty, or ends with what needs no answer.
    """
    if not messages or messages[-1]["role"] not in ("user", "tool"):
        raise InvalidParameter("messages", "the last message is one of the user, or of a tool")
    *history, last = messages
    options = {**settings.options(), **settings.hints()}
    if last["role"] == "tool":
        return ChatTurn("", (), messages, options)
    parts = last["content"]
    if isinstance(parts, str):
        return ChatTurn(parts, (), history, options)
    texts = [part["text"] for part in parts if part["type"] == "text"]
    images = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return ChatTurn("\n".join(texts), images, history, options)


def unusable_part(param: str, kind: Any) -> InvalidParameter:
    """Return the error about a part of a content that is of another type, or not of its form."""
    hint = "texts can be used, and images of the user"
    return InvalidParameter(param, f"a part {short_repr(kind)} cannot be used here", hint=hint)


def called(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """Return a call in a conversation."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def object_schema(schema: dict[str, Any], param: str) -> dict[str, Any]:
    """Return the JSON Schema of an answer, which models can only give as an object.

    Raises:
        InvalidParameter: It describes something else.
    """
    if schema.get("type", "object") != "object":
        raise InvalidParameter(param, f"{param} has a schema of an object")
    return schema


Format = Literal["text", "json_object", "json_schema"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
MAX_TOOLS: Final = 128
