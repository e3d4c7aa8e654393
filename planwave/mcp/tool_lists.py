"""Lists of tools as servers send them: a tool that breaks the protocol is mended, or taken out of its list.

The SDK checks a list as a whole: one invalid tool would make all tools of its server unusable.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, Final, cast

import mcp_types
from mcp.shared.message import SessionMessage
from mcp_types.methods import parse_server_result
from pydantic import ValidationError

_METHOD: Final = "tools/list"
_TOOLS: Final = "tools"

OnInvalidTool = Callable[[str, ValidationError], None]
"""Gets the name of a tool that is taken out, empty if it has none, and what is wrong with it."""


@asynccontextmanager
async def leave_out_invalid_tools(
    transport: AbstractAsyncContextManager[Any],
    protocol_version: Callable[[], str | None],
    on_invalid_tool: OnInvalidTool,
) -> AsyncGenerator[Any]:
    """Yield the two streams of a transport; lists of tools arrive without invalid tools.

    Args:
        transport: What the SDK would connect to.
        protocol_version: Returns the version that was agreed on, None before that.
        on_invalid_tool: See ``OnInvalidTool``.
    """

    def filtered(item: object) -> object:
        if not isinstance(item, SessionMessage):
            return item
        message = item.message
        if not isinstance(message, mcp_types.JSONRPCResponse):
            return item
        tools, version = message.result.get(_TOOLS), protocol_version()
        if not isinstance(tools, list) or version is None:
            return item
        listed = cast("list[Any]", tools)
        valid = _valid_tools(message.result, listed, version, on_invalid_tool)
        if valid == listed:
            return item
        result = {**message.result, _TOOLS: valid}
        return replace(item, message=message.model_copy(update={"result": result}))

    async with transport as (incoming, outgoing):
        yield _MappedStream(incoming, filtered), outgoing


def _valid_tools(
    result: Mapping[str, Any], tools: list[Any], version: str, on_invalid_tool: OnInvalidTool
) -> list[Any]:
    """Return the tools of a list that follow the protocol; all, where more than tools is wrong."""
    if _error_in(result, tools, version) is None or _error_in(result, [], version) is not None:
        return tools
    valid: list[Any] = []
    for tool in tools:
        error = _error_in(result, [tool], version)
        saved = tool if error is None else _without_optional_fields(tool)
        if error is None or _error_in(result, [saved], version) is None:
            valid.append(saved)
        else:
            on_invalid_tool(_name_of(tool), error)
    return valid


def _without_optional_fields(tool: object) -> object:
    """Return what has to be there of a tool. Arguments are an object, also where their schema does not say so."""
    if not isinstance(tool, dict):
        return tool
    fields = cast("dict[str, Any]", tool)
    required = {name: fields[name] for name in ("name", "inputSchema") if name in fields}
    if isinstance(description := fields.get("description"), str):
        required["description"] = description
    if isinstance(schema := fields.get("inputSchema"), dict):
        words = cast("dict[str, Any]", schema)
        kind = words.get("type")
        if kind is None or (isinstance(kind, list) and "object" in kind):
            required["inputSchema"] = {**words, "type": "object"}
    return required


def _name_of(tool: object) -> str:
    name = cast("dict[str, Any]", tool).get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else ""


def _error_in(result: Mapping[str, Any], tools: list[Any], version: str) -> ValidationError | None:
    try:
        parse_server_result(_METHOD, version, {**result, _TOOLS: tools})
    except ValidationError as error:
        return error
    return None


class _MappedStream:
    """A stream of messages, each of which goes through a function; else the stream that is given."""

    def __init__(self, inner: Any, function: Callable[[object], object]) -> None:
        self._inner = inner
        self._function = function

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def receive(self) -> object:
        return self._function(await self._inner.receive())

    def __aiter__(self) -> _MappedStream:
        return self

    async def __anext__(self) -> object:
        return self._function(await anext(self._inner))

    async def __aenter__(self) -> _MappedStream:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *details: Any) -> bool | None:
        return await self._inner.__aexit__(*details)
