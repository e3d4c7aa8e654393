"""Conversations as JSON: messages, attached files and images, and the model request made of them.

A message is ``{"role": "system" | "user" | "assistant" | "tool", "content"}``; the content is a text, or
a list of ``{"type": "text", "text"}`` and ``{"type": "image_url", "image_url": {"url"}}``: the format of
chat histories. An assistant that calls tools has ``tool_calls: [{"id", "type": "function", "function":
{"name", "arguments"}}]``, and each of these is followed by a ``tool`` message with its ``tool_call_id``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal, Self, cast
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)

from planwave.graph.model import Json
from planwave.graph.protocols import FlowContext
from planwave.ids import new_id
from planwave.nodes.authoring.node_type import NodeData
from planwave.outbound.images import IMAGE_TYPES
from planwave.providers.protocols import ModelRequest, PromptMessage, ToolCall, text_tokens

IMAGE_TOKENS: Final = 1_000
"""What an image is taken for: providers count 85 to 1,600 tokens, by its size in pixels."""
_MAX_ATTACHMENTS: Final = 100
_MAX_URL_CHARS: Final = 4_096
_CHAT_IDS: Final = "chat-ids"
"""Name of the once value with the ids that a node made."""
_IMAGE_PLACEHOLDER: Final = "[an image that cannot be shown to this model]"


def _web_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("a URL begins with http:// or https:// and names a host")
    return url


def _base64(data: str) -> str:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("this is not base64") from error
    return data


def _image_url(url: str) -> str:
    if not url.startswith("data:"):
        if len(url) > _MAX_URL_CHARS:
            raise ValueError(f"a URL has at most {_MAX_URL_CHARS} characters")
        return _web_url(url)
    head, comma, data = url.partition(",")
    mime, _, coding = head.removeprefix("data:").partition(";")
    if not comma or coding != "base64" or mime not in IMAGE_TYPES:
        raise ValueError(f"image data are data:TYPE;base64,… with one of {', '.join(IMAGE_TYPES)}")
    _base64(data)
    return url


_WebUrl = Annotated[str, Field(max_length=_MAX_URL_CHARS), AfterValidator(_web_url)]
_ImageUrl = Annotated[str, AfterValidator(_image_url)]
_Mime = Annotated[str, StringConstraints(pattern=r"^[a-z0-9.+-]+/[a-zA-Z0-9.+-]+$", max_length=120)]


class _Attachment(NodeData):
    name: str = Field(min_length=1, max_length=255)
    url: _WebUrl | None = None
    data: Annotated[str, AfterValidator(_base64)] | None = None

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.url is None) == (self.data is None):
            raise ValueError("a file has a url or data, one of them")
        return self


class UserFile(_Attachment):
    """A file that a user attached: where it is, or what is in it, as base64."""

    mime: _Mime

    @property
    def content(self) -> bytes | None:
        """The file's content; None if only its URL is known."""
        return None if self.data is None else base64.b64decode(self.data)


class UserImage(_Attachment):
    """A file that can be shown to a model."""

    mime: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]

    @property
    def as_url(self) -> str:
        """The image as a URL, its data in it where there is no other."""
        return self.url or f"data:{self.mime};base64,{self.data}"


def _content_tag(value: object) -> str:
    return "text" if isinstance(value, str) else "object"


_Image = Annotated[
    Annotated[_ImageUrl, Tag("text")] | Annotated[UserImage, Tag("object")],
    Discriminator(_content_tag),
]
Files = Annotated[list[UserFile], Field(max_length=_MAX_ATTACHMENTS)]
Images = Annotated[list[_Image], Field(max_length=_MAX_ATTACHMENTS)]
"""Images: URLs (http, https or data) or files."""


class _Part(NodeData):
    model_config = ConfigDict(alias_generator=None)


class TextPart(_Part):
    """A text in a message."""

    type: Literal["text"]
    text: str


class ImageUrl(_Part):
    """Where an image is."""

    url: _ImageUrl


class ImagePart(_Part):
    """An image in a message."""

    type: Literal["image_url"]
    image_url: ImageUrl


_ContentPart = Annotated[TextPart | ImagePart, Field(discriminator="type")]


class CalledFunction(_Part):
    """The tool that is called."""

    name: str = Field(min_length=1, description="The name of the tool.")
    arguments: str = Field(description="Its arguments as JSON text.")


class RequestedCall(_Part):
    """A call of a tool by an assistant."""

    id: str = Field(min_length=1, description="The id that its result names.")
    type: Literal["function"]
    function: CalledFunction


_FIELDS_OF_ROLES: Final = {
    "tool_calls": "assistant",
    "native": "assistant",
    "tool_call_id": "tool",
    "name": "tool",
    "is_error": "tool",
}
"""The fields that only messages of one role have."""


class ChatMessage(_Part):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"] = Field(
        description="Who speaks; a tool message holds the result of a call."
    )
    content: (
        Annotated[
            Annotated[str, Tag("text")] | Annotated[list[_ContentPart], Tag("object")],
            Discriminator(_content_tag),
        ]
        | None
    ) = Field(
        default=None, description="What is said; null only for an assistant that calls tools."
    )
    tool_calls: list[RequestedCall] | None = Field(
        default=None, min_length=1, description="The tools that an assistant calls."
    )
    tool_call_id: str | None = Field(
        default=None, min_length=1, description="The call whose result a tool message holds."
    )
    name: str | None = Field(default=None, description="The tool of that call.")
    is_error: bool = Field(default=False, description="Whether that call failed or was refused.")
    native: dict[str, Any] | None = Field(
        default=None,
        description="An assistant's message in the form of its provider, with its reasoning; "
        "no other provider gets it.",
    )

    @model_validator(mode="after")
    def _has_what_its_role_needs(self) -> ChatMessage:
        for name, role in _FIELDS_OF_ROLES.items():
            if self.role != role and getattr(self, name):
                raise ValueError(f"{name} belongs to messages of the role {role}")
        if self.role == "tool" and self.tool_call_id is None:
            raise ValueError("a tool message needs the tool_call_id of the call it answers")
        if self.content is None and not self.tool_calls:
            raise ValueError("content is required where there are no tool_calls")
        if self.role != "user" and self.images:
            raise ValueError(f"a message of the {self.role} holds no images")
        return self

    @property
    def text(self) -> str:
        """All its text."""
        if isinstance(self.content, str):
            return self.content
        parts = self.content or ()
        return "\n".join(part.text for part in parts if isinstance(part, TextPart))

    @property
    def images(self) -> tuple[str, ...]:
        """The URLs of its images."""
        parts = () if self.content is None or isinstance(self.content, str) else self.content
        return tuple(part.image_url.url for part in parts if isinstance(part, ImagePart))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Its calls of tools."""
        return tuple(
            ToolCall(call.id, call.function.name, call.function.arguments)
            for call in self.tool_calls or ()
        )

    @property
    def tokens(self) -> int:
        """About how many tokens it is for a model."""
        called = (text for call in self.calls for text in (call.name, call.arguments))
        return text_tokens(self.text, *called) + IMAGE_TOKENS * len(self.images)

    def as_json(self) -> dict[str, Json]:
        """Return the message as it is passed on, without the fields that say nothing."""
        written = self.model_dump(exclude_defaults=True)
        return {"role": self.role, "content": written.pop("content", None), **written}


def check_calls(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return the messages of a whole conversation in which each call of a tool has its result.

    Raises:
        ValueError: A result without a call, or a call without a result, which no provider accepts; the
            message names the index.
    """
    open_calls: dict[str, int] = {}
    call_ids: set[str] = set()
    for index, message in enumerate(messages):
        if message.role == "system":
            continue
        if message.role != "tool":
            _require_no_open_call(open_calls, f"before message {index}")
            open_calls = dict.fromkeys((call.id for call in message.calls), index)
            call_ids |= open_calls.keys()
            continue
        call_id = message.tool_call_id or ""
        if call_id not in open_calls:
            why = "has a result already" if call_id in call_ids else "no message before it makes"
            raise ValueError(f"message {index} answers the call {call_id!r}, which {why}")
        del open_calls[call_id]
    _require_no_open_call(open_calls, "after it")
    return messages


def _require_no_open_call(open_calls: dict[str, int], where: str) -> None:
    for call_id, index in open_calls.items():
        raise ValueError(f"message {index} makes the call {call_id!r}, which has no result {where}")


Conversation = Annotated[list[ChatMessage], AfterValidator(check_calls)]
"""The messages of a whole conversation, whose calls of tools have their results."""


def user_message(text: str, images: Sequence[str]) -> ChatMessage:
    """Return a user's message with its images."""
    if not images:
        return ChatMessage(role="user", content=text)
    texts = [TextPart(type="text", text=text)] if text else []
    parts = [ImagePart(type="image_url", image_url=ImageUrl(url=url)) for url in images]
    return ChatMessage(role="user", content=[*texts, *parts])


def with_messages(request: ModelRequest, messages: Sequence[ChatMessage] | None) -> ModelRequest:
    """Put a conversation before a request's prompt.

    System messages at its beginning are appended to the request's system prompt; later ones stay in
    their place, see ``sdk_messages``.
    """
    if not messages:
        return request
    start = next((at for at, each in enumerate(messages) if each.role != "system"), len(messages))
    system = [request.system, *(message.text for message in messages[:start])]
    turns = tuple(_turns(messages[start:]))
    return replace(request, system="\n\n".join(filter(None, system)) or None, messages=turns)


def with_images(request: ModelRequest, images: Images) -> ModelRequest:
    """Put images beside the prompt of a request."""
    urls = tuple(image if isinstance(image, str) else image.as_url for image in images)
    turn = PromptMessage("user", request.prompt, urls)
    return replace(request, prompt="", messages=(*request.messages, turn), fixed_chars=0)


def _turns(messages: Iterable[ChatMessage]) -> Iterator[PromptMessage]:
    """Yield the messages as turns; a result of a tool gets the name of the tool from its call."""
    names: dict[str, str] = {}
    for message in messages:
        names |= {call.id: call.name for call in message.calls}
        call_id = message.tool_call_id or ""
        yield PromptMessage(
            message.role,
            message.text,
            message.images,
            tool_calls=message.calls,
            tool_call_id=call_id,
            tool_name=message.name or names.get(call_id, ""),
            is_error=message.is_error,
            native=message.native,
        )


def chat_message(turn: PromptMessage) -> ChatMessage:
    """Return a turn as a message: what ``with_messages`` reads."""
    match turn.role:
        case "user":
            return user_message(turn.text, turn.images)
        case "assistant":
            native = None if turn.native is None else dict(turn.native)
            calls = [_requested(call) for call in turn.tool_calls] or None
            content = (turn.text or None) if calls else turn.text
            return ChatMessage(role="assistant", content=content, tool_calls=calls, native=native)
        case "tool":
            return ChatMessage(
                role="tool",
                content=turn.text,
                tool_call_id=turn.tool_call_id,
                name=turn.tool_name or None,
                is_error=turn.is_error,
            )
        case "system":
            return ChatMessage(role="system", content=turn.text)


def _requested(call: ToolCall) -> RequestedCall:
    function = CalledFunction(name=call.name, arguments=call.arguments)
    return RequestedCall(id=call.id, type="function", function=function)


def strip_images(request: ModelRequest) -> tuple[ModelRequest, int]:
    """Return a request without images, for text models, and the number of images removed.

    A short text replaces each image, so that references to it in the conversation make sense.
    """
    left_out = sum(len(turn.images) for turn in request.messages)
    if not left_out:
        return request, 0
    turns = tuple(
        replace(
            turn,
            text="\n".join([*filter(None, [turn.text]), *[_IMAGE_PLACEHOLDER] * len(turn.images)]),
            images=(),
        )
        if turn.images
        else turn
        for turn in request.messages
    )
    return replace(request, messages=turns), left_out


def readable_messages(messages: Sequence[PromptMessage]) -> list[Json]:
    """Return the turns for display: image data are replaced by their type and size."""
    return [_readable_message(turn) for turn in messages]


def _readable_message(turn: PromptMessage) -> dict[str, Json]:
    document: dict[str, Json] = {"role": turn.role, "content": turn.text}
    if turn.images:
        document["images"] = [_readable_url(url) for url in turn.images]
    if turn.tool_calls:
        document["tool_calls"] = [call._asdict() for call in turn.tool_calls]
    if turn.role == "tool":
        document |= {"tool_call_id": turn.tool_call_id, "name": turn.tool_name}
    if turn.is_error:
        document["is_error"] = True
    return document


def _readable_url(url: str) -> str:
    if not url.startswith("data:"):
        return url
    head, _, data = url.partition(",")
    return f"{head.removesuffix(';base64')}, {len(data) * 3 // 4} bytes"


def completed_ids(chat_id: str | None, thread_id: str | None) -> dict[str, str]:
    """Return ``{"chat_id", "thread_id"}``, with a new id in the place of each that is missing."""
    return {"chat_id": chat_id or new_id(), "thread_id": thread_id or new_id()}


async def ids_in_run(
    chat_id: str | None, thread_id: str | None, context: FlowContext
) -> dict[str, str]:
    """Return the ids as ``completed_ids``; new ids are the same whenever the node runs again."""
    chat_id = chat_id or context.chat_id
    if chat_id and thread_id:
        return completed_ids(chat_id, thread_id)

    async def make() -> Json:
        return cast("Json", completed_ids(chat_id, thread_id))

    new_ids = cast("dict[str, str]", await context.runtime.once(_CHAT_IDS, make))
    return completed_ids(chat_id or new_ids["chat_id"], thread_id or new_ids["thread_id"])
