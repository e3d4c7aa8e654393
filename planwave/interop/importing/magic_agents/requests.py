"""Requests over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import urlsplit

from planwave.interop.importing.jinja_text import Names as JinjaNames
from planwave.interop.importing.jinja_text import Variable
from planwave.interop.importing.magic_agents.fields import lose_environment, note_unread, text_field
from planwave.interop.importing.magic_agents.flow import Step
from planwave.interop.importing.magic_agents.graphs import Graph, Made, Plug
from planwave.interop.importing.magic_agents.rendered import Names, translated_text
from planwave.interop.importing.reading import json_of, text_of
from planwave.interop.importing.secrets import Withheld
from planwave.interop.importing.templates import path

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_URL: Final = ("url", "endpoint")
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "headers": ("headers",),
    "params": ("params", "query"),
    "body": ("body", "data"),
    "json": ("json_data", "json_body"),
}
_WIRED: Final[Mapping[str, str]] = {
    "handle-url": "url",
    "handle-fetch-method": "method",
    "handle-data": "body",
    "handle-json_data": "json",
    "handle-headers": "headers",
}
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")
_ENVIRONMENT: Final = re.compile(r"\{\{\s*env\.([A-Za-z]\w*)\s*\}\}", re.ASCII)
_NAMED: Final = re.compile(r"\{(\w+)\}")
_TOOL: Final = ("tool_mode", "tool_name", "tool_parameters")


def fetch(graph: Graph, step: Step) -> Made:
    """Make a request; as a tool of a model it has no counterpart yet."""
    names = Names(graph, step)
    plain = [handle for handle in names.handles if handle not in _WIRED]
    variables = _variables(names, plain)
    data = _data(step, variables, {_WIRED[handle] for handle in names.handles if handle in _WIRED})
    if len(plain) > 1:
        given = {names.port(handle): _given(names, handle) for handle in plain}
        choice = step.node.becomes(
            "parser", {"template": given}, node_id=f"{step.id}-input", graph=graph.draft
        )
    else:
        choice = None
    target = step.node.becomes("fetch", data, node_id=step.id, graph=graph.draft)
    if choice is not None:
        graph.join(choice, target)
    for text in data.get("secretHeaders", {}).values():
        for secret in _NAMED.findall(text):
            graph.conversion.needs("secret", secret, target)
    if step.data.get("tool_mode") is True:
        step.node.becomes_placeholder(
            "a request that a model makes as a tool", hint="use http_tool"
        )
    if not names.handles:
        step.node.change(
            "nothing leads to it: there it made no request and gave {}, here it makes one"
        )
    note_unread(
        step, {*_URL, "method", *(each for names in _FIELDS.values() for each in names), *_TOOL}
    )

    def into(handle: str) -> Plug | None:
        if handle in _WIRED:
            return Plug(target, _WIRED[handle])
        return Plug(target, "input") if choice is None else Plug(choice, names.port(handle))

    return Made(into, lambda _: Plug(target, "output"))


def _given(names: Names, handle: str) -> str:
    port = names.port(handle)
    return f"{{{{ {port} | default('') }}}}" if names.is_optional(handle) else f"{{{{ {port} }}}}"


def _variables(names: Names, plain: list[str]) -> JinjaNames:
    def variable(name: str) -> Variable | None:
        known = names.variable(name)
        if known is None or name not in plain:
            return None
        if len(plain) == 1:
            return known._replace(expression="input", is_optional=False)
        return known._replace(expression=path("input", [names.port(name)]), is_optional=False)

    return variable


def _data(step: Step, variables: JinjaNames, wired: set[str]) -> dict[str, Any]:
    url, pointer = text_field(step, *_URL)
    data: dict[str, Any] = {}
    if url:
        data["url"] = translated_text(step, url, pointer, variables)
        if not _is_address(data["url"]):
            step.node.lose("an address that planwave does not request", url, pointer)
    elif "url" not in wired:
        step.node.lose("it has no address", "", pointer)
    method = (text_of(step.data, "method") or "GET").upper()
    if method not in _METHODS:
        step.node.lose(
            "a method that planwave does not send", method, f"{step.node.pointer}/data/method"
        )
    data["method"] = method
    for field, names in _FIELDS.items():
        name = next((each for each in names if step.data.get(each)), None)
        if name is not None:
            data[field] = _field(step, field, name, variables)
    written: dict[str, Any] = data.pop("headers", None) or {}
    secrets = _secret_headers(step, written) | _headers_of_environment(step)
    if secrets:
        data["secretHeaders"] = secrets
    if headers := {name: value for name, value in written.items() if name not in secrets}:
        data["headers"] = headers
    if "json" in data and "body" in data:
        step.node.lose("a body as text and as JSON", "", f"{step.node.pointer}/data")
        del data["body"]
    return data


def _secret_headers(step: Step, headers: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers whose values were secrets, with the name of a secret of the operator in each."""
    found: dict[str, str] = {}
    for header, value in headers.items():
        if isinstance(value, Withheld):
            name = step.node.secret_name(header)
            found[header] = f"{value.scheme}{{{name}}}"
    return found


def _headers_of_environment(step: Step) -> dict[str, str]:
    """Return the headers with variables of the environment, which are secrets of the operator here."""
    found: dict[str, str] = {}
    for header, value in _headers_in(step).items():
        if _is_secret_of_environment(value):
            text = found[header] = _ENVIRONMENT.sub(r"{\1}", value)
            names = ", ".join(map(repr, _NAMED.findall(text)))
            step.node.change(
                f"the environment variable {names} in its header {header!r} is a secret of the operator here",
                f"{step.node.pointer}/data/headers",
            )
    return found


def _headers_in(step: Step) -> Mapping[str, Any]:
    """Return the headers of a step, which may stand there as JSON in a text."""
    value = step.data.get("headers")
    if isinstance(value, str):
        try:
            value = json_of(value)
        except ValueError:
            return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _is_secret_of_environment(value: object) -> bool:
    """Return whether a header has variables of the environment, and no template beside them."""
    if not isinstance(value, str):
        return False
    rest, number = _ENVIRONMENT.subn("", value)
    return number > 0 and not any(brace in rest for brace in "{}")


def _is_address(url: str) -> bool:
    """Return whether a text is an address over HTTP, or what a template gives is to be one."""
    plain = re.sub(r"\{\{.*?\}\}", "x", url, flags=re.DOTALL)
    if re.search(r"[\s\x00-\x20\x7f-\uffff{}%\\^`|<>\"]", plain.replace("%2", "")):
        return False
    if url.startswith("{{"):
        return True
    try:
        return plain.startswith(("http://", "https://")) and bool(urlsplit(plain).hostname)
    except ValueError:
        return False


def _field(step: Step, field: str, name: str, variables: JinjaNames) -> Any:
    value, pointer = step.data[name], f"{step.node.pointer}/data/{name}"
    if field == "body" and not isinstance(value, str):
        step.node.lose("a body that is no text", str(value), pointer)
        return ""
    if field != "body" and isinstance(value, str):
        try:
            value = json_of(value)
        except ValueError:
            step.node.lose(f"{name} is no JSON", value, pointer)
            return {}
    if field not in ("headers", "params"):
        return _translated(step, value, pointer, variables)
    if not isinstance(value, dict):
        step.node.lose(f"{name} is no object", str(value), pointer)
        return {}
    plain = {
        key: each if isinstance(each, str | int | float) else json.dumps(each)
        for key, each in cast("dict[str, Any]", value).items()
        if field != "headers" or not _is_secret_of_environment(each)
    }
    if field == "headers":
        for key, each in plain.items():
            if not _HEADER.fullmatch(key) or not _HEADER_VALUE.fullmatch(str(each)):
                step.node.lose("a header that cannot be sent", f"{key}: {each}", pointer)
    return _translated(step, plain, pointer, variables)


def _translated(step: Step, value: Any, pointer: str, variables: JinjaNames) -> Any:
    if isinstance(value, Withheld):
        return value
    if isinstance(value, str):
        lose_environment(step, value, pointer)
        return translated_text(step, value, pointer, variables)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {k: _translated(step, v, f"{pointer}/{k}", variables) for k, v in fields.items()}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [_translated(step, v, f"{pointer}/{i}", variables) for i, v in enumerate(items)]
    return value
