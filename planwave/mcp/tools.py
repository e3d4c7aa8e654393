"""The tools of a server, as it describes them: bounded, and without what a model must not see."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    import mcp_types

KEY_ARGUMENT: Final = "idempotency_key"
"""An argument that planwave gives itself: the same text whenever the same call is made again."""
MAX_NAME_CHARS: Final = 128
_MAX_DESCRIPTION_CHARS: Final = 4_000


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of a server.

    Attributes:
        name: Its name on the server.
        description: What it does, in the server's words, cut to 4,000 characters.
        parameters: The JSON Schema of the arguments that a model gives.
        reads_only: Whether the server says that it changes nothing.
        is_repeatable: Whether the server says that a call made twice acts once.
        takes_key: Whether it has the argument ``idempotency_key``.
        definition: All that the server says about it; another one after a reconnect is another tool.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    reads_only: bool = False
    is_repeatable: bool = False
    takes_key: bool = False
    definition: str = ""

    @property
    def fingerprint(self) -> str:
        """A hash of its definition, whatever the order of its fields."""
        return sha256(
            json.dumps(json.loads(self.definition), sort_keys=True).encode("utf-8", "replace")
        ).hexdigest()


@dataclass(frozen=True, slots=True)
class ToolList:
    """The tools that can be used, by name; why others cannot, and what else to know, in sentences."""

    tools: Mapping[str, ServerTool]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class UsableSchema(Protocol):
    """A JSON Schema that can be used, and the rest of a sentence about it; ``ServerSchema`` is one."""

    @property
    def schema(self) -> Mapping[str, Any]: ...
    @property
    def note(self) -> str: ...


class _AsIs(NamedTuple):
    schema: Mapping[str, Any]
    note: str = ""


AdaptSchema = Callable[[Mapping[str, Any]], UsableSchema]
"""Returns a JSON Schema of an object as planwave can check it."""
AS_IT_IS: Final[AdaptSchema] = _AsIs


def read_tools(
    listed: Iterable[mcp_types.Tool],
    adapt_schema: AdaptSchema = AS_IT_IS,
    earlier_problems: Iterable[str] = (),
) -> ToolList:
    """Read what a server lists; a tool that cannot be used is left out, with a sentence.

    Args:
        listed: Tools that follow the protocol.
        adapt_schema: See ``AdaptSchema``.
        earlier_problems: Sentences about tools that do not follow it.
    """
    tools: dict[str, ServerTool] = {}
    problems, notes = [*earlier_problems], list[str]()
    for each in listed:
        problem = "is listed twice" if each.name in tools else _problem_of(each)
        if problem:
            problems.append(tool_problem(each.name, problem))
            continue
        tools[each.name], note = _read_tool(each, adapt_schema)
        notes += [tool_problem(each.name, note)] if note else []
    return ToolList(tools, tuple(problems), tuple(notes))


def tool_problem(name: str, problem: str) -> str:
    """Return the sentence about a tool; names come from servers."""
    return f"the tool {_printable(name)[:MAX_NAME_CHARS]!r} {problem}"


def _problem_of(tool: mcp_types.Tool) -> str | None:
    if not 0 < len(tool.name) <= MAX_NAME_CHARS or not tool.name.isprintable():
        return f"has no usable name (1 to {MAX_NAME_CHARS} printable characters)"
    if tool.input_schema.get("type") != "object":
        return "has a schema of arguments that is no object"
    return None


def _read_tool(tool: mcp_types.Tool, adapt_schema: AdaptSchema) -> tuple[ServerTool, str]:
    hints = tool.annotations
    own, takes_key = _without_key(tool.input_schema)
    parameters, note = (adapted := adapt_schema(own)).schema, adapted.note
    description = tool.description or tool.title or ""
    if len(description) > _MAX_DESCRIPTION_CHARS:
        description = f"{description[:_MAX_DESCRIPTION_CHARS]}…"
    read = ServerTool(
        tool.name,
        _printable(description),
        parameters,
        reads_only=bool(hints and hints.read_only_hint and not hints.destructive_hint),
        is_repeatable=bool(hints and hints.idempotent_hint),
        takes_key=takes_key,
        definition=tool.model_dump_json(
            by_alias=True, exclude_none=True, exclude={"icons", "meta"}
        ),
    )
    return read, note


def _without_key(schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return a schema without the argument that planwave gives, and whether it was there."""
    plain = {name: value for name, value in schema.items() if name != "$schema"}
    properties = plain.get("properties")
    if not isinstance(properties, dict) or KEY_ARGUMENT not in properties:
        return plain, False
    arguments = {**cast("dict[str, Any]", properties)}
    del arguments[KEY_ARGUMENT]
    plain["properties"] = arguments
    if isinstance(plain.get("required"), list):
        plain["required"] = [name for name in plain["required"] if name != KEY_ARGUMENT]
    return plain, True


def _printable(text: str) -> str:
    """Return a text without control characters and characters that nobody sees."""
    return "".join(char for char in text if char.isprintable() or char in "\n\t")
