"""Conversations as JSON: messages, attached files and images, and the model request made of them.

A message is ``{"role": "system" | "user" | "assistant", "content"}``; the content is a text, or a list
of ``{"type": "text", "text"}`` and ``{"type": "image_url", "image_url": {"url"}}``: the format of chat
histories.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final, Literal, Self
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
from planwave.nodes.authoring.node_type import NodeData
from planwave.providers.protocols import ModelRequest, PromptMessage, text_tokens

IMAGE_TOKENS: Final = 1_000
"""What an image is taken for: providers count 85 to 1,600 tokens, by its size in pixels."""
_IMAGE_TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What all providers can look at. Source: OpenAI's and Anthropic's guides to images."""
_MAX_ATTACHMENTS: Final = 100
_MAX_URL_CHARS: Final = 4_096
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
    if not comma or coding != "base64" or mime not in _IMAGE_TYPES:
        raise ValueError(f"image data are data:TYPE;base64,… with one of {', '.join(_IMAGE_TYPES)}")
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


class ChatMessage(_Part):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: Annotated[
        Annotated[str, Tag("text")] | Annotated[list[_ContentPart], Tag("object")],
        Discriminator(_content_tag),
    ]

    @model_validator(mode="after")
    def _only_users_show_images(self) -> ChatMessage:
        if self.role != "user" and self.images:
            raise ValueError(f"a message of the {self.role} holds no images")
        return self

    @property
    def text(self) -> str:
        """All its text."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def images(self) -> tuple[str, ...]:
        """The URLs of its images."""
        if isinstance(self.content, str):
            return ()
        return tuple(part.image_url.url for part in self.content if isinstance(part, ImagePart))

    @property
    def tokens(self) -> int:
        """About how many tokens it is for a model."""
        return text_tokens(self.text) + IMAGE_TOKENS * len(self.images)

    def as_json(self) -> dict[str, Json]:
        """Return the message as it is passed on."""
        return self.model_dump()


def user_message(text: str, images: Sequence[str]) -> ChatMessage:
    """Return a user's message with its images."""
    if not images:
        return ChatMessage(role="user", content=text)
    said = [TextPart(type="text", text=text)] if text else []
    shown = [ImagePart(type="image_url", image_url=ImageUrl(url=url)) for url in images]
    return ChatMessage(role="user", content=[*said, *shown])


def with_messages(request: ModelRequest, messages: Sequence[ChatMessage] | None) -> ModelRequest:
    """Put a conversation before a request's prompt.

    All system messages are appended to the request's system prompt: not every provider accepts
    them between other messages.
    """
    if not messages:
        return request
    system = [request.system, *(said.text for said in messages if said.role == "system")]
    turns = tuple(
        PromptMessage(said.role, said.text, said.images)
        for said in messages
        if said.role != "system"
    )
    return replace(request, system="\n\n".join(filter(None, system)) or None, messages=turns)


def strip_images(request: ModelRequest) -> tuple[ModelRequest, int]:
    """Return a request without images, for text models, and the number of images removed.

    A short text replaces each image, so that references to it in the conversation make sense.
    """
    left_out = sum(len(turn.images) for turn in request.messages)
    if not left_out:
        return request, 0
    turns = tuple(
        PromptMessage(
            turn.role,
            "\n".join([*filter(None, [turn.text]), *[_IMAGE_PLACEHOLDER] * len(turn.images)]),
        )
        for turn in request.messages
    )
    return replace(request, messages=turns), left_out


def readable_messages(messages: Sequence[PromptMessage]) -> list[Json]:
    """Return the turns for display: image data are replaced by their type and size."""
    return [
        {"role": turn.role, "content": turn.text}
        | ({"images": [_readable_url(url) for url in turn.images]} if turn.images else {})
        for turn in messages
    ]


def _readable_url(url: str) -> str:
    if not url.startswith("data:"):
        return url
    head, _, data = url.partition(",")
    return f"{head.removesuffix(';base64')}, {len(data) * 3 // 4} bytes"
