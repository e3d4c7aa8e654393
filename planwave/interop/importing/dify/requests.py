"""http-request steps as ``fetch``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast
from urllib.parse import quote, urlsplit

from planwave.interop.importing.dify.policies import offer_failure, policy_of
from planwave.interop.importing.dify.steps import Step
from planwave.interop.importing.dify.values import Read, template_of
from planwave.interop.importing.drafts import Target
from planwave.interop.importing.reading import json_of, number_of, object_of, objects_in, text_of
from planwave.interop.importing.secrets import MARK, Withheld
from planwave.interop.importing.templates import inserted, literal, output_of

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_BOUNDARY: Final = "planwave-form-7f3c1d5e9a"
_TIMEOUTS: Final = (
    "connect",
    "read",
    "write",
    "max_connect_timeout",
    "max_read_timeout",
    "max_write_timeout",
)
_MARKED: Final = re.compile(r"\A(?P<scheme>(?:[A-Za-z][A-Za-z-]*\s+)?)" + re.escape(MARK) + r"\Z")
_SECRET_REFERENCE: Final = re.compile(
    r"\A(?P<scheme>[A-Za-z0-9 _.-]*)\{\{#env\.(?P<name>[A-Za-z_][A-Za-z0-9_]*)#\}\}\Z"
)
_SENTINEL: Final = "\ue000{}\ue001"
_SENTINELS: Final = re.compile("\ue000(\\d+)\ue001")
_BARE: Final = re.compile("\ue002(\\d+)\ue003")
"""A reference that is a value of its own in JSON, not a part of a text."""
_OURS: Final = re.compile("[\ue000-\ue003]")


class _Request:
    """The request of a step, as it is being made."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.data: dict[str, Any] = {}
        self.headers: dict[str, str] = {}
        self.secret_headers: dict[str, str] = {}
        self.secrets: list[str] = []

    def header(self, name: str, value: str, pointer: str) -> None:
        """Add a header; one with a secret names the secret of the operator."""
        marked, named = _MARKED.match(value), _SECRET_REFERENCE.match(value)
        if named is not None and named["name"] in self.step.app.secrets:
            self._secret_header(name, named["scheme"], named["name"])
        elif isinstance(value, Withheld):
            self._secret_header(name, value.scheme, "")
        elif marked is not None:
            self._secret_header(name, marked["scheme"], "")
        else:
            self.headers[name] = self.step.text(value, pointer)

    def _secret_header(self, header: str, scheme: str, secret: str) -> None:
        secret = secret or self.step.node.secret_name(header)
        self.secret_headers[header] = f"{scheme}{{{secret}}}"
        self.secrets.append(secret)

    def content_type(self, value: str) -> None:
        if not any(
            name.lower() == "content-type" for name in (*self.headers, *self.secret_headers)
        ):
            self.headers["Content-Type"] = value


def http_request(step: Step) -> None:
    """Become a ``fetch``."""
    request = _Request(step)
    method = (text_of(step.data, "method") or "get").upper()
    if method not in _METHODS:
        step.lose(f"requests here have no method {method}", method, "/method")
    request.data["url"] = _url(step)
    if method != "GET":
        request.data["method"] = method
    for name, value in _lines(step, "headers"):
        request.header(name, value, "/headers")
    _authorize(request)
    params: dict[str, Any] = {}
    for name, value in _lines(step, "params"):
        text = step.text(value, "/params")
        before = params.get(name)
        params[name] = (
            text if before is None else [*(before if isinstance(before, list) else [before]), text]
        )
    _add_body(request)
    optional = {
        "headers": request.headers, "secretHeaders": request.secret_headers, "params": params,
    }  # fmt: skip
    request.data |= {name: value for name, value in optional.items() if value}
    policy = policy_of(step, "body")
    _add_timeout(step, policy)
    main = step.becomes("fetch", request.data, policy)
    for secret in request.secrets:
        step.app.conversion.needs("secret", secret, main)
    if step.data.get("ssl_verify") is False:
        step.node.change(
            "certificates are always checked here, and there they are not",
            f"{step.pointer}/ssl_verify",
        )
    if "retry" not in policy and "onError" not in policy:
        step.node.change(
            "a status from 400 on fails the step here; there it leaves as any other one"
        )
    _offer_response(step, main)


def _url(step: Step) -> str:
    url = text_of(step.data, "url").strip()
    if "{{#" not in url:
        try:
            is_usable = url.startswith(("http://", "https://")) and bool(urlsplit(url).hostname)
        except ValueError:
            is_usable = False
        if not is_usable:
            step.lose("its address is none of http", url, "/url")
    return step.text(url, "/url")


def _offer_response(step: Step, main: Target) -> None:
    step.outputs["body"] = Read(f"{output_of(main.id)} | string", kind="text")
    step.node.change("where its reply is JSON, the text of it is written without spaces")
    policy = object_of(main.node, "policy")
    if policy.get("onError") != "default":
        step.outputs["status_code"] = Read(output_of(main.id, "status"), kind="whole")
        step.outputs["headers"] = Read(output_of(main.id, "headers"))
    offer_failure(step)


def _lines(step: Step, name: str) -> list[tuple[str, str]]:
    """Return ``key:value`` lines, which headers and parameters are written in."""
    value = step.data.get(name)
    if isinstance(value, list):  # some files have [{"key", "value"}]
        fields = [
            (text_of(each, "key"), each.get("value")) for _, each in objects_in(step.data, name)
        ]
        return [(key, text if isinstance(text, str) else "") for key, text in fields if key]
    pairs: list[tuple[str, str]] = []
    for line in text_of(step.data, name).splitlines():
        key, _, text = line.partition(":")
        if key.strip():
            if "{{#" in key:
                step.lose(f"the name of one of its {name} is computed", line, f"/{name}")
            pairs.append((key.strip(), text.strip()))
    return pairs


def _authorize(request: _Request) -> None:
    step = request.step
    authorization = object_of(step.data, "authorization")
    if text_of(authorization, "type") in ("", "no-auth"):
        return
    config = object_of(authorization, "config")
    kind = text_of(config, "type")
    header = (text_of(config, "header") if kind == "custom" else "") or "Authorization"
    scheme = {"bearer": "Bearer ", "basic": "Basic ", "custom": ""}.get(kind)
    if scheme is None:
        step.lose("this authorization is not known", kind, "/authorization")
        return
    key = config.get("api_key")
    named = _SECRET_REFERENCE.match(key) if isinstance(key, str) else None
    secret = step.node.secret_name(header)
    if named is not None and not named["scheme"]:
        secret = named["name"]
    elif isinstance(key, str) and "{{#" in key:
        step.lose("its key is computed", key, "/authorization/config/api_key")
        return
    request.headers.pop(header, None)
    request.secret_headers[header] = f"{scheme}{{{secret}}}"
    request.secrets.append(secret)
    if kind == "basic":
        step.node.change("the secret is the credentials in base64", f"{step.pointer}/authorization")


def _add_body(request: _Request) -> None:
    step, body = request.step, object_of(request.step.data, "body")
    kind = text_of(body, "type") or "none"
    match kind:
        case "none":
            return
        case "json":
            _add_json(request, _body_text(body))
        case "raw-text":
            request.data["body"] = step.text(_body_text(body), "/body/data")
            request.content_type("text/plain")
        case "x-www-form-urlencoded":
            request.data["body"] = _urlencoded(step, _body_fields(step, body))
            request.content_type("application/x-www-form-urlencoded")
        case "form-data":
            request.data["body"] = _multipart(step, _body_fields(step, body))
            request.headers = {
                name: value
                for name, value in request.headers.items()
                if name.lower() != "content-type"
            }
            request.content_type(f"multipart/form-data; boundary={_BOUNDARY}")
        case _:
            step.lose("this kind of body has no counterpart", kind, "/body")


def _body_text(body: Mapping[str, Any]) -> str:
    data = body.get("data")
    if isinstance(data, list):
        return "".join(text_of(each, "value") for _, each in objects_in(body, "data"))
    return text_of(body, "data")


def _body_fields(step: Step, body: Mapping[str, Any]) -> list[tuple[str, list[str | Read]]]:
    """Return the fields of a form, each with the parts of its value."""
    data = body.get("data")
    if isinstance(data, str):  # lines of key:value, in older files
        lines = [line.partition(":") for line in data.splitlines() if line.strip()]
        return [(key.strip(), step.parts(value.strip(), "/body/data")) for key, _, value in lines]
    fields: list[tuple[str, list[str | Read]]] = []
    for number, each in objects_in(body, "data"):
        pointer = f"/body/data/{number}"
        key = text_of(each, "key")
        if text_of(each, "type") == "file":
            step.lose("it sends a file", key, pointer)
        if "{{#" in key:
            step.lose("the name of a field is computed", key, pointer)
        fields.append((key, step.parts(text_of(each, "value"), f"{pointer}/value")))
    return fields


def _urlencoded(step: Step, fields: Sequence[tuple[str, list[str | Read]]]) -> str:
    made: list[str] = []
    for key, parts in fields:
        step.note_printed(parts, "/body/data")
        value = "".join(
            inserted(f"{part.operand} | string | urlencode") if isinstance(part, Read)
            else literal(quote(part, safe=""))
            for part in parts
        )  # fmt: skip
        made.append(f"{quote(key, safe='')}={value}")
    return "&".join(made)


def _multipart(step: Step, fields: Sequence[tuple[str, list[str | Read]]]) -> str:
    made: list[str] = []
    for key, parts in fields:
        step.note_printed(parts, "/body/data")
        name = key.replace("\\", "\\\\").replace('"', "%22").replace("\r", "").replace("\n", "")
        head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
        made.append(template_of([head, *parts, "\r\n"]))
    return "".join(made) + f"--{_BOUNDARY}--\r\n"


def _add_json(request: _Request, text: str) -> None:
    """Send JSON as a value, in which references cannot break the syntax, or else as text."""
    step = request.step
    if not text.strip():
        return
    reads = step.parts(text, "/body/data")
    marked, known = "", list[Read]()
    for part in reads:
        if isinstance(part, Read):
            marked += _SENTINEL.format(len(known))
            known.append(part)
        else:
            marked += part
    value = _parsed(marked)
    if value is None or _OURS.search(text) or _has_marked_key(value):
        step.note_printed(reads, "/body/data")
        request.data["body"] = template_of(reads)
        request.content_type("application/json")
        step.node.change(
            "its JSON is sent as text: what is put into it is not escaped", f"{step.pointer}/body"
        )
        return
    request.data["json"] = _with_templates(value, known, step)


def _parsed(marked: str) -> Any:
    """Parse JSON with sentinels in texts, or in place of values; None if it is none."""
    quoted = re.sub(
        r'"(?:[^"\\]|\\.)*"|' + _SENTINELS.pattern,
        lambda match: match[0] if match[1] is None else f'"\ue002{match[1]}\ue003"',
        marked,
        flags=re.DOTALL,
    )
    try:
        return json_of(quoted)
    except ValueError:
        return None


def _has_marked_key(value: Any) -> bool:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return any("\ue000" in name or _has_marked_key(each) for name, each in fields.items())
    return isinstance(value, list) and any(map(_has_marked_key, cast("list[Any]", value)))


def _with_templates(value: Any, known: Sequence[Read], step: Step) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: _with_templates(each, known, step) for name, each in fields.items()}
    if isinstance(value, list):
        return [_with_templates(each, known, step) for each in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value
    if (bare := _BARE.fullmatch(value)) is not None:
        return _as_json(known[int(bare[1])])
    parts: list[str | Read] = []
    for number, text in enumerate(_SENTINELS.split(value)):
        if number % 2:
            parts.append(known[int(text)])
        elif text:
            parts.append(text)
    step.note_printed(parts, "/body/data")
    if len(parts) == 1 and isinstance(parts[0], Read) and parts[0].kind != "text":
        return inserted(f"{parts[0].operand} | string")
    return template_of(parts)


def _as_json(read: Read) -> str:
    """Return a template of a value that stands in JSON by itself; a text may be JSON there."""
    if read.kind in ("list", "whole"):
        return template_of([read])
    return inserted(f"{read.operand} | fromjson({read.operand})")


def _add_timeout(step: Step, policy: dict[str, Any]) -> None:
    timeout = object_of(step.data, "timeout")
    seconds = [number_of(timeout, name) or 0 for name in _TIMEOUTS]
    total = max(sum(seconds[:3]), sum(seconds[3:]))
    if total > 0:
        policy["timeoutS"] = min(total, 3_600)
        step.node.change(
            "its limits for connecting, writing and reading are one limit of time",
            f"{step.pointer}/timeout",
        )
