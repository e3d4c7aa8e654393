"""HTTP requests of n8n."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, cast
from urllib.parse import quote

from planwave.interop.importing.javascript.values import STRING
from planwave.interop.importing.n8n.answers import hand_on_one_item, is_one_item
from planwave.interop.importing.n8n.kinds import Kind, Making, literal_data
from planwave.interop.importing.n8n.workflow import SAME, Envelope, Step, Workflow
from planwave.interop.importing.reading import json_of, object_of, objects_in, text_of
from planwave.interop.importing.secrets import MARK, Withheld
from planwave.interop.importing.templates import inserted

METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"))
_JSON_HEADER: Final = "application/json"
_MARKED: Final = re.compile(r"(?P<scheme>(?:[A-Za-z][A-Za-z-]*\s+)?)" + re.escape(MARK) + r"\Z")
"""A header whose value is a secret, with what stands before it."""
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_]+")
_SCHEMES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "httpBearerAuth": ("Authorization", "Bearer "),
        "httpBasicAuth": ("Authorization", "Basic "),
        "httpHeaderAuth": ("Authorization", ""),
    }
)
"""The header of a credential, and what stands before the secret in it."""


_ADDRESSES: Final = ("http://", "https://", "{{")


def _request(making: Making) -> None:
    parameters = making.parameters
    method = text_of(parameters, "method") or text_of(parameters, "requestMethod") or "GET"
    if method not in METHODS:
        making.lose(f"requests here have no method {method}", method, "method")
        method = "GET"
    data: dict[str, Any] = {"url": making.text("url")}
    if not data["url"].startswith(_ADDRESSES):
        making.lose("its address is none of http", text_of(parameters, "url"), "url")
    if method != "GET":
        data["method"] = method
    if making.step.version < 3:
        _old_request(making)
    headers, secrets = _headers(making)
    if parameters.get("sendQuery") is True:
        data["params"] = _pairs(making, "Query", "queryParameters")
    if parameters.get("sendBody") is True:
        _body(making, data, headers)
    secrets |= credential_secret(making)
    data |= {"headers": headers} if headers else {}
    data |= {"secretHeaders": secrets} if secrets else {}
    _response(making)
    is_one = is_one_item(making)
    target = making.becomes("fetch", data, suffix="request" if is_one else "")
    for name in secrets.values():
        making.workflow.conversion.needs("secret", secret_in(name), target)
    if is_one:
        hand_on_one_item(making, target)


def secret_in(header: str) -> str:
    """Return the name of the secret in a header such as ``Bearer {name}``."""
    return header.rpartition("{")[2].rstrip("}")


def _old_request(making: Making) -> None:
    known = {
        "url",
        "requestMethod",
        "options",
        "responseFormat",
        "authentication",
        "allowUnauthorizedCerts",
        "nodeCredentialType",
        "genericAuthType",
    }
    for name in sorted(making.parameters.keys() - known):
        if not _is_blank(making.parameters[name]):
            making.lose("a setting of older requests", name, name)
    if text_of(making.parameters, "responseFormat") == "file":
        making.lose("an answer that is a file", "file", "responseFormat")


def _is_blank(value: Any) -> bool:
    """Return whether a setting says nothing: ``{"parameter": []}``."""
    if isinstance(value, dict):
        return all(map(_is_blank, cast("dict[str, Any]", value).values()))
    return value in (None, "", False, [])


def _headers(making: Making) -> tuple[dict[str, Any], dict[str, str]]:
    """Return headers, and those with secrets of the operator."""
    headers, secrets = dict[str, Any](), dict[str, str]()
    for name, value, at in _given(making, "Headers", "headerParameters"):
        marked = _MARKED.match(value) if isinstance(value, str) else None
        if marked is not None:
            scheme = value.scheme if isinstance(value, Withheld) else marked["scheme"]
            secrets[name] = f"{scheme}{{{_secret_name(making.step.name)}}}"
        else:
            headers[name] = making.fields.template(value, at)
    return headers, secrets


def _given(making: Making, kind: str, name: str) -> Iterator[tuple[str, Any, str]]:
    """Yield the name, the value and the place of each header or parameter, in pairs or as JSON."""
    if making.parameters.get(f"send{kind}") is not True:
        return
    way = text_of(making.parameters, f"specify{kind}")
    if way not in ("", "keypair"):
        yield from _given_as_json(making, kind)
        return
    for number, each in objects_in(object_of(making.parameters, name), "parameters"):
        at = f"{making.at}/{name}/parameters/{number}"
        key, value = text_of(each, "name"), each.get("value", "")
        if not key and value in (None, ""):
            continue  # a row that was not filled in
        if text_of(each, "parameterType") not in ("", "formData"):
            making.step.node.lose("a file in a request", text_of(each, "parameterType"), at)
        elif not key or key.startswith("="):
            making.step.node.lose("the name of a header or a parameter is calculated", key, at)
        else:
            yield key, value, f"{at}/value"


def _given_as_json(making: Making, kind: str) -> Iterator[tuple[str, Any, str]]:
    field = f"json{kind}"
    written = making.parameters.get(field)
    try:
        value = json_of(written) if isinstance(written, str) else None
    except ValueError:
        value = None
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if not isinstance(value, dict) or any(
        isinstance(each, dict | list) for each in fields.values()
    ):
        making.lose(f"the {kind.lower()} as JSON that is calculated or nested", str(written), field)
        return
    for name, each in fields.items():
        if each is None:
            continue
        if isinstance(each, str) and each.startswith("="):
            making.lose(f"a text in the {kind.lower()} that looks calculated", each, field)
        yield name, each, f"{making.at}/{field}"


def _secret_name(name: str) -> str:
    return _NO_NAME.sub("_", name).strip("_").lower()[:60] or "secret"


def _pairs(making: Making, kind: str, name: str) -> dict[str, Any]:
    """Return the pairs of a query or a body."""
    pairs = dict[str, Any]()
    for key, value, at in _given(making, kind, name):
        if key in pairs:
            making.step.node.lose("a parameter is there twice", key, at)
        pairs[key] = making.fields.data(value, at)
    return pairs


def _body(making: Making, data: dict[str, Any], headers: dict[str, Any]) -> None:
    kind = text_of(making.parameters, "contentType") or "json"
    if kind == "json":
        if text_of(making.parameters, "specifyBody") == "json":
            _json_body(making, data, headers)
        else:
            data["json"] = _pairs(making, "Body", "bodyParameters")
    elif kind == "raw":
        data["body"] = making.text("body")
        written = text_of(making.parameters, "rawContentType") or "text/plain"
        _set_content_type(headers, written)
    elif kind == "form-urlencoded" and text_of(making.parameters, "specifyBody") in ("", "keypair"):
        pairs = (_form_part(making, each) for each in _given(making, "Body", "bodyParameters"))
        data["body"] = "&".join(pairs)
        _set_content_type(headers, "application/x-www-form-urlencoded")
    else:
        making.lose(f"a body of the kind {kind}", kind, "contentType")


def _form_part(making: Making, given: tuple[str, Any, str]) -> str:
    name, value, at = given
    if isinstance(value, dict | list):
        making.step.node.lose("a value of a form that is no text", name, at)
        return ""
    text = making.fields.expression(value, at)
    encoded = inserted(f'({text} ~ "") | urlencode')
    return f"{quote(name, safe='')}={encoded}"


def _set_content_type(headers: dict[str, Any], value: str) -> None:
    """Set the type of a body, unless the headers that are given say it."""
    if not any(name.lower() == "content-type" for name in headers):
        headers["content-type"] = value


def _json_body(making: Making, data: dict[str, Any], headers: dict[str, Any]) -> None:
    written = making.parameters.get("jsonBody")
    if isinstance(written, str) and not written.startswith("="):
        try:
            data["json"] = literal_data(json_of(written))
        except ValueError:
            making.lose("its JSON is none", written, "jsonBody")
        return
    made = making.fields.whole(written, f"{making.at}/jsonBody")
    if made is not None and made.kinds != STRING:
        data["json"] = made.template
    else:
        data["body"] = made.template if made else making.text("jsonBody")
        _set_content_type(headers, _JSON_HEADER)


def credential_secret(making: Making) -> dict[str, str]:
    """Return the header of a credential, which is a secret of the operator here."""
    kind = text_of(making.parameters, "authentication") or "none"
    if kind == "none":
        return {}
    type_name = text_of(making.parameters, "genericAuthType") or text_of(
        making.parameters, "nodeCredentialType"
    )
    secret = _secret_name(credential_name(making.step, type_name) or type_name or making.step.name)
    header, scheme = _SCHEMES.get(type_name, ("Authorization", "Bearer "))
    making.step.node.change(
        f"its credential {type_name or kind!r} is the secret {secret!r} in the header {header} here",
        f"{making.at}/authentication",
        hint="name the header that the service asks for, and set up the secret",
    )
    return {header: f"{scheme}{{{secret}}}"}


def credential_name(step: Step, type_name: str = "") -> str:
    """Return the name of a credential of a step, such as ``OpenAI account``."""
    given = object_of(step.fields, "credentials")
    chosen = type_name if type_name in given else next(iter(given), "")
    return text_of(object_of(given, chosen), "name")


def _response(making: Making) -> None:
    response = object_of(object_of(making.options, "response"), "response")
    form = text_of(response, "responseFormat") or "autodetect"
    if form == "file":
        making.lose("an answer that is a file", form, "options/response")
    if response.get("neverError") is True:
        making.lose("an answer with an error status goes on as any other", "neverError", "options")
    lost = {"pagination", "batching", "proxy"} & making.options.keys()
    for name in sorted(lost):
        making.lose(f"the option {name!r}", json.dumps(making.options[name]), f"options/{name}")
    making.ignore(frozenset(("response", "pagination", "batching", "proxy")))


def _envelope(workflow: Workflow, step: Step) -> Envelope:
    options = object_of(step.parameters, "options")
    response = object_of(object_of(options, "response"), "response")
    if response.get("fullResponse") is True:
        return Envelope(
            {
                ("body",): ("output", ()),
                ("headers",): ("headers", ()),
                ("statusCode",): ("status", ()),
            }
        )
    if text_of(response, "responseFormat") == "text":
        name = text_of(response, "outputPropertyName") or "data"
        return Envelope({(name,): ("output", ())})
    return SAME


REQUESTS: Final[Mapping[str, Kind]] = MappingProxyType(
    {"httpRequest": Kind(_request, envelope=_envelope)}
)

__all__ = ["METHODS", "REQUESTS", "credential_name", "credential_secret", "secret_in"]
