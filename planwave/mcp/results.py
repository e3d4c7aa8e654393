"""What a tool of an MCP server gives back, as JSON for a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import mcp_types

from planwave.errors import LimitExceeded, McpError
from planwave.graph.json_values import json_faults
from planwave.graph.model import Json
from planwave.jsonio import dumps_exact

_MAX_ERROR_CHARS: Final = 4_000
_BASE64_CHARS: Final = 4
_BASE64_BYTES: Final = 3


def result_of(result: mcp_types.CallToolResult, tool: str, most_bytes: int) -> Json:
    """Return the result of a call: its structured content, or its text.

    Where it has other content too, it is an object with ``content``, a list of parts; of images,
    audio and files only type and size are in it.

    Raises:
        McpError: ``mcp-tool-error``: the tool reports an error, whose text the message is;
            ``mcp-invalid-answer``.
        LimitExceeded: ``mcp_result_bytes``.
    """
    if result.is_error:
        text = _text_of(result.content) or f"the tool {tool!r} failed without a message"
        raise McpError(text[:_MAX_ERROR_CHARS], code="mcp-tool-error")
    value = _value_of(result)
    if faults := json_faults(value):
        raise McpError(
            f"the result of the tool {tool!r} cannot be stored: {faults[0].message}",
            code="mcp-invalid-answer",
        )
    size = len(dumps_exact(value).encode("utf-8"))
    if size > most_bytes:
        raise LimitExceeded(
            "mcp_result_bytes", most_bytes, size, what=f"the result of the tool {tool!r}",
            hint="ask the tool for less, or raise the limit mcp_result_bytes",
        )  # fmt: skip
    return value


def _value_of(result: mcp_types.CallToolResult) -> Json:
    structured: Json = result.structured_content
    if all(isinstance(block, mcp_types.TextContent) for block in result.content):
        return _text_of(result.content) if structured is None else structured
    parts: list[Json] = [_part_of(block) for block in result.content]
    return {"content": parts} | ({} if structured is None else {"structured": structured})


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
