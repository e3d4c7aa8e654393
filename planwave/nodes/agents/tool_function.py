"""Make a tool of a function.

::

    @planwave.tool(effect="read")
    async def look_up(customer: str, year: int = 2026) -> dict[str, float]:
        "Return the orders of a customer by month."

* The name is that of the function, the description the first paragraph of its docstring. The model sees
  both, and the texts under ``Args:``.
* The JSON Schema of the arguments comes from the annotations: everything that pydantic reads, with
  ``Literal``, ``Annotated[int, Field(ge=1)]``, lists, dataclasses and models. The arguments are read as
  JSON of these types, without silent conversion. A parameter with a default may be left out.
* A parameter annotated ``ToolCallContext`` gets the context of the call and is not in the schema.
* A function without ``async`` runs in a thread, as with ``@planwave.node``.
* The result is JSON of the return annotation, or of its own type where there is none.

Without an ``effect`` a tool counts as ``once``: planwave knows nothing about the function, and one that
sends a mail must not be called a second time after a crash without asking a person. Say ``read`` or
``none`` of one that changes nothing, and ``write`` of one that may be repeated with
``context.idempotency_key``.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import update_wrapper
from typing import Any, Final, Generic, NamedTuple, ParamSpec, TypeVar, cast, overload

from pydantic import BaseModel, Field, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic.fields import FieldInfo

from planwave.errors import PermanentError, ToolError
from planwave.graph.json_values import NotJson, to_json
from planwave.graph.model import Effect, Json
from planwave.json_types import JsonType, without_titles
from planwave.nodes.agents.tool import Approval, Tool, ToolCallContext
from planwave.nodes.agents.tool_registry import HasTools, default_tools
from planwave.nodes.authoring.signatures import (
    fields_config,
    name_or_function,
    require_function,
    require_named_parameter,
    type_hints,
)
from planwave.nodes.authoring.threads import call_in_thread

P = ParamSpec("P")
R = TypeVar("R")

_NAMED_TYPES: Final = {"ToolCallContext": ToolCallContext}


class FunctionTool(Generic[P, R]):
    """A tool made of a function; calling it calls the function.

    Attributes:
        tool: The tool.
        module: The module of the function.
        line: The line of the function in its file.
    """

    def __init__(
        self,
        function: Callable[P, R],
        name: str | None = None,
        *,
        effect: Effect = "once",
        approval: Approval = "never",
        timeout_s: float | None = None,
    ) -> None:
        """Read the function's signature and docstring; see [tool][planwave.tool]."""
        what = f"tool {name or getattr(function, '__name__', None)!r}"
        require_function(what, function)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{what}: {function!r} is a generator; a tool returns its result")
        update_wrapper(self, function)
        self._function: Callable[..., Any] = function
        self.module: str = function.__module__
        self.line: int = function.__code__.co_firstlineno
        texts = read_docstring(function)
        hints = type_hints(what, function, _NAMED_TYPES)
        model, self._context = _read_parameters(what, function, hints, texts)
        self._arguments = JsonType[BaseModel](model, what)
        self._result_type = JsonType[Any](hints.get("return", Any), f"{what}: the result")
        self.tool = Tool(
            name or function.__name__,
            texts.summary,
            _schema_of(what, model),
            self._call,
            effect,
            approval,
            timeout_s=timeout_s,
            checks_arguments=True,
            result_schema=self._result_type.schema("serialization") or None,
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.tool.name!r}: {self._function.__qualname__}>"

    async def _call(self, arguments: Mapping[str, Json], context: ToolCallContext) -> Json:
        values = self._convert(arguments)
        if self._context is not None:
            values[self._context] = context
        try:
            if inspect.iscoroutinefunction(self._function):
                result = await self._function(**values)
            else:
                result = await call_in_thread(self._function, values)
        except asyncio.CancelledError as error:
            if self._context is not None or _is_being_cancelled():
                raise  # one that has the context may wait for a nested run, which the engine cancels
            raise ToolError(f"the tool {self.tool.name!r} cancelled itself") from error
        return self._result(result)

    def _convert(self, arguments: Mapping[str, Json]) -> dict[str, Any]:
        try:
            read = self._arguments.read(dict(arguments), "")
        except PermanentError as error:
            raise ToolError(error.message, code="invalid-arguments") from error
        # What was left out keeps the function's own default, which pydantic may have copied.
        return {
            cast("str", info.alias): getattr(read, field)
            for field, info in type(read).model_fields.items()
            if field in read.model_fields_set
        }

    def _result(self, result: Any) -> Json:
        try:
            return to_json(self._result_type.write(result, "the result"))
        except PermanentError as error:
            raise ToolError(
                f"the tool {self.tool.name!r}: {error.message}", code=error.code, hint=error.hint
            ) from error
        except NotJson as error:
            raise ToolError(
                f"the tool {self.tool.name!r} returned no JSON: {error}",
                code="result-not-json",
                hint="return text, numbers, lists and dicts, a dataclass or a pydantic model",
            ) from error


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    name: str | None = None,
    *,
    effect: Effect = "once",
    approval: Approval = "never",
    timeout_s: float | None = None,
    registry: HasTools | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    name: str | Callable[..., Any] | None = None,
    *,
    effect: Effect = "once",
    approval: Approval = "never",
    timeout_s: float | None = None,
    registry: HasTools | None = None,
) -> Any:
    """Register a function as a tool for agents; see this module for what the model sees of it.

    It stands above the function alone (``@planwave.tool``), or with arguments.

    Args:
        name: What the model calls it; the function's name if None.
        effect: What a call does to the world; ``once`` (must not happen twice) unless it is said.
        approval: When a person approves a call: ``never``, ``always``, or ``write`` for effects that
            change something. Agents and graphs can be stricter, not laxer.
        timeout_s: The time of one call, in seconds; None for that of the agent.
        registry: Where to register it; the process's default registry if None.

    Raises:
        TypeError, ValueError: It cannot be a tool, or the name is taken; the message says why.
    """

    def register(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        function_tool = FunctionTool(
            function, own_name, effect=effect, approval=approval, timeout_s=timeout_s
        )
        tools = default_tools() if registry is None else registry.tools
        return tools.register(function_tool)

    own_name, function = name_or_function("a tool", name)
    return register if function is None else register(function)


def _read_parameters(
    what: str, function: Callable[..., Any], hints: Mapping[str, Any], texts: Docstring
) -> tuple[type[BaseModel], str | None]:
    """Return the model of the arguments, and the parameter for the context."""
    fields: dict[str, Any] = {}
    context: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        name = parameter.name
        require_named_parameter(what, parameter, "use plain parameters")
        annotation = hints.get(name, Any)
        if annotation is ToolCallContext:
            context = name
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        text = None if _is_described(annotation) else texts.arguments.get(name)
        described: dict[str, Any] = {} if text is None else {"description": text}
        # Numbered, since a parameter may be called ``schema`` or ``copy``.
        fields[f"p{len(fields)}"] = annotation, Field(default, alias=name, **described)
    try:
        model = create_model(what, __config__=fields_config(), **fields)
    except PydanticSchemaGenerationError as error:
        raise TypeError(
            f"{what}: a parameter has a type that is not JSON: {error.message.splitlines()[0]}"
        ) from error
    return model, context


def _is_described(annotation: Any) -> bool:
    """Return whether an annotation has a description of its own."""
    extras = getattr(annotation, "__metadata__", ())
    return any(isinstance(each, FieldInfo) and each.description for each in extras)


def _schema_of(what: str, model: type[BaseModel]) -> dict[str, Any]:
    try:
        schema = model.model_json_schema()
    except PydanticInvalidForJsonSchema as error:
        raise TypeError(
            f"{what}: a parameter has a type that is not JSON: {error.message}"
        ) from error
    return {"properties": {}, **without_titles(schema)}


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


_ARGUMENTS: Final = frozenset({"Args:", "Arguments:", "Parameters:"})
_ENTRY: Final = re.compile(r"(?P<name>\w+)\s*(\([^)]*\))?\s*:\s*(?P<text>.*)")


class Docstring(NamedTuple):
    """The texts of a docstring, each on one line."""

    summary: str
    arguments: dict[str, str]


def read_docstring(function: Callable[..., Any]) -> Docstring:
    """Return the texts of a function's docstring; a text that is missing is empty."""
    lines = (inspect.getdoc(function) or "").splitlines()
    return Docstring(_first_paragraph(lines), _arguments(lines))


def _first_paragraph(lines: Iterable[str]) -> str:
    words: list[str] = []
    for line in lines:
        if not line.strip() or line.strip() in _ARGUMENTS:
            break
        words.append(line.strip())
    return " ".join(words)


def _arguments(lines: list[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    heading = next((i for i, line in enumerate(lines) if line.strip() in _ARGUMENTS), len(lines))
    indent, name = None, ""
    for line in lines[heading + 1 :]:
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        if depth == 0:
            break  # the next section
        indent = depth if indent is None else indent
        entry = _ENTRY.fullmatch(line.strip()) if depth <= indent else None
        if entry is not None:
            name = entry["name"]
            texts[name] = entry["text"]
        elif name:
            texts[name] = f"{texts[name]} {line.strip()}".strip()
    return texts
