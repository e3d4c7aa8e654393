"""n8n's tools of agents: requests, other workflows and servers, with what a model fills in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast
from urllib.parse import quote

from planwave.interop.importing.drafts import Target
from planwave.interop.importing.javascript.syntax import Call, Name, parse
from planwave.interop.importing.javascript.translation import (
    Embedded,
    Untranslatable,
    literal_value,
    split,
    value_of_literal,
)
from planwave.interop.importing.n8n.kinds import Making, flow_name
from planwave.interop.importing.n8n.requests import METHODS, credential_secret, secret_in
from planwave.interop.importing.n8n.schemas import written_schema
from planwave.interop.importing.reading import json_of, list_of, object_of, objects_in, text_of
from planwave.interop.importing.secrets import Withheld
from planwave.interop.importing.templates import literal

_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_]+")
_ADDRESS: Final = re.compile(
    r"https?://(?P<host>[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?)(?::\d{1,5})?"
    r"(?P<rest>(?:[/?][!-\"$-\[\]-~]*)?)"
)
"""An address of which a model fills in parts of the path and of the query."""
_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}")
_NUMBER: Final = re.compile(r"\d+|0[xX][0-9A-Fa-f]*")
_IPV4: Final = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)")
_WITH_BODY: Final = frozenset(("POST", "PUT", "PATCH"))
_TYPES: Final = frozenset(("string", "number", "boolean"))
_QUERY: Final = {"query": {"type": "string"}}
"""What a model gives a workflow that names no inputs."""
_OVERRIDE: Final = "/*n8n-auto-generated-fromAI-override*/"


def tool_name(name: str) -> str:
    """Return what a model calls a tool, from the name of its step."""
    return _NO_NAME.sub("_", name).strip("_")[:60] or "tool"


class _Arguments:
    """The arguments of a tool, and fixed values, which its schema allows alone."""

    def __init__(self, making: Making) -> None:
        self._making = making
        self.properties: dict[str, Any] = {}
        self.required: list[str] = []
        self._has_fixed = False

    def add(self, name: str, schema: Mapping[str, Any], *, is_required: bool = True) -> None:
        """Add what a model fills in."""
        if name in self.properties and self.properties[name] != schema:
            self._making.lose("two of its parameters have one name", name)
        self.properties[name] = dict(schema)
        if is_required and name not in self.required:
            self.required.append(name)

    def fix(self, name: str, value: Any) -> None:
        """Add a value that is always the same."""
        self.add(name, {"const": value})
        self.say_fixed()

    def say_fixed(self) -> None:
        """Say once how values that are always the same are sent."""
        if not self._has_fixed:
            self._has_fixed = True
            self._making.step.node.change(
                "the model sends its fixed values here, of which the schema allows no others"
            )

    @property
    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object", "properties": self.properties}
        return schema | ({"required": self.required} if self.required else {})


class _Field(NamedTuple):
    """A parameter of a request.

    Attributes:
        name: Its name.
        value: Its value; None for what a model fills in.
        is_required: Whether a model has to.
        pointer: Where it stands.
    """

    name: str
    value: Any
    is_required: bool
    pointer: str


# Requests


def _http_tool(making: Making) -> None:
    """Make a tool that sends a request, whose address and parameters a model fills in."""
    method = text_of(making.parameters, "method") or "GET"
    if method not in METHODS:
        making.lose(f"requests here have no method {method}", method, "method")
        method = "GET"
    arguments, described = _Arguments(making), _described(making)
    url = _address(making)
    for name in _PLACEHOLDER.findall(url):
        arguments.add(name, described.get(name, {"type": "string"}))
    query = [
        part
        for each in _fields(making, "Query")
        for part in _query_part(making, each, arguments, described, method)
    ]
    if query:
        url += f"{'&' if '?' in url else '?'}{'&'.join(query)}"
    _add_body(making, method, arguments, described)
    headers = {
        each.name: making.fields.template(each.value, each.pointer)
        for each in _fields(making, "Headers")
        if _is_header(making, each)
    }
    data: dict[str, Any] = {
        "name": tool_name(making.step.name),
        "description": making.text("toolDescription") or literal(making.step.name),
        "url": url,
        "parameters": arguments.schema,
    }
    if method != "GET":
        data["method"] = method
    secrets = credential_secret(making)
    data |= {"headers": headers} if headers else {}
    data |= {"secretHeaders": secrets} if secrets else {}
    if making.parameters.get("optimizeResponse") is True:
        making.step.node.change("the model reads the whole answer of the service here")
    target = making.becomes("http_tool", data)
    for name in secrets.values():
        making.workflow.conversion.needs("secret", secret_in(name), target)


def _address(making: Making) -> str:
    url = text_of(making.parameters, "url").strip()
    if url.startswith("="):
        making.lose("the address of a tool is calculated", url, "url")
    elif not _is_address(url):
        making.lose("its address is none of http", url, "url")
    return url


def _is_address(url: str) -> bool:
    """Return whether an address has a host, and braces only around names after that."""
    match = _ADDRESS.fullmatch(url)
    if match is None or set("{}") & set(_PLACEHOLDER.sub("", match["rest"])):
        return False
    keys = (part.partition("=")[0] for part in match["rest"].partition("?")[2].split("&"))
    last = match["host"].removesuffix(".").rpartition(".")[2]
    is_host = not _NUMBER.fullmatch(last) or _IPV4.fullmatch(match["host"]) is not None
    return is_host and not any(_PLACEHOLDER.search(key) for key in keys)


def _described(making: Making) -> dict[str, dict[str, Any]]:
    """Return the schemas of the placeholders that are described."""
    given = object_of(making.parameters, "placeholderDefinitions")
    found = dict[str, dict[str, Any]]()
    for _, each in objects_in(given, "values"):
        kind = text_of(each, "type")
        found[text_of(each, "name")] = {
            "type": kind if kind in _TYPES else "string",
            "description": text_of(each, "description"),
        }
    return found


def _fields(making: Making, part: str) -> Iterator[_Field]:
    """Yield the parameters of the query, the body or the headers, in pairs or as JSON."""
    parameters = making.parameters
    if parameters.get(f"send{part}") is not True:
        return
    way = text_of(parameters, f"specify{part}")
    if way not in ("", "keypair"):
        at = f"json{part}"
        value = _json(text_of(parameters, at)) if way == "json" else None
        if value is None:
            making.lose(f"the {part.lower()} of a tool is calculated", text_of(parameters, at), at)
        for name, inner in (value or {}).items():
            yield _Field(name, inner, True, f"{making.at}/{at}")
        return
    holder = f"parameters{part}"
    for number, each in objects_in(object_of(parameters, holder), "values"):
        at, name = f"{making.at}/{holder}/values/{number}/value", text_of(each, "name")
        provider = text_of(each, "valueProvider") or "modelRequired"
        value = each.get("value", "") if provider == "fieldValue" else None
        if not name or name.startswith("="):
            making.step.node.lose("the name of a parameter is calculated", name, at)
        else:
            yield _Field(name, value, provider == "modelRequired", at)


def _json(text: str) -> dict[str, Any] | None:
    try:
        value = json_of(text)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _query_part(
    making: Making,
    each: _Field,
    arguments: _Arguments,
    described: Mapping[str, dict[str, Any]],
    method: str,
) -> list[str]:
    """Add a parameter of the query; return what the address has of it."""
    name, text = each.name, {"type": "string"}
    if each.value is None and method not in _WITH_BODY:
        arguments.add(name, described.get(name, text), is_required=each.is_required)
        return []
    filled = _PLACEHOLDER.fullmatch(each.value.strip()) if isinstance(each.value, str) else None
    if each.value is None:
        filled = _PLACEHOLDER.fullmatch(f"{{{name}}}")
    if filled is not None:
        is_required = each.value is not None or each.is_required
        arguments.add(filled[1], described.get(filled[1], text), is_required=is_required)
        return [f"{quote(name, safe='')}={{{filled[1]}}}"]
    value = _fixed(making, each)
    shown = "" if value is None else value if isinstance(value, str) else _shown(value)
    if each.value is None or shown is None or _PLACEHOLDER.search(shown):
        making.step.node.lose("a value of the query that is no fixed text", name, each.pointer)
        return []
    return [f"{quote(name, safe='')}={quote(shown, safe='')}"]


def _shown(value: Any) -> str | None:
    """Return a number or a truth value as text; None for a list and an object."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else None


def _add_body(
    making: Making, method: str, arguments: _Arguments, described: Mapping[str, dict[str, Any]]
) -> None:
    for each in _fields(making, "Body"):
        if method not in _WITH_BODY:
            making.step.node.lose(f"a body of a {method} request", each.name, each.pointer)
        elif each.value is None:
            schema = described.get(each.name, {"type": "string"})
            arguments.add(each.name, schema, is_required=each.is_required)
        else:
            value = _fixed(making, each)
            arguments.add(each.name, _schema_in(making, value, arguments, described, each.pointer))


def _schema_in(
    making: Making,
    value: Any,
    arguments: _Arguments,
    described: Mapping[str, dict[str, Any]],
    pointer: str,
) -> dict[str, Any]:
    """Return the schema of a body: a model fills in the placeholders, and everything else is fixed."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        inner = {k: _schema_in(making, v, arguments, described, pointer) for k, v in fields.items()}
        if any("const" not in each for each in inner.values()):
            return {"type": "object", "properties": inner, "required": list(inner)}
    elif isinstance(value, str) and (filled := _PLACEHOLDER.fullmatch(value.strip())) is not None:
        return described.get(filled[1], {"type": "string"})
    if any(_PLACEHOLDER.search(text) for text in _texts(value)):
        message = "text around what a model fills in, or a list of that"
        making.step.node.lose(message, str(cast("object", value)), pointer)
    arguments.say_fixed()
    return {"const": value}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in cast("dict[str, Any]", value).values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _texts(each)


def _fixed(making: Making, each: _Field) -> Any:
    """Return a value that is always the same; one that is calculated is lost."""
    value: Any = each.value
    try:
        return _value_of(value)
    except Untranslatable as error:
        making.step.node.lose(f"{error.reason} as a value of a tool", str(value), each.pointer)
        return ""


def _value_of(value: Any) -> Any:
    if isinstance(value, Withheld) or not isinstance(value, str) or not value.startswith("="):
        return value
    parts = split(value[1:])
    if len(parts) != 1 or not isinstance(parts[0], Embedded):
        raise Untranslatable("a value that is calculated")
    return literal_value(parts[0].text)


def _is_header(making: Making, each: _Field) -> bool:
    """Return whether a header has a value; one that a model fills in is lost."""
    if each.value is None or any(_PLACEHOLDER.search(text) for text in _texts(each.value)):
        making.step.node.lose("a header that a model fills in", each.name, each.pointer)
        return False
    return True


def _wikipedia(making: Making) -> None:
    data: dict[str, Any] = {
        "name": "wikipedia",
        "description": "A tool for interacting with and fetching data from the Wikipedia API.",
        "url": "https://en.wikipedia.org/w/api.php?action=query&format=json&generator=search&gsrlimit=3"
        "&prop=extracts&exintro=1&explaintext=1&gsrsearch={query}",
        "parameters": {"type": "object", "properties": _QUERY, "required": ["query"]},
    }
    making.becomes("http_tool", data)
    making.step.node.change(
        "it reads the beginnings of three articles here, and longer texts there"
    )


# Workflows


def _workflow_tool(making: Making) -> None:
    """Make a tool that runs a flow, whose input is what a model fills in."""
    name = flow_name(making.parameters.get("workflowId"))
    if not name or name.startswith("="):
        making.lose(
            "the workflow that it runs is not named", str(making.parameters.get("workflowId"))
        )
        name = name or "flow"
    called = text_of(making.parameters, "name") or tool_name(making.step.name)
    if called.startswith("=") or tool_name(called) != called:
        called = tool_name(making.step.name)
    arguments = _Arguments(making)
    if making.step.version < 2:
        _add_written_inputs(making, arguments)
    else:
        _add_mapped_inputs(making, arguments)
    data: dict[str, Any] = {
        "name": called,
        "description": making.text("description") or literal(making.step.name),
        "flow": {"name": name},
        "parameters": arguments.schema,
    }
    target = making.becomes("flow_tool", data)
    making.workflow.conversion.needs("flow", name, target)
    making.step.node.change(f"it runs the flow {name!r}, which is not there yet: store it first")
    result = text_of(making.parameters, "responsePropertyName") or "response"
    if making.step.version < 1.3:
        making.step.node.change(
            f"the model reads the whole result of the flow; there it reads the field {result!r} of it"
        )


def _add_written_inputs(making: Making, arguments: _Arguments) -> None:
    """Add a query, or the inputs of a schema, and fixed fields."""
    properties: Mapping[str, Any] = _QUERY
    required: list[str] = ["query"]
    if making.parameters.get("specifyInputSchema") is True:
        schema = written_schema(making.step, "fromJson")
        if schema is None or schema.is_wrapped:
            making.lose("the schema of its inputs", text_of(making.parameters, "inputSchema"))
        else:
            schema.note(making.step)
            properties = object_of(schema.document, "properties")
            required = list_of(schema.document, "required")
    for name, schema_of_one in properties.items():
        arguments.add(name, schema_of_one, is_required=name in required)
    for number, each in objects_in(object_of(making.parameters, "fields"), "values"):
        kind = text_of(each, "type") or "stringValue"
        at = f"{making.at}/fields/values/{number}/{kind}"
        value = _fixed(making, _Field(text_of(each, "name"), each.get(kind, ""), True, at))
        arguments.fix(text_of(each, "name"), value)


def _add_mapped_inputs(making: Making, arguments: _Arguments) -> None:
    """Add the inputs that are mapped: what a model fills in, and fixed values."""
    given = object_of(object_of(making.parameters, "workflowInputs"), "value")
    for name, value in given.items():
        at = f"{making.at}/workflowInputs/value"
        filled = _filled_in(value)
        if filled is not None:
            arguments.add(name, filled)
        elif value is not None:
            arguments.fix(name, _fixed(making, _Field(name, value, True, at)))
    if not given:
        arguments.add("query", _QUERY["query"])


def _filled_in(value: Any) -> dict[str, Any] | None:
    """Return the schema of what ``$fromAI`` asks a model for, or None."""
    if not isinstance(value, str) or not value.startswith("="):
        return None
    parts = split(value[1:].replace(_OVERRIDE, ""))
    try:
        call = parse(parts[0].text) if isinstance(parts[0], Embedded) else None
        if not isinstance(call, Call) or call.called != Name("$fromAI") or len(parts) != 1:
            return None
        given = [str(value_of_literal(each) or "") for each in call.arguments]
    except Untranslatable:
        return None
    description, kind = [*given, "", "", ""][1:3]
    schema = {} if kind == "json" else {"type": kind if kind in _TYPES else "string"}
    return schema | ({"description": description} if description else {})


def _mcp(making: Making) -> None:
    server = tool_name(making.step.name).lower()
    data: dict[str, Any] = {"server": server}
    include = text_of(making.parameters, "include") or "all"
    if include == "selected":
        data["allow"] = [str(each) for each in list_of(making.parameters, "includeTools")]
    elif include == "except":
        data["deny"] = [str(each) for each in list_of(making.parameters, "excludeTools")]
    target: Target = making.becomes("mcp_server", data)
    making.workflow.conversion.needs("mcp", server, target)
    address = text_of(making.parameters, "endpointUrl") or text_of(making.parameters, "sseEndpoint")
    making.step.node.change(
        f"the server at {address} has to be set up by the operator, as {server!r}",
        making.at,
        hint="a person approves calls that change something, unless the operator says otherwise",
    )


TOOLS: Final[Mapping[str, Callable[[Making], None]]] = MappingProxyType(
    {
        "toolHttpRequest": _http_tool,
        "toolWorkflow": _workflow_tool,
        "toolWikipedia": _wikipedia,
        "mcpClientTool": _mcp,
    }
)
