"""What a tool of an MCP server gives back, as JSON for a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import mcp_types

from planwave.errors import McpError
from planwave.graph.json_values import json_findings
from planwave.graph.model import Json
from planwave.jsonio import dumps_exact

_MAX_ERROR_CHARS: Final = 4_000
_CONTENT: Final = "content"
_CUT: Final = "cut"
_BASE64_CHARS: Final = 4
_BASE64_BYTES: Final = 3


def result_of(result: mcp_types.CallToolResult, tool: str, most_bytes: int) -> Json:
    """Return the result of a call: its structured content, or its text.

    Where it has other content too, it is an object with ``content``, a list of parts; of images,
    audio and files only type and size are in it. A result of more than ``most_bytes`` is cut, and says so:
    the call has been made, and may have been paid for.

    Raises:
        McpError: ``mcp-tool-error``: the tool reports an error, whose text, or JSON, the message is;
            ``mcp-invalid-answer``.
    """
    if result.is_error:
        text = _text_of(result.content)
        if not text.strip() and result.structured_content:
            text = dumps_exact(result.structured_content)
        text = text or f"the tool {tool!r} failed without a message"
        raise McpError(text[:_MAX_ERROR_CHARS], code="mcp-tool-error")
    value, parts = _value_of(result)
    if faults := json_findings(value):
        raise McpError(
            f"the result of the tool {tool!r} cannot be stored: {faults[0].message}",
            code="mcp-invalid-answer",
        )
    return _cut(value, parts, most_bytes)


def _cut(value: Json, parts: list[Json] | None, most_bytes: int) -> Json:
    """Return a value of at most so many bytes of JSON: a text is cut, other JSON becomes a cut text.

    Args:
        value: The result.
        parts: Those of its content, where it is an object of several.
        most_bytes: The limit.
    """
    size = _bytes_of(value)
    if size <= most_bytes:
        return value
    mark = f"[cut: the result has {size} bytes, and may have {most_bytes} (limit mcp_result_bytes)]"
    if parts is not None:
        return _cut_parts(parts, mark, most_bytes)
    if isinstance(value, str):
        return _beginning(value, f"\n{mark}", most_bytes)
    frame: dict[str, Json] = {"json": "", _CUT: mark}
    return {**frame, "json": _beginning(dumps_exact(value), "", most_bytes - _bytes_of(frame))}


def _cut_parts(parts: list[Json], mark: str, most_bytes: int) -> Json:
    """Return a result of several parts, of which those at the end, and the structured content, are cut."""
    content: list[Json] = []
    frame: dict[str, Json] = {_CONTENT: content, _CUT: mark}
    remaining = most_bytes - _bytes_of(frame)
    for part in cast("list[dict[str, Any]]", parts):
        room = remaining - _bytes_of({**part, "text": ""} if "text" in part else part) - len(",")
        if room < 0:
            break
        if "text" in part:
            part = {**part, "text": _beginning(part["text"], "", room + len('""'))}
        content.append(part)
        remaining = most_bytes - _bytes_of(frame)
    return frame


def _beginning(text: str, ending: str, most_bytes: int) -> str:
    """Return as much of a text as has, with the ending, so many bytes as JSON; the ending always."""
    if _bytes_of(text) <= most_bytes:
        return text
    fewest, most = 0, len(text)
    while fewest < most:
        middle = (fewest + most + 1) // 2
        if _bytes_of(text[:middle] + ending) <= most_bytes:
            fewest = middle
        else:
            most = middle - 1
    return text[:fewest] + ending


def _bytes_of(value: Json) -> int:
    return len(dumps_exact(value).encode("utf-8"))


def _value_of(result: mcp_types.CallToolResult) -> tuple[Json, list[Json] | None]:
    """Return the value of a result, and its parts where they are in it."""
    structured: Json = result.structured_content
    if all(isinstance(block, mcp_types.TextContent) for block in result.content):
        return _text_of(result.content) if structured is None else structured, None
    parts: list[Json] = [_part_of(block) for block in result.content]
    named: dict[str, Json] = {} if structured is None else {"structured": structured}
    return {_CONTENT: parts, **named}, parts


def _text_of(content: Sequence[Any]) -> str:
    return "\n".join(block.text for block in content if isinstance(block, mcp_types.TextContent))


def _part_of(block: mcp_types.ContentBlock) -> Json:
    match block:
        case mcp_types.TextContent():
            return {"type": "text", "text": block.text}
        case mcp_types.ImageContent() | mcp_types.AudioContent():
            return {"type": block.type, "mimeType": block.mime_type, "bytes": _size(block.data)}
        case mcp_types.ResourceLink():
            return {"type": "link", "uri": str(block.uri), "name": block.name}
        case mcp_types.EmbeddedResource():
            resource = block.resource
            named: dict[str, Json] = {"type": "resource", "uri": str(resource.uri)}
            if isinstance(resource, mcp_types.TextResourceContents):
                return named | {"text": resource.text}
            return named | {"mimeType": resource.mime_type, "bytes": _size(resource.blob)}


def _size(base64: str) -> int:
    """Return the number of bytes of a text in Base64."""
    return len(base64.rstrip("=")) * _BASE64_BYTES // _BASE64_CHARS
