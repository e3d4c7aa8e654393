"""HTTP steps as ``fetch``."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote, urlsplit

from planwave.interop.importing.flowise.references import parts_of, text_at
from planwave.interop.importing.flowise.steps import Expression, Part, Step, template_of
from planwave.interop.importing.reading import json_of, objects_in, text_of
from planwave.interop.importing.secrets import MARK, Withheld
from planwave.interop.importing.templates import inserted, literal, output_of

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_MARKED: Final = re.compile(r"\A(?P<scheme>(?:[A-Za-z][A-Za-z-]*\s+)?)" + re.escape(MARK) + r"\Z")
_CREDENTIALS: Final = ("credential", "FLOWISE_CREDENTIAL_ID")
_RAW: Final = frozenset({"arraybuffer", "base64"})


def http(step: Step) -> None:
    """Become a ``fetch``."""
    method = text_of(step.inputs, "method") or "GET"
    if method not in _METHODS:
        step.lose(f"requests here have no method {method!r}", method, "/method")
    data: dict[str, Any] = {"url": _url(step)} | ({} if method == "GET" else {"method": method})
    headers: dict[str, str] = {}
    secret: dict[str, str] = {}
    _add_headers(step, headers, secret)
    if any(step.inputs.get(name) or step.data.get(name) for name in _CREDENTIALS):
        secret["Authorization"] = f"{{{_secret_name(step, 'authorization')}}}"
        step.change(
            "its credential is the secret of the header Authorization",
            hint="put the whole value of the header into the secret, such as Bearer and the token",
        )
    params = _params(step)
    if method not in ("GET", "HEAD"):
        _add_body(step, data, headers)
    optional = {"headers": headers, "secretHeaders": secret, "params": params}
    main = step.becomes("fetch", data | {k: v for k, v in optional.items() if v})
    for value in secret.values():
        step.flow.conversion.needs("secret", value[value.index("{") + 1 : -1], main)
    if text_of(step.inputs, "responseType") in _RAW:
        step.lose("answers in bytes have no counterpart", "responseType", "/responseType")
    root = output_of(main.id)
    step.content = root
    step.fields = {
        "http.data": root,
        "http.status": output_of(main.id, "status"),
        "http.headers": output_of(main.id, "headers"),
    }


def _url(step: Step) -> str:
    text = text_at(step, "url").strip()
    if "{{" not in text:
        try:
            parts = urlsplit(text)
            is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            is_usable = False
        if not is_usable:
            step.lose("its address is none of http", text, "/url")
    return template_of(parts_of(step, text, "/url"))


def _add_headers(step: Step, headers: dict[str, str], secret: dict[str, str]) -> None:
    for number, each in objects_in(step.inputs, "headers"):
        name, value = text_of(each, "key").strip(), each.get("value")
        pointer = f"/headers/{number}"
        if not name or value in ("", None):
            continue
        text = value if isinstance(value, Withheld) else text_at(step, "value", each)
        marked = _MARKED.match(text)
        if not _HEADER_NAME.match(name) or not text.isprintable():
            step.lose("this header cannot be sent", name, pointer)
        elif marked is not None:
            scheme = text.scheme if isinstance(text, Withheld) else marked["scheme"]
            secret[name] = f"{scheme}{{{_secret_name(step, name)}}}"
        else:
            headers[name] = template_of(parts_of(step, text, pointer))


def _secret_name(step: Step, header: str) -> str:
    """Return a name for a secret that has none in the file."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", f"{step.id}_{header}").strip("_").lower()[:60]
    return name if name[:1].isalpha() else f"secret_{name}"


def _params(step: Step) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for number, each in objects_in(step.inputs, "queryParams"):
        name, text = text_of(each, "key"), text_at(step, "value", each)
        if not name or not text:
            continue
        made = template_of(parts_of(step, text, f"/queryParams/{number}"))
        before = params.get(name)
        params[name] = (
            made if before is None else [*(before if isinstance(before, list) else [before]), made]
        )
    return params


def _add_body(step: Step, data: dict[str, Any], headers: dict[str, str]) -> None:
    kind = text_of(step.inputs, "bodyType")
    text = text_at(step, "body")
    match kind:
        case "json" if text.strip():
            _add_json(step, data, headers, text)
        case "raw" if text.strip():
            data["body"] = template_of(parts_of(step, text, "/body"))
        case "xWwwFormUrlencoded":
            data["body"] = _encoded(step)
            _content_type(headers, "application/x-www-form-urlencoded")
        case "formData":
            step.lose("forms of several parts have no counterpart", kind, "/bodyType")
        case _:
            if step.inputs.get("body") and kind not in ("json", "raw"):
                step.lose("this kind of body has no counterpart", kind, "/bodyType")


def _add_json(step: Step, data: dict[str, Any], headers: dict[str, str], text: str) -> None:
    parts = parts_of(step, text, "/body")
    _content_type(headers, "application/json")
    data["body"] = template_of(parts)
    if any(isinstance(part, Expression) for part in parts):
        step.change(
            "its JSON is sent as text: what is put into it is not escaped, as there", "/body"
        )
        return
    try:
        json_of(text)
    except ValueError:
        step.lose("its body is JSON with liberties, which is sent as it is", text, "/body")


def _encoded(step: Step) -> str:
    made: list[str] = []
    for number, each in objects_in(step.inputs, "body"):
        parts: list[Part] = parts_of(step, text_at(step, "value", each), f"/body/{number}")
        value = "".join(
            inserted(f"({part.text}) | string | urlencode") if isinstance(part, Expression)
            else literal(quote(part, safe=""))
            for part in parts
        )  # fmt: skip
        made.append(f"{quote(text_of(each, 'key'), safe='')}={value}")
    return "&".join(made)


def _content_type(headers: dict[str, str], value: str) -> None:
    for name in [each for each in headers if each.lower() == "content-type"]:
        del headers[name]
    headers["Content-Type"] = value
